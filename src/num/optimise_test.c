/* The optimisers against exact rational arithmetic: tests/optimise_vectors.py computed every number
 * of optimise_vectors.h with Python's fractions, and rounded each operation once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/optimise.h"
#include "num/optimise_vectors.h"
#include <string.h>

static float of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void same(const char *what, size_t vector, float got, uint32_t want) {
    uint32_t bits;
    memcpy(&bits, &got, sizeof bits);
    if (bits != want)
        fail_msg("vector %zu: %s is %a, exact arithmetic gives %a", vector, what, (double)got,
                 (double)of(want));
}

static void test_updates(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof update_vectors / sizeof *update_vectors; ++i) {
        const update_vector *v = &update_vectors[i];
        const qn__program program = {.optimizer = v->optimizer,
                                     .momentum = of(v->momentum),
                                     .beta1 = of(v->beta1),
                                     .beta2 = of(v->beta2),
                                     .epsilon = of(v->epsilon),
                                     .weight_decay = of(v->decay)};
        const qn__update update = {of(v->rate), of(v->gradient), of(v->a), of(v->r), 1, 0, 0};
        float w = of(v->before[0]), s0 = of(v->before[1]), s1 = of(v->before[2]);
        const uint32_t slots = qn__optimizer_slots(v->optimizer);
        qn__update_one(&program, &update, v->is_weight, v->sum, &w, slots > 0 ? &s0 : NULL,
                       slots > 1 ? &s1 : NULL);
        same("the parameter", i, w, v->after[0]);
        same("the first state", i, s0, v->after[1]);
        same("the second state", i, s1, v->after[2]);
    }
}

static void test_numbers_of_a_step(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof begin_vectors / sizeof *begin_vectors; ++i) {
        const begin_vector *v = &begin_vectors[i];
        const qn__program program = {
            .beta1 = of(v->beta1), .beta2 = of(v->beta2), .gradient_scale = v->unit};
        qn__adam_powers powers = {of(v->before[0]), of(v->before[1])};
        qn__update update;
        qn__update_begin(&program, of(v->rate), v->items, &powers, &update);
        same("P1", i, powers.p1, v->after[0]);
        same("P2", i, powers.p2, v->after[1]);
        same("the rate", i, update.rate, v->rate);
        same("c", i, update.gradient, v->gradient);
        same("A", i, update.adam_a, v->a);
        same("R", i, update.adam_r, v->r);
    }
}

static void test_slots(void **state) {
    (void)state;
    assert_int_equal(qn__optimizer_slots(QN__OPT_SGD), 0);
    assert_int_equal(qn__optimizer_slots(QN__OPT_MOMENTUM), 1);
    assert_int_equal(qn__optimizer_slots(QN__OPT_ADAM), 2);
    assert_int_equal(qn__optimizer_slots(QN__OPT_ADAMW), 2);
    assert_int_equal(qn__optimizer_slots(QN__OPT_NESTEROV), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_numbers_of_a_step),
        cmocka_unit_test(test_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
