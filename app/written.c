#include "written.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "shared_rows.h"
#include "whole_output.h"
#include <quern/convert.h>
#include <stdio.h>
#include <string.h>

#define AT(member) .place = offsetof(written_flags, member)

const option written_options[] = {
    {ROW_OUTPUT(out, "FILE", "file to write; required. - is the standard output")},
    {ROW_CHOICE("format", format, "NAME", "format of that file"), .from = QN_CHOICE_WRITE,
     .fallback = "by the ending of its name"},
    {ROW_TEXT("output-labels", labels, "FILE", "NPY, IDX: file of labels to write")},
    {.name = NULL}};

/* NULL: the ending names none. */
static const char *format_of(const written_flags *f) {
    return f->format ? f->format : qn_data_write_format(f->out);
}

int written_is_stream(const written_flags *f) { return strcmp(f->out, "-") == 0; }

int written_check(const written_flags *f) {
    if (!f->out)
        return message_usage("add -o table.csv, or -o table.npz", "-o FILE is required");
    if (written_is_stream(f) && !f->format)
        return message_usage("add --format csv, or another one",
                             "the standard output has no name that tells a format");
    if (!format_of(f))
        return message_usage(
            "end it in the name of a format, such as .csv, .parquet or .npz, or add --format",
            "the name \"%s\" has no known ending", f->out);
    if (f->labels && strcmp(f->labels, "-") == 0)
        return message_usage("name a file", "--output-labels cannot be the standard output");
    return -1;
}

static void tell_json(const qn_data *data, const written_flags *f, const char *part,
                      const char *reading) {
    json_begin("written");
    json_text("file", f->out);
    json_text("part", part);
    json_text("format", format_of(f));
    json_text("labels", f->labels);
    json_count("items", qn_data_items(data));
    json_count("features", qn_data_features(data));
    json_text("digest", qn_data_digest(data));
    json_message("note", *reading ? reading : NULL);
    json_end();
}

static void tell(const qn_data *data, const written_flags *f, const char *reading) {
    char number[32];
    printf("%s items of %u features in %s%s%s", format_count(qn_data_items(data), number),
           (unsigned)qn_data_features(data), f->out, f->labels ? " and " : "",
           f->labels ? f->labels : "");
    /* An archive is read in the order of its names, so its digest is another. */
    if (strcmp(format_of(f), "tar") == 0)
        printf("\n");
    else
        printf(", digest %s\n", qn_data_digest(data));
    if (*reading)
        message_note("note: %s: %s", f->out, reading);
}

/* Labels that are left out, or what a reader has to be told. */
static void describe(const qn_data *data, const written_flags *f, char *text, size_t capacity) {
    const char *name = format_of(f);
    const int apart = strcmp(name, "npy") == 0 || strcmp(name, "idx") == 0;
    if (apart && !f->labels && qn_data_target(data) != QN_TARGET_NONE)
        snprintf(text, capacity, "the labels were not written; --output-labels keeps them");
    else
        qn_data_reading(data, name, text, capacity);
}

/* What is written. */
typedef struct writing {
    const qn_data *data;
    const written_flags *f;
} writing;

static int write_to(const void *user, const char *path) {
    const writing *w = user;
    qn_error err;
    return qn_data_write(w->data, format_of(w->f), path, w->f->labels, &err) == QN_OK
               ? -1
               : message_error(&err);
}

void written_tell(const qn_data *data, const written_flags *f, const char *part, int quiet,
                  int json) {
    char reading[480];
    describe(data, f, reading, sizeof reading);
    if (json)
        tell_json(data, f, part, reading);
    else if (written_is_stream(f) && *reading)
        message_note("note: %s", reading);
    else if (!quiet && !written_is_stream(f))
        tell(data, f, reading);
}

int written_make(const qn_data *data, const written_flags *f, const char *part, int quiet,
                 int json) {
    const writing w = {data, f};
    const int code = written_is_stream(f) ? whole_output(write_to, &w) : write_to(&w, f->out);
    if (code < 0)
        written_tell(data, f, part, quiet, json);
    return code;
}
