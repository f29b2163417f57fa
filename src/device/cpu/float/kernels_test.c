/* Each kernel of each instruction set of this machine against plain loops, for all remainders. Each
 * array is between two inaccessible pages, so that an access outside of it ends the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/float/kernels_space_test.h"
#include "num/elementary.h"
#include "num/intgemm_reference.h"
#include "num/optimise.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- products */

/* The blocks of an operand `stride` apart, in an order of its own for each seed. */
static const size_t *blocks_of(uint32_t depth, size_t stride, uint32_t seed) {
    const uint32_t count = (depth + 15) / 16;
    size_t *blocks = guard(count * sizeof *blocks);
    for (uint32_t i = 0; i < count; ++i)
        blocks[i] = (seed % 3 == 0   ? i
                     : seed % 3 == 1 ? count - 1 - i
                                     : (i + seed) % count) *
                    stride;
    return blocks;
}

static void check_matmul(const qn__cpu_kernels *k, uint32_t rows, uint32_t depth, uint32_t panels,
                         int with_start, size_t gap) {
    const uint32_t a_panels = (depth + 15) / 16;
    const size_t a_stride = rows * 16 + gap, b_stride = a_panels * 256 + gap;
    const size_t c_stride = rows * 16 + gap;
    const size_t a_count = (a_panels - 1) * a_stride + rows * 16;
    const qn__cpu_chain chain = {.k = depth,
                                 .a = blocks_of(depth, a_stride, rows),
                                 .b = blocks_of(depth, 256, panels),
                                 .positive = rows % 3 == 0};
    const size_t c_count = (panels - 1) * c_stride + rows * 16;
    float *a = guarded_numbers(a_count, 0);
    const float *b = guarded_numbers((panels - 1) * b_stride + a_panels * 256, 0);
    const float *start = guarded_numbers(panels * 16, 0);
    float *c = guarded_numbers(c_count, 0), *want = copy_of(c, c_count);
    snprintf(how, sizeof how, "rows %u, k %u, panels %u, start %d", rows, depth, panels,
             with_start);
    for (uint32_t i = 0; i < rows; ++i) /* the padding of a is not used */
        for (uint32_t t = depth; t < a_panels * 16; ++t)
            a[chain.a[t / 16] + i * 16 + t % 16] = NAN;
    for (uint32_t p = 0; p < panels; ++p)
        for (uint32_t i = 0; i < rows; ++i)
            for (uint32_t o = 0; o < 16; ++o) {
                float acc = with_start ? start[p * 16 + o] : 0.0f;
                for (uint32_t t = 0; t < depth; ++t)
                    acc = fmaf(a[chain.a[t / 16] + i * 16 + t % 16],
                               b[p * b_stride + chain.b[t / 16] + t % 16 * 16 + o], acc);
                want[p * c_stride + i * 16 + o] = chain.positive ? acc + 0.0f : acc;
            }
    k->matmul(rows, &chain, a, b, b_stride, c, c_stride, with_start ? start : NULL, panels);
    same(k, "matmul", c, want, c_count); /* the gaps too: nothing may be written there */
    release();
}

/* Segments of `height` rows with `gap` floats between them. Segment s has the steps from 80 * (s %
 * 3) on; each second one lacks the last 160. What it lacks is NaN in a, which must not be used.
 * `after`: what is done with the results. */
static void check_segments(const qn__cpu_kernels *k, uint32_t height, uint32_t depth,
                           uint32_t panels, size_t gap, qn__cpu_after after) {
    enum { SEGMENTS = 5 };
    const uint32_t rows = SEGMENTS * height;
    const size_t apart = height * 16 + gap, a_stride = SEGMENTS * apart, b_stride = depth * 16;
    uint32_t first[SEGMENTS], end[SEGMENTS];
    const qn__cpu_chain chain = {.k = depth,
                                 .a = blocks_of(depth, a_stride, 0),
                                 .b = blocks_of(depth, 256, 0),
                                 .positive = 1,
                                 .segment = height,
                                 .gap = gap,
                                 .first = first,
                                 .end = end,
                                 .after = after};
    float *a = guarded_numbers(depth / 16 * a_stride, 0);
    const float *b = guarded_numbers(panels * b_stride, 0);
    const float *start = guarded_numbers(panels * 16, 0);
    float *c = guarded_numbers((size_t)panels * rows * 16, 0);
    float *want = copy_of(c, (size_t)panels * rows * 16);
    snprintf(how, sizeof how, "segments of %u, k %u, panels %u, after %d%d%d", height, depth,
             panels, after.factor != NULL, after.other != NULL, (int)after.activation);
    for (uint32_t s = 0; s < SEGMENTS; ++s) {
        first[s] = s % 3 * 80;
        end[s] = depth - s % 2 * 160;
        for (uint32_t t = 0; t < depth; ++t)
            for (uint32_t i = 0; i < height && (t < first[s] || t >= end[s]); ++i)
                a[t / 16 * a_stride + s * apart + i * 16 + t % 16] = NAN;
    }
    for (uint32_t p = 0; p < panels; ++p)
        for (uint32_t i = 0; i < rows; ++i)
            for (uint32_t o = 0; o < 16; ++o) {
                const uint32_t s = i / height, at = (p * rows + i) * 16 + o;
                float z = start[p * 16 + o];
                for (uint32_t t = first[s]; t < end[s]; ++t)
                    z = fmaf(a[t / 16 * a_stride + s * apart + i % height * 16 + t % 16],
                             b[p * b_stride + t * 16 + o], z);
                z = z + 0.0f;
                if (after.factor)
                    z = fmaf(z, after.factor[p * 16 + o], after.rest[p * 16 + o]) + 0.0f;
                z = after.other ? z + after.other[at] : z;
                z = after.activation != QN__ACT_NONE && z <= 0.0f ? 0.0f : z;
                want[at] = after.activation == QN__ACT_RELU6 && z > 6.0f ? 6.0f : z;
            }
    k->matmul(rows, &chain, a, b, b_stride, c, (size_t)rows * 16, start, panels);
    same(k, "matmul", c, want, (size_t)panels * rows * 16);
}

static void check_after(const qn__cpu_kernels *k, uint32_t height, uint32_t depth, uint32_t panels,
                        int kind) {
    static const qn__activation activations[] = {QN__ACT_NONE, QN__ACT_RELU, QN__ACT_NONE,
                                                 QN__ACT_RELU, QN__ACT_RELU6};
    const qn__cpu_after after = {
        .factor = kind > 0 ? guarded_numbers(panels * 16, 0) : NULL,
        .rest = kind > 0 ? guarded_numbers(panels * 16, 0) : NULL,
        .other = kind > 1 ? guarded_numbers((size_t)panels * 5 * height * 16, 0) : NULL,
        .activation = activations[kind]};
    check_segments(k, height, depth, panels, panels * 32, after);
    release();
}

static void matmul_body(const qn__cpu_kernels *k) {
    static const uint32_t depths[] = {1, 2, 15, 16, 17, 31, 33, 70, 145, 289, 448, 449};
    const uint32_t kinds = sizeof depths / sizeof *depths;
    for (uint32_t rows = 1; rows <= 27; ++rows)
        for (uint32_t panels = 1; panels <= 3; ++panels)
            check_matmul(k, rows, depths[(rows + panels) % 8], panels, (int)(rows % 2), 16);
    for (uint32_t i = 0; i < kinds; ++i)
        for (uint32_t panels = 1; panels <= 5; ++panels)
            check_matmul(k, 1 + word() % 14, depths[i], panels, (int)(i % 2), panels % 2 ? 0 : 48);
    for (uint32_t panels = 1; panels <= 3; ++panels)
        for (uint32_t depth = 336; depth <= 624; depth += 48)
            check_after(k, 1 + word() % 14, depth, panels, (int)(depth / 48 % 5));
}

static void test_matmul(void **state) {
    (void)state;
    every_isa(matmul_body);
}

/* ---- products without the inputs that are zero */

/* `density` of 100 values of t below depth, ascending, in a guarded list. */
static const uint32_t *draw_list(uint32_t depth, uint32_t density, uint32_t *count) {
    uint32_t chosen[320];
    *count = 0;
    for (uint32_t t = 0; t < depth; ++t)
        if (word() % 100 < density)
            chosen[(*count)++] = t;
    return memcpy(guard(*count * sizeof *chosen), chosen, *count * sizeof *chosen);
}

/* The expected c after chains over the list, in plain loops. */
static void plain_some(uint32_t rows, uint32_t count, const uint32_t *list,
                       const qn__cpu_chain *chain, const float *a, const float *b, size_t b_stride,
                       float *c, size_t c_stride, const float *start, uint32_t panels) {
    for (uint32_t p = 0; p < panels; ++p)
        for (uint32_t i = 0; i < rows; ++i)
            for (uint32_t o = 0; o < 16; ++o) {
                float acc = start ? start[p * 16 + o] : 0.0f;
                for (uint32_t n = 0; n < count; ++n) {
                    const uint32_t t = list[n];
                    acc = fmaf(a[chain->a[t / 16] + i * 16 + t % 16],
                               b[p * b_stride + chain->b[t / 16] + t % 16 * 16 + o], acc);
                }
                c[p * c_stride + i * 16 + o] = acc;
            }
}

/* matmul and matmul_some may differ in the sign of zeros: +0 and -0. Returns how often they do. */
static uint32_t same_but_zeros(const qn__cpu_kernels *k, const float *some, const float *all,
                               size_t count) {
    uint32_t differ = 0;
    for (size_t i = 0; i < count; ++i) {
        if (bits_of(some[i]) == bits_of(all[i]))
            continue;
        if (bits_of(some[i]) != 0x80000000u || bits_of(all[i]) != 0)
            fail_msg("%s matmul_some, %s: element %zu is %a, matmul gives %a", k->name, how, i,
                     (double)some[i], (double)all[i]);
        ++differ;
    }
    return differ;
}

/* First with NaN in all inputs that are left out, which must not be read; then with +0 there,
 * against matmul. Returns the number of zeros of different sign. */
static uint32_t check_matmul_some(const qn__cpu_kernels *k, uint32_t rows, uint32_t depth,
                                  uint32_t panels, uint32_t density, int with_start) {
    const size_t gap = rows % 2 ? 16 : 0, a_stride = rows * 16 + gap;
    const size_t b_stride = (depth + 15) / 16 * 256 + gap;
    const size_t a_count = ((depth + 15) / 16 - 1) * a_stride + rows * 16;
    const size_t b_count = panels * b_stride - gap, c_stride = rows * 16 + gap;
    const size_t c_count = (panels - 1) * c_stride + rows * 16;
    float *a = guarded_numbers(a_count, 0), *b = guarded_numbers(b_count, 0);
    float *a_nan = guard(a_count * sizeof *a), *b_nan = guard(b_count * sizeof *b);
    float *c = guarded_numbers(c_count, 0), *want = copy_of(c, c_count), *all = copy_of(c, c_count);
    const float *start = with_start ? guarded_numbers(panels * 16, 0) : NULL;
    const qn__cpu_chain chain = {
        .k = depth, .a = blocks_of(depth, a_stride, rows), .b = blocks_of(depth, 256, panels)};
    uint32_t count;
    const uint32_t *list = draw_list(depth, density, &count);
    for (size_t i = 0; i < a_count; ++i)
        a_nan[i] = NAN;
    for (size_t i = 0; i < b_count; ++i)
        b_nan[i] = NAN;
    for (uint32_t t = 0, n = 0; t < depth; ++t) {
        const int listed = n < count && list[n] == t;
        n += (uint32_t)listed;
        for (uint32_t i = 0; i < rows; ++i) {
            const size_t at = chain.a[t / 16] + i * 16 + t % 16;
            a[at] = listed ? a[at] : 0.0f;
            a_nan[at] = listed ? a[at] : NAN;
        }
        for (uint32_t p = 0; listed && p < panels; ++p) {
            const size_t at = p * b_stride + chain.b[t / 16] + t % 16 * 16;
            memcpy(b_nan + at, b + at, 16 * sizeof *b);
        }
    }
    snprintf(how, sizeof how, "rows %u, %u of k %u, panels %u, start %d", rows, count, depth,
             panels, with_start);
    plain_some(rows, count, list, &chain, a, b, b_stride, want, c_stride, start, panels);
    k->matmul_some(rows, count, list, &chain, a_nan, b_nan, b_stride, c, c_stride, start, panels);
    same(k, "matmul_some", c, want, c_count); /* the gaps too */
    k->matmul_some(rows, count, list, &chain, a, b, b_stride, c, c_stride, start, panels);
    k->matmul(rows, &chain, a, b, b_stride, all, c_stride, start, panels);
    const uint32_t differ = same_but_zeros(k, c, all, c_count);
    release();
    return differ;
}

static void matmul_some_body(const qn__cpu_kernels *k) {
    static const uint32_t depths[] = {1, 15, 16, 17, 33, 70, 257, 300};
    static const uint32_t densities[] = {0, 10, 50, 100};
    uint32_t differ = 0;
    assert_in_range(k->rows, 1, 12);
    for (uint32_t rows = 1; rows <= k->rows; ++rows)
        for (uint32_t panels = 1; panels <= k->panels; ++panels)
            for (int d = 0; d < 8; ++d)
                for (int kind = 0; kind < 8; ++kind)
                    differ += check_matmul_some(k, rows, depths[d], panels, densities[kind / 2],
                                                kind % 2);
    assert_true(differ > 0); /* otherwise the sign of zeros was not tested */
}

static void test_matmul_some(void **state) {
    (void)state;
    every_isa(matmul_some_body);
}

/* Every kind of number in every lane, next to zeros and next to all others. */
static void nonzero_body(const qn__cpu_kernels *k) {
    static const uint32_t kinds[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,
                                     0x807fffff, 0x00400000, 0x00800000, 0x80800000, 0x3f800000,
                                     0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
                                     0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x00010000};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    float *x = guard(16 * sizeof *x);
    for (uint32_t round = 0; round < 16 * KINDS + 2000; ++round) {
        const int alone = round < 16 * KINDS;
        uint32_t want = 0;
        for (uint32_t t = 0; t < 16; ++t) {
            const uint32_t kind = alone ? (t == round % 16 ? round / 16 : 0) : word() % KINDS;
            const uint32_t bits = alone || word() % 2 ? kinds[kind] : 0;
            memcpy(&x[t], &bits, sizeof bits);
            want |= (uint32_t)(bits != 0) << t;
        }
        if (k->nonzero(x) != want)
            fail_msg("%s nonzero, round %u: %04x, want %04x", k->name, round, k->nonzero(x), want);
    }
    release();
}

static void test_nonzero(void **state) {
    (void)state;
    every_isa(nonzero_body);
}

/* ---- between panels and the canonical order */

static void integers_body(const qn__cpu_kernels *k) {
    float single[48];
    double wide[48];
    int64_t got[48], want[2][48];
    for (int i = 0; i < 48; ++i) {
        single[i] = i == 0 ? -0.0f : (float)((int64_t)word() * (int32_t)word() >> word() % 60);
        wide[i] = i == 0 ? -0.0 : (double)((int64_t)word() * (int32_t)word() >> 13);
        want[0][i] = (int64_t)single[i];
        want[1][i] = (int64_t)wide[i];
    }
    wide[1] = 0x1p51 - 1;
    want[1][1] = (INT64_C(1) << 51) - 1;
    wide[2] = -wide[1];
    want[1][2] = -want[1][1];
    k->integers(48, QN__SUMS_FLOAT, single, got);
    assert_memory_equal(got, want[0], sizeof got);
    k->integers(48, QN__SUMS_DOUBLE, wide, got);
    assert_memory_equal(got, want[1], sizeof got);
    k->integers(48, QN__SUMS_INT64, got, got);
    assert_memory_equal(got, want[1], sizeof got);
}

/* Rows are surrounded by inaccessible pages: only the rectangle is read or written. */
static void transpose_body(const qn__cpu_kernels *k) {
    for (uint32_t rows = 1; rows <= 17; ++rows)
        for (uint32_t columns = 1; columns <= 17; ++columns) {
            const size_t gap = word() % 5, from_stride = columns + gap, to_stride = rows + gap;
            const size_t from_count = (rows - 1) * from_stride + columns;
            const size_t to_count = (columns - 1) * to_stride + rows;
            int64_t *from = guard(from_count * sizeof *from), *to = guard(to_count * sizeof *to);
            for (size_t i = 0; i < from_count; ++i)
                from[i] = (int64_t)((uint64_t)word() << 32 ^ word());
            for (size_t i = 0; i < to_count; ++i)
                to[i] = -7;
            k->transpose(rows, columns, from, from_stride, to, to_stride);
            for (size_t i = 0; i < to_count; ++i) {
                const size_t c = i / to_stride, r = i % to_stride;
                assert_true(to[i] == (r < rows ? from[r * from_stride + c] : -7));
            }
            release();
        }
}

static void test_integers(void **state) {
    (void)state;
    every_isa(integers_body);
}

static void test_transpose(void **state) {
    (void)state;
    every_isa(transpose_body);
}

/* ---- the update */

/* Stores a random sum, in the range of the array's type. Zeros get either sign: both are the
 * integer 0. */
static int64_t put_sum(qn__sums kind, void *sums, size_t i) {
    int64_t sum = ((int64_t)word() << 31 ^ word()) >> word() % 60;
    if (word() % 4 == 0)
        sum = 0;
    if (word() % 2)
        sum = -sum;
    if (kind == QN__SUMS_FLOAT) {
        sum = (int64_t)(float)sum;
        ((float *)sums)[i] = sum ? (float)sum : word() % 2 ? 0.0f : -0.0f;
    } else if (kind == QN__SUMS_DOUBLE) {
        sum %= (int64_t)1 << 53;
        ((double *)sums)[i] = sum ? (double)sum : word() % 2 ? 0.0 : -0.0;
    } else {
        ((int64_t *)sums)[i] = sum;
    }
    return sum;
}

/* Velocities that are almost all subnormal, of normal weights. */
static void make_idle(size_t count, float *w, float *s0) {
    for (size_t i = 0; i < count; ++i) {
        const uint32_t bits = (word() & 0x807fffffu) >> (word() % 4 ? 0 : 20);
        if (word() % 64)
            memcpy(&s0[i], &bits, sizeof bits);
        if (word() % 256)
            w[i] = word() % 64 ? 0.25f + (float)(word() % 100) : word() % 2 ? -0x1p-80f : 0x1p-120f;
    }
}

static void check_update(const qn__cpu_kernels *k, const qn__program *program, qn__sums kind,
                         int is_weight, size_t count) {
    const qn__update u = {0.01f, ldexpf(1.0f / 37, -44), 0.3f, 7.0f, 1, 0, 0};
    const uint32_t slots = qn__optimizer_slots(program->optimizer);
    void *sums = guard(count * (kind == QN__SUMS_FLOAT ? 4 : 8));
    float *w = guarded_numbers(count, 0), *want = copy_of(w, count);
    float *s0 = slots > 0 ? guarded_numbers(count, 0) : NULL, *want0 = NULL;
    float *s1 = slots > 1 ? guarded_numbers(count, 0) : NULL, *want1 = NULL;
    for (size_t i = 0; s1 && i < count; ++i)
        s1[i] = fabsf(s1[i]);
    if (s0 && word() % 2) {
        make_idle(count, w, s0);
        memcpy(want, w, count * sizeof *w);
    }
    want0 = s0 ? copy_of(s0, count) : NULL;
    want1 = s1 ? copy_of(s1, count) : NULL;
    for (size_t i = 0; i < count; ++i)
        qn__update_one(program, &u, is_weight, put_sum(kind, sums, i), &want[i],
                       want0 ? &want0[i] : NULL, want1 ? &want1[i] : NULL);
    uint32_t noted[16] = {0, 0x7f000000u}, most[16] = {0, 0x7f000000u};
    const int notes = word() % 4 > 0;
    k->update(program, &u, is_weight, count, kind, sums, w, s0, s1, notes ? noted : NULL);
    snprintf(how, sizeof how, "optimizer %d, sums %d, weight %d, count %zu",
             (int)program->optimizer, (int)kind, is_weight, count);
    same(k, "update", w, want, count);
    for (size_t i = 0; notes && i < count; ++i) {
        const uint32_t own = qn__absmax(1, &want[i], 1);
        most[i % 16] = own > most[i % 16] ? own : most[i % 16];
    }
    assert_memory_equal(noted, most, sizeof most);
    if (s0)
        same(k, "update, first state", s0, want0, count);
    if (s1)
        same(k, "update, second state", s1, want1, count);
    release();
}

static void check_average(const qn__cpu_kernels *k, size_t count) {
    const qn__update u = {.average = 0.3f};
    const float *x = guarded_numbers(count, 0);
    float *average = guarded_numbers(count, 0), *want = copy_of(average, count);
    for (size_t i = 0; i < count; ++i)
        qn__update_average(&u, x[i], &want[i]);
    k->average(count, u.average, x, average);
    snprintf(how, sizeof how, "count %zu", count);
    same(k, "average", average, want, count);
    release();
}

static void update_body(const qn__cpu_kernels *k) {
    for (size_t count = 16; count <= 272; count += 64)
        check_average(k, count);
    for (int optimizer = QN__OPT_SGD; optimizer <= QN__OPT_ADAMW; ++optimizer)
        for (int kind = QN__SUMS_FLOAT; kind <= QN__SUMS_INT64; ++kind)
            for (int is_weight = 0; is_weight < 2; ++is_weight)
                for (int decay = 0; decay < 2; ++decay)
                    for (size_t count = 16; count <= 272; count += 64) {
                        const qn__program program = {.optimizer = (qn__optimizer)optimizer,
                                                     .momentum = 0.9f,
                                                     .beta1 = 0.9f,
                                                     .beta2 = 0.999f,
                                                     .epsilon = 1e-8f,
                                                     .weight_decay = decay ? 0.01f : 0.0f};
                        check_update(k, &program, (qn__sums)kind, is_weight, count);
                    }
}

static void test_update(void **state) {
    (void)state;
    every_isa(update_body);
}

/* ---- inputs */

static float scaled(qn__scale scale, float v, float mean, float inverse) {
    return scale == QN__SCALE_UNIT       ? v / 255.0f
           : scale == QN__SCALE_STANDARD ? (v - mean) * inverse
           : scale == QN__SCALE_FRACTION ? v / 256.0f
                                         : v;
}

static void check_input(const qn__cpu_kernels *k, qn__scale scale, int bytes, uint32_t features) {
    const uint32_t panels = (features + 15) / 16;
    const size_t stride = 48, count = (panels - 1) * stride + 16;
    uint8_t *v8 = guard(features);
    float *v32 = guarded_numbers(features, 1), *x = guarded_numbers(count, 0);
    float *want = copy_of(x, count);
    float *mean = guarded_numbers(panels * 16, 0), *inverse = guarded_numbers(panels * 16, 0);
    for (uint32_t c = 0; c < features; ++c)
        v8[c] = (uint8_t)(features == 256 ? c : word());
    for (uint32_t c = features; c < panels * 16; ++c)
        mean[c] = inverse[c] = 0.0f;
    for (uint32_t c = 0; c < panels * 16; ++c)
        want[c / 16 * stride + c % 16] =
            c < features ? scaled(scale, bytes ? (float)v8[c] : v32[c], mean[c], inverse[c]) : 0.0f;
    k->input[bytes ? QN__FETCH_BYTES : QN__FETCH_FLOATS](scale, mean, inverse, features,
                                                         bytes ? (const void *)v8 : v32, x, stride);
    snprintf(how, sizeof how, "scale %d, %s, %u features", (int)scale, bytes ? "u8" : "f32",
             features);
    same(k, "input", x, want, count);
    release();
}

/* Numbers of tokens, which nothing scales. */
static void check_tokens(const qn__cpu_kernels *k, int wide, uint32_t features) {
    const uint32_t panels = (features + 15) / 16;
    const size_t stride = 48, count = (panels - 1) * stride + 16;
    uint8_t *v = guard(features * (wide ? 4 : 2));
    float *x = guarded_numbers(count, 0), *want = copy_of(x, count);
    for (uint32_t c = 0; c < panels * 16; ++c) {
        const uint32_t token =
            wide ? c % 3 ? c * 77777u : UINT32_MAX - c : (uint16_t)(65535 - c * 991u);
        const uint16_t narrow = (uint16_t)token;
        if (c < features)
            memcpy(v + c * (wide ? 4 : 2), wide ? (const void *)&token : &narrow, wide ? 4 : 2);
        want[c / 16 * stride + c % 16] = c < features ? (float)token : 0.0f;
    }
    k->input[wide ? QN__FETCH_TOKENS32 : QN__FETCH_TOKENS16](QN__SCALE_NONE, NULL, NULL, features,
                                                             v, x, stride);
    snprintf(how, sizeof how, "tokens of %d bits, %u features", wide ? 32 : 16, features);
    same(k, "input", x, want, count);
    release();
}

static void input_body(const qn__cpu_kernels *k) {
    for (uint32_t features = 1; features <= 70; ++features) {
        check_tokens(k, 0, features);
        check_tokens(k, 1, features);
    }
    for (uint32_t features = 1; features <= 70; ++features)
        for (int bytes = 0; bytes < 2; ++bytes)
            for (int scale = QN__SCALE_NONE; scale <= QN__SCALE_FRACTION; ++scale)
                if (bytes || scale != QN__SCALE_UNIT) /* unit is for bytes only */
                    check_input(k, (qn__scale)scale, bytes, features);
    check_input(k, QN__SCALE_UNIT, 1, 256); /* every byte there is */
    check_input(k, QN__SCALE_FRACTION, 1, 256);
}

static void test_input(void **state) {
    (void)state;
    every_isa(input_body);
}

/* ---- activations */

static float hardsigmoid(float z) {
    const float c = z + 3.0f;
    return (c < 0.0f ? 0.0f : c > 6.0f ? 6.0f : c) * 0x1.555556p-3f;
}

static float slope_of(qn__activation activation, float z) {
    const float third = z * 0x1.555556p-2f, inside = third + 0.5f;
    return activation == QN__ACT_GELU        ? qn__gelu_slope(z)
           : activation == QN__ACT_GELU_TANH ? qn__gelu_tanh_slope(z)
           : activation == QN__ACT_SILU      ? qn__silu_slope(z)
           : z <= -3.0f                      ? 0.0f
           : z >= 3.0f                       ? 1.0f
                                             : inside;
}

static float activated(qn__activation activation, float z) {
    return activation == QN__ACT_RELU          ? (z <= 0.0f ? 0.0f : z)
           : activation == QN__ACT_TANH        ? qn__tanh(z)
           : activation == QN__ACT_SIGMOID     ? qn__sigmoid(z)
           : activation == QN__ACT_LEAKY_RELU  ? (z > 0.0f ? z : z * 0.01f)
           : activation == QN__ACT_GELU        ? qn__gelu(z)
           : activation == QN__ACT_GELU_TANH   ? qn__gelu_tanh(z)
           : activation == QN__ACT_SILU        ? qn__silu(z)
           : activation == QN__ACT_RELU6       ? (z <= 0.0f  ? 0.0f
                                                  : z > 6.0f ? 6.0f
                                                             : z)
           : activation == QN__ACT_HARDSWISH   ? z * hardsigmoid(z)
           : activation == QN__ACT_HARDSIGMOID ? hardsigmoid(z)
                                               : z;
}

static float derived(qn__activation activation, float y, float e) {
    return activation == QN__ACT_RELU          ? (y > 0.0f ? e : 0.0f)
           : activation == QN__ACT_TANH        ? e * fmaf(-y, y, 1.0f)
           : activation == QN__ACT_SIGMOID     ? e * (y * (1.0f - y))
           : activation == QN__ACT_LEAKY_RELU  ? (y > 0.0f ? e : e * 0.01f)
           : activation == QN__ACT_RELU6       ? (y > 0.0f && y < 6.0f ? e : 0.0f)
           : activation == QN__ACT_HARDSIGMOID ? (y > 0.0f && y < 1.0f ? e * 0x1.555556p-3f : 0.0f)
           : qn__keeps_slope(activation)       ? e * y
                                               : e;
}

static void pointwise_body(const qn__cpu_kernels *k) {
    for (int activation = QN__ACT_NONE; activation <= QN__ACT_GELU_TANH; ++activation)
        for (size_t count = 16; count <= 208; count += 16) {
            const qn__activation act = (qn__activation)activation;
            float *z = guarded_numbers(count, 1), *y = guarded_numbers(count, 1);
            float *e = guarded_numbers(count, 1), *both = guarded_numbers(count, 1);
            float want[208], down[208], slope[208];
            memcpy(both, z, count * sizeof *z);
            for (size_t i = 0; i < count; ++i) {
                want[i] = activated(act, z[i]);
                down[i] = derived(act, y[i], e[i]);
                slope[i] = slope_of(act, z[i]);
            }
            snprintf(how, sizeof how, "activation %d, count %zu", activation, count);
            k->activate(act, count, z);
            same(k, "activate", z, want, count);
            k->derive(act, count, y, e);
            same(k, "derive", e, down, count);
            if (qn__keeps_slope(act)) {
                k->activate_and_slope(act, count, both, e);
                same(k, "activate_and_slope", both, want, count);
                same(k, "the slope", e, slope, count);
            }
            release();
        }
}

/* 24.10 at its corners, with the numbers that PyTorch 2.15 gives, except the
 * slope of a NaN, which is 1 there. */
static void corners_body(const qn__cpu_kernels *k) {
    enum { COUNT = 16 };
    static const float corner[COUNT] = {
        -3.0f, -0x1.7ffffep+1f, -0x1.800002p+1f, 3.0f,      -1.5f,    0x1.7ffffep+1f,
        6.0f,  0x1.7ffffep+2f,  -0.0f,           -INFINITY, INFINITY, NAN};
    static const float slopes[COUNT] = {
        0, -0x1.fffffcp-2f, 0, 1, 0, 1.5f, 1, 1, 0.5f, 0, 1, NAN, 0.5f, 0.5f, 0.5f, 0.5f};
    static const float sixes[COUNT] = {0, 0, 0, 3,  0, 0x1.7ffffep+1f, 6, 0x1.7ffffep+2f,
                                       0, 0, 6, NAN};
    static const float inside[COUNT] = {0, 0, 0, 1, 0, 1, 0, 1};
    float *z = guarded_numbers(COUNT, 1), *slope = guarded_numbers(COUNT, 1), ones[COUNT];
    for (int i = 0; i < COUNT; ++i)
        ones[i] = 1.0f;
    memcpy(z, corner, sizeof corner);
    k->activate_and_slope(QN__ACT_HARDSWISH, COUNT, z, slope);
    same(k, "corners of hardswish", slope, slopes, COUNT);
    memcpy(z, corner, sizeof corner);
    k->activate(QN__ACT_RELU6, COUNT, z);
    same(k, "corners of relu6", z, sixes, COUNT);
    memcpy(slope, ones, sizeof ones);
    k->derive(QN__ACT_RELU6, COUNT, z, slope);
    same(k, "slopes of relu6", slope, inside, COUNT);
    release();
}

static void exp_and_log_body(const qn__cpu_kernels *k) {
    for (size_t count = 1; count <= 70; ++count) {
        float *x = guarded_numbers(count, 1), *y = guarded_numbers(count, 0), want[70];
        for (size_t i = 0; i < count; ++i)
            want[i] = qn__exp(x[i]);
        snprintf(how, sizeof how, "count %zu", count);
        k->exp(count, x, y);
        same(k, "exp", y, want, count);
        k->exp(count, x, x);
        same(k, "exp in place", x, want, count);
        for (size_t i = 0; i < count; ++i)
            want[i] = qn__log(x[i]);
        k->log(count, x, y);
        same(k, "log", y, want, count);
        release();
    }
}

static void absmax_body(const qn__cpu_kernels *k) {
    for (size_t count = 16; count <= 208; count += 16)
        for (int strange = 0; strange < 2; ++strange) {
            const float *x = guarded_numbers(count, strange);
            /* The initial absmax of a column counts too. */
            uint32_t want = 0, columns[16] = {0, 0x7f000000u}, most[16] = {0, 0x7f000000u};
            for (size_t i = 0; i < count; ++i) {
                uint32_t bits;
                memcpy(&bits, &x[i], sizeof bits);
                bits &= 0x7fffffffu;
                want = bits > want ? bits : want;
                most[i % 16] = bits > most[i % 16] ? bits : most[i % 16];
            }
            assert_int_equal(k->absmax(count, x), want);
            k->absmax_columns(count / 16, x, columns);
            assert_memory_equal(columns, most, sizeof most);
            release();
        }
}

static void test_activate_and_derive(void **state) {
    (void)state;
    every_isa(pointwise_body);
    every_isa(corners_body);
}

static void test_exp_and_log(void **state) {
    (void)state;
    every_isa(exp_and_log_body);
}

static void test_absmax(void **state) {
    (void)state;
    every_isa(absmax_body);
}

static void test_find(void **state) {
    (void)state;
    assert_non_null(qn__cpu_isa_find("scalar"));
    assert_non_null(qn__cpu_isa_find(NULL));
    assert_ptr_equal(qn__cpu_isa_find(NULL), qn__cpu_isa_find("auto"));
    assert_null(qn__cpu_isa_find("sse9"));
    assert_string_equal(qn__cpu_isa_at(0)->name, "scalar");
    assert_null(qn__cpu_isa_at(64));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),      cmocka_unit_test(test_matmul_some),
        cmocka_unit_test(test_nonzero),     cmocka_unit_test(test_update),
        cmocka_unit_test(test_input),       cmocka_unit_test(test_activate_and_derive),
        cmocka_unit_test(test_exp_and_log), cmocka_unit_test(test_absmax),
        cmocka_unit_test(test_find),        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
