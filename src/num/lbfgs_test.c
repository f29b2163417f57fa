/* L-BFGS on functions whose minima are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/lbfgs.h"

#include <math.h>
#include <string.h>

enum { N = 30 };

typedef struct function {
    int calls;
    int fails_at; /* the call that leaves the range; 0: none */
    int alone;    /* 1: all calls but the first leave it */
} function;

/* sum of k * (x[k] - k / 8)^2 / 2 for k from 1: its minimum is 0. */
static qn_status quadratic(void *user, const float *point, double *value, double *gradient,
                           qn_error *err) {
    function *f = user;
    *value = 0;
    for (int k = 0; k < N; ++k) {
        const double off = (double)point[k] - (k + 1) / 8.0;
        *value += 0.5 * (k + 1) * off * off;
        gradient[k] = (k + 1) * off;
    }
    ++f->calls;
    return f->calls == f->fails_at || (f->alone && f->calls > 1)
               ? qn__fail(err, QN_NUMERIC, "too large")
               : QN_OK;
}

typedef struct fixture {
    qn__lbfgs of;
    uint8_t penal[N];
    float trial[N];
    function f;
} fixture;

static void begin(fixture *x) {
    memset(x, 0, sizeof *x);
    memset(x->penal, 1, N - 1);
    assert_int_equal(qn__lbfgs_create(&x->of, N, x->penal, x->trial, NULL), QN_OK);
    x->of.tolerance = 1e-5; /* a unit in the last place makes 4e-6 */
}

/* The number of iterations to the end. */
static int minimise(fixture *x) {
    int iterations = 0, moved = 1;
    assert_int_equal(qn__lbfgs_begin(&x->of, quadratic, &x->f, NULL), QN_OK);
    while (moved && !qn__lbfgs_converged(&x->of) && iterations < 200) {
        assert_int_equal(qn__lbfgs_iterate(&x->of, quadratic, &x->f, &moved, NULL), QN_OK);
        iterations += moved;
    }
    return iterations;
}

static void test_minimum(void **state) {
    (void)state;
    fixture x;
    begin(&x);
    const int iterations = minimise(&x);
    assert_true(qn__lbfgs_converged(&x.of));
    assert_in_range(iterations, 2, 60);
    for (int k = 0; k < N; ++k)
        assert_true(fabs(x.of.point[k] - (k + 1) / 8.0) < 1e-5);
    assert_memory_equal(x.of.point, x.trial, sizeof x.trial);
    qn__lbfgs_release(&x.of);
}

/* With penalties each parameter has its own minimum; the last one has none. */
static void test_penalties(void **state) {
    (void)state;
    fixture x;
    begin(&x);
    x.of.l2 = 0.5;
    x.of.l1 = 2;
    minimise(&x);
    assert_true(qn__lbfgs_converged(&x.of));
    for (int k = 0; k < N - 1; ++k) {
        const double curve = k + 1, pull = curve * (k + 1) / 8.0 - 2;
        const double best = pull > 0 ? pull / (curve + 0.5) : 0;
        assert_true(fabs(x.of.point[k] - best) < 1e-5);
        assert_true(best > 0 || (x.of.point[k] == 0 && !signbit(x.of.point[k])));
    }
    assert_true(fabs(x.of.point[N - 1] - N / 8.0) < 1e-5);
    qn__lbfgs_release(&x.of);
}

/* A trial that leaves the range counts as too long; at the first point it is an error. */
static void test_out_of_range(void **state) {
    (void)state;
    fixture x;
    qn_error err;
    begin(&x);
    x.f.fails_at = 2;
    minimise(&x);
    assert_true(qn__lbfgs_converged(&x.of));
    x.of.known = 0;
    x.f = (function){.fails_at = 1};
    assert_int_equal(qn__lbfgs_begin(&x.of, quadratic, &x.f, &err), QN_NUMERIC);
    qn__lbfgs_release(&x.of);
}

/* Where no step can be taken, the point stays. */
static void test_stuck(void **state) {
    (void)state;
    fixture x;
    int moved = 1;
    begin(&x);
    x.f.alone = 1;
    assert_int_equal(qn__lbfgs_begin(&x.of, quadratic, &x.f, NULL), QN_OK);
    assert_int_equal(qn__lbfgs_iterate(&x.of, quadratic, &x.f, &moved, NULL), QN_OK);
    assert_int_equal(moved, 0);
    assert_true(x.f.calls > 10);
    for (int k = 0; k < N; ++k)
        assert_true(x.of.point[k] == 0 && x.trial[k] == 0);
    qn__lbfgs_release(&x.of);
}

/* The point and the history are the whole state. */
static void test_restored(void **state) {
    (void)state;
    fixture x, other;
    int moved;
    begin(&x);
    begin(&other);
    assert_int_equal(qn__lbfgs_begin(&x.of, quadratic, &x.f, NULL), QN_OK);
    for (int i = 0; i < 13; ++i)
        assert_int_equal(qn__lbfgs_iterate(&x.of, quadratic, &x.f, &moved, NULL), QN_OK);
    assert_int_equal(x.of.pairs, QN__LBFGS_PAIRS);
    memcpy(other.trial, x.of.point, sizeof other.trial);
    memcpy(other.of.history, x.of.history, 2 * QN__LBFGS_PAIRS * N * sizeof(float));
    other.of.pairs = x.of.pairs;
    qn__lbfgs_restored(&other.of);
    minimise(&x);
    minimise(&other);
    assert_memory_equal(x.of.point, other.of.point, N * sizeof(float));
    qn__lbfgs_release(&x.of);
    qn__lbfgs_release(&other.of);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minimum),      cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_out_of_range), cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
