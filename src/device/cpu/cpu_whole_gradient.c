/* Gradients of weights by products of integers: which grains are multiplied as one, their operands,
 * their products.
 *
 * A grain's partial is N * 2^s, with s = ta + td of its two blocks (docs/exactness.md 15.6). Grains
 * with the same s >= 0 are one sum of integers, so their items are one operand; where s < 0 each
 * grain is rounded to units by itself. All groups meet in doubles as long as bounds show that
 * nothing is rounded there and no partial leaves its range; otherwise each grain's integers are
 * looked at one by one. */
#include "device/cpu/cpu_worker.h"
#include "num/sums.h"
#include <string.h>

enum {
    EXPONENTS = 64, /* a partial below its limit, but not 0, has s < 61 */
    SPARE = 4       /* a layer's operands have room for so many times the items of a batch */
};

size_t qn__cpu_operands(const qn__cpu_integers *fixed, int bits, uint32_t batch, uint32_t grain) {
    const uint32_t grains = (batch + grain - 1) / grain;
    const size_t worst = grains * fixed->size(bits, grain);
    const size_t usual = SPARE * fixed->size(bits, batch) + 8 * fixed->size(bits, 1);
    return worst < usual ? worst : usual;
}

static uint32_t greatest_of(uint32_t count, const uint32_t *greatest) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; ++i)
        most = greatest[i] > most ? greatest[i] : most;
    return most;
}

/* The greatest |q| of a block. */
static double most_of(uint32_t greatest, float inverse) {
    float value;
    memcpy(&value, &greatest, sizeof value);
    return rint((double)(value * inverse));
}

/* What is known of the products of a grain. */
typedef struct known {
    uint32_t items;
    int32_t exponent;
    double most; /* |N| is at most this; 0: there is nothing to add */
} known;

/* Looks at a grain of the items from `first` on, and keeps its inverses in the core. */
static known look(const qn__cpu_pass *pass, qn__cpu_core *core, const qn__cpu_layer *l,
                  uint32_t grain, uint32_t first) {
    const qn__worker *w = pass->worker;
    const uint32_t left = pass->items - first;
    known k = {.items = left < w->program->grain ? left : w->program->grain};
    const uint32_t greatest[2] = {greatest_of(k.items, l->whole.input.greatest + first),
                                  greatest_of(k.items, l->whole.error.greatest + first)};
    const int32_t ta = qn__block_exponent(w->bits, greatest[0]);
    const int32_t td = qn__block_exponent(w->bits, greatest[1]);
    float factor[2], inverse[2];
    k.exponent = QN__NOT_FINITE;
    if (ta == QN__NOT_FINITE || td == QN__NOT_FINITE)
        return k;
    qn__cpu_block_scales(w->bits, 2, greatest, factor, inverse);
    core->grain_input[grain] = inverse[0];
    core->grain_error[grain] = inverse[1];
    k.exponent = ta + td;
    k.most = k.items * most_of(greatest[0], inverse[0]) * most_of(greatest[1], inverse[1]);
    return k;
}

/* Bounds over all grains. */
typedef struct bounds {
    int bad, wide;  /* a block is not finite; the bounds do not show that all is well */
    int32_t lowest; /* exponent; EXPONENTS: there is nothing to add */
    int alike;      /* all grains have the same exponent */
    double units;   /* the sum of all partials is at most so many */
} bounds;

static bounds look_at_all(const qn__cpu_pass *pass, qn__cpu_core *core, const qn__cpu_layer *l) {
    const qn__program *p = pass->worker->program;
    bounds b = {.lowest = EXPONENTS, .alike = 1};
    uint32_t grain = 0;
    for (uint32_t first = 0; first < pass->items && !b.bad; first += p->grain, ++grain) {
        const known k = look(pass, core, l, grain, first);
        b.bad = k.exponent == QN__NOT_FINITE;
        core->exponent[grain] = k.most > 0 ? k.exponent : EXPONENTS;
        if (b.bad || !(k.most > 0))
            continue;
        const double partial = ldexp(k.most, k.exponent);
        b.wide |= !(partial < (double)p->partial_limit) || !(k.most < 0x1p53);
        b.units += partial + 1;
        b.alike &= b.lowest == EXPONENTS || b.lowest == k.exponent;
        b.lowest = k.exponent < b.lowest ? k.exponent : b.lowest;
    }
    return b;
}

/* ------------------------------------------------------------------------------------- groups */

/* A list of items in the making. */
typedef struct making {
    const qn__cpu_pass *pass;
    qn__cpu_core *core;
    uint32_t items, groups;
} making;

static void add_grain(making *m, uint32_t grain) {
    qn__cpu_core *core = m->core;
    const uint32_t size = m->pass->worker->program->grain, first = grain * size;
    for (uint32_t i = first; i < m->pass->items && i - first < size; ++i, ++m->items) {
        core->list[m->items] = i;
        core->input_inverse[m->items] = core->grain_input[grain];
        core->error_inverse[m->items] = core->grain_error[grain];
    }
}

static void end_group(making *m, uint32_t first, int32_t exponent) {
    if (m->items > first)
        m->core->group[m->groups++] =
            (qn__cpu_grains){.first = first, .count = m->items - first, .exponent = exponent};
}

/* Grains that are alone: all, or those with exponents below 0. */
static void add_single(making *m, uint32_t grains, int all) {
    for (uint32_t g = 0; g < grains; ++g) {
        const uint32_t first = m->items;
        const int32_t exponent = m->core->exponent[g];
        if (exponent == EXPONENTS || (exponent >= 0 && !all))
            continue;
        add_grain(m, g);
        end_group(m, first, exponent);
    }
}

/* Grains of one exponent from 0 on, for each exponent that is there. */
static void add_alike(making *m, uint32_t grains) {
    uint64_t there = 0;
    for (uint32_t g = 0; g < grains; ++g)
        if (m->core->exponent[g] >= 0 && m->core->exponent[g] < EXPONENTS)
            there |= UINT64_C(1) << m->core->exponent[g];
    for (; there; there &= there - 1) {
        const int32_t exponent = __builtin_ctzll(there);
        const uint32_t first = m->items;
        for (uint32_t g = 0; g < grains; ++g)
            if (m->core->exponent[g] == exponent)
                add_grain(m, g);
        end_group(m, first, exponent);
    }
}

/* Gives each group its place in the operands of a panel. */
static int place_groups(const qn__worker *w, const qn__cpu_core *core, uint32_t groups,
                        size_t room) {
    size_t at = 0;
    for (uint32_t g = 0; g < groups; ++g) {
        core->group[g].at = at;
        at += w->kernels->fixed->size(w->bits, core->group[g].count);
    }
    return at <= room;
}

/* Whether an update may take sums in units of 2^shift: by its factor, exactly. */
static int may_shift(const qn__cpu_pass *pass, int shift) {
    return !pass->update || isnormal(ldexpf(pass->update->gradient, shift));
}

qn__cpu_plan qn__cpu_plan_gradient(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t grains = (pass->items + w->program->grain - 1) / w->program->grain;
    bounds b = look_at_all(pass, core, l);
    const int shift = b.lowest > 0 && b.lowest < EXPONENTS ? b.lowest : 0;
    const int one = pass->update && b.alike && b.lowest >= 0 && b.lowest < EXPONENTS;
    making m = {.pass = pass, .core = core};
    qn__cpu_plan plan = {.bad = b.bad, .shift = shift, .kind = QN__SUMS_DOUBLE};
    b.wide |= !may_shift(pass, shift);
    if (one && !b.wide && b.units < 0x1p61)
        plan.kind = QN__SUMS_FLOAT;
    else if (b.wide || !(b.units < ldexp(0x1p51, shift)))
        plan = (qn__cpu_plan){.bad = b.bad, .kind = QN__SUMS_INT64};
    if (plan.bad)
        return plan;
    if (plan.kind != QN__SUMS_INT64)
        add_alike(&m, grains);
    add_single(&m, grains, plan.kind == QN__SUMS_INT64);
    plan.groups = m.groups;
    plan.packed = place_groups(w, core, m.groups, l->whole.operands);
    return plan;
}

/* ----------------------------------------------------------------------------------- operands */

/* The floats of a panel of a layer's inputs or errors. */
static const float *floats_of(const qn__cpu_pass *pass, uint32_t layer, int errors,
                              uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const float *input = layer ? l->input : w->inputs[w->current];
    return (errors ? l->error : input) + panel * pass->stride;
}

static void pack_panel(const qn__cpu_pass *pass, const qn__cpu_core *core, uint32_t layer,
                       const qn__cpu_grains *group, int errors, uint32_t panel, void *to) {
    const qn__worker *w = pass->worker;
    const qn__cpu_integers *fixed = w->kernels->fixed;
    const uint32_t *list = core->list + group->first, count = group->count;
    const float *inverse = (errors ? core->error_inverse : core->input_inverse) + group->first;
    if (errors)
        fixed->right_items(w->bits, count, list, inverse, floats_of(pass, layer, 1, panel), to);
    else if (layer == 0 && qn__cpu_from_bytes(w, pass->batch->feed))
        fixed->left_bytes_items(w->bits, count, list, inverse, w->digits,
                                w->rows[w->current].bytes + (size_t)panel * QN__BYTE_PANEL,
                                qn__cpu_bytes_block(w), to);
    else
        fixed->left_items(w->bits, count, list, inverse, floats_of(pass, layer, 0, panel), to);
}

/* Where a panel of a group's operand begins. Panels of errors follow one another within a group, so
 * that one call multiplies several of them. */
static char *place_of(const qn__worker *w, const qn__cpu_layer *l, const qn__cpu_grains *group,
                      int errors, uint32_t panel) {
    const size_t size = w->kernels->fixed->size(w->bits, group->count);
    return errors ? (char *)l->whole.error_items + l->out_panels * group->at + panel * size
                  : (char *)l->whole.input_items + l->in_panels * group->at + panel * size;
}

void qn__cpu_pack_operands(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    qn__cpu_core *core = &w->core[thread];
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_plan plan = qn__cpu_plan_gradient(pass, core, layer);
    for (int errors = 0; errors < 2 && plan.packed; ++errors) {
        const qn__cpu_grid grid = {errors ? l->out_panels : l->in_panels, 1, 1};
        for (uint32_t panel, row;
             qn__cpu_take(w, thread, phase + (uint32_t)errors, grid, &panel, &row);)
            for (uint32_t g = 0; g < plan.groups; ++g)
                pack_panel(pass, core, layer, &core->group[g], errors, panel,
                           place_of(w, l, &core->group[g], errors, panel));
    }
}

void qn__cpu_whole_outer(const qn__cpu_pass *pass, qn__cpu_core *core, const qn__cpu_plan *plan,
                         uint32_t layer, uint32_t group, uint32_t in, uint32_t out, uint32_t panels,
                         qn__whole how, void *to) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grains *grains = &core->group[group];
    const double factor = ldexp(1.0, grains->exponent - plan->shift);
    const size_t size = w->kernels->fixed->size(w->bits, grains->count);
    const char *left = core->operand, *right = left + size;
    if (plan->packed) {
        left = place_of(w, l, grains, 0, in);
        right = place_of(w, l, grains, 1, out);
    } else {
        pack_panel(pass, core, layer, grains, 0, in, core->operand);
        for (uint32_t p = 0; p < panels; ++p)
            pack_panel(pass, core, layer, grains, 1, out + p,
                       (char *)core->operand + (1 + p) * size);
    }
    w->kernels->fixed->outer(w->bits, grains->count, left, panels, right, how, factor, to);
}
