/* The kernels of states of positions, in each instruction set, against plain loops of 25.35 and
 * 25.36. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/float/kernels_space_test.h"
#include "num/elementary.h"

enum { GATES = 4 };

/* What a kernel reads and writes, and what the plain loop gives. */
typedef struct given {
    size_t count;
    const float *x[GATES], *before, *returned, *delta;
    float *gate[GATES], *cell, *state, *carry;
    float *want[GATES], *want_cell, *want_state, *want_carry;
} given;

static given make(uint32_t rows) {
    given a = {.count = (size_t)rows * QN__PANEL};
    for (int g = 0; g < GATES; ++g) {
        a.x[g] = guarded_numbers(a.count, 0);
        a.gate[g] = guarded_numbers(a.count, 0);
        a.want[g] = copy_of(a.gate[g], a.count);
    }
    a.before = guarded_numbers(a.count, 0);
    a.returned = guarded_numbers(a.count, 0);
    a.delta = guarded_numbers(a.count, 0);
    a.cell = guarded_numbers(a.count, 0);
    a.state = guarded_numbers(a.count, 0);
    a.carry = guarded_numbers(a.count, 0);
    a.want_cell = copy_of(a.cell, a.count);
    a.want_state = copy_of(a.state, a.count);
    a.want_carry = copy_of(a.carry, a.count);
    snprintf(how, sizeof how, "%u rows", rows);
    return a;
}

static void check_gates(const qn__cpu_kernels *k, const given *a, int gates) {
    for (int g = 0; g < gates; ++g)
        same(k, "a gate", a->gate[g], a->want[g], a->count);
}

/* No zero of a state has a sign. */
static void check_zeros(const given *a) {
    for (size_t n = 0; n < a->count; ++n)
        assert_true(bits_of(a->state[n]) != 0x80000000u);
}

static float slope(float y) { return y * (1.0f - y); }

static void check_lstm(const qn__cpu_kernels *k, uint32_t rows) {
    const given a = make(rows);
    for (size_t n = 0; n < a.count; ++n) {
        float y[GATES];
        for (int g = 0; g < GATES; ++g) {
            const float z = a.x[g][n] + a.want[g][n];
            a.want[g][n] = y[g] = g == 2 ? qn__tanh(z) : qn__sigmoid(z);
        }
        a.want_cell[n] = fmaf(y[1], a.before[n], y[0] * y[2]);
        a.want_state[n] = y[3] * qn__tanh(a.want_cell[n]);
        a.want_state[n] = a.want_state[n] + 0.0f;
    }
    k->lstm(rows, a.x, a.gate, a.before, a.cell, a.state);
    check_gates(k, &a, GATES);
    same(k, "lstm, the cells", a.cell, a.want_cell, a.count);
    same(k, "lstm, the states", a.state, a.want_state, a.count);
    check_zeros(&a);
    for (size_t n = 0; n < a.count; ++n) {
        const float i = a.want[0][n], f = a.want[1][n], own = a.want[2][n], o = a.want[3][n];
        const float y = qn__tanh(a.cell[n]), e = a.delta[n] + a.returned[n];
        const float v = fmaf(e * o, fmaf(-y, y, 1.0f), a.want_carry[n]);
        a.want[0][n] = v * own * slope(i) + 0.0f;
        a.want[1][n] = v * a.before[n] * slope(f) + 0.0f;
        a.want[2][n] = v * i * fmaf(-own, own, 1.0f) + 0.0f;
        a.want[3][n] = e * y * slope(o) + 0.0f;
        a.want_carry[n] = v * f;
    }
    k->lstm_errors(rows, a.returned, a.delta, a.gate, a.before, a.cell, a.carry);
    check_gates(k, &a, GATES);
    same(k, "lstm_errors, what is carried", a.carry, a.want_carry, a.count);
    release();
}

static void check_gru(const qn__cpu_kernels *k, uint32_t rows) {
    const given a = make(rows);
    for (size_t m = 0; m < a.count; ++m) {
        const float r = qn__sigmoid(a.x[0][m] + a.want[0][m]);
        const float z = qn__sigmoid(a.x[1][m] + a.want[1][m]);
        const float n = qn__tanh(fmaf(r, a.want[3][m], a.x[2][m]));
        a.want[0][m] = r;
        a.want[1][m] = z;
        a.want[2][m] = n;
        a.want_state[m] = fmaf(z, a.before[m] - n, n);
        a.want_state[m] = a.want_state[m] + 0.0f;
    }
    k->gru(rows, a.x, a.gate, a.before, a.state);
    check_gates(k, &a, GATES);
    same(k, "gru, the states", a.state, a.want_state, a.count);
    check_zeros(&a);
    for (size_t m = 0; m < a.count; ++m) {
        const float r = a.want[0][m], z = a.want[1][m], n = a.want[2][m], q = a.want[3][m];
        const float e = a.delta[m] + a.returned[m] + a.want_carry[m];
        const float v = e * (1.0f - z) * fmaf(-n, n, 1.0f);
        a.want[0][m] = v * q * slope(r) + 0.0f;
        a.want[1][m] = e * (a.before[m] - n) * slope(z) + 0.0f;
        a.want[2][m] = v + 0.0f;
        a.want[3][m] = v * r + 0.0f;
        a.want_carry[m] = e * z;
    }
    k->gru_errors(rows, a.returned, a.delta, a.gate, a.before, a.carry);
    check_gates(k, &a, GATES);
    same(k, "gru_errors, what is carried", a.carry, a.want_carry, a.count);
    release();
}

/* A sequence that goes on has its state, and its cell, where they were. */
static void check_in_place(const qn__cpu_kernels *k, uint32_t rows) {
    const given a = make(rows);
    float *gate[GATES];
    for (int g = 0; g < GATES; ++g)
        gate[g] = copy_of(a.gate[g], a.count);
    k->lstm(rows, a.x, a.gate, a.want_cell, a.cell, a.state);
    k->lstm(rows, a.x, gate, a.want_cell, a.want_cell, a.want_state);
    same(k, "lstm in place, the cells", a.want_cell, a.cell, a.count);
    same(k, "lstm in place, the states", a.want_state, a.state, a.count);
    for (int g = 0; g < GATES; ++g)
        memcpy(gate[g], a.gate[g], a.count * sizeof(float));
    k->gru(rows, a.x, a.gate, a.want_state, a.state);
    k->gru(rows, a.x, gate, a.want_state, a.want_state);
    same(k, "gru in place", a.want_state, a.state, a.count);
    release();
}

static void body(const qn__cpu_kernels *k) {
    for (uint32_t rows = 1; rows <= QN__STATE_ROWS; rows += rows < 9 ? 1 : 11) {
        check_lstm(k, rows);
        check_gru(k, rows);
        check_in_place(k, rows);
    }
}

static void test_states(void **state) {
    (void)state;
    every_isa(body);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
