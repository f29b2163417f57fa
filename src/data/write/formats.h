/* The writers of qn_data_write: a row for each format, in the file that writes it. It is called
 * with data that the format can hold (write_format.c); views are written with their own items. They
 * fail as qn_data_write_csv does. */
#ifndef QN_DATA_WRITE_FORMATS_H
#define QN_DATA_WRITE_FORMATS_H

#include "base/files/file.h"
#include "data/cells/cell.h"
#include "data/table/data.h"
#include "data/write/write_columns.h"

typedef struct qn__format {
    const char *name, *shown; /* as users give it; as messages call it */
    const char *about;        /* what it holds, for a help text */
    const char *endings[4];
    int labels_apart; /* 1: labels are a second file */
    int classes;      /* 1: labels are classes, not real numbers */
    int categories, weights;
    int tokens;         /* 1: it holds numbers of tokens */
    int several, masks; /* 1: it holds several labels of an item; a class of each pixel */
    int typed;          /* 1: its columns have names and types of their own */
    int texts;  /* 1: it holds texts of numbers, so that names of classes may be taken for them */
    int counts; /* 1: labels mean what numbers and texts of a CSV file mean */
    /* Fails for data that the format cannot hold, beyond what the members above say. NULL: there is
     * no such data. */
    qn_status (*check)(const qn_data *data, qn_error *err);
    /* `batch` puts the files in place; NULL: at once. `labels_path`: NULL, or the second file. */
    qn_status (*write)(const qn_data *data, const char *path, const char *labels_path,
                       qn__writer_batch *batch, qn_error *err);
    qn__columns_writer *columns; /* in place of `write`, of a typed format */
} qn__format;

/* All formats; the last is NULL. */
extern const qn__format *const qn__formats[];

/* NULL: there is no such format, or `name` is NULL. */
const qn__format *qn__format_named(const char *name);

/* What a cell with this text holds. */
qn__content qn__text_content(const char *text);

/* 1 when a text of these values would be read as one of bytes, although the type is QN_F32: a value
 * must then be written with a point. */
int qn__looks_like_bytes(const qn_data *data);

/* Fails with QN_UNSUPPORTED where an item has several labels, or a mask, which the format does not
 * hold. */
qn_status qn__written_labels_check(const qn__format *format, const qn_data *data, qn_error *err);

/* Fails with QN_INPUT where the values are tokens, which the format does not hold. */
qn_status qn__written_tokens_check(const qn__format *format, const qn_data *data, qn_error *err);

/* Columns of labels: 0, 1 or several. */
uint32_t qn__written_labels(const qn_data *data);

/* The name of column `k` of them. `made` has space for one, where the data has none. */
enum { QN__LABEL_NAME = 32 };
const char *qn__written_label_name(const qn_data *data, uint32_t k, char made[QN__LABEL_NAME]);

/* How many texts label `k` of several has, 0 to 2, and text 0 or 1 of it. */
uint32_t qn__written_label_texts(const qn_data *data, uint32_t k);
const char *qn__written_label_text(const qn_data *data, uint32_t k, uint32_t value);

/* Fails with QN_USAGE when both paths name one file. */
qn_status qn__paths_apart(const char *path, const char *labels_path, qn_error *err);

#endif
