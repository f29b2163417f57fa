/* quern data synth digits: handwriting-like digits, written as IDX, CSV or an archive of PNG
 * images. */

#include "command.h"
#include "format.h"
#include "message.h"
#include "paths.h"
#include "shared_rows.h"
#include "sources.h"
#include <quern/data.h>
#include <stdio.h>

typedef struct synth_flags {
    uint64_t items, seed, first;
    const char *out, *labels;
    int quiet;
} synth_flags;

#define AT(member) .place = offsetof(synth_flags, member)

static const option synth_options[] = {
    {.heading = "Options",
     ROW_OUTPUT(
         out, "FILE",
         "file to write; required. CSV if the name ends in .csv; PNG images in an archive, a "
         "folder for each digit, if it ends in .tar; IDX if it ends in .idx or -ubyte, or with "
         "--labels")},
    {ROW_TEXT("labels", labels, "FILE", "IDX: file of labels to write")},
    {ROW_COUNT("items", items, 1, UINT64_C(1) << 32, "number of items to draw"),
     .fallback = "20000"},
    {.name = "first",
     .kind = OPTION_COUNT,
     AT(first),
     .value = "K",
     .high = UINT64_C(1) << 47,
     .help = "number of the first item; a test set begins where the training set ends",
     .fallback = "0"},
    {ROW_SEED(seed, "seed; another one draws other digits")},
    {ROW_QUIET(quiet)},
    {.name = NULL}};

static int is_csv(const synth_flags *f) { return ends_with(f->out, ".csv"); }

static int is_tar(const synth_flags *f) { return ends_with(f->out, ".tar"); }

static int check_flags(const synth_flags *f) {
    if (!f->out)
        return message_usage("add -o digits.csv, or -o images.idx --labels labels.idx\n"
                             "quern data synth digits --items 500 -o digits.tar",
                             "-o FILE is required");
    if ((is_csv(f) || is_tar(f)) && f->labels)
        return message_usage("leave --labels out, or name an .idx file with -o",
                             is_csv(f) ? "a CSV file holds the labels itself"
                                       : "the folders of the archive are the labels");
    if (!is_csv(f) && !is_tar(f) && !f->labels && !ends_with(f->out, ".idx") &&
        !ends_with(f->out, "-ubyte"))
        return message_usage("end it in .csv, .tar or .idx, or add --labels FILE for IDX",
                             "the name \"%s\" has no known ending", f->out);
    paths files = {.count = 0};
    paths_add(&files, QN_FILE_WRITE, "-o", f->out);
    paths_add(&files, QN_FILE_WRITE, "--labels", f->labels);
    return paths_check(&files, 1);
}

static int run(const command *self, int argc, char **argv) {
    synth_flags f = {.items = EMBEDDED_TRAIN, .seed = EMBEDDED_SEED};
    arguments given;
    qn_error err;
    qn_data *data = NULL;
    int code = options_read(self, argc - 4, argv + 4, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, 0);
    code = check_flags(&f);
    if (code >= 0)
        return code;
    qn_status status = qn_data_synth_digits(f.seed, f.first, f.items, &data, &err);
    if (status == QN_OK && is_csv(&f))
        status = qn_data_write_csv(data, f.out, &err);
    else if (status == QN_OK && is_tar(&f))
        status = qn_data_write_tar(data, f.out, &err);
    else if (status == QN_OK)
        status = qn_data_write_idx(data, f.out, f.labels, &err);
    if (status == QN_OK && !f.quiet) {
        char number[32];
        printf("%s digits of 28x28 in %s%s%s", format_count(f.items, number), f.out,
               f.labels ? " and " : "", f.labels ? f.labels : "");
        /* An archive is read in the order of its names, so its digest is another. */
        printf(is_tar(&f) ? "\n" : ", digest %s\n", qn_data_digest(data));
        if (!is_csv(&f) && !is_tar(&f) && !f.labels)
            message_note("note: the labels were not written; --labels FILE keeps them");
    }
    qn_data_close(data);
    return status == QN_OK ? EXIT_DONE : message_error(&err);
}

const command data_synth_digits_command = {
    .name = "data synth digits",
    .summary = "draw images of digits and write them as IDX, CSV or PNG",
    .usage = "quern data synth digits [options] -o FILE [--labels FILE]",
    .about =
        "Draws handwriting-like digits of 28x28 bytes with labels 0 to 9, the same bytes on every "
        "machine. Item K of a seed does not depend on how many items are drawn.",
    .options = synth_options,
    .examples = "quern data synth digits --items 5000 -o train.csv\n"
                "quern data synth digits --items 1000 --first 5000 -o test.csv\n"
                "quern data synth digits --items 5000 -o images.idx --labels labels.idx",
    .run = run};
