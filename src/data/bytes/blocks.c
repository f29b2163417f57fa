/* Snappy (its format_description.txt) and LZ4 (lz4_Block_format.md, lz4_Frame_format.md): literals,
 * and copies of what was made before. */
#include "data/bytes/blocks.h"
#include <string.h>

int qn__block_literal(qn__block *b, uint64_t size) {
    if (size > (uint64_t)(b->end - b->at) || size > b->capacity - b->made)
        return 0;
    if (size > 0)
        memcpy(b->to + b->made, b->at, (size_t)size);
    b->at += size;
    b->made += (size_t)size;
    return 1;
}

int qn__block_copy(qn__block *b, uint64_t back, uint64_t size) {
    if (back == 0 || back > b->made || size > b->capacity - b->made)
        return 0;
    uint8_t *to = b->to + b->made;
    const uint8_t *from = to - back;
    b->made += (size_t)size;
    /* A copy that overlaps itself repeats its first bytes. */
    for (; back >= 8 && size >= 8; size -= 8, to += 8, from += 8)
        memcpy(to, from, 8);
    while (size-- > 0)
        *to++ = *from++;
    return 1;
}

/* A little-endian number of `size` bytes, at most 8. */
static int take_number(qn__block *b, size_t size, uint64_t *number) {
    if (size > (size_t)(b->end - b->at))
        return 0;
    *number = 0;
    for (size_t i = 0; i < size; i++)
        *number |= (uint64_t)b->at[i] << 8 * i;
    b->at += size;
    return 1;
}

/* ------------------------------------------------------------------ snappy */

static int snappy_length(qn__block *b, uint64_t *length) {
    *length = 0;
    for (unsigned shift = 0; shift < 35 && b->at < b->end; shift += 7) {
        const uint8_t byte = *b->at++;
        *length |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return 1;
    }
    return 0;
}

static int snappy_element(qn__block *b) {
    const unsigned tag = *b->at++;
    uint64_t number = 0;
    switch (tag & 3) {
    case 0: /* up to 60 bytes, or their number in 1 to 4 bytes */
        if (tag >> 2 >= 60) {
            if (!take_number(b, (tag >> 2) - 59, &number))
                return 0;
            return qn__block_literal(b, number + 1);
        }
        return qn__block_literal(b, (tag >> 2) + 1);
    case 1:
        return take_number(b, 1, &number) &&
               qn__block_copy(b, (uint64_t)(tag >> 5) << 8 | number, (tag >> 2 & 7) + 4);
    default:
        return take_number(b, (tag & 3) == 2 ? 2 : 4, &number) &&
               qn__block_copy(b, number, (tag >> 2) + 1);
    }
}

int qn__snappy_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    qn__block b = {.at = from, .end = from + size, .to = to, .capacity = made};
    uint64_t length;
    if (!snappy_length(&b, &length) || length != made)
        return 0;
    while (b.at < b.end)
        if (!snappy_element(&b))
            return 0;
    return b.made == made;
}

/* ------------------------------------------------------------------ LZ4 */

/* A length of 15 goes on in further bytes; one below 255 is the last. */
static int lz4_length(qn__block *b, uint64_t *length) {
    uint8_t byte = 255;
    if (*length < 15)
        return 1;
    while (byte == 255) {
        if (b->at == b->end)
            return 0;
        byte = *b->at++;
        *length += byte;
    }
    return 1;
}

/* Literals and a copy of at least 4 bytes; the last literals end the block. */
static int lz4_sequences(qn__block *b) {
    for (;;) {
        if (b->at == b->end)
            return 0;
        const unsigned token = *b->at++;
        uint64_t literals = token >> 4, length = token & 15, back;
        if (!lz4_length(b, &literals) || !qn__block_literal(b, literals))
            return 0;
        if (b->at == b->end)
            return 1;
        if (!take_number(b, 2, &back) || !lz4_length(b, &length) ||
            !qn__block_copy(b, back, length + 4))
            return 0;
    }
}

int qn__lz4_block_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    qn__block b = {.at = from, .end = from + size, .to = to, .capacity = made};
    return lz4_sequences(&b) && b.made == made;
}

enum {
    FRAME_VERSION = 0x40, /* in the flags, with */
    FRAME_VERSION_BITS = 0xC0,
    BLOCK_CHECKSUM = 0x10,
    CONTENT_SIZE = 0x08,
    CONTENT_CHECKSUM = 0x04,
    DICTIONARY = 0x01
};

/* The blocks of a frame. Those that are linked copy from the ones before, which stand in `to`. */
static int lz4_blocks(qn__block *b, uint64_t flags) {
    const uint8_t *end = b->end;
    uint64_t size, ignored;
    for (;;) {
        if (!take_number(b, 4, &size))
            return 0;
        if (size == 0)
            return !(flags & CONTENT_CHECKSUM) || take_number(b, 4, &ignored);
        const int stored = size >> 31 != 0;
        size &= 0x7FFFFFFF;
        if (size > (uint64_t)(end - b->at))
            return 0;
        b->end = b->at + size;
        if (!(stored ? qn__block_literal(b, size) : lz4_sequences(b)))
            return 0;
        b->end = end;
        if (flags & BLOCK_CHECKSUM && !take_number(b, 4, &ignored))
            return 0;
    }
}

static int lz4_frame(qn__block *b) {
    uint64_t magic, flags, ignored;
    if (!take_number(b, 4, &magic) || magic != 0x184D2204 || !take_number(b, 1, &flags) ||
        (flags & FRAME_VERSION_BITS) != FRAME_VERSION || flags & DICTIONARY ||
        !take_number(b, 1, &ignored) || (flags & CONTENT_SIZE && !take_number(b, 8, &ignored)) ||
        !take_number(b, 1, &ignored))
        return 0;
    return lz4_blocks(b, flags);
}

int qn__lz4_frame_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    qn__block b = {.at = from, .end = from + size, .to = to, .capacity = made};
    do
        if (!lz4_frame(&b))
            return 0;
    while (b.at < b.end);
    return b.made == made;
}

static int take_big(qn__block *b, uint64_t *number) {
    if (b->end - b->at < 4)
        return 0;
    *number =
        (uint64_t)b->at[0] << 24 | (uint64_t)b->at[1] << 16 | (uint64_t)b->at[2] << 8 | b->at[3];
    b->at += 4;
    return 1;
}

/* A group of blocks, which makes as many bytes as it says. */
static int hadoop_group(qn__block *b) {
    uint64_t made, size;
    if (!take_big(b, &made) || made > b->capacity - b->made)
        return 0;
    const size_t until = b->made + (size_t)made;
    while (b->made < until) {
        if (!take_big(b, &size) || size == 0 || size > (uint64_t)(b->end - b->at))
            return 0;
        /* A block copies from itself alone, and does not go on beyond its group. */
        qn__block one = {
            .at = b->at, .end = b->at + size, .to = b->to + b->made, .capacity = until - b->made};
        if (!lz4_sequences(&one) || one.made == 0)
            return 0;
        b->at += size;
        b->made += one.made;
    }
    return 1;
}

int qn__lz4_old_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    qn__block b = {.at = from, .end = from + size, .to = to, .capacity = made};
    int groups = 1;
    while (groups && b.at < b.end)
        groups = hadoop_group(&b);
    return (groups && b.made == made) || qn__lz4_block_unpack(from, size, to, made);
}
