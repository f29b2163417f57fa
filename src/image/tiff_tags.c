/* Offsets and counts are the file's, so each is compared with the size before it is used. */
#include "image/tiff_tags.h"
#include <string.h>

enum { BYTE = 1, SHORT = 3, LONG = 4, LONG8 = 16 };

/* The number of `size` bytes at `at`, which lie in the bytes. */
static uint64_t number(const qn__tiff_tags *t, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | t->bytes[at + (t->big_endian ? i : size - 1 - i)];
    return value;
}

static size_t entry_size(const qn__tiff_tags *t) { return t->big ? 20 : 12; }

int qn__tiff_is(const uint8_t *b, size_t size) {
    return size >= 4 && (memcmp(b, "II*\0", 4) == 0 || memcmp(b, "MM\0*", 4) == 0 ||
                         memcmp(b, "II+\0", 4) == 0 || memcmp(b, "MM\0+", 4) == 0);
}

/* BigTIFF says how many bytes an offset has, and it is always 8. */
static int is_header(const qn__tiff_tags *t) {
    return !t->big || (number(t, 4, 2) == 8 && number(t, 6, 2) == 0);
}

int qn__tiff_tags_open(qn__tiff_tags *t, const uint8_t *bytes, size_t size) {
    *t = (qn__tiff_tags){.bytes = bytes, .size = size};
    if (!qn__tiff_is(bytes, size))
        return 0;
    t->big_endian = bytes[0] == 'M';
    t->big = bytes[t->big_endian ? 3 : 2] == '+';
    const size_t header = t->big ? 16 : 8, counter = t->big ? 8 : 2;
    if (size < header || !is_header(t))
        return 0;
    const uint64_t at = t->big ? number(t, 8, 8) : number(t, 4, 4);
    if (at < header || at > size || size - at < counter)
        return 0;
    t->count = number(t, (size_t)at, counter);
    t->entries = (size_t)at + counter;
    return t->count <= (size - t->entries) / entry_size(t);
}

static size_t type_size(uint64_t type) {
    return type == BYTE ? 1 : type == SHORT ? 2 : type == LONG ? 4 : type == LONG8 ? 8 : 0;
}

/* The entry of a tag; 0: there is none. Where a tag stands twice, the first entry counts. */
static size_t find(const qn__tiff_tags *t, uint32_t tag) {
    for (uint64_t i = 0; i < t->count; i++) {
        const size_t at = t->entries + (size_t)i * entry_size(t);
        if (number(t, at, 2) == tag)
            return at;
    }
    return 0;
}

uint64_t qn__tiff_tag(qn__tiff_tags *t, uint32_t tag, uint64_t otherwise) {
    const size_t at = find(t, tag), wide = t->big ? 8 : 4;
    const size_t each = at ? type_size(number(t, at + 2, 2)) : 0;
    const uint64_t count = each ? number(t, at + 4, wide) : 0;
    if (count == 0)
        return otherwise;
    const size_t field = at + 4 + wide; /* holds the values, or where they are */
    if (count <= wide / each)
        return number(t, field, each);
    const uint64_t there = number(t, field, wide);
    if (there <= t->size && t->size - there >= each)
        return number(t, (size_t)there, each);
    t->cut = 1;
    return otherwise;
}

uint32_t qn__tiff_orientation(const qn__tiff_tags *t) {
    const size_t at = find(t, QN__TIFF_ORIENTATION), wide = t->big ? 8 : 4;
    if (!at || number(t, at + 2, 2) != SHORT || number(t, at + 4, wide) != 1)
        return 1;
    const uint64_t value = number(t, at + 4 + wide, 2);
    return value >= 1 && value <= 8 ? (uint32_t)value : 1;
}

uint32_t qn__exif_orientation(const uint8_t *bytes, size_t size) {
    qn__tiff_tags tags;
    const size_t skip = size >= 6 && memcmp(bytes, "Exif\0\0", 6) == 0 ? 6 : 0;
    if (!qn__tiff_tags_open(&tags, bytes + skip, size - skip) || tags.big)
        return 1;
    return qn__tiff_orientation(&tags);
}
