/* The options of `quern train`: parser, help, manual page, completions and suggestions use this one
 * table. Below it, the checks of their combinations. */

#include "message.h"
#include "recipe_rows.h"
#include "shared_rows.h"
#include "train_flags.h"
#include <quern/defaults.h>
#include <quern/train.h>
#include <stdio.h>
#include <string.h>

/* A default as text, with all its cases. */
enum { DEFAULT_TEXT = 256, REMEDY = 400 };

#define AT(member) .place = offsetof(train_flags, member)
#define RECIPE(title, group)                                                                       \
    { .heading = (title), .more = recipe_options[QN_OPTIONS_##group], AT(recipe) }
#define AGAIN(member) .again = offsetof(train_flags, member)

const option train_options[] = {
    {.heading = "Data",
     ROW_DATA(from.data,
              "training data: a table or images in a format that \"quern data info --help\" lists, "
              "plain or compressed; the format is found from the content; FILE.npz:NAME is one "
              "array of an archive, "
              "FILE.zip:NAME one file; "
              "- is the "
              "standard input; several files are one table: repeat the option, or name a folder, a "
              "pattern (\"part-*.csv\") or a list (@FILE)"),
     .fallback = "20,000 built-in digits, with 4,000 more as test set"},
    {.more = source_parts_options, AT(from)},
    {.more = source_part_cache_options, AT(from)},
    {.more = source_label_options, AT(from)},
    {.more = source_weight_options, AT(from)},
    {.more = source_task_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_token_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {.more = source_test_options, AT(from)},
    {.name = "valid",
     .kind = OPTION_TEXT,
     AT(from.valid),
     AGAIN(from.valid_more),
     .value = "FILE|FRACTION",
     .help =
         "validation set: a file, or the fraction of the training data to set aside, such as 0.1"},
    {ROW_FILES("valid-labels", from.valid_labels, "FILE",
               "IDX, NPY: labels of the validation set")},
    {ROW_VALID_QUERY(from.valid_query)},
    RECIPE(NULL, DATA),
    RECIPE("Network", NETWORK),
    RECIPE("Training", TRAINING),
    {ROW_TEXT(
        "init-from", init_from, "MODEL",
        "start from the parameters of this model; without --model also with its layers, without "
        "--resize images are resized as it says, without --scale an imported one's is kept")},

    {.heading = "Output", ROW_OUTPUT(out, "FILE", "model file to write (safetensors); required")},
    {ROW_TEXT("predictions", predictions, "DIR",
              "folder for the predictions of the test set and of a validation file, as CSV: "
              "stage1-test.csv and so on, written after each stage")},
    {ROW_FLAG("quiet", quiet, "print only errors and the last line with the digest")},
    {ROW_VERBOSE(
        verbose,
        "report more: time of each part, every core, bytes moved, a ready model's layers")},
    {ROW_JSON(json, "one JSON object a line on stdout: start, epoch, note, end, error")},
    {ROW_TEXT("run-dir", run_dir, "DIR", "keep metrics and a record of the run in this folder")},
    {ROW_TEXT(
         "runs", runs, "FILE",
         "record the run in this SQLite file, or on a server, postgresql://USER@HOST/DATABASE; "
         "several trainings may use it at the same time; quern runs list shows it"),
     .fallback = "QUERN_RUNS of the environment, else none"},
    {ROW_TEXT("run-name", run_name, "NAME", "name of the run in that file"),
     .fallback = "the name of the model file"},
    {ROW_TEXT(
        "report", report, "FILE",
        "page about the run, one HTML file: curves, confusion matrix, worst mistakes, weights "
        "of a linear model; quern report writes it later, too")},
    {ROW_TEXT("plots", plots, "DIR", "folder for the charts of that page, as SVG files")},

    {.heading = "Checkpoints",
     ROW_TEXT("checkpoint", checkpoint, "DIR", "save the state of the run in this folder")},
    {ROW_TEXT("checkpoint-every", checkpoint_every, "auto|TIME|N",
              "how often: every 30 seconds (30s), 5 minutes (5m), 2 hours (2h) or 500 steps (500); "
              "auto takes at most 1\t%\tof the time"),
     .fallback = "auto"},
    {ROW_FLAG("resume", resume,
              "continue from the last complete checkpoint in --checkpoint\tDIR, if there is one")},

    {.heading = "Devices (they do not change the model file)",
     .more = compute_options,
     AT(compute)},
    {.more = compute_memory_options, AT(compute)},

    RECIPE("Advanced training", ADVANCED),

    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},
    {ROW_TRACE(trace)},

    {.heading = RANKS_HEADING, .more = ranks_options, AT(ranks)},
    {.name = NULL}};

train_flags train_flags_default(void) {
    train_flags f = {.predictions = NULL};
    qn_train_options_init(&f.recipe);
    return f;
}

/* The default of a name for real labels, or for classes, of images: the text lists more cases
 * after semicolons. */
static const char *usual(const char *field, int real, char *text, size_t size) {
    static const char mark[] = "; real labels: ";
    qn_default_text(field, text, size);
    char *after = strstr(text, mark);
    if (after && real)
        text = after + sizeof mark - 1;
    text[strcspn(text, ";")] = '\0';
    return text;
}

static int has_real_labels(const train_flags *f) {
    return f->from.task && strcmp(f->from.task, "regress") == 0;
}

/* The optimiser as given, or as it is without a word about it: a momentum alone chooses the one
 * that takes it. */
static const char *optimizer_of(const train_flags *f, const arguments *given, char *text,
                                size_t size) {
    const int real = has_real_labels(f);
    option_row row;
    if (f->recipe.optimizer)
        return f->recipe.optimizer;
    if (options_picked(train_options, &given->given, "momentum") &&
        (f->recipe.momentum != 0 || !real) && options_find(train_options, "momentum", &row) >= 0)
        return options_user(row.option, 0);
    return usual("train.optimizer", real, text, size);
}

/* The name that decides whether an option has an effect. */
static const char *chosen(const train_flags *f, const option *o, const arguments *given, char *text,
                          size_t size) {
    switch (o->only) {
    case QN_CHOICE_LOSS:
        return f->recipe.loss ? f->recipe.loss
                              : usual("train.loss", has_real_labels(f), text, size);
    case QN_CHOICE_SCHEDULE:
        return f->recipe.schedule ? f->recipe.schedule : usual("train.schedule", 0, text, size);
    default:
        return optimizer_of(f, given, text, size);
    }
}

/* The option that chooses the names of this kind. */
static const char *chooser(qn_choice_kind kind) {
    const qn_option *o;
    for (uint32_t i = 0; (o = qn_train_option(i)) != NULL; i++)
        if (o->type == QN_OPTION_NAME && o->from == kind)
            return o->name;
    return "";
}

/* Refuses an option that would have no effect, before hours are spent. */
static int check_use(const train_flags *f, const option *o, const arguments *given) {
    char text[DEFAULT_TEXT], remedy[REMEDY];
    size_t used;
    const char *name, *with = chosen(f, o, given, text, sizeof text);
    if (!options_picked(train_options, &given->given, o->name) ||
        qn_choice_takes(o->only, with, strchr(o->field, '.') + 1))
        return -1;
    used = (size_t)snprintf(remedy, sizeof remedy, "write --%s ", chooser(o->only));
    for (uint32_t i = 0; used < sizeof remedy && (name = options_user(o, i)) != NULL; i++)
        used +=
            (size_t)snprintf(remedy + used, sizeof remedy - used, "%s%s", i ? " or " : "", name);
    if (used < sizeof remedy)
        snprintf(remedy + used, sizeof remedy - used, ", or leave --%s out", o->name);
    return message_usage(remedy, "--%s does nothing with --%s %s", o->name, chooser(o->only), with);
}

/* Refuses options about steps and rates, which an optimiser without them ignores. */
static int check_full_batch(const train_flags *f, const arguments *given) {
    char text[DEFAULT_TEXT];
    const char *name = optimizer_of(f, given, text, sizeof text);
    if (!qn_choice_takes(QN_CHOICE_OPTIMIZER, name, "tolerance"))
        return -1;
    const qn_option *o;
    for (uint32_t i = 0; (o = qn_train_option(i)) != NULL; i++)
        if (o->steps && options_picked(train_options, &given->given, o->name))
            return message_usage("leave it out, or write another --optimizer",
                                 "--%s does nothing with --optimizer %s", o->name, name);
    return -1;
}

uint64_t train_options_number(const char *field) {
    char text[DEFAULT_TEXT];
    uint64_t number = 0;
    qn_default_text(field, text, sizeof text);
    text[strspn(text, "0123456789")] = '\0';
    return read_count(text, &number) ? number : 0;
}

int train_options_check(const train_flags *f, const arguments *given) {
    char text[DEFAULT_TEXT], remedy[REMEDY];
    if (f->quiet && f->verbose)
        return message_usage("leave one of them out", "--quiet contradicts --verbose");
    option_row row;
    for (int i = 0; options_row(train_options, i, &row); i++) {
        const int code = row.option->only != QN_CHOICE_NONE ? check_use(f, row.option, given) : -1;
        if (code >= 0)
            return code;
    }
    const int steps = check_full_batch(f, given);
    if (steps >= 0)
        return steps;
    const int zero =
        f->recipe.momentum == 0 && options_picked(train_options, &given->given, "momentum");
    if (f->recipe.nesterov && zero)
        return message_usage("write a momentum greater than 0, such as --momentum 0.9, or leave "
                             "--nesterov out",
                             "--nesterov does nothing with --momentum 0");
    if (f->recipe.optimizer && zero) {
        snprintf(remedy, sizeof remedy, "write --optimizer %s, or a momentum greater than 0",
                 usual("train.optimizer", 0, text, sizeof text));
        return message_usage(remedy, "--optimizer %s does nothing with --momentum 0",
                             f->recipe.optimizer);
    }
    if (f->recipe.init_scale && !f->init_from)
        return message_usage("name the model to start from with --init-from, or leave --init-scale "
                             "out",
                             "--init-scale needs --init-from");
    return -1;
}
