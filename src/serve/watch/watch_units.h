/* What is read and answered as one: a file, or some rows. Units are made by any thread, answered by
 * the batcher, and taken back by the thread that stores the answers. */
#ifndef QN_SERVE_WATCH_UNITS_H
#define QN_SERVE_WATCH_UNITS_H

#include "predict/layer_values.h"
#include "serve/batch/batcher.h"
#include "serve/batch/bodies.h"
#include "serve/watch/watch_prompts.h"
#include <pthread.h>
#include <quern/watch.h>

/* Why a file has no rows. */
typedef enum qn__skip {
    QN__SKIP_NOT,   /* it has some */
    QN__SKIP_GONE,  /* there is no file of the name */
    QN__SKIP_LATER, /* it may not be complete: look again */
    QN__SKIP_KNOWN  /* its answers are stored already, perhaps under another name */
} qn__skip;

typedef struct qn__watch_unit qn__watch_unit;
struct qn__watch_unit {
    qn__watch_unit *next;
    struct qn__watch_units *all;
    char *file;    /* the first part of the key */
    char *version; /* of an object in a store: the second part; or NULL */
    int64_t first; /* the number of its first item, the last part */
    uint64_t items;
    char *mask;  /* the name of the file with its mask; or NULL */
    char *lines; /* of rows: their texts, each with its end; else NULL */
    qn_data *data;
    qn__watch_prompts *prompts; /* in the place of `data` and `answer`, of a model of next tokens */
    qn_status status;           /* QN_OK, or `error` says what is wrong with it */
    qn_error error;
    qn__batch_answer answer; /* owned; of it only the arrays are in use */
    qn__skip skip;
    int answered;
};

/* All that were submitted and not taken back, in the order of their submission. */
typedef struct qn__watch_units {
    const qn_model *model;
    qn__batcher *batcher;
    qn__body_reader *reader;
    qn__layer_cut cut; /* where outputs of a layer are the answers */
    uint32_t values;   /* of an item there; 0: predictions are */
    qn__texts *texts;  /* in the place of `batcher`, where prompts are continued; or NULL */
    qn_generate_options generate;
    uint64_t most;     /* units that may be under way */
    uint64_t finished; /* so far */
    pthread_mutex_t lock;
    pthread_cond_t fewer; /* some were answered or taken back */
    qn__watch_unit *first, **last;
    uint64_t count;
    int event; /* a descriptor that can be read when one was answered */
} qn__watch_units;

/* Fails with QN_IO, or as qn__batcher_make and qn_model_find_layer. Release *out also after a
 * failure. */
qn_status qn__watch_units_make(const qn_model *model, const qn_watch_options *options,
                               qn__watch_units *out, qn_error *err);
/* Waits for all answers. */
void qn__watch_units_release(qn__watch_units *units);

/* A unit of this file from its item `first` on; NULL if out of memory. */
qn__watch_unit *qn__watch_unit_make(const char *file, int64_t first, qn_error *err);
void qn__watch_unit_free(qn__watch_unit *unit);
void qn__watch_free_all(qn__watch_unit *list);

/* Submits a unit, which belongs to `units` from then on: its `data` is predicted, or `status` and
 * `error` are its answer, or it is skipped. Waits while very many are under way. */
void qn__watch_submit(qn__watch_units *units, qn__watch_unit *unit);

/* Answers a unit at once, which stays the caller's; waits for it. */
void qn__watch_answer(qn__watch_units *units, qn__watch_unit *unit);

/* Whether a unit is submitted without a wait, if no other thread submits. */
int qn__watch_has_space(qn__watch_units *units);

/* Takes back what is answered, in order: with `ordered` only what comes before all that is not. */
qn__watch_unit *qn__watch_take(qn__watch_units *units, int ordered);

/* Whether none is under way or waits to be taken. */
int qn__watch_is_idle(qn__watch_units *units);

/* Whether the items are prompts, which are continued. */
int qn__watch_has_prompts(const qn_model *model, const qn_watch_options *options);

/* Whether it is the fault of what was read, and not of the machine. */
int qn__watch_is_bad_item(qn_status status);

#endif
