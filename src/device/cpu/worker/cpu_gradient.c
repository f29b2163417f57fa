/* Weight gradients: the sums over grains, and the update that follows in the same pass.
 *
 * The partial of each grain is rounded to an integer of fixed units, and the integers are added: so
 * the sum does not depend on who computed which grain. Adding integers to memory is slow. Three
 * ways give the same sum, and `qn__cpu_choose_sums` takes the first that is exact:
 *
 *     one grain        its partial stays a float: it is the sum
 *     doubles          rounded partials are whole numbers, added without error below 2^53;
 *                      every `flush_every` grains they go to integers
 *     integers         each partial is checked: some may be out of range
 *
 * A task is a block of weights. Without other ranks or devices its sum is complete, and the task
 * updates its weights at once: the sum is never written to memory. */
#include "base/binary/float_bits.h"
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include <math.h>
#include <string.h>

enum {
    BLOCK = QN__PANEL * QN__PANEL,
    FEW_ITEMS = 32,
    MANY_ITEMS = 128,
    MANY_TASKS = 64,
    MOST_INPUTS = 32
};

static float absmax_of(const qn__worker *w, uint32_t layer, int errors) {
    const uint32_t source = (uint32_t)(qn__layer_source(w->program->layer, layer) + 1);
    uint32_t bits = 0;
    for (int t = 0; t < w->threads; ++t) {
        const uint32_t own = errors ? w->core[t].absmax_error[w->layer[layer].error_of]
                                    : w->core[t].absmax_input[source];
        bits = own > bits ? own : bits;
    }
    return qn__float_of_bits(bits);
}

qn__cpu_summing qn__cpu_choose_sums(const qn__cpu_pass *pass, uint32_t layer) {
    const qn__worker *w = pass->worker;
    const qn__program *p = w->program;
    const double input = fmax(absmax_of(w, layer, 0), 1.0), error = absmax_of(w, layer, 1);
    const double length = (double)p->grain * w->layer[layer].out_pixels;
    const double bound = length * (1.0 + 1e-6 * length) * input * error + 1.0;
    const float largest = absmax_of(w, layer, 0) + absmax_of(w, layer, 1);
    /* The first comparison is false for a NaN and for an infinity. */
    if (!(largest < INFINITY) || !(bound < 0x1p51) || !(bound < p->partial_limit))
        return (qn__cpu_summing){.flush_every = 1, .finite = largest < INFINITY};
    const double grains = 0x1p51 / bound;
    return (qn__cpu_summing){.narrow = 1,
                             .finite = 1,
                             .flush_every = grains > 0x1p20 ? 1u << 20 : (uint32_t)grains,
                             .some = layer == 0 && qn__cpu_mostly_zero(pass)};
}

static qn__cpu_summing choose_intgemm(const qn__cpu_pass *pass, uint32_t layer) {
    qn__cpu_summing how = {.plan = &pass->worker->layer[layer].intgemm.plan};
    if (pass->update) {
        how.update = *pass->update;
        how.update.gradient = ldexpf(how.update.gradient, how.plan->shift);
        how.strips =
            pass->batch->items > FEW_ITEMS && how.plan->packed && how.plan->kind != QN__SUMS_INT64;
    }
    return how;
}

/* Partials of all grains, summed without checks: in doubles, which are flushed to integers before
 * they can overflow. A single grain's partials stay floats. */
static void sum_narrow(const qn__cpu_pass *pass, const qn__cpu_layer *l, const float *a,
                       const uint16_t *some, const float *d, uint32_t panels, uint32_t flush_every,
                       qn__cpu_sums *s) {
    const qn__worker *w = pass->worker;
    const size_t stride = l->out_stride, count = (size_t)panels * BLOCK;
    const uint32_t grain = w->program->grain;
    uint32_t held = 0;
    s->kind = QN__SUMS_DOUBLE;
    if (l->rows <= grain) {
        s->kind = QN__SUMS_FLOAT;
        const qn__cpu_span all = {.items = l->rows, .columns = 1, .rows = 1};
        w->kernels->outer(&all, a, some, d, stride, NULL, QN__PARTIAL_ONLY, s->partial, panels);
        return;
    }
    if ((l->rows + grain - 1) / grain > flush_every) {
        s->kind = QN__SUMS_INT64;
        memset(s->wide, 0, count * sizeof *s->wide);
    }
    for (uint32_t i = 0; i < l->rows; i += grain) {
        const uint32_t n = l->rows - i < grain ? l->rows - i : grain;
        if (held == flush_every) {
            w->kernels->flush(count, s->narrow, s->wide);
            held = 0;
        }
        const qn__cpu_span span = {.items = n, .columns = 1, .rows = 1};
        w->kernels->outer(&span, a + (size_t)i * QN__PANEL, some ? some + i : NULL,
                          d + (size_t)i * QN__PANEL, stride, NULL,
                          held++ ? QN__PARTIAL_ADD : QN__PARTIAL_FIRST, s->narrow, panels);
    }
    if (s->kind == QN__SUMS_INT64)
        w->kernels->flush(count, s->narrow, s->wide);
}

/* The same when each partial must be checked. Returns 1 when one was out of range. Only the first
 * `rows` rows of a block are inputs. The rows after them are padding (1/2 for sigmoid) and must
 * not be checked. */
static int sum_wide(const qn__cpu_pass *pass, const qn__cpu_layer *l, const float *a,
                    const float *d, uint32_t panels, uint32_t rows, qn__cpu_sums *s) {
    const qn__worker *w = pass->worker;
    const size_t stride = l->out_stride, count = (size_t)panels * BLOCK;
    const uint32_t grain = w->program->grain;
    int bad = 0;
    s->kind = QN__SUMS_INT64;
    memset(s->wide, 0, count * sizeof *s->wide);
    for (uint32_t i = 0; i < l->rows; i += grain) {
        const uint32_t n = l->rows - i < grain ? l->rows - i : grain;
        const qn__cpu_span span = {.items = n, .columns = 1, .rows = 1};
        w->kernels->outer(&span, a + (size_t)i * QN__PANEL, NULL, d + (size_t)i * QN__PANEL, stride,
                          NULL, QN__PARTIAL_RAW, s->partial, panels);
        for (size_t at = 0; at < count; at += BLOCK)
            bad |=
                qn__cpu_add_partials(w, 1, (size_t)rows * QN__PANEL, s->partial + at, s->wide + at);
    }
    return bad;
}

/* The same by integer products, for `blocks` panels of inputs; one panel if each partial must be
 * checked. */
static int sum_intgemm(const qn__cpu_pass *pass, qn__cpu_core *core, const qn__cpu_plan *plan,
                       uint32_t layer, qn__cpu_patch at, uint32_t rows, qn__cpu_sums *s) {
    const size_t count = (size_t)at.blocks * at.panels * BLOCK;
    const float limit = pass->worker->program->partial_limit;
    int64_t exact[QN__OUT_GROUP * BLOCK], units;
    int bad = plan->bad;
    s->kind = plan->kind;
    s->shift = plan->shift;
    if (plan->kind == QN__SUMS_INT64)
        memset(s->wide, 0, count * sizeof *s->wide);
    else if (plan->groups == 0)
        memset(s->narrow, 0, count * sizeof *s->narrow);
    for (uint32_t g = 0; g < plan->groups; ++g) {
        if (plan->kind != QN__SUMS_INT64) {
            const qn__intgemm_out how = plan->kind == QN__SUMS_FLOAT ? QN__INTGEMM_FLOAT
                                        : g == 0                     ? QN__INTGEMM_FIRST
                                                                     : QN__INTGEMM_ADD;
            qn__cpu_intgemm_outer(pass, core, layer, g, at, how,
                                  plan->kind == QN__SUMS_FLOAT ? (void *)s->partial
                                                               : (void *)s->narrow);
            continue;
        }
        qn__cpu_intgemm_outer(pass, core, layer, g, at, QN__INTGEMM_INTEGER, exact);
        for (size_t i = 0; i < count; ++i) {
            if (i % BLOCK >= (size_t)rows * QN__PANEL)
                continue;
            if (qn__intgemm_units(exact[i], plan->group[g].exponent, limit, &units))
                s->wide[i] += units;
            else
                bad = 1;
        }
    }
    return bad;
}

/* Where new weights of panel `in` store their absmax. A task begins with the first panel of a
 * strip, which clears the values. */
static uint32_t *strip_of(const qn__cpu_layer *l, uint32_t in, uint32_t out) {
    uint32_t *absmax = qn__cpu_strip_absmax(l, out, in / QN__STRIP);
    if (in % QN__STRIP == 0)
        memset(absmax, 0, QN__PANEL * sizeof *absmax);
    return absmax;
}

/* Sums of a patch. It has a single panel of inputs, unless an update follows and `how` sums whole
 * strips: then it is within one strip. */
static int weights_task(const qn__cpu_pass *pass, int thread, uint32_t layer,
                        const qn__cpu_summing *how, qn__cpu_patch at) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const float *a = l->input + l->forward.a[at.in];
    const float *d = l->error + at.out * l->out_stride;
    const uint32_t rows = (at.blocks - 1) * QN__PANEL + qn__cpu_rows_of(l, at.in + at.blocks - 1);
    qn__cpu_sums_space buffer;
    qn__cpu_sums s = {.narrow = buffer.narrow, .wide = buffer.wide, .partial = buffer.partial};
    s.shift = 0;
    s.update = pass->update;
    if (how->plan) {
        s.update = &how->update;
        if (sum_intgemm(pass, &w->core[thread], how->plan, layer, at, rows, &s))
            return 1;
    } else if (how->narrow)
        sum_narrow(pass, l, a,
                   how->some ? w->fetch.zeros[w->fetch.current].some + at.in * w->capacity : NULL,
                   d, at.panels, how->flush_every, &s);
    else if (sum_wide(pass, l, a, d, at.panels, rows, &s))
        return 1;
    for (uint32_t p = 0; p < at.panels; ++p) {
        const size_t from = (size_t)p * at.blocks * BLOCK;
        s.absmax = w->bits && pass->update ? strip_of(l, at.in, at.out + p) : NULL;
        qn__cpu_keep_weights(pass, l, at.in, rows, at.out + p, &s, from);
    }
    return 0;
}

/* Panels of inputs in one task. Integer products are fast, and in a large layer each task reads all
 * its errors from the L3 cache again. So there are few tasks, if they are enough for all cores. An
 * outlet that reports progress counts tasks of one panel. */
static uint32_t inputs_of_task(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    const uint32_t enough = MANY_TASKS * (uint32_t)pass->worker->threads;
    uint32_t panels = QN__STRIP;
    if (!pass->worker->bits || pass->outlet)
        return 1;
    while (panels < MOST_INPUTS && qn__cpu_groups(l) * (qn__cpu_blocks(l) / (2 * panels)) >= enough)
        panels *= 2;
    return panels;
}

/* A group of panels of outputs by some panels of inputs. Returns 1 when a number was out of
 * range. */
static int gradient_task(const qn__cpu_pass *pass, int thread, uint32_t layer,
                         const qn__cpu_summing *how, uint32_t first, uint32_t group) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t out = group * QN__OUT_GROUP, beside = l->out_panels - out;
    const uint32_t panels = beside < QN__OUT_GROUP ? beside : QN__OUT_GROUP;
    const uint32_t left = qn__cpu_blocks(l) - first, most = inputs_of_task(pass, l);
    const uint32_t end = first + (left < most ? left : most);
    const int packs = w->bits && pass->update;
    const uint32_t step = how->strips ? QN__STRIP : 1;
    int bad = 0;
    for (uint32_t in = first, next; in < end; in = next) {
        next = in + step < end ? in + step : end;
        const qn__cpu_patch at = {in, next - in, out, panels};
        bad |= weights_task(pass, thread, layer, how, at);
        if (packs && (next == end || next % QN__STRIP == 0))
            for (uint32_t p = out; p < out + panels; ++p)
                qn__cpu_strip_changed(w, layer, p, in / QN__STRIP);
    }
    for (uint32_t p = out; first == 0 && p < out + panels && !pass->outlet && !w->bits; ++p)
        bad |= qn__cpu_bias_task(pass, layer, p);
    if (packs)
        qn__cpu_count_strips(w, layer, group, panels * ((end - first + QN__STRIP - 1) / QN__STRIP));
    return bad;
}

/* The outer loop is over groups of panels of outputs, the inner one over inputs: the errors of a
 * group stay in the cache. Integers are small: the errors of all groups of a thread stay, so that
 * the inputs are read only once. An outlet sends sums from the end of the words first, where the
 * biases of a layer follow its weights; groups then run from the last to the first. */
void qn__cpu_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    if (w->takes_lists) {
        qn__cpu_lists_gradient(pass, thread, phase);
        return;
    }
    const qn__cpu_summing how =
        w->bits ? choose_intgemm(pass, layer) : qn__cpu_choose_sums(pass, layer);
    const uint32_t groups = qn__cpu_groups(l), inputs = inputs_of_task(pass, l);
    const int once = w->bits && !pass->outlet && l->rows > MANY_ITEMS;
    const qn__cpu_grid grid = {groups, (qn__cpu_blocks(l) + inputs - 1) / inputs, !once};
    for (uint32_t group, row; qn__cpu_take(w, thread, phase, grid, &group, &row);) {
        if (pass->outlet)
            group = groups - 1 - group;
        if (gradient_task(pass, thread, layer, &how, row * inputs, group))
            qn__cpu_failed(&w->core[thread], layer);
        if (pass->outlet)
            qn__cpu_progress(pass, thread, layer, group);
    }
}

void qn__cpu_biases(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grid grid = {l->vectors || l->layer->tied ? l->out_panels : 0, 1, 1};
    for (uint32_t panel, row; qn__cpu_take(w, thread, phase, grid, &panel, &row);) {
        if (l->kind->sums(pass, layer, panel))
            qn__cpu_failed(&w->core[thread], layer);
        if (pass->outlet)
            qn__cpu_progress(pass, thread, layer, qn__cpu_groups(l));
    }
}
