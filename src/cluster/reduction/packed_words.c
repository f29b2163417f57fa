#include "cluster/reduction/packed_words_wide.h"

#include <stdatomic.h>
#include <string.h>

enum { GROUP = QN__WORDS_GROUP, HEAD = 2, WORD = 8, MOST_SHIFT = 63 };

uint64_t qn__words_most(uint64_t words) {
    /* A word is written as 8 bytes, of which the next one covers those that do not count. */
    return words * WORD + (words + GROUP - 1) / GROUP * HEAD + WORD;
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

/* ------------------------------------------------------------------------------------- to bytes */

static inline size_t pack_group(const int64_t *from, uint32_t words, unsigned char *to) {
    uint64_t any = 0, changes = 0; /* bits that differ from the next lower one */
    for (uint32_t i = 0; i < words; ++i) {
        const uint64_t word = (uint64_t)from[i];
        any |= word;
        changes |= word ^ word << 1;
    }
    to[0] = to[1] = 0;
    if (any == 0)
        return HEAD;
    const int shift = __builtin_ctzll(any), bits = 64 - __builtin_clzll(changes) - shift;
    const uint32_t width = (uint32_t)(bits + 7) / 8;
    to[0] = (unsigned char)width;
    to[1] = (unsigned char)shift;
    to += HEAD;
    for (uint32_t i = 0; i < words; ++i)
        put(to + (size_t)i * width, (uint64_t)from[i] >> shift);
    return HEAD + (size_t)words * width;
}

size_t qn__words_pack_plain(const int64_t *from, size_t words, unsigned char *to) {
    size_t used = 0, i = 0;
    for (; i + GROUP <= words; i += GROUP)
        used += pack_group(from + i, GROUP, to + used);
    return i < words ? used + pack_group(from + i, (uint32_t)(words - i), to + used) : used;
}

/* ------------------------------------------------------------------------------------- to words */

/* `width` is a constant where it is called: the loops need no shift by a variable. */
static inline void unpack_width(const unsigned char *from, uint32_t words, uint32_t width,
                                uint32_t shift, int64_t *to) {
    const uint32_t unused = 64 - 8 * width;
    for (uint32_t i = 0; i < words; ++i) {
        const int64_t word = (int64_t)(get(from + (size_t)i * width) << unused) >> unused;
        to[i] = (int64_t)((uint64_t)word << shift);
    }
}

/* Reads up to 7 bytes after the last word. */
static void unpack_group(const unsigned char *from, uint32_t words, uint32_t width, uint32_t shift,
                         int64_t *to) {
    switch (width) {
    case 0:
        memset(to, 0, words * sizeof *to);
        break;
    case 1:
        unpack_width(from, words, 1, shift, to);
        break;
    case 2:
        unpack_width(from, words, 2, shift, to);
        break;
    case 3:
        unpack_width(from, words, 3, shift, to);
        break;
    case 4:
        unpack_width(from, words, 4, shift, to);
        break;
    case 5:
        unpack_width(from, words, 5, shift, to);
        break;
    case 6:
        unpack_width(from, words, 6, shift, to);
        break;
    case 7:
        unpack_width(from, words, 7, shift, to);
        break;
    default:
        unpack_width(from, words, WORD, shift, to);
    }
}

/* A group near the end of the message, with zeros after it. */
static void unpack_last(const unsigned char *from, uint32_t words, uint32_t width, uint32_t shift,
                        int64_t *to) {
    unsigned char end[(GROUP + 1) * WORD] = {0};
    memcpy(end, from, (size_t)words * width);
    unpack_group(end, words, width, shift, to);
}

int qn__words_unpack_plain(qn__packed_words *p, size_t words, int adds, int64_t *to) {
    for (size_t at = 0; at < words; at += GROUP) {
        const uint32_t n = words - at < GROUP ? (uint32_t)(words - at) : GROUP;
        int64_t word[GROUP];
        if (p->left < HEAD || p->at[0] > WORD || p->at[1] > MOST_SHIFT)
            return 0;
        const uint32_t width = p->at[0], shift = p->at[1];
        const uint64_t size = HEAD + (uint64_t)n * width;
        if (p->left < size)
            return 0;
        if (p->left < size + WORD)
            unpack_last(p->at + HEAD, n, width, shift, adds ? word : to + at);
        else
            unpack_group(p->at + HEAD, n, width, shift, adds ? word : to + at);
        for (uint32_t i = 0; adds && i < n; ++i)
            to[at + i] = (int64_t)((uint64_t)to[at + i] + (uint64_t)word[i]);
        p->at += size;
        p->left -= size;
    }
    return 1;
}

/* ------------------------------------------------------------------------------ which instructions
 */

/* Determined at the first call; every thread finds the same. */
static int is_wide(void) {
    static atomic_int known; /* 0: not yet determined; 1: no; 2: yes */
    int which = atomic_load_explicit(&known, memory_order_relaxed);
    if (which == 0) {
        which = 1 + qn__words_wide_here();
        atomic_store_explicit(&known, which, memory_order_relaxed);
    }
    return which == 2;
}

size_t qn__words_pack(const int64_t *from, size_t words, unsigned char *to) {
    const size_t wide = is_wide() ? words / GROUP : 0;
    const size_t used = wide > 0 ? qn__words_pack_wide(from, wide, to) : 0;
    return used + qn__words_pack_plain(from + wide * GROUP, words - wide * GROUP, to + used);
}

int qn__words_unpack(qn__packed_words *p, size_t words, int adds, int64_t *to) {
    const size_t done = is_wide() ? GROUP * qn__words_unpack_wide(p, words / GROUP, adds, to) : 0;
    return qn__words_unpack_plain(p, words - done, adds, to + done);
}
