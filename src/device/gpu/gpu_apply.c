/* Forward pass without dropout, and copying the requested results. */
#include "device/gpu/gpu_worker.h"
#include <string.h>

/* Numbers of one pixel of an item, `stride` numbers from one channel to the next. */
static void spread_pixel(const float *from, uint32_t channels, size_t stride, float *to) {
    for (uint32_t c = 0; c < channels; ++c)
        to[c * stride] = from[c];
}

/* What the last layer reads. Rows stand in the order grain, pixel, item of the grain. */
static qn_status read_inputs(qn__worker *w, uint32_t items, float *to, qn_error *err) {
    const qn__gpu_layer *source = &w->layer[w->layer[w->program->layers - 1].source];
    const uint32_t channels = source->layer->to.channels, grain = w->program->grain;
    const uint64_t pixels = qn__gpu_pixels(source->layer), rows = items * pixels;
    const size_t ld = (size_t)qn__gpu_ld(channels), row = ld * sizeof *to;
    const uint64_t most = w->stage.bytes / row;
    const float *stage = (const float *)(const void *)w->stage.memory;
    qn_status status = QN_OK;
    for (uint64_t first = 0, end; status == QN_OK && first < rows; first = end) {
        end = rows - first < most ? rows : first + most;
        status = qn__gpu_read(w->driver, w->gpu, &source->output, first * row, w->stage.memory,
                              (end - first) * row, err);
        for (uint64_t r = first; status == QN_OK && r < end; ++r) {
            const uint64_t begin = r / (grain * pixels) * grain, left = items - begin;
            const uint64_t own = left < grain ? left : grain, at = r - begin * pixels;
            spread_pixel(stage + (r - first) * ld, channels, pixels,
                         to + (begin + at % own) * source->layer->out + at / own);
        }
    }
    return status;
}

/* Numbers of 4 bytes of the positions of the pass, which follow one another, to the places of all
 * positions. The others stay as they are. */
static void spread_positions(const qn__worker *w, uint32_t items, void *array) {
    const size_t all = w->program->answers;
    const size_t own = qn__gpu_pixels(w->layer[w->program->layers - 1].layer);
    uint32_t *numbers = array;
    for (size_t i = items; own < all && array && i-- > 0;)
        memmove(numbers + i * all, numbers + i * own, own * sizeof *numbers);
}

/* The tokens of positions are the lowest bits of their states (answers.cl). */
static qn_status read_positions(qn__worker *w, uint32_t items, const qn__applied *applied,
                                qn_error *err) {
    if (!applied->losses && !applied->tokens)
        return QN_OK;
    const size_t count = (size_t)items * qn__gpu_pixels(w->layer[w->program->layers - 1].layer);
    qn_status status = QN_OK;
    if (applied->losses)
        status = qn__gpu_read(w->driver, w->gpu, &w->batch.pixel_loss, 0, applied->losses,
                              count * sizeof *applied->losses, err);
    if (status == QN_OK && applied->tokens)
        status = qn__gpu_read(w->driver, w->gpu, &w->batch.pixel_state, 0, applied->tokens,
                              count * sizeof *applied->tokens, err);
    for (size_t i = 0; status == QN_OK && applied->tokens && i < count; ++i)
        applied->tokens[i] &= 0xFFFFFF;
    spread_positions(w, items, applied->losses);
    spread_positions(w, items, applied->tokens);
    return status;
}

/* The outputs of the last layer, where the pass has them all. */
static qn_status read_outputs(qn__worker *w, uint32_t items, float *to, qn_error *err) {
    const uint32_t rows = items * qn__gpu_pixels(w->layer[w->program->layers - 1].layer);
    return w->slices.rows ? QN_OK
                          : qn__gpu_read_outputs(w, items, &(qn__gpu_range){0, rows}, to, err);
}

static qn_status read_applied(qn__worker *w, uint32_t items, const qn__applied *applied,
                              qn_error *err) {
    qn_status status = QN_OK;
    if (applied->classes)
        status = qn__gpu_read(w->driver, w->gpu, &w->batch.classes, 0, applied->classes,
                              items * sizeof *applied->classes, err);
    if (status == QN_OK && applied->scores)
        status = qn__gpu_read(w->driver, w->gpu, &w->batch.scores, 0, applied->scores,
                              items * sizeof *applied->scores, err);
    if (status == QN_OK && applied->outputs)
        status = read_outputs(w, items, applied->outputs, err);
    if (status == QN_OK && applied->inputs)
        status = read_inputs(w, items, applied->inputs, err);
    return status == QN_OK ? read_positions(w, items, applied, err) : status;
}

/* A loss that cannot be added is in *lost: an output that is not finite is more useful to
 * report. */
static qn_status apply_piece(qn__worker *w, const qn__batch *batch, const qn__applied *applied,
                             qn__tally *tally, qn_status *lost, qn_error *err) {
    const int counts = tally && qn__feed_labelled(batch->feed);
    const uint32_t flags = counts ? QN_LOSS_LABELS : 0;
    qn__gpu_source source;
    qn_status_words words;
    qn__gpu_pass pass = {.worker = w, .source = &source, .items = batch->items, .err = err};
    pass.status = qn__gpu_shorten(w, batch, applied, err);
    if (pass.status == QN_OK)
        pass.status = qn__gpu_source_once(w, batch, &source, err);
    if (pass.status == QN_OK)
        pass.status = qn__gpu_send_step(w, batch, &source, NULL, err);
    if (pass.status != QN_OK)
        return pass.status;
    qn__gpu_launch_fetch(&pass);
    if (counts && pass.status == QN_OK)
        pass.status = qn__gpu_send_targets(w, batch, err);
    qn__gpu_launch_forward(&pass, flags, 0, applied ? applied->outputs : NULL);
    qn__gpu_launch_tally(&pass, flags);
    if (pass.status == QN_OK)
        pass.status = qn__gpu_status(w, &words, err);
    if (pass.status == QN_OK && words.bad_item)
        return qn__fail(err, QN_NUMERIC, "the network gives no finite output for item %llu",
                        (unsigned long long)(batch->first + (0xffffffffu - words.bad_item)));
    if (pass.status == QN_OK && applied)
        pass.status = read_applied(w, batch->items, applied, err);
    if (pass.status == QN_OK && counts && *lost == QN_OK)
        *lost = qn__gpu_add_tally(w, &words, tally, err);
    return pass.status;
}

/* Pieces of whole grains, as the losses are added by grain. */
qn_status qn__gpu_apply(qn__worker *w, const qn__batch *batch, const qn__applied *applied,
                        qn__tally *tally, qn_error *err) {
    const uint32_t grain = w->program->grain;
    const uint32_t most = batch->items <= w->capacity ? batch->items : w->capacity / grain * grain;
    qn_status status = QN_OK, lost = QN_OK;
    for (uint32_t at = 0; status == QN_OK && at < batch->items; at += most) {
        const uint32_t count = batch->items - at < most ? batch->items - at : most;
        const qn__batch part = qn__batch_part(batch, at, count);
        const qn__applied own = qn__applied_from(w->program, applied, at);
        status = apply_piece(w, &part, &own, tally, &lost, err);
    }
    return status == QN_OK ? lost : status;
}

qn_status qn__gpu_run(qn__worker *w, const qn__job *job, uint32_t first, uint32_t count,
                      const qn__outlet *sums, qn_error *err) {
    if (job->kind == QN__JOB_HOST)
        return qn__gpu_kernel_run(w, job->host, first, count, sums, err);
    const uint64_t grain = w->program->grain, from = first * grain, left = job->batch->items - from;
    const qn__batch part = qn__batch_part(job->batch, (uint32_t)from,
                                          (uint32_t)(left < count * grain ? left : count * grain));
    if (job->kind == QN__JOB_TRAIN)
        return qn__gpu_train(w, &part, err);
    const qn__applied own = qn__applied_from(w->program, job->applied, (uint32_t)from);
    return qn__gpu_apply(w, &part, &own, sums->tally, err);
}
