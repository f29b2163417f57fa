/* Further positions of sequences (docs/exactness.md 25.70): a forward pass whose items are
 * positions. What was computed of the positions before stays on the device, where the kinds of
 * layers that need it keep it in their `moments`. */
#include "device/gpu/gpu_kinds.h"
#include <math.h>
#include <string.h>

/* The place of each row for kernels (kernels/step.h). Returns the most rows of a sequence. */
static uint32_t number_rows(qn__worker *w, const qn__extension *e, uint64_t *number) {
    uint32_t *seen = w->stage.sequence_rows, most = 0;
    memset(seen, 0, w->program->sequences * sizeof *seen);
    for (uint32_t i = 0; i < e->rows; ++i) {
        const uint64_t sequence = e->sequence[i];
        const uint64_t before = seen[sequence]++;
        number[i] =
            (sequence << QN_PLACE_ROWS | before) << QN_PLACE_POSITIONS | (uint64_t)e->position[i];
        most = before >= most ? (uint32_t)before + 1 : most;
    }
    return most;
}

static qn_status send_numbers(qn__worker *w, const qn__extension *e, uint32_t *most,
                              qn_error *err) {
    uint64_t *number = (uint64_t *)(void *)w->stage.memory;
    *most = number_rows(w, e, number);
    return w->driver->write(w->gpu, &w->batch.numbers, 0, number, e->rows * sizeof *number, err);
}

/* As FETCH writes them. */
static qn_status send_tokens(qn__worker *w, const qn__extension *e, qn_error *err) {
    float *stage = (float *)(void *)w->stage.memory;
    const size_t ld = (size_t)qn__gpu_ld(1);
    memset(stage, 0, e->rows * ld * sizeof *stage);
    for (uint32_t i = 0; i < e->rows; ++i)
        stage[i * ld] = (float)e->token[i];
    return w->driver->write(w->gpu, &w->batch.inputs, 0, stage, e->rows * ld * sizeof *stage, err);
}

static qn_status send_rows(qn__worker *w, const qn__extension *e, uint32_t *most, qn_error *err) {
    const qn_step step = {
        .items = e->rows, .grain = w->program->grain, .sequences = w->program->sequences};
    qn_status status = send_numbers(w, e, most, err);
    if (status == QN_OK)
        status = send_tokens(w, e, err);
    if (status == QN_OK)
        status = w->driver->write(w->gpu, &w->step, 0, &step, sizeof step, err);
    return status;
}

/* Without logits the layers end with the last one that keeps something. */
static uint32_t layers_of(const qn__worker *w, const qn__extension *e) {
    uint32_t end = w->program->layers;
    while (!e->logits && end > 0 && !w->layer[end - 1].kind->keeps)
        --end;
    return end;
}

static int is_finite(const float *x, uint32_t count) {
    int finite = 1;
    for (uint32_t i = 0; i < count; ++i)
        finite &= isfinite(x[i]) != 0;
    return finite;
}

static qn_status read_logits(qn__worker *w, const qn__extension *e, uint32_t *bad, qn_error *err) {
    const uint32_t out = w->program->layer[w->program->layers - 1].out;
    const qn_status status =
        qn__gpu_read_outputs(w, e->rows, &(qn__gpu_range){0, e->rows}, e->logits, err);
    for (uint32_t i = 0; status == QN_OK && i < e->rows; ++i)
        if (!is_finite(e->logits + (size_t)i * out, out)) {
            *bad = i;
            return qn__fail(err, QN_NUMERIC, "the network gives a logit that is not finite");
        }
    return status;
}

qn_status qn__gpu_extend(qn__worker *w, const qn__extension *e, uint32_t *bad, qn_error *err) {
    qn__gpu_pass pass = {.worker = w, .items = e->rows, .err = err};
    pass.status = send_rows(w, e, &pass.steps, err);
    qn__gpu_launch_layers(&pass, layers_of(w, e));
    if (pass.status != QN_OK)
        return pass.status;
    return e->logits ? read_logits(w, e, bad, err) : w->driver->flush(w->gpu, err);
}
