/* What the benchmarks of single layers share: the program, its memory, and how they fail. A file
 * defines LAYER_BENCH, its name, and SCALE before it includes this one. */
#ifndef BENCH_LAYER_BENCH_H
#define BENCH_LAYER_BENCH_H

#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_table.h"
#include "device/cpu/worker/cpu_worker.h"
#include "layer/layer.h"
#include "model/network/network.h"
#include "model/recipe/initial.h"
#include "num/sums.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static qn__layer layer[QN__MAX_LAYERS];
static qn__program program = {.layer = layer,
                              .loss = QN__LOSS_CROSS_ENTROPY,
                              .optimizer = QN__OPT_SGD,
                              .scale = QN__SCALE_UNIT,
                              .gradient_scale = SCALE};

static void stop(const char *what) {
    fprintf(stderr, "%s: %s\n", LAYER_BENCH, what);
    exit(1);
}

static void check(qn_status status, const qn_error *err) {
    if (status != QN_OK)
        stop(err->what);
}

static void *buffer(size_t bytes) {
    void *at = calloc(bytes, 1);
    if (!at)
        stop("no memory");
    return at;
}

#endif
