/* Checks the kernels of an instruction set on a few numbers against the scalar definitions in num/.
 * num/host.h checks the scalar operations themselves. */
#include "device/cpu/cpu_selftest.h"

#include "base/binary/float_bits.h"
#include "num/elementary.h"
#include "num/optimise.h"
#include <math.h>
#include <string.h>

enum {
    DEPTH = 37,
    SIDE = QN__PANEL,
    CELLS = SIDE * SIDE,
    PANELS = (DEPTH + SIDE - 1) / SIDE,
    FEW = 64
};

/* Full panels, as the kernels require. */
typedef struct trial {
    _Alignas(64) float a[PANELS * CELLS], b[PANELS * CELLS], c[CELLS], start[SIDE];
    _Alignas(64) float x[FEW], y[FEW], m[FEW], v[FEW];
    _Alignas(64) float mean[SIDE], inverse[SIDE];
    int64_t sums[FEW];
    uint32_t random;
} trial;

static int same(float a, float b) {
    return qn__float_bits(a) == qn__float_bits(b) || (isnan(a) && isnan(b));
}

/* A number of either sign, from 2^low to below 2^high. */
static float draw(trial *t, int low, int high) {
    t->random = t->random * 1664525u + 1013904223u;
    const uint32_t exponent = (uint32_t)(low + 127) + (t->random >> 4) % (uint32_t)(high - low);
    const uint32_t mantissa = (t->random >> 9) * 2654435761u >> 9;
    return qn__float_of_bits((t->random & 0x80000000u) | exponent << 23 | mantissa);
}

/* Products whose sums are near one, and near the smallest normal number. */
static const char *try_products(const qn__cpu_kernels *k, trial *t) {
    size_t blocks[PANELS];
    const qn__cpu_chain chain = {.k = DEPTH, .a = blocks, .b = blocks};
    for (uint32_t i = 0; i < PANELS * CELLS; ++i) {
        t->a[i] = draw(t, i % 3 ? -3 : -70, i % 3 ? 3 : -60);
        t->b[i] = draw(t, i % 5 ? -3 : -70, i % 5 ? 3 : -60);
    }
    for (uint32_t c = 0; c < SIDE; ++c)
        t->start[c] = c % 2 ? draw(t, -3, 3) : 0.0f;
    for (size_t i = 0; i < PANELS; ++i)
        blocks[i] = i * CELLS;
    k->matmul(k->rows, &chain, t->a, t->b, 0, t->c, 0, t->start, 1);
    for (uint32_t r = 0; r < k->rows; ++r)
        for (uint32_t c = 0; c < SIDE; ++c) {
            float sum = t->start[c];
            for (uint32_t i = 0; i < DEPTH; ++i)
                sum = fmaf(t->a[i / SIDE * CELLS + r * SIDE + i % SIDE], t->b[i * SIDE + c], sum);
            if (!same(sum, t->c[r * SIDE + c]))
                return "products of matrices";
        }
    return NULL;
}

static const char *try_scaling(const qn__cpu_kernels *k, trial *t) {
    for (uint32_t c = 0; c < SIDE; ++c) {
        t->x[c] = draw(t, c % 2 ? -126 : -3, c % 2 ? -120 : 3);
        t->mean[c] = draw(t, c % 2 ? -126 : -3, c % 2 ? -122 : 3);
        t->inverse[c] = draw(t, c % 4 < 2 ? -3 : -20, c % 4 < 2 ? 3 : -10);
    }
    k->input[QN__FETCH_FLOATS](QN__SCALE_STANDARD, t->mean, t->inverse, SIDE, t->x, t->y, SIDE);
    for (uint32_t c = 0; c < SIDE; ++c)
        if (!same((t->x[c] - t->mean[c]) * t->inverse[c], t->y[c]))
            return "the scaling of inputs";
    return NULL;
}

/* Divisions, square roots and rounded sums of integers; gradients of every magnitude. */
static const char *try_update(const qn__cpu_kernels *k, trial *t) {
    const qn__program program = {
        .optimizer = QN__OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-30f};
    const qn__update update = {0.01f, 0x1p-92f, 0.1f, 900.0f, 1, 0, 0};
    float before[3][FEW];
    for (uint32_t i = 0; i < FEW; ++i) {
        t->sums[i] = (int64_t)(qn__float_bits(draw(t, -1, 1)) % 0x1fffffffu) << i % 34;
        t->sums[i] = i % 2 ? t->sums[i] + 1 : -t->sums[i];
        t->x[i] = before[0][i] = draw(t, -5, 1);
        t->m[i] = before[1][i] = draw(t, -60, -10);
        t->v[i] = before[2][i] = i % 3 ? fabsf(draw(t, -126, -90)) : 0.0f;
    }
    k->update(&program, &update, 1, FEW, QN__SUMS_INT64, t->sums, t->x, t->m, t->v, NULL);
    for (uint32_t i = 0; i < FEW; ++i) {
        float w = before[0][i], m = before[1][i], v = before[2][i];
        qn__update_one(&program, &update, 1, t->sums[i], &w, &m, &v);
        if (!same(w, t->x[i]) || !same(m, t->m[i]) || !same(v, t->v[i]))
            return "the update of parameters";
    }
    return NULL;
}

static const char *try_functions(const qn__maps *maps, trial *t) {
    static const struct {
        size_t map;
        float (*right)(float x);
        const char *name;
    } functions[] = {
#define ROW(f, none) {offsetof(qn__maps, f), qn__##f, #f},
        QN__MAPS(ROW, )
#undef ROW
    };
    static const uint32_t special[] = {0,          0x80000000, 1,          0x807fffff, 0x3f800000,
                                       0x7f800000, 0xff800000, 0x42b17218, 0xc2cff1b5, 0x7fc00000};
    enum { SPECIALS = sizeof special / sizeof *special };
    for (uint32_t i = 0; i < FEW; ++i)
        t->x[i] = i < SPECIALS ? qn__float_of_bits(special[i]) : draw(t, -12, 7);
    for (size_t f = 0; f < sizeof functions / sizeof *functions; ++f) {
        qn__map_function *map;
        memcpy(&map, (const char *)maps + functions[f].map, sizeof map);
        map(FEW, t->x, t->y);
        for (uint32_t i = 0; i < FEW; ++i)
            if (!same(functions[f].right(t->x[i]), t->y[i]))
                return functions[f].name;
    }
    return NULL;
}

qn_status qn__cpu_selftest(const qn__cpu_isa *isa, qn_error *err) {
    trial t;
    memset(&t, 0, sizeof t);
    t.random = 1;
    const char *wrong = try_products(isa->kernels, &t);
    if (!wrong)
        wrong = try_scaling(isa->kernels, &t);
    if (!wrong)
        wrong = try_update(isa->kernels, &t);
    if (!wrong)
        wrong = try_functions(isa->maps, &t);
    if (!wrong)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED,
             "this processor or its emulator computes %s wrongly with the instruction set %s",
             wrong, isa->name);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "use `compute.isa` scalar, or another machine or emulator");
}
