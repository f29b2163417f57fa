/* Encodings of values (Encodings.md of Apache Parquet). */
#include "data/columnar/parquet.h"
#include <string.h>

static int take_varint(qn__encoded *in, uint64_t *number) {
    *number = 0;
    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        const uint8_t byte = *in->at++;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return 1;
    }
    return 0;
}

static int take_zigzag(qn__encoded *in, uint64_t *number) {
    if (!take_varint(in, number))
        return 0;
    *number = *number >> 1 ^ (0 - (*number & 1));
    return 1;
}

/* Number `i` of those that are packed with `bits` bits each, the lowest first, at `from`; bytes
 * from `end` on read as 0. */
static uint64_t packed_at(const uint8_t *from, const uint8_t *end, unsigned bits, uint64_t i) {
    const uint64_t first = i * bits;
    const uint8_t *at = from + first / 8;
    const unsigned skip = (unsigned)(first % 8);
    uint64_t low = 0, high = 0;
    if (end - at >= 9) {
        memcpy(&low, at, 8);
        high = at[8];
    } else {
        for (unsigned b = 0; at + b < end && b < 8; b++)
            low |= (uint64_t)at[b] << 8 * b;
    }
    low >>= skip;
    if (skip && bits > 64 - skip)
        low |= high << (64 - skip);
    return bits == 64 ? low : low & (((uint64_t)1 << bits) - 1);
}

/* ------------------------------------------------------------------ runs and packed groups */

/* Groups of 8 numbers of at most 8 bits: a group fits a word. */
static void unpack_groups(const uint8_t *from, unsigned bits, uint32_t *to, uint64_t groups) {
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (uint64_t g = 0; g < groups; g++, from += bits, to += 8) {
        uint64_t word = 0;
        memcpy(&word, from, bits);
        for (unsigned i = 0; i < 8; i++)
            to[i] = (uint32_t)(word >> i * bits & mask);
    }
}

static int take_packed(qn__encoded *in, unsigned bits, uint64_t groups, uint32_t *to,
                       uint64_t count) {
    const uint64_t have = (uint64_t)(in->end - in->at);
    if (groups > UINT64_MAX / 32 / 8)
        return 0;
    /* Some writers cut the last group after its last number. */
    const uint64_t numbers = groups * 8 < count ? groups * 8 : count;
    if ((numbers * bits + 7) / 8 > have)
        return 0;
    uint64_t done = 0;
    if (bits <= 8) {
        done = numbers / 8 * 8;
        unpack_groups(in->at, bits, to, numbers / 8);
    }
    for (; done < numbers; done++)
        to[done] = (uint32_t)packed_at(in->at, in->end, bits, done);
    in->at += groups * bits < have ? groups * bits : have;
    return 1;
}

static int take_run(qn__encoded *in, unsigned bits, uint32_t *to, uint64_t count) {
    const size_t size = (bits + 7) / 8;
    uint32_t value = 0;
    if ((size_t)(in->end - in->at) < size)
        return 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint32_t)in->at[i] << 8 * i;
    in->at += size;
    for (uint64_t i = 0; i < count; i++)
        to[i] = value;
    return 1;
}

int qn__decode_runs(qn__encoded *in, unsigned bits, uint32_t *to, uint64_t count) {
    while (count > 0) {
        uint64_t head;
        if (!take_varint(in, &head))
            return 0;
        const uint64_t many =
            head & 1 ? (head >> 1) > UINT64_MAX / 8 ? UINT64_MAX : (head >> 1) * 8 : head >> 1;
        const uint64_t part = many < count ? many : count;
        if (part == 0)
            continue; /* each head takes a byte at least, so this ends */
        if (!(head & 1 ? take_packed(in, bits, head >> 1, to, part) : take_run(in, bits, to, part)))
            return 0;
        to += part;
        count -= part;
    }
    return 1;
}

/* ------------------------------------------------------------------ differences */

static void put(uint8_t *to, size_t width, uint64_t i, uint64_t value) {
    const uint32_t narrow = (uint32_t)value;
    if (width == sizeof narrow)
        memcpy(to + i * width, &narrow, sizeof narrow);
    else
        memcpy(to + i * width, &value, sizeof value);
}

typedef struct deltas {
    uint64_t block, minis, per_mini; /* values of a block, its parts, values of a part */
    uint64_t total, value;
} deltas;

static int take_head(qn__encoded *in, deltas *d) {
    if (!take_varint(in, &d->block) || !take_varint(in, &d->minis) || !take_varint(in, &d->total) ||
        !take_zigzag(in, &d->value))
        return 0;
    if (d->minis == 0 || d->minis > 1024 || d->block > 1 << 24 || d->block % d->minis)
        return 0;
    d->per_mini = d->block / d->minis;
    return d->per_mini > 0 && d->per_mini % 8 == 0;
}

/* A part of a block, of which `count` values are used. */
static int take_mini(qn__encoded *in, deltas *d, unsigned bits, uint64_t least, size_t width,
                     uint8_t *to, uint64_t done, uint64_t count) {
    const uint64_t size = d->per_mini * bits / 8;
    if (bits > 64 || (count * bits + 7) / 8 > (uint64_t)(in->end - in->at))
        return 0;
    for (uint64_t i = 0; i < count; i++) {
        d->value += least + (bits ? packed_at(in->at, in->end, bits, i) : 0);
        put(to, width, done + i, d->value);
    }
    in->at += size < (uint64_t)(in->end - in->at) ? size : (uint64_t)(in->end - in->at);
    return 1;
}

int qn__decode_deltas(qn__encoded *in, size_t width, uint8_t *to, uint64_t *count) {
    deltas d;
    if (!take_head(in, &d) || d.total > *count)
        return 0;
    *count = d.total;
    if (d.total > 0)
        put(to, width, 0, d.value);
    for (uint64_t done = 1; done < d.total;) {
        uint64_t least;
        if (!take_zigzag(in, &least) || d.minis > (uint64_t)(in->end - in->at))
            return 0;
        const uint8_t *bits = in->at;
        in->at += d.minis;
        for (uint64_t m = 0; m < d.minis && done < d.total; m++) {
            const uint64_t left = d.total - done, part = left < d.per_mini ? left : d.per_mini;
            if (!take_mini(in, &d, bits[m], least, width, to, done, part))
                return 0;
            done += part;
        }
    }
    return 1;
}

/* ------------------------------------------------------------------ the others */

int qn__decode_decimal(const uint8_t *from, size_t size, uint8_t *to, size_t width) {
    const uint8_t sign = size > 0 && from[0] >> 7 ? 0xFF : 0;
    for (; size > width; from++, size--)
        if (*from != sign)
            return 0;
    if (size == width && from[0] >> 7 != sign >> 7)
        return 0;
    for (size_t i = 0; i < width; i++)
        to[i] = i < size ? from[size - 1 - i] : sign;
    return 1;
}

int qn__decode_split(qn__encoded *in, size_t width, uint8_t *to, uint64_t count) {
    if (count > (uint64_t)(in->end - in->at) / width)
        return 0;
    for (size_t b = 0; b < width; b++)
        for (uint64_t i = 0; i < count; i++)
            to[i * width + b] = in->at[b * count + i];
    in->at += width * count;
    return 1;
}

qn__view qn__view_of(const uint8_t *text, size_t size, int32_t buffer, const uint8_t *base) {
    qn__view view = {.size = (int32_t)size};
    if (size <= sizeof view.at.inside) {
        if (size > 0)
            memcpy(view.at.inside, text, size);
        return view;
    }
    memcpy(view.at.out.first, text, sizeof view.at.out.first);
    view.at.out.buffer = buffer;
    view.at.out.offset = (int32_t)(text - base);
    return view;
}

int qn__decode_texts(qn__encoded *in, const uint8_t *base, int32_t buffer, qn__view *to,
                     uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (in->end - in->at < 4)
            return 0;
        const uint32_t size = (uint32_t)in->at[0] | (uint32_t)in->at[1] << 8 |
                              (uint32_t)in->at[2] << 16 | (uint32_t)in->at[3] << 24;
        in->at += 4;
        if (size > (size_t)(in->end - in->at) || size > INT32_MAX)
            return 0;
        to[i] = qn__view_of(in->at, size, buffer, base);
        in->at += size;
    }
    return 1;
}
