/* SipHash-2-4 (Aumasson and Bernstein, 2012): a 64-bit message authentication code for holders of
 * the same key. */
#ifndef QN_BASE_DIGEST_SIPHASH_H
#define QN_BASE_DIGEST_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__siphash_key {
    uint64_t word[2];
} qn__siphash_key;

/* The key in 16 bytes, as the paper writes it: two little-endian words. */
qn__siphash_key qn__siphash_key_of(const unsigned char bytes[16]);

/* SipHash-2-4 itself: for short texts. */
uint64_t qn__siphash(const qn__siphash_key *key, const void *bytes, size_t size);

/* For long texts, several times faster; gives another number. Eight lanes take the words of the
 * text in turn (lane i: words i, i + 8, i + 16, ...; zeros after the end up to a multiple of 64
 * bytes). Each is the SipHash-2-4 state of its own key {word[0], word[1] ^ i}, finished without a
 * length. The result is qn__siphash of the eight results and the size, as nine little-endian
 * words. */
uint64_t qn__siphash_lanes(const qn__siphash_key *key, const void *bytes, size_t size);

#endif
