/* Opening and closing a GPU worker: the device, the program for its network or kernel, the memory.
 * The program depends on the arithmetic and on whether there are pixels, not on the network: it is
 * built once and kept on disk (gpu_cache.c). */
#include "device/gpu/gpu_worker.h"

#include "base/memory.h"
#include "device/gpu/gpu_kinds.h"
#include "layer/layer.h"
#include "num/intgemm_reference.h"

int qn__gpu_supports(const qn__program *program) { return program->arith <= QN__ARITH_I21; }

/* Numbers that depend on a layer alone. */
static qn_status fill_table(qn__worker *w, const qn__gpu_layer *l, qn_error *err) {
    if (!l->kind->table)
        return QN_OK;
    float *table = qn__alloc(l->moments.bytes, 1, err);
    if (!table)
        return QN_MEMORY;
    l->kind->table(w, l->layer, table);
    const qn_status status = w->driver->write(w->gpu, &l->moments, 0, table, l->moments.bytes, err);
    qn__free(table);
    return status;
}

/* Writes the constant data: the scaled bytes, mean and inverse, tables of layers. */
static qn_status fill(qn__worker *w, qn_error *err) {
    const qn__program *p = w->program;
    const size_t features = p->layer[0].in * sizeof(float);
    float unit[256];
    for (int v = 0; v < 256; ++v)
        unit[v] = (float)v / 255.0f;
    qn_status status = w->driver->write(w->gpu, &w->batch.unit, 0, unit, sizeof unit, err);
    if (status == QN_OK && w->batch.mean.bytes)
        status = w->driver->write(w->gpu, &w->batch.mean, 0, p->mean, features, err);
    if (status == QN_OK && w->batch.inverse.bytes)
        status = w->driver->write(w->gpu, &w->batch.inverse, 0, p->inverse, features, err);
    for (uint32_t l = 0; status == QN_OK && l < p->layers; ++l)
        status = fill_table(w, &w->layer[l], err);
    return status;
}

static uint32_t products_of(const qn__program *program) {
    return qn__kernel_products(program->arith) |
           (qn__program_window(program) || program->answers ? QN_WITH_PIXELS : 0);
}

static void begin_counting(qn__worker *w) {
    w->facts = w->driver->facts(w->gpu);
    w->driver->traffic(w->gpu, &w->measured.traffic);
    w->measured.busy = w->driver->busy(w->gpu);
}

/* For kernels: what they need is known when one is prepared. */
static qn_status open_for_kernels(qn__worker *w, uint32_t index, const qn_compute *compute,
                                  qn__worker **out, qn_error *err) {
    const qn_status status = w->driver->open(index, 0, compute, &w->gpu, err);
    if (status != QN_OK) {
        qn__gpu_close(w);
        return status;
    }
    begin_counting(w);
    *out = w;
    return QN_OK;
}

qn_status qn__gpu_open(const qn__gpu_driver *driver, uint32_t index, const qn_compute *compute,
                       const qn__program *program, qn__worker **out, qn_error *err) {
    *out = NULL;
    qn__worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return QN_MEMORY;
    w->driver = driver;
    if (!program)
        return open_for_kernels(w, index, compute, out, err);
    w->program = program;
    w->slots = qn__program_slots(program);
    w->bits = (uint32_t)qn__arith_bits(program->arith);
    /* A picture may take a megabyte in each layer: apply takes a batch of them at a time. */
    const uint32_t part = qn__program_part(program);
    w->capacity = qn__program_window(program) ? part : qn__apply_space(program);
    if (part > w->capacity)
        w->capacity = part;
    w->layer = qn__alloc(program->layers, sizeof *w->layer, err);
    qn_status status =
        w->layer ? qn__gpu_shared_create(program->layers, &w->shared, err) : QN_MEMORY;
    if (status == QN_OK)
        status = driver->open(index, products_of(program), compute, &w->gpu, err);
    if (status == QN_OK) {
        begin_counting(w);
        qn__gpu_place(w);
        qn__gpu_place_arrays(w);
        status = qn__gpu_allocate(w, err);
    }
    if (status == QN_OK)
        status = fill(w, err);
    if (status == QN_OK)
        status = qn__gpu_can_shorten(w, err);
    if (status == QN_OK)
        status = qn__gpu_write_taps(w, err);
    if (status != QN_OK) {
        qn__gpu_close(w);
        return status;
    }
    *out = w;
    return QN_OK;
}

void qn__gpu_close(qn__worker *w) {
    if (!w)
        return;
    if (w->gpu) {
        qn__gpu_kernel_release(w);
        qn__gpu_release_all(w);
        w->driver->close(w->gpu);
    }
    qn__free(w->lists.words);
    qn__free(w->lists.column_of);
    qn__free(w->stage.memory);
    qn__free(w->stage.augment_space);
    qn__free(w->stage.shown_space);
    qn__free(w->stage.partner);
    qn__free(w->stage.sequence_rows);
    qn__gpu_shared_free(&w->shared);
    qn__free(w->shortened.layer);
    qn__free(w->layer);
    qn__free(w);
}

int qn__gpu_busy(const qn__worker *w, double *seconds, int capacity) {
    if (capacity > 0)
        seconds[0] = w->driver->busy(w->gpu) - w->measured.busy;
    return 1;
}

void qn__gpu_traffic(const qn__worker *w, qn__traffic *traffic) {
    w->driver->traffic(w->gpu, traffic);
    traffic->bytes_up -= w->measured.traffic.bytes_up;
    traffic->bytes_down -= w->measured.traffic.bytes_down;
    traffic->seconds_up -= w->measured.traffic.seconds_up;
    traffic->seconds_down -= w->measured.traffic.seconds_down;
}
