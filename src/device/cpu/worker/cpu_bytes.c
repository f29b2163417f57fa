/* Inputs that are bytes, in integer arithmetic. If a byte is scaled by a constant only, it stands
 * for one value, whatever its feature. In a block of a given exponent it is one of 256 integers,
 * and its float is not needed. A row becomes an operand by table lookup (intgemm.h), if the
 * instruction set has a fast one.
 *
 * A byte times a power of two is the byte itself in every block of 14 bits or more, up to a power
 * of two. It needs no lookup, and one AMX tile instead of two or three. The bytes of a batch are
 * kept for the gradient, which has other blocks.
 *
 * Where several layers read the inputs (a residual block), they get floats. */
#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

static int are_bytes(const qn__feed *feed) {
    return qn__element_of(feed->type)->fetch == QN__FETCH_BYTES;
}

int qn__cpu_from_bytes(const qn__worker *w, const qn__feed *feed) {
    return qn__cpu_packs_fetched(w) && are_bytes(feed) && w->program->scale != QN__SCALE_STANDARD &&
           w->intgemm->left_bytes && !w->shared;
}

/* Whether a feed's bytes are operands themselves. */
static int are_raw(const qn__worker *w) {
    const qn__scale scale = w->program->scale;
    return w->bits >= 14 && (scale == QN__SCALE_NONE || scale == QN__SCALE_FRACTION) &&
           w->intgemm->left_raw && qn__cpu_packs_fetched(w) && !w->shared;
}

int qn__cpu_is_raw(const qn__worker *w, const qn__feed *feed) {
    return are_bytes(feed) && are_raw(w);
}

float qn__cpu_raw_factor(qn__scale scale) {
    return scale == QN__SCALE_FRACTION ? 1.0f / 256.0f : 1.0f;
}

int qn__cpu_width(const qn__cpu_pass *pass, uint32_t layer) {
    const qn__worker *w = pass->worker;
    return w->bits | (layer == 0 && qn__cpu_is_raw(w, pass->batch->feed) ? QN__OF_BYTES : 0);
}

/* Copies an item's bytes to a row of a block of 16. Panels of features are 16 x 16 bytes apart. */
static void keep_bytes(uint32_t features, const uint8_t *from, uint8_t *to) {
    for (; features >= QN__PANEL; features -= QN__PANEL, from += QN__PANEL, to += QN__BYTE_PANEL)
        memcpy(to, from, QN__PANEL);
    if (features == 0)
        return;
    memset(to, 0, QN__PANEL);
    memcpy(to, from, features);
}

size_t qn__cpu_bytes_block(const qn__worker *w) {
    return (size_t)w->layer[0].in_panels * QN__BYTE_PANEL;
}

/* All items have the same factor, whatever their largest byte. */
static void raw_fetched(const qn__worker *w, uint32_t first, uint32_t rows,
                        const uint8_t *const *from, qn__cpu_rows *to) {
    const uint32_t k = w->layer[0].layer->in, most = qn__cpu_byte_bits(w->program->scale, 255);
    const size_t size = w->intgemm->size(w->bits | QN__OF_BYTES, k);
    for (uint32_t r = 0; r < rows; ++r) {
        to->absmax[first + r] = most;
        to->factor[first + r] = qn__cpu_raw_factor(w->program->scale);
    }
    w->intgemm->left_raw(w->bits, rows, k, from, (char *)to->left + first / QN__PANEL * size);
}

static void looked_up(const qn__worker *w, uint32_t first, uint32_t rows,
                      const uint8_t *const *from, qn__cpu_rows *to) {
    const uint32_t k = w->layer[0].layer->in;
    uint8_t absmax[QN__PANEL];
    float inverse[QN__PANEL];
    w->intgemm->absmax_bytes(rows, k, from, absmax);
    for (uint32_t r = 0; r < rows; ++r)
        to->absmax[first + r] = qn__cpu_byte_bits(w->program->scale, absmax[r]);
    qn__cpu_block_scales(w->bits, rows, to->absmax + first, to->factor + first, inverse);
    w->intgemm->left_bytes(w->bits, rows, k, from, inverse, w->fetch.digits,
                           (char *)to->left + first / QN__PANEL * w->layer[0].intgemm.right_size);
}

void qn__cpu_bytes_fetched(const qn__worker *w, uint32_t first, uint32_t rows,
                           const uint8_t *const *from, qn__cpu_rows *to) {
    uint8_t *bytes = to->bytes + first / QN__PANEL * qn__cpu_bytes_block(w);
    for (uint32_t r = 0; r < rows; ++r)
        keep_bytes(w->layer[0].layer->in, from[r], bytes + (size_t)r * QN__PANEL);
    (are_raw(w) ? raw_fetched : looked_up)(w, first, rows, from, to);
}
