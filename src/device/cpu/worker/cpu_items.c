/* The items of a batch, their dropout, and what follows errors of their outputs. */
#include "device/cpu/worker/cpu_norms.h"
#include "device/cpu/worker/cpu_worker.h"
#include "num/augment.h"
#include "num/mix.h"
#include "num/philox.h"
#include <string.h>

/* The values of an item as a training sees them before they are mixed. */
static void show(const qn__worker *w, const qn__batch *batch, const qn__cpu_core *core,
                 uint64_t item, const void *from, char *to) {
    const size_t size = qn__element_of(batch->feed->type)->size;
    if (w->program->augment)
        qn__augment_item(w->program->augment, w->program->seed, batch->epoch, item, size, from, to,
                         core->augment_space);
    else
        memcpy(to, from, qn__feed_stride(batch->feed));
}

/* The partner of an item, which is at the position before it: one that is shown already, or NULL.
 */
static void mix_in(const qn__worker *w, const qn__batch *batch, const qn__cpu_core *core,
                   uint32_t place, uint64_t item, const char *partner, char *to) {
    const qn__program *p = w->program;
    const qn__mixing mixing = qn__mix_of(p->mix, p->seed, batch->epoch, item);
    if (!partner) {
        char *space = core->augmented + QN__PANEL * qn__feed_stride(batch->feed);
        uint64_t position;
        const uint64_t other = qn__batch_partner(batch, place, &position);
        show(w, batch, core, other, qn__batch_values_at(batch, position, other), space);
        partner = space;
    }
    qn__mix_values(p->mix, &mixing, qn__element_of(batch->feed->type)->size, to, partner);
}

/* From the last item on, since the one before it is its partner, not yet mixed. */
void qn__cpu_augment(const qn__worker *w, const qn__batch *batch, const qn__cpu_core *core,
                     qn__cpu_tile at, const uint64_t *item, const void **row) {
    const size_t stride = qn__feed_stride(batch->feed);
    for (uint32_t i = 0; i < at.items; ++i) {
        show(w, batch, core, item[i], row[i], core->augmented + i * stride);
        row[i] = core->augmented + i * stride;
    }
    for (uint32_t i = at.items; w->program->mix && i-- > 0;) {
        char *to = core->augmented + i * stride;
        mix_in(w, batch, core, at.first + i, item[i], i > 0 ? to - stride : NULL, to);
    }
}

void qn__cpu_show_answers(qn__worker *w, const qn__batch *batch, const qn__cpu_core *core,
                          qn__cpu_tile at, int into) {
    const qn__program *p = w->program;
    for (uint32_t place = at.first; place < at.first + at.items; ++place)
        w->fetch.share[into][place] =
            qn__batch_show(batch, p, place, w->fetch.item[into][place],
                           w->fetch.answers[into] + (size_t)place * p->answers, core->shown_space);
}

/* 24.33: rows of items that are dropped, or scaled, as a whole. Those of an item are `items` rows
 * apart, so each item needs its random word once. */
static void drop_items(const qn__cpu_pass *pass, uint32_t layer, uint32_t first, uint32_t rows,
                       const float *from, float *to) {
    const qn__program *p = pass->worker->program;
    const qn__layer *l = &p->layer[layer];
    const uint64_t *item = pass->worker->fetch.item[pass->worker->fetch.current];
    const size_t items = pass->batch->items, count = (size_t)rows * QN__PANEL;
    for (size_t k = 0; k < items && k < rows; ++k) {
        uint32_t word[4];
        qn__words(p->seed, QN__PURPOSE_DROPOUT, p->number + layer, pass->batch->epoch,
                  item[(first + k) % items], 0, word);
        const int drops = word[0] < l->drop_threshold;
        for (size_t i = k * QN__PANEL; i < count; i += items * QN__PANEL)
            for (uint32_t c = 0; c < QN__PANEL; ++c)
                to[i + c] = drops ? 0.0f : from[i + c] * l->drop_keep;
    }
}

void qn__cpu_dropout(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, uint32_t first,
                     uint32_t rows, const float *from, float *to) {
    const qn__program *p = pass->worker->program;
    const qn__layer *l = &p->layer[layer];
    const uint32_t items = pass->batch->items;
    if (l->drop_path) {
        drop_items(pass, layer, first, rows, from, to);
        return;
    }
    for (uint32_t i = first; i < first + rows; ++i, from += QN__PANEL, to += QN__PANEL) {
        const uint64_t item = pass->worker->fetch.item[pass->worker->fetch.current][i % items];
        const uint64_t element = (uint64_t)(i / items) * l->to.channels + panel * QN__PANEL;
        uint32_t word[4];
        for (uint32_t c = 0; c < QN__PANEL; ++c) {
            if (c == 0 || (element + c) % 4 == 0)
                qn__words(p->seed, QN__PURPOSE_DROPOUT, p->number + layer, pass->batch->epoch, item,
                          (uint32_t)((element + c) / 4), word);
            to[c] = word[(element + c) % 4] < l->drop_threshold ? 0.0f : from[c] * l->drop_keep;
        }
    }
}

/* 24.30: what the first reader of an output has passed, plus the sum of what the others pass, from
 * the last one to the second. */
static void add_sides(const qn__worker *w, const qn__cpu_layer *l, size_t at, size_t count,
                      float *error) {
    const qn__cpu_layer *last = l->sides;
    float sum[16 * QN__PANEL];
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < 16 * QN__PANEL ? count - i : 16 * QN__PANEL;
        memcpy(sum, last->gives + at + i, n * sizeof *sum);
        for (const qn__cpu_layer *side = last->next_side; side; side = side->next_side)
            w->kernels->add(n, side->gives + at + i, sum);
        w->kernels->add(n, sum, error + i);
    }
}

void qn__cpu_finish_errors(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer,
                           uint32_t panel, uint32_t first, uint32_t rows) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *side = l->sides;
    const float *y = l->slope ? l->slope : l->output;
    const qn__layer *derived = (l->pools ? l->pools : l)->layer;
    size_t at = panel * l->out_stride + (size_t)first * QN__PANEL;
    if (side && (side->next_side || l->dropped)) {
        add_sides(w, l, at, (size_t)rows * QN__PANEL, l->error + at);
        side = NULL;
    }
    if (l->dropped)
        qn__cpu_dropout(pass, layer, panel, first, rows, l->error + at, l->error + at);
    for (uint32_t n; rows > 0; rows -= n, first += n, at += (size_t)n * QN__PANEL) {
        qn__cpu_slopes norm[2];
        const uint32_t norms = qn__cpu_norm_slopes(pass, l, panel, first, rows, &n, norm);
        const uint32_t bits =
            w->kernels->finish(derived->activation, n, side ? side->gives + at : NULL, y + at,
                               norms, norm, l->error + at);
        if (!w->bits)
            qn__cpu_note_error(core, layer, bits);
    }
}

static void fetch_rows(const float *from, uint32_t rows) {
    for (uint32_t i = 0; i < rows; ++i)
        __builtin_prefetch(from + (size_t)i * QN__PANEL, 0, 2);
}

void qn__cpu_fetch_after_errors(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel,
                                uint32_t first, uint32_t rows) {
    const qn__cpu_layer *l = &pass->worker->layer[layer], *below = l->below;
    const size_t at = panel * below->out_stride + (size_t)first * QN__PANEL;
    if (l->branch)
        return;
    if ((below->pools ? below->pools : below)->layer->activation != QN__ACT_NONE)
        fetch_rows((below->slope ? below->slope : below->output) + at, rows);
    if (below->sides)
        fetch_rows(below->sides->gives + at, rows);
}

void qn__cpu_after_errors(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer,
                          uint32_t panel, uint32_t first, uint32_t rows) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    if (!l->branch)
        qn__cpu_finish_errors(pass, core, (uint32_t)(l->below - pass->worker->layer), panel, first,
                              rows);
}
