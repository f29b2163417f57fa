/* Parameters, the optimiser's state and sums, converted between the host's order, W[out][in], and
 * the device's, W[in][ld(out)]. A layer's biases follow its weights like those of one more input,
 * so that a layer is copied as one matrix of in + 1 rows; biases that are not parameters are +0. Of
 * a normalisation, all vectors are such rows. */
#include "device/gpu/gpu_worker.h"
#include "num/sums.h"
#include <string.h>

enum { BLOCK = 16 }; /* rows and columns that are transposed together, for the caches */

/* to[row - first][o] for the device's rows first .. end-1 of a layer, with +0 after column out. */
static void to_device(const qn__layer *l, const float *from, uint32_t first, uint32_t end,
                      float *to) {
    const uint32_t in = l->depth, out = l->to.channels;
    const size_t ld = (size_t)qn__gpu_ld(out);
    const uint32_t weights = end <= in ? end : in;
    for (uint32_t k0 = first; k0 < weights; k0 += BLOCK)
        for (uint32_t o = 0; o < out; ++o)
            for (uint32_t k = k0; k < weights && k - k0 < BLOCK; ++k)
                to[(k - first) * ld + o] = from[qn__layer_matrix(l) + (uint64_t)o * in + k];
    for (uint32_t k = first > in ? first : in; k < end; ++k)
        if (l->no_biases)
            memset(to + (k - first) * ld, 0, out * sizeof *to);
        else
            memcpy(to + (k - first) * ld, from + l->biases + (k - in) * out, out * sizeof *to);
    for (uint32_t k = first; k < end; ++k)
        memset(to + (k - first) * ld + out, 0, (ld - out) * sizeof *to);
}

/* The inverse. */
static void to_host(const qn__layer *l, const float *from, uint32_t first, uint32_t end,
                    float *to) {
    const uint32_t in = l->depth, out = l->to.channels;
    const size_t ld = (size_t)qn__gpu_ld(out);
    const uint32_t weights = end <= in ? end : in;
    for (uint32_t k0 = first; k0 < weights; k0 += BLOCK)
        for (uint32_t o = 0; o < out; ++o)
            for (uint32_t k = k0; k < weights && k - k0 < BLOCK; ++k)
                to[qn__layer_matrix(l) + (uint64_t)o * in + k] = from[(k - first) * ld + o];
    for (uint32_t k = first > in ? first : in; k < end && !l->no_biases; ++k)
        memcpy(to + l->biases + (k - in) * out, from + (k - first) * ld, out * sizeof *to);
}

/* Copies one canonical array: to the device from `from`, or to the host, to `to`, if `from` is
 * NULL. */
static qn_status move(qn__worker *w, const qn__gpu_memory *memory, const float *from, float *to,
                      qn_error *err) {
    float *stage = (float *)(void *)w->stage.memory;
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__gpu_layer *l = &w->layer[i];
        const size_t row = (size_t)qn__gpu_ld(l->layer->to.channels) * sizeof *stage;
        const uint32_t rows = l->layer->depth + qn__gpu_vectors(l->layer);
        const uint32_t most = (uint32_t)(w->stage.bytes / row);
        for (uint32_t first = 0, end; status == QN_OK && first < rows; first = end) {
            const size_t at = (size_t)l->weights * sizeof *stage + first * row;
            end = rows - first < most ? rows : first + most;
            if (from) {
                to_device(l->layer, from, first, end, stage);
                status = w->driver->write(w->gpu, memory, at, stage, (end - first) * row, err);
                continue;
            }
            status = qn__gpu_read(w->driver, w->gpu, memory, at, stage, (end - first) * row, err);
            if (status == QN_OK)
                to_host(l->layer, stage, first, end, to);
        }
    }
    return status;
}

qn_status qn__gpu_load(qn__worker *w, const qn__state *state, qn_error *err) {
    qn_status status = QN_OK;
    /* Steps that are not complete belong to the state that is replaced. */
    for (; status == QN_OK && w->launches.flights > 0; --w->launches.flights) {
        const void *posted;
        status = w->driver->fetch(w->gpu,
                                  (w->launches.slot_of_next + QN__GPU_SLOTS - w->launches.flights) %
                                      QN__GPU_SLOTS,
                                  &posted, err);
        if (status == QN_OK)
            qn__gpu_since(w, posted);
    }
    if (status == QN_OK)
        status = move(w, &w->model.parameters, state->parameters, NULL, err);
    for (uint32_t s = 0; status == QN_OK && s < w->slots && state->slot[s]; ++s)
        status = move(w, &w->model.slot[s], state->slot[s], NULL, err);
    qn__gpu_pass pass = {.worker = w, .status = status, .err = err};
    qn__gpu_launch_weights(&pass, 0);
    w->model.sums_count = 0;
    w->reports.tally = (qn__tally){0};
    return pass.status;
}

qn_status qn__gpu_save(qn__worker *w, qn__state *state, qn_error *err) {
    qn_status status = move(w, &w->model.parameters, NULL, state->parameters, err);
    for (uint32_t s = 0; status == QN_OK && s < w->slots && state->slot[s]; ++s)
        status = move(w, &w->model.slot[s], NULL, state->slot[s], err);
    return status;
}

qn_status qn__gpu_need_canonical(qn__worker *w, qn_error *err) {
    if (w->model.canonical.bytes)
        return QN_OK;
    return qn__gpu_more(w, "sharing a step", qn__program_sums(w->program) * sizeof(int64_t),
                        &w->model.canonical, err);
}

static qn_status add_sums(qn__worker *w, int64_t *sums, qn_error *err) {
    const int64_t *stage = (const int64_t *)(const void *)w->stage.memory;
    const uint64_t count = qn__program_sums(w->program), most = w->stage.bytes / sizeof *stage;
    qn_status status = QN_OK;
    for (uint64_t first = 0, end; status == QN_OK && first < count; first = end) {
        end = count - first < most ? count : first + most;
        status = qn__gpu_read(w->driver, w->gpu, &w->model.canonical, first * sizeof *stage,
                              w->stage.memory, (end - first) * sizeof *stage, err);
        for (uint64_t i = first; status == QN_OK && i < end; ++i)
            sums[i] += stage[i - first];
    }
    return status;
}

qn_status qn__gpu_collect(qn__worker *w, int64_t *sums, qn__tally *tally, qn_error *err) {
    qn__gpu_pass pass = {.worker = w, .status = qn__gpu_need_canonical(w, err), .err = err};
    if (w->model.sums_count) {
        qn__gpu_launch_sums(&pass, QN__K_SUMS_OUT);
        if (pass.status == QN_OK)
            pass.status = add_sums(w, sums, err);
    } else if (pass.status == QN_OK) {
        pass.status = w->driver->flush(w->gpu, err); /* a device that failed says so */
    }
    if (pass.status != QN_OK)
        return pass.status;
    const int failed = qn__tally_add(tally, &w->reports.tally);
    w->model.sums_count = 0;
    w->reports.tally = (qn__tally){0};
    return failed ? qn__fail(err, QN_NUMERIC, "the sum of the losses became too large") : QN_OK;
}

qn_status qn__gpu_update(qn__worker *w, const qn__update *update, const int64_t *sums,
                         qn_error *err) {
    const qn__batch none = {0};
    const qn__gpu_source nowhere = {0};
    qn__gpu_pass pass = {.worker = w, .status = qn__gpu_need_canonical(w, err), .err = err};
    if (pass.status == QN_OK && sums)
        pass.status = w->driver->write(w->gpu, &w->model.canonical, 0, sums,
                                       (size_t)qn__program_sums(w->program) * sizeof *sums, err);
    if (pass.status == QN_OK)
        pass.status = qn__gpu_send_step(w, &none, &nowhere, update, err);
    qn__gpu_launch_sums(&pass, QN__K_SUMS_IN);
    qn__gpu_launch_update(&pass);
    if (pass.status == QN_OK)
        pass.status = w->driver->flush(w->gpu, err);
    w->model.sums_count = 0;
    w->reports.tally = (qn__tally){0};
    return pass.status;
}
