/* quern runs show: what a file of runs knows of one. */

#include "command.h"
#include "jsonline.h"
#include "message.h"
#include "plain.h"
#include "runs.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

typedef struct show_flags {
    const char *runs;
    int json;
} show_flags;

#define AT(member) .place = offsetof(show_flags, member)

static const option show_options[] = {
    {.heading = "Options", ROW_JSON(json, "print one JSON object instead")},
    RUNS_OPTION(offsetof(show_flags, runs)),
    {.name = NULL}};

static void print_text(const char *name, const char *text) {
    if (!*text)
        return;
    plain_cell(name, INT_MAX, 16);
    putchar(' ');
    plain_cell(text, INT_MAX, 0);
    putchar('\n');
}

static void print_number(const char *name, double value) {
    if (isfinite(value))
        printf("%-16s %.9g\n", name, value);
}

static void print_all(qn_runs *runs, uint64_t index, const qn_run_info *info) {
    const char *key;
    print_text("run", info->id);
    print_text("name", info->name);
    print_text("state", info->state);
    print_text("started", info->started);
    print_text("ended", info->ended);
    print_text("host", info->host);
    print_text("command", info->command);
    print_text("data", info->data);
    print_text("digest", info->model);
    printf("%-16s %" PRIu64 "\n", "epochs", info->epochs);
    print_number("seconds", info->seconds);
    print_text("scored", info->scored);
    print_number("accuracy", info->accuracy);
    print_number("loss", info->loss);
    print_number("rmse", info->rmse);
    print_number("r2", info->r2);
    printf("recipe\n");
    for (uint32_t n = 0; (key = qn_runs_key(runs, index, n)) != NULL; n++) {
        printf("  ");
        print_text(key, qn_runs_value(runs, index, n));
    }
}

static void print_json(qn_runs *runs, uint64_t index, const qn_run_info *info) {
    const char *key;
    json_begin("run");
    runs_fields(info);
    json_open("recipe", '{');
    for (uint32_t n = 0; (key = qn_runs_key(runs, index, n)) != NULL; n++)
        json_text(key, qn_runs_value(runs, index, n));
    json_close('}');
    json_end();
}

static int run(const command *self, int argc, char **argv) {
    show_flags f = {.runs = NULL};
    arguments given;
    qn_runs *runs = NULL;
    qn_run_info info;
    uint64_t index = 0;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    code = runs_open(f.runs, &runs);
    if (code < 0)
        code = runs_find(runs, given.operand[0], &index);
    if (code < 0)
        code = runs_info(runs, index, &info);
    if (code < 0 && f.json)
        print_json(runs, index, &info);
    else if (code < 0)
        print_all(runs, index, &info);
    if (code < 0)
        code = runs_check(runs, index, &info);
    qn_runs_close(runs);
    return code < 0 ? EXIT_DONE : code;
}

const command runs_show_command = {
    .name = "runs show",
    .summary = "print the record of one run in a file of runs",
    .usage = "quern runs show RUN [--runs FILE] [--json]",
    .about =
        "RUN is the identifier of a run (quern runs list), at least four digits of its beginning, "
        "or its name. With --json the values of the recipe are texts.",
    .operand = "RUN",
    .options = show_options,
    .examples = "quern runs show 3f8a --runs runs.sqlite",
    .run = run};
