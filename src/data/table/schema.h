/* What the columns of a table mean: their names, the categories of columns of text, the classes.
 *
 * The values of a table are always a matrix of numbers (data.h):
 *
 *   a column of numbers      the numbers; a missing value is a NaN with the bits 0x7fc00000
 *   a column of categories   the index of the category in `category`; missing: the same NaN
 *   a column of dates        the days since 1970-01-01 (dates.h); missing: the same NaN
 *   a column of texts        as one of categories: the different texts are its categories
 *
 * A table may have no schema (NULL), as that of an IDX file: then its columns are numbers without
 * names, and its labels are class numbers from 0. Values may be missing with and without one.
 *
 * All texts are UTF-8. A schema never changes once it was made; each is owned by one table, one
 * recipe or one model, and copied for another. */
#ifndef QN_DATA_TABLE_SCHEMA_H
#define QN_DATA_TABLE_SCHEMA_H

#include "base/error.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "data/table/depot.h"
#include "data/table/grams.h"
#include <stdint.h>

/* What a table keeps of a column of numbers beside its floats (wide.h), or a model knows of it. */
typedef enum qn__exact {
    QN__EXACT_NONE,  /* nothing: float32 holds its values, or it holds categories */
    QN__EXACT_WHOLE, /* 64-bit integers */
    QN__EXACT_REAL,  /* binary64 */
    QN__EXACT_MOMENT /* dates with times: microseconds since 1970, as 64-bit integers; its floats
                        are days. A recipe has no column of this kind */
} qn__exact;

/* A column of features. */
typedef struct qn__feature {
    char *name;          /* in the header; NULL: it has none */
    uint32_t categories; /* 0: a column of numbers */
    char **category;     /* ascending bytewise, without duplicates; NULL: numbers */
    qn__depot *texts;    /* that owns the texts of `category`; NULL: each is a block */
    uint32_t dates;      /* of dates: the parts that a network gets (date_parts.h); 0: not dates */
    int time, zone; /* time 1: its dates have times; zone 1: these are in UTC. Set in tables only:
                       recipes do not have them */
    int bytes;      /* 1: all its values are whole numbers from 0 to 255, although the table is of
                       floats. Set in tables only: recipes do not have it */
    qn__exact exact;
    /* Of texts, whose words a network gets (data/cells/ngrams.h): how many of `grams` it has; else
     * 0. In a recipe such a column has no categories. */
    uint32_t text;
    qn__grams grams[QN__GRAM_KINDS];
    int said; /* 1: of a table: somebody has said whether the column holds texts */
} qn__feature;

typedef enum qn__target {
    QN__TARGET_NONE,   /* no labels */
    QN__TARGET_INDEX,  /* labels are class numbers, as written: qn_data.labels */
    QN__TARGET_CLASS,  /* labels are indices into class_name: qn_data.labels */
    QN__TARGET_REAL,   /* labels are real numbers: qn_data.targets */
    QN__TARGET_SEVERAL /* an item has several targets: qn_data.several */
} qn__target;

typedef struct qn__schema {
    uint32_t features;
    qn__feature *feature;
    char *label; /* the label column's name, SEVERAL: a list of them (qn_model_label_name); NULL: it
                    has none, or the table has no labels */
    qn__target target;
    uint32_t classes;   /* QN__TARGET_CLASS: how many; SEVERAL: labels with names; else 0 */
    char **class_name;  /* numbers ascending by value, then texts ascending bytewise. SEVERAL: the
                           labels' names, in their order */
    char **label_value; /* SEVERAL, 2 x classes: the texts that are 0 and 1 in the column of each
                           label, NULL where it has numbers. NULL: all have numbers */
} qn__schema;

/* A schema of `features` unnamed columns of numbers without labels; released with
 * qn__schema_free. NULL when memory is short (err says so). */
qn__schema *qn__schema_create(uint32_t features, qn_error *err);

/* Frees what a column has. */
void qn__feature_release(qn__feature *feature);
void qn__feature_drop_categories(qn__feature *feature);

/* A deep copy; NULL for NULL and when memory is short. */
qn__schema *qn__schema_copy(const qn__schema *schema, qn_error *err);

/* A schema of `features` columns with the label and the classes of `labels` (NULL: class numbers):
 * its column k is column[k] of `columns`, or its k-th where `column` is NULL; numbers without names
 * where `columns` is NULL. NULL if out of memory. */
qn__schema *qn__schema_join(const qn__schema *labels, const qn__schema *columns,
                            const uint32_t *column, uint32_t features, qn_error *err);

/* Frees the names of the classes: there are 0. */
void qn__schema_drop_classes(qn__schema *schema);

void qn__schema_free(qn__schema *schema); /* accepts NULL */

/* 1 when a model need not store the schema: it is NULL, or it has only narrow columns of numbers,
 * class numbers or no labels, and no names but those that Quern itself writes: "label", and "f0",
 * "f1" or "r0c0", "r0c1" and so on. So the model of such a table is that of the same numbers in
 * another format. */
int qn__schema_is_trivial(const qn__schema *schema);

/* Inputs of a network for a column: one for a number, one for each category, those of the parts of
 * a date, those of the words of texts. */
uint32_t qn__feature_inputs(const qn__feature *feature);

/* Columns of texts, and their inputs; 0 for NULL. */
uint32_t qn__schema_texts(const qn__schema *schema);
uint64_t qn__schema_text_inputs(const qn__schema *schema);

/* The first place at which two schemas differ, for a message: "column 3 "age"" and "column 3
 * "height"". 0, and both texts empty, when they do not. Either may be NULL. */
int qn__schema_difference(const qn__schema *one, const qn__schema *other, char a[128], char b[128]);

/* Appends the schema as one JSON object, byte for byte as docs/exactness.md says; "null" for NULL.
 */
void qn__schema_add_json(const qn__schema *schema, qn__text *text);

/* Reads what qn__schema_add_json writes; *out is NULL for null. Fails with QN_FORMAT (a key is
 * missing or unknown, categories are not ascending) or QN_MEMORY. */
qn_status qn__schema_from_json(const qn__json_node *node, qn__schema **out, qn_error *err);

/* `column "age"`, or `feature 3` (from 1) for a column without a name. `text` has `size` bytes. */
const char *qn__column_name(const qn__schema *table, uint32_t column, char *text, size_t size);

#endif
