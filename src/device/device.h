/* The device table: the functions of every backend, and the list of backends.
 *
 * A *device* is a piece of hardware that computes. Opening it for a program makes a *worker*, which
 * holds a copy of the parameters and the optimiser's state in its own layout. A worker is driven by
 * one thread at a time. All arrays that are passed to a worker are in the canonical order of
 * num/program.h: for each layer the weights [out][in], then the biases [out].
 *
 * One entry computes all jobs (run): grains of a training, of an application of the network, or of
 * a *host job*, which is a function of this process. A device lists the kinds that it computes.
 *
 * A step of training: every worker computes some grains (run), its sums are added to the total
 * (collect), and every worker applies the same update (update). A worker that computes a rank's
 * whole share may write its sums directly to the buffer of the reduction. A worker that computes
 * the whole step may do all three in one pass (train_step). Grains and sums are defined by
 * docs/exactness.md, so that all these calls give the same bytes. */
#ifndef QN_DEVICE_DEVICE_H
#define QN_DEVICE_DEVICE_H

#include "base/error.h"
#include "device/item_buffer.h"
#include "layer/answers.h"
#include "num/element.h"
#include "num/mix.h"
#include "num/permutation.h"
#include "num/program.h"
#include "num/shown.h"
#include <quern/device.h>
#include <stdint.h>

/* Version of the layouts of this table and of qn__program; a backend of another version is not
 * registered. */
enum { QN__DEVICE_VERSION = 10 };

/* Items to read from; owned by the caller. A feed that is trained on, and all that it points to,
 * must not change while the worker is open: it may be kept on a device. A feed that is applied need
 * only be valid during the call, and another one may then have the same address. */
typedef struct qn__feed {
    qn__element_type type; /* of the values */
    uint32_t features;
    uint32_t step; /* values from one row to the next, where rows share some; 0: `features` */
    uint64_t items;
    const void *values;   /* rows of `features` values */
    const uint64_t *rows; /* item -> row of values; NULL: the item itself */
    /* Of each item: the class, or where program->real the bits of its target; NULL in prediction.
     */
    const int32_t *labels;
    /* Where program->answers: the targets of all items, so many bytes each, and the place of each
     * item's among them (NULL: the item itself). `labels` is then NULL. */
    const uint8_t *answers;
    int next; /* 1: losses are asked for, of targets that the items have (program->next) */
    const uint64_t *answer_rows;
    const float *weights; /* of each item, in losses and errors (8.1); NULL: all are 1 */
    /* Copies of the values of items that the next steps train on (device/item_buffer.h). It changes
     * between steps. NULL: no copies. */
    const qn__item_buffer *buffer;
    int remote; /* 1: values, labels and weights may be filled when they are touched: only this
                   process reads them, no driver */
} qn__feed;

/* A range of consecutive positions. */
typedef struct qn__batch {
    const qn__feed *feed;
    const qn__permutation *order; /* position -> item; NULL: the position itself */
    uint64_t first;               /* position of the first item */
    uint32_t items;
    uint32_t epoch;
    /* Of each item its position, if these do not follow one another, and what gives them anew
     * (device/length_groups.h); else NULL, and positions are `first` and the next ones. */
    const uint64_t *places;
    struct qn__length_groups *groups;
} qn__batch;

/* The position of an item of the batch. */
static inline uint64_t qn__batch_position(const qn__batch *batch, uint32_t place) {
    return batch->places ? batch->places[place] : batch->first + place;
}

/* `items` items of a batch from place `from` on. */
static inline qn__batch qn__batch_part(const qn__batch *batch, uint32_t from, uint32_t items) {
    qn__batch part = *batch;
    part.first += from;
    part.items = items;
    if (part.places)
        part.places += from;
    return part;
}

/* The items at `count` places of a batch, from place `first` on. */
static inline void qn__batch_items(const qn__batch *batch, uint32_t first, uint32_t count,
                                   uint64_t *item) {
    for (uint32_t i = 0; i < count; ++i)
        item[i] = qn__batch_position(batch, first + i);
    if (batch->order && !batch->places)
        qn__permutation_run(batch->order, batch->first + first, count, item);
    else if (batch->order)
        for (uint32_t i = 0; i < count; ++i)
            item[i] = qn__permutation_at(batch->order, item[i]);
}

/* Bytes of one item. */
static inline size_t qn__feed_stride(const qn__feed *feed) {
    return qn__element_stride(feed->type, feed->features);
}

/* The same where every value is written out, as a device without lists has them. */
static inline size_t qn__feed_whole(const qn__feed *feed) {
    return (size_t)feed->features * qn__element_of(feed->type)->size;
}

/* Bytes from one row to the next. */
static inline size_t qn__feed_step(const qn__feed *feed) {
    return feed->step ? (size_t)feed->step * qn__element_of(feed->type)->size
                      : qn__feed_stride(feed);
}

/* Whether its items have targets. */
static inline int qn__feed_labelled(const qn__feed *feed) {
    return feed->labels || feed->answers || feed->next;
}

/* The targets of an item that has several. */
static inline const uint8_t *qn__feed_answers(const qn__feed *feed, const qn__program *program,
                                              uint64_t item) {
    const uint64_t row = feed->answer_rows ? feed->answer_rows[item] : item;
    return feed->answers + (size_t)row * program->answers;
}

/* The values of the item at a position of the epoch, whose number is `item`. */
static inline const void *qn__batch_values_at(const qn__batch *batch, uint64_t position,
                                              uint64_t item) {
    const qn__feed *feed = batch->feed;
    const void *copy = feed->buffer && batch->order
                           ? qn__buffered_item(feed->buffer, batch->epoch, position)
                           : NULL;
    const uint64_t row = feed->rows ? feed->rows[item] : item;
    return copy ? copy : (const char *)feed->values + (size_t)row * qn__feed_step(feed);
}

/* The same at a position of the batch, first + place. */
static inline const void *qn__batch_values(const qn__batch *batch, uint32_t place, uint64_t item) {
    return qn__batch_values_at(batch, qn__batch_position(batch, place), item);
}

/* The number of the item with which that at first + place is mixed, and where it is. */
static inline uint64_t qn__batch_partner(const qn__batch *batch, uint32_t place,
                                         uint64_t *position) {
    const uint64_t items = batch->order ? batch->order->n : batch->feed->items;
    *position = qn__mix_position(qn__batch_position(batch, place), items);
    return batch->order ? qn__permutation_at(batch->order, *position) : *position;
}

/* The targets of the item `item` at first + place as a training sees them, where
 * program->moves_answers: to `to`. Returns the item's share (24.72). `space` as for qn__shown. */
static inline float qn__batch_show(const qn__batch *batch, const qn__program *program,
                                   uint32_t place, uint64_t item, uint8_t *to, void *space) {
    const qn__feed *feed = batch->feed;
    qn__masked own = {item, qn__feed_answers(feed, program, item)}, partner = own;
    uint64_t position;
    if (program->mix) {
        partner.item = qn__batch_partner(batch, place, &position);
        partner.classes = qn__feed_answers(feed, program, partner.item);
    }
    const uint64_t count = qn__shown(program, batch->epoch, own, partner, to, space);
    return qn__answers_share(feed->weights ? feed->weights[item] : 1.0f, count);
}

/* The largest number of items of one APPLY call: 1024, fewer of lists, or a grain if grains are
 * larger. */
static inline uint32_t qn__apply_space(const qn__program *program) {
    const uint32_t least = program->lists ? QN__LIST_ITEMS : 1024;
    return program->grain > least ? program->grain : least;
}

/* Parameters and optimiser state, program->parameters floats each; slot[i] for i <
 * qn__program_slots. */
typedef struct qn__state {
    float *parameters;
    float *slot[QN__SLOTS];
} qn__state;

/* The results of each item of a batch that is applied; any pointer may be NULL. */
typedef struct qn__applied {
    int32_t *classes;
    float *scores;
    float *outputs; /* items x outputs of the last layer */
    /* Items x inputs of the last layer, each item's as data has them: the values of a channel one
     * after the other. Of a program with several layers. */
    float *inputs;
    /* Of a program with `next`, items x positions: the loss of each position, +0 where its target
     * is ignored, and the token that is most probable there. */
    float *losses;
    int32_t *tokens;
} qn__applied;

/* Where the results from item `at` on are; `applied` may be NULL. */
static inline qn__applied qn__applied_from(const qn__program *program, const qn__applied *applied,
                                           uint32_t at) {
    qn__applied rest = applied ? *applied : (qn__applied){0};
    rest.classes = rest.classes ? rest.classes + at : NULL;
    rest.scores = rest.scores ? rest.scores + at : NULL;
    if (rest.outputs)
        rest.outputs += (size_t)at * program->layer[program->layers - 1].out;
    if (rest.inputs)
        rest.inputs += (size_t)at * program->layer[program->layers - 1].in;
    if (rest.losses)
        rest.losses += (size_t)at * program->answers;
    if (rest.tokens)
        rest.tokens += (size_t)at * program->answers;
    return rest;
}

/* Data copied between host and device since the worker was opened. */
typedef struct qn__traffic {
    uint64_t bytes_up, bytes_down;   /* to the device, from it */
    double seconds_up, seconds_down; /* as the host or the device's own clock measured it */
} qn__traffic;

typedef enum qn__job_kind {
    QN__JOB_TRAIN, /* forward and backward pass: the sums of the gradient */
    QN__JOB_APPLY, /* forward pass without dropout: results of each item */
    QN__JOB_HOST   /* a function of this process: its sums */
} qn__job_kind;
enum { QN__JOB_KINDS = 3 };
/* One more bit of what a device computes (qn__device_table.jobs): host jobs that have a kernel. */
enum { QN__JOB_KERNEL = 1 << QN__JOB_KINDS };

/* How a kernel uses an array. */
typedef enum qn__kernel_use {
    QN__KERNEL_WHOLE,   /* an item reads any of its numbers */
    QN__KERNEL_READ,    /* an item reads its own number */
    QN__KERNEL_WRITTEN, /* an item writes its own number */
    QN__KERNEL_VALUES   /* the same, and the host takes the numbers */
} qn__kernel_use;

typedef struct qn__kernel_array {
    qn__kernel_use use;
    uint32_t each;    /* bytes of a number */
    uint64_t bytes;   /* of all numbers of a WHOLE */
    const void *data; /* but for VALUES: in the host's memory, from item 0 */
    /* Changes with the contents, which a device may keep as long as place and version are the same;
     * of one that is WRITTEN that of its new contents. */
    uint64_t version;
    int unwanted; /* 1: of VALUES that this run does not pass to `take`: they stay on the device */
    int summed;   /* 1: of VALUES: a total takes them */
    void *back;   /* of what an earlier run has written: where `bring` puts it; else NULL */
} qn__kernel_array;

/* A total that a device computes from one or two arrays that are `summed`. The kernel
 * qn_user_totals, with groups of QN__KERNEL_LANES and at most QN__KERNEL_GROUPS of them, adds to
 * words that are 0 at first; what they mean does not depend on the number of groups. Its arguments:
 * the words, the arrays, the place of the first word (uint64), the number of the first item
 * (uint64) and that of items (uint32). */
typedef struct qn__kernel_total {
    const char *text[2]; /* by qn__language; the same text may be that of several totals */
    uint32_t array, arrays;
    uint64_t word, words; /* the first one, and their number */
    /* The self-test: `sample` makes `count` values, and marks if there are two arrays. `check` sets
     * *right if the words that the device computed from them, from item 0 on, are correct. */
    const void *part;
    void (*sample)(const void *part, uint64_t count, void *values, void *marks);
    qn_status (*check)(const void *part, uint64_t count, const void *values, const void *marks,
                       const int64_t *words, int *right, qn_error *err);
} qn__kernel_total;

/* Consecutive items, and where their results go. */
enum { QN__KERNEL_ARRAYS = 48, QN__KERNEL_LANES = 128, QN__KERNEL_GROUPS = 1024 };
typedef struct qn__kernel_span {
    uint64_t first, count;
    void *to[QN__KERNEL_ARRAYS]; /* of each array that is WRITTEN: the place of the first item */
    /* Of each array that is READ: the same, if its `data` is NULL; NULL: it is not read. */
    const void *from[QN__KERNEL_ARRAYS];
} qn__kernel_span;

/* What a device needs to compute a host job's grains itself: a user's kernel as a program for it.
 * The kernel qn_user_items, with groups of QN__KERNEL_LANES, has these arguments: three words for
 * faults, `numbers`, the arrays, the place of the first item in arrays of items (uint64), that
 * item's number (uint64), the number of items (uint32). Before it the words are 0. Of a faulty item
 * k, counted from the first one, it raises the first word to ~k. If there is one item only, the
 * others receive the bits of the fault, the lower half first. */
typedef struct qn__kernel_job {
    const char *text[2]; /* by qn__language; valid as long as the worker */
    int doubles;         /* 1: it computes in binary64 */
    const qn__kernel_array *array;
    uint32_t arrays; /* at most QN__KERNEL_ARRAYS */
    const uint64_t *numbers;
    uint32_t count; /* of `numbers` */
    uint64_t items; /* of the whole job, or as many as a launch may have */
    /* 1: one worker computes all items, of several runs. Then it may keep whole arrays of items,
     * and what is WRITTEN need not come to the host before a run with `fetch`. A run with `bring`
     * computes nothing: it copies arrays with `back` that only the device has. */
    int resident, fetch, bring;
    int whole_groups;        /* 1: a launch ends with a group, counted from the span's first item */
    const char *smaller;     /* what to do where the arrays do not fit on a device */
    const qn_error *no_host; /* why qn__host_job.grains cannot compute it; NULL: it can */
    /* The items of grain `first`, and of up to most - 1 grains after it if their items follow.
     * Returns the number of these grains; 0: the rest of the call need not be computed. Without
     * `more` it may be called before all items of the last span were taken. */
    uint32_t (*span)(void *context, uint32_t first, uint32_t most, int64_t *words,
                     qn__kernel_span *out);
    /* Optional: a further span of items of the same grains, after the last span was taken. Returns
     * 0 if there is none. */
    int (*more)(void *context, void *scratch, int64_t *words, qn__kernel_span *out);
    /* Takes `count` computed items, in `seconds`: of the array i, which is one of VALUES, the
     * numbers from values[i] on, or NULL where a total takes them. `scratch` is that of
     * qn__host_job.open, `words` those of the call. Returns 0 if the rest of the call need not be
     * computed. */
    int (*take)(void *context, void *scratch, int64_t *words, uint64_t first, uint64_t count,
                const void *const *values, double seconds);
    /* Notes an item with the bits of its fault. */
    void (*fault)(void *context, uint64_t item, uint64_t bits);
    /* Optional: totals that the device itself makes, in `total_words` words. sum() takes the words
     * of all items since the last time, at the end of the worker's call at the latest. In runs
     * `without_totals` none are made. */
    const qn__kernel_total *total;
    uint32_t totals;
    int without_totals;
    uint64_t total_words;
    void (*sum)(void *context, void *scratch, const int64_t *words);
} qn__kernel_job;

/* A job that is a function over grains; what a grain is, only the function knows. The result of a
 * grain depends on the context and on its number alone. */
typedef struct qn__host_job {
    void *context; /* not changed while the job runs, unless each grain has places of its own */
    /* Optional, both or none: memory that a thread needs beside the context. NULL: QN_MEMORY. */
    void *(*open)(void *context, qn_error *err);
    void (*close)(void *scratch);
    /* Adds the results of the grains first .. first+count-1 to `words`. Several threads call it at
     * the same time, each with its own scratch (NULL without `open`) and other grains. */
    qn_status (*grains)(void *context, void *scratch, uint32_t first, uint32_t count,
                        int64_t *words, qn_error *err);
    /* Optional, with `open` and `apart`. Adds what a scratch has gathered to `words`, once it has
     * no further grains, and only if the worker's call succeeds: so a sum costs a thread one
     * addition to the words, not one a grain. Workers may call it at the same time with the same
     * words: it locks. It may write to words that other grains have, too. */
    void (*finish)(void *context, void *scratch, int64_t *words);
    uint64_t words; /* number of words */
    int apart;  /* 1: no two grains have a word in common, and a grain that is computed again writes
                   the same; so threads and workers need no words of their own */
    int uneven; /* 1: the costs of grains differ much, so that threads take few at once */
    const qn__kernel_job *kernel; /* NULL: only `grains` computes it */
} qn__host_job;

/* What to compute. */
typedef struct qn__job {
    qn__job_kind kind;
    const qn__batch *batch;   /* TRAIN, APPLY: its grains are those of the program */
    qn__applied *applied;     /* APPLY: places for all items of the batch; NULL: none */
    const qn__host_job *host; /* HOST */
} qn__job;

/* Where the sums of a call go. */
typedef struct qn__outlet {
    int64_t *words;   /* TRAIN: NULL, or qn__program_sums elements; HOST: host->words elements */
    qn__tally *tally; /* may be NULL in APPLY; without words it is not used in TRAIN */
    /* TRAIN with words; may be NULL. Reports that words first .. first+words-1, and all after
     * them, are final: the last layers come first. Called by the thread that called `run`, while
     * others may still compute; not every word need be reported. */
    void (*ready)(void *user, uint64_t first, uint64_t words);
    void *user;
} qn__outlet;

/* Further positions of sequences, of a program with `sequences`. A row is a position: the one after
 * the last position of its sequence, or after that of the row before. Position 0 begins a sequence
 * anew. */
typedef struct qn__extension {
    uint32_t rows; /* at most the program's batch */
    const uint32_t *token, *sequence, *position;
    float *logits; /* rows x outputs of the last layer, without softmax; NULL: none are needed */
} qn__extension;

typedef struct qn__worker qn__worker; /* defined by each backend */

/* Workers of one kind whose devices add up their sums themselves. Defined by each backend. */
typedef struct qn__joint qn__joint;

/* A name that an option takes, and what it means in one line without a full stop. */
typedef struct qn__device_word {
    const char *name, *about;
} qn__device_word;

typedef struct qn__device_table {
    uint32_t version;  /* QN__DEVICE_VERSION */
    const char *name;  /* in lists of devices, and before the number in an id ("cuda", "cuda:0") */
    const char *about; /* one line for the help of such a list, without a full stop */

    /* 1: the cores of this process. Its one device has no number: "cpu:4" are four of its cores. It
     * is not lost, and no other device replaces it. */
    int host;

    /* Optional. A word in the platform of every GPU that this kind drives, such as "NVIDIA". While
     * this kind has a device, "auto" does not use these GPUs through a later kind. */
    const char *vendor;

    /* The number of devices of this kind, and their descriptions. The first call of count searches
     * for them. */
    uint32_t (*count)(void);
    qn_status (*describe)(uint32_t index, qn_device_info *info, qn_error *err);

    /* Optional. 0: no device of this kind can be one that "auto" uses, so that count, which may
     * open large libraries, is not called. */
    int (*likely)(void);

    /* Optional. `check` refuses wrong settings of this kind. `instructions` gives the values of the
     * setting that names instructions (`isa` of the host, else `gpu_isa`), {NULL} after the last.
     */
    qn_status (*check)(const qn_compute *compute, qn_error *err);
    qn__device_word (*instructions)(uint32_t index);

    uint32_t jobs; /* the kinds of jobs that it computes: qn__job_bit of each, QN__JOB_KERNEL */
    int in_place;  /* 1: training can write its sums to sums->words */

    /* 1 when the device has all operations of the program in exact form. */
    int (*supports)(const qn__program *program);

    /* Optional. Why there is no device of this kind, with a remedy; "" when there is one. */
    const char *(*absence)(void);

    /* Makes a worker. The program must outlive the worker; NULL: the worker will compute host jobs
     * only, and none of the functions but run, close, busy and traffic will be called.
     * QN_UNSUPPORTED when the device does not keep the contract (its self-test runs here),
     * QN_DEVICE when it cannot be used for another reason, such as lack of memory; both name the
     * device and the reason. */
    qn_status (*open)(uint32_t index, const qn_compute *compute, const qn__program *program,
                      qn__worker **out, qn_error *err);
    void (*close)(qn__worker *worker);

    /* Optional. For a worker without a program: builds the kernel's program, tests the device's
     * arithmetic, and makes space for the arrays. Fails as open does. */
    qn_status (*prepare)(qn__worker *worker, const qn__kernel_job *kernel, qn_error *err);

    /* Copies the state in and out. load also sets all sums to zero. `state->slot` may be NULL in
     * prediction. */
    qn_status (*load)(qn__worker *worker, const qn__state *state, qn_error *err);
    qn_status (*save)(qn__worker *worker, qn__state *state, qn_error *err);

    /* Computes the grains first .. first+count-1 of a job; count > 0. QN_NUMERIC when a number was
     * out of range, QN_DEVICE when the device failed.
     *
     * TRAIN, at most qn__program_part items: without words, gradients and tally are added to the
     * worker's own sums, which collect fetches. After a failure these are undefined until load.
     * With words, only if in_place is 1 and the step has no earlier grains: the words are
     * overwritten, with what load, these grains and collect would give; the tally is added, and the
     * worker's own sums stay zero. After a failure the words are undefined.
     *
     * APPLY, at most qn__apply_space items: with labels in the feed, adds loss, correct answers and
     * items to the tally. QN_NUMERIC names the first item with an output that is not finite.
     *
     * HOST: adds to the words, and `count` to the items of the tally. A failure is that of the
     * lowest grain that failed; the words are then undefined. A device whose kind is KERNEL
     * computes them by job->host->kernel, for which it was prepared. */
    qn_status (*run)(qn__worker *worker, const qn__job *job, uint32_t first, uint32_t count,
                     const qn__outlet *sums, qn_error *err);

    /* Adds the worker's sums to sums[qn__program_sums] and *tally and sets its own to zero. */
    qn_status (*collect)(qn__worker *worker, int64_t *sums, qn__tally *tally, qn_error *err);

    /* Optional, all or none. Several workers of this kind with the same program, in training, whose
     * devices add up their sums without the host. One thread makes these calls, while no other one
     * calls the workers. joint_open fails with QN_UNSUPPORTED where the devices cannot do so or are
     * not faster than the host, with QN_DEVICE where they fail or compute something else.
     * joint_add: the total is then in each worker, for an update with `sums` NULL, and tally[count]
     * has the tallies of the workers, whose own are zero again. After a failure each
     * worker has its own sums as before, and only joint_close may follow. joint_close accepts NULL,
     * and comes before a worker is closed. */
    qn_status (*joint_open)(qn__worker *const *workers, uint32_t count, qn__joint **out,
                            qn_error *err);
    qn_status (*joint_add)(qn__joint *joint, qn__tally *tally, qn_error *err);
    void (*joint_close)(qn__joint *joint);

    /* Applies the optimiser with the combined sums of the step; NULL: those of joint_add. */
    qn_status (*update)(qn__worker *worker, const qn__update *update, const int64_t *sums,
                        qn_error *err);

    /* Optional. All grains of the batch, of at most qn__program_part items, and the update, in one
     * pass; adds to *tally. `next`, when
     * not NULL, is the batch that will follow, so that its items can be fetched during the pass.
     * After a failure the state is undefined. A worker with `flush` may return before the step is
     * complete: its tally or its failure then comes with a later call. A QN_NUMERIC of an earlier
     * step has the step (update->step) in err->where. */
    qn_status (*train_step)(qn__worker *worker, const qn__batch *batch, const qn__batch *next,
                            const qn__update *update, qn__tally *tally, qn_error *err);

    /* Optional. Waits for all incomplete steps and adds the rest of their results to *tally. The
     * team calls it before any other function follows train_step. */
    qn_status (*flush)(qn__worker *worker, qn__tally *tally, qn_error *err);

    /* Optional. Seconds that each of the worker's cores has computed since open; returns their
     * number. */
    int (*busy)(const qn__worker *worker, double *seconds, int capacity);

    /* Optional. */
    void (*traffic)(const qn__worker *worker, qn__traffic *traffic);

    /* Optional. Short measurements of the device, self-test included. */
    qn_status (*measure)(uint32_t index, const qn_compute *compute, qn_device_rates *rates,
                         qn_error *err);

    /* Optional. Reads the device's energy counter in joules; 0 when it has none that can be read.
     * The difference of two readings is the energy used in between. */
    int (*energy)(uint32_t index, double *joules);

    /* Optional. Bytes of the host's memory that a worker uses in training with parts of `items`
     * items; 0 items: what does not depend on them. UINT64_MAX: more than can be counted. */
    uint64_t (*memory)(const qn_compute *compute, const qn__program *program, uint32_t items);

    /* Optional. Computes further positions of sequences, for which the program was made. QN_NUMERIC
     * when a logit is not finite: *bad is then the first such row. */
    qn_status (*extend)(qn__worker *worker, const qn__extension *extension, uint32_t *bad,
                        qn_error *err);
} qn__device_table;

static inline uint32_t qn__job_bit(qn__job_kind kind) { return 1u << kind; }

/* The registered backends in a fixed order; ends with NULL. */
extern const qn__device_table *qn__devices[];

/* Adds a backend after the others, or removes it (NULL). Only for test programs and benchmarks
 * (tests/fake_device). Not thread-safe. */
void qn__devices_extra(const qn__device_table *device);

/* A backend by name, or NULL. */
const qn__device_table *qn__device_find(const char *name);

/* The backend before that of the name `kind` that drives the GPUs of this platform, if it has a
 * device that works, or NULL. */
const qn__device_table *qn__device_driving(const char *platform, const char *kind);

/* What the settings `devices` (a kind, or auto), `isa` (with `host`) and `gpu_isa` take; {NULL}
 * after the last. */
qn__device_word qn__device_kind(uint32_t index);
qn__device_word qn__device_instructions(int host, uint32_t index);

#endif
