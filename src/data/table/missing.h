/* What a missing value is in a table of floats. */
#ifndef QN_DATA_TABLE_MISSING_H
#define QN_DATA_TABLE_MISSING_H

#include <stdint.h>
#include <string.h>

/* Whether a value is missing; NaN by its definition. */
static inline int qn__is_missing(float value) { return value != value; }

/* The bits of every missing value in a table; the bits of a NaN that was read are replaced. Digests
 * depend on them. */
#define QN__MISSING_BITS UINT32_C(0x7fc00000)

static inline void qn__set_missing(float *value) {
    const uint32_t bits = QN__MISSING_BITS;
    memcpy(value, &bits, sizeof bits);
}

#endif
