/* Bytes that lie in somebody's memory. */
#ifndef QN_BASE_TEXT_SPAN_H
#define QN_BASE_TEXT_SPAN_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__span {
    const uint8_t *bytes;
    size_t size;
} qn__span;

#endif
