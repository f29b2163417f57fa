/* Reading FlatBuffers, in which Arrow IPC describes its messages: a table begins with the distance
 * to a list of the offsets of its fields. Every access is checked against the size. What lies
 * outside reads as 0 and sets `broken`, so that a caller checks once, at the end. */
#ifndef QN_DATA_COLUMNAR_FLAT_H
#define QN_DATA_COLUMNAR_FLAT_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__flat {
    const uint8_t *bytes;
    size_t size;
    int broken;
} qn__flat;

/* A little-endian number of `width` bytes, 1 to 8, at `place`; its sign is extended. */
int64_t qn__flat_number(qn__flat *flat, size_t place, size_t width);
/* The place that the 4 bytes at `place` point to; 0 for place 0. */
size_t qn__flat_follow(qn__flat *flat, size_t place);
/* The place of field `field` of a table, from 0; 0 when it is not there. */
size_t qn__flat_field(qn__flat *flat, size_t table, unsigned field);
/* The number in a field; `absent` when it is not there. */
int64_t qn__flat_get(qn__flat *flat, size_t table, unsigned field, size_t width, int64_t absent);
/* The table in a field; 0 when it is not there. */
size_t qn__flat_table(qn__flat *flat, size_t table, unsigned field);
/* The first of *count elements of `width` bytes in a field; *count is 0 when it is not there. */
size_t qn__flat_vector(qn__flat *flat, size_t table, unsigned field, size_t width, size_t *count);

#endif
