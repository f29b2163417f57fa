#include "data/write/flat_write.h"
#include <stdlib.h>
#include <string.h>

void qn__flat_out_release(qn__flat_out *out) {
    free(out->bytes);
    *out = (qn__flat_out){0};
}

/* Adds zeros and returns their place; 0 after a failure. */
static size_t add_zeros(qn__flat_out *out, size_t size) {
    const size_t place = out->size;
    if (out->failed)
        return 0;
    if (size > out->capacity - out->size) {
        const size_t capacity = (out->capacity + size) * 2 + 1024;
        uint8_t *more = realloc(out->bytes, capacity);
        if (!more) {
            out->failed = 1;
            return 0;
        }
        out->bytes = more;
        out->capacity = capacity;
    }
    memset(out->bytes + place, 0, size);
    out->size += size;
    return place;
}

void qn__flat_put(qn__flat_out *out, size_t place, size_t width, uint64_t value) {
    for (size_t i = 0; i < width && !out->failed; i++)
        out->bytes[place + i] = (uint8_t)(value >> 8 * i);
}

void qn__flat_pad(qn__flat_out *out, size_t step) {
    add_zeros(out, (step - out->size % step) % step);
}

size_t qn__flat_begin(qn__flat_out *out) { return add_zeros(out, 4); }

/* The list of places of fields stands before the table. Fields of 8 bytes come first, so that all
 * are aligned: the table begins 4 bytes before a multiple of 8. */
size_t qn__flat_add_table(qn__flat_out *out, const char *widths) {
    const size_t fields = strlen(widths), list = 4 + 2 * fields;
    size_t at = 4;
    while ((out->size + list) % 8 != 4 && !out->failed)
        add_zeros(out, 1);
    const size_t places = add_zeros(out, list), table = out->size;
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t k = 0; k < fields; k++)
            if ((size_t)(widths[k] - '0') == width) {
                qn__flat_put(out, places + 4 + 2 * k, 2, at);
                at += width;
            }
    qn__flat_put(out, places, 2, list);
    qn__flat_put(out, places + 2, 2, at);
    add_zeros(out, at);
    qn__flat_put(out, table, 4, table - places);
    return table;
}

size_t qn__flat_place(const qn__flat_out *out, size_t table, unsigned field) {
    if (out->failed)
        return 0;
    const uint8_t *at = out->bytes + table;
    const size_t places = table - (size_t)(at[0] | at[1] << 8 | at[2] << 16);
    const uint8_t *entry = out->bytes + places + 4 + 2 * (size_t)field;
    return table + (size_t)(entry[0] | entry[1] << 8);
}

void qn__flat_set(qn__flat_out *out, size_t table, unsigned field, size_t width, uint64_t value) {
    qn__flat_put(out, qn__flat_place(out, table, field), width, value);
}

void qn__flat_point(qn__flat_out *out, size_t place, size_t target) {
    qn__flat_put(out, place, 4, target - place);
}

void qn__flat_point_field(qn__flat_out *out, size_t table, unsigned field, size_t target) {
    qn__flat_point(out, qn__flat_place(out, table, field), target);
}

size_t qn__flat_add_vector(qn__flat_out *out, size_t count, size_t width) {
    const size_t step = width >= 8 ? 8 : 4;
    while ((out->size + 4) % step != 0 && !out->failed)
        add_zeros(out, 1);
    const size_t place = add_zeros(out, 4 + count * width);
    qn__flat_put(out, place, 4, count);
    return place;
}

size_t qn__flat_add_text(qn__flat_out *out, const char *text) {
    const size_t size = strlen(text);
    qn__flat_pad(out, 4);
    const size_t place = add_zeros(out, 4 + size + 1);
    qn__flat_put(out, place, 4, size);
    if (!out->failed && size > 0)
        memcpy(out->bytes + place + 4, text, size);
    return place;
}
