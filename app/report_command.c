/* quern report: a page about a run, or about several. */

#include "command.h"
#include "compute.h"
#include "message.h"
#include "paths.h"
#include "runs.h"
#include "shared_rows.h"
#include "sources.h"
#include <quern/report.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct report_flags {
    source_flags from;
    compute_flags compute;
    const char *model, *trace, *out, *plots, *runs;
    uint64_t mistakes, importance, seed;
    int quiet;
} report_flags;

#define AT(member) .place = offsetof(report_flags, member)
#define AGAIN(member) .again = offsetof(report_flags, member)

static const option report_options[] = {
    {.heading = "Output",
     ROW_OUTPUT(out, "FILE",
                "page to write: one HTML file that needs no network, no script and no other file"),
     .fallback = "report.html, with --plots none"},
    {ROW_TEXT("plots", plots, "DIR", "folder for the charts alone, as SVG files")},
    RUNS_OPTION(offsetof(report_flags, runs)),
    {ROW_QUIET(quiet)},

    {.heading = "More about one run",
     ROW_TEXT("model", model, "FILE", "its model: adds the weights of one without hidden layers")},
    {ROW_DATA(from.data,
              "with --model: items with labels, such as a test set; adds precision and recall by "
              "class, and the worst mistakes with their images")},
    {ROW_TEXT("trace", trace, "FILE",
              "its trace (quern train --trace FILE): adds when each worker computed")},
    {ROW_COUNT("mistakes", mistakes, 0, 1000, "how many of the worst mistakes are shown"),
     .fallback = "24"},
    {ROW_COUNT("importance", importance, 0, 100,
               "with --data: shuffle each column N times to see what the predictions lose; takes N "
               "predictions of up to 10,000 items for each column"),
     .fallback = "0"},
    {ROW_SEED(seed, "seed of the shuffles")},
    {.more = source_label_options, AT(from)},
    {.more = source_task_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_token_options, AT(from)},
    {.more = source_image_options, AT(from)},

    {.heading = "Devices (they do not change the report)", .more = compute_options, AT(compute)},
    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},
    {.name = NULL}};

static int check_flags(const report_flags *f, const arguments *given) {
    paths files = {.count = 0};
    if (given->operands > 1 && (f->model || f->from.data || f->trace))
        return message_usage("name one run, or leave these options out",
                             "--model, --data and --trace are for a report of one run");
    if (f->from.data && !f->model)
        return message_usage("add --model FILE, the model of the run", "--data needs --model");
    if (f->importance > 0 && !f->from.data)
        return message_usage("add --data FILE, items with labels", "--importance needs --data");
    int code = f->from.data ? sources_check(&f->from) : -1;
    if (code < 0)
        code = compute_check(&f->compute);
    paths_add(&files, QN_FILE_READ, "--model", f->model);
    paths_add_files(&files, "--data", "--labels", source_data(&f->from));
    paths_add(&files, QN_FILE_READ, "--trace", f->trace);
    paths_add(&files, QN_FILE_WRITE, "-o", f->out);
    return code < 0 ? paths_check(&files, 1) : code;
}

/* Opens the items as the model sees them; *data is NULL where none were named. */
static int open_items(const report_flags *f, const qn_model *model, qn_data **data) {
    source_flags from = f->from;
    *data = NULL;
    if (!f->from.data)
        return -1;
    char *categories = source_categories_of_model(model);
    const char *weight = qn_model_weight_name(model);
    from.task = qn_model_classes(model) == 0 ? "regress" : "classify";
    char *texts = source_texts_of_model(model);
    from.categories = categories;
    from.texts = texts;
    from.expected_weight = weight && *weight ? weight : NULL;
    from.expected_resize = qn_model_resize(model);
    from.expected_rules = qn_model_rules(model);
    from.expected_tokens = qn_model_tokens(model);
    from.expected_context = qn_model_context(model);
    from.expected_tokenizer = qn_model_tokenizer(model);
    if (!from.date_format)
        from.date_format = qn_model_date_format(model);
    from.expected_features = qn_model_inputs(model);
    const int code = source_open(source_data(&f->from), &from, f->compute.threads,
                                 qn_model_label_name(model), data);
    free(categories);
    free(texts);
    return code;
}

enum { PLACE = 4200 };

static int write_report(const report_flags *f, const arguments *given, const qn_model *model,
                        const qn_data *data) {
    static char place[MOST_OPERANDS][PLACE];
    const char *runs[MOST_OPERANDS];
    for (int r = 0; r < given->operands; r++) {
        const int code = runs_place(f->runs, given->operand[r], place[r], PLACE);
        if (code >= 0)
            return code;
        runs[r] = place[r];
    }
    const qn_compute compute = compute_of(&f->compute);
    qn_report_options o;
    qn_error err;
    qn_report_options_init(&o);
    o.run = runs;
    o.runs = (uint32_t)given->operands;
    o.mistakes = (uint32_t)f->mistakes;
    o.path = f->out;
    o.plots = f->plots;
    o.trace = f->trace;
    o.model = model;
    o.data = data;
    o.compute = &compute;
    o.importance = (uint32_t)f->importance;
    o.seed = f->seed;
    const qn_status status = qn_report_write(&o, &err);
    char text[512];
    while (qn_device_note(text, sizeof text))
        message_note("note: %s", text);
    if (status != QN_OK)
        return message_error(&err);
    if (!f->quiet && f->out)
        printf("the report is in %s\n", f->out);
    if (!f->quiet && f->plots)
        printf("the charts are in %s\n", f->plots);
    return EXIT_DONE;
}

static int run(const command *self, int argc, char **argv) {
    report_flags f = {.mistakes = 24, .seed = 1};
    arguments given;
    qn_model *model = NULL;
    qn_data *data = NULL;
    qn_error err;
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, 0);
    if (!f.out && !f.plots)
        f.out = "report.html";
    code = check_flags(&f, &given);
    if (code < 0 && f.model && qn_model_load(f.model, &model, &err) != QN_OK)
        code = message_error(&err);
    if (code < 0)
        code = open_items(&f, model, &data);
    if (code < 0)
        code = write_report(&f, &given, model, data);
    qn_data_close(data);
    qn_model_free(model);
    return code;
}

const command report_command = {
    .name = "report",
    .summary = "write a page about a run, or a comparison of several",
    .usage = "quern report RUN... [options]",
    .about =
        "RUN is the folder of a record (quern train --run-dir DIR), of a run that has ended or "
        "still runs; with --runs FILE also the identifier or the name of a run there. The page has "
        "the recipe with the command that repeats it, the curves, the "
        "confusion matrix, precision and recall by class, and what each worker did. Of "
        "several runs it has their results, what differs in their recipes, and their curves "
        "together.",
    .operand = "RUN",
    .most_operands = MOST_OPERANDS,
    .options = report_options,
    .examples = "quern report run1\n"
                "quern report run1 --model digits.safetensors --data test.csv -o page.html\n"
                "quern report run1 run2 run3 -o comparison.html --plots plots",
    .run = run};
