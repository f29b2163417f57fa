/* The order of items: a bijection for every n, equal to values computed in Python from
 * docs/exactness.md 4.3, and without a correlation of neighbours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "num/permutation.h"
#include "num/philox.h"
#include <math.h>
#include <string.h>

static void check_bijection(uint64_t n, uint64_t seed, uint32_t epoch, uint8_t *seen) {
    qn__permutation p;
    qn__permutation_begin(&p, n, seed, QN__PURPOSE_ORDER, epoch);
    memset(seen, 0, n);
    for (uint64_t i = 0; i < n; ++i) {
        const uint64_t image = qn__permutation_at(&p, i);
        if (image >= n || seen[image]++)
            fail_msg("n %llu, seed %llu: position %llu has the image %llu, %s",
                     (unsigned long long)n, (unsigned long long)seed, (unsigned long long)i,
                     (unsigned long long)image,
                     image >= n ? "which is too great" : "as another one has");
    }
}

/* Images of a run are those of its positions, and are found again. */
static void test_runs(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 2, 5, 16, 17, 100, 60000, ((uint64_t)1 << 33) + 7};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
        for (uint32_t count = 1; count <= 50 && count <= sizes[s]; ++count) {
            qn__permutation p;
            uint64_t image[51], last = sizes[s] - count;
            qn__permutation_begin(&p, sizes[s], s, QN__PURPOSE_ORDER, count);
            for (uint64_t first = 0; first <= last; first += 1 + last / 7) {
                image[count] = 77;
                qn__permutation_run(&p, first, count, image);
                for (uint32_t i = 0; i < count; ++i)
                    assert_int_equal(image[i], qn__permutation_at(&p, first + i));
                assert_int_equal(image[count], 77);
                qn__permutation_find(&p, first, count, image);
                for (uint32_t i = 0; i < count; ++i) {
                    assert_true(image[i] < sizes[s]);
                    assert_int_equal(qn__permutation_at(&p, image[i]), first + i);
                }
                assert_int_equal(image[count], 77);
            }
        }
}

static void test_bijection_for_small_n(void **state) {
    (void)state;
    static uint8_t seen[2000];
    for (uint64_t n = 1; n <= 2000; ++n)
        check_bijection(n, n * 0x9E3779B97F4A7C15u, (uint32_t)n % 3, seen);
}

static void test_bijection_around_powers_of_two(void **state) {
    (void)state;
    enum { MOST = (1 << 17) + 1 };
    uint8_t *seen = malloc(MOST);
    assert_non_null(seen);
    for (int bits = 12; bits <= 17; ++bits)
        for (int beside = -1; beside <= 1; ++beside)
            check_bijection(((uint64_t)1 << bits) + (uint64_t)(int64_t)beside, 3, 1, seen);
    free(seen);
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* n is too large to mark every image: those of positions at both ends, in the middle and spread out
 * are all different and in range. */
static void test_large_n_sampled(void **state) {
    (void)state;
    enum { SAMPLE = 4000 };
    static const uint64_t sizes[] = {((uint64_t)1 << 31) - 1, ((uint64_t)1 << 32) + 1,
                                     ((uint64_t)1 << 33) + 1, 1000000000039u,
                                     ((uint64_t)1 << 47) + 1, (uint64_t)1 << 48};
    static uint64_t images[4 * SAMPLE];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        const uint64_t n = sizes[s];
        qn__permutation p;
        qn__permutation_begin(&p, n, 11, QN__PURPOSE_SPLIT, 0);
        for (uint64_t i = 0; i < SAMPLE; ++i) {
            images[i] = qn__permutation_at(&p, i);
            images[SAMPLE + i] = qn__permutation_at(&p, n - 1 - i);
            images[2 * SAMPLE + i] = qn__permutation_at(&p, n / 2 + i);
            images[3 * SAMPLE + i] = qn__permutation_at(&p, SAMPLE + n / (3 * SAMPLE) * i);
        }
        qsort(images, 4 * SAMPLE, sizeof *images, by_value);
        for (size_t i = 1; i < 4 * SAMPLE; ++i)
            assert_true(images[i - 1] < images[i]);
        assert_true(images[4 * SAMPLE - 1] < n);
    }
}

static void test_known_values(void **state) {
    (void)state;
    static const uint64_t ten[2][10] = {{2, 7, 5, 0, 9, 3, 4, 1, 6, 8},
                                        {9, 1, 7, 0, 8, 6, 3, 4, 5, 2}};
    static const struct {
        uint64_t n, seed;
        uint32_t purpose, epoch;
        uint64_t images[4]; /* of 0, 1, n / 2, n - 1 */
    } known[] = {
        {60000, 7, 2, 3, {44887, 42508, 36280, 30659}},
        {281474976710656u,
         0x123456789abcdef0u,
         4,
         0,
         {23487821982714u, 21118894552574u, 10638035738226u, 152668796993574u}},
        {8589934593u,
         UINT64_MAX,
         2,
         UINT32_MAX,
         {6066176403u, 5712520250u, 2891432118u, 43823055u}},
    };
    qn__permutation p;
    for (uint32_t epoch = 0; epoch < 2; ++epoch) {
        qn__permutation_begin(&p, 10, 1, 2, epoch);
        for (uint64_t i = 0; i < 10; ++i)
            assert_int_equal(qn__permutation_at(&p, i), ten[epoch][i]);
    }
    for (size_t k = 0; k < sizeof known / sizeof *known; ++k) {
        const uint64_t n = known[k].n, at[4] = {0, 1, n / 2, n - 1};
        qn__permutation_begin(&p, n, known[k].seed, known[k].purpose, known[k].epoch);
        for (int i = 0; i < 4; ++i)
            assert_true(qn__permutation_at(&p, at[i]) == known[k].images[i]);
    }
}

/* The correlation of position and image over 10,000 items has the size of a random order's,
 * 1/sqrt(n); the limit is 4 times that. */
static void test_no_correlation(void **state) {
    (void)state;
    const uint64_t n = 10000;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        qn__permutation p;
        const double mean = (double)(n - 1) / 2;
        double products = 0, squares = 0, neighbours = 0;
        qn__permutation_begin(&p, n, seed, QN__PURPOSE_ORDER, 0);
        for (uint64_t i = 0; i < n; ++i) {
            const double x = (double)i - mean, y = (double)qn__permutation_at(&p, i) - mean;
            const double z = (double)qn__permutation_at(&p, (i + 1) % n) - mean;
            products += x * y;
            neighbours += y * z;
            squares += x * x;
        }
        assert_true(fabs(products / squares) < 0.04);
        assert_true(fabs(neighbours / squares) < 0.04);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bijection_for_small_n),
        cmocka_unit_test(test_bijection_around_powers_of_two),
        cmocka_unit_test(test_large_n_sampled),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_no_correlation),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
