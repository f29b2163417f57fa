/* quern replay: trains again by the recipe in a model file and compares the bytes. */

#include "command.h"
#include "compute.h"
#include "jsonline.h"
#include "message.h"
#include "outfile.h"
#include "report.h"
#include "session.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct replay_flags {
    source_flags from;
    compute_flags compute;
    const char *out, *trace;
    int quiet, json;
} replay_flags;

#define AT(member) .place = offsetof(replay_flags, member)

static const option replay_options[] = {
    {.heading = "Options",
     .name = "data",
     .kind = OPTION_TEXT,
     AT(from.data),
     .value = "FILE",
     .help = "the data that the model was trained on, in any format",
     .fallback = "the built-in digits, where the recipe names them"},
    {.more = source_label_options, AT(from)},
    {.more = source_test_options, AT(from)},
    {.letter = 'o',
     .name = "output",
     .kind = OPTION_TEXT,
     AT(out),
     .value = "FILE",
     .help = "keep the replay's own model file"},
    {.more = compute_options, AT(compute)},
    {.name = "trace",
     .kind = OPTION_TEXT,
     AT(trace),
     .value = "FILE",
     .help = "write what every device did and when, for ui.perfetto.dev or chrome://tracing"},
    {.name = "quiet",
     .kind = OPTION_FLAG,
     AT(quiet),
     .help = "print errors and the last line only"},
    {.name = "json",
     .kind = OPTION_FLAG,
     AT(json),
     .help = "one JSON object a line on stdout: start, epoch, note, end, error"},
    {.name = NULL}};

/* Where two models part: how many values of a tensor differ, and the first of them. */
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

/* Describes a difference in `text`; 0 when there is none in this tensor. */
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

/* Prints which tensors differ and returns the exit code for it. */
static int differs(const qn_model *file, const qn_model *again, const char *path) {
    static const char *const scales[] = {"scale.mean", "scale.deviation"};
    static const char *const parts[] = {"weight", "bias"};
    char first[256] = "", text[256], name[48], what[512];
    uint32_t more = 0;
    for (uint32_t i = 0; i < 2 * qn_model_layers(file) + 2; i++) {
        /* The scaling comes first in the computation, so it explains the rest. */
        if (i < 2)
            snprintf(name, sizeof name, "%s", scales[i]);
        else
            snprintf(name, sizeof name, "layer%" PRIu32 ".%s", (i - 2) / 2, parts[i % 2]);
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
                        "either the file was changed after it was trained, or the contract was "
                        "broken: \"quern replay --devices cpu --isa scalar --threads 1\" decides");
}

static int conclude(session *s, const replay_flags *f, const char *path, const qn_model *file,
                    const qn_model *again) {
    qn_train_report report;
    int code = session_report(s, &report);
    if (code >= 0)
        return code;
    int same = strcmp(qn_model_digest(file), qn_model_digest(again)) == 0;
    if (f->json) {
        json_begin("end");
        json_text("replay", same ? "identical" : "differs");
        json_text("file", path);
        json_text("digest", qn_model_digest(file));
        json_text("replay_digest", qn_model_digest(again));
        report_fields(&report);
        json_end();
    } else {
        printf("%sreplay: %s, %s%s%s\n", f->quiet ? "" : "\n", same ? "identical" : "differs",
               qn_model_digest(file), same ? "" : " became ", same ? "" : qn_model_digest(again));
    }
    return same ? EXIT_DONE : differs(file, again, path);
}

static int train_again(session *s, const replay_flags *f, const char *path, const qn_model *file,
                       qn_train_options *options) {
    qn_error err;
    qn_model *again = NULL;
    int code = session_open(s, options);
    if (code >= 0)
        return code;
    qn_status status = session_run(s, &err);
    if (status == QN_INTERRUPTED)
        return message_fail(QN_INTERRUPTED, "interrupted; nothing was written", "",
                            "start the replay again");
    if (status == QN_OK)
        status = qn_train_model(s->train, &again, &err);
    if (status == QN_OK && f->out)
        status = qn_model_save(again, f->out, &err);
    code = status == QN_OK ? conclude(s, f, path, file, again) : message_error(&err);
    qn_model_free(again);
    return code;
}

/* Without --data there is nothing to try but the built-in digits; the recipe's digest says
 * whether they are what it wants. */
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

static int replay(const replay_flags *f, const char *path, const qn_model *model) {
    qn_train_options options;
    qn_error err;
    sources from;
    int code = sources_open(&f->from, f->compute.threads, &from);
    if (code >= 0)
        return code;
    session s = {.quiet = f->quiet, .json = f->json, .from = &from, .data_path = f->from.data};
    qn_train_options_init(&options);
    code = check_embedded(model, &from, path);
    if (code < 0 && qn_train_options_from_model(model, from.train, &options, &err) != QN_OK)
        code = message_error(&err);
    if (code < 0) {
        from.valid_fraction = options.valid_fraction;
        options.compute = compute_of(&f->compute);
        options.trace = f->trace;
        code = train_again(&s, f, path, model, &options);
    }
    session_close(&s);
    sources_close(&from);
    return code;
}

static int run(const command *self, int argc, char **argv) {
    replay_flags f = {0};
    arguments given;
    qn_model *model = NULL;
    qn_error err;
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, f.json);
    const char *path = given.operand[0];
    const char *inputs[] = {f.from.data, f.from.labels, f.from.test, f.from.test_labels, path};
    code = compute_check(&f.compute);
    if (code < 0 && f.out)
        code = outfile_check(f.out, "-o", inputs, sizeof inputs / sizeof *inputs);
    if (code < 0 && f.trace)
        code = outfile_check(f.trace, "--trace", inputs, sizeof inputs / sizeof *inputs);
    if (code < 0 && f.out && f.trace)
        code = outfile_apart(f.trace, "--trace", f.out, "-o");
    if (code >= 0)
        return code;
    if (qn_model_load(path, &model, &err) != QN_OK)
        return message_error(&err);
    code = replay(&f, path, model);
    qn_model_free(model);
    return code;
}

const command replay_command = {
    .name = "replay",
    .summary = "train again from a model's recipe and compare the bytes",
    .usage = "quern replay MODEL [--data FILE] [options]",
    .about = "Trains again by the recipe in the model file, on this machine, and compares: "
             "\"replay: identical, DIGEST\" and exit code 0, or exit code 3 and the first value "
             "that differs. Data of another digest than the recipe's is refused.",
    .operand = "MODEL",
    .options = replay_options,
    .examples = "quern replay digits.safetensors\n"
                "quern replay m.safetensors --data train.csv --test test.csv\n"
                "quern replay m.safetensors --data train.csv --threads 1 --isa scalar",
    .run = run};
