/* The loss of networks that give several answers to an item (docs/exactness.md 24.70): a phase
 * after the last layer, whose rows are pixels of items, items fastest. A task has sixteen rows, one
 * in each lane of a vector. Losses of rows are added up later, in their order (cpu_loss.c). */
#include "device/cpu/worker/cpu_lanes.h"
#include "kernels/step.h"
#include "layer/embedding.h"
#include "num/elementary.h"
#include "num/elementary_scalar.h"
#include <math.h>

/* What a task knows of its rows; lanes without a row have no target. */
typedef struct rows_of_task {
    uint32_t row[QN__LANES], count;   /* rows of the pass */
    const uint8_t *target[QN__LANES]; /* of each row; NULL: `own` is its only one */
    uint32_t own[QN__LANES];
    float factor[QN__LANES]; /* of the item, in units (8.1, 24.72) */
    float max[QN__LANES], sum[QN__LANES], loss[QN__LANES];
    int32_t right[QN__LANES];
    int32_t best[QN__LANES]; /* of cross-entropy: the class of 6.6 */
} rows_of_task;

/* The share of the item at a place of the pass; *bytes: its targets, unless they are its values. */
static float share_at(const qn__cpu_pass *pass, uint32_t place, const uint8_t **bytes) {
    const qn__worker *w = pass->worker;
    const qn__feed *feed = pass->batch->feed;
    const qn__cpu_fetching *f = &w->fetch;
    const uint64_t item = f->item[f->current][place];
    *bytes = NULL;
    if (pass->training && w->program->moves_answers) {
        *bytes = f->answers[f->current] + (size_t)place * w->program->answers;
        return f->share[f->current][place];
    }
    if (!w->program->next)
        *bytes = qn__feed_answers(feed, w->program, item);
    return feed->weights ? feed->weights[item] : 1.0f;
}

/* The token of an item at a place of the pass. */
static uint32_t value_at(const qn__cpu_pass *pass, uint32_t place, uint32_t at) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *first = &w->layer[0];
    const float *values = w->fetch.inputs[w->fetch.current];
    return qn__next_token(
        values[at / QN__PANEL * first->in_stride + (size_t)place * QN__PANEL + at % QN__PANEL],
        qn__program_classes(w->program));
}

static void find_targets(const qn__cpu_pass *pass, rows_of_task *of) {
    const qn__worker *w = pass->worker;
    const uint32_t items = pass->batch->items, each = qn__answers_of_pixel(w->program);
    const float scale = ldexpf(1.0f, (int)w->program->gradient_scale);
    for (uint32_t i = 0; i < QN__LANES; ++i) {
        const uint32_t row = of->row[i], item = row % items, at = row / items;
        of->factor[i] = of->loss[i] = 0.0f;
        of->right[i] = 0;
        of->target[i] = NULL;
        of->own[i] = QN__NO_ANSWER;
        if (i >= of->count || !qn__feed_labelled(pass->batch->feed))
            continue;
        of->factor[i] = share_at(pass, item, &of->target[i]) * scale;
        of->target[i] += of->target[i] ? (size_t)at * each : 0;
        if (w->program->next)
            of->own[i] = value_at(pass, item, at + 1);
    }
}

static uint32_t target_of(const rows_of_task *of, uint32_t lane, uint32_t answer) {
    const uint8_t *bytes = of->target[lane];
    return !bytes ? of->own[lane] : bytes[answer] == QN__IGNORED ? QN__NO_ANSWER : bytes[answer];
}

/* 6.6 */
static void count_right(uint32_t out, const float *y, const uint32_t *own, rows_of_task *of) {
    int32_t best[QN__LANES] = {0};
    float most[QN__LANES];
    memcpy(most, y, sizeof most);
    for (uint32_t j = 1; j < out; ++j)
        for (uint32_t i = 0; i < QN__LANES; ++i) {
            const float value = y[(size_t)j * QN__LANES + i];
            best[i] = value > most[i] ? (int32_t)j : best[i];
            most[i] = value > most[i] ? value : most[i];
        }
    for (uint32_t i = 0; i < of->count; ++i)
        of->right[i] = own[i] == (uint32_t)best[i];
    memcpy(of->best, best, sizeof best);
}

/* 7.2, 8.2, 17.3 of a pixel; z at the target. */
static void cross_entropy(const qn__worker *w, uint32_t out, const float *y, const float *z,
                          rows_of_task *of, float *delta) {
    const float on = qn__smoothed_target(w->program, 1), off = qn__smoothed_target(w->program, 0);
    float log_sum[QN__LANES];
    uint32_t own[QN__LANES];
    w->kernels->log(QN__LANES, of->sum, log_sum);
    for (uint32_t i = 0; i < QN__LANES; ++i) {
        own[i] = target_of(of, i, 0);
        if (own[i] != QN__NO_ANSWER)
            of->loss[i] = log_sum[i] - (z[i] - of->max[i]);
    }
    for (uint32_t j = 0; j < out; ++j)
        for (uint32_t i = 0; i < QN__LANES; ++i) {
            const size_t at = (size_t)j * QN__LANES + i;
            const float error = (y[at] - (j == own[i] ? on : off)) * of->factor[i];
            delta[at] = own[i] == QN__NO_ANSWER ? 0.0f : error;
        }
    count_right(out, y, own, of);
}

/* 7.6, 8.2 of each output. `delta` may be `z`: an output's z is read before its error is written.
 */
static void binary(const qn__worker *w, uint32_t out, const float *y, const float *z,
                   rows_of_task *of, float *delta) {
    for (uint32_t j = 0; j < out; ++j) {
        float v[QN__LANES], tail[QN__LANES];
        for (uint32_t i = 0; i < QN__LANES; ++i) {
            v[i] = target_of(of, i, j) ? 0.0f - z[j * QN__LANES + i] : z[j * QN__LANES + i];
            tail[i] = -fabsf(v[i]);
        }
        w->kernels->exp(QN__LANES, tail, tail);
        for (uint32_t i = 0; i < QN__LANES; ++i)
            tail[i] = 1.0f + tail[i];
        w->kernels->log(QN__LANES, tail, tail);
        for (uint32_t i = 0; i < QN__LANES; ++i) {
            const uint32_t at = j * QN__LANES + i;
            const uint32_t own = target_of(of, i, j);
            delta[at] = 0.0f;
            if (own == QN__NO_ANSWER)
                continue;
            delta[at] = (y[at] - (float)own) * of->factor[i];
            of->loss[i] = of->loss[i] + ((0.0f < v[i] ? v[i] : 0.0f) + tail[i]);
            of->right[i] += (y[at] > 0.5f) == own;
        }
    }
}

/* z becomes y; then loss and errors, where there are targets. */
static void answer(const qn__worker *w, uint32_t out, int targets, float *y, rows_of_task *of,
                   float *delta) {
    const size_t count = qn__lanes_padded(QN__LANES, out);
    float z[QN__LANES];
    if (w->program->loss == QN__LOSS_BINARY) {
        memcpy(delta, y, count * sizeof *y);
        w->kernels->activate(QN__ACT_SIGMOID, count, y);
        if (targets)
            binary(w, out, y, delta, of, delta);
        return;
    }
    for (uint32_t i = 0; i < QN__LANES; ++i) {
        const uint32_t own = target_of(of, i, 0);
        z[i] = own < out ? y[own * QN__LANES + i] : 0.0f;
    }
    qn__lanes_softmax(QN__LANES, w->kernels, out, y, of->max, of->sum);
    if (targets)
        cross_entropy(w, out, y, z, of, delta);
}

/* Of errors that were written: their absmax. */
static void note_errors(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                        uint32_t first, uint32_t rows) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const qn__cpu_layer *l = &w->layer[last];
    if (w->bits && qn__cpu_is_sliced(pass))
        qn__cpu_note_rows(w, slice->items, first, rows, l->layer->to.channels,
                          l->error + (size_t)first * QN__PANEL, slice->stride, NULL,
                          l->intgemm.error.absmax + slice->item);
    else if (w->bits && l->walks)
        qn__cpu_note_errors(pass, last, first, rows, 0, l->out_panels);
    else if (w->bits)
        w->intgemm->absmax(rows, l->layer->out, l->error + (size_t)first * QN__PANEL, l->backward.a,
                           NULL, l->intgemm.error.absmax + first);
    for (uint32_t p = 0; p < l->out_panels && !w->bits; ++p)
        qn__cpu_note_error(
            &w->core[thread], last,
            w->kernels->absmax((size_t)rows * QN__PANEL,
                               l->error + p * slice->stride + (size_t)first * QN__PANEL));
}

/* What the caller asked for about these positions. */
static void give_positions(const qn__cpu_pass *pass, const rows_of_task *of) {
    const qn__worker *w = pass->worker;
    const qn__applied *to = pass->applied;
    const uint32_t items = pass->batch->items;
    for (uint32_t i = 0; i < of->count; ++i) {
        const uint32_t row = of->row[i];
        const size_t at = (size_t)(row % items) * w->program->answers + row / items;
        if (to->losses)
            to->losses[at] = of->loss[i];
        if (to->tokens)
            to->tokens[at] = of->best[i];
    }
}

static void answer_rows(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                        uint32_t first, uint32_t rows) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const uint32_t out = l->layer->to.channels;
    const size_t at = (size_t)first * QN__PANEL;
    float *y = w->core[thread].rows, *delta = y + (size_t)l->out_panels * QN__PANEL * QN__LANES;
    rows_of_task of = {.count = rows};
    for (uint32_t i = 0; i < rows; ++i)
        of.row[i] = qn__cpu_slice_row(slice, pass->batch->items, first + i);
    find_targets(pass, &of);
    qn__lanes_gather(QN__LANES, l->output + at, slice->stride, rows, out, y);
    answer(w, out, qn__feed_labelled(pass->batch->feed), y, &of, delta);
    for (uint32_t i = 0; i < rows; ++i) {
        w->losses.loss[of.row[i]] = of.loss[i];
        w->losses.chosen[of.row[i]] = of.right[i];
    }
    if (w->program->next && pass->applied)
        give_positions(pass, &of);
    if (!pass->training) {
        qn__lanes_spread(QN__LANES, y, rows, out, l->output + at, slice->stride);
        return;
    }
    qn__lanes_spread(QN__LANES, delta, rows, out, l->error + at, slice->stride);
    note_errors(pass, thread, slice, first, rows);
}

void qn__cpu_answers(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                     uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_grid grid = {(slice->rows + QN__LANES - 1) / QN__LANES, 1, 1};
    for (uint32_t task, row; qn__cpu_take(w, thread, phase, grid, &task, &row);) {
        const uint32_t first = task * QN__LANES, left = slice->rows - first;
        answer_rows(pass, thread, slice, first, left < QN__LANES ? left : QN__LANES);
    }
}

/* 24.71 for some items, at most QN__LANES: lines of pixels, and the lines of an item. A row is a
 * pixel of an item, items fastest. */
static void add_pixels(const qn__cpu_pass *pass, uint32_t first, uint32_t items) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const uint32_t height = l->layer->to.height, width = l->out_pixels / height;
    float loss[QN__LANES] = {0.0f};
    uint64_t right[QN__LANES] = {0};
    size_t row = first;
    for (uint32_t y = 0; y < height; ++y) {
        float line[QN__LANES] = {0.0f};
        for (uint32_t x = 0; x < width; ++x, row += pass->batch->items)
            for (uint32_t i = 0; i < items; ++i) {
                line[i] = line[i] + w->losses.loss[row + i];
                right[i] += (uint64_t)w->losses.chosen[row + i];
            }
        for (uint32_t i = 0; i < items; ++i)
            loss[i] = loss[i] + line[i];
    }
    for (uint32_t i = 0; i < items; ++i) {
        const uint8_t *bytes;
        w->losses.item_loss[first + i] = loss[i] * share_at(pass, first + i, &bytes);
        w->losses.item_right[first + i] = right[i];
    }
}

void qn__cpu_answer_items(const qn__cpu_pass *pass, int thread) {
    const uint32_t items = pass->batch->items, step = (uint32_t)pass->worker->threads * QN__LANES;
    if (!qn__feed_labelled(pass->batch->feed))
        return;
    for (uint32_t i = (uint32_t)thread * QN__LANES; i < items; i += step)
        add_pixels(pass, i, items - i < QN__LANES ? items - i : QN__LANES);
}
