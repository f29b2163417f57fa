#include "device/cpu/layers/cpu_cache.h"

void qn__cpu_cached_queries(const qn__cpu_cached *t, uint32_t head) {
    const float *from = qn__cpu_input(t->pass, t->l) + (size_t)t->rows->row * QN__PANEL;
    for (uint32_t p = 0; p < t->s.wide; ++p)
        for (uint32_t r = 0; r < t->rows->rows; ++r)
            qn__cpu_take_channels(from + (size_t)r * QN__PANEL, t->l->in_stride,
                                  head * t->s.width + p * QN__PANEL,
                                  qn__cpu_panel_channels(t->s.width, p),
                                  t->query + ((size_t)p * t->s.rows + r) * QN__PANEL);
}

void qn__cpu_cached_outputs(const qn__cpu_cached *t, uint32_t head) {
    float *to = t->l->output + (size_t)t->rows->row * QN__PANEL;
    for (uint32_t p = 0; p < t->s.wide; ++p)
        for (uint32_t r = 0; r < t->rows->rows; ++r)
            qn__cpu_put_channels(t->output + ((size_t)p * t->s.rows + r) * QN__PANEL,
                                 t->l->out_stride, head * t->s.width + p * QN__PANEL,
                                 qn__cpu_panel_channels(t->s.width, p), to + (size_t)r * QN__PANEL);
}

void qn__cpu_cached_hide(const qn__cpu_cached *t, uint32_t r, uint32_t first, uint32_t panels) {
    const qn__cover own = qn__cpu_cached_sees(t->l->layer, t->rows->position + r);
    const uint32_t begin = first * QN__PANEL, end = begin + panels * QN__PANEL;
    float *row = t->weights + (size_t)r * QN__PANEL;
    for (uint32_t u = begin; u < own.begin && u < end; ++u)
        row[(size_t)(u - begin) / QN__PANEL * t->s.rows * QN__PANEL + u % QN__PANEL] = QN__UNSEEN;
    for (uint32_t u = own.end; u < end; ++u)
        row[(size_t)(u - begin) / QN__PANEL * t->s.rows * QN__PANEL + u % QN__PANEL] = QN__UNSEEN;
}
