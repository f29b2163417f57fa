/* Copying the outputs of the last layer. */
#include "device/gpu/gpu_worker.h"
#include <string.h>

/* Where the outputs of a row are among those of the items: rows stand in the order grain, pixel,
 * item of the grain. */
static size_t place_of(const qn__worker *w, uint32_t items, uint64_t row) {
    const qn__layer *l = w->layer[w->program->layers - 1].layer;
    const uint32_t most = w->program->grain < items ? w->program->grain : items;
    const uint64_t pixels = qn__gpu_pixels(l), grain = row / (most * pixels);
    const uint64_t begin = grain * most, left = items - begin, own = left < most ? left : most;
    const uint64_t rest = row - begin * pixels;
    return (size_t)((begin + rest % own) * pixels + rest / own) * l->to.channels;
}

/* Copies rows [count][ld(out)] to the host in pieces, without the padding after column out. */
qn_status qn__gpu_read_outputs(qn__worker *w, uint32_t items, const qn__gpu_range *of, float *to,
                               qn_error *err) {
    const qn__gpu_layer *last = &w->layer[w->program->layers - 1];
    const uint32_t out = last->layer->to.channels, rows = of->count;
    const size_t ld = (size_t)qn__gpu_ld(out), row = ld * sizeof *to;
    const uint32_t most = (uint32_t)(w->stage.bytes / row);
    const float *stage = (const float *)(const void *)w->stage.memory;
    qn_status status = QN_OK;
    for (uint32_t first = 0, end; status == QN_OK && first < rows; first = end) {
        end = rows - first < most ? rows : first + most;
        status = qn__gpu_read(w->driver, w->gpu, &last->output, first * row, w->stage.memory,
                              (end - first) * row, err);
        for (uint32_t i = first; status == QN_OK && i < end; ++i)
            memcpy(to + place_of(w, items, (uint64_t)of->begin + i), stage + (i - first) * ld,
                   out * sizeof *to);
    }
    return status;
}
