/* Requests of many callers as batches of one model.
 *
 * Any thread submits a request: a table of one or more items. Its inputs are made on that thread.
 * The inputs of the requests that wait become one batch, which all devices compute. What a request
 * gets has the bits of qn_predict for its table alone: it does not depend on who else was in the
 * batch.
 *
 * A batch begins when the devices are free. It takes what waits, up to a number of items that is
 * computed in half of the latency bound: a request may come right after a batch has begun, and then
 * waits for two. That number follows the measured times. Where batches are cheap, the thread that
 * submits computes what waits; one thread may wait for the devices a moment to do so.
 *
 * An item that fails, such as one whose output is not finite, fails its own request only. */
#ifndef QN_SERVE_BATCH_BATCHER_H
#define QN_SERVE_BATCH_BATCHER_H

#include "base/error.h"
#include <quern/data.h>
#include <quern/device.h>
#include <quern/model.h>

typedef struct qn__batcher qn__batcher;

typedef struct qn__batcher_options {
    uint64_t latency; /* bound in ns from submission to answer; 0: 20 ms */
    uint64_t waiting; /* items that may wait at most, and those of one request; 0: 65,536 */
    uint32_t most;    /* items of a batch at most; 0: 1,024. One request may have more. */
    int no_outputs;   /* 1: answers lack `outputs`, which are large for classes of pixels */
    /* 0: nobody wants the answer of the request with this `user` any more. Asked of requests that
     * have waited longer than the bound, before they are computed: they get QN_INTERRUPTED instead.
     * NULL: all are wanted. */
    int (*wanted)(void *user);
    /* Outputs of a layer in the place of predictions: it must outlive the batcher, and is not
     * copied. NULL: predictions. */
    const struct qn__layer_cut *cut;
} qn__batcher_options;

/* What a request gets. Arrays as those of qn_predict and qn_predict_several; they, and `err`, are
 * valid during the callback only. */
typedef struct qn__batch_answer {
    qn_status status; /* QN_OK, or the members after `err` are 0 and NULL */
    const qn_error *err;
    uint64_t items;
    const int32_t *classes; /* NULL where a model gives several answers to an item, or of a layer */
    const float *scores;    /* the same */
    const uint8_t *answers; /* items x each_answers of such a model; else NULL */
    const float *outputs;   /* items x each_outputs; NULL with `no_outputs` */
    uint32_t each_answers;  /* qn_model_answers */
    uint32_t each_outputs;  /* qn_model_outputs, or the values of a layer */
    double waited, computed; /* seconds: before its batch began, and of the batch */
    uint64_t together;       /* items of the batch */
} qn__batch_answer;

/* A copy that outlives the callback, of an answer with QN_OK; the caller releases *out. Fails with
 * QN_MEMORY, and has no arrays then. */
qn_status qn__batch_answer_copy(const qn__batch_answer *from, qn__batch_answer *out, qn_error *err);
void qn__batch_answer_release(qn__batch_answer *answer);

/* Called once for each request that was accepted, on a thread of the batcher, or in the call of
 * qn__batcher_submit. It should be short: the next batch begins when it has returned. It may submit
 * requests, but not drain or free the batcher. */
typedef void qn__batch_done(void *user, const qn__batch_answer *answer);

/* Batches by their items: up to 1, 2, 4, ..., 1024, and above. */
enum { QN__BATCH_SIZES = 12 };

/* What happened since the batcher was made. */
typedef struct qn__batcher_counts {
    uint64_t requests, items, batches; /* answered, failures too */
    uint64_t failed, refused;          /* requests: with an error; not accepted (QN_BUSY) */
    uint64_t left;                     /* of those with an error, the ones that nobody wanted */
    uint64_t waiting;                  /* items, now */
    uint64_t sizes[QN__BATCH_SIZES];   /* of `batches` */
    double computing;                  /* seconds */
} qn__batcher_counts;

/* Opens the devices of `compute` (NULL: the defaults) for `model`; both must outlive *out, which
 * the caller owns, and so must the texts of `compute`. `options` may be NULL. Fails with QN_USAGE
 * (`compute` has a cluster), QN_UNSUPPORTED (a model of next tokens), QN_MEMORY or QN_DEVICE. */
qn_status qn__batcher_make(const qn_model *model, const qn_compute *compute,
                           const qn__batcher_options *options, qn__batcher **out, qn_error *err);

/* Submits a table, which must outlive the callback. On QN_OK `done` is called once, perhaps before
 * this returns; else never. Fails as qn_predict does for a table that does not fit the model, with
 * QN_INPUT (more items than may wait), QN_BUSY (too many items wait: the caller may try again),
 * QN_INTERRUPTED (the batcher is drained) or QN_MEMORY. */
qn_status qn__batcher_submit(qn__batcher *batcher, const qn_data *data, qn__batch_done *done,
                             void *user, qn_error *err);

/* Accepts nothing further, and returns when all requests are answered. */
void qn__batcher_drain(qn__batcher *batcher);

/* Drains and frees. Accepts NULL. */
void qn__batcher_free(qn__batcher *batcher);

void qn__batcher_count(qn__batcher *batcher, qn__batcher_counts *out);

#endif
