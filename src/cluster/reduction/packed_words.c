#include "cluster/reduction/packed_words_wide.h"
#include "num/sums.h"

#include <stdatomic.h>
#include <string.h>

enum { GROUP = QN__WORDS_GROUP, HEAD = QN__WORDS_HEAD, WORD = 8, MOST_SHIFT = 63 };

#define SIGN (UINT32_C(1) << 31)

uint64_t qn__words_most(uint64_t words) {
    /* A group is written as 64 bytes, of which the next one covers those that do not count. */
    return words * WORD + (words + GROUP - 1) / GROUP * HEAD + (uint64_t)GROUP * WORD;
}

/* Numbers are little-endian on every machine. */
static uint64_t little(uint64_t word) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
}

static void put(unsigned char *to, uint64_t word) {
    word = little(word);
    memcpy(to, &word, sizeof word);
}

static uint64_t get(const unsigned char *from) {
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return little(word);
}

static size_t bytes_of(uint32_t words, uint32_t bits) { return ((size_t)words * bits + 7) / 8; }

static uint64_t low_bits(uint64_t word, uint32_t bits) {
    return bits < 64 ? word & ((UINT64_C(1) << bits) - 1) : word;
}

/* ------------------------------------------------------------------------------------- to bytes */

/* A group whose words have so many bits, of which others may be set. */
static size_t put_group(const uint64_t *word, uint32_t words, uint32_t bits, unsigned char first,
                        unsigned char second, unsigned char *to) {
    uint64_t rest = 0; /* bits that are not yet written */
    uint32_t some = 0;
    to[0] = first;
    to[1] = second;
    unsigned char *at = to + HEAD;
    for (uint32_t i = 0; i < words; ++i) {
        rest |= low_bits(word[i], bits) << some;
        put(at, rest);
        some += bits;
        at += some / 8;
        rest = some < 64 ? rest >> some / 8 * 8 : 0;
        some %= 8;
    }
    return HEAD + bytes_of(words, bits);
}

/* The nearest floats of words, as words of *bits bits above the exponent *base. 0: one of them is
 * too large. */
static int as_floats(const int64_t *from, uint32_t words, uint64_t *field, uint32_t *bits,
                     uint32_t *base) {
    uint32_t float_bits[GROUP], least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < words; ++i) {
        const float nearest = qn__from_units(from[i]);
        memcpy(&float_bits[i], &nearest, sizeof nearest);
        const uint32_t size = float_bits[i] & ~SIGN;
        least = size > 0 && size < least ? size : least;
        most = size > most ? size : most;
    }
    if (most >= QN__WORDS_TOO_LARGE)
        return 0;
    *base = (least >> 23) - 1;
    *bits = 33 - (uint32_t)__builtin_clz(most - (*base << 23));
    for (uint32_t i = 0; i < words; ++i) {
        const uint32_t size = float_bits[i] & ~SIGN;
        field[i] =
            size == 0 ? 0 : (size - (*base << 23)) | (uint64_t)(float_bits[i] >> 31) << (*bits - 1);
    }
    return 1;
}

static size_t pack_group(const int64_t *from, uint32_t words, int rounds, unsigned char *to) {
    uint64_t any = 0, changes = 0; /* bits that differ from the next lower one */
    uint64_t field[GROUP];
    uint32_t float_bits, base;
    for (uint32_t i = 0; i < words; ++i) {
        const uint64_t word = (uint64_t)from[i];
        any |= word;
        changes |= word ^ word << 1;
    }
    to[0] = to[1] = 0;
    if (any == 0)
        return HEAD;
    const uint32_t shift = (uint32_t)__builtin_ctzll(any);
    const uint32_t bits = qn__words_bits(64 - (uint32_t)__builtin_clzll(changes) - shift);
    if (rounds && bits > QN__WORDS_FLOAT_LEAST &&
        as_floats(from, words, field, &float_bits, &base) && float_bits < bits)
        return put_group(field, words, float_bits, (unsigned char)(QN__WORDS_FLOATS + float_bits),
                         (unsigned char)base, to);
    for (uint32_t i = 0; i < words; ++i)
        field[i] = (uint64_t)from[i] >> shift;
    return put_group(field, words, bits, (unsigned char)bits, (unsigned char)shift, to);
}

size_t qn__words_pack_plain(const int64_t *from, size_t words, int rounds, unsigned char *to) {
    size_t used = 0, i = 0;
    for (; i + GROUP <= words; i += GROUP)
        used += pack_group(from + i, GROUP, rounds, to + used);
    return i < words ? used + pack_group(from + i, (uint32_t)(words - i), rounds, to + used) : used;
}

/* ------------------------------------------------------------------------------------- to words */

/* Reads up to 8 bytes after the last word. */
static void unpack_integers(const unsigned char *from, uint32_t words, uint32_t bits,
                            uint32_t shift, int64_t *to) {
    const uint32_t unused = 64 - bits;
    for (uint32_t i = 0; i < words; ++i) {
        const uint64_t word = get(from + (size_t)i * bits / 8) >> i * bits % 8;
        to[i] = (int64_t)((uint64_t)((int64_t)(word << unused) >> unused) << shift);
    }
}

/* 0: a float is not an int64. */
static int unpack_floats(const unsigned char *from, uint32_t words, uint32_t bits, uint32_t base,
                         int64_t *to) {
    for (uint32_t i = 0; i < words; ++i) {
        const uint64_t word = low_bits(get(from + (size_t)i * bits / 8) >> i * bits % 8, bits);
        const uint32_t sign = (uint32_t)(word >> (bits - 1)) << 31;
        const uint32_t size = (uint32_t)low_bits(word, bits - 1);
        const uint64_t float_bits = size > 0 ? size + ((uint64_t)base << 23) : 0;
        const uint32_t all = (uint32_t)float_bits | sign;
        float nearest;
        if (float_bits >= QN__WORDS_TOO_LARGE)
            return 0;
        memcpy(&nearest, &all, sizeof nearest);
        to[i] = (int64_t)nearest;
    }
    return 1;
}

static int unpack_group(const unsigned char *from, const unsigned char *head, uint32_t words,
                        int64_t *to) {
    if (head[0] >= QN__WORDS_FLOATS)
        return unpack_floats(from, words, head[0] - QN__WORDS_FLOATS, head[1], to);
    if (head[0] > 0)
        unpack_integers(from, words, head[0], head[1], to);
    else
        memset(to, 0, words * sizeof *to);
    return 1;
}

int qn__words_unpack_plain(qn__packed_words *p, size_t words, int adds, int64_t *to) {
    for (size_t at = 0; at < words; at += GROUP) {
        const uint32_t n = words - at < GROUP ? (uint32_t)(words - at) : GROUP;
        int64_t word[GROUP] = {0};
        unsigned char end[(GROUP + 1) * WORD] = {0}; /* near the end of the message */
        if (p->left < HEAD || !qn__words_is_head(p->at))
            return 0;
        const size_t bytes = bytes_of(n, qn__words_bits_of(p->at));
        if (p->left < HEAD + bytes)
            return 0;
        const unsigned char *from = p->at + HEAD;
        if (p->left < HEAD + bytes + WORD)
            from = memcpy(end, from, bytes);
        if (!unpack_group(from, p->at, n, adds ? word : to + at))
            return 0;
        for (uint32_t i = 0; adds && i < n; ++i)
            to[at + i] = (int64_t)((uint64_t)to[at + i] + (uint64_t)word[i]);
        p->at += HEAD + bytes;
        p->left -= HEAD + bytes;
    }
    return 1;
}

/* ------------------------------------------------------------------------------ which instructions
 */

/* Determined at the first call; every thread finds the same. */
static int is_wide(void) {
    static atomic_int known; /* 0: not yet determined; 1: no; 2: yes */
    int which = atomic_load_explicit(&known, memory_order_acquire);
    if (which == 0) {
        which = 1 + qn__words_wide_here();
        atomic_store_explicit(&known, which, memory_order_release);
    }
    return which == 2;
}

static size_t pack(const int64_t *from, size_t words, int rounds, unsigned char *to) {
    const size_t wide = is_wide() ? words / GROUP : 0;
    const size_t used = wide > 0 ? qn__words_pack_wide(from, wide, rounds, to) : 0;
    return used +
           qn__words_pack_plain(from + wide * GROUP, words - wide * GROUP, rounds, to + used);
}

size_t qn__words_pack(const int64_t *from, size_t words, unsigned char *to) {
    return pack(from, words, 0, to);
}

size_t qn__words_pack_rounded(const int64_t *from, size_t words, unsigned char *to) {
    return pack(from, words, 1, to);
}

int qn__words_unpack(qn__packed_words *p, size_t words, int adds, int64_t *to) {
    const size_t done = is_wide() ? GROUP * qn__words_unpack_wide(p, words / GROUP, adds, to) : 0;
    return qn__words_unpack_plain(p, words - done, adds, to + done);
}
