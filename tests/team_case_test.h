/* A tiny training for tests of teams: the CPU and fake devices, what was told on the way, and the
 * model's digest. */
#ifndef QN_TESTS_TEAM_CASE_TEST_H
#define QN_TESTS_TEAM_CASE_TEST_H

#include "fake_device/fake_device.h"
#include "train/trainer.h"
#include "train/trainer_state.h"
#include "team/team_state.h"
#include <quern/quern.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 70, FEATURES = 9, CLASSES = 4, STEPS = 9, GRAINS = 12 };

static uint64_t random_state = 1;

static inline uint32_t below(uint32_t n) {
    uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)(((z ^ (z >> 31)) >> 32) * n >> 32);
}

static inline qn_data *tiny_data(void) {
    static uint8_t values[ITEMS * FEATURES];
    static int32_t labels[ITEMS];
    qn_data *data;
    random_state = 5;
    for (int i = 0; i < ITEMS; ++i) {
        labels[i] = i % CLASSES;
        for (int f = 0; f < FEATURES; ++f)
            values[i * FEATURES + f] = (uint8_t)(below(120) + (f % CLASSES == labels[i]) * 100u);
    }
    assert_int_equal(qn_data_from_arrays(QN_U8, ITEMS, FEATURES, values, labels, &data, NULL),
                     QN_OK);
    return data;
}

/* A training, and what came of it. */
typedef struct tiny {
    const qn__member *members; /* NULL: the CPU alone */
    uint32_t count;
    const char *arith;                           /* NULL: float32 */
    uint64_t (*pick)(void *user, uint64_t step); /* who takes part; NULL: whoever is fastest */
    uint64_t seed;                               /* for `pick` */
    int alike;           /* all ranks report equal costs, so that shares are equal */
    uint32_t save_every; /* so often the host's copy counts as old; 0: by the clock */
    const char *checkpoints;
    int resume;
    float rate;
    float clip;          /* 0: none */
    int full_batch;      /* 1: lbfgs */
    qn_cluster *cluster; /* NULL: no other ranks */
    const char *run_dir, *trace, *devices;
    uint64_t stop_at; /* 0: never */
    int calls;        /* of qn_train_run, at most, while it says that it was interrupted; 0: one */
    void (*on_step)(void *user, const qn_step_event *event); /* NULL: hear_step */
    qn_train *train;                                         /* while it goes on */
    uint32_t lost;                                           /* workers that were said to be */
    char last[640];                                          /* note */
    char epochs[512]; /* what was told of each: right answers and losses, of training and validation
                       */
    char digest[65];  /* empty when the training failed */
    uint32_t at_work; /* workers that computed grains */
    int interrupted;  /* calls of qn_train_run */
    uint64_t repeated, resumed_from, steps;
    qn_train_report report; /* its numbers; what it points to is gone */
    qn_rank_report ranks[16];
    qn_error err;
} tiny;

static inline void hear_note(void *user, const char *text) {
    tiny *h = user;
    h->lost += strncmp(text, "worker ", 7) == 0 && strstr(text, " failed: ") != NULL;
    snprintf(h->last, sizeof h->last, "%s", text);
}

static inline void hear_epoch(void *user, const qn_epoch_event *e) {
    tiny *h = user;
    const size_t used = strlen(h->epochs);
    snprintf(h->epochs + used, sizeof h->epochs - used, "%llu of %llu, %a; %llu of %llu, %a\n",
             (unsigned long long)e->train.correct, (unsigned long long)e->train.items,
             e->train.loss, (unsigned long long)e->valid.correct,
             (unsigned long long)e->valid.items, e->valid.loss);
}

/* Makes the team save now and then, as if time had passed. */
static inline void hear_step(void *user, const qn_step_event *e) {
    tiny *h = user;
    if (h->save_every && e->step % h->save_every == 0)
        h->train->job.team->history.kept_at = -1e9;
    h->steps = e->step;
    if (e->step == h->stop_at)
        qn_train_stop(h->train);
}

static inline qn_train_options tiny_options(tiny *h) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 11 tanh dropout 0.2; dense 4 softmax";
    o.optimizer = "adam";
    o.arith = h->arith;
    o.learning_rate = h->rate > 0 ? h->rate : 0.01f;
    o.clip = h->clip;
    o.batch = 24;
    o.grain = 2;
    o.epochs = 3;
    o.compute.threads = 1;
    o.valid_fraction = 0.2f;
    o.checkpoint_dir = h->checkpoints;
    o.resume = h->resume;
    o.run_dir = h->run_dir;
    o.trace = h->trace;
    o.compute.cluster = h->cluster;
    o.compute.devices = h->devices;
    o.on_note = hear_note;
    o.on_epoch = hear_epoch;
    o.on_step = h->on_step ? h->on_step : hear_step;
    if (h->full_batch) {
        qn_train_options none;
        qn_train_options_init(&none);
        o.model = "dense 11 tanh; dense 4 softmax";
        o.optimizer = "lbfgs";
        o.batch = none.batch;
        o.learning_rate = none.learning_rate;
        o.epochs = 12;
        o.valid_fraction = 0;
    }
    o.user = h;
    return o;
}

static inline qn_status tiny_run(tiny *h, const qn_data *data) {
    const qn_train_options options = tiny_options(h);
    qn_train_report report = {.size = sizeof(qn_train_report)};
    qn_model *model;
    qn_status status =
        qn__train_open_on(&options, data, NULL, NULL, h->members, h->count, &h->train, &h->err);
    if (status != QN_OK)
        return status;
    if (h->pick)
        qn__team_pick(h->train->job.team, h->pick, &h->seed);
    h->train->job.team->reduction.alike = h->alike;
    int calls = 0;
    do
        status = qn_train_run(h->train, &h->err);
    while (status == QN_INTERRUPTED && ++calls < h->calls);
    h->interrupted = calls;
    if (status == QN_OK)
        status = qn_train_report_get(h->train, &report, &h->err);
    for (uint32_t i = 0; status == QN_OK && i < report.ranks && i < 16; ++i)
        h->ranks[i] = *report.rank[i];
    if (status == QN_OK)
        h->report = report;
    for (uint32_t i = 0; status == QN_OK && i < report.workers; ++i)
        h->at_work += report.worker[i]->grains > 0;
    if (status == QN_OK) {
        h->repeated = report.steps_repeated;
        h->resumed_from = report.resumed_from;
        status = qn_train_model(h->train, &model, &h->err);
    }
    if (status == QN_OK) {
        snprintf(h->digest, 65, "%s", qn_model_digest(model));
        qn_model_free(model);
    }
    qn_train_close(h->train);
    return status;
}

#endif
