/* Tokens in parts: a vocabulary that all ranks learn together, and one row of tokens. */
#ifndef QN_DATA_PARTS_PARTS_TOKENS_H
#define QN_DATA_PARTS_PARTS_TOKENS_H

#include "data/parts/parts.h"
#include "data/table/part_reading.h"

/* How this rank reads its part. */
typedef struct qn__part_tokens {
    const qn_parts *parts;
    qn__part_reading reading; /* for qn__data_open_list */
    int learns;               /* 1: the tokenizer is learned by all ranks together */
    int joined, failed;       /* 1: that was done; all ranks know that it failed */
} qn__part_tokens;

void qn__part_tokens_begin(qn__part_tokens *tokens, const qn_parts *parts,
                           const qn_data_options *options);

/* Collective, after reading, which gave `status` on this rank: QN_OK where it did on all. */
qn_status qn__part_tokens_read(qn__part_tokens *tokens, qn_status status, qn_error *err);

/* Keeps the tokenizer of the texts that were read, as it was learned. Fails with QN_MEMORY. */
qn_status qn__parts_keep_tokenizer(qn_parts *parts, qn_error *err);
/* All is read again: forgets it, and parts->row. */
void qn__parts_forget_tokens(qn_parts *parts);
/* Files that are read again get it. */
void qn__parts_know_tokenizer(const qn_parts *parts, qn_data_options *options);

/* Who has which tokens of one row (docs/exactness.md 25.42). */
typedef struct qn__part_row {
    uint64_t *token;  /* ranks + 1: rank r has read those from token[r] to token[r + 1] - 1 */
    uint64_t *origin; /* as `token` was at first, when `head` was told */
    uint64_t *first;  /* ranks + 1: the items that begin in them */
    uint32_t *before; /* of each rank: tokens of its own row before these, 0 or 1 */
    uint32_t context;
    uint64_t left;        /* tokens at the end that fill no item */
    qn__parts_blobs head; /* the first tokens of each rank, at most `context` */
} qn__part_row;

/* Collective: where the parts are one row of tokens, cuts the row of this rank, parts->own, into
 * the items that begin in it; without an item it becomes NULL. parts->row says how. Fails with
 * QN_MISMATCH, or as qn__token_row_cut. */
qn_status qn__parts_row(qn_parts *parts, const qn__part_reading *reading,
                        const qn_data_options *options, qn_error *err);

/* The same of the row of any rank that was read again. It has items. */
qn_status qn__part_row_cut(const qn_parts *parts, uint32_t rank, const qn_data_options *options,
                           qn_data *data, qn_error *err);
void qn__part_row_free(qn__part_row *row); /* accepts NULL */

#endif
