/* What decides whether a column is wide: 23.4 of docs/exactness.md. */
#ifndef QN_DATA_TABLE_WIDE_FACTS_H
#define QN_DATA_TABLE_WIDE_FACTS_H

#include <math.h>
#include <stdint.h>

/* What was seen of a column. All zeros: no value yet. */
typedef struct qn__wide_facts {
    int any, other, fraction; /* 1 if there was a value; a value that is not a float32; a value that
                                 is not a whole number below 2^63 in magnitude */
    double lo, hi;
} qn__wide_facts;

static inline void qn__wide_see_whole(qn__wide_facts *facts, int64_t value) {
    const float near = (float)value;
    facts->other |= near >= 0x1p63f || (int64_t)near != value;
    facts->fraction |= value == INT64_MIN;
    facts->any = 1;
}

static inline void qn__wide_see_real(qn__wide_facts *facts, double value) {
    facts->lo = !facts->any || value < facts->lo ? value : facts->lo;
    facts->hi = !facts->any || value > facts->hi ? value : facts->hi;
    facts->any = 1;
    facts->other |= (double)(float)value != value;
    facts->fraction |= !(fabs(value) < 0x1p63 && value == (double)(int64_t)value);
}

/* Whether the range of the values is so small that more than half of a float's 24 bits are the same
 * in all of them. */
static inline int qn__wide_spans_little(const qn__wide_facts *facts) {
    return fmax(fabs(facts->lo), fabs(facts->hi)) > 4096.0 * (facts->hi - facts->lo);
}

#endif
