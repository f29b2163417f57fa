/* quern replay: trains again by the recipe in a model file and compares the bytes. */

#include "adapter.h"
#include "answers.h"
#include "fitted.h"
#include "command.h"
#include "compute.h"
#include "jsonline.h"
#include "kernel.h"
#include "message.h"
#include "paths.h"
#include "ranks.h"
#include "report.h"
#include "session.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct replay_flags {
    source_flags from;
    compute_flags compute;
    ranks_flags ranks;
    const char *init_from, *out, *trace, *model, *adapter;
    text_list in, in_parts, allowed;
    int quiet, verbose, json;
} replay_flags;

#define AT(member) .place = offsetof(replay_flags, member)
#define AGAIN(member) .again = offsetof(replay_flags, member)

static const option replay_options[] = {
    {.heading = "Data",
     ROW_DATA(from.data, "the training data of the model, in any format"),
     .fallback = "the built-in digits, if the recipe names them"},
    {.more = source_label_options, AT(from)},
    {.more = source_weight_options, AT(from)},
    {.more = source_task_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_token_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {.more = source_test_options, AT(from)},
    {ROW_FILES("valid", from.valid, "FILE",
               "the validation file of the training, if one decided on the best epoch")},
    {ROW_FILES("valid-labels", from.valid_labels, "FILE",
               "IDX, NPY: labels of the validation file")},
    {ROW_VALID_QUERY(from.valid_query)},
    {ROW_TEXT("init-from", init_from, "MODEL",
              "the model that the training started from, if there was one")},

    {.heading = "Kernels",
     ROW_TEXTS("in", in, "NAME=FILE",
               "NPY file of an input of a kernel, if it is not where the recipe says")},
    {ROW_TEXTS("in-parts", in_parts, "NAME=LIST",
               "the same of which each rank has some rows: a file, a folder or a pattern")},
    {ROW_TEXTS("allow-path", allowed, "PATH",
               "file, or folder of files, that the recipe of a kernel may name as inputs"),
     .fallback = "the folder of the recipe"},

    {.heading = "Answers",
     ROW_TEXT("model", model, "MODEL", "the model of a file of answers of quern generate")},
    {ROW_ADAPTER(adapter)},

    {.heading = "Output",
     ROW_OUTPUT(out, "FILE", "also write the model of the replay to this file")},
    {ROW_FLAG("quiet", quiet, "print only errors and the last line")},
    {ROW_VERBOSE(verbose, "report more: time of each part, every core, bytes moved")},
    {ROW_JSON(json, "one JSON object a line on stdout: start, epoch, note, end, error")},

    {.heading = "Devices (they do not change the result)", .more = compute_options, AT(compute)},
    {.more = compute_memory_options, AT(compute)},
    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},
    {ROW_TRACE(trace)},
    {.heading = RANKS_HEADING, .more = ranks_options, AT(ranks)},
    {.name = NULL}};

/* The difference of two models: how many values of a tensor differ, and the first of them. */
typedef struct difference {
    uint64_t count, values, row, column, columns;
    float before, after;
} difference;

/* Values are compared as bytes: -0 and +0 differ here, and equal NaNs do not. */
static difference compare_tensor(const qn_model *a, const qn_model *b, const char *name) {
    difference d = {0};
    uint64_t rows_a, rows_b, columns_a, columns_b;
    const float *x = qn_model_tensor(a, name, &rows_a, &columns_a);
    const float *y = qn_model_tensor(b, name, &rows_b, &columns_b);
    if (!x || !y || rows_a != rows_b || columns_a != columns_b)
        return d;
    uint64_t width = columns_a > 0 ? columns_a : 1;
    d.columns = columns_a;
    d.values = rows_a * width;
    for (uint64_t i = 0; i < d.values; i++) {
        if (memcmp(x + i, y + i, sizeof *x) == 0)
            continue;
        if (d.count++ == 0) {
            d.row = i / width;
            d.column = i % width;
            d.before = x[i];
            d.after = y[i];
        }
    }
    return d;
}

/* Describes a difference in `text`; 0 if this tensor has none. */
static int describe(const qn_model *a, const qn_model *b, const char *name, char *text,
                    size_t size) {
    difference d = compare_tensor(a, b, name);
    char place[64];
    if (d.count == 0)
        return 0;
    if (d.columns > 0)
        snprintf(place, sizeof place, "[%" PRIu64 "][%" PRIu64 "]", d.row, d.column);
    else
        snprintf(place, sizeof place, "[%" PRIu64 "]", d.row);
    snprintf(text, size,
             "%s%s: %.9g in the file, %.9g now; %" PRIu64 " of %" PRIu64 " values differ", name,
             place, (double)d.before, (double)d.after, d.count, d.values);
    return 1;
}

/* Prints which tensors differ and returns the exit code. */
static int differs(const qn_model *file, const qn_model *again, const char *path) {
    static const char *const scales[] = {"table.offset", "table.fill", "scale.mean",
                                         "scale.deviation"};
    enum { SCALES = sizeof scales / sizeof *scales };
    static const char *const parts[] = {"weight", "bias"};
    char first[256] = "", text[256], name[48], what[512];
    uint32_t more = 0;
    for (uint32_t i = 0; i < 2 * qn_model_layers(file) + SCALES; i++) {
        /* What comes first in the computation explains the other differences. */
        if (i < SCALES)
            snprintf(name, sizeof name, "%s", scales[i]);
        else
            snprintf(name, sizeof name, "layer%" PRIu32 ".%s", (i - SCALES) / 2,
                     parts[(i - SCALES) % 2]);
        if (!describe(file, again, name, text, sizeof text))
            continue;
        if (!*first)
            snprintf(first, sizeof first, "%s", text);
        else
            more++;
    }
    if (*first && more > 0)
        snprintf(what, sizeof what, "the replay differs: %s; %" PRIu32 " more tensors differ",
                 first, more);
    else
        snprintf(what, sizeof what, "the replay differs: %s",
                 *first ? first : "not in its tensors, but in the header of the file");
    return message_fail(QN_DIFFERS, what, path,
                        "either the file was changed after training, or a device computed wrongly: "
                        "\"quern replay --devices cpu --isa scalar --threads 1\" decides");
}

/* Data for the end of a replay; any rank may have to finish it. */
typedef struct ending {
    session *s;
    const replay_flags *f;
    const char *path;
    const qn_model *file;
    qn_model *again;
    qn_status reported;
    qn_error unreported; /* why there is no report */
    qn_train_report report;
} ending;

static int interrupted(void *user) {
    (void)user;
    return message_fail(QN_INTERRUPTED, "interrupted; nothing was written", "",
                        "start the replay again");
}

static void tell(const ending *e, int same) {
    const char *before = qn_model_digest(e->file), *now = qn_model_digest(e->again);
    session_print(e->s, &e->report);
    if (e->f->json) {
        json_begin("end");
        json_text("replay", same ? "identical" : "differs");
        json_text("file", e->path);
        json_text("digest", before);
        json_text("replay_digest", now);
        report_fields(&e->report);
        json_end();
    } else {
        printf("%sreplay: %s, %s%s%s\n", e->f->quiet ? "" : "\n", same ? "identical" : "differs",
               before, same ? "" : " became ", same ? "" : now);
    }
}

static int save_and_compare(void *user) {
    ending *e = user;
    qn_error err;
    if (!e->again && qn_train_model(e->s->train, &e->again, &err) != QN_OK)
        return message_error(&err);
    if (e->f->out && qn_model_save_among(e->again, e->f->out, ranks_cluster(), &err) != QN_OK)
        return ranks_unwritten(&err);
    if (e->reported != QN_OK)
        return message_error(&e->unreported);
    int same = strcmp(qn_model_digest(e->file), qn_model_digest(e->again)) == 0;
    tell(e, same);
    return same ? EXIT_DONE : differs(e->file, e->again, e->path);
}

static int train_again(session *s, const replay_flags *f, const char *path, const qn_model *file,
                       qn_train_options *options) {
    ending e = {.s = s, .f = f, .path = path, .file = file, .report = {.size = sizeof e.report}};
    qn_error err;
    int code = session_open(s, options);
    if (code >= 0)
        return code;
    qn_status status = session_run(s, &err);
    if (status == QN_INTERRUPTED)
        return ranks_conclude(&err, interrupted, NULL);
    if (status != QN_OK)
        return ranks_failed(&err);
    e.reported = session_report(s, &e.report, &e.unreported);
    code = ranks_conclude(&e.unreported, save_and_compare, &e);
    qn_model_free(e.again);
    return code;
}

static int check_valid(const replay_flags *f) {
    float number;
    if (!f->from.valid || !read_float(f->from.valid, &number))
        return -1;
    return message_usage("leave it out: the recipe holds the fraction",
                         "--valid of a replay names a file, and %s is a number", f->from.valid);
}

/* Without --data only the built-in digits can be used; the recipe's digest shows whether they are
 * the right data. */
static int check_embedded(const qn_model *model, const sources *from, const char *path) {
    char wanted[128];
    if (!from->embedded)
        return -1;
    snprintf(wanted, sizeof wanted, "\"data\":\"%s\"", qn_data_digest(from->train));
    if (strstr(qn_model_recipe(model), wanted))
        return -1;
    return message_fail(QN_USAGE, "the model was not made from the built-in digits", path,
                        "add --data FILE, what it was trained on (and --labels FILE for IDX)");
}

static int train_from(const replay_flags *f, const char *path, const qn_model *model,
                      const qn_model *start, sources *from) {
    qn_train_options options;
    qn_error err;
    session s = {.quiet = f->quiet,
                 .verbose = f->verbose,
                 .json = f->json,
                 .from = from,
                 .data_path = f->from.data};
    qn_train_options_init(&options);
    options.init_from = start;
    ranks_hold();
    int code = check_embedded(model, from, path);
    if (code < 0 && qn_train_options_from_model(model, from->train, &options, &err) != QN_OK)
        code = message_error(&err);
    code = ranks_agree(code, NULL, 0, 0);
    if (code < 0) {
        from->valid_fraction = options.valid_fraction;
        options.compute = compute_of(&f->compute);
        options.compute.cluster = ranks_cluster();
        options.trace = f->trace;
        code = train_again(&s, f, path, model, &options);
    }
    session_close(&s);
    return code;
}

/* Of a model of quern fit: the data alone counts. */
static int replay_fitted(const replay_flags *f, const char *path, const qn_model *model) {
    const fitted_replay r = {
        .path = path, .out = f->out, .quiet = f->quiet, .json = f->json, .compute = &f->compute};
    source_flags from = f->from;
    qn_data *data = NULL;
    if (!f->from.data)
        return message_usage("add --data FILE, what it was fitted to",
                             "%s is %s, and needs its data", path, qn_model_title(model));
    if (qn_model_predicts(model) == QN_PREDICTS_LABELS)
        from.task = "regress";
    else
        from.unlabelled = 1;
    from.expected_rules = qn_model_rules(model);
    from.expected_features = qn_model_inputs(model);
    int code = source_open(source_data(&f->from), &from, f->compute.threads,
                           qn_model_label_name(model), &data);
    if (code < 0)
        code = fitted_replay_run(&r, model, data);
    qn_data_close(data);
    return code;
}

/* Adapters alone need the model that the training started from. */
static qn_status open_models(const replay_flags *f, const char *path, qn_model **model,
                             qn_model **start, qn_error *err) {
    qn_cluster *cluster = ranks_cluster();
    const int from_first = ranks_data_from_first();
    if (!f->init_from)
        return qn_model_share(cluster, from_first, path, model, err);
    const qn_status status = qn_model_share(cluster, from_first, f->init_from, start, err);
    return status == QN_OK ? qn_model_adapt(cluster, from_first, path, *start, model, err) : status;
}

static int replay(const replay_flags *f, const char *path) {
    qn_model *model = NULL, *start = NULL;
    sources from = {0};
    qn_error err;
    int code = -1;
    if (open_models(f, path, &model, &start, &err) != QN_OK)
        code = ranks_failed(&err);
    source_flags flags = f->from;
    if (code < 0 && fitted_is(model))
        code = replay_fitted(f, path, model);
    if (code < 0 && !flags.task && f->from.data) /* labels are again what they were */
        flags.task = qn_model_predicts(model) == QN_PREDICTS_NEXT ? "next"
                     : qn_model_classes(model) == 0               ? "regress"
                                                                  : "classify";
    const char *weight = code < 0 ? qn_model_weight_name(model) : NULL;
    if (!flags.weight && weight && *weight && f->from.data)
        flags.weight = weight;
    flags.expected_resize = code < 0 ? qn_model_resize(model) : NULL;
    flags.expected_rules = code < 0 ? qn_model_rules(model) : NULL;
    flags.expected_tokens = code < 0 ? qn_model_tokens(model) : NULL;
    flags.expected_context = code < 0 ? qn_model_context(model) : 0;
    flags.expected_tokenizer = code < 0 ? qn_model_tokenizer(model) : NULL;
    flags.expected_features = code < 0 ? qn_model_inputs(model) : 0;
    if (code < 0 && !flags.date_format)
        flags.date_format = qn_model_date_format(model);
    if (code < 0 && !qn_model_class_name(model, 0)) /* class numbers, whatever gaps they have */
        flags.outputs = qn_model_outputs(model);
    char *categories = code < 0 ? source_categories_of_model(model) : NULL;
    flags.categories = categories;
    char *texts = code < 0 ? source_texts_of_model(model) : NULL;
    flags.texts = texts;
    if (code < 0)
        code = sources_open(&flags, f->compute.threads, qn_model_label_name(model), &from);
    if (code < 0)
        code = train_from(f, path, model, start, &from);
    free(categories);
    free(texts);
    sources_close(&from);
    qn_model_free(model);
    qn_model_free(start);
    return code;
}

static int check_paths(const replay_flags *f, const char *path) {
    paths files = {.count = 0};
    paths_add(&files, QN_FILE_READ, "MODEL", path);
    paths_add(&files, QN_FILE_READ, "--init-from", f->init_from);
    paths_add_sources(&files, &f->from, &f->ranks);
    paths_add(&files, QN_FILE_WRITE, "-o", f->out);
    paths_add(&files, QN_FILE_WRITE, "--trace", f->trace);
    return paths_check(&files, ranks_is_writer());
}

/* What a training's replay takes does nothing for a kernel. */
static int check_of_kernel(const command *self, const arguments *given) {
    static const char *const ours[] = {"in",      "in-parts", "allow-path", "devices",
                                       "threads", "quiet",    "json"};
    option_row row;
    for (int i = 0; options_row(self->options, i, &row); i++) {
        int known = !options_given(self, given, row.option->name);
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            known |= strcmp(row.option->name, ours[k]) == 0;
        for (const option *o = RANKS_OPTIONS_ALONE; o->name; o++)
            known |= strcmp(row.option->name, o->name) == 0;
        if (!known)
            return message_usage("leave it out", "--%s does nothing for the recipe of a kernel",
                                 row.option->name);
    }
    return -1;
}

static int replay_kernel(const command *self, const replay_flags *f, const arguments *given) {
    const kernel_replay of = {.recipe = given->operand[0],
                              .devices = f->compute.devices,
                              .threads = f->compute.threads,
                              .in = &f->in,
                              .in_parts = &f->in_parts,
                              .allowed = &f->allowed,
                              .quiet = f->quiet,
                              .json = f->json};
    return kernel_replay_run(&of, check_of_kernel(self, given));
}

static int run(const command *self, int argc, char **argv) {
    replay_flags f = {0};
    arguments given;
    qn_agreement same[SOURCES_AGREED + 1];
    int code = ranks_join(argc - 2, argv + 2, 0);
    if (code >= 0)
        return code;
    code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code < 0) {
        message_setup(self->name, f.quiet, f.json);
        if (answers_is_file(given.operand[0]) ||
            ((f.model || f.adapter) && access(given.operand[0], F_OK) != 0))
            return ranks_leave(
                answers_replay(given.operand[0], f.model, f.adapter, &f.compute, f.quiet, f.json));
        if (f.model || f.adapter)
            return ranks_leave(message_usage("leave it out",
                                             "--%s is for answers of quern generate, and %s "
                                             "has none",
                                             f.model ? "model" : "adapter", given.operand[0]));
        if (kernel_is_recipe(given.operand[0]))
            return ranks_leave(replay_kernel(self, &f, &given));
        code = f.quiet && f.verbose
                   ? message_usage("leave one of them out", "--quiet contradicts --verbose")
               : f.in.count + f.in_parts.count + f.allowed.count > 0
                   ? message_usage("write --data for the data of a model",
                                   "--%s is for the recipe of a kernel, and %s is not one",
                                   f.in.count > 0         ? "in"
                                   : f.in_parts.count > 0 ? "in-parts"
                                                          : "allow-path",
                                   given.operand[0])
                   : sources_check(&f.from);
    }
    if (code < 0)
        code = check_valid(&f);
    if (code < 0)
        code = compute_check(&f.compute);
    if (code < 0)
        code = check_paths(&f, given.operand[0]);
    sources_agreed(&f.from, self->name, same);
    same[SOURCES_AGREED] =
        (qn_agreement){sizeof *same, "--init-from", f.init_from ? "a model" : "none",
                       "start all ranks with the same options"};
    code = ranks_agree(code, same, SOURCES_AGREED + 1, 1);
    if (code < 0)
        code = replay(&f, given.operand[0]);
    return ranks_leave(code);
}

const command replay_command = {
    .name = "replay",
    .summary = "train again from a model's recipe and compare the bytes",
    .usage = "quern replay MODEL|RECIPE|ANSWERS [--data FILE] [options]",
    .about = "Trains on this machine with the recipe in the model file and compares the result. "
             "If all bytes are equal it prints \"replay: identical, DIGEST\" and exits with 0. "
             "Otherwise it prints the first value that differs and exits with 3. Data that is not "
             "the recipe's is refused. Its columns may be in another order if they have names. "
             "A model of quern fit is fitted again. "
             "For a recipe of quern run, the kernel runs again and all results are compared. "
             "The answers of quern generate are generated again with --model.",
    .operand = "MODEL|RECIPE|ANSWERS",
    .options = replay_options,
    .examples = "quern replay digits.safetensors\n"
                "quern replay m.safetensors --data train.csv --test test.csv\n"
                "quern replay m.safetensors --data train.csv --threads 1 --isa scalar\n"
                "quern replay steps.recipe.json\n"
                "quern replay answers.json --model plays.safetensors",
    .run = run};
