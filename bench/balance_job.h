/* The job of the balance benchmarks: a small network for simulated devices, MNIST's usual network
 * for the CPU. */
#ifndef QN_BENCH_BALANCE_JOB_H
#define QN_BENCH_BALANCE_JOB_H

#include "base/memory.h"
#include "num/optimise.h"
#include "num/sums.h"
#include "team/team_state.h"
#include <string.h>

enum { ROWS = 8192 };

typedef struct job {
    qn__layer layer[2];
    qn__program program;
    qn__feed feed;
    qn__state state;
    qn__update update;
} job;

static inline void make_job(job *j, int real, uint32_t grains) {
    static uint8_t values[(size_t)ROWS * 784];
    static int32_t labels[ROWS];
    const uint32_t features = real ? 784 : 4, hidden = real ? 500 : 4, outputs = real ? 10 : 4;
    const uint32_t grain = real ? 32 : 8;
    memset(j, 0, sizeof *j);
    for (size_t i = 0; i < sizeof values; ++i)
        values[i] = (uint8_t)(i * 2654435761u >> 24);
    for (int i = 0; i < ROWS; ++i)
        labels[i] = i % 4;
    j->layer[0] = qn__layer_flat(features, hidden, QN__ACT_TANH, 0);
    j->layer[1] = qn__layer_flat(hidden, outputs, QN__ACT_SOFTMAX, j->layer[0].biases + hidden);
    j->program = (qn__program){.layers = 2,
                               .layer = j->layer,
                               .parameters = j->layer[1].biases + outputs,
                               .scale = QN__SCALE_UNIT,
                               .batch = grains * grain,
                               .grain = grain,
                               .seed = 1,
                               .gradient_scale = 44,
                               .partial_limit = qn__partial_limit(grains)};
    j->feed = (qn__feed){.type = QN__ELEMENT_U8,
                         .features = features,
                         .items = ROWS,
                         .values = values,
                         .labels = labels};
    j->state.parameters = qn__alloc(j->program.parameters, sizeof(float), NULL);
    qn__adam_powers powers = {1, 1};
    qn__update_begin(&j->program, 0.01f, j->program.batch, &powers, &j->update);
}

#endif
