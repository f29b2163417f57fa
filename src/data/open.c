/* Opening a data file: its content selects the reader. */
#include "base/argument.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "data/data_options.h"
#include "data/labels.h"
#include "data/readers.h"
#include "data/shape.h"
#include "data/table_cache.h"
#include "num/host.h"
#include <string.h>

/* Smaller files are read before a second thread would have started. */
#define WORTH_THREADS ((uint64_t)1 << 19)

static qn_status refuse_option(const qn__source *source, qn_error *err, const char *remedy) {
    qn__at(err, "%s", qn__source_path(source));
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* The format's name for a file that is packed so; NULL: it is not read. */
static const char *name_of(const qn__reader *reader, const qn__source *source) {
    return reader->name[qn__source_packing(source)];
}

/* Options that this format has no use for would be forgotten silently. */
static qn_status check_format(const qn__reader *reader, const qn__source *source,
                              const qn_data_options *o, qn_error *err) {
    if (!name_of(reader, source)) {
        const qn__packing packing = qn__source_packing(source);
        qn__fail(err, QN_INPUT, "a %s file compressed with %s is not read", reader->name[0],
                 qn__packing_name(packing));
        qn__at(err, "%s", qn__source_path(source));
        return qn__remedy(err, QN_INPUT, "unpack it with %s", qn__packing_by_hand(packing));
    }
    if (o->labels_path && !reader->read_labels) {
        qn__fail(err, QN_INPUT,
                 "data of the format %s holds its labels itself, and a file of labels was given",
                 reader->name[0]);
        return refuse_option(source, err, reader->labels_remedy);
    }
    if (o->weight && !reader->weights) {
        qn__fail(err, QN_INPUT, "a file of the format %s holds no weights of items",
                 reader->name[0]);
        return refuse_option(source, err,
                             "leave `data.weight` out, or give the arrays in an NPZ file");
    }
    if (o->skip_broken && !reader->files) {
        qn__fail(err, QN_INPUT, "an item of the format %s is no file, so none can be broken",
                 reader->name[0]);
        return refuse_option(source, err, "leave `data.skip_broken` out");
    }
    if (o->resize && !reader->files) {
        qn__fail(err, QN_INPUT, "items of the format %s cannot be resized; image files can",
                 reader->name[0]);
        return refuse_option(source, err, "leave `data.resize` out");
    }
    if (o->shape && reader->files) {
        qn__fail(err, QN_INPUT, "images tell their shape themselves");
        return refuse_option(source, err,
                             "leave `data.shape` out, or say what to make of them "
                             "with `data.resize`");
    }
    if (o->query && !reader->queries) {
        qn__fail(err, QN_INPUT, "a file of the format %s is no database, so it takes no query",
                 reader->name[0]);
        return refuse_option(source, err, "leave `data.query` out");
    }
    if (reader->typed && o->header && strcmp(o->header, "auto") != 0) {
        qn__fail(err, QN_INPUT, "a file of the format %s has no header line: it names its columns",
                 reader->name[0]);
        return refuse_option(source, err, "leave `data.header` out");
    }
    if (reader->columns)
        return QN_OK;
    if (o->label_column) {
        qn__fail(err, QN_INPUT, "a file of the format %s has no columns, so no label column \"%s\"",
                 reader->name[0], o->label_column);
        return refuse_option(source, err, reader->labels_remedy);
    }
    const char *given = o->features   ? "data.features"
                        : o->drop     ? "data.drop"
                        : o->category ? "data.category"
                        : o->header   ? "data.header"
                                      : NULL;
    if (!given)
        return QN_OK;
    qn__fail(err, QN_INPUT, "a file of the format %s has no columns and no header",
             reader->name[0]);
    qn__at(err, "%s", qn__source_path(source));
    return qn__remedy(err, QN_INPUT, "leave `%s` out", given);
}

static qn_status read_with(const qn__reader *reader, qn__source *source,
                           const qn_data_options *options, qn__pool *pool, qn_data *data,
                           qn_error *err) {
    data->format = name_of(reader, source);
    qn_status status = qn__source_end(source, reader->read(source, options, pool, data, err), err);
    if (status == QN_OK && options->shape)
        status = qn__shape_set(data, options->shape, qn__source_path(source), err);
    if (status == QN_OK && options->labels_path)
        status = reader->read_labels(options->labels_path, options, data, err);
    if (status == QN_OK)
        status = qn__labels_settle(data, options, reader->quantities, qn__source_path(source), err);
    if (status == QN_OK && data->wide) /* its schema may be older than its labels */
        data->schema->target = qn__data_target(data);
    if (status == QN_OK)
        qn__data_finish(data, pool);
    return status;
}

/* A folder can only hold images, and an address names a server. */
static qn_status find_reader(qn__source *source, const qn__reader **reader, qn_error *err) {
    uint8_t first[QN__PROBE_BYTES];
    size_t got = 0;
    *reader = qn__source_address(source) ? &qn__postgres_reader : &qn__image_reader;
    if (qn__source_is_folder(source) || qn__source_address(source))
        return QN_OK;
    const qn_status status = qn__source_peek(source, first, sizeof first, &got, err);
    if (status != QN_OK)
        return status;
    if (got == 0) {
        qn__fail(err, QN_INPUT, "the file is empty once unpacked");
        return refuse_option(source, err, "give a file with at least one item");
    }
    *reader = qn__reader_for(first, got, qn__source_path(source));
    return QN_OK;
}

/* The table of a text file from the cache, or from the file, which then leaves it there. */
static qn_status read_or_find(const qn__reader *reader, qn__source *source,
                              const qn_data_options *options, qn__pool *pool, qn_data *data,
                              qn_error *err) {
    qn__table_cache cache = {.off = options->no_cache || !reader->text || options->labels_path};
    qn__table_cache_begin(&cache, source, options);
    qn_status status = QN_OK;
    if (!qn__table_cache_load(&cache, pool, data)) {
        data->room = &cache.room;
        status = read_with(reader, source, options, pool, data, err);
        data->room = NULL;
        if (status == QN_OK)
            qn__table_cache_keep(&cache, data);
        if (status == QN_OK && *cache.note)
            status = qn__data_add_note(data, cache.note, err);
    }
    qn__table_cache_end(&cache);
    return status;
}

static qn_status read_into(qn__source *source, const qn_data_options *options, qn_data *data,
                           qn_error *err) {
    const qn__reader *reader = NULL;
    qn_status status = find_reader(source, &reader, err);
    if (status == QN_OK)
        status = check_format(reader, source, options, err);
    if (status != QN_OK)
        return status;
    int threads = options->threads ? options->threads : qn__cores();
    if (!qn__source_is_folder(source) && qn__source_file_size(source) < WORTH_THREADS)
        threads = 1;
    qn__pool *pool;
    status = qn__pool_create(threads, 0, &pool, err);
    if (status != QN_OK)
        return status;
    status = read_or_find(reader, source, options, pool, data, err);
    qn__pool_destroy(pool);
    return status;
}

qn_status qn_data_open(const char *path, const qn_data_options *given, qn_data **out,
                       qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    qn_data_options options;
    qn_status status = qn__data_options_take(__func__, given, &options, err);
    if (status == QN_OK)
        status = qn__host_check(err); /* the readers use its arithmetic */
    if (status != QN_OK)
        return status;
    qn__source *source;
    status = qn__source_open_any(path, &source, err);
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
