/* A table whose rows are with several ranks (quern/parts.h). Each rank has its own rows under the
 * schema of the whole. */
#ifndef QN_DATA_PARTS_PARTS_H
#define QN_DATA_PARTS_PARTS_H

#include "cluster/cluster.h"
#include "data/table/data.h"
#include "num/exact_sum.h"
#include <quern/parts.h>

struct qn_parts {
    qn_cluster *cluster; /* NULL: this process has all rows */
    uint32_t ranks, rank;
    uint64_t *first;   /* ranks + 1: rank r has the rows first[r] .. first[r + 1] - 1 */
    char (*name)[184]; /* of the files of each rank, for messages: "b.csv and 3 more" */
    uint64_t *text;    /* as `first`, of the texts whose windows are items; each item may be one */
    uint64_t *had, *had_text; /* `first` and `text` when the ranks agreed: rows do not move there */
    qn_data *own; /* the rows of this rank, with schema, type and classes of the whole; it may
                     have no items */
    const qn_data *given;     /* of which `own` is made where it was in memory; NULL: of files */
    struct qn__part_row *row; /* of tokens (parts_tokens.h); NULL: it is none */
    uint32_t copies;          /* ranks that have each part in the table of all; 0: as 1 */
    uint64_t *in_class;       /* items of each class of the whole; NULL: labels are not classes */
    uint8_t *gone;            /* of each rank, see qn__part_gone */
    uint32_t heir_of;         /* 1 more than the rank whose files this one reads, too; 0: none */
    int dealt;                /* 1: all ranks name the same files, which are dealt to them */
    int agreed;               /* 1: the ranks have agreed on one schema, and `own` has it */
    char digest[65];          /* of the whole */
    /* For qn__parts_read: what ranks said of their parts, the files of all, the caller's options.
     */
    struct qn__part_heads *heads;
    struct qn__part_paths *paths;
    qn_data_options options;
    /* Of texts, where it is not that of a model: its text, and its kind. */
    char *tokenizer, tokens[24];
};

/* What is known of a rank, alike on all others. */
enum qn__part_gone {
    QN__PART_THERE,
    QN__PART_LOST,   /* it has ended, and what needs its rows fails */
    QN__PART_SETTLED /* it has ended, and has no rows: others have its files (parts_mend.h) */
};

static inline uint64_t qn__parts_items(const qn_parts *parts) { return parts->first[parts->ranks]; }

/* Whether each value of the whole is the number of a token below `tokens`: then each place of an
 * item has one. */
int qn__parts_are_tokens(const qn_parts *parts, uint32_t tokens);

/* How many values of a feature are missing in the whole. */
uint64_t qn__parts_missing(const qn_parts *parts, uint32_t feature);

/* ------------------------------------------------------------------ collective */

/* This rank cannot go on: its failure is that of all ranks. Returns `status`. */
qn_status qn__parts_fail(const qn_parts *parts, qn_status status, qn_error *err);

/* All-gather of `bytes` from each rank, which begin with a byte that is not 0. Fails with QN_IO
 * where a rank has died, which is QN__PART_LOST then. Those of a settled rank are 0. */
qn_status qn__parts_gather_each(const qn_parts *parts, const void *own, uint64_t bytes, void *all,
                                qn_error *err);

/* The items of the whole, of which each rank has its own, `each` bytes of an item: the same `all`
 * on each rank. Fails as above. */
qn_status qn__parts_gather_items(const qn_parts *parts, const void *own, uint64_t each, void *all,
                                 qn_error *err);

/* Adds `count` words of all ranks; each rank gets the sums. Fails as above. */
qn_status qn__parts_add(const qn_parts *parts, int64_t *words, uint64_t count, qn_error *err);

/* Adds `count` exact sums of all ranks; each rank gets the sums. Only limbs that some rank has are
 * sent. Fails as above. */
qn_status qn__parts_add_sums(const qn_parts *parts, qn__exact_sum *const *sum, uint64_t count,
                             qn_error *err);

/* QN_OK where `status` is that on all ranks. Else all fail; the message names a rank that did. */
qn_status qn__parts_agree(const qn_parts *parts, qn_status status, qn_error *err);

/* Collective, with the status of the calls above: where a rank is lost, others read its files, and
 * its rows are theirs, in the same order. Returns 1 where that is done: the caller does again what
 * has failed. parts->own stays where it is, with more rows on some rank. Otherwise it returns 0;
 * *status and *err may have changed: QN_IO names files that cannot be read. Not for parts in a
 * table, which are reached in another way. */
int qn__parts_mend(qn_parts *parts, qn_status *status, qn_error *err);

/* The rows that a rank had when the ranks agreed on the table. */
typedef struct qn__part_range {
    int is_here;             /* 1: this rank has them, as its own or for one that has ended */
    uint64_t row, row_end;   /* among those of this rank; both 0 where the rank had none */
    uint64_t text, text_end; /* likewise, of the texts whose windows are items */
} qn__part_range;

qn__part_range qn__parts_range(const qn_parts *parts, uint32_t rank);

/* How many ranks of this machine divide its memory. */
uint32_t qn__parts_beside(const qn_parts *parts);

/* How many ranks before `rank` are there: its place among those that are. */
uint32_t qn__parts_place(const qn_parts *parts, uint32_t rank);

/* 1: a rank is QN__PART_LOST. */
int qn__parts_lost(const qn_parts *parts);

/* Collective: the notes of the readers of all ranks become those of parts->own, on each rank. Fails
 * as above. */
qn_status qn__parts_notes(qn_parts *parts, qn_error *err);

/* On a rank that joins with another part than the run has in its place. */
qn_status qn__parts_differ(const qn_parts *parts, qn_error *err);

/* Bytes of different lengths from each rank. */
typedef struct qn__parts_blobs {
    uint8_t *all;
    uint64_t each;
    uint64_t *size; /* of each rank */
} qn__parts_blobs;

/* For qn__parts_blobs_release, in any case. Fails as qn__parts_gather_each. */
qn_status qn__parts_gather_blobs(const qn_parts *parts, const void *own, uint64_t size,
                                 qn__parts_blobs *out, qn_error *err);
void qn__parts_blobs_release(qn__parts_blobs *blobs);

#endif
