/* The results of an extension: logits of its rows. */
#include "device/cpu/worker/cpu_kinds.h"
#include <math.h>
#include <string.h>

/* Sixteen logits of each row, or fewer at the end. */
static void give_panel(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                       uint64_t *bad) {
    const uint32_t out = l->layer->to.channels, left = out - panel * QN__PANEL;
    const uint32_t count = left < QN__PANEL ? left : QN__PANEL;
    const float *from = l->output + panel * l->out_stride;
    float *to = pass->extension->logits + (size_t)panel * QN__PANEL;
    for (uint32_t i = 0; i < l->rows; ++i, from += QN__PANEL, to += out) {
        int finite = 1;
        for (uint32_t o = 0; o < count; ++o)
            finite &= isfinite(from[o]) != 0;
        memcpy(to, from, count * sizeof *to);
        if (!finite && i < *bad)
            *bad = i;
    }
}

void qn__cpu_give_logits(const qn__cpu_pass *pass, int thread) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    uint64_t *bad = &w->core[thread].bad_position;
    *bad = UINT64_MAX;
    for (uint32_t p = (uint32_t)thread; pass->extension->logits && p < l->out_panels;
         p += (uint32_t)w->threads)
        give_panel(pass, l, p, bad);
}
