/* Sums of user kernels against sums that are known, and extremes whatever the order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "userkernel/execution/user_extreme.h"
#include "userkernel/execution/user_sums.h"

static double sum_of(qn__user_type type, const void *values, int64_t count, int *fits) {
    const qn__user_part part = {.use = QN__USER_SUM, .type = type};
    qn__user_total total = {.count = 0};
    uint64_t value = 0;
    double d = 0;
    float f = 0;
    assert_int_equal(qn__user_total_add(&total, &part, values, NULL, 0, count), -1);
    *fits = qn__user_total_value(&total, &part, &value);
    memcpy(&d, &value, sizeof d);
    memcpy(&f, &value, sizeof f);
    return type == QN__USER_F32 ? (double)f : d;
}

/* The expected sums are decimal texts' values, by hand. */
static void test_reals(void **state) {
    int fits;
    (void)state;
    const double cancels[] = {1e300, 1, -1e300, 0x1p-1074};
    assert_true(sum_of(QN__USER_F64, cancels, 4, &fits) == 1 && fits);
    const double small[] = {0x1p-1074, 0x1p-1074, 0x1p-1074, -0.0};
    assert_true(sum_of(QN__USER_F64, small, 4, &fits) == 0x3p-1074 && fits);
    const double tie[] = {0x1p53, 1}, above[] = {0x1p53, 1, 0x1p-1074}, odd[] = {0x1p53 + 2, 1};
    assert_true(sum_of(QN__USER_F64, tie, 2, &fits) == 0x1p53);
    assert_true(sum_of(QN__USER_F64, above, 3, &fits) == 0x1p53 + 2);
    assert_true(sum_of(QN__USER_F64, odd, 2, &fits) == 0x1p53 + 4);
    const double huge[] = {0x1.fffffffffffffp1023, 0x1p970},
                 most[] = {0x1.fffffffffffffp1023, 0x1p969};
    sum_of(QN__USER_F64, huge, 2, &fits);
    assert_false(fits);
    assert_true(sum_of(QN__USER_F64, most, 2, &fits) == 0x1.fffffffffffffp1023 && fits);
    const float floats[] = {0x1p24f, 1, 0x1p-149f}, less[] = {-0x1p-149f, -0x1p-149f};
    assert_true(sum_of(QN__USER_F32, floats, 3, &fits) == 0x1p24 + 2 && fits);
    assert_true(sum_of(QN__USER_F32, less, 2, &fits) == -0x1p-148 && fits);
    const float many[] = {0x1.fffffep127f, 0x1.fffffep127f};
    sum_of(QN__USER_F32, many, 2, &fits);
    assert_false(fits);
    assert_true(sum_of(QN__USER_F64, many, 0, &fits) == 0 && fits);
}

static uint64_t whole(qn__user_type type, const void *values, int64_t count, int *fits) {
    const qn__user_part part = {.use = QN__USER_SUM, .type = type};
    qn__user_total total = {.count = 0};
    uint64_t value = 0;
    qn__user_total_add(&total, &part, values, NULL, 0, count);
    *fits = qn__user_total_value(&total, &part, &value);
    return value;
}

static void test_integers(void **state) {
    int fits;
    (void)state;
    const int64_t ends[] = {INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN, 7};
    assert_true((int64_t)whole(QN__USER_I64, ends, 5, &fits) == 5 && fits);
    assert_true((int64_t)whole(QN__USER_I64, ends + 3, 1, &fits) == INT64_MIN && fits);
    whole(QN__USER_I64, ends, 2, &fits);
    assert_false(fits);
    whole(QN__USER_I64, ends + 2, 2, &fits);
    assert_false(fits);
    const uint64_t plain[] = {UINT64_MAX, 1};
    assert_true(whole(QN__USER_U64, plain, 1, &fits) == UINT64_MAX && fits);
    whole(QN__USER_U64, plain, 2, &fits);
    assert_false(fits);
}

static void test_infinite(void **state) {
    (void)state;
    const qn__user_part part = {.use = QN__USER_SUM, .type = QN__USER_F32};
    const float values[] = {1, 2, -__builtin_inff(), 3};
    qn__user_total total = {.count = 0};
    assert_int_equal(qn__user_total_add(&total, &part, values, NULL, 0, 4), 2);
}

/* In two parts, in either order. */
static void check_extreme(qn__user_use use, const float *values, const uint8_t *took, int64_t count,
                          float value, int64_t item, uint64_t taken) {
    const qn__user_part part = {.use = use, .type = QN__USER_F32};
    for (int64_t cut = 0; cut <= count; cut++)
        for (int swap = 0; swap < 2; swap++) {
            qn__user_total a = {.count = 0}, b = {.count = 0};
            uint64_t bytes = 0;
            float f;
            qn__user_total_add(&a, &part, values, took, 0, cut);
            qn__user_total_add(&b, &part, values + cut, took + cut, cut, count - cut);
            qn__user_total *first = swap ? &b : &a;
            qn__user_total_merge(first, &part, swap ? &a : &b);
            assert_true(qn__user_total_value(first, &part, &bytes));
            memcpy(&f, &bytes, sizeof f);
            assert_memory_equal(&f, &value, sizeof f);
            assert_true(first->item == item && first->count == taken);
        }
}

static void test_extremes(void **state) {
    (void)state;
    const float values[] = {9, 0.0f, -0.0f, 3, 9, -5};
    const uint8_t all[] = {1, 1, 1, 1, 1, 1}, some[] = {0, 1, 1, 1, 1, 0};
    check_extreme(QN__USER_MIN, values, all, 6, -5, 5, 6);
    check_extreme(QN__USER_MAX, values, all, 6, 9, 0, 6);
    check_extreme(QN__USER_MIN, values, some, 6, 0.0f, 1, 4); /* the first of equal zeros */
    check_extreme(QN__USER_MAX, values, some, 6, 9, 4, 4);
}

#define STORE(type) ((type *)values)[i] = (type)from[i]

static void store(qn__user_type type, const int64_t *from, int64_t count, void *values) {
    for (int64_t i = 0; i < count; i++)
        switch (type) {
        case QN__USER_I8:
        case QN__USER_U8:
            STORE(int8_t);
            break;
        case QN__USER_I16:
        case QN__USER_U16:
            STORE(int16_t);
            break;
        case QN__USER_I32:
        case QN__USER_U32:
            STORE(int32_t);
            break;
        case QN__USER_I64:
        case QN__USER_U64:
            STORE(int64_t);
            break;
        case QN__USER_F32:
            STORE(float);
            break;
        default:
            STORE(double);
        }
}

/* Every type and length, with many equal values, beside a plain loop over integers. */
static void test_extremes_of_types(void **state) {
    enum { MOST = 70 };
    static const qn__user_type types[] = {QN__USER_I8,  QN__USER_I16, QN__USER_I32, QN__USER_I64,
                                          QN__USER_U8,  QN__USER_U16, QN__USER_U32, QN__USER_U64,
                                          QN__USER_F32, QN__USER_F64};
    uint32_t random = 5;
    (void)state;
    for (size_t t = 0; t < 2 * sizeof types / sizeof *types; t++)
        for (int64_t count = 0; count <= MOST; count++) {
            const qn__user_part part = {.use = t % 2 ? QN__USER_MAX : QN__USER_MIN,
                                        .type = types[t / 2]};
            const int64_t low = t / 2 >= 4 && t / 2 < 8 ? 0 : -50; /* without a sign */
            int64_t from[MOST], best = -1;
            uint64_t values[MOST], taken = 0, counted;
            uint8_t took[MOST];
            for (int64_t i = 0; i < count; i++) {
                random = random * 1664525u + 1013904223u;
                from[i] = low + random % 101;
                took[i] = count % 3 == 0 || (random >> 20) % 4 > 0;
                taken += took[i];
                if (took[i] && (best < 0 || (t % 2 ? from[i] > from[best] : from[i] < from[best])))
                    best = i;
            }
            store(part.type, from, count, values);
            assert_int_equal(qn__user_extreme_of(&part, values, took, count, &counted), best);
            assert_true(counted == taken);
        }
}

/* Bins of threads and ranks as words that are added, in two halves. */
static void check_bins(qn__user_use use, qn__user_type type, const void *values, uint32_t size,
                       const uint64_t wanted[3]) {
    static const int32_t to[] = {0, 2, -1, 2, 0, 0};
    const qn__user_source source = {.parts = 1, .part = {{.use = use, .type = type, .bins = 3}}};
    const qn__user_part *part = &source.part[0];
    qn__user_total a[QN__USER_PARTS] = {{.count = 0}}, b[QN__USER_PARTS] = {{.count = 0}};
    static int64_t words[3 * QN__EXACT_LIMBS];
    assert_int_equal(qn__user_totals_open(&source, a, NULL), QN_OK);
    assert_int_equal(qn__user_totals_open(&source, b, NULL), QN_OK);
    for (int cut = 0; cut <= 6; cut++) {
        memset(words, 0, sizeof words);
        qn__user_totals_clear(&source, a);
        qn__user_totals_clear(&source, b);
        assert_int_equal(qn__user_total_add(a, part, values, to, 0, cut), -1);
        assert_int_equal(qn__user_total_add(b, part, (const char *)values + (size_t)cut * size,
                                            to + cut, cut, 6 - cut),
                         -1);
        assert_true(qn__user_total_words(part) <= sizeof words / sizeof *words);
        qn__user_total_put(a, part, words);
        qn__user_total_put(b, part, words);
        qn__user_totals_clear(&source, a);
        qn__user_total_take(a, part, words);
        for (uint32_t i = 0; i < 3; i++) {
            uint64_t value = 0;
            assert_true(qn__user_bins_value(a->bins, part, i, &value));
            assert_true(value == wanted[i]);
        }
    }
    qn__user_totals_close(a);
    qn__user_totals_close(b);
}

static void test_bins(void **state) {
    const double reals[] = {1e300, 0.5, 7, 0.25, -1e300, -1};
    const int64_t integers[] = {INT64_MAX, -5, 9, -6, INT64_MIN, -3};
    const uint64_t plain[] = {UINT64_MAX - 8, 1, 9, 2, 3, 5};
    const uint8_t counts[] = {1, 1, 1, 0, 0, 7};
    (void)state;
    check_bins(QN__USER_SUM, QN__USER_F64, reals, 8,
               (uint64_t[]){0xBFF0000000000000, 0, 0x3FE8000000000000});
    check_bins(QN__USER_SUM, QN__USER_I64, integers, 8,
               (uint64_t[]){(uint64_t)-4, 0, (uint64_t)-11});
    check_bins(QN__USER_SUM, QN__USER_U64, plain, 8, (uint64_t[]){UINT64_MAX, 0, 3});
    check_bins(QN__USER_COUNT, QN__USER_U8, counts, 1, (uint64_t[]){2, 0, 1});
    const qn__user_part part = {.use = QN__USER_SUM, .type = QN__USER_F64, .bins = 3};
    const double infinite[] = {1, __builtin_inf(), __builtin_inf()};
    const int32_t to[] = {0, -1, 1}; /* the second is in no bin */
    qn__user_total none = {.count = 0};
    assert_int_equal(qn__user_total_add(&none, &part, infinite, to, 0, 3), 2);
}

/* Extremes of bins: items in two parts, in any order, and between ranks. */
static void test_bins_of_extremes(void **state) {
    const float values[] = {2, -0.0f, 0.0f, 7, 2, -9};
    const int32_t to[] = {0, 1, 1, -1, 0, 0};
    const struct {
        qn__user_use use;
        uint64_t wanted[3];
    } cases[] = {{QN__USER_MIN, {0xC1100000, 0x80000000, 0x7F800000}},
                 {QN__USER_MAX, {0x40000000, 0x80000000, 0xFF800000}},
                 {QN__USER_ARGMIN, {105, 101, UINT64_MAX}},
                 {QN__USER_ARGMAX, {100, 101, UINT64_MAX}}};
    (void)state;
    for (int c = 0; c < 8; c++) {
        const int swap = c % 2;
        const qn__user_source source = {
            .parts = 1, .part = {{.use = cases[c / 2].use, .type = QN__USER_F32, .bins = 3}}};
        const qn__user_part *part = &source.part[0];
        qn__user_total total[2][QN__USER_PARTS] = {{{.count = 0}}, {{.count = 0}}};
        int64_t places[6] = {0};
        for (int k = 0; k < 2; k++)
            assert_int_equal(qn__user_totals_open(&source, total[k], NULL), QN_OK);
        qn__user_total_add(total[swap], part, values, to, 100, 2);
        qn__user_total_add(total[!swap], part, values + 2, to + 2, 102, 4);
        qn__user_bins_tell(total[0]->bins, part, places);
        qn__user_bins_hear(total[1]->bins, part, places);
        qn__user_bins_tell(total[1]->bins, part, places);
        qn__user_totals_clear(&source, total[0]);
        qn__user_bins_hear(total[0]->bins, part, places);
        for (uint32_t i = 0; i < 3; i++) {
            uint64_t value = 0;
            assert_true(qn__user_bins_value(total[0]->bins, part, i, &value));
            assert_true(value == cases[c / 2].wanted[i]);
        }
        for (int k = 0; k < 2; k++)
            qn__user_totals_close(total[k]);
    }
}

/* Bins whose sums do not fit. */
static void test_bins_overflow(void **state) {
    const int64_t values[] = {INT64_MAX, 1, INT64_MIN, -1, 5, UINT32_MAX};
    const int32_t to[] = {0, 0, 1, 1, 2, 2};
    const qn__user_source source = {
        .parts = 1, .part = {{.use = QN__USER_SUM, .type = QN__USER_I64, .bins = 3}}};
    qn__user_total total[QN__USER_PARTS] = {{.count = 0}};
    uint64_t value = 0;
    (void)state;
    assert_int_equal(qn__user_totals_open(&source, total, NULL), QN_OK);
    qn__user_total_add(total, &source.part[0], values, to, 0, 6);
    assert_false(qn__user_bins_value(total->bins, &source.part[0], 0, &value));
    assert_false(qn__user_bins_value(total->bins, &source.part[0], 1, &value));
    assert_true(qn__user_bins_value(total->bins, &source.part[0], 2, &value));
    assert_true(value == (uint64_t)UINT32_MAX + 5);
    qn__user_totals_close(total);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_infinite),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_extremes_of_types),
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_bins_of_extremes),
        cmocka_unit_test(test_bins_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
