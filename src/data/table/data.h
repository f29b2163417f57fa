/* The internal view of a data set.
 *
 * A qn_data is a table or a view. A table owns the values and labels, or they are inside a
 * snapshot. A view has some items of a table (made by qn__data_split): it owns an index
 * list and its labels, and needs the table alive. Neither changes after it was made, so any number
 * of threads may read it. qn__data_item and qn_data_labels work for both. */
#ifndef QN_DATA_TABLE_DATA_H
#define QN_DATA_TABLE_DATA_H

#include "base/error.h"
#include "base/margin.h"
#include "base/system/threads.h"
#include "data/table/dates.h"
#include "data/table/item_names.h"
#include "data/table/schema.h"
#include "data/table/several.h"
#include "data/table/text_list.h"
#include "data/table/text_words.h"
#include "data/table/token_names.h"
#include "image/resize.h"
#include "num/element.h"
#include <quern/data.h>
#include <stddef.h>
#include <stdint.h>

/* Items are numbered with 48 bits in the exactness contract (section 4.3). */
#define QN__ITEMS_MAX ((uint64_t)1 << 48)

/* Labels that are probably not what was meant (data/cells/labels.h). */
typedef enum qn__doubt {
    QN__DOUBT_NONE,
    QN__DOUBT_MANY, /* many whole numbers, and no option says that they are classes */
    QN__DOUBT_ID,   /* many items, each with a label of its own */
    QN__DOUBT_FEW,  /* whole numbers, each in few items, and no option says that they are classes */
    QN__DOUBT_COMMA /* texts that may be numbers with a decimal comma */
} qn__doubt;

/* A digest of a table, computed when it is asked for. */
typedef struct qn__late_digest qn__late_digest;

/* An item is a window of a text (docs/exactness.md 25.69): of which, and of what number there. */
typedef struct qn__text_window {
    uint64_t text, number;
} qn__text_window;

struct qn_data {
    qn_data_type type; /* a row of num/element.h */
    uint64_t items;
    uint32_t features;
    uint32_t context; /* of a corpus: values from one item to the next, features - 1, so that items
                         share one; else 0 */
    uint32_t classes; /* largest label + 1, 0 without labels */
    uint32_t channels, rows, columns; /* of an image, `[channel][row][column]`; else all are 0 */
    qn__resize resize;                /* how images were made equal; all 0: they were not */
    const char *format;               /* a constant text */
    char digest[65];                  /* of the whole table, in a view too; unless `late` */
    qn__late_digest *late;        /* has the digest when it is asked for; NULL: `digest` is it. A
                                     view has its table's */
    const uint8_t *values;        /* items x features elements; a view points into its table */
    const uint8_t *values_digest; /* D(values) of docs/exactness.md 2.2, 32 bytes beside the
                                     values, where a reader knows it; else NULL */
    int32_t *labels;              /* one for each item, or NULL; from qn__alloc */
    float *targets;               /* real labels, one for each item, or NULL; from qn__alloc */
    qn__several *several; /* targets of items that have several each; NULL: they have not. A view
                             has its table's */
    qn__label_columns *label_columns; /* features that become labels; NULL: none, or they are */
    float *weights;     /* of each item, finite, from +0, or NULL: all count alike; qn__alloc */
    char *weight_name;  /* of the column of weights; NULL: it has none. A view's is its table's */
    qn__schema *schema; /* NULL: schema.h says what then holds. A view has its table's */
    int missing;        /* 1: a value may be missing, a NaN; 0: none is */
    qn__doubt doubt;    /* whether the labels are what was meant; a view's is its table's */
    uint64_t label_values; /* different labels in the table, where they were counted; else 0 */
    uint32_t rules;        /* of reading, those that changed something: data/table/rules.h */
    uint32_t comma;        /* 1 + a column that may hold numbers with a decimal comma; 0: none */
    char date_format[QN__DATE_FORMAT]; /* of its dates, where a caller said it; else "" */
    char *tokenizer;                   /* its text, or NULL; a view has its table's */
    char tokens[QN__TOKENS_TEXT];      /* how they were made, as qn_data_tokens; else "" */
    char *note;              /* what a reader decided in doubt, for people; NULL: nothing */
    qn__item_names *names;   /* of files; NULL: items have none. A view has its table's */
    qn__text_words *words;   /* of texts whose words have tags; NULL: not of them. The same */
    qn__text_window *window; /* of texts of next tokens, some of which have several items; NULL:
                           each has one. The same */
    struct qn__wide *wide;   /* exact values of some columns (wide.h); NULL: none. A view has its
                                table's */
    struct qn__kept *kept;   /* columns of doubles, for writers alone (kept.h); the same */
    uint64_t *index;         /* view: the table's row of each item; table: NULL */
    qn__text_list *listed; /* has the texts of one column, which are no categories then; NULL: none.
                              Of a table alone */
    const struct qn__table_space *buffer; /* while it is read: table_space.h; else NULL */
    struct qn__part_reading *part;        /* while it is read: part_reading.h; NULL: it is all */
    /* The file in which the values lie, where memory may not hold them; else NULL. A view's is its
     * table's. */
    const struct qn__mapped_file *in_file;
    /* Gives rows whose values lie on other ranks (remote_rows.h); NULL: none do. As `in_file`. */
    const struct qn__remote_rows *remote;
    int mapped;   /* the values and labels belong to someone else (data_snapshot.h) */
    void *memory; /* the memory of the values, or NULL in a view and if they are mapped */
    void (*release)(void *memory);
};

static inline qn__target qn__data_target(const qn_data *data) {
    if (data->several)
        return QN__TARGET_SEVERAL;
    if (data->targets)
        return QN__TARGET_REAL;
    if (!data->labels)
        return QN__TARGET_NONE;
    return data->schema && data->schema->target == QN__TARGET_CLASS ? QN__TARGET_CLASS
                                                                    : QN__TARGET_INDEX;
}

/* Whether its items have labels, of any kind. */
static inline int qn__data_labelled(const qn_data *data) {
    return data->labels || data->targets || data->several;
}

/* Windows of a text begin so many tokens apart. */
static inline uint64_t qn__window_step(uint32_t features) { return features / 2; }

static inline qn__text_window qn__data_window(const qn_data *data, uint64_t item) {
    return data->window ? data->window[data->index ? data->index[item] : item]
                        : (qn__text_window){item, 0};
}

/* The number of texts; of items, where each is one. */
static inline uint64_t qn__data_texts(const qn_data *data) {
    return data->items > 0 ? qn__data_window(data, data->items - 1).text + 1 : 0;
}

/* The first token of an item that counts as a target: an earlier window has those before it. */
static inline uint32_t qn__data_first_target(const qn_data *data, uint64_t item) {
    return qn__data_window(data, item).number > 0
               ? data->features - (uint32_t)qn__window_step(data->features)
               : 1;
}

/* Bytes of one item. */
static inline size_t qn__data_stride(const qn_data *data) {
    return qn__element_stride(data->type, data->features);
}

/* Bytes from one item to the next. */
static inline size_t qn__data_step(const qn_data *data) {
    return data->context ? (size_t)data->context * qn__element_of(data->type)->size
                         : qn__data_stride(data);
}

/* Bytes of the values of `rows` > 0 items of a table. */
static inline size_t qn__data_bytes_of(const qn_data *data, uint64_t rows) {
    return (size_t)(rows - 1) * qn__data_step(data) + qn__data_stride(data);
}

/* The values of item i < items: `features` elements. */
static inline const void *qn__data_item(const qn_data *data, uint64_t i) {
    return data->values + (size_t)(data->index ? data->index[i] : i) * qn__data_step(data);
}

/* The first item of this row or a later one, or `items`: items are in the order of their rows. */
static inline uint64_t qn__data_item_from(const qn_data *data, uint64_t row) {
    uint64_t low = 0, high = data->items;
    if (!data->index)
        return row < high ? row : high;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (data->index[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Value `feature` of item i as a number. */
static inline double qn__data_number(const qn_data *data, uint64_t i, size_t feature) {
    return qn__element_number(data->type, qn__data_item(data, i), feature);
}

/* Completes a table whose other fields are set: classes from the labels, then the digest, with the
 * threads of `pool` (NULL: all cores for a large table, else the caller's alone). */
void qn__data_finish(qn_data *data, qn__pool *pool);

/* The same for values in memory that only this library can change: the digest is computed when it
 * is asked for. Statistics do not need it, and it takes longer than they do for few columns. On
 * failure the caller still owns `data`. */
qn_status qn__data_finish_later(qn_data *data, qn_error *err);

/* Adds a sentence for people to data->note, after those that are there. Fails with QN_MEMORY. */
qn_status qn__data_add_note(qn_data *data, const char *line, qn_error *err);

/* Checks type, sizes and labels of a caller's arrays, as qn_data_from_arrays. `labels` may be NULL.
 */
qn_status qn__data_check_arrays(qn_data_type type, uint64_t items, uint32_t features,
                                const void *values, const int32_t *labels, qn_error *err);

/* Checks that weights are finite, none below 0 and one of them above; -0 becomes +0. Fails with
 * QN_INPUT; `where` is then `place`, which may be "", and the item (from 0) that is wrong. */
qn_status qn__data_check_weights(float *weights, uint64_t items, const char *place, qn_error *err);

/* Checks the values as their type demands: floats are finite. Unless `missing` is NULL, they may be
 * NaN too, and *missing becomes 1 when one is, else 0. */
qn_status qn__data_check_values(qn_data_type type, uint64_t items, uint32_t features,
                                const void *values, int *missing, qn_error *err);

/* As qn_data_lend, with values from qn__alloc that belong to the data set from then on. After a
 * failure they are still the caller's. */
qn_status qn__data_take(const qn_data_arrays *arrays, qn_data **out, qn_error *err);

/* D(values) of docs/exactness.md 2.2: of all values of a table. */
void qn__data_values_digest(const qn_data *table, qn__pool *pool, uint8_t digest[32]);

/* Bytes that D of 2.2 hashes at once. */
#define QN__DIGEST_BLOCK ((size_t)1 << 20)

/* SHA-256 of one block of numbers of `width` bytes, as little-endian ones. */
void qn__digest_block(const void *bytes, size_t size, int width, uint8_t digest[32]);

/* The same of items of `item` bytes, of which each begins `step` bytes after the one before: of
 * `size` bytes from `at` on, as if they followed one another. */
void qn__digest_items(const void *items, size_t item, size_t step, size_t at, size_t size,
                      int width, uint8_t digest[32]);

/* D of the values, the labels or targets, and the weights, of those that the table has. */
typedef struct qn__data_digests {
    uint8_t values[32], labels[32], weights[32];
    uint8_t several[32]; /* of several targets an item */
} qn__data_digests;

/* The digest of a table of `items` items that has these; all else is that of `data`. */
void qn__data_digest_join(const qn_data *data, uint64_t items, const qn__data_digests *digests,
                          qn__pool *pool, char text[65]);

/* The digest of docs/exactness.md 2.2 as 64 hexadecimal digits and a NUL. Takes D(values) from
 * data->values_digest where that is known. `pool` may be NULL. */
void qn__data_digest(const qn_data *data, qn__pool *pool, char text[65]);

/* The same with threads of its own, where the table is large. */
void qn__data_digest_now(const qn_data *data, char text[65]);

/* `table` lives as long as the digest. */
qn_status qn__late_digest_create(const qn_data *table, qn__late_digest **out, qn_error *err);
/* Accepts NULL. */
void qn__late_digest_free(qn__late_digest *late);
/* Any threads may ask. The text lives as long as `late`. */
const char *qn__late_digest_text(qn__late_digest *late);

/* Checks, after the values of a table were used, that the file that contains them has not changed:
 * fails with QN_IO if it was written to meanwhile. Reads the file only if its time changed. */
qn_status qn__data_check_file(const qn_data *table, qn_error *err);

/* A view of the `count` items whose bit in `marks` is `mark`, in ascending order; `all` must
 * outlive it. NULL if out of memory. */
qn_data *qn__data_view(const qn_data *all, const uint64_t *marks, uint64_t mark, uint64_t count,
                       qn_error *err);

/* Splits the items into training and validation sets (docs/exactness.md 2.3): two views of `all`,
 * which must outlive them; each is closed with qn_data_close. Both keep the ascending order of the
 * items. Fails with QN_USAGE if the fraction is not inside (0, 1) or leaves a set without items. */
qn_status qn__data_split(const qn_data *all, float fraction, uint64_t seed, qn_data **train,
                         qn_data **valid, qn_error *err);

#endif
