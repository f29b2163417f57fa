/* Opening a data file: its content selects the reader. */
#include "base/argument.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "base/sized.h"
#include "data/readers.h"
#include "num/host.h"
#include <string.h>

/* Smaller files are read before a second thread would have started. */
#define WORTH_THREADS ((uint64_t)1 << 19)

void qn_data_options_init(qn_data_options *options) {
    if (options)
        *options = (qn_data_options){.size = sizeof *options};
}

/* Defaults, overlaid with the options that the caller's version of the struct has. */
static qn_status take_options(const qn_data_options *given, qn_data_options *options,
                              qn_error *err) {
    qn_data_options_init(options);
    if (!given)
        return QN_OK;
    const qn_status status = qn__sized_take(
        &(const qn__sized){"qn_data_open", "options", "qn_data_options", sizeof *options}, given,
        options, err);
    if (status != QN_OK)
        return status;
    if (options->threads < 0)
        return qn__fail(err, QN_USAGE, "%d threads cannot read a file", options->threads);
    if (options->unlabelled && options->label_column) {
        qn__fail(err, QN_USAGE, "unlabelled data cannot have the label column \"%s\"",
                 options->label_column);
        return qn__remedy(err, QN_USAGE, "give `data.label_column` or `data.unlabelled`, not both");
    }
    if (options->unlabelled && options->labels_path) {
        qn__fail(err, QN_USAGE, "unlabelled data cannot have a file of labels");
        return qn__remedy(err, QN_USAGE, "give `data.labels_path` or `data.unlabelled`, not both");
    }
    return QN_OK;
}

static qn_status read_idx(qn__source *source, const qn_data_options *options, qn_data *data,
                          qn_error *err) {
    if (options->label_column) {
        qn__fail(err, QN_INPUT, "an IDX file has no columns, so it has no label column \"%s\"",
                 options->label_column);
        qn__at(err, "%s", qn__source_path(source));
        return qn__remedy(err, QN_INPUT, "give its file of labels with `data.labels_path`");
    }
    data->format = qn__source_is_gzip(source) ? "idx.gz" : "idx";
    qn_status status = qn__idx_read(source, data, err);
    if (status == QN_OK && options->labels_path)
        status = qn__idx_read_labels(options->labels_path, data, err);
    return status;
}

static qn_status read_csv(qn__source *source, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    if (options->labels_path) {
        qn__fail(err, QN_INPUT,
                 "a CSV file holds its labels itself, and a file of labels was given");
        qn__at(err, "%s", qn__source_path(source));
        return qn__remedy(
            err, QN_INPUT,
            "leave out `data.labels_path` and name the label column with `data.label_column`");
    }
    data->format = qn__source_is_gzip(source) ? "csv.gz" : "csv";
    return qn__csv_read(source, options, pool, data, err);
}

static qn_status read_into(qn__source *source, const qn_data_options *options, qn_data *data,
                           qn_error *err) {
    uint8_t magic[2];
    size_t got = 0;
    qn_status status = qn__source_peek(source, magic, sizeof magic, &got, err);
    if (status != QN_OK)
        return status;
    if (got == 0) {
        qn__fail(err, QN_INPUT, "the file is empty once unpacked");
        qn__at(err, "%s", qn__source_path(source));
        return qn__remedy(err, QN_INPUT, "give a file with at least one item");
    }
    int threads = options->threads ? options->threads : qn__cores();
    if (qn__source_file_size(source) < WORTH_THREADS)
        threads = 1;
    qn__pool *pool;
    status = qn__pool_create(threads, 0, &pool, err);
    if (status != QN_OK)
        return status;
    if (got == 2 && magic[0] == 0 && magic[1] == 0)
        status = read_idx(source, options, data, err);
    else
        status = read_csv(source, options, pool, data, err);
    if (status == QN_OK)
        status = qn__data_finish(data, pool, err);
    qn__pool_destroy(pool);
    return status;
}

qn_status qn_data_open(const char *path, const qn_data_options *given, qn_data **out,
                       qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    qn_data_options options;
    qn_status status = take_options(given, &options, err);
    if (status == QN_OK)
        status = qn__host_check(err); /* the readers use its arithmetic */
    if (status != QN_OK)
        return status;
    qn__source *source;
    status = qn__source_open(path, &source, err);
    if (status != QN_OK)
        return status;
    qn_data *data = qn__alloc(1, sizeof *data, err);
    status = data ? read_into(source, &options, data, err) : QN_MEMORY;
    qn__source_close(source);
    if (status != QN_OK) {
        qn_data_close(data);
        return status;
    }
    *out = data;
    return QN_OK;
}
