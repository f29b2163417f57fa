/* Gradients of one dense layer with few outputs beside the reference, grain by grain: in each
 * instruction set, for inputs in place and copied, and where a partial leaves its range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/cpu_isa.h"
#include "device/cpu/worker/cpu_worker.h"
#include "device/cpu/worker/cpu_table.h"
#include "layer/reference.h"
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 1100, FEATURES = 67, PARAMETERS = 4 * (FEATURES + 1) };

static float values[ITEMS * FEATURES], means[80], inverses[80], parameter[PARAMETERS];
static float weights[ITEMS];
static uint64_t rows[ITEMS];
static int32_t labels[ITEMS];

static uint32_t word(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float number(void) { return (float)(int32_t)word() * 0x1p-31f; }

static void fill(void) {
    for (size_t i = 0; i < ITEMS * FEATURES; ++i)
        values[i] = 3.0f * number();
    for (size_t i = 0; i < FEATURES; ++i) {
        means[i] = number();
        inverses[i] = 1.0f + 0.5f * number();
    }
    for (size_t i = 0; i < PARAMETERS; ++i)
        parameter[i] = 0.5f * number();
    for (size_t i = 0; i < ITEMS; ++i) {
        weights[i] = 1.0f + 0.5f * number();
        rows[i] = ITEMS - 1 - i;
        labels[i] = (int32_t)(word() % 2);
    }
}

typedef struct result {
    int64_t sums[PARAMETERS];
    qn__tally tally;
    qn_status status;
} result;

/* What the reference says of the positions first .. first + items - 1. */
static void expect(const qn__program *p, const qn__feed *feed, uint64_t first, uint32_t items,
                   result *want) {
    qn__reference *r = NULL;
    assert_int_equal(qn__reference_create(p, &r, NULL), QN_OK);
    memset(want, 0, sizeof *want);
    for (uint32_t g = 0; g < items; g += p->grain) {
        qn__reference_grain_begin(r);
        for (uint32_t i = g; i < items && i < g + p->grain; ++i) {
            const uint64_t n = first + i, row = feed->rows ? feed->rows[n] : n;
            const qn__reference_item item = {.type = QN__ELEMENT_F32,
                                             .values = values + row * feed->features,
                                             .number = n,
                                             .label = (uint32_t)labels[n],
                                             .weight = feed->weights ? feed->weights + n : NULL};
            qn__reference_grain_item(r, parameter, &item, 1);
        }
        if (qn__reference_grain_end(r, want->sums, &want->tally) != QN__GRAIN_FINE)
            want->status = QN_NUMERIC;
    }
    qn__reference_destroy(r);
}

static void compute(const qn__program *p, const qn__feed *feed, const char *isa, int threads,
                    uint64_t first, uint32_t items, result *got) {
    const qn_compute own = {.size = sizeof own, .threads = threads, .isa = isa};
    const qn__state state = {.parameters = parameter};
    const qn__batch batch = {.feed = feed, .first = first, .items = items, .epoch = 1};
    qn__worker *w = NULL;
    memset(got, 0, sizeof *got);
    assert_int_equal(qn__cpu_device.open(0, &own, p, &w, NULL), QN_OK);
    assert_int_equal(qn__cpu_device.load(w, &state, NULL), QN_OK);
    assert_true(qn__cpu_is_narrow(w, &batch));
    const qn__job job = {.kind = QN__JOB_TRAIN, .batch = &batch};
    const uint32_t grains = (items - 1) / p->grain + 1;
    got->status = qn__cpu_device.run(w, &job, 0, grains, &(qn__outlet){0}, NULL);
    if (got->status == QN_OK)
        assert_int_equal(qn__cpu_device.collect(w, got->sums, &got->tally, NULL), QN_OK);
    qn__cpu_device.close(w);
}

static void compare(const qn__program *p, const qn__feed *feed, uint64_t first, uint32_t items) {
    const qn__cpu_isa *isa;
    result want, got;
    expect(p, feed, first, items, &want);
    for (uint32_t i = 0; (isa = qn__cpu_isa_at(i)) != NULL; ++i) {
        /* Only once when instruction sets share the float kernels. */
        if (!isa->kernels || !isa->here() || strcmp(isa->kernels->name, isa->name) != 0)
            continue;
        compute(p, feed, isa->name, 1 + (int)i % 2, first, items, &got);
        assert_int_equal(got.status, want.status);
        if (want.status != QN_OK)
            continue;
        assert_memory_equal(got.sums, want.sums, p->parameters * sizeof *want.sums);
        assert_memory_equal(&got.tally, &want.tally, sizeof want.tally);
    }
}

static void check(uint32_t features, uint32_t outputs, uint32_t grain, uint32_t items,
                  uint64_t first, qn__scale scale, float limit) {
    const qn__activation last = outputs == 1 ? QN__ACT_SIGMOID : QN__ACT_SOFTMAX;
    const qn__layer layer = qn__layer_flat(features, outputs, last, 0);
    const qn__feed feed = {.type = QN__ELEMENT_F32,
                           .features = features,
                           .items = ITEMS,
                           .values = values,
                           .rows = grain == 5 ? rows : NULL,
                           .labels = labels,
                           .weights = outputs > 2 ? weights : NULL};
    const qn__program program = {.layers = 1,
                                 .layer = &layer,
                                 .parameters = (uint64_t)outputs * (features + 1),
                                 .loss = outputs == 1   ? QN__LOSS_BINARY
                                         : outputs == 3 ? QN__LOSS_MSE
                                                        : QN__LOSS_CROSS_ENTROPY,
                                 .scale = scale,
                                 .mean = means,
                                 .inverse = inverses,
                                 .batch = ITEMS,
                                 .grain = grain,
                                 .gradient_scale = 32,
                                 .partial_limit = limit};
    compare(&program, &feed, first, items);
}

static void test_the_reference_agrees(void **state) {
    (void)state;
    fill();
    for (uint32_t outputs = 1; outputs <= 4; ++outputs) {
        check(50, outputs, 32, 600, 0, QN__SCALE_NONE, 0x1p62f);
        check(FEATURES, outputs, 5, 521, 0, QN__SCALE_NONE, 0x1p62f);
    }
    check(1, 1, 32, ITEMS, 0, QN__SCALE_NONE, 0x1p62f); /* up to the last value of the table */
    check(3, 2, 100, 1000, 100, QN__SCALE_STANDARD, 0x1p62f);
    check(18, 1, 1, 513, 7, QN__SCALE_STANDARD, 0x1p62f);
}

static void test_a_partial_out_of_range(void **state) {
    (void)state;
    fill();
    check(50, 1, 32, 600, 0, QN__SCALE_NONE, 0x1p30f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_reference_agrees),
                                       cmocka_unit_test(test_a_partial_out_of_range)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
