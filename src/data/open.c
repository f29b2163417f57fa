/* Opening a data file: its content selects the reader. */
#include "base/argument.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "base/sized.h"
#include "data/labels.h"
#include "data/readers.h"
#include "num/host.h"
#include <string.h>

/* Smaller files are read before a second thread would have started. */
#define WORTH_THREADS ((uint64_t)1 << 19)

void qn_data_options_init(qn_data_options *options) {
    if (options)
        *options = (qn_data_options){.size = sizeof *options};
}

static int is_one_of(const char *word, const char *first, const char *second, const char *third) {
    return !word || strcmp(word, first) == 0 || strcmp(word, second) == 0 ||
           strcmp(word, third) == 0;
}

/* Defaults, overlaid with as much of the caller's options as the caller's header knew of. */
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
    if (!is_one_of(options->task, "auto", "classify", "regress")) {
        qn__fail(err, QN_USAGE, "\"%s\" is not a task", options->task);
        return qn__remedy(err, QN_USAGE, "`data.task` is auto, classify or regress");
    }
    if (!is_one_of(options->header, "auto", "yes", "no")) {
        qn__fail(err, QN_USAGE, "\"%s\" does not say whether there is a header", options->header);
        return qn__remedy(err, QN_USAGE, "`data.header` is auto, yes or no");
    }
    if (options->features && options->drop) {
        qn__fail(err, QN_USAGE, "columns to keep and columns to leave out were both given");
        return qn__remedy(err, QN_USAGE, "give `data.features` or `data.drop`, not both");
    }
    if (options->unlabelled && options->labels_path) {
        qn__fail(err, QN_USAGE, "unlabelled data cannot have a file of labels");
        return qn__remedy(err, QN_USAGE, "give `data.labels_path` or `data.unlabelled`, not both");
    }
    return QN_OK;
}

static qn_status refuse_option(const qn__source *source, qn_error *err, const char *remedy) {
    qn__at(err, "%s", qn__source_path(source));
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* Options that this format has no use for would be forgotten silently. */
static qn_status check_format(const qn__reader *reader, const qn__source *source,
                              const qn_data_options *o, qn_error *err) {
    if (qn__source_is_gzip(source) && !reader->gzip_name) {
        qn__fail(err, QN_INPUT, "a gzipped %s file is not read", reader->name);
        return refuse_option(source, err, "unpack it with gunzip");
    }
    if (o->labels_path && !reader->read_labels) {
        qn__fail(err, QN_INPUT, "a %s file holds its labels itself, and a file of labels was given",
                 reader->name);
        return refuse_option(source, err, reader->labels_remedy);
    }
    if (reader->columns)
        return QN_OK;
    if (o->label_column) {
        qn__fail(err, QN_INPUT, "a file of the format %s has no columns, so no label column \"%s\"",
                 reader->name, o->label_column);
        return refuse_option(source, err, reader->labels_remedy);
    }
    const char *given = o->features ? "data.features" : o->drop ? "data.drop" : NULL;
    if (!given && o->header)
        given = "data.header";
    if (!given)
        return QN_OK;
    qn__fail(err, QN_INPUT, "a file of the format %s has no columns and no header", reader->name);
    qn__at(err, "%s", qn__source_path(source));
    return qn__remedy(err, QN_INPUT, "leave `%s` out", given);
}

static qn_status read_with(const qn__reader *reader, qn__source *source,
                           const qn_data_options *options, qn__pool *pool, qn_data *data,
                           qn_error *err) {
    data->format = qn__source_is_gzip(source) ? reader->gzip_name : reader->name;
    qn_status status = reader->read(source, options, pool, data, err);
    if (status == QN_OK && options->labels_path)
        status = reader->read_labels(options->labels_path, options, data, err);
    if (status == QN_OK)
        status = qn__labels_settle(data, options, reader->quantities, qn__source_path(source), err);
    return status == QN_OK ? qn__data_finish(data, pool, err) : status;
}

static qn_status read_into(qn__source *source, const qn_data_options *options, qn_data *data,
                           qn_error *err) {
    uint8_t first[QN__PROBE_BYTES];
    size_t got = 0;
    qn_status status = qn__source_peek(source, first, sizeof first, &got, err);
    if (status != QN_OK)
        return status;
    if (got == 0) {
        qn__fail(err, QN_INPUT, "the file is empty once unpacked");
        return refuse_option(source, err, "give a file with at least one item");
    }
    const qn__reader *reader = qn__reader_for(first, got, qn__source_path(source));
    status = check_format(reader, source, options, err);
    if (status != QN_OK)
        return status;
    int threads = options->threads ? options->threads : qn__cores();
    if (qn__source_file_size(source) < WORTH_THREADS)
        threads = 1;
    qn__pool *pool;
    status = qn__pool_create(threads, 0, &pool, err);
    if (status != QN_OK)
        return status;
    status = read_with(reader, source, options, pool, data, err);
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
