/* One pass over a batch: the order of the phases, and the sums of losses.
 *
 * All cores run `phases`, each with the same sequence of phases. In a phase they share its tasks
 * (qn__cpu_take). A barrier stands where a phase reads what others have computed. Of a training
 * with two layers, | is a barrier:
 *
 *     fetch | forward 0 | forward 1, loss | gradient 1, errors of 0 | gradient 0, fetch the next
 *
 * So there is one barrier less in the next step, whose items are here already. Outside training
 * the pass ends after the last layer. Sums of integers do not depend on which core computed what,
 * and each float is computed by one core alone: so the division of the tasks decides no result. */
#include "base/system/clock.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_norms.h"
#include "device/cpu/worker/cpu_shorten.h"
#include "device/numeric.h"
#include "device/shorten.h"
#include "num/sums.h"
#include <math.h>
#include <string.h>

enum {
    SLIDE_TASKS = 4,     /* rows of pixels for each core, at least */
    PICTURE_ROWS = 1024, /* of a run of pictures, and the least number of its pixels */
    LEAST_PIXELS = 12
};

static int same_batch(const qn__batch *a, const qn__batch *b) {
    return a->items == b->items && a->first == b->first && a->epoch == b->epoch &&
           a->feed == b->feed && a->order == b->order && a->items > 0;
}

static void barrier(qn__worker *w, int thread) {
    w->core[thread].waited += qn__pool_barrier(w->pool, thread);
}

static void forget(qn__worker *w, qn__cpu_core *core) {
    const uint32_t layers = w->program->layers;
    memset(core->absmax_input + 1, 0, layers * sizeof *core->absmax_input);
    memset(core->absmax_error, 0, layers * sizeof *core->absmax_error);
    core->failed_layer = 0;
    core->waited = 0;
}

/* What the last layer read of an item. */
static void copy_inputs(const qn__cpu_pass *pass, uint32_t item, float *to) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const float *input = qn__cpu_input(pass, l);
    for (uint32_t c = 0; c < l->channels; ++c) {
        const float *from = input + c / QN__PANEL * l->in_stride + c % QN__PANEL;
        for (uint32_t pixel = 0; pixel < l->in_pixels; ++pixel)
            *to++ = from[((size_t)pixel * pass->batch->items + item) * QN__PANEL];
    }
}

/* This core's share of the items. */
static void give_inputs(const qn__cpu_pass *pass, int thread) {
    const qn__worker *w = pass->worker;
    const size_t in = w->program->layer[w->program->layers - 1].in;
    for (uint32_t i = (uint32_t)thread; i < pass->batch->items; i += (uint32_t)w->threads)
        copy_inputs(pass, i, pass->applied->inputs + i * in);
}

/* The class and the score of an item that has one answer. */
static void inspect_class(const qn__cpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const int binary = w->program->loss == QN__LOSS_BINARY;
    const size_t o = binary ? 0 : (size_t)w->losses.chosen[i];
    const float y =
        l->output[o / QN__PANEL * l->out_stride + (size_t)i * QN__PANEL + o % QN__PANEL];
    if (pass->applied->scores)
        pass->applied->scores[i] = binary && !w->losses.chosen[i] ? 1.0f - y : y;
    if (pass->applied->classes)
        pass->applied->classes[i] = w->losses.chosen[i];
}

/* Checks this core's share of the rows for outputs that are not finite. A row is a pixel of an
 * item, items fastest. */
static void inspect(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const uint32_t items = pass->batch->items, out = l->layer->to.channels;
    for (uint32_t i = (uint32_t)thread; i < slice->rows; i += (uint32_t)w->threads) {
        const uint32_t row = qn__cpu_slice_row(slice, items, i);
        const size_t to = (size_t)(row % items) * l->layer->out + (size_t)(row / items) * out;
        for (uint32_t o = 0; o < out; ++o) {
            const float y =
                l->output[o / QN__PANEL * slice->stride + (size_t)i * QN__PANEL + o % QN__PANEL];
            if (pass->applied->outputs)
                pass->applied->outputs[to + o] = y;
            if (!isfinite(y) && w->core[thread].bad_position > row % items)
                w->core[thread].bad_position = row % items;
        }
        if (!w->program->answers)
            inspect_class(pass, i);
    }
}

/* A layer's gradient. With an outlet what is not a product's is a phase of its own. Returns the
 * next phase. */
static uint32_t gradients(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    const qn__cpu_kind *kind = pass->worker->layer[layer].kind;
    if (pass->outlet || !kind->gradient)
        qn__cpu_biases(pass, thread, layer, phase++);
    if (kind->gradient)
        kind->gradient(pass, thread, layer, phase++);
    return phase;
}

/* Integer products of a layer that does not walk: its operands for the errors of the layer below,
 * and for its gradient if `gradient`. The last phase has noted the errors of the last two layers.
 * Returns the next phase. */
static uint32_t pack_back(const qn__cpu_pass *pass, int thread, uint32_t layer, int gradient,
                          uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const int goes = qn__cpu_goes_back(w, layer);
    if (goes)
        qn__cpu_pack_transposed(pass, thread, layer, phase++);
    if (goes || (layer < last && !(last == 1 && qn__cpu_is_fused(w)))) {
        qn__cpu_pack_errors(pass, thread, layer, phase++);
        barrier(w, thread);
    }
    if (!gradient)
        return phase;
    qn__cpu_pack_operands(pass, thread, layer, phase);
    barrier(w, thread);
    return phase + 2;
}

/* Computes the outputs again that the layer and those before it read in the backward pass. The last
 * gradient may still be computed meanwhile. Returns the next phase. */
static uint32_t recompute(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t begin = layer - w->layer[layer].recomputes;
    uint32_t largest = 0;
    if (begin == 0 && w->fetch.place.bytes) {
        qn__cpu_fetch(pass, pass->batch, w->fetch.current, thread, phase++, &largest);
        barrier(w, thread);
    }
    for (uint32_t l = begin; l < layer; ++l) {
        if (!qn__cpu_is_recomputed(w, l, layer))
            continue;
        w->layer[l].kind->forward(pass, thread, l, phase++);
        barrier(w, thread);
    }
    return phase;
}

/* The errors down to the first layer that trains, and each layer's gradient as soon as it has its
 * errors: they are still in the caches, and their memory can be used again (cpu_windows.c). Tasks
 * of a gradient are large. So they come before those of the errors where they may, and there is
 * little to wait for. Returns the next phase. */
static uint32_t back(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__worker *w = pass->worker;
    const int waits = qn__cpu_gradients_wait(w);
    const uint32_t sliced = qn__cpu_is_sliced(pass) ? 1 : 0; /* the last layer is complete then */
    for (uint32_t l = w->program->layers - sliced; l-- > w->program->frozen;) {
        const int trains = qn__program_trains(w->program, l);
        const int goes = qn__cpu_goes_back(w, l) || (trains && w->layer[l].kind->unrolls);
        const int packs = qn__cpu_is_dense_integer(w, &w->layer[l]);
        const int before = !goes || qn__cpu_keeps_parameters(w, &w->layer[l]);
        const int now = !waits && trains;
        if (l == 0 && qn__program_tied(w->program))
            barrier(w, thread); /* its sums are added to those of the last layer */
        if (w->layer[l].recomputes)
            phase = recompute(pass, thread, l, phase);
        if (packs)
            phase = pack_back(pass, thread, l, now, phase);
        if (w->layer[l].sparse.capacity) {
            qn__cpu_sparse_list(pass, thread, l, phase++);
            barrier(w, thread);
        }
        if (now && before)
            phase = gradients(pass, thread, l, phase);
        if (goes) {
            w->layer[l].kind->backward(pass, thread, l, phase++);
            barrier(w, thread);
        }
        if (now && !before)
            phase = gradients(pass, thread, l, phase);
    }
    return phase;
}

/* The gradients that waited. Returns the next phase. */
static uint32_t late_gradients(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t layers = w->program->layers, frozen = w->program->frozen;
    for (uint32_t l = frozen; l < layers; ++l, phase += 2)
        if (qn__cpu_is_dense_integer(w, &w->layer[l]) && qn__program_trains(w->program, l))
            qn__cpu_pack_operands(pass, thread, l, phase);
    barrier(w, thread);
    for (uint32_t i = frozen; i < layers; ++i) {
        const uint32_t l = pass->outlet ? layers - 1 - (i - frozen) : i;
        if (qn__program_trains(w->program, l))
            phase = gradients(pass, thread, l, phase);
    }
    return phase;
}

static void training_phases(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__worker *w = pass->worker;
    phase = back(pass, thread, phase);
    if (qn__cpu_gradients_wait(w))
        phase = late_gradients(pass, thread, phase);
    if (pass->next && qn__cpu_one_input(w))
        barrier(w, thread);
    if (pass->next) {
        w->core[thread].next_input = 0;
        qn__cpu_fetch(pass, pass->next, 1 - w->fetch.current, thread, phase,
                      &w->core[thread].next_input);
    }
}

/* Packs what a layer's forward pass reads. Returns the next phase. */
static uint32_t pack_intgemm(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    if (qn__cpu_walks_integers(l) && w->derived.stale > !qn__program_trains(w->program, layer)) {
        qn__cpu_walk_pack(pass, thread, layer, phase);
        barrier(w, thread);
    } else if (qn__cpu_packs_inputs(w, l)) {
        qn__cpu_pack_inputs(pass, thread, layer, phase);
        barrier(w, thread);
    }
    if (qn__cpu_walks_integers(l) && qn__cpu_passes_errors(w, l) && pass->training)
        qn__cpu_walk_pack_transposed(pass, thread, layer, phase + 1);
    return phase + 2;
}

static int has_finite_inputs(const qn__cpu_pass *pass, uint32_t layer) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    if (l->below && l->below->add == l && qn__cpu_adds(pass, l->below))
        return qn__cpu_norm_is_finite(pass, l->below);
    const float *input = qn__cpu_input(pass, l);
    for (uint32_t k = 0; l->below && k < l->channels; ++k)
        for (uint32_t i = 0; i < l->in_rows; ++i)
            if (!isfinite(
                    input[k / QN__PANEL * l->in_stride + (size_t)i * QN__PANEL + k % QN__PANEL]))
                return 0;
    return 1;
}

/* Finds the first layer with inputs that are not finite; the number of layers when there is none.
 * Arrays of outputs have other values after the layers that read them (cpu_windows.c). So the
 * layers are computed once more, and thread 0 looks at what each of them reads. */
static uint32_t find_invalid(const qn__cpu_pass *of, int thread, uint32_t phase) {
    qn__worker *w = of->worker;
    qn__cpu_pass own = *of;
    const qn__cpu_pass *pass = &own;
    const uint32_t last = w->program->layers - 1;
    uint32_t largest = 0;
    own.apart = 1;
    if (thread == 0)
        w->losses.invalid = last + 1;
    qn__cpu_fetch(pass, pass->batch, w->fetch.current, thread, phase++, &largest);
    barrier(w, thread);
    for (uint32_t l = 0; l <= last; ++l) {
        if (thread == 0 && l > 0 && w->losses.invalid > l && !has_finite_inputs(pass, l))
            w->losses.invalid = l;
        barrier(w, thread);
        if (l == last || qn__cpu_is_added(pass, l))
            continue;
        w->layer[l].kind->forward(pass, thread, l, phase++);
        barrier(w, thread);
    }
    return phase;
}

/* The last layer, where its loss is a phase of its own. */
static uint32_t forward_last(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    w->layer[last].kind->forward(pass, thread, last, phase);
    barrier(w, thread);
    return phase + 1;
}

static void answer_items(const qn__cpu_pass *pass, int thread) {
    qn__cpu_answer_items(pass, thread);
    barrier(pass->worker, thread);
}

static uint32_t loss(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    if (!pass->worker->program->answers) {
        qn__cpu_last(pass, thread, phase);
        barrier(pass->worker, thread);
        return phase + 1;
    }
    const qn__cpu_slice whole = qn__cpu_whole(pass);
    qn__cpu_answers(pass, thread, &whole, phase);
    barrier(pass->worker, thread);
    answer_items(pass, thread);
    return phase + 1;
}

/* An invalid loss is looked into before the errors are computed, and parameters changed. All
 * threads come to the same answer. Returns the next phase. */
static uint32_t look_into_loss(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__cpu_tally tally = {.nan = 0};
    if (pass->worker->bits || !qn__feed_labelled(pass->batch->feed))
        return phase;
    qn__cpu_tally_items(pass, 0, pass->batch->items, &tally);
    if (!tally.nan && !tally.large)
        return phase;
    phase = find_invalid(pass, thread, phase);
    if (qn__cpu_is_sliced(pass))
        return phase; /* what it still computes is not used */
    if (pass->worker->program->answers)
        phase = forward_last(pass, thread, phase);
    return loss(pass, thread, phase); /* its errors may have been overwritten */
}

/* Slices of the last layer: two of them in turn use two sets of phases from `phase` on. */
typedef struct slicing {
    uint32_t phase, done; /* slices that are done */
    qn__cpu_slice_state state;
} slicing;

static const qn__cpu_slice_way *way_of(const qn__worker *w) {
    return w->bits ? &qn__cpu_slices_integers : &qn__cpu_slices_float;
}

/* The logits and losses of a slice. Thread 0 clears the phases of the slice before while others are
 * in the present one. Returns the first phase of the slice. */
static uint32_t begin_slice(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                            slicing *of) {
    qn__worker *w = pass->worker;
    const uint32_t own = of->phase + of->done % 2 * QN__SLICE_PHASES;
    way_of(w)->inputs(pass, thread, s, own);
    barrier(w, thread);
    if (thread == 0)
        qn__cpu_again(w, of->phase + (of->done + 1) % 2 * QN__SLICE_PHASES, QN__SLICE_PHASES);
    way_of(w)->forward(pass, thread, s, own + 2);
    barrier(w, thread);
    qn__cpu_answers(pass, thread, s, own + 3);
    barrier(w, thread);
    ++of->done;
    return own;
}

static void slice_gradient(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                           uint32_t own) {
    const qn__worker *w = pass->worker;
    if (qn__program_trains(w->program, w->program->layers - 1))
        way_of(w)->gradient(pass, thread, s, own + 5);
}

/* The slices of a grain, from slice `first` on, whose integers had another scale. */
static void slices_again(const qn__cpu_pass *pass, int thread, uint32_t first, slicing *of) {
    for (uint32_t i = 0; i < of->state.wrong; ++i) {
        qn__cpu_slice s = qn__cpu_slice_at(pass, first + i);
        s.again = 1;
        s.fresh = 0;
        s.closes = i + 1 == of->state.wrong;
        slice_gradient(pass, thread, &s, begin_slice(pass, thread, &s, of));
        barrier(pass->worker, thread);
    }
}

/* The last layer, slice by slice (cpu_slices.h). Returns the next phase. */
static uint32_t slices(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1, count = qn__cpu_slices(pass);
    uint32_t next = phase + 2 * QN__SLICE_PHASES;
    slicing of = {.phase = phase};
    if (w->bits) {
        qn__cpu_slices_note(pass, thread);
        barrier(w, thread);
    }
    for (uint32_t i = 0; i < count; ++i) {
        qn__cpu_slice s = qn__cpu_slice_at(pass, i);
        const uint32_t own = begin_slice(pass, thread, &s, &of);
        if (i + 1 == count)
            answer_items(pass, thread);
        if (i + 1 == count && pass->training)
            next = look_into_loss(pass, thread, next);
        if (pass->training && w->bits)
            qn__cpu_slice_follow(pass, &s, &of.state);
        if (pass->training && qn__cpu_passes_errors(w, &w->layer[last]))
            way_of(w)->errors(pass, thread, &s, own + 4);
        if (pass->training)
            slice_gradient(pass, thread, &s, own);
        if (pass->applied)
            inspect(pass, thread, &s);
        barrier(w, thread);
        if (s.ends && !s.closes)
            slices_again(pass, thread, i - s.part, &of);
    }
    return next;
}

static void phases(void *context, int thread) {
    const qn__cpu_pass *pass = context;
    qn__worker *w = pass->worker;
    qn__cpu_core *core = &w->core[thread];
    const uint32_t last = w->program->layers - 1;
    const int all = pass->extension ? pass->extension->logits != NULL : w->program->answers > 0;
    const int sliced = !pass->extension && qn__cpu_is_sliced(pass);
    const uint32_t plain = all && !sliced ? last + 1 : last; /* layers before the loss */
    const double begun = qn__now();
    uint32_t phase = 0;
    forget(w, core);
    if (pass->narrow) {
        qn__cpu_narrow(pass, thread);
        core->busy += qn__now() - begun;
        return;
    }
    if (w->fetch.ahead.items == 0) {
        core->absmax_input[0] = 0;
        qn__cpu_fetch(pass, pass->batch, w->fetch.current, thread, phase, &core->absmax_input[0]);
        barrier(w, thread);
    } else {
        core->absmax_input[0] = core->next_input;
    }
    ++phase;
    for (uint32_t l = 0; l < plain; ++l) {
        if (w->bits)
            phase = pack_intgemm(pass, thread, l, phase);
        if (w->bits && pass->training && l + 1 == last && qn__cpu_is_fused(w) &&
            qn__cpu_passes_errors(w, &w->layer[last]))
            qn__cpu_pack_transposed(pass, thread, last, phase++);
        if (pass->training && w->layer[l].transposed && qn__cpu_passes_errors(w, &w->layer[l]))
            qn__cpu_walk_transpose(pass, thread, l, phase++);
        if (qn__cpu_is_added(pass, l) || (l > 0 && qn__cpu_is_followed(pass, &w->layer[l - 1])) ||
            (pass->training && w->layer[l].pools))
            continue;
        w->layer[l].kind->forward(pass, thread, l, phase++);
        barrier(w, thread);
    }
    if (w->bits && sliced)
        phase = pack_intgemm(pass, thread, last, phase);
    if (plain == last && pass->training && w->layer[last].transposed &&
        qn__cpu_passes_errors(w, &w->layer[last]))
        qn__cpu_walk_transpose(pass, thread, last, phase++);
    if (pass->extension) {
        qn__cpu_give_logits(pass, thread);
        core->busy += qn__now() - begun - core->waited;
        return;
    }
    core->bad_position = UINT64_MAX;
    phase = (sliced ? slices : loss)(pass, thread, phase);
    if (pass->training && !sliced)
        phase = look_into_loss(pass, thread, phase);
    if (pass->training)
        training_phases(pass, thread, phase);
    else if (pass->applied && !sliced) {
        const qn__cpu_slice whole = qn__cpu_whole(pass);
        inspect(pass, thread, &whole);
    }
    if (pass->applied && pass->applied->inputs)
        give_inputs(pass, thread);
    core->busy += qn__now() - begun - core->waited;
}

static void only_find_invalid(void *context, int thread) { find_invalid(context, thread, 0); }

/* The layer of find_invalid, after the pass. */
static uint32_t first_invalid(const qn__cpu_pass *pass) {
    qn__worker *w = pass->worker;
    if (w->bits)
        return qn__cpu_not_finite(pass);
    if (w->program->layers == 1)
        return 1;
    if (!pass->training) {
        qn__cpu_pass again = *pass;
        again.follows = 0;
        qn__cpu_begin_phases(w);
        qn__pool_run(w->pool, only_find_invalid, &again);
    }
    return w->losses.invalid;
}

static void join(qn__cpu_tally *all, const qn__cpu_tally *part) {
    all->nan |= part->nan;
    all->large |= part->large;
    all->full |= part->full;
    all->full |= __builtin_add_overflow(all->sum.loss, part->sum.loss, &all->sum.loss);
    all->sum.correct += part->sum.correct;
    all->sum.items += part->sum.items;
}

/* Of several failures the report does not depend on their order: GPUs have no order. */
qn_status qn__cpu_add_tally(const qn__cpu_pass *pass, qn__tally *tally, qn_error *err) {
    const qn__worker *w = pass->worker;
    if (!tally || !qn__feed_labelled(pass->batch->feed))
        return QN_OK;
    qn__cpu_tally all = {.sum = *tally};
    for (int t = 0; pass->narrow && t < w->threads; ++t)
        join(&all, &w->core[t].tally);
    if (!pass->narrow)
        qn__cpu_tally_items(pass, 0, pass->batch->items, &all);
    *tally = all.sum;
    if (all.nan || all.large)
        return qn__fail_loss(all.nan, first_invalid(pass), w->program, err);
    return all.full ? qn__fail(err, QN_NUMERIC, "the sum of the losses became too large") : QN_OK;
}

static qn_status check(const qn__cpu_pass *pass, qn_error *err) {
    const qn__worker *w = pass->worker;
    int failed = 0;
    uint64_t bad = UINT64_MAX;
    for (int t = 0; t < w->threads; ++t) {
        failed = w->core[t].failed_layer > failed ? w->core[t].failed_layer : failed;
        if (!pass->training && pass->applied && w->core[t].bad_position < bad)
            bad = w->core[t].bad_position;
    }
    if (pass->training && failed)
        return qn__fail_gradient(w->program->number + (uint32_t)failed - 1,
                                 w->program->layer[failed - 1].running > 0, err);
    if (bad != UINT64_MAX)
        return qn__fail(err, QN_NUMERIC, "the network gives no finite output for item %llu",
                        (unsigned long long)(pass->batch->first + bad));
    return QN_OK;
}

/* The chains of a layer that computes one matrix: of the blocks of all its taps. */
static void set_chains(const qn__worker *w, qn__cpu_layer *l, uint32_t items) {
    size_t *in = l->blocks, *out = in + qn__cpu_blocks(l);
    const int positive = l->taps > 1;
    for (size_t tap = 0; tap < l->taps; ++tap)
        for (size_t p = 0; p < l->in_panels; ++p)
            in[tap * l->in_panels + p] = p * l->in_stride + tap * items * QN__PANEL;
    for (size_t p = 0; p < l->out_panels; ++p)
        out[p] = p * l->out_stride;
    const uint32_t k = l->taps > 1 ? qn__cpu_blocks(l) * QN__PANEL : l->channels;
    l->forward = (qn__cpu_chain){.k = k, .a = in, .b = w->weight_blocks, .positive = positive};
    l->backward =
        (qn__cpu_chain){.k = l->layer->out, .a = out, .b = w->weight_blocks, .positive = positive};
}

/* Rows of a run of products of depth k. */
static uint32_t run_rows(const qn__worker *w, const qn__cpu_layer *l, uint32_t k) {
    return w->bits && qn__layer_is_integer(l->layer) ? qn__cpu_run_rows(w, k) : QN__RUN_ROWS;
}

/* Whether a walk in float32 with so many panels of results slides: a product of one panel loads a
 * value for each fma. There must be rows of pixels for all cores. */
static int slides(const qn__worker *w, const qn__cpu_layer *l, const qn__cpu_walk *walk,
                  uint32_t panels, uint32_t items) {
    int can = w->kernels->slide && !w->bits && l->taps && !l->layer->conv_groups && panels == 1 &&
              items >= w->kernels->slide_rows && walk->axis[1].kernel == 3 &&
              walk->axis[0].size / SLIDE_TASKS >= (uint32_t)w->threads;
    for (int d = 0; d < 2; ++d)
        can &=
            walk->axis[d].stride == 1 && walk->axis[d].dilation == 1 && walk->axis[d].spread == 1;
    return can;
}

/* Pixels of a run of pictures: an equal part of each row, so that tiles have neighbouring windows,
 * and few where there are many items. */
static uint32_t pixels_of_pictures(const qn__cpu_layer *l, uint32_t items) {
    const uint32_t width = l->layer->to.width, fit = PICTURE_ROWS / items;
    const uint32_t most = fit < LEAST_PIXELS   ? LEAST_PIXELS
                          : fit < QN__RUN_ROWS ? fit
                                               : QN__RUN_ROWS;
    uint32_t parts = (width - 1) / most + 1;
    while (width % parts != 0 && width / parts > most / 2)
        ++parts;
    return width % parts == 0 ? width / parts : most;
}

/* Divides the rows of a walk: where windows slide, a run is as long as its row of pixels. */
static void begin_walk(const qn__worker *w, const qn__cpu_layer *l, qn__cpu_walk *walk,
                       uint32_t panels, uint32_t depth, uint32_t items) {
    const uint32_t most = run_rows(w, l, depth);
    walk->slides = slides(w, l, walk, panels, items);
    /* Of woven pictures a run has whole vectors of items, of several pixels or of one. */
    walk->whole = l->woven ? QN__PANEL : 0;
    const int one = l->woven && items < most && items % QN__PANEL != 0;
    qn__cpu_walk_begin(walk, items,
                       walk->slides                         ? items * walk->axis[1].size
                       : l->pictures && walk == &l->outputs ? items * pixels_of_pictures(l, items)
                       : one                                ? items
                                                            : most);
}

/* Sets the rows, strides, chains and walks of all layers. */
static void set_rows(const qn__cpu_pass *pass) {
    qn__worker *w = pass->worker;
    const uint32_t items = pass->batch->items;
    const qn__applied *applied = pass->training ? NULL : pass->applied;
    const uint32_t positions = w->shortens ? qn__longest(w->program, pass->batch, applied) : 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        if (w->shortens)
            qn__cpu_shorten(w, l, positions);
        l->in_rows = items * l->in_pixels;
        l->rows = items * l->out_pixels;
        l->in_stride = qn__cpu_stride(l->in_rows);
        l->out_stride = qn__cpu_stride(l->rows);
        atomic_store_explicit(&l->sparse.used, 0, memory_order_relaxed);
        if (l->walks)
            begin_walk(w, l, &l->outputs, l->out_panels, qn__cpu_depth(l), items);
        else
            set_chains(w, l, items);
        if (l->inputs.panels)
            begin_walk(w, l, &l->inputs, l->in_panels, qn__cpu_back_depth(l), items);
    }
    qn__cpu_norm_begin(w, items);
    for (size_t p = 0; pass->next && p < w->layer[0].in_panels; ++p)
        w->fetch.input_blocks[1 - w->fetch.current][p] = p * qn__cpu_stride(pass->next->items);
    for (size_t p = 0; p < w->layer[0].in_panels; ++p)
        w->fetch.input_blocks[w->fetch.current][p] = p * w->layer[0].in_stride;
}

qn_status qn__cpu_run(qn__cpu_pass *pass, qn__tally *tally, qn_error *err) {
    qn__worker *w = pass->worker;
    pass->follows = !pass->training && !w->bits;
    if (pass->training)
        qn__cpu_fold_frozen(w);
    else if (!w->derived.folded)
        qn__cpu_fold(w);
    qn__cpu_begin_phases(w);
    if (same_batch(&w->fetch.ahead, pass->batch))
        w->fetch.current = 1 - w->fetch.current;
    else
        w->fetch.ahead.items = 0;
    set_rows(pass);
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        if (!w->layer[l].other)
            w->layer[l].second = w->fetch.inputs[w->fetch.current];
        if (!w->layer[l].below) {
            w->layer[l].input = w->fetch.inputs[w->fetch.current];
            if (!qn__cpu_packs_inputs(w, &w->layer[l]))
                w->layer[l].intgemm.input = w->fetch.rows[w->fetch.current];
        }
    }
    if (w->bits)
        qn__cpu_begin_notes(w, pass->batch->items);
    qn__pool_run(w->pool, phases, pass);
    if (pass->narrow)
        qn__cpu_narrow_end(pass);
    w->derived.stale = pass->update != NULL;
    w->fetch.ahead.items = 0;
    if (pass->next)
        w->fetch.ahead = *pass->next;
    /* Outside training the first invalid item is more useful than the loss of its grain. */
    qn_status status = pass->training ? QN_OK : check(pass, err);
    if (status == QN_OK)
        status = qn__cpu_add_tally(pass, tally, err);
    return status == QN_OK && pass->training ? check(pass, err) : status;
}
