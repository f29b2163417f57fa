/* Packed words without and with instructions that not every processor has. The latter take whole
 * groups of words. */
#ifndef QN_CLUSTER_REDUCTION_PACKED_WORDS_WIDE_H
#define QN_CLUSTER_REDUCTION_PACKED_WORDS_WIDE_H

#include "cluster/reduction/packed_words.h"

/* Bytes that are read and written from the beginning of a group, also if it is shorter. */
enum { QN__WORDS_WIDE = 2 + 8 * QN__WORDS_GROUP };

/* The functions of packed_words.h without such instructions. */
size_t qn__words_pack_plain(const int64_t *from, size_t words, unsigned char *to);
int qn__words_unpack_plain(qn__packed_words *packed, size_t words, int adds, int64_t *to);

/* 1: this processor has them. Otherwise the others may not be called. */
int qn__words_wide_here(void);

/* As qn__words_pack, for whole groups. */
size_t qn__words_pack_wide(const int64_t *from, size_t groups, unsigned char *to);

/* As qn__words_unpack, for up to so many whole groups. Returns how many it took: it leaves a group
 * near the end of the message, or one that is not valid. */
size_t qn__words_unpack_wide(qn__packed_words *packed, size_t groups, int adds, int64_t *to);

#endif
