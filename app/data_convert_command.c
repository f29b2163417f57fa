/* quern data convert: a data file in another format. */

#include "command.h"
#include "message.h"
#include "paths.h"
#include "shared_rows.h"
#include "sources.h"
#include "written.h"

typedef struct convert_flags {
    source_flags from;
    written_flags to;
    uint64_t threads;
    int quiet, json;
} convert_flags;

#define AT(member) .place = offsetof(convert_flags, member)

static const option convert_options[] = {{.heading = "Options", .more = written_options, AT(to)},
                                         {ROW_READERS(threads)},
                                         {ROW_QUIET(quiet)},
                                         {ROW_JSON(json, "print one JSON object instead")},
                                         SOURCE_FILE_OPTIONS(offsetof(convert_flags, from)),
                                         {.name = NULL}};

static int check_flags(const convert_flags *f) {
    const int code = written_check(&f->to);
    if (code >= 0)
        return code;
    if (f->json && f->quiet)
        return message_usage("leave one of them out", "--quiet does nothing with --json");
    if (f->json && written_is_stream(&f->to))
        return message_usage("name a file with -o, or leave --json out",
                             "the standard output cannot take the data and --json");
    return -1;
}

static int run(const command *self, int argc, char **argv) {
    convert_flags f = {.quiet = 0, .from = {.keep_doubles = 1}};
    arguments given;
    qn_data *data = NULL;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, f.json);
    code = check_flags(&f);
    if (code >= 0)
        return code;
    paths files = {.count = 0};
    source_take_operands(&f.from, &given);
    paths_add_files(&files, "FILE", "--labels", source_data(&f.from));
    paths_add(&files, QN_FILE_WRITE, "-o", written_is_stream(&f.to) ? NULL : f.to.out);
    paths_add(&files, QN_FILE_WRITE, "--output-labels", f.to.labels);
    code = paths_check(&files, 1);
    if (code < 0)
        code = source_open(source_data(&f.from), &f.from, f.threads, NULL, &data);
    if (code < 0)
        code = written_make(data, &f.to, NULL, f.quiet, f.json);
    qn_data_close(data);
    return code < 0 ? EXIT_DONE : code;
}

const command data_convert_command = {
    .name = "data convert",
    .summary = "write a data file in another format",
    .usage = "quern data convert FILE... [options] -o FILE",
    .about = "Reads what \"quern data info\" reads (- is the standard input) and writes it in the "
             "format of --format. The file has the digest of what was read; a note names the "
             "options with which it must be read. 64-bit floats of typed files stay so, although "
             "other commands take the nearest 32-bit float. What the format cannot hold is "
             "refused, such "
             "as texts and weights in NPY.",
    .operand = "FILE",
    .most_operands = MOST_FILES + 1,
    .options = convert_options,
    .examples = "quern data convert heart.parquet --label sick -o heart.csv\n"
                "quern data convert digits.csv -o digits.npz\n"
                "quern data convert sales.csv.gz --label last -o sales.parquet\n"
                "quern data convert a9a.libsvm -o x.npy --output-labels y.npy\n"
                "zcat t.csv.gz | quern data convert - --format libsvm -o - | head",
    .run = run};
