/* The self-test of instruction sets: all sets of this machine pass. A kernel that is wrong in one
 * lane, or that flushes subnormal numbers, is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "device/cpu/cpu_selftest.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void test_all_that_is_here(void **state) {
    (void)state;
    char list[64];
    qn__cpu_isa_list(list, sizeof list);
    for (char *left = NULL, *name = strtok_r(list, " ", &left); name;
         name = strtok_r(NULL, " ", &left)) {
        qn_error err = {0};
        const double begun = qn__now();
        const qn_status status = qn__cpu_selftest(qn__cpu_isa_find(name), &err);
        print_message("    %s: %.1f microseconds\n", name, 1e6 * (qn__now() - begun));
        if (status != QN_OK)
            fail_msg("%s: %s", name, err.what);
    }
}

/* ---------------------------------------------------------------- kernels with a fault */

static const qn__cpu_isa *good;

static void wrong_matmul(uint32_t rows, const qn__cpu_chain *chain, const float *a, const float *b,
                         size_t b_stride, float *c, size_t c_stride, const float *start,
                         uint32_t panels) {
    good->kernels->matmul(rows, chain, a, b, b_stride, c, c_stride, start, panels);
    for (uint32_t r = 0; r < rows; ++r) {
        float sum = start[3]; /* with the product rounded, in one lane */
        for (uint32_t i = 0; i < chain->k; ++i) {
            volatile float product = a[chain->a[i / 16] + r * 16 + i % 16] * b[i * 16 + 3];
            sum += product;
        }
        c[r * 16 + 3] = sum;
    }
}

static void flushing_inputs(qn__scale scale, const float *mean, const float *inverse,
                            uint32_t features, const void *v, float *x, size_t stride) {
    good->kernels->input[QN__FETCH_FLOATS](scale, mean, inverse, features, v, x, stride);
    for (uint32_t c = 0; c < features; ++c)
        if (fabsf(x[c]) < 0x1p-126f)
            x[c] = 0;
}

static void wrong_update(const qn__program *program, const qn__update *u, int is_weight,
                         size_t count, qn__sums kind, const void *sums, float *w, float *s0,
                         float *s1, uint32_t *greatest) {
    good->kernels->update(program, u, is_weight, count, kind, sums, w, s0, s1, greatest);
    for (size_t i = 0; i < count; ++i)
        if (s1[i] < 0x1p-126f)
            s1[i] = 0;
}

static void wrong_tanh(size_t n, const float *x, float *y) {
    good->maps->tanh(n, x, y);
    for (size_t i = 0; i < n; ++i)
        if (x[i] == 0)
            y[i] = 0; /* the sign of zero is lost */
}

static void finds(const qn__cpu_isa *isa, const char *what) {
    qn_error err = {0};
    if (qn__cpu_selftest(isa, &err) != QN_UNSUPPORTED)
        fail_msg("a fault in %s was not found", what);
    if (!strstr(err.what, what) || !strstr(err.what, isa->name) || !strstr(err.remedy, "scalar"))
        fail_msg("\"%s\" does not name %s (%s)", err.what, what, err.remedy);
}

static void test_faults_are_named(void **state) {
    (void)state;
    good = qn__cpu_isa_find("auto");
    qn__cpu_kernels kernels = *good->kernels;
    qn__maps maps = *good->maps;
    const qn__cpu_isa isa = {.name = good->name, .kernels = &kernels, .maps = &maps};
    kernels.matmul = wrong_matmul;
    finds(&isa, "products of matrices");
    kernels = *good->kernels;
    kernels.input[QN__FETCH_FLOATS] = flushing_inputs;
    finds(&isa, "the scaling of inputs");
    kernels = *good->kernels;
    kernels.update = wrong_update;
    finds(&isa, "the update of parameters");
    kernels = *good->kernels;
    maps.tanh = wrong_tanh;
    finds(&isa, "tanh");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_is_here),
        cmocka_unit_test(test_faults_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
