/* Where a run is, as bytes that one rank sends to the others: after it was resumed, and when a rank
 * joins. */
#include "train/trainer_state.h"
#include <string.h>

/* The position of the run, in front of the arrays of its state. */
typedef struct position {
    uint64_t known; /* 1: the sender knows the position */
    uint64_t gives; /* 1 + the rank that gives the arrays to one that asks; 0: none */
    uint64_t step, saved_step;
    qn__tally running;
    qn__adam_powers powers;
    uint64_t best_epoch;
    int64_t best_loss;
    uint64_t pairs;  /* of lbfgs */
    char run_id[16]; /* in the file of runs */
} position;
_Static_assert(sizeof((position *)0)->run_id > QN__STORE_ID, "the number of a run has space");

enum { ARRAYS = 2 + QN__SLOTS + 2 * QN__LBFGS_PAIRS };

/* What the run's state consists of, one after the other; NULL after the last one. */
static void list_arrays(const qn_train *t, float *array[ARRAYS + 1]) {
    const qn__state *state = &t->job.state;
    const qn__lbfgs *lbfgs = t->job.full.lbfgs;
    float *const all[] = {state->parameters, state->slot[0], state->slot[1], state->slot[2],
                          t->best.parameter};
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        if (all[i])
            array[count++] = all[i];
    for (uint32_t i = 0; lbfgs && i < 2 * QN__LBFGS_PAIRS; ++i)
        array[count++] = lbfgs->history + i * lbfgs->n;
    array[count] = NULL;
}

static uint64_t state_bytes(const qn_train *t) { return t->job.program.parameters * sizeof(float); }

float *qn__train_position_array(const qn_train *t, int i) {
    float *array[ARRAYS + 1];
    list_arrays(t, array);
    return array[i];
}

size_t qn__train_position_head(void) { return sizeof(position); }

size_t qn__train_position_bytes(const qn_train *t) {
    int arrays = 0;
    while (qn__train_position_array(t, arrays))
        ++arrays;
    return sizeof(position) + (size_t)arrays * state_bytes(t);
}

int qn__train_position_known(const unsigned char *bytes) {
    uint64_t known;
    memcpy(&known, bytes, sizeof known);
    return known != 0;
}

uint64_t qn__train_position_gives(const unsigned char *bytes) {
    position s;
    memcpy(&s, bytes, sizeof s);
    return s.gives;
}

void qn__train_position_pack_head(const qn_train *t, int known, uint64_t gives,
                                  unsigned char *bytes) {
    position s = {.known = (uint64_t)known,
                  .gives = gives,
                  .step = t->job.step,
                  .saved_step = t->saved.step,
                  .running = t->job.running,
                  .powers = t->job.powers,
                  .best_epoch = t->best.epoch,
                  .best_loss = t->best.loss,
                  .pairs = t->job.full.lbfgs ? t->job.full.lbfgs->pairs : 0};
    memcpy(s.run_id, t->runs.id, sizeof t->runs.id);
    memcpy(bytes, &s, sizeof s);
}

void qn__train_position_pack(const qn_train *t, int known, unsigned char *bytes) {
    float *arrays[ARRAYS + 1];
    list_arrays(t, arrays);
    qn__train_position_pack_head(t, known, 0, bytes);
    bytes += sizeof(position);
    for (int i = 0; arrays[i]; ++i, bytes += state_bytes(t))
        memcpy(bytes, arrays[i], state_bytes(t));
}

void qn__train_position_unpack_head(qn_train *t, const unsigned char *bytes) {
    position s;
    memcpy(&s, bytes, sizeof s);
    t->job.step = s.step;
    t->job.running = s.running;
    t->job.powers = s.powers;
    t->best.epoch = (uint32_t)s.best_epoch;
    t->best.loss = s.best_loss;
    t->saved.step = s.saved_step;
    memcpy(t->runs.id, s.run_id, QN__STORE_ID);
    if (t->job.full.lbfgs)
        t->job.full.lbfgs->pairs = (uint32_t)s.pairs;
}

void qn__train_position_unpack(qn_train *t, const unsigned char *bytes) {
    float *arrays[ARRAYS + 1];
    list_arrays(t, arrays);
    qn__train_position_unpack_head(t, bytes);
    bytes += sizeof(position);
    for (int i = 0; arrays[i]; ++i, bytes += state_bytes(t))
        memcpy(arrays[i], bytes, state_bytes(t));
}
