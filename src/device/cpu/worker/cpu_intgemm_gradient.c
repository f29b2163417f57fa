/* Gradients of weights by integer products: which grains are multiplied together, their operands,
 * their products.
 *
 * A grain's partial is N * 2^s, with s = ta + td of its two blocks (docs/exactness.md 15.6). Grains
 * with the same s >= 0 are one sum of integers, so their items form one operand. Neighbouring
 * exponents can be joined too: a grain joins those of s' < s when its integers are doubled s - s'
 * times, in one operand or the other, since N * 2^s = (N * 2^(s - s')) * 2^s'. The instruction set
 * limits the size of doubled integers. Where s < 0 each grain is rounded to units by itself.
 *
 * If the inputs are bytes themselves, they cannot be doubled; errors may then be doubled more
 * often, with a third digit (QN__WIDE). Otherwise a step of few items would need more and more
 * groups during a training, since the errors of more and more grains become small.
 *
 * All groups are added in doubles as long as bounds show that nothing is rounded there and no
 * partial is out of range; otherwise each grain's integers are checked one by one. The bounds are
 * those of the grains: |N| * 2^s of a group is at most the sum of them over its grains, doubled or
 * not. */
#include "device/cpu/worker/cpu_worker.h"
#include "num/sums.h"
#include <math.h>
#include <string.h>

enum {
    SPARE = 4 /* the operands of a layer have space for this many times the items of a batch */
};

size_t qn__cpu_operands(const qn__intgemm *intgemm, int bits, uint32_t batch, uint32_t grain) {
    const uint32_t grains = (batch + grain - 1) / grain;
    size_t each = 0; /* the most bytes for a grain of a group */
    for (uint32_t n = 1; n <= grains; ++n) {
        const size_t own = (intgemm->size(bits, n * grain) + n - 1) / n;
        each = own > each ? own : each;
    }
    const size_t worst = grains * each;
    const size_t usual = SPARE * intgemm->size(bits, batch) + 8 * intgemm->size(bits, 1);
    return worst < usual ? worst : usual;
}

static uint32_t absmax_of(uint32_t count, const uint32_t *absmax) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; ++i)
        most = absmax[i] > most ? absmax[i] : most;
    return most;
}

/* The largest |q| of a block. */
static double most_of(uint32_t absmax, float inverse) {
    float value;
    memcpy(&value, &absmax, sizeof value);
    return rint((double)(value * inverse));
}

/* How often integers up to `most` may be doubled without exceeding `largest`. */
static uint8_t doublings_of(double most, int32_t largest) {
    uint8_t times = 0;
    for (; most > 0 && 2 * most <= (double)largest; most *= 2)
        ++times;
    return times;
}

/* The exponent of inputs that are bytes themselves; no other block has their factor. */
static int32_t raw_exponent(const qn__worker *w) {
    return ilogbf(qn__cpu_raw_factor(w->program->scale));
}

/* Inspects the grain of `items` items from `first` on. Returns a bound of its |N|; 0 when there is
 * nothing to add. */
static double inspect_grain(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t first,
                            uint32_t items, qn__cpu_grain *grain) {
    const qn__worker *w = pass->worker;
    const int raw = l == w->layer && qn__cpu_is_raw(w, pass->batch->feed);
    const uint32_t absmax[2] = {absmax_of(items, l->intgemm.input.absmax + first),
                                absmax_of(items, l->intgemm.error.absmax + first)};
    const int32_t ta = raw ? raw_exponent(w) : qn__block_exponent(w->bits, absmax[0]);
    const int32_t td = qn__block_exponent(w->bits, absmax[1]);
    const int32_t largest = w->intgemm->largest(w->bits, pass->batch->items);
    const int32_t widest = raw ? QN__WIDEST : largest;
    float factor[2], inverse[2];
    *grain = (qn__cpu_grain){.exponent = QN__NOT_FINITE};
    if (ta == QN__NOT_FINITE || td == QN__NOT_FINITE)
        return 0;
    qn__cpu_block_scales(w->bits, 2, absmax, factor, inverse);
    if (raw)
        inverse[0] = 1 / qn__cpu_raw_factor(w->program->scale);
    const double input = most_of(absmax[0], inverse[0]), error = most_of(absmax[1], inverse[1]);
    *grain = (qn__cpu_grain){.exponent = ta + td,
                             .waits = input * error > 0,
                             .input = inverse[0],
                             .error = inverse[1],
                             .input_space = raw ? 0 : doublings_of(input, largest),
                             .error_space = doublings_of(error, widest),
                             .narrow_space = doublings_of(error, largest)};
    return (double)items * l->out_pixels * input * error;
}

/* Bounds over all grains. */
typedef struct bounds {
    int bad, wide;  /* a block is not finite; the bounds do not exclude rounding or overflow */
    int any;        /* there is something to add */
    int32_t lowest; /* lowest exponent of a grain with something to add */
    double units;   /* bound of the sum of all partials, in units */
} bounds;

/* The grains of the items first .. end - 1. */
static bounds look_at(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t first,
                      uint32_t end, qn__cpu_grain *grain) {
    const qn__program *p = pass->worker->program;
    bounds b = {0};
    for (; first < end; first += p->grain, ++grain) {
        const uint32_t left = end - first;
        const double most = inspect_grain(pass, l, first, left < p->grain ? left : p->grain, grain);
        b.bad |= grain->exponent == QN__NOT_FINITE;
        if (!grain->waits)
            continue;
        const double partial = ldexp(most, grain->exponent);
        b.wide |= !(partial < (double)p->partial_limit) || !(most < 0x1p53);
        b.units += partial + 1;
        b.lowest = b.any && b.lowest < grain->exponent ? b.lowest : grain->exponent;
        b.any = 1;
    }
    return b;
}

/* ------------------------------------------------------------------------------------- groups */

/* A plan under construction. */
typedef struct making {
    const qn__cpu_pass *pass;
    qn__cpu_plan *plan;
    uint32_t items;
} making;

static uint8_t least(uint8_t a, int32_t b) { return a < b ? a : (uint8_t)b; }

/* Errors are doubled rather than inputs: in a slow layer there are fewer of them. */
static void add_grain(making *m, uint32_t index, int32_t doublings) {
    qn__cpu_plan *p = m->plan;
    qn__cpu_grain *grain = &p->grain[index];
    qn__cpu_grains *group = &p->group[p->groups];
    const uint32_t size = m->pass->worker->program->grain, first = index * size;
    const uint8_t errors = least(grain->error_space, doublings);
    const uint8_t inputs = (uint8_t)(doublings - errors);
    grain->waits = 0;
    group->errors_doubled |= errors > 0;
    group->wide |= errors > grain->narrow_space;
    group->inputs_doubled |= inputs > 0;
    for (uint32_t i = first; i < m->pass->batch->items && i - first < size; ++i, ++m->items) {
        p->list[m->items] = i;
        p->input_inverse[m->items] = grain->input;
        p->error_inverse[m->items] = grain->error;
        p->input_doubled[m->items] = inputs;
        p->error_doubled[m->items] = errors;
    }
}

static void begin_group(making *m, int32_t exponent) {
    m->plan->group[m->plan->groups] = (qn__cpu_grains){.first = m->items, .exponent = exponent};
}

static void end_group(making *m) {
    qn__cpu_grains *group = &m->plan->group[m->plan->groups++];
    group->count = m->items - group->first;
}

/* Grains in groups of their own: all, or those with exponents below 0. */
static void add_single(making *m, uint32_t grains, int all) {
    for (uint32_t g = 0; g < grains; ++g) {
        const qn__cpu_grain *grain = &m->plan->grain[g];
        if (!grain->waits || (grain->exponent >= 0 && !all))
            continue;
        begin_group(m, grain->exponent);
        add_grain(m, g, 0);
        end_group(m);
    }
}

/* The lowest exponent from `from` on of a waiting grain; INT32_MAX when there is none. */
static int32_t lowest_of(const making *m, uint32_t grains, int32_t from) {
    int32_t lowest = INT32_MAX;
    for (uint32_t g = 0; g < grains; ++g) {
        const qn__cpu_grain *grain = &m->plan->grain[g];
        if (grain->waits && grain->exponent >= from && grain->exponent < lowest)
            lowest = grain->exponent;
    }
    return lowest;
}

/* Grains with exponents from 0 on: repeatedly joins to the lowest waiting one all that can join.
 * Those that are doubled most often come last, so that few AMX steps have large integers. */
static void add_neighbours(making *m, uint32_t grains) {
    for (int32_t lowest; (lowest = lowest_of(m, grains, 0)) < INT32_MAX;) {
        begin_group(m, lowest);
        for (int32_t own = lowest; own < INT32_MAX; own = lowest_of(m, grains, own + 1))
            for (uint32_t g = 0; g < grains; ++g) {
                const qn__cpu_grain *grain = &m->plan->grain[g];
                if (grain->waits && grain->exponent == own &&
                    own - lowest <= grain->input_space + grain->error_space)
                    add_grain(m, g, own - lowest);
            }
        end_group(m);
    }
}

/* Assigns each group its place in the operands of a panel. */
static int place_groups(const qn__worker *w, const qn__cpu_plan *plan, size_t capacity) {
    size_t at = 0;
    for (uint32_t g = 0; g < plan->groups; ++g) {
        plan->group[g].at = at;
        at +=
            w->intgemm->size(w->bits | (plan->group[g].wide ? QN__WIDE : 0), plan->group[g].count);
    }
    return at <= capacity;
}

/* Whether an update may take sums in units of 2^shift: its factor then scales them exactly. */
static int may_shift(const qn__cpu_pass *pass, int shift) {
    return !pass->update || isnormal(ldexpf(pass->update->gradient, shift));
}

/* Whether all waiting grains can join those of the lowest exponent. */
static int are_neighbours(const qn__cpu_plan *plan, uint32_t grains, int32_t lowest) {
    for (uint32_t g = 0; g < grains; ++g) {
        const qn__cpu_grain *grain = &plan->grain[g];
        if (grain->waits && grain->exponent - lowest > grain->input_space + grain->error_space)
            return 0;
    }
    return 1;
}

/* In doubles: if all units are below 2^51 * 2^shift, a group's N is below 2^51, since its exponent
 * is at least the shift, and so are the sums over groups. In floats: a single group with an
 * exponent from 0 on is the whole sum, S = N * 2^shift, so RN(S) = RN(N) * 2^shift; then N must
 * only fit 64 bits. */
static void plan_gradient(const qn__cpu_pass *pass, uint32_t layer, qn__cpu_plan *plan) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t grains = (pass->batch->items + w->program->grain - 1) / w->program->grain;
    const bounds b = look_at(pass, l, 0, pass->batch->items, plan->grain);
    const int shift = b.any && b.lowest > 0 ? b.lowest : 0;
    const int known = !b.wide && may_shift(pass, shift);
    const int one = pass->update && b.any && b.lowest >= 0 && b.units < 0x1p61;
    making m = {.pass = pass, .plan = plan};
    plan->bad = b.bad;
    plan->groups = 0;
    plan->packed = 0;
    plan->shift = 0;
    plan->kind = QN__SUMS_INT64;
    if (b.bad)
        return;
    if (known && one && are_neighbours(plan, grains, b.lowest))
        plan->kind = QN__SUMS_FLOAT;
    else if (known && b.units < ldexp(0x1p51, shift))
        plan->kind = QN__SUMS_DOUBLE;
    if (plan->kind != QN__SUMS_INT64) {
        plan->shift = shift;
        add_neighbours(&m, grains);
    }
    add_single(&m, grains, plan->kind == QN__SUMS_INT64);
    plan->packed = place_groups(w, plan, l->intgemm.operands);
}

/* Chunks of a grain are added one after the other, so all of it must be in units of whole numbers:
 * no exponent below 0. */
void qn__cpu_plan_walk(const qn__cpu_pass *pass, uint32_t layer, uint32_t first, uint32_t items,
                       qn__cpu_plan *plan) {
    const bounds b = look_at(pass, &pass->worker->layer[layer], first, first + items, plan->grain);
    const int shift = b.any && b.lowest > 0 ? b.lowest : 0;
    const int known = !b.wide && may_shift(pass, shift) && (!b.any || b.lowest >= 0);
    plan->bad = b.bad;
    plan->kind = known && b.units < ldexp(0x1p51, shift) ? QN__SUMS_DOUBLE : QN__SUMS_INT64;
    plan->shift = plan->kind == QN__SUMS_DOUBLE ? shift : 0;
}

/* ----------------------------------------------------------------------------------- operands */

/* The floats of a block of a layer's inputs, or of a panel of its errors. */
static const float *floats_of(const qn__cpu_pass *pass, uint32_t layer, int errors,
                              uint32_t panel) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    return errors ? l->error + panel * l->out_stride : l->input + l->forward.a[panel];
}

/* The width to pass to tables with a group's inputs, in products too, or with its errors. */
static int width_of(const qn__cpu_pass *pass, uint32_t layer, const qn__cpu_grains *group,
                    int errors) {
    const int width = errors ? pass->worker->bits : qn__cpu_width(pass, layer);
    return width | (group->wide ? QN__WIDE : 0);
}

static void pack_errors(const qn__cpu_pass *pass, const qn__cpu_plan *plan, uint32_t layer,
                        const qn__cpu_grains *group, uint32_t panel, void *to) {
    const qn__worker *w = pass->worker;
    const uint32_t *list = plan->list + group->first;
    const float *inverse = plan->error_inverse + group->first;
    const uint8_t *doubled = group->errors_doubled ? plan->error_doubled + group->first : NULL;
    w->intgemm->right_items(width_of(pass, layer, group, 1), group->count, list, inverse, doubled,
                            floats_of(pass, layer, 1, panel), to);
}

static void pack_inputs(const qn__cpu_pass *pass, const qn__cpu_plan *plan, uint32_t layer,
                        const qn__cpu_grains *group, uint32_t panel, void *to) {
    const qn__worker *w = pass->worker;
    const qn__intgemm *intgemm = w->intgemm;
    const uint32_t *list = plan->list + group->first, count = group->count;
    const float *inverse = plan->input_inverse + group->first;
    const uint8_t *doubled = group->inputs_doubled ? plan->input_doubled + group->first : NULL;
    const uint8_t *bytes =
        layer ? NULL : w->fetch.rows[w->fetch.current].bytes + (size_t)panel * QN__BYTE_PANEL;
    if (layer == 0 && qn__cpu_is_raw(w, pass->batch->feed))
        intgemm->left_raw_items(width_of(pass, layer, group, 0), count, list, bytes,
                                qn__cpu_bytes_block(w), to);
    else if (layer == 0 && qn__cpu_from_bytes(w, pass->batch->feed))
        intgemm->left_bytes_items(w->bits, count, list, inverse, doubled, w->fetch.digits, bytes,
                                  qn__cpu_bytes_block(w), to);
    else
        intgemm->left_items(w->bits, count, list, inverse, doubled,
                            floats_of(pass, layer, 0, panel), to);
}

/* Where a panel of a group's operand begins. The panels of a group are consecutive, so that one
 * call multiplies several of them. */
static char *place_of(const qn__cpu_pass *pass, uint32_t layer, const qn__cpu_grains *group,
                      int errors, uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const size_t size = w->intgemm->size(width_of(pass, layer, group, errors), group->count);
    const size_t at = panel * size;
    return errors ? (char *)l->intgemm.error_items + l->out_panels * group->at + at
                  : (char *)l->intgemm.input_items + qn__cpu_blocks(l) * group->at + at;
}

/* Packs all groups of one panel. */
static void pack_panel(const qn__cpu_pass *pass, const qn__cpu_plan *plan, uint32_t layer,
                       int errors, uint32_t panel) {
    for (uint32_t g = 0; g < plan->groups && plan->packed; ++g) {
        const qn__cpu_grains *group = &plan->group[g];
        void *to = place_of(pass, layer, group, errors, panel);
        (errors ? pack_errors : pack_inputs)(pass, plan, layer, group, panel, to);
    }
}

/* Every core makes the plan for itself, so that none waits for another; after the following barrier
 * all use the first core's plan. The errors of a panel are in a cache once they are packed, so its
 * biases are summed there too. An outlet needs a fixed order, so this is not done for it. */
void qn__cpu_pack_operands(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    qn__cpu_plan *plan = thread == 0 ? &w->layer[layer].intgemm.plan : &w->core[thread].plan;
    const qn__cpu_grid inputs = {qn__cpu_blocks(l), 1, 1}, errors = {l->out_panels, 1, 1};
    uint32_t panel, row;
    plan_gradient(pass, layer, plan);
    while (plan->packed && qn__cpu_take(w, thread, phase, inputs, &panel, &row))
        pack_panel(pass, plan, layer, 0, panel);
    while (qn__cpu_take(w, thread, phase + 1, errors, &panel, &row)) {
        pack_panel(pass, plan, layer, 1, panel);
        if (!pass->outlet && qn__cpu_bias_task(pass, layer, panel))
            qn__cpu_failed(&w->core[thread], layer);
    }
}

void qn__cpu_intgemm_outer(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer,
                           uint32_t group, qn__cpu_patch at, qn__intgemm_out how, void *to) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_plan *plan = &l->intgemm.plan;
    const qn__cpu_grains *grains = &plan->group[group];
    const double factor = ldexp(1.0, grains->exponent - plan->shift);
    const int width = width_of(pass, layer, grains, 0);
    const char *left = core->operand, *right;
    if (plan->packed) {
        left = place_of(pass, layer, grains, 0, at.in);
        right = place_of(pass, layer, grains, 1, at.out);
    } else {
        const size_t size = w->intgemm->size(width_of(pass, layer, grains, 1), grains->count);
        right = left + size;
        pack_inputs(pass, plan, layer, grains, at.in, core->operand);
        for (uint32_t p = 0; p < at.panels; ++p)
            pack_errors(pass, plan, layer, grains, at.out + p,
                        (char *)core->operand + (1 + p) * size);
    }
    w->intgemm->outer(width, grains->count, at.blocks, left, at.panels, right, how, factor, to);
}
