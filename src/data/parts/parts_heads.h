/* What all ranks know of each part: its first item as a table, and which labels it has. */
#ifndef QN_DATA_PARTS_PARTS_HEADS_H
#define QN_DATA_PARTS_PARTS_HEADS_H

#include "data/parts/parts.h"

/* A label of a part: a class number as text, or the name of a class. */
typedef struct qn__part_label {
    uint64_t items;
    const char *text;
} qn__part_label;

/* Of a feature: values that are not missing, and qn__feature.said. */
typedef struct qn__part_column {
    uint64_t present;
    int64_t said;
} qn__part_column;

typedef struct qn__part_head {
    qn_data *data; /* its first item, with the schema of the part; NULL: it has no rows */
    const qn__part_column *column; /* of each feature */
    uint64_t items, labels;
    qn__part_label *label;
    int asks;         /* 1: whole labels of its format may be quantities */
    int typed;        /* 1: its format says which labels are texts */
    uint32_t classes; /* of the pixels of masks; else as of its first item */
    uint64_t texts;   /* items, or the texts of windows */
    uint32_t tokens;  /* 1 + the largest number of a token; 0: it has none */
    int gaps;         /* 1: a place of an item may have no token */
} qn__part_head;

typedef struct qn__part_heads {
    qn__parts_blobs blobs; /* that hold all texts */
    qn__part_head *part;   /* of each rank */
    uint32_t lead;         /* the first rank with rows */
} qn__part_heads;

/* Collective: gathers the heads, and parts->first. Release in any case. Fails with QN_INPUT where
 * no rank has rows. */
qn_status qn__part_heads_gather(qn_parts *parts, qn__part_heads *out, qn_error *err);
void qn__part_heads_release(const qn_parts *parts, qn__part_heads *heads);

/* Says in `where` which part is meant. */
void qn__part_heads_at(const qn_parts *parts, uint32_t rank, qn_error *err);

/* Which parts have to be read again before they are one table. */
typedef struct qn__parts_again {
    int any;     /* 1: some part has to */
    int real;    /* 1: this one, whose labels are whole and those of others are not */
    int colours; /* 1: this one, whose images are grey and those of others are not */
} qn__parts_again;

/* Finds grey images beside those with colours. */
void qn__parts_colours(const qn_parts *parts, const qn__part_heads *heads, qn__parts_again *out);

/* Whether a part has its columns in another order than the first one. Numbers of columns without
 * names are in order, too: such parts may have it for nothing. */
int qn__parts_disordered(const qn_parts *parts, const qn__part_heads *heads);

/* Gives the columns of parts->own the order of the first part, where they have the same names. The
 * heads must be gathered again then. Fails with QN_MEMORY. */
qn_status qn__parts_reorder(qn_parts *parts, const qn__part_heads *heads,
                            const qn_data_options *options, qn_error *err);

/* Makes the values of parts->own this rank's, to be written to: those of a caller are copied. */
qn_status qn__parts_own_values(qn_parts *parts, const qn_data_options *options, qn_error *err);

/* The type, the shape and all columns of the whole, in parts->own too. Fails with QN_MISMATCH,
 * QN_UNSUPPORTED or QN_MEMORY. */
qn_status qn__parts_columns(qn_parts *parts, const qn__part_heads *heads,
                            const qn_data_options *options, qn_error *err);

/* The labels of the whole, in parts->own too, and parts->in_class. Nothing is changed where parts
 * have to be read again. Fails as above. */
qn_status qn__parts_labels(qn_parts *parts, const qn__part_heads *heads,
                           const qn_data_options *options, qn__parts_again *again, qn_error *err);

#endif
