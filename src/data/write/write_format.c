/* qn_data_write: the formats, and what each of them can hold. */
#include "base/argument.h"
#include "base/system/float_state.h"
#include "data/write/formats.h"
#include <quern/convert.h>
#include <stdio.h>
#include <string.h>

static const qn__format formats[] = {
    {"csv", "CSV", {".csv"}, .categories = 1, .weights = 1, .texts = 1, .counts = 1},
    {"parquet", "Parquet", {".parquet"}, .categories = 1, .weights = 1, .typed = 1, .counts = 1},
    {"arrow",
     "Arrow IPC",
     {".arrow", ".feather"},
     .categories = 1,
     .weights = 1,
     .typed = 1,
     .counts = 1},
    {"json",
     "JSON lines",
     {".jsonl", ".ndjson", ".json"},
     .categories = 1,
     .weights = 1,
     .typed = 1,
     .counts = 1},
    {"npy", "NPY", {".npy"}, .labels_apart = 1, .counts = 1},
    {"npz", "NPZ", {".npz"}, .weights = 1, .counts = 1},
    {"libsvm", "LIBSVM", {".libsvm", ".svmlight", ".svm"}, .texts = 1, .counts = 1},
    {"idx", "IDX", {".idx", "-ubyte"}, .labels_apart = 1},
    {"tar", "an archive of images", {".tar"}, .counts = 0},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static int is(const qn__format *f, const char *name) { return strcmp(f->name, name) == 0; }

const qn__format *qn__format_named(const char *name) {
    for (int i = 0; name && i < FORMATS; i++)
        if (is(&formats[i], name))
            return &formats[i];
    return NULL;
}

static const qn__format *of_path(const char *path) {
    const size_t size = strlen(path);
    for (int i = 0; i < FORMATS; i++)
        for (const char *const *end = formats[i].endings; *end; end++)
            if (size >= strlen(*end) && strcmp(path + size - strlen(*end), *end) == 0)
                return &formats[i];
    return NULL;
}

static qn_status find_format(const char *name, const char *path, const qn__format **out,
                             qn_error *err) {
    *out = name ? qn__format_named(name) : of_path(path);
    if (*out)
        return QN_OK;
    if (name)
        qn__fail(err, QN_USAGE, "\"%.40s\" is not a format that can be written", name);
    else
        qn__fail(err, QN_USAGE, "the ending of the name tells no format");
    if (!name)
        qn__at(err, "%s", path);
    return qn__remedy(
        err, QN_USAGE,
        name ? "the formats are csv, parquet, arrow, json, npy, npz, libsvm, idx and tar"
             : "end it in .csv, .parquet, .arrow, .jsonl, .npy, .npz, .libsvm, .idx "
               "or .tar, or name the format with `write.format`");
}

/* ------------------------------------------------------------------ what a format can hold */

qn__content qn__text_content(const char *text) {
    const qn__cell cell = {.text = text, .size = strlen(text)};
    return qn__cell_content(&cell);
}

static qn_status check_columns(const qn__format *f, const qn_data *data, qn_error *err) {
    for (uint32_t k = 0; k < data->features; k++) {
        const char *name = qn_data_feature_name(data, k);
        const int dates = qn_data_dates(data, k, NULL, 0) != QN_DATE_NONE;
        if (f->categories || (qn_data_categories(data, k) == 0 && !dates))
            continue;
        qn__fail(err, QN_INPUT, "feature %u%s%.40s%s holds %s, and %s holds numbers",
                 (unsigned)k + 1, name ? " \"" : "", name ? name : "", name ? "\"" : "",
                 dates ? "dates" : "categories", f->shown);
        return qn__remedy(err, QN_INPUT,
                          "write it as CSV or Parquet, or leave the column out with `data.drop`");
    }
    if (!data->weights || f->weights)
        return QN_OK;
    qn__fail(err, QN_INPUT, "%s holds no weights of items", f->shown);
    return qn__remedy(err, QN_INPUT, "write it as CSV or NPZ, or leave `data.weight` out");
}

/* A text that CSV would read as another one. */
static qn_status check_cell(const char *text, const char *what, int label, qn_error *err) {
    const qn__cell cell = {.text = text, .size = strlen(text)};
    const qn__content content = qn__cell_content(&cell);
    const char *why = strchr(text, '\n') ? "holds a line end"
                      : content == QN__CONTENT_GAP || (!label && qn__cell_is_mark(&cell))
                          ? "means a missing value"
                      : label && content == QN__CONTENT_INFINITE ? "means an infinity"
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
            status = check_cell(qn_data_category(data, k, i), "category", 0, err);
    for (uint32_t k = 0; qn_data_class_name(data, k) && status == QN_OK; k++)
        status = check_cell(qn_data_class_name(data, k), "class", 1, err);
    return status;
}

static qn_status check_libsvm(const qn_data *data, qn_error *err) {
    if (!data->labels && !data->targets) {
        qn__fail(err, QN_INPUT, "LIBSVM needs a label in each line, and there are no labels");
        return qn__remedy(err, QN_INPUT, "write it as CSV, NPY or NPZ");
    }
    for (uint32_t k = 0; qn_data_class_name(data, k); k++) {
        const char *name = qn_data_class_name(data, k);
        if (qn__text_content(name) == QN__CONTENT_NUMBER && strlen(name) < 40)
            continue;
        qn__fail(err, QN_INPUT, "labels in LIBSVM are numbers, and a class is called \"%.40s\"",
                 name);
        return qn__remedy(err, QN_INPUT, "write it as CSV or NPZ");
    }
    return QN_OK;
}

static qn_status check_labels(const qn__format *f, const qn_data *data, const char *labels_path,
                              qn_error *err) {
    if (!labels_path)
        return QN_OK;
    if (!f->labels_apart) {
        qn__fail(err, QN_USAGE, "%s holds the labels itself", f->shown);
        return qn__remedy(err, QN_USAGE, "leave `write.labels_path` out");
    }
    if (!data->labels && !(data->targets && !is(f, "idx"))) {
        qn__fail(err, QN_INPUT,
                 data->targets ? "labels in IDX are classes, and these are real"
                               : "there are no labels to write");
        return qn__remedy(err, QN_INPUT,
                          data->targets ? "write it as CSV, NPY or NPZ"
                                        : "leave `write.labels_path` out");
    }
    return QN_OK;
}

static qn_status write_one(const qn_data *data, const char *name, const char *path,
                           const char *labels_path, qn__writer_batch *batch, qn_error *err) {
    const qn__format *f;
    qn_status status = find_format(name, path, &f, err);
    if (status == QN_OK)
        status = check_labels(f, data, labels_path, err);
    if (status == QN_OK)
        status = check_columns(f, data, err);
    if (status == QN_OK && labels_path)
        status = qn__paths_apart(path, labels_path, err);
    if (status == QN_OK && is(f, "csv"))
        status = check_csv(data, err);
    if (status == QN_OK && is(f, "libsvm"))
        status = check_libsvm(data, err);
    if (status != QN_OK)
        return status;
    return is(f, "csv")       ? qn__write_csv(data, path, batch, err)
           : is(f, "parquet") ? qn__write_parquet(data, path, batch, err)
           : is(f, "arrow")   ? qn__write_ipc(data, path, batch, err)
           : is(f, "json")    ? qn__write_json(data, path, batch, err)
           : is(f, "npy")     ? qn__write_npy(data, path, labels_path, batch, err)
           : is(f, "npz")     ? qn__write_npz(data, path, batch, err)
           : is(f, "libsvm")  ? qn__write_libsvm(data, path, batch, err)
           : is(f, "idx")     ? qn__write_idx(data, path, labels_path, batch, err)
                              : qn__write_tar(data, path, batch, err);
}

qn_status qn_data_write(const qn_data *data, const char *format, const char *path,
                        const char *labels_path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(path, err);
    return write_one(data, format, path, labels_path, NULL, err);
}

qn_status qn_data_write_parts(const qn_data *const *parts, uint32_t count, const char *format,
                              const char *const *paths, const char *const *labels_paths,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(parts, err);
    QN__NEED(paths, err);
    qn__writer_batch batch = {NULL, NULL};
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < count; i++)
        if (!parts[i] || !paths[i])
            return qn__fail_null_at(err, __func__, parts[i] ? "paths" : "parts", i, "");
    for (uint32_t i = 0; i < count && status == QN_OK; i++)
        status = write_one(parts[i], format, paths[i], labels_paths ? labels_paths[i] : NULL,
                           &batch, err);
    if (status == QN_OK)
        return qn__writer_batch_commit(&batch, err);
    qn__writer_batch_drop(&batch);
    return status;
}
