/* Packed words without and with instructions that not every processor has. The latter take whole
 * groups of words. */
#ifndef QN_CLUSTER_REDUCTION_PACKED_WORDS_WIDE_H
#define QN_CLUSTER_REDUCTION_PACKED_WORDS_WIDE_H

#include "cluster/reduction/packed_words.h"

enum {
    QN__WORDS_HEAD = 2,
    /* A word has 0, LEAST to MOST or 64 bits. With at least 8, no byte has bits of three words;
     * with at most 57, a word and the bits before it in its first byte fit 64. */
    QN__WORDS_LEAST = 8,
    QN__WORDS_MOST = 57,
    QN__WORDS_FLOATS = 128,
    QN__WORDS_FLOAT_LEAST = 25, /* a sign and a float of the least exponent */
    QN__WORDS_FLOAT_MOST = 31,
    /* Bytes that are read and written from the beginning of a group, also if it is shorter. */
    QN__WORDS_WIDE = QN__WORDS_HEAD + 8 * QN__WORDS_GROUP
};

/* The bits of 2^63, the least float that is not an int64. */
#define QN__WORDS_TOO_LARGE UINT32_C(0x5f000000)

/* The bits that words take which need so many. */
static inline uint32_t qn__words_bits(uint32_t needed) {
    return needed > QN__WORDS_MOST ? 64 : needed < QN__WORDS_LEAST ? QN__WORDS_LEAST : needed;
}

/* Whether a group may begin so. */
static inline int qn__words_is_head(const unsigned char *head) {
    const uint32_t bits = head[0];
    if (bits >= QN__WORDS_FLOATS)
        return bits - QN__WORDS_FLOATS >= QN__WORDS_FLOAT_LEAST &&
               bits - QN__WORDS_FLOATS <= QN__WORDS_FLOAT_MOST;
    return head[1] < 64 &&
           (bits == 0 || (bits >= QN__WORDS_LEAST && bits <= QN__WORDS_MOST) || bits == 64);
}

/* The bits of a word of a group that begins so. */
static inline uint32_t qn__words_bits_of(const unsigned char *head) {
    return head[0] % QN__WORDS_FLOATS;
}

/* The functions of packed_words.h without such instructions. */
size_t qn__words_pack_plain(const int64_t *from, size_t words, int rounds, unsigned char *to);
int qn__words_unpack_plain(qn__packed_words *packed, size_t words, int adds, int64_t *to);

/* 1: this processor has them. Otherwise the others may not be called. Called before them. */
int qn__words_wide_here(void);

/* As the functions of packed_words.h, for whole groups. */
size_t qn__words_pack_wide(const int64_t *from, size_t groups, int rounds, unsigned char *to);

/* As qn__words_unpack, for up to so many whole groups. Returns how many it took: it leaves a group
 * near the end of the message, or one that is not valid. */
size_t qn__words_unpack_wide(qn__packed_words *packed, size_t groups, int adds, int64_t *to);

#endif
