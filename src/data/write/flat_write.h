/* Writing FlatBuffers (flat.h reads them), from the front: a table, and then what it points to. */
#ifndef QN_DATA_WRITE_FLAT_WRITE_H
#define QN_DATA_WRITE_FLAT_WRITE_H

#include <stddef.h>
#include <stdint.h>

/* Begins as {0}; released with qn__flat_out_release. `failed`: memory is short, and additions do
 * nothing. */
typedef struct qn__flat_out {
    uint8_t *bytes;
    size_t size, capacity;
    int failed;
} qn__flat_out;

void qn__flat_out_release(qn__flat_out *out);

/* Space for the place of the root, at the beginning of a buffer; qn__flat_point sets it. */
size_t qn__flat_begin(qn__flat_out *out);
/* Adds a table whose field k has width[k] - '0' bytes (1, 2, 4 or 8; 0: it is not there), which are
 * 0. Returns its place. */
size_t qn__flat_add_table(qn__flat_out *out, const char *widths);
/* The place of field k. */
size_t qn__flat_place(const qn__flat_out *out, size_t table, unsigned field);
void qn__flat_set(qn__flat_out *out, size_t table, unsigned field, size_t width, uint64_t value);
/* Makes the 4 bytes at `place` point to what is at `target`, after it. */
void qn__flat_point(qn__flat_out *out, size_t place, size_t target);
/* The same for a field. */
void qn__flat_point_field(qn__flat_out *out, size_t table, unsigned field, size_t target);
/* Adds `count` elements of `width` bytes (1, 4, 8, 16 or 24), all 0. Returns the place; element k
 * is at place + 4 + k * width. */
size_t qn__flat_add_vector(qn__flat_out *out, size_t count, size_t width);
size_t qn__flat_add_text(qn__flat_out *out, const char *text);
/* Writes `width` bytes of a number, the lowest first. */
void qn__flat_put(qn__flat_out *out, size_t place, size_t width, uint64_t value);
/* Adds zeros up to a multiple of `step` bytes. */
void qn__flat_pad(qn__flat_out *out, size_t step);

#endif
