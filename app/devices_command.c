/* quern devices: what this machine has to compute with. */

#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include <inttypes.h>
#include <quern/device.h>
#include <stdio.h>

typedef struct devices_flags {
    int json;
} devices_flags;

static const option devices_options[] = {{.heading = "Options",
                                          .name = "json",
                                          .kind = OPTION_FLAG,
                                          .place = offsetof(devices_flags, json),
                                          .help = "one JSON object a line, one for each device"},
                                         {.name = NULL}};

static void print_json(uint32_t index, const qn_device_info *d) {
    json_begin("device");
    json_count("index", index);
    json_text("kind", d->kind);
    json_text("name", d->name);
    json_text("isa", d->isa);
    json_text("isas", d->isas);
    json_count("cores", (uint64_t)d->cores);
    json_count("memory", d->memory);
    json_open("cache", '[');
    for (int i = 0; i < 3; i++)
        json_count(NULL, d->cache[i]);
    json_close(']');
    json_end();
}

static void print_text(uint32_t index, const qn_device_info *d) {
    char text[24];
    printf("%-4" PRIu32 " %-7s %5d  %-9s %-22s %s\n", index, d->kind, d->cores,
           format_bytes(d->memory, text), d->isas, d->name);
    printf("     takes %s; cache", d->isa);
    for (int i = 0; i < 3; i++)
        if (d->cache[i] > 0)
            printf(" L%d %s", i + 1, format_bytes(d->cache[i], text));
    putchar('\n');
}

static int run(const command *self, int argc, char **argv) {
    devices_flags f = {0};
    arguments given;
    qn_error err;
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    if (!f.json)
        printf("%-4s %-7s %5s  %-9s %-22s %s\n", "#", "kind", "cores", "memory", "instruction sets",
               "name");
    for (uint32_t i = 0; i < qn_device_count(); i++) {
        qn_device_info d;
        if (qn_device_get(i, &d, &err) != QN_OK)
            return message_error(&err);
        if (f.json)
            print_json(i, &d);
        else
            print_text(i, &d);
    }
    return EXIT_DONE;
}

const command devices_command = {.name = "devices",
                                 .summary = "what this machine has to compute with",
                                 .usage = "quern devices [--json]",
                                 .about = "Lists the devices that a run can use, with the cores "
                                          "and the memory that this process may have.",
                                 .options = devices_options,
                                 .examples = "quern devices\nquern devices --json",
                                 .run = run};
