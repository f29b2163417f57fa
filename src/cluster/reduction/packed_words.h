/* Words of a sum as bytes of a message: each group of words takes as many bits as its words need.
 *
 * Many bits of a word say nothing. The upper ones repeat the sign, and the lower ones are zero
 * where rounded floats were added up. A group of 8 words begins with two bytes: the bits of a word
 * and the number of lowest bits that are zero in all of them. The words follow without those bits,
 * one directly after the other, the lowest bit first. Every word comes back as it was.
 *
 * Of a word whose nearest float is all that is used, that float can be sent. A group of floats has
 * FLOATS + bits in its first byte, and an exponent in its second one. A word of b bits is a sign,
 * in the upper bit, and the float's other bits less that exponent; or 0, for 0. */
#ifndef QN_CLUSTER_REDUCTION_PACKED_WORDS_H
#define QN_CLUSTER_REDUCTION_PACKED_WORDS_H

#include <stddef.h>
#include <stdint.h>

enum { QN__WORDS_GROUP = 8 };

/* The most bytes that so many words need as a message, and what qn__words_pack may write to. */
uint64_t qn__words_most(uint64_t words);

/* Packs words. Where more follow, `words` is a multiple of QN__WORDS_GROUP. Writes up to
 * qn__words_most(words) bytes, and returns how many of them count. */
size_t qn__words_pack(const int64_t *from, size_t words, unsigned char *to);

/* The same, but words may come back rounded to the nearest float (qn__from_units). */
size_t qn__words_pack_rounded(const int64_t *from, size_t words, unsigned char *to);

/* A message that is read from its beginning to its end. */
typedef struct qn__packed_words {
    const unsigned char *at;
    uint64_t left; /* bytes */
} qn__packed_words;

/* The next words: adds them to those at `to`, or stores them. 0: the bytes are not such words. */
int qn__words_unpack(qn__packed_words *packed, size_t words, int adds, int64_t *to);

#endif
