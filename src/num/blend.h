/* Bilinear enlargement in one direction: docs/exactness.md 24.43. `limit` pixels of the input
 * become `factor` times as many of the output. */
#ifndef QN_NUM_BLEND_H
#define QN_NUM_BLEND_H

#include "num/program.h"

/* Where pixel `at` of the output is in the input, whose pixels are 2 * factor apart. */
static inline uint32_t qn__blend_place(uint32_t at, uint32_t factor) {
    const uint32_t middle = 2 * at + 1;
    return middle > factor ? middle - factor : 0;
}

/* The one or two pixels of the input that pixel `at` of the output reads. */
static inline qn__cover qn__blend_taps(uint32_t at, uint32_t factor, uint32_t limit) {
    const uint32_t place = qn__blend_place(at, factor), first = place / (2 * factor);
    const int two = place != first * 2 * factor && first + 1 < limit;
    return (qn__cover){first, first + (two ? 2 : 1)};
}

/* The pixels of the output that read pixel `at` of the input. */
static inline qn__cover qn__blend_readers(uint32_t at, uint32_t factor, uint32_t limit) {
    const uint32_t begin = at == 0 ? 0 : factor * (at - 1) + (factor - 1) / 2 + 1;
    return (qn__cover){begin, at + 1 == limit ? factor * limit : factor * (at + 1) + factor / 2};
}

/* The weight of the input's pixel `tap`, one of qn__blend_taps: a whole number up to 2 * factor. */
static inline uint32_t qn__blend_weight(uint32_t at, uint32_t tap, uint32_t factor,
                                        uint32_t limit) {
    const uint32_t whole = 2 * factor, place = qn__blend_place(at, factor), own = whole * tap;
    if (place < own)
        return whole - (own - place);
    return tap + 1 == limit ? whole : whole - (place - own);
}

/* What the product of two weights is multiplied by. */
static inline float qn__blend_unit(const qn__layer *l) {
    const uint32_t factor[2] = {l->to.height / l->from.height, l->to.width / l->from.width};
    return 1.0f / (float)(4 * factor[0] * factor[1]);
}

/* The pixels that `at` reads in a layer with this `fitted`, which is not 0: `limit` pixels become
 * `size`. */
static inline qn__cover qn__fitted_taps(int fitted, uint32_t at, uint32_t size, uint32_t limit) {
    return fitted == QN__BLENDS ? qn__blend_taps(at, size / limit, limit)
                                : qn__cover_of(at, size, limit);
}

/* The pixels of the output that read pixel `at` of the input. */
static inline qn__cover qn__fitted_readers(int fitted, uint32_t at, uint32_t size, uint32_t limit) {
    return fitted == QN__BLENDS ? qn__blend_readers(at, size / limit, limit)
                                : qn__cover_of(at, limit, size);
}

#endif
