/* The columns of a data set as a typed file has them: the label, the features, the weights. The
 * writers of typed formats take them from here. A new type of values is a row of qn__written_type
 * and a case in write_columns.c and in each writer. */
#ifndef QN_DATA_WRITE_WRITE_COLUMNS_H
#define QN_DATA_WRITE_WRITE_COLUMNS_H

#include "base/files/file.h"
#include "data/table/data.h"

typedef enum qn__written_type {
    QN__WRITTEN_U8,     /* uint8_t */
    QN__WRITTEN_I32,    /* int32_t */
    QN__WRITTEN_I64,    /* int64_t */
    QN__WRITTEN_F32,    /* float */
    QN__WRITTEN_F64,    /* double */
    QN__WRITTEN_TEXT,   /* uint32_t: the number of a text of the column */
    QN__WRITTEN_DAY,    /* int32_t: days since 1970-01-01 */
    QN__WRITTEN_MOMENT, /* int64_t: microseconds since 1970-01-01 */
    QN__WRITTEN_TYPES
} qn__written_type;

/* Bytes of a value of each type. */
extern const uint32_t qn__written_width[QN__WRITTEN_TYPES];

typedef enum qn__written_use {
    QN__WRITTEN_LABEL,
    QN__WRITTEN_FEATURE,
    QN__WRITTEN_WEIGHT
} qn__written_use;

typedef struct qn__written_column {
    const qn_data *data;
    qn__written_use use;
    uint32_t feature; /* of a FEATURE; of a LABEL its number among several */
    const char *name;
    char made[32]; /* the name, where the column has none of its own */
    qn__written_type type;
    uint32_t texts; /* of TEXT: how many */
    uint32_t kept;  /* of F64: 1 + its column of doubles, where it is not wide (kept.h) */
    int zone;       /* of MOMENT: 1: they are in UTC */
    int whole;      /* of F32: 1: its numbers are whole */
} qn__written_column;

typedef struct qn__written_columns {
    qn__written_column *column;
    uint32_t count;
    uint64_t rows;  /* of the data set */
    uint64_t group; /* rows that are written together, so that a reader needs little memory */
} qn__written_columns;

/* Writes a file of the columns. */
typedef qn_status qn__columns_writer(const qn__written_columns *columns, const char *path,
                                     qn__writer_batch *batch, qn_error *err);

/* Makes the columns of a data set and passes them to `write`. Fails as `write` does, or with
 * QN_MEMORY. */
qn_status qn__written_columns_give(const qn_data *data, qn__columns_writer *write, const char *path,
                                   qn__writer_batch *batch, qn_error *err);

/* Whether a feature has whole numbers alone, as 32-bit floats, up to `most` in magnitude, and,
 * where `signless`, none that is -0. */
int qn__written_whole(const qn_data *data, uint32_t k, float most, int signless);

/* A 32-bit float as text. `whole`: of a feature of whole numbers up to QN__WRITTEN_MOST. A text
 * needs all digits of these: a reader would take 2147483600 for an integer that float32 cannot
 * hold. */
#define QN__WRITTEN_MOST 0x1.fffffep62f /* below 2^63 */
void qn__written_float(float value, int whole, char text[40]);

/* Text `number` of a column of TEXT. */
const char *qn__written_text(const qn__written_column *column, uint32_t number);

/* Writes the values of `count` items from `first` on to `values`, and 0 for missing ones, whose
 * bits in `valid` become 0, all others 1, with zeros after them. Returns how many are missing.
 * `valid` has count / 8 + 1 bytes. */
uint64_t qn__written_fill(const qn__written_column *column, uint64_t first, uint64_t count,
                          void *values, uint8_t *valid);

#endif
