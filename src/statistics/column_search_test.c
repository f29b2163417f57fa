/* Counting passes find the quantiles and histograms that the order of all values gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "statistics/column_places.h"
#include "statistics/column_search.h"
#include <math.h>
#include <string.h>

enum { ITEMS = 3000, BINS = 50, QUANTILES = 7, PASSES = 5 };

static const double quantiles[QUANTILES] = {0.5, 0, 0x1p-24, 0.31, 0.310001, 0.999, 1};
static const qn__column_task task = {
    .quantiles = quantiles, .quantile_count = QUANTILES, .groups = 1};

typedef struct found {
    double quantile[QUANTILES], edge[BINS + 1];
    uint64_t histogram[BINS];
    qn__column_numbers numbers;
    uint32_t bins;
} found;

static void describe(const float *values, uint64_t count, found *out) {
    float *own = malloc(ITEMS * sizeof *own);
    qn__column_space buffer = {.order = qn__order_create(ITEMS, NULL)};
    assert_non_null(own);
    assert_non_null(buffer.order);
    memcpy(own, values, count * sizeof *own);
    *out = (found){.bins = BINS};
    out->numbers.quantiles = out->quantile;
    out->numbers.histogram = out->histogram;
    qn__column_describe(&task, own, count, &buffer, &out->numbers, out->edge, &out->bins);
    qn__order_free(buffer.order);
    free(own);
}

/* A pass as a device makes it. */
static void count(const float *values, uint64_t items, const uint32_t *key, uint32_t keys,
                  uint64_t *counted) {
    memset(counted, 0, (QN__SEARCH_KEYS + 1) * sizeof *counted);
    for (uint64_t i = 0; i < items; i++) {
        uint32_t place = 0;
        while (values[i] == values[i] && place < keys && key[place] <= qn__order_key(values[i]))
            place++;
        counted[place] += values[i] == values[i];
    }
}

static void compare(const float *values, uint64_t items, int bytes) {
    static uint32_t key[QN__SEARCH_KEYS];
    static uint64_t counted[QN__SEARCH_KEYS + 1];
    found want, got = {.bins = 0};
    qn__column_search s;
    uint32_t passes = 0;
    describe(values, items, &want);
    memcpy(got.quantile, want.quantile, want.numbers.count ? 0 : sizeof got.quantile);
    got.numbers.quantiles = got.quantile;
    qn__column_search_begin(&s, &task, &want.numbers, bytes, want.edge, want.bins);
    for (; s.unsettled; passes++) {
        const uint32_t keys = qn__column_search_keys(&s, key);
        assert_true(keys > 0 && passes < PASSES);
        count(values, items, key, keys, counted);
        qn__column_search_count(&s, counted, got.histogram);
    }
    qn__column_search_end(&s, &task, &got.numbers);
    assert_memory_equal(got.quantile, want.quantile, sizeof got.quantile);
    if (want.bins > 1)
        assert_memory_equal(got.histogram, want.histogram, sizeof got.histogram);
}

static void test_same_results(void **state) {
    static float values[ITEMS];
    uint64_t z = 3;
    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        for (int i = 0; i < ITEMS; i++) {
            z = z * 6364136223846793005u + 1442695040888963407u;
            const float x = (float)(int32_t)(z >> 32);
            values[i] = kind == 0   ? ldexpf(x, (int)(z >> 20 & 127) - 128)
                        : kind == 1 ? (float)(z >> 56)
                        : kind == 2 ? (z >> 60 ? ldexpf(x, -149) : NAN)
                        : kind == 3 ? 7.5f
                        : kind == 4 ? (float)(i % 2) - 0.5f
                                    : NAN;
        }
        compare(values, ITEMS, kind == 1);
        compare(values, 2, kind == 1);
        compare(values, 1, kind == 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
