/* The options of `quern train`: parser, help, manual page, completions and suggestions use this one
 * table. Below it, the checks of their combinations. */

#include "command.h"
#include "message.h"
#include "train_flags.h"
#include <stdio.h>
#include <string.h>

#define AT(member) .place = offsetof(train_flags, member)

const option train_options[] = {
    {.heading = "Data",
     .name = "data",
     .kind = OPTION_TEXT,
     AT(from.data),
     .value = "FILE",
     .help =
         "training data: CSV, IDX, NPY or NPZ, plain or gzipped, or a folder or archive of "
         "images; the format is found from the content; FILE.npz:NAME is one array of an archive",
     .fallback = "20,000 built-in digits, with 4,000 more as test set"},
    {.more = source_label_options, AT(from)},
    {.more = source_weight_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {.more = source_test_options, AT(from)},
    {.name = "valid",
     .kind = OPTION_TEXT,
     AT(from.valid),
     .value = "FILE|FRACTION",
     .help =
         "validation set: a file, or the fraction of the training data to set aside, such as 0.1"},
    {.name = "valid-labels",
     .kind = OPTION_TEXT,
     AT(from.valid_labels),
     .value = "FILE",
     .help = "IDX, NPY: labels of the validation set"},
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
     .value = "TEXT",
     .from = QN_CHOICE_ACTIVATION,
     .help = "layers from first to last, such as \"dense 500 tanh dropout 0.2; dense 10 softmax\"; "
             "the activations are",
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
     .help = "passes over the training data",
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
     .help = "how much the items of each class count: balanced (all classes together alike), or "
             "\"cat=2,dog=0.5\"; others 1",
     .fallback = "all 1"},
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
    {.name = "quiet",
     .kind = OPTION_FLAG,
     AT(quiet),
     .help = "print only errors and the last line with the digest"},
    {.name = "verbose",
     .kind = OPTION_FLAG,
     AT(verbose),
     .help = "report more: time of each part, every core, bytes moved"},
    {.name = "json",
     .kind = OPTION_FLAG,
     AT(json),
     .help = "one JSON object a line on stdout: start, epoch, note, end, error"},
    {.name = "run-dir",
     .kind = OPTION_TEXT,
     AT(run_dir),
     .value = "DIR",
     .help = "keep metrics and a record of the run in this folder"},

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
     .help = "momentum of --optimizer\tmomentum",
     .field = "train.momentum"},
    {.name = "delta",
     .kind = OPTION_FLOAT,
     AT(delta),
     .value = "X",
     .help =
         "huber: an error greater than X counts by its absolute value, not its square; for real "
         "labels, in their standard deviations",
     .field = "train.delta"},
    {.name = "beta1",
     .kind = OPTION_FLOAT,
     AT(beta1),
     .value = "X",
     .help = "adam, adamw: decay of the mean of gradients",
     .field = "train.beta1"},
    {.name = "beta2",
     .kind = OPTION_FLOAT,
     AT(beta2),
     .value = "X",
     .help = "adam, adamw: decay of the mean of squared gradients",
     .field = "train.beta2"},
    {.name = "epsilon",
     .kind = OPTION_FLOAT,
     AT(epsilon),
     .value = "X",
     .help = "adam, adamw: added to the denominator",
     .field = "train.epsilon"},
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
     .help = "schedule step: epochs between two reductions",
     .field = "train.lr_step"},
    {.name = "lr-gamma",
     .kind = OPTION_FLOAT,
     AT(lr_gamma),
     .value = "X",
     .help = "schedule step: factor of a reduction",
     .field = "train.lr_gamma"},
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

/* Refuses an option that would have no effect, before hours are spent. */
static int check_use(const arguments *given, const char *name, int used, const char *with,
                     const char *whose) {
    char remedy[96];
    if (used || !options_given(&train_command, given, name))
        return -1;
    snprintf(remedy, sizeof remedy, "write --%s, or leave --%s out", whose, name);
    return message_usage(remedy, "--%s does nothing with --%s", name, with);
}

int train_options_check(const train_flags *f, const arguments *given) {
    const int has_momentum = options_given(&train_command, given, "momentum") && f->momentum != 0;
    const int regress = f->from.task && strcmp(f->from.task, "regress") == 0;
    const char *usual = has_momentum ? "momentum" : regress ? "adam" : "sgd";
    const char *optimizer = f->optimizer ? f->optimizer : usual;
    const int adam = strncmp(optimizer, "adam", 4) == 0;
    const int stepwise = f->schedule && strcmp(f->schedule, "step") == 0;
    const int huber = f->loss && strcmp(f->loss, "huber") == 0;
    char with[48], schedule[48], loss[48];
    snprintf(loss, sizeof loss, "loss %.20s", f->loss ? f->loss : "cross-entropy");
    snprintf(with, sizeof with, "optimizer %.20s", optimizer);
    snprintf(schedule, sizeof schedule, "schedule %.20s", f->schedule ? f->schedule : "constant");
    const int plain = f->optimizer && strcmp(f->optimizer, "sgd") == 0;
    int code = f->quiet && f->verbose
                   ? message_usage("leave one of them out", "--quiet contradicts --verbose")
                   : -1;
    if (code < 0)
        code = check_use(given, "momentum", !adam && !plain, with, "optimizer momentum");
    if (code < 0 && f->optimizer && !adam && !plain && f->momentum == 0 &&
        options_given(&train_command, given, "momentum"))
        code = message_usage("write --optimizer sgd, or a momentum greater than 0",
                             "--optimizer momentum does nothing with --momentum 0");
    if (code < 0 && f->init_scale && !f->init_from)
        code = message_usage("name the model to start from with --init-from, or leave --init-scale "
                             "out",
                             "--init-scale needs --init-from");
    static const char *const adams[] = {"beta1", "beta2", "epsilon"};
    for (size_t i = 0; i < sizeof adams / sizeof *adams && code < 0; i++)
        code = check_use(given, adams[i], adam, with, "optimizer adam or adamw");
    if (code < 0)
        code = check_use(given, "delta", huber, loss, "loss huber");
    if (code < 0)
        code = check_use(given, "lr-step", stepwise, schedule, "schedule step");
    return code < 0 ? check_use(given, "lr-gamma", stepwise, schedule, "schedule step") : code;
}
