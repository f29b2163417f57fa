/* quern data stats: statistics of the columns of a data file. */

#include "command.h"
#include "compute.h"
#include "message.h"
#include "paths.h"
#include "ranks.h"
#include "shared_rows.h"
#include "sources.h"
#include "stats.h"
#include <quern/statistics.h>
#include <stdlib.h>
#include <string.h>

typedef struct stats_flags {
    source_flags from;
    compute_flags compute;
    ranks_flags ranks;
    int by_class, correlation, histograms, json;
    const char *quantiles;
    uint64_t bins;
} stats_flags;

#define AT(member) .place = offsetof(stats_flags, member)

static const option stats_options[] = {
    {.heading = "Options", ROW_FLAG("by-class", by_class, "also statistics of each class")},
    {ROW_FLAG("correlation", correlation,
              "also the correlation of all pairs of columns; with --json covariances, too")},
    {ROW_FLAG("histograms", histograms,
              "also how many values lie in each of --bins equal parts of the range")},
    {ROW_COUNT("bins", bins, 1, 1000000, "parts of a histogram"),
     .fallback = "1 + log2 of the number of values, rounded up"},
    {ROW_TEXT("quantiles", quantiles, "LIST", "numbers from 0 to 1, separated by commas"),
     .fallback = "0.25,0.5,0.75"},
    {ROW_JSON(json, "print one JSON object instead")},
    {.heading = "Data", .more = source_parts_options, AT(from)},
    {.more = source_label_options, AT(from)},
    {.more = source_task_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_token_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {.more = source_unlabelled_options, AT(from)},
    {.heading = "Devices (they do not change the numbers)", .more = compute_options, AT(compute)},
    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},
    {.heading = RANKS_HEADING, .more = ranks_options, AT(ranks)},
    {.name = NULL}};

/* The numbers of --quantiles, at most STATS_QUANTILES. Returns -1, or the exit code after a
 * message. */
static int read_quantiles(const char *text, stats_wanted *wanted) {
    const char *from = text;
    while (text && *from) {
        char *end;
        const double q = strtod(from, &end);
        if (end == from || !(q >= 0 && q <= 1) || (*end && *end != ',') || (*end && !end[1]))
            return message_usage("write numbers from 0 to 1 as --quantiles 0.01,0.5,0.99",
                                 "--quantiles: \"%.60s\" is not a list of numbers from 0 to 1",
                                 text);
        if (wanted->quantile_count == STATS_QUANTILES)
            return message_usage("give fewer", "--quantiles: there are more than %d numbers",
                                 STATS_QUANTILES);
        wanted->quantile[wanted->quantile_count++] = q;
        from = *end ? end + 1 : end;
    }
    if (text && wanted->quantile_count == 0)
        return message_usage("write numbers from 0 to 1 as --quantiles 0.01,0.5,0.99",
                             "--quantiles: the list is empty");
    return -1;
}

/* What is printed; any rank may have to do it. */
typedef struct ending {
    const stats_wanted *wanted;
    const qn_statistics *found;
    int json;
} ending;

static int print_all(void *user) {
    const ending *e = user;
    if (e->json)
        stats_print_json(e->found, e->wanted);
    else
        stats_print(e->found, e->wanted);
    return EXIT_DONE;
}

static void on_note(void *user, const char *text) {
    (void)user;
    message_aside(text, "");
}

static int compute(const stats_flags *f, const stats_wanted *wanted) {
    qn_compute over = compute_of(&f->compute);
    over.cluster = ranks_cluster();
    qn_error err = {0};
    qn_statistics *found = NULL;
    qn_statistics_options options;
    qn_statistics_options_init(&options);
    options.by_class = f->by_class;
    options.correlation = f->correlation;
    options.histograms = f->histograms;
    options.bins = (uint32_t)f->bins;
    options.quantiles = wanted->quantile;
    options.quantile_count = wanted->quantile_count;
    options.compute = &over;
    options.on_note = on_note;
    const qn_status status = wanted->parts
                                 ? qn_statistics_of_parts(wanted->parts, &options, &found, &err)
                                 : qn_statistics_make(wanted->data, &options, &found, &err);
    ending e = {wanted, found, f->json};
    const int code = status == QN_OK ? ranks_conclude(&err, print_all, &e) : ranks_failed(&err);
    qn_statistics_free(found);
    return code;
}

/* FILE or --data-parts. */
static int check_files(const stats_flags *f) {
    const int code = sources_check_operand(&f->from);
    if (code < 0 && source_is_stream(f->from.parts))
        return message_usage("name files; FILE - is the standard input of a single process",
                             "- is the standard input, which ranks do not share");
    return code;
}

static int check_flags(const stats_flags *f, stats_wanted *wanted) {
    if (f->bins && !f->histograms)
        return message_usage("add --histograms", "--bins does nothing without --histograms");
    int code = check_files(f);
    if (code < 0)
        code = read_quantiles(f->quantiles, wanted);
    if (code < 0)
        code = compute_check(&f->compute);
    if (code >= 0)
        return code;
    if (!f->quantiles) {
        memcpy(wanted->quantile, (const double[]){0.25, 0.5, 0.75}, 3 * sizeof(double));
        wanted->quantile_count = 3;
    }
    paths files = {.count = 0};
    if (f->from.data)
        paths_add_files(&files, "FILE", "--labels", source_data(&f->from));
    paths_add(&files, QN_FILE_READ, "--key-file", ranks_key_path(&f->ranks));
    return paths_check(&files, 1);
}

static int run(const command *self, int argc, char **argv) {
    stats_flags f = {0};
    stats_wanted wanted = {0};
    arguments given = {0};
    qn_agreement same[SOURCES_AGREED];
    qn_data *data = NULL;
    qn_parts *parts = NULL;
    int code = ranks_join(argc - 3, argv + 3, 0);
    if (code >= 0)
        return code;
    code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code < 0) {
        message_setup(self->name, 0, f.json);
        source_take_operands(&f.from, &given);
        code = check_flags(&f, &wanted);
    }
    sources_agreed(&f.from, self->name, same);
    code = ranks_agree(code, same, SOURCES_AGREED, 1);
    if (code < 0)
        code = f.from.parts
                   ? source_open_parts(&f.from, f.compute.threads, NULL, &parts)
                   : source_open(source_data(&f.from), &f.from, f.compute.threads, NULL, &data);
    if (code < 0)
        code = ranks_agree(-1, NULL, 0, 0);
    if (code < 0) {
        wanted.data = parts ? qn_parts_own(parts) : data;
        wanted.parts = parts;
        wanted.path = parts ? f.from.parts : f.from.data;
        wanted.by_class = f.by_class;
        code = compute(&f, &wanted);
    }
    qn_parts_close(parts);
    qn_data_close(data);
    return ranks_leave(code);
}

const command data_stats_command = {
    .name = "data stats",
    .summary = "statistics of the columns of a file or folder of data",
    .usage = "quern data stats FILE... [options]",
    .about = "Reads what \"quern data info\" reads; - is the standard input. Prints count, mean, "
             "deviation, skewness, extremes and quantiles of each column. Each "
             "number is computed exactly from the values as 32-bit floats, or from what is kept of "
             "numbers that these cannot hold, and rounded once. Dates are shown as dates; their "
             "deviation is in days. Missing values are counted and left out. The deviation is "
             "divided by n - 1. Columns "
             "of categories have the number of items of each category. Several processes divide "
             "the columns, or with --data-parts the files. GPUs help where --devices names them, "
             "or the table is large.",
    .operand = "FILE",
    .optional = 1,
    .most_operands = MOST_FILES + 1,
    .options = stats_options,
    .examples = "quern data stats heart.csv --label sick --by-class\n"
                "quern data stats table.npy --quantiles 0.01,0.5,0.99 --correlation\n"
                "quern data stats heart.csv --histograms --bins 10 --json",
    .run = run};
