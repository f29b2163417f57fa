/* Writing data sets: IDX for bytes, CSV for all types. */
#include "base/argument.h"
#include "base/files/place.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "data/table/kept.h"
#include "data/write/formats.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void put_word(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Type 8, then the dimensions: items x rows x columns for images, with the channels before the rows
 * where there are several; items x features for tables; items for labels (features == 0). */
static size_t idx_header(const qn_data *data, int labels, uint8_t header[20]) {
    uint32_t sizes[4] = {(uint32_t)data->items, data->features};
    uint32_t dimensions = labels ? 1 : 2;
    if (!labels && data->rows) {
        dimensions = 1;
        if (data->channels > 1)
            sizes[dimensions++] = data->channels;
        sizes[dimensions++] = data->rows;
        sizes[dimensions++] = data->columns;
    }
    put_word(header, 0x0800 | dimensions);
    for (uint32_t i = 0; i < dimensions; i++)
        put_word(header + 4 + 4 * (size_t)i, sizes[i]);
    return 4 + 4 * (size_t)dimensions;
}

extern const qn__format qn__idx_format; /* below */

static qn_status check_idx(const qn_data *data, const char *labels_path, qn_error *err) {
    if (qn__written_tokens_check(&qn__idx_format, data, err) != QN_OK)
        return QN_INPUT;
    if (data->type != QN_U8) {
        qn__fail(err, QN_INPUT, "IDX is written for bytes, and this data is float32");
        return qn__remedy(err, QN_INPUT, "write it as CSV");
    }
    if (data->items > UINT32_MAX) {
        qn__fail(err, QN_INPUT, "IDX holds at most 2^32 - 1 items, there are %llu",
                 (unsigned long long)data->items);
        return qn__remedy(err, QN_INPUT, "write several files");
    }
    if (!labels_path)
        return QN_OK;
    if (!data->labels) {
        qn__fail(err, QN_INPUT, "there are no labels to write");
        return qn__remedy(err, QN_INPUT, "leave out `data.labels_path`");
    }
    if (data->classes > 256) {
        qn__fail(err, QN_INPUT, "labels in IDX are bytes, and the greatest label is %u",
                 (unsigned)(data->classes - 1));
        return qn__remedy(err, QN_INPUT, "write the data as CSV, which holds its labels");
    }
    return QN_OK;
}

/* All items, rows of a view one by one. */
static qn_status add_values(const qn_data *data, qn__writer *writer, qn_error *err) {
    size_t stride = qn__data_stride(data);
    if (!data->index)
        return qn__writer_add(writer, data->values, (size_t)data->items * stride, err);
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < data->items && status == QN_OK; i++)
        status = qn__writer_add(writer, qn__data_item(data, i), stride, err);
    return status;
}

static qn_status add_labels(const qn_data *data, qn__writer *writer, qn_error *err) {
    uint8_t piece[4096];
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < data->items && status == QN_OK;) {
        size_t size = 0;
        while (size < sizeof piece && i < data->items)
            piece[size++] = (uint8_t)data->labels[i++];
        status = qn__writer_add(writer, piece, size, err);
    }
    return status;
}

/* Writes one IDX file without the commit. */
static qn_status build_idx(const qn_data *data, const char *path, int labels, qn__writer **out,
                           qn_error *err) {
    uint8_t header[20];
    qn_status status = qn__writer_create(path, out, err);
    if (status != QN_OK)
        return status;
    status = qn__writer_add(*out, header, idx_header(data, labels, header), err);
    if (status == QN_OK)
        status = labels ? add_labels(data, *out, err) : add_values(data, *out, err);
    return status;
}

/* The labels would replace the values. */
qn_status qn__paths_apart(const char *path, const char *labels_path, qn_error *err) {
    qn__place images, labels;
    qn__place_of(path, &images);
    qn__place_of(labels_path, &labels);
    if (!qn__place_same(&images, &labels) || S_ISCHR(images.mode))
        return QN_OK;
    qn__fail(err, QN_USAGE, "values and labels cannot go to one file");
    qn__at(err, "%s", labels_path);
    return qn__remedy(err, QN_USAGE, "name two files");
}

static qn_status write_idx(const qn_data *data, const char *images_path, const char *labels_path,
                           qn__writer_batch *batch, qn_error *err) {
    qn__writer *images = NULL, *labels = NULL;
    qn_status status = check_idx(data, labels_path, err);
    if (status == QN_OK && labels_path)
        status = qn__paths_apart(images_path, labels_path, err);
    if (status == QN_OK)
        status = build_idx(data, images_path, 0, &images, err);
    if (status == QN_OK && labels_path)
        status = build_idx(data, labels_path, 1, &labels, err);
    /* Both are complete before the first is renamed. */
    status = qn__writer_finish(images, batch, status, err);
    return labels ? qn__writer_finish(labels, batch, status, err) : status;
}

qn_status qn_data_write_idx(const qn_data *data, const char *images_path, const char *labels_path,
                            qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(images_path, err);
    return write_idx(data, images_path, labels_path, NULL, err);
}

/* ------------------------------------------------------------------ CSV */

int qn__looks_like_bytes(const qn_data *data) {
    for (uint32_t k = 0; k < data->features; k++)
        if (qn_data_categories(data, k) > 0 || qn_data_dates(data, k, NULL, 0) != QN_DATE_NONE)
            return 0;
    for (uint64_t i = 0; i < data->items && data->type == QN_F32; i++) {
        const float *value = qn__data_item(data, i);
        for (uint32_t k = 0; k < data->features; k++)
            if (!(value[k] >= 0.0f && value[k] <= 255.0f) || value[k] != floorf(value[k]) ||
                signbit(value[k]))
                return 0;
    }
    return data->type == QN_F32;
}

enum { EXACT_TEXT = 32 };

/* Text for the file, written in pieces. */
typedef struct lines {
    qn__writer *writer;
    int pointed;    /* the next number is written with a point, so that the type stays */
    uint8_t *whole; /* of each feature: 1: its numbers are whole */
    size_t size;
    char text[65536];
} lines;

static qn_status flush(lines *out, qn_error *err) {
    size_t size = out->size;
    out->size = 0;
    return qn__writer_add(out->writer, out->text, size, err);
}

/* Makes space for a cell of at most 48 bytes. */
static qn_status reserve(lines *out, qn_error *err) {
    return out->size + 48 > sizeof out->text ? flush(out, err) : QN_OK;
}

/* A text of any length as a cell, in quotes where it would not be read as it is. A file that begins
 * with a byte order mark is read without it. */
static qn_status add_text(lines *out, const char *text, qn_error *err) {
    const size_t size = strlen(text);
    const int plain = size > 0 && text[strcspn(text, ",;\t\"\r\n#")] == '\0' && text[0] != ' ' &&
                      text[size - 1] != ' ' && strncmp(text, "\xef\xbb\xbf", 3) != 0;
    qn_status status = reserve(out, err);
    if (!plain)
        out->text[out->size++] = '"';
    for (const char *at = text; *at && status == QN_OK; at++) {
        if (*at == '"')
            out->text[out->size++] = '"';
        out->text[out->size++] = *at;
        status = reserve(out, err);
    }
    if (!plain)
        out->text[out->size++] = '"';
    return status == QN_OK ? reserve(out, err) : status;
}

/* The name of a column of features: its own, or "f0", or "r0c0" for images. */
static qn_status add_name(const qn_data *data, uint32_t i, lines *out, qn_error *err) {
    const char *name = qn_data_feature_name(data, i);
    char *to = out->text + out->size;
    if (name)
        return add_text(out, name, err);
    out->size +=
        (size_t)(data->channels == 1 ? sprintf(to, "r%uc%u", i / data->columns, i % data->columns)
                                     : sprintf(to, "f%u", i));
    return reserve(out, err);
}

/* "label,f0,f1,..." or, for images, "label,r0c0,r0c1,...", or names that are known; weights stand
 * last, so that the label is the first column when the file is read. */
static qn_status add_names(const qn_data *data, lines *out, qn_error *err) {
    const uint32_t labels = qn__written_labels(data);
    char made[QN__LABEL_NAME];
    qn_status status = QN_OK;
    for (uint32_t k = 0; k < labels && status == QN_OK; k++) {
        if (k > 0)
            out->text[out->size++] = ',';
        status = add_text(out, qn__written_label_name(data, k, made), err);
    }
    for (uint32_t i = 0; i < data->features && status == QN_OK; i++) {
        if (i > 0 || labels > 0)
            out->text[out->size++] = ',';
        status = add_name(data, i, out, err);
    }
    if (!data->weights || status != QN_OK)
        return status;
    out->text[out->size++] = ',';
    return add_text(out, data->weight_name ? data->weight_name : "weight", err);
}

static char *put_number(char *to, uint32_t value) {
    char digits[10];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count)
        *to++ = digits[--count];
    return to;
}

static qn_status add_label(const qn_data *data, uint64_t item, lines *out, qn_error *err) {
    char *to = out->text + out->size;
    if (data->targets) {
        qn__float_plain(data->targets[item], to);
        out->size += strlen(to);
        return QN_OK;
    }
    const uint32_t label = (uint32_t)data->labels[item];
    if (qn_data_class_name(data, label))
        return add_text(out, qn_data_class_name(data, label), err);
    out->size = (size_t)(put_number(to, label) - out->text);
    return QN_OK;
}

/* Each of several labels in its cell, which is empty where it does not count. */
static qn_status add_labels_of(const qn_data *data, uint64_t item, lines *out, qn_error *err) {
    const uint8_t *target = qn__several_of(data, item);
    qn_status status = QN_OK;
    for (uint32_t k = 0; k < data->several->each && status == QN_OK; k++) {
        if (k > 0)
            out->text[out->size++] = ',';
        if (target[k] != QN__NO_TARGET && qn__written_label_texts(data, k) > 0)
            status = add_text(out, qn__written_label_text(data, k, target[k]), err);
        else if (target[k] != QN__NO_TARGET)
            out->text[out->size++] = (char)('0' + target[k]);
        if (status == QN_OK)
            status = reserve(out, err);
    }
    return status;
}

static int is_wide(const qn_data *data, uint32_t k) {
    return data->wide && data->schema->feature[k].exact != QN__EXACT_NONE;
}

/* Doubles are written without a point where they are whole. */
static void add_double(const qn_data *data, uint64_t item, uint32_t k, int pointed, char *to) {
    qn_data_exact(data, item, k, to, EXACT_TEXT);
    if (pointed && !strpbrk(to, ".e"))
        strcat(to, ".0");
}

/* A missing value is an empty cell; alone in its line, in quotes. */
static qn_status add_float(const qn_data *data, uint64_t item, uint32_t k, float value, lines *out,
                           qn_error *err) {
    const uint32_t categories = qn_data_categories(data, k);
    if (value != value)
        return data->features == 1 && !qn__data_labelled(data) && !data->weights
                   ? add_text(out, "", err)
                   : QN_OK;
    if (categories)
        return add_text(out, qn_data_category(data, k, (uint32_t)value), err);
    char *to = out->text + out->size;
    if (qn_data_dates(data, k, NULL, 0) != QN_DATE_NONE)
        qn_data_date(data, item, k, to, QN__MOMENT_TEXT);
    else if (is_wide(data, k))
        qn_data_exact(data, item, k, to, EXACT_TEXT);
    else if (data->kept && qn__kept_column(data, k))
        add_double(data, item, k, out->pointed, to);
    else if (out->pointed)
        sprintf(to, "%d.0", (int)value);
    else
        qn__written_float(value, out->whole[k], to);
    out->pointed = 0;
    out->size += strlen(to);
    return QN_OK;
}

static qn_status add_row(const qn_data *data, uint64_t item, lines *out, qn_error *err) {
    const uint8_t *bytes = qn__data_item(data, item);
    const float *floats = qn__data_item(data, item);
    const int labelled = qn__data_labelled(data);
    qn_status status = data->several ? add_labels_of(data, item, out, err)
                       : labelled    ? add_label(data, item, out, err)
                                     : QN_OK;
    for (uint32_t i = 0; i < data->features && status == QN_OK; i++) {
        status = reserve(out, err);
        if (i > 0 || labelled)
            out->text[out->size++] = ',';
        if (status == QN_OK && data->type == QN_U8)
            out->size = (size_t)(put_number(out->text + out->size, bytes[i]) - out->text);
        else if (status == QN_OK)
            status = add_float(data, item, i, floats[i], out, err);
    }
    if (data->weights && status == QN_OK)
        status = reserve(out, err);
    if (!data->weights || status != QN_OK)
        return status;
    out->text[out->size++] = ',';
    qn__float_plain(data->weights[item], out->text + out->size);
    out->size += strlen(out->text + out->size);
    return QN_OK;
}

static qn_status end_line(lines *out, qn_error *err) {
    out->text[out->size++] = '\n';
    return reserve(out, err);
}

static qn_status add_table(const qn_data *data, lines *out, qn_error *err) {
    qn_status status = add_names(data, out, err);
    out->pointed = qn__looks_like_bytes(data);
    if (status == QN_OK)
        status = end_line(out, err);
    for (uint64_t i = 0; i < data->items && status == QN_OK; i++) {
        status = add_row(data, i, out, err);
        if (status == QN_OK)
            status = end_line(out, err);
    }
    return status == QN_OK ? flush(out, err) : status;
}

static qn_status write_csv(const qn_data *data, const char *path, const char *labels_path,
                           qn__writer_batch *batch, qn_error *err) {
    (void)labels_path;
    lines *out = qn__alloc(1, sizeof *out, err);
    if (!out)
        return QN_MEMORY;
    out->whole = qn__alloc(data->features, 1, err);
    qn_status status = out->whole ? qn__writer_create(path, &out->writer, err) : QN_MEMORY;
    for (uint32_t k = 0; k < data->features && status == QN_OK; k++)
        out->whole[k] = (uint8_t)qn__written_whole(data, k, QN__WRITTEN_MOST, 0);
    if (status == QN_OK)
        status = add_table(data, out, err);
    status = qn__writer_finish(out->writer, batch, status, err);
    qn__free(out->whole);
    qn__free(out);
    return status;
}

const qn__format qn__idx_format = {.name = "idx",
                                   .shown = "IDX",
                                   .about = "bytes; the labels are a second file",
                                   .endings = {".idx", "-ubyte"},
                                   .labels_apart = 1,
                                   .classes = 1,
                                   .write = write_idx};

/* A text that CSV would read as another one. `number`: also a number. */
static qn_status check_cell(const char *text, const char *what, int label, int number,
                            qn_error *err) {
    const qn__cell cell = {.text = text, .size = strlen(text)};
    const qn__content content = qn__cell_content(&cell);
    const char *why = content == QN__CONTENT_GAP || (!label && qn__cell_is_mark(&cell))
                          ? "means a missing value"
                      : label && content == QN__CONTENT_INFINITE ? "means an infinity"
                      : number && content == QN__CONTENT_NUMBER  ? "means a number"
                                                                 : NULL;
    char shown[64];
    if (!why)
        return QN_OK;
    qn__cell_show(&cell, shown);
    qn__fail(err, QN_INPUT, "the %s \"%s\" cannot be written as CSV: there it %s", what, shown,
             why);
    return qn__remedy(err, QN_INPUT,
                      label ? "write it as Parquet or NPZ, or rename it"
                            : "rename it, or leave the column out with `data.drop`");
}

static qn_status check_csv(const qn_data *data, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t k = 0; k < data->features; k++)
        for (uint32_t i = 0; i < qn_data_categories(data, k) && status == QN_OK; i++)
            status = check_cell(qn_data_category(data, k, i), "category", 0, 0, err);
    for (uint32_t k = 0; !data->several && qn_data_class_name(data, k) && status == QN_OK; k++)
        status = check_cell(qn_data_class_name(data, k), "class", 1, 0, err);
    for (uint32_t k = 0; data->several && k < data->several->each && status == QN_OK; k++)
        for (uint32_t i = 0; i < qn__written_label_texts(data, k) && status == QN_OK; i++)
            status = check_cell(qn__written_label_text(data, k, i), "text of a label", 1, 1, err);
    return status;
}

const qn__format qn__csv_format = {.name = "csv",
                                   .shown = "CSV",
                                   .about = "numbers, categories, names, labels, weights",
                                   .endings = {".csv"},
                                   .categories = 1,
                                   .weights = 1,
                                   .several = 1,
                                   .texts = 1,
                                   .counts = 1,
                                   .check = check_csv,
                                   .write = write_csv};

qn_status qn_data_write_csv(const qn_data *data, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(path, err);
    if (qn__written_labels_check(&qn__csv_format, data, err) != QN_OK)
        return QN_UNSUPPORTED;
    if (qn__written_tokens_check(&qn__csv_format, data, err) != QN_OK)
        return QN_INPUT;
    return write_csv(data, path, NULL, NULL, err);
}
