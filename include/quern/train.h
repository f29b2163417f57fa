/* Training.
 *
 *     qn_train_options o;
 *     qn_train *t = NULL;
 *     qn_model *m = NULL;
 *     qn_train_options_init(&o);
 *     o.model = "dense 500 tanh; dense 10 softmax";
 *     qn_status status = qn_train_open(&o, data, NULL, NULL, &t, &err);
 *     if (status == QN_OK)
 *         status = qn_train_run(t, &err);
 *     if (status == QN_OK)
 *         status = qn_train_model(t, &m, &err);
 *     if (status == QN_OK)
 *         status = qn_model_save(m, "digits.safetensors", &err);
 *     qn_model_free(m);
 *     qn_train_close(t);
 *
 * One thread at a time uses a qn_train; only qn_train_stop may be called from others. T is the time
 * in seconds of all calls of qn_train_run: steps, and the validation and checkpoints between them.
 */
#ifndef QUERN_TRAIN_H
#define QUERN_TRAIN_H

#include <quern/cluster.h>
#include <quern/data.h>
#include <quern/defaults.h>
#include <quern/device.h>
#include <quern/evaluate.h>
#include <quern/model.h>
#include <quern/score.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A run, open for one process.
 *
 * Callbacks may call qn_train_stop and qn_train_model. During another call, so also in a callback,
 * qn_train_run, qn_train_checkpoint, qn_train_save and qn_train_report_get fail with QN_USAGE and
 * change nothing. qn_train_close has no effect then; call it after the other call has returned.
 *
 * Threads do not survive fork(). In a child of the process that opened the run, all functions that
 * return a status fail with QN_USAGE. There qn_train_workers returns NULL, and qn_train_close has
 * no effect. The parent still owns the run. */
typedef struct qn_train qn_train;

/* After a step. */
typedef struct qn_step_event {
    size_t size;             /* sizeof(qn_step_event) */
    uint32_t epoch;          /* of the step, from 0 */
    uint32_t epochs;         /* of the run */
    uint64_t step, steps;    /* steps done and steps of the run, earlier calls and runs included */
    uint64_t items_done;     /* of this epoch */
    double items_per_second; /* over the last second or so; 0: not known yet */
    double seconds_left;     /* estimate for the whole run; 0: not known yet */
    double loss;             /* mean over the epoch so far, each batch before its update */
} qn_step_event;

/* After an epoch and its validation. */
typedef struct qn_epoch_event {
    size_t size;             /* sizeof(qn_epoch_event) */
    uint32_t epoch, epochs;  /* epochs done, and epochs of the run */
    double seconds;          /* of the training of this epoch, without validation */
    double items_per_second; /* over these seconds; 0: no time was measured */
    double learning_rate;    /* of the last step */
    int real;                /* 1: labels are real numbers, and scores have no right answers */
    qn_score train;          /* of this epoch, each batch before its update */
    qn_score valid, test;    /* `items` 0 where there is no such set */
    /* 1 on the one rank that reports this epoch to the user, 0 on all others; on_epoch is called
     * once on every rank. When that rank dies after its call and before the others know of it, the
     * next one is called with 1 too: an epoch may be reported twice, and is never omitted. */
    int reports;
    uint32_t stage, stages; /* of the epoch, from 1, and of the run; 1 and 1 without stages */
    int stage_ends;         /* 1: it was the last epoch of its stage */
    int next; /* 1: answers are tokens that come next; exp(loss) is the perplexity of a set */
} qn_epoch_event;

/* Epochs that qn_epoch_keep kept. */
typedef struct qn_epoch_list {
    size_t size;           /* sizeof(qn_epoch_list) */
    size_t event_size;     /* sizeof(qn_epoch_event) */
    qn_epoch_event *event; /* the caller's memory, for `room` events */
    uint64_t room;
    uint64_t count; /* events that are in it */
} qn_epoch_list;

/* For on_epoch: appends the event to the qn_epoch_list at `user`, for a caller who reads the epochs
 * after the training. Does nothing when the list is full, when a size is not one of a list and of
 * its events, or when `user`, its memory or the event is NULL. */
QN_API void qn_epoch_keep(void *user, const qn_epoch_event *event);

/* With compute.cluster the ranks of a run train one model together. Every rank calls qn_train_open,
 * qn_train_run and qn_train_report_get in this order, with the same recipe and the same data. Each
 * has the whole state, so any may fail: the others do its part and continue. Callbacks run on all
 * ranks. The writer (qn_cluster_is_writer) writes the files: checkpoints, records, the trace. When
 * the writer fails, the next one continues them. The writer looks for a checkpoint, and all ranks
 * start from what it found.
 *
 * A failure of one rank is returned on all ranks, with two exceptions: QN_DEVICE (the rank has no
 * worker left) and QN_CLUSTER (it has to leave). Such a rank calls qn_cluster_leave and writes
 * nothing. */

/* What to train and how. The members before `compute` are the recipe, on which the bytes of the
 * model depend; the others do not change them. Fill with qn_train_options_init, then change
 * members. qn_train_open checks the numbers. A float is the nearest float32 to what the user wrote.
 * Each text may be NULL: the default. Each callback may be NULL: none. */
typedef struct qn_train_options {
    size_t size;       /* sizeof(qn_train_options) */
    const char *model; /* "dense 500 tanh; dense 10 softmax"; NULL: of images qn_default_model of
                          the classes, with real labels "dense 100 relu; dense 1 none"; of a
                          table "dense 64 relu; dense 32 relu" and the last layer */
    const char *arith; /* of matrix products: "f32"; "i7", "i14", "i21": exact integers */
    const char *loss;  /* "cross-entropy" (with a last layer of softmax), "mse", "mae", "huber",
                          "binary" (two classes, with a last layer of one sigmoid output, or several
                          labels); NULL: "cross-entropy", of real labels "mse", of several labels
                          "binary" */
    const char *optimizer; /* "sgd", "momentum", "adam", "adamw", "lbfgs"; NULL: "momentum" when
                              `momentum` is set and not 0, else of a table "adamw", of images "sgd",
                              with real labels "adam" */
    const char *init;      /* of the weights: "auto", "glorot", "he", "lecun" */
    const char *scale;     /* of the features: "none", "unit", "fraction", "standard",
                              "minmax", "robust", of images "channel", "imagenet" or means and
                              deviations of channels, of values from 0 to 1:
                              "0.5,0.5,0.5/0.25,0.25,0.25"; NULL: by what the data holds and by
                              `arith` */
    const char *schedule;  /* of the learning rate: "constant", "step", "cosine",
                              "exponential"; NULL: "constant";
                              of a table with its own optimiser "cosine" */
    float learning_rate;   /* above 0; QN_BY_OPTIMIZER: the default of the optimiser */
    float momentum;        /* 0 to below 1, for "momentum"; QN_BY_OPTIMIZER: the same */
    float beta1, beta2;    /* "adam", "adamw": 0 to below 1; 0.9, 0.999 */
    float epsilon;         /* "adam", "adamw": above 0; 1e-8 */
    float weight_decay;    /* at least 0; QN_BY_OPTIMIZER: 0; of a table with its own optimiser 1,
                              from 1,000 items 0.3, from 10,000 items 0.1 */
    float delta;           /* loss "huber": where it goes from squares to absolute values, above 0,
                              for real labels in their standard deviations; 1 */
    uint32_t lr_step;      /* schedule "step": epochs between two reductions, at least 1; 10 */
    float lr_gamma;        /* schedule "step": factor of a reduction, above 0, at most 1; schedule
                              "exponential": factor of every step, 0.5 to 10; 0.1 */
    uint32_t warmup;       /* steps in which the learning rate rises to its full value; 0 */
    float valid_fraction;  /* part of the items that is set apart for validation, 0 to below 1; 0:
                              none; not with a validation set */
    uint32_t batch;        /* items of a step, 1..2^24; QN_BY_DATA: 64; of a table 8 to 256 */
    uint32_t grain;  /* items of a grain, the unit of work that devices share; QN_BY_DATA: 32, of
                        a network on images above 64x64 pixels 8, above 256x256 2 */
    uint32_t epochs; /* passes over the training items, at least 1; QN_BY_DATA: 10, of a small table
                        as many as give 1,000 steps, at most 200 */
    uint64_t seed;   /* of all that is random; 1 */
    uint32_t gradient_scale; /* gradients are summed as integers, multiples of 2^-gradient_scale,
                                0..60; 44 */
    const char *missing;     /* what becomes of missing values: "error", "mean", "median", "zero",
                                "drop" (the items are left out) */
    uint32_t patience;       /* early stopping: epochs in a row whose validation loss is not below
                                the lowest one before them; 0: none. Needs validation items */
    const char *keep;        /* the parameters that the model gets: "last"; "best": those after the
                                epoch with the lowest validation loss, the first of equals; NULL:
                                "best" with `patience`, else "last". "best" needs validation
                                items. Those of a set of the caller go into the recipe, by their
                                digest */
    const qn_model *init_from; /* a model whose parameters the training starts from; NULL: from
                                  random ones. Its layers must be those of `model`, or are taken
                                  where that is NULL. Without `scale` and `init_scale` the inputs
                                  are scaled by its means and deviations where it was imported with
                                  them. It must live until qn_train_open returns */

    qn_compute compute;         /* devices and ranks */
    const char *checkpoint_dir; /* folder for checkpoints, made when it is missing; NULL: none. The
                                   last two are kept, and one is written when qn_train_run ends.
                                   Without `resume` it must hold none */
    double checkpoint_seconds;  /* seconds between two; 0: not by time */
    uint64_t checkpoint_steps;  /* steps between two; 0: not by steps */
    double checkpoint_part;     /* greatest part of the time for checkpoints, 0..1, by the measured
                                   time of writing one; 0: not by their cost */
    int resume;                 /* 1: continue from the last complete checkpoint, if there is one */
    const char *run_dir;        /* folder for the metrics and the record of the run; NULL: none */
    const char *command_line;   /* for that record: how the run was started; NULL: unknown */
    const char *trace;          /* file for a trace of the run (Chrome, Perfetto), written whenever
                                   qn_train_run returns; NULL: none */

    /* Callbacks run on the thread that called, in the library's floating-point state
     * (docs/exactness.md 1.8). What they change in it has no effect and ends with the callback.
     * What they may call is documented at qn_train. Events are valid during the call only. */
    void *user; /* passed to the callbacks */
    void (*on_step)(void *user, const qn_step_event *event);
    void (*on_epoch)(void *user, const qn_epoch_event *event);
    qn_note_fn on_note; /* messages for a user: a lost worker, a checkpoint that failed */

    /* The model whose names the run takes instead of those in the training data: the columns and
     * classes of all sets are matched with its own. It must stay until qn_train_open returns. NULL:
     * `init_from` where that has names, else none. Set by qn_train_options_from_model. */
    const qn_model *table_of;

    /* Two more of the recipe. */
    const char
        *class_weight;      /* classes: "balanced": by their numbers of training items; or
                               "cat=2,dog=0.5": classes that are not named have the weight 1. The
                               weight of an item is its own times that of its class. NULL: all 1 */
    const char *init_scale; /* with `init_from`: "fit": scaling and the numbers for missing values
                               are fitted to the training items; "keep": they are those of that
                               model, as are `scale` where it is NULL and `missing` where it is
                               "error" or NULL; NULL: "fit" */
    const char *shape;      /* of an item, for a model that begins with a layer on pixels, and for
                               `augment`: "28x28",
                               or "3x32x32" with the channels first; NULL: that of the data
                               (qn_data_image_size), else that of `table_of` */
    int nesterov;           /* "momentum": 1: Nesterov's form of it; 0 */
    float smoothing; /* loss "cross-entropy": label smoothing, 0 to below 1: the part of a target
                        that all classes share. Losses are reported without it; 0 */
    float clip;      /* the largest norm of a step's gradient over all parameters: a longer one is
                        shortened to it; 0: none */
    const char *augment; /* what is done to training items that are images, anew in each epoch:
                            "pad 4; crop; flip; cutout 8", words in the order in which they act.
                            docs/images.md describes them and others; NULL or "": nothing */
    /* "lbfgs" computes the gradient over all training items in each iteration, and `epochs` is the
     * greatest number of iterations. It takes no option about steps or learning rates: `batch`,
     * `learning_rate`, `momentum`, `schedule`, `warmup`, `clip`, `smoothing`, `augment`. It
     * minimises mean loss + weight_decay / 2 * sum of w^2 + l1 * sum of |w| over weights w;
     * scikit-learn's C is 1 / (items * weight_decay). A `gradient_scale` of 44, the default, counts
     * as 32 there. */
    float l1;        /* "lbfgs": the L1 penalty of weights, at least 0; 0 */
    float tolerance; /* "lbfgs": stops when no component of the gradient is greater, above 0;
                        1e-4 */

    /* Two more files, written by qn_train_report_get. */
    const char *report; /* a page about the run, one HTML file (quern/report.h); NULL: none. It
                           predicts the test set once more, on the CPU; without one the validation
                           items, else the training items */
    const char *plots;  /* folder for its charts as SVG files, made if missing; NULL: none */

    /* One more of the recipe: a training in stages, each going on from the one before: "epochs 5 lr
     * 0.1; epochs 5 lr 0.01". A stage says its `epochs`; it may set `lr`, `schedule`, `lr-step`,
     * `lr-gamma` and `warmup`, which are else those of these options. The rates begin anew in each
     * stage; weights, the optimiser's state and the order of the items go on. At most 64 stages;
     * `epochs` of these options must be their sum then, or the default. Not for "lbfgs". NULL: one
     * stage. */
    const char *stages;

    /* A file of runs (quern/runs.h), which other processes may write to at the same time. The run
     * is written at its start, during it and by qn_train_report_get. A file that cannot be used
     * makes qn_train_open fail; a later failure to write it is reported by on_note, and the
     * training goes on without it. A run that continues from a checkpoint goes on in its row. NULL:
     * none. */
    const char *runs;
    const char *run_name; /* of the run there; NULL: "" */

    /* One more of the recipe. 1: the biases of the last layer keep their initial values, 0 unless
     * `init_from` gives others; only for "lbfgs". 0 */
    int no_intercept;

    /* Messages that a user should get even where notes are not wanted: a checkpoint could not be
     * written. NULL: on_note gets them. */
    qn_note_fn on_warning;

    /* One more of the recipe. 1: of `init_from` the training takes all layers but the last one,
     * which begins with new weights and may have other outputs: the classes are those of the
     * training data. Without `model` the layers are those of `init_from`, the last one with as many
     * outputs as the labels need. 0 */
    int new_last;

    /* One more of the recipe, with `init_from`: the layers that keep its parameters: "0..14",
     * "0..3,7", counted from 0, or "all-but-last". They compute as in a prediction: no dropout, and
     * batchnorm has its running averages. Nothing is computed for their gradients, and the first
     * ones need no errors, either. NULL: none */
    const char *freeze;

    /* One more of the recipe: the learning rate of each layer with weights, or block, times this is
     * that of the one before it; the last one has the whole rate. 0: all have the same */
    float lr_depth;

    /* Two more of the recipe, only for "cross-entropy", above 0 and up to 1: an item is mixed with
     * the one before it in the epoch, and so is its target. The shares are drawn from a beta
     * distribution with both parameters equal to this one. `mixup` takes a weighted mean of the
     * values; `cutmix` copies a box of pixels. Losses of the training are those of the mixed
     * targets. Not both, and no weights of items or classes. 0: none */
    float mixup, cutmix;

    /* One more of the recipe: not 0: what an average of each weight keeps of itself in a step, such
     * as 0.999. Validation and the model have the averages in the place of the weights. 0 */
    float ema;

    /* One more of the recipe, schedule "cosine": the learning rate to which it falls, at most the
     * learning rate; 0 */
    float lr_min;

    /* One more of the recipe, of items of tokens: so many batches of an epoch at a time are sorted
     * by the lengths of their texts, so that a batch has texts of like lengths. It takes the time
     * of its longest one. 0: the order is drawn alone */
    uint32_t group_lengths;

    /* One more of the recipe: what weight decay acts on: "weights" of dense layers and
     * convolutions; "matrices", also the tables of embeddings and positions; "all" parameters.
     * NULL: "matrices" with such tables, else "weights" */
    const char *decay_on;

    /* One more of the recipe, with `init_from`: low-rank adapters train beside its layers, which
     * stay as they are: "8", the rank; "8 alpha 16", with the factor 16 / 8, which is 2 without it;
     * "8 on all" layers conv 1x1 and dense but the last, "on attention", those that an attention
     * reads, or "on 3,9..12". NULL: none */
    const char *lora;

    /* One more of the recipe: how layers of attention compute where `arith` is not "f32":
     * "float32" or "integers", which multiplies queries by keys, and weights by values, as other
     * products. NULL: "float32" */
    const char *attention_arith;
} qn_train_options;

/* Sets every member to its default: the recipe as docs/exactness.md 11.4 says, `compute` as zeros
 * say, no callbacks, no checkpoints, no files. qn_default_text writes the defaults as text. */
QN_API void qn_train_options_init(qn_train_options *options);

/* Gives the members that the optimiser or the data decides on the values that a training on `data`
 * takes: optimizer, schedule, learning_rate, momentum, weight_decay, batch, epochs. Members that
 * are set stay; texts that are filled in are constants. For a caller who wants to know them before
 * the training. Fails as qn_train_open does for such options; *options is then as before. */
QN_API qn_status qn_train_options_settle(qn_train_options *options, const qn_data *data,
                                         qn_error *err);

/* Writes the network of such a training into the caller's memory, `capacity` bytes with the NUL:
 * its layers as text, also where options->model is NULL. Fails as qn_train_options_settle, and with
 * QN_USAGE if the text does not fit. */
QN_API qn_status qn_train_model_text(const qn_train_options *options, const qn_data *data,
                                     char *text, size_t capacity, qn_error *err);

/* Fills the recipe part of `options` from a model's recipe, for a replay. Call
 * qn_train_options_init before. options->model is owned by `model` and valid until qn_model_free.
 * Fails with QN_USAGE, or with QN_MISMATCH when `data` is not the data of the recipe (`where` has
 * both digests); *options is then as before. */
QN_API qn_status qn_train_options_from_model(const qn_model *model, const qn_data *data,
                                             qn_train_options *options, qn_error *err);

/* Checks all options and prepares the run; with options->resume it continues from the last complete
 * checkpoint. `train` must have labels. `valid` and `test` may be NULL: no such set. The three data
 * sets must outlive *out. Options and their texts are copied. Where `valid` decides on the best
 * epoch (`patience`, `keep`), the recipe has its digest, and a replay needs the same set.
 *
 * On success *out is owned by the caller, for qn_train_close. After a failure it is NULL, and no
 * checkpoint, record or trace has changed. Fails with QN_USAGE (an option), QN_INPUT (labels) or
 * QN_MISMATCH (sets that do not fit each other, a checkpoint of another recipe). Fails with QN_BUSY
 * (another process holds the folder), QN_FORMAT (a damaged checkpoint), QN_IO, QN_MEMORY,
 * QN_UNSUPPORTED, QN_DEVICE or QN_CLUSTER. */
QN_API qn_status qn_train_open(const qn_train_options *options, const qn_data *train,
                               const qn_data *valid, const qn_data *test, qn_train **out,
                               qn_error *err);

/* Trains to the end, or until qn_train_stop. With options->checkpoint_dir it writes the last
 * checkpoint before it returns QN_OK or QN_INTERRUPTED. Fails with
 *   QN_INTERRUPTED  stopped; a further call continues, and model and checkpoint are those of the
 *                   last step
 *   QN_NUMERIC      a loss or a gradient left the range of float32; the step is named. Further
 *                   calls, and those for a model or a checkpoint, fail too; files stay as they are
 *   QN_DEVICE       no worker is left. What the host still has is written as a checkpoint, where
 *                   there is a folder; `remedy` says of which step. Further calls fail
 *   QN_IO           the last checkpoint of a stopped run cannot be written. A checkpoint before it
 *                   that fails is only a note
 *   QN_MISMATCH     the ranks do not have the same parameters: nothing is written
 *   QN_CLUSTER, QN_MEMORY */
QN_API qn_status qn_train_run(qn_train *train, qn_error *err);

/* Asks the run to stop at the end of its step; all ranks stop at the end of the same step. Does not
 * wait. Safe in a signal handler and in another thread. */
QN_API void qn_train_stop(qn_train *train);

/* Writes a checkpoint into the folder `dir`, which is made when it does not exist; the folder above
 * it must exist. The last two checkpoints are kept there, those of later steps are removed. Not
 * during qn_train_run. Fails with QN_BUSY (another process uses the folder), QN_IO, QN_NUMERIC (a
 * parameter is not finite), QN_DEVICE or QN_MEMORY. After a failure the earlier checkpoints in the
 * folder are as before. */
QN_API qn_status qn_train_checkpoint(qn_train *train, const char *dir, qn_error *err);

/* Copies the model as it is after the last step; complete after qn_train_run returned QN_OK. On
 * success *out is owned by the caller, for qn_model_free, and may outlive `train`; after a failure
 * it is NULL. During qn_train_run only in its callbacks. Fails with QN_NUMERIC, QN_DEVICE or
 * QN_MEMORY. */
QN_API qn_status qn_train_model(const qn_train *train, qn_model **out, qn_error *err);

/* Where qn_train_save wrote the model. */
typedef struct qn_saved {
    size_t size;         /* sizeof(qn_saved) */
    uint32_t rank;       /* that wrote it */
    uint32_t place;      /* the index in `place` */
    char path[4096];     /* the file; place[i], or that name with a number where it was taken */
    char digest[65];     /* SHA-256 of the file, 64 hexadecimal digits */
    uint64_t parameters; /* number of weights and biases */
    qn_error why;        /* the first place that failed; status QN_OK: none */
    uint32_t why_rank;   /* the rank on which it failed */
} qn_saved;

/* Writes the model file to the first of `places` paths that takes it. place[0] is where it should
 * be: a file there is replaced. The others are tried in their order when that fails with QN_IO, and
 * nothing is overwritten there: a number is added to a name that is taken. A path of more than
 * 4,000 bytes counts as such a failure. Not during qn_train_run.
 *
 * Among ranks all call this together, with the same number of places. One rank of each host tries
 * each place, the lowest first, and all ranks get the same *saved. A rank asks all others before it
 * renames the file into its place. Fails with QN_IO on all ranks when no rank can write anywhere;
 * the message is saved->why. Fails with QN_CLUSTER or QN_DEVICE on a rank that has to leave, or
 * with QN_NUMERIC or QN_MEMORY. After a failure the old files are as before. */
QN_API qn_status qn_train_save(qn_train *train, const char *const *place, uint32_t places,
                               qn_saved *saved, qn_error *err);

/* What one worker, a device of one rank, did in the run. */
typedef struct qn_worker_report {
    size_t size;             /* sizeof(qn_worker_report) */
    uint32_t rank;           /* that has the worker; 0 without ranks */
    char name[64];           /* "cpu", "cuda:0" */
    char device[128];        /* the device's own name */
    uint64_t grains;         /* computed in training */
    uint64_t items;          /* of these grains */
    uint64_t steps;          /* in which it took part */
    double items_per_second; /* measured while it computed; 0: it did not compute */
    double busy;             /* share of T in which it computed, 0..1 */
    int lost;                /* 1: it failed during the run */
    char note[256];          /* why it was not used in steps, or how it failed; may be empty */
    uint64_t bytes_up, bytes_down;   /* sent to the device and fetched from it */
    double seconds_up, seconds_down; /* of these transfers */
    double joules;           /* energy of the whole device during the run, use by others included;
                                NaN: unknown */
    int cores;               /* number of elements of core_busy */
    const double *core_busy; /* share of T in which each core computed, 0..1; may be NULL */
} qn_worker_report;

/* What one rank did in the run. For a lost rank `items`, `items_per_second`, `busy` and `waiting`
 * are those at the end of the last epoch that it finished; the other members after `lost` are 0. */
typedef struct qn_rank_report {
    size_t size;             /* sizeof(qn_rank_report) */
    uint32_t rank;           /* its number, from 0 */
    char host[64];           /* name of its host */
    int lost;                /* 1: it died or had to leave */
    uint32_t first_worker;   /* index of its first worker in qn_train_report.worker */
    uint32_t workers;        /* number of its workers, one after another from there */
    char worker_names[128];  /* "cpu, cuda:0"; names that do not fit are left out */
    uint64_t items;          /* that its workers trained on */
    double items_per_second; /* of its workers together, measured */
    double busy;             /* share of T in which they computed, 0..1, weighted by their speeds */
    double waiting;          /* share of T in which it waited for other ranks, 0..1 */
    uint64_t bytes_out, bytes_in; /* sent and received over the network */
    /* What the sums of steps and evaluations would be at 8 bytes a number, by calculation. */
    uint64_t counted_out, counted_in;
    uint64_t bytes_shared; /* read from the memory of other ranks on its machine */
    uint32_t recoveries;   /* times that the ranks agreed on which of them are left */
    /* Seconds from the notice of a loss until the interrupted step, or the part of an evaluation,
     * was complete, with what was computed again; the longest of these times. */
    double longest_recovery;
    uint64_t bytes_early;  /* of bytes_out: sent while the rank was computing */
    uint64_t joined_after; /* the step after which it joined the run; 0: it began with the run */
} qn_rank_report;

/* What integer arithmetic (docs/exactness.md 15) rounds to zero: shares, 0..1, of the values that
 * are not zero but become 0 as integers of their block; NaN where there are no such values. They
 * are measured on a few items at the end of the run, and no result depends on them. */
typedef struct qn_rounding {
    size_t size; /* sizeof(qn_rounding) */
    /* 7, 14 or 21; 0: float32, not the writer, or items that take too long; then all else is 0 */
    int bits;
    uint32_t items; /* that were measured */
    /* In products forward and backward. */
    double inputs, activations, weights, errors;
    /* In the gradients of weights, where all items of a grain share their scales. */
    double grain_inputs, grain_activations, grain_errors;
} qn_rounding;

/* How a run went. Pointers are owned by the qn_train, and valid until the next qn_train_run,
 * qn_train_report_get or qn_train_close. */
typedef struct qn_train_report {
    size_t size;                  /* sizeof(qn_train_report) */
    double seconds;               /* T */
    double seconds_training;      /* of T, in steps */
    double bound;                 /* W/S in seconds: the items of the run over the speed of the
                                     workers of all ranks. A worker counts for the part of the steps
                                     in which it took part */
    double seconds_choosing;      /* of seconds_training: the cost of finding out which devices take
                                     part, beyond the steps of those that were chosen */
    uint64_t steps_repeated;      /* computed again after a worker was lost */
    double seconds_to_first_step; /* from qn_train_open to the end of the first step */
    uint64_t items;               /* trained on in this run, each as often as it was used */
    uint64_t steps;               /* of this run, without those before resumed_from */
    uint64_t resumed_from;        /* steps done when the run began; 0: from the beginning */
    uint32_t workers;             /* number of workers of all ranks */
    const qn_worker_report *const *worker; /* `workers` pointers, rank after rank */
    uint32_t ranks;                        /* number of ranks at the start; 1 without ranks */
    const qn_rank_report *const *rank;     /* `ranks` pointers */
    qn_score train;                        /* of the last epoch, each batch before its update */
    qn_score valid, test; /* of the model at the end; `items` 0 where there is no such set */
    int real;             /* 1: labels are real numbers, and there are no classes */
    uint32_t classes;     /* that the network can tell apart; 0 where `real` is 1 */
    /* Items of the test set by label and predicted class: classes x classes, [label][class]. NULL
     * without a test set, without classes and with more than 1024 of them. */
    const uint64_t *confusion;
    const qn_rounding *rounding;
    /* The names of the first `class_names` classes. Without names 0 and NULL: classes are numbers.
     */
    uint32_t class_names;
    const char *const *class_name;
    int weighted;       /* 1: the losses in `train` are weighted means, by items or classes */
    int valid_weighted; /* the same of `valid`: 0 for a validation set of the caller */
    /* Of the optimiser "lbfgs"; else all are 0. */
    uint64_t iterations;  /* of the whole run, earlier calls and runs included */
    int converged;        /* 1: the gradient became as small as the tolerance */
    double largest_slope; /* the largest component of the gradient in the end; NaN: unknown */
    /* The evaluations of both sets, of the model at the end. NULL without a set, with one class,
     * and where items x outputs are more than 2^26. */
    const qn_evaluation *valid_evaluation, *test_evaluation;
    int next; /* 1: answers are tokens that come next; exp(loss) is the perplexity of a set */
} qn_train_report;

/* The workers of this rank, known from qn_train_open on, and what each did so far. Sets *count to
 * their number; `count` may be NULL. Owned by the qn_train, until the next call with it. Not during
 * qn_train_run. NULL for NULL. */
QN_API const qn_worker_report *const *qn_train_workers(qn_train *train, uint32_t *count);

/* The memory of this rank's process that a training takes beside its data, in bytes, as it was
 * estimated before the run: qn_train_open fails with QN_MEMORY where the machine has less. Memory
 * of GPUs and of their drivers is not counted. */
typedef struct qn_memory {
    size_t size;         /* sizeof(qn_memory) */
    uint64_t all;        /* the sum of the others */
    uint64_t batch;      /* inputs, outputs and errors of a batch, or of one of its parts */
    uint64_t parameters; /* weights and biases, the optimiser's state, sums, copies */
    uint64_t program;    /* the program itself */
    uint64_t parts;      /* of a batch, computed one after the other (qn_compute.parts); 1: whole */
    uint64_t kept;       /* outputs of the training items that are kept (qn_compute.cache_features);
                            part of `all`; 0 where they are in a file */
} qn_memory;

/* Fills *memory, whose size is set before. Fails with QN_USAGE. */
QN_API qn_status qn_train_memory(const qn_train *train, qn_memory *memory, qn_error *err);

/* Evaluates the validation and test sets, unless that was done after the last step, fills *report
 * and completes the record of the run. After qn_train_run; among ranks all call this together.
 *
 * Fails as qn_train_run does, and then the contents of *report are undefined. One failure leaves a
 * complete report: that of writing the record in run_dir, the trace, at any time of the run, or the
 * page and its charts (QN_IO, QN_BUSY). */
QN_API qn_status qn_train_report_get(qn_train *train, qn_train_report *report, qn_error *err);

/* Frees the run and what its reports point to, and releases its folders. Accepts NULL. Has no
 * effect during another call, and in a child of the process that opened the run. */
QN_API void qn_train_close(qn_train *train);

#ifdef __cplusplus
}
#endif
#endif
