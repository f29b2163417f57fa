/* qn_data_write: the formats, and what each of them can hold. */
#include "base/argument.h"
#include "base/system/float_state.h"
#include "data/write/formats.h"
#include <quern/convert.h>
#include <stdio.h>
#include <string.h>

/* Each NAME has a row qn__NAME_format in the file that writes it. */
#define FORMATS(each)                                                                              \
    each(csv) each(parquet) each(ipc) each(json) each(npy) each(npz) each(libsvm) each(idx)        \
        each(tar)
#define DECLARE(name) extern const qn__format qn__##name##_format;
#define ADDRESS(name) &qn__##name##_format,
FORMATS(DECLARE)

const qn__format *const qn__formats[] = {FORMATS(ADDRESS) NULL};

const qn__format *qn__format_named(const char *name) {
    const qn__format *const *at = qn__formats;
    while (name && *at && strcmp((*at)->name, name) != 0)
        at++;
    return name ? *at : NULL;
}

static const qn__format *of_path(const char *path) {
    const size_t size = strlen(path);
    for (const qn__format *const *at = qn__formats; *at; at++)
        for (const char *const *end = (*at)->endings; *end; end++)
            if (size >= strlen(*end) && strcmp(path + size - strlen(*end), *end) == 0)
                return *at;
    return NULL;
}

const char *qn_data_write_format(const char *path) {
    const qn__format *format = path ? of_path(path) : NULL;
    return format ? format->name : NULL;
}

/* "csv, parquet or tar": the names of all formats, or the first ending of each. */
static void list_formats(int endings, char text[200]) {
    size_t used = 0;
    for (const qn__format *const *at = qn__formats; *at && used < 200; at++)
        used += (size_t)snprintf(text + used, 200 - used, "%s%s",
                                 used == 0 ? ""
                                 : at[1]   ? ", "
                                           : " or ",
                                 endings ? (*at)->endings[0] : (*at)->name);
}

static qn_status find_format(const char *name, const char *path, const qn__format **out,
                             qn_error *err) {
    char all[200];
    *out = name ? qn__format_named(name) : of_path(path);
    if (*out)
        return QN_OK;
    list_formats(!name, all);
    if (name) {
        qn__fail(err, QN_USAGE, "\"%.40s\" is not a format that can be written", name);
        return qn__remedy(err, QN_USAGE, "name %s", all);
    }
    qn__fail(err, QN_USAGE, "the ending of the name tells no format");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_USAGE, "end it in %s, or name the format with `write.format`", all);
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
    if (qn__written_tokens_check(f, data, err) != QN_OK)
        return QN_INPUT;
    if (!data->weights || f->weights)
        return QN_OK;
    qn__fail(err, QN_INPUT, "%s holds no weights of items", f->shown);
    return qn__remedy(err, QN_INPUT, "write it as CSV or NPZ, or leave `data.weight` out");
}

static qn_status check_labels(const qn__format *f, const qn_data *data, const char *labels_path,
                              qn_error *err) {
    if ((labels_path || !f->labels_apart) && qn__written_labels_check(f, data, err) != QN_OK)
        return QN_UNSUPPORTED;
    if (!labels_path)
        return QN_OK;
    if (!f->labels_apart) {
        qn__fail(err, QN_USAGE, "%s holds the labels itself", f->shown);
        return qn__remedy(err, QN_USAGE, "leave `write.labels_path` out");
    }
    if (!data->labels && !data->several && !(data->targets && !f->classes)) {
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
    if (status == QN_OK && f->check)
        status = f->check(data, err);
    if (status != QN_OK)
        return status;
    return f->columns ? qn__written_columns_give(data, f->columns, path, batch, err)
                      : f->write(data, path, labels_path, batch, err);
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
