/* The options of `quern train`: parser, help, manual page, completions and suggestions use this one
 * table. Below it, the checks of their combinations. */

#include "command.h"
#include "message.h"
#include "train_flags.h"
#include <quern/defaults.h>
#include <quern/train.h>
#include <stdio.h>
#include <string.h>

/* A default as text, with all its cases. */
enum { DEFAULT_TEXT = 256, REMEDY = 400 };

#define AT(member) .place = offsetof(train_flags, member)
#define AGAIN(member) .again = offsetof(train_flags, member)

const option train_options[] = {
    {.heading = "Data",
     .name = "data",
     .kind = OPTION_TEXT,
     AT(from.data),
     AGAIN(from.data_more),
     .value = "FILE",
     .help =
         "training data: CSV, JSON lines, IDX, NPY, NPZ, Parquet, Arrow IPC or LIBSVM, plain or "
         "compressed "
         "(gzip, zstd, bzip2, xz, ZIP), or a "
         "folder or archive of "
         "images; the format is found from the content; FILE.npz:NAME is one array of an archive, "
         "FILE.zip:NAME one file; "
         "- is the "
         "standard input; several files are one table: repeat the option, or name a folder, a "
         "pattern (\"part-*.csv\") or a list (@FILE)",
     .fallback = "20,000 built-in digits, with 4,000 more as test set"},
    {.more = source_label_options, AT(from)},
    {.more = source_weight_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {.more = source_test_options, AT(from)},
    {.name = "valid",
     .kind = OPTION_TEXT,
     AT(from.valid),
     AGAIN(from.valid_more),
     .value = "FILE|FRACTION",
     .help =
         "validation set: a file, or the fraction of the training data to set aside, such as 0.1"},
    {.name = "valid-labels",
     .kind = OPTION_TEXT,
     AT(from.valid_labels),
     AGAIN(from.valid_labels_more),
     .value = "FILE",
     .help = "IDX, NPY: labels of the validation set"},
    {.name = "valid-query",
     .kind = OPTION_TEXT,
     AT(from.valid_query),
     .value = "SQL",
     .help = "SQLite, PostgreSQL: the rows of the validation set"},
    {.name = "scale",
     .kind = OPTION_CHOICE,
     AT(scale),
     .value = "NAME",
     .from = QN_CHOICE_SCALE,
     .help = "how inputs are scaled",
     .field = "train.scale"},
    {.name = "missing",
     .kind = OPTION_CHOICE,
     AT(missing),
     .value = "RULE",
     .from = QN_CHOICE_MISSING,
     .help = "what replaces a missing value; computed from the training items, stored in the model",
     .field = "train.missing"},

    {.heading = "Network",
     .name = "model",
     .kind = OPTION_TEXT,
     AT(model),
     .value = "TEXT|NAME|@PATH",
     .from = QN_CHOICE_ACTIVATION,
     .help =
         "layers from first to last, such as \"dense 500 tanh dropout 0.2; dense 10 softmax\", or "
         "for images \"conv 32 3x3 relu; maxpool 2; globalpool; dense 10 softmax\"; @PATH is a "
         "file of them, NAME one that \"quern\tmodel\tlist\" lists; the list "
         "below has the activations",
     .field = "train.model"},
    {.name = "loss",
     .kind = OPTION_CHOICE,
     AT(loss),
     .value = "NAME",
     .from = QN_CHOICE_LOSS,
     .help = "loss to minimise",
     .field = "train.loss"},

    {.heading = "Training",
     .name = "epochs",
     .kind = OPTION_COUNT,
     AT(epochs),
     .value = "N",
     .low = 1,
     .high = UINT32_MAX,
     .help = "passes over the training data; with --optimizer lbfgs the most iterations",
     .field = "train.epochs"},
    {.name = "batch",
     .kind = OPTION_COUNT,
     AT(batch),
     .value = "N",
     .low = 1,
     .high = 1 << 24,
     .help = "items of one step (batch size)",
     .field = "train.batch"},
    {.name = "lr",
     .kind = OPTION_FLOAT,
     AT(learning_rate),
     .value = "X",
     .help = "learning rate",
     .field = "train.learning_rate"},
    {.name = "optimizer",
     .kind = OPTION_CHOICE,
     AT(optimizer),
     .value = "NAME",
     .from = QN_CHOICE_OPTIMIZER,
     .help = "rule that updates the weights; --momentum\tX alone means momentum",
     .field = "train.optimizer"},
    {.name = "weight-decay",
     .kind = OPTION_FLOAT,
     AT(weight_decay),
     .value = "X",
     .help = "weight decay (L2); it acts on weights, not on biases",
     .field = "train.weight_decay"},
    {.name = "l1",
     .kind = OPTION_FLOAT,
     AT(l1),
     .value = "X",
     .help = "L1 penalty; it acts on weights, not on biases",
     .field = "train.l1",
     .only = QN_CHOICE_OPTIMIZER},
    {.name = "tolerance",
     .kind = OPTION_FLOAT,
     AT(tolerance),
     .value = "X",
     .help = "stop when no component of the gradient is greater",
     .field = "train.tolerance",
     .only = QN_CHOICE_OPTIMIZER},
    {.name = "no-intercept",
     .kind = OPTION_FLAG,
     AT(no_intercept),
     .help = "leave the biases of the last layer at 0",
     .field = "train.no_intercept",
     .only = QN_CHOICE_OPTIMIZER},
    {.name = "schedule",
     .kind = OPTION_CHOICE,
     AT(schedule),
     .value = "NAME",
     .from = QN_CHOICE_SCHEDULE,
     .help = "change of the learning rate over the run",
     .field = "train.schedule"},
    {.name = "early-stopping",
     .kind = OPTION_COUNT,
     AT(patience),
     .value = "EPOCHS",
     .low = 1,
     .high = UINT32_MAX,
     .help = "stop when the validation loss was not below its lowest value for so many epochs; "
             "needs --valid"},
    {.name = "keep",
     .kind = OPTION_CHOICE,
     AT(keep),
     .value = "WHICH",
     .from = QN_CHOICE_KEEP,
     .help = "which parameters the model gets; best needs --valid",
     .fallback = "best with --early-stopping, else last"},
    {.name = "init-from",
     .kind = OPTION_TEXT,
     AT(init_from),
     .value = "MODEL",
     .help = "start from the parameters of this model, which must have the same layers"},
    {.name = "init-scale",
     .kind = OPTION_CHOICE,
     AT(init_scale),
     .value = "WHICH",
     .from = QN_CHOICE_INIT_SCALE,
     .help = "with --init-from: scaling of inputs and real labels, and numbers for missing values",
     .fallback = "fit"},
    {.name = "class-weight",
     .kind = OPTION_TEXT,
     AT(class_weight),
     .value = "TEXT",
     .help =
         "how much the items of each class count: balanced (all classes have the same total), or "
         "\"cat=2,dog=0.5\"; others 1",
     .fallback = "all 1"},
    {.name = "augment",
     .kind = OPTION_TEXT,
     AT(augment),
     .value = "TEXT",
     .help = "change training images randomly in each epoch: \"pad 4; crop; flip; cutout 8\", or "
             "some of these words",
     .fallback = "nothing"},
    {.name = "stages",
     .kind = OPTION_TEXT,
     AT(stages),
     .value = "TEXT",
     .help =
         "train in stages, each of which continues the one before: \"epochs 5 lr 0.1; epochs 5 lr "
         "0.01\"; a stage may also set schedule, lr-step, lr-gamma and warmup",
     .fallback = "one stage"},
    {.name = "seed",
     .kind = OPTION_COUNT,
     AT(seed),
     .value = "N",
     .high = UINT64_MAX,
     .help = "seed of all random numbers",
     .field = "train.seed"},
    {.name = "arith",
     .kind = OPTION_CHOICE,
     AT(arith),
     .value = "NAME",
     .from = QN_CHOICE_ARITH,
     .help =
         "arithmetic of matrix products; the integer forms use the matrix units of the CPU and GPU",
     .field = "train.arith"},

    {.heading = "Output",
     .letter = 'o',
     .name = "output",
     .kind = OPTION_TEXT,
     AT(out),
     .value = "FILE",
     .help = "model file to write (safetensors); required"},
    {.name = "predictions",
     .kind = OPTION_TEXT,
     AT(predictions),
     .value = "DIR",
     .help = "folder for the predictions of the test set and of a validation file, as CSV: "
             "stage1-test.csv and so on, written after each stage"},
    {.name = "quiet",
     .kind = OPTION_FLAG,
     AT(quiet),
     .help = "print only errors and the last line with the digest"},
    {.name = "verbose",
     .kind = OPTION_FLAG,
     AT(verbose),
     .help = "report more: time of each part, every core, bytes moved, a ready model's layers"},
    {.name = "json",
     .kind = OPTION_FLAG,
     AT(json),
     .help = "one JSON object a line on stdout: start, epoch, note, end, error"},
    {.name = "run-dir",
     .kind = OPTION_TEXT,
     AT(run_dir),
     .value = "DIR",
     .help = "keep metrics and a record of the run in this folder"},
    {.name = "runs",
     .kind = OPTION_TEXT,
     AT(runs),
     .value = "FILE",
     .help = "record the run in this SQLite file; several trainings may use it at the same time; "
             "quern runs list shows it",
     .fallback = "QUERN_RUNS of the environment, else none"},
    {.name = "run-name",
     .kind = OPTION_TEXT,
     AT(run_name),
     .value = "NAME",
     .help = "name of the run in that file",
     .fallback = "the name of the model file"},
    {.name = "report",
     .kind = OPTION_TEXT,
     AT(report),
     .value = "FILE",
     .help = "page about the run, one HTML file: curves, confusion matrix, worst mistakes, weights "
             "of a linear model; quern report writes it later, too"},
    {.name = "plots",
     .kind = OPTION_TEXT,
     AT(plots),
     .value = "DIR",
     .help = "folder for the charts of that page, as SVG files"},

    {.heading = "Checkpoints",
     .name = "checkpoint",
     .kind = OPTION_TEXT,
     AT(checkpoint),
     .value = "DIR",
     .help = "save the state of the run in this folder"},
    {.name = "checkpoint-every",
     .kind = OPTION_TEXT,
     AT(checkpoint_every),
     .value = "auto|TIME|N",
     .help = "how often: every 30 seconds (30s), 5 minutes (5m), 2 hours (2h) or 500 steps (500); "
             "auto takes at most 1\t%\tof the time",
     .fallback = "auto"},
    {.name = "resume",
     .kind = OPTION_FLAG,
     AT(resume),
     .help = "continue from the last complete checkpoint in --checkpoint\tDIR, if there is one"},

    {.heading = "Devices (they do not change the model file)",
     .more = compute_options,
     AT(compute)},

    {.heading = "Advanced training",
     .name = "momentum",
     .kind = OPTION_FLOAT,
     AT(momentum),
     .value = "X",
     .help = "how much of the previous step is kept",
     .field = "train.momentum",
     .only = QN_CHOICE_OPTIMIZER},
    {.name = "nesterov",
     .kind = OPTION_FLAG,
     AT(nesterov),
     .help = "Nesterov's form, which looks ahead along the momentum",
     .field = "train.nesterov",
     .only = QN_CHOICE_OPTIMIZER},
    {.name = "delta",
     .kind = OPTION_FLOAT,
     AT(delta),
     .value = "X",
     .help = "an error greater than X counts by its absolute value, not its square; for real "
             "labels, in their standard deviations",
     .field = "train.delta",
     .only = QN_CHOICE_LOSS},
    {.name = "smoothing",
     .kind = OPTION_FLOAT,
     AT(smoothing),
     .value = "X",
     .help = "label smoothing: the part of a target that all classes share; losses are shown "
             "without it",
     .field = "train.smoothing",
     .only = QN_CHOICE_LOSS},
    {.name = "clip",
     .kind = OPTION_FLOAT,
     AT(clip),
     .value = "NORM",
     .help = "the largest norm of a step's gradient over all parameters; a longer one is shortened",
     .fallback = "any norm"},
    {.name = "beta1",
     .kind = OPTION_FLOAT,
     AT(beta1),
     .value = "X",
     .help = "decay of the mean of gradients",
     .field = "train.beta1",
     .only = QN_CHOICE_OPTIMIZER},
    {.name = "beta2",
     .kind = OPTION_FLOAT,
     AT(beta2),
     .value = "X",
     .help = "decay of the mean of squared gradients",
     .field = "train.beta2",
     .only = QN_CHOICE_OPTIMIZER},
    {.name = "epsilon",
     .kind = OPTION_FLOAT,
     AT(epsilon),
     .value = "X",
     .help = "added to the denominator",
     .field = "train.epsilon",
     .only = QN_CHOICE_OPTIMIZER},
    {.name = "warmup",
     .kind = OPTION_COUNT,
     AT(warmup),
     .value = "N",
     .high = UINT32_MAX,
     .help = "steps during which the learning rate rises to its full value",
     .field = "train.warmup"},
    {.name = "lr-step",
     .kind = OPTION_COUNT,
     AT(lr_step),
     .value = "N",
     .low = 1,
     .high = UINT32_MAX,
     .help = "epochs between two reductions",
     .field = "train.lr_step",
     .only = QN_CHOICE_SCHEDULE},
    {.name = "lr-gamma",
     .kind = OPTION_FLOAT,
     AT(lr_gamma),
     .value = "X",
     .help = "factor of a reduction",
     .field = "train.lr_gamma",
     .only = QN_CHOICE_SCHEDULE},
    {.name = "init",
     .kind = OPTION_CHOICE,
     AT(init),
     .value = "NAME",
     .from = QN_CHOICE_INIT,
     .help = "distribution of the initial weights",
     .field = "train.init"},
    {.name = "grain",
     .kind = OPTION_COUNT,
     AT(grain),
     .value = "N",
     .low = 1,
     .high = UINT32_MAX,
     .help = "items of one grain, the unit of work that devices share; changes the model",
     .field = "train.grain"},
    {.name = "unit",
     .kind = OPTION_COUNT,
     AT(gradient_scale),
     .value = "N",
     .high = 60,
     .help = "gradients are added as multiples of 2^-N; changes the model",
     .field = "train.gradient_scale"},

    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},
    {.name = "trace",
     .kind = OPTION_TEXT,
     AT(trace),
     .value = "FILE",
     .help = "write a timeline of every device, for ui.perfetto.dev or chrome://tracing"},

    {.heading = RANKS_HEADING, .more = ranks_options, AT(ranks)},
    {.name = NULL}};

train_flags train_flags_default(void) {
    qn_train_options o;
    qn_train_options_init(&o);
    return (train_flags){.model = o.model,
                         .arith = o.arith,
                         .loss = o.loss,
                         .optimizer = o.optimizer,
                         .init = o.init,
                         .scale = o.scale,
                         .missing = o.missing,
                         .schedule = o.schedule,
                         .learning_rate = o.learning_rate,
                         .momentum = o.momentum,
                         .beta1 = o.beta1,
                         .beta2 = o.beta2,
                         .epsilon = o.epsilon,
                         .weight_decay = o.weight_decay,
                         .delta = o.delta,
                         .smoothing = o.smoothing,
                         .clip = o.clip,
                         .l1 = o.l1,
                         .tolerance = o.tolerance,
                         .lr_step = o.lr_step,
                         .lr_gamma = o.lr_gamma,
                         .warmup = o.warmup,
                         .batch = o.batch,
                         .grain = o.grain,
                         .epochs = o.epochs,
                         .seed = o.seed,
                         .gradient_scale = o.gradient_scale};
}

/* The default of a name for real labels, or for classes, of images: the text lists more cases
 * after semicolons. */
static const char *usual(const char *field, int real, char *text, size_t size) {
    static const char mark[] = "; real labels: ";
    qn_default_text(field, text, size);
    char *behind = strstr(text, mark);
    if (behind && real)
        text = behind + sizeof mark - 1;
    text[strcspn(text, ";")] = '\0';
    return text;
}

static int has_real_labels(const train_flags *f) {
    return f->from.task && strcmp(f->from.task, "regress") == 0;
}

/* The row of the option --NAME. */
static const option *row_of(const char *name) {
    const option *o = train_options;
    while (!o->name || strcmp(o->name, name) != 0)
        o++;
    return o;
}

/* The optimiser as given, or as it is without a word about it: a momentum alone chooses the one
 * that takes it. */
static const char *optimizer_of(const train_flags *f, const arguments *given, char *text,
                                size_t size) {
    const int real = has_real_labels(f);
    if (f->optimizer)
        return f->optimizer;
    if (options_given(&train_command, given, "momentum") && (f->momentum != 0 || !real))
        return options_user(row_of("momentum"), 0);
    return usual("train.optimizer", real, text, size);
}

/* The name that decides whether an option has an effect. */
static const char *chosen(const train_flags *f, const option *o, const arguments *given, char *text,
                          size_t size) {
    switch (o->only) {
    case QN_CHOICE_LOSS:
        return f->loss ? f->loss : usual("train.loss", has_real_labels(f), text, size);
    case QN_CHOICE_SCHEDULE:
        return f->schedule ? f->schedule : usual("train.schedule", 0, text, size);
    default:
        return optimizer_of(f, given, text, size);
    }
}

/* The option that chooses the names of this kind. */
static const char *chooser(qn_choice_kind kind) {
    const option *o = train_options;
    while (o->from != kind || o->kind != OPTION_CHOICE)
        o++;
    return o->name;
}

/* Refuses an option that would have no effect, before hours are spent. */
static int check_use(const train_flags *f, const option *o, const arguments *given) {
    char text[DEFAULT_TEXT], remedy[REMEDY];
    size_t used;
    const char *name, *with = chosen(f, o, given, text, sizeof text);
    if (!options_given(&train_command, given, o->name) ||
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
    static const char *const others[] = {"batch", "lr",        "schedule", "warmup",
                                         "clip",  "smoothing", "augment"};
    char text[DEFAULT_TEXT];
    const char *name = optimizer_of(f, given, text, sizeof text);
    if (!qn_choice_takes(QN_CHOICE_OPTIMIZER, name, "tolerance"))
        return -1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (options_given(&train_command, given, others[i]))
            return message_usage("leave it out, or write another --optimizer",
                                 "--%s does nothing with --optimizer %s", others[i], name);
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
    for (const option *o = train_options; o->name || o->more; o++) {
        const int code = o->only != QN_CHOICE_NONE ? check_use(f, o, given) : -1;
        if (code >= 0)
            return code;
    }
    const int steps = check_full_batch(f, given);
    if (steps >= 0)
        return steps;
    const int zero = f->momentum == 0 && options_given(&train_command, given, "momentum");
    if (f->nesterov && zero)
        return message_usage("write a momentum greater than 0, such as --momentum 0.9, or leave "
                             "--nesterov out",
                             "--nesterov does nothing with --momentum 0");
    if (f->optimizer && zero) {
        snprintf(remedy, sizeof remedy, "write --optimizer %s, or a momentum greater than 0",
                 usual("train.optimizer", 0, text, sizeof text));
        return message_usage(remedy, "--optimizer %s does nothing with --momentum 0", f->optimizer);
    }
    if (f->init_scale && !f->init_from)
        return message_usage("name the model to start from with --init-from, or leave --init-scale "
                             "out",
                             "--init-scale needs --init-from");
    return -1;
}
