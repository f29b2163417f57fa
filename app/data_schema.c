#include "data_schema.h"
#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include <inttypes.h>
#include <quern/description.h>
#include <stdio.h>
#include <string.h>

static void print_json(const char *path, const qn_description *d) {
    json_begin("data");
    json_text("file", path);
    json_text("format", qn_description_format(d));
    json_count("files", qn_description_files(d));
    json_count("items", qn_description_items(d));
    json_open("columns", '[');
    for (uint32_t k = 0; k < qn_description_columns(d); k++) {
        json_open(NULL, '{');
        json_text("name", qn_description_name(d, k));
        json_text("type", qn_description_type(d, k));
        json_flag("missing", qn_description_may_miss(d, k));
        json_close('}');
    }
    json_close(']');
    json_text("digest", NULL);
    json_end();
}

static void print_text(const char *path, const qn_description *d) {
    char number[32];
    const uint32_t columns = qn_description_columns(d);
    size_t width = 4;
    for (uint32_t k = 0; k < columns; k++) {
        const size_t size = strlen(qn_description_name(d, k));
        width = size > width && size < 40 ? size : width;
    }
    printf("file      %s (%s)\n", path, qn_description_format(d));
    if (qn_description_files(d) > 1)
        printf("files     %s\n", format_count(qn_description_files(d), number));
    printf("items     %s\n", format_count(qn_description_items(d), number));
    printf("columns   column  %-*s  type\n", (int)width, "name");
    for (uint32_t k = 0; k < columns; k++)
        printf("          %6" PRIu32 "  %-*s  %s%s\n", k + 1, (int)width, qn_description_name(d, k),
               qn_description_type(d, k), qn_description_may_miss(d, k) ? ", may be missing" : "");
    puts("digest    not computed: only the descriptions in the files were read");
}

int data_schema_print(const char *const *paths, size_t count, int json) {
    qn_description *d;
    qn_error err;
    if (qn_description_read(paths, count, &d, &err) != QN_OK)
        return message_error(&err);
    if (json)
        print_json(paths[0], d);
    else
        print_text(paths[0], d);
    qn_description_free(d);
    return EXIT_DONE;
}
