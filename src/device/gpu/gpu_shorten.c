/* Work only up to the longest item of a pass (device/shorten.h). Kernels know the positions of a
 * layer from their arguments and from its taps, and rows of an item stand in the order of its
 * positions. So a pass of fewer positions has the same kernels, with other numbers. */
#include "base/memory.h"
#include "device/gpu/gpu_worker.h"
#include "device/shorten.h"
#include "layer/padding.h"
#include <string.h>

/* Few different numbers, as launches are recorded for each. */
enum { STEP = 8 };

qn_status qn__gpu_can_shorten(qn__worker *w, qn_error *err) {
    const qn__program *p = w->program;
    /* Targets that are sent have the places of all positions. */
    if (!qn__can_shorten(p) || (p->answers && !p->next))
        return QN_OK;
    w->shortened.layer = qn__alloc(p->layers, sizeof *w->shortened.layer, err);
    if (!w->shortened.layer)
        return QN_MEMORY;
    memcpy(w->shortened.layer, p->layer, p->layers * sizeof *p->layer);
    for (uint32_t l = 0; l < p->layers; ++l)
        w->layer[l].layer = &w->shortened.layer[l];
    w->shortened.positions = p->layer[0].to.width;
    return QN_OK;
}

static void set_positions(const qn__worker *w, qn__shape all, qn__shape *to) {
    if (qn__has_token_positions(w->program->layer, all))
        to->width = w->shortened.positions;
}

qn_status qn__gpu_shorten(qn__worker *w, const qn__batch *batch, const qn__applied *applied,
                          qn_error *err) {
    const qn__program *p = w->program;
    if (!w->shortened.layer)
        return QN_OK;
    const uint32_t all = p->layer[0].to.width, longest = qn__longest(p, batch, applied);
    const uint32_t rounded = (longest + STEP - 1) / STEP * STEP;
    const uint32_t positions = rounded < all ? rounded : all;
    if (positions == w->shortened.positions)
        return QN_OK;
    w->shortened.positions = positions;
    for (uint32_t l = 0; l < p->layers; ++l) {
        set_positions(w, p->layer[l].from, &w->shortened.layer[l].from);
        set_positions(w, p->layer[l].second, &w->shortened.layer[l].second);
        set_positions(w, p->layer[l].to, &w->shortened.layer[l].to);
    }
    return qn__gpu_write_taps(w, err);
}
