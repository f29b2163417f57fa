/* Opening a data file: its content selects the reader. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/bytes/file_list.h"
#include "data/bytes/named_formats.h"
#include "data/bytes/part_files.h"
#include "data/bytes/standard_input.h"
#include "data/bytes/zip_file.h"
#include "data/cells/label_columns.h"
#include "data/cells/labels.h"
#include "data/cells/readers.h"
#include "data/cells/rounded.h"
#include "data/open/documents.h"
#include "data/open/open_list.h"
#include "data/open/table_cache.h"
#include "data/table/data_options.h"
#include "data/table/shape.h"
#include "data/table/table_space.h"
#include "data/tokens/text_items.h"
#include "image/image_head.h"
#include "num/host.h"
#include <stdio.h>
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
    const int tokenises =
        o->tokens && o->tokens != o->expected_tokens && strcmp(o->tokens, QN__TOKENS_IDS) != 0;
    const int texts = reader->columns && qn__text_items_wanted(o); /* a column of them */
    if (tokenises && !texts && reader != &qn__txt_reader) {
        qn__fail(err, QN_INPUT, "a file of the format %s is not a text that could become tokens",
                 reader->name[0]);
        return refuse_option(source, err,
                             reader->tokens ? "set `data.tokens` to ids if its numbers are tokens"
                             : reader->columns
                                 ? "name the column of the documents with `data.text`, and say "
                                   "`data.task` next; or leave `data.tokens` out"
                                 : "give texts, or leave `data.tokens` out");
    }
    if (o->tokens && !texts && !reader->tokens) {
        qn__fail(err, QN_INPUT, "a file of the format %s holds no numbers of tokens",
                 reader->name[0]);
        return refuse_option(
            source, err,
            reader->columns
                ? "leave `data.tokens` out, or name a tokenizer for its column of texts, such "
                  "as words:20000"
                : "leave `data.tokens` out, or give an array of whole numbers that "
                  "numpy.save wrote, numbers of 16 bits in a file FILE.bin, or a "
                  "text");
    }
    if (o->skip_broken && !reader->files) {
        qn__fail(err, QN_INPUT, "an item of the format %s is not a file, so none can be broken",
                 reader->name[0]);
        return refuse_option(source, err, "leave `data.skip_broken` out");
    }
    if (o->masks && !reader->files) {
        qn__fail(err, QN_INPUT, "items of the format %s have no masks; image files can have them",
                 reader->name[0]);
        return refuse_option(source, err,
                             "leave `data.masks` out; an array of masks is one of labels");
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
        qn__fail(err, QN_INPUT, "a file of the format %s is not a database, so it takes no query",
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
    if (o->label_column && reader->files) {
        qn__fail(err, QN_INPUT, "images have no columns, so no label column \"%s\"",
                 o->label_column);
        return refuse_option(
            source, err,
            qn__source_is_folder(source)
                ? "leave `data.label_column` out: the folder of an image names its "
                  "class"
                : "leave `data.label_column` out: the folder of an image names its "
                  "class; a table in an archive must be unpacked first");
    }
    if (o->label_column) {
        qn__fail(err, QN_INPUT, "a file of the format %s has no columns, so no label column \"%s\"",
                 reader->name[0], o->label_column);
        return refuse_option(source, err, reader->labels_remedy);
    }
    const char *given = o->features        ? "data.features"
                        : o->drop          ? "data.drop"
                        : o->category      ? "data.category"
                        : o->text          ? "data.text"
                        : o->header        ? "data.header"
                        : o->text_features ? "data.text_features"
                                           : NULL;
    if (!given)
        return QN_OK;
    qn__fail(err, QN_INPUT, "a file of the format %s has no columns and no header",
             reader->name[0]);
    qn__at(err, "%s", qn__source_path(source));
    return qn__remedy(err, QN_INPUT, "leave `%s` out", given);
}

static qn_status read_files(const qn__reader *reader, qn__part_files *files,
                            const qn_data_options *options, qn__pool *pool, qn_data *data,
                            qn_error *err) {
    data->format = name_of(reader, files->first);
    if (reader->read_parts)
        return reader->read_parts(files, options, pool, data, err);
    const qn_status status = reader->read(files->first, options, pool, data, err);
    return qn__source_end(files->first, status, err);
}

static qn_status read_labels(const qn__reader *reader, qn__part_files *files,
                             const qn_data_options *options, qn_data *data, qn_error *err) {
    qn__part_files labels;
    qn_status status = qn__part_files_prepare(&files->labels, &labels, err);
    if (status == QN_OK)
        status = reader->read_labels(&labels, files, options, data, err);
    qn__part_files_release(&labels);
    return status;
}

static qn_status read_with(const qn__reader *reader, qn__part_files *files,
                           const qn_data_options *options, qn__pool *pool, qn_data *data,
                           qn_error *err) {
    qn_status status = read_files(reader, files, options, pool, data, err);
    if (status == QN_OK && data->items == 0 && files->list->file[0].shares)
        return QN_OK;
    if (status == QN_OK)
        status = qn__label_columns_take(data, options, files->name, err);
    if (status == QN_OK)
        status = qn__text_columns(data, reader->columns, options, files->name, err);
    if (status == QN_OK && options->shape)
        status = qn__shape_set(data, options->shape, files->name, err);
    if (status == QN_OK && options->labels_path)
        status = read_labels(reader, files, options, data, err);
    if (status == QN_OK)
        status = qn__labels_settle(data, options, reader->quantities, files->name, err);
    if (status == QN_OK && data->wide) /* its schema may be older than its labels */
        data->schema->target = qn__data_target(data);
    if (status == QN_OK && !options->expected_rules)
        status = qn__note_rounded(data, reader->text, err);
    if (status == QN_OK)
        qn__data_finish(data, pool);
    return status;
}

/* A folder and an address tell their reader without being read. */
static qn_status find_reader(qn__source *source, const qn_data_options *options,
                             const qn__reader **reader, qn_error *err) {
    uint8_t first[QN__PROBE_BYTES];
    size_t got = 0;
    *reader = qn__source_address(source) ? qn__reader_of_addresses() : qn__reader_of_folders();
    if (qn__source_is_folder(source) || qn__source_address(source))
        return QN_OK;
    const qn_status status = qn__source_peek(source, first, sizeof first, &got, err);
    if (status != QN_OK)
        return status;
    if (got == 0) {
        qn__fail(err, QN_INPUT, "the file is empty once unpacked");
        return refuse_option(source, err, "give a file with at least one item");
    }
    *reader = options->tokens ? qn__reader_of_tokens(options, first, got, qn__source_path(source))
                              : qn__reader_for(first, got, qn__source_path(source));
    return qn__reader_of_archive(source, options, reader, err);
}

/* Formats that a set of several files cannot have. */
static qn_status check_together(const qn__reader *reader, const qn__source *source, qn_error *err) {
    if (reader->read_parts)
        return QN_OK;
    qn__fail(err, QN_INPUT, "several files of the format %s are not read as one table",
             reader->name[0]);
    return refuse_option(source, err,
                         reader->queries ? "name one, or select the rows by a query of one database"
                                         : "name one, or convert them to CSV or Parquet first");
}

/* Refuses a file that no reader takes by what it is. */
static qn_status check_known(qn__source *source, qn_error *err) {
    uint8_t first[QN__PROBE_BYTES];
    size_t got = 0;
    const qn_status status = qn__source_peek(source, first, sizeof first, &got, err);
    return status == QN_OK
               ? qn__named_format_check((const char *)first, got, qn__source_path(source), err)
               : status;
}

/* A text can be one of several formats where it is short: then it has that of the first file. */
static qn_status check_part(const qn__reader *reader, qn__part_files *files, size_t i,
                            const qn_data_options *options, qn_error *err) {
    qn__source *source;
    const qn__reader *own = NULL;
    qn_status status = qn__part_files_open(files, i, &source, err);
    if (status != QN_OK)
        return status;
    status = find_reader(source, options, &own, err);
    if (status == QN_OK && own != reader && (own->fallback || reader == &qn__texts_reader))
        status = check_known(source, err);
    if (status == QN_OK && reader == &qn__texts_reader)
        own = reader; /* any text is one */
    if (status == QN_OK && own != reader && !(own->fallback && reader->text)) {
        qn__fail(err, QN_INPUT, "the file has the format %s, and the first one has the format %s",
                 own->name[0], reader->name[0]);
        status = refuse_option(source, err, "name files of one format, or convert this one");
    }
    if (status == QN_OK)
        status = check_format(reader, source, options, err);
    return qn__part_files_close(source, status, err);
}

/* The files of labels; for free(). */
static const char **labels_paths(const qn_data_options *options, qn_error *err) {
    const size_t more = options->labels_more_count;
    const char **paths = (const char **)qn__alloc(1 + more, sizeof *paths, err);
    if (!paths)
        return NULL;
    paths[0] = options->labels_path;
    for (size_t i = 0; i < more; i++)
        paths[1 + i] = options->labels_more[i];
    return paths;
}

/* Finds the files of labels: one for each file of items. */
static qn_status find_labels(qn__part_files *files, const qn_data_options *options, qn_error *err) {
    qn__file_list *labels = &files->labels;
    const size_t count = files->list->count;
    const char **paths = labels_paths(options, err);
    if (!paths)
        return QN_MEMORY;
    const qn_status status =
        qn__file_list_make(paths, 1 + options->labels_more_count, 0, labels, err);
    qn__free((void *)paths);
    if (status != QN_OK || labels->count == count)
        return status;
    qn__fail(err, QN_INPUT, "there %s %zu file%s of labels for %zu file%s of items",
             labels->count == 1 ? "is" : "are", labels->count, labels->count == 1 ? "" : "s", count,
             count == 1 ? "" : "s");
    qn__at(err, "%s", labels->file[0].path);
    return qn__remedy(err, QN_INPUT,
                      "name with `data.labels_path` as many as there are files of items, in the "
                      "same order");
}

/* All files have one format. *bytes: what all of them have. */
static qn_status check_files(const qn__reader *reader, qn__part_files *files,
                             const qn_data_options *options, uint64_t *bytes, qn_error *err) {
    const size_t count = files->list->count;
    const int parts = count > 1 || (files->list->keys > 0 && reader->columns);
    *bytes = qn__source_is_folder(files->first) ? UINT64_MAX : qn__source_file_size(files->first);
    qn_status status = parts ? check_together(reader, files->first, err) : QN_OK;
    if (status == QN_OK)
        status = check_format(reader, files->first, options, err);
    for (size_t i = 1; i < count && status == QN_OK; i++) {
        status = check_part(reader, files, i, options, err);
        *bytes = *bytes > UINT64_MAX / 2 ? *bytes : *bytes + (uint64_t)files->seen[i].st_size;
    }
    if (status == QN_OK && options->labels_path)
        status = find_labels(files, options, err);
    return status;
}

/* The table of text files from the cache, or from the files, which then leave it there. */
static qn_status read_or_find(const qn__reader *reader, qn__part_files *files,
                              const qn_data_options *options, qn__pool *pool, qn_data *data,
                              qn_error *err) {
    qn__table_cache cache = {.off = options->no_cache || !reader->text || options->labels_path ||
                                    qn__text_items_wanted(options) || data->listed ||
                                    (options->keep_doubles && reader->typed)};
    qn__table_cache_begin(&cache, files, options);
    cache.buffer.ranks = qn__part_ranks(data->part);
    qn_status status = QN_OK;
    if (!qn__table_cache_load(&cache, pool, data)) {
        data->buffer = &cache.buffer;
        status = read_with(reader, files, options, pool, data, err);
        data->buffer = NULL;
        if (status == QN_OK)
            qn__table_cache_keep(&cache, data);
        if (status == QN_OK && *cache.note)
            status = qn__data_add_note(data, cache.note, err);
    }
    qn__table_cache_end(&cache);
    return status;
}

static qn_status read_into(qn__part_files *files, const qn_data_options *options, qn_data *data,
                           qn_error *err) {
    const qn__reader *reader = NULL;
    uint64_t bytes = 0;
    qn_status status = find_reader(files->first, options, &reader, err);
    if (status == QN_OK)
        status = qn__reader_of_folder(files, options, &reader, err);
    if (status == QN_OK)
        status = check_files(reader, files, options, &bytes, err);
    if (status != QN_OK)
        return status;
    const int threads = options->threads ? options->threads : qn__cores();
    qn__pool *pool;
    status = qn__pool_create(bytes < WORTH_THREADS ? 1 : threads, 0, &pool, err);
    if (status != QN_OK)
        return status;
    status = read_or_find(reader, files, options, pool, data, err);
    qn__pool_destroy(pool);
    return status;
}

/* Mostly a mistake: a folder and a file in it, or patterns that overlap. */
static qn_status note_twice(const qn__part_files *files, qn_data *data, qn_error *err) {
    char text[400];
    const char *path = qn__part_files_twice(files);
    if (!path)
        return QN_OK;
    snprintf(text, sizeof text, "the file %.300s is named twice, so its rows count twice", path);
    return qn__data_add_note(data, text, err);
}

/* A table is one text where nothing names the column of its documents: its marks and names of
 * columns become tokens, too. */
static qn_status note_whole(const qn__part_files *files, qn_data *data, qn_error *err) {
    char text[400];
    const char *path = files->list->file[0].path;
    if (strncmp(data->format, "txt", 3) != 0 || !qn__names_table(path) || qn__names_text(path))
        return QN_OK;
    snprintf(text, sizeof text,
             "%.200s is read as one text; `data.text` names the column of a table whose texts are "
             "documents",
             path);
    return qn__data_add_note(data, text, err);
}

static qn_status read_list(const qn__file_list *list, const qn_data_options *options, qn_data *data,
                           qn_error *err) {
    qn__part_files files;
    qn_status status = qn__part_files_begin(list, &files, err);
    if (status == QN_OK)
        status = read_into(&files, options, data, err);
    if (status == QN_OK)
        status = note_twice(&files, data, err);
    if (status == QN_OK)
        status = note_whole(&files, data, err);
    qn__part_files_release(&files);
    return status;
}

/* Whether the texts of the column that the options name become tokens. */
static int names_tokens(const qn_data_options *o) {
    return qn__text_items_wanted(o) && o->text && strcmp(o->text, "none") != 0;
}

/* `listed`: the texts of a column are for a list in any case. */
static qn_status open_table(const qn__file_list *list, const qn_data_options *options, int listed,
                            qn__part_reading *part, qn_data **out, qn_error *err) {
    qn_data *data = qn__alloc(1, sizeof *data, err);
    qn_status status = data ? QN_OK : QN_MEMORY;
    if (status == QN_OK && (listed || names_tokens(options)))
        status = qn__text_list_create(&data->listed, err);
    if (status != QN_OK) {
        qn_data_close(data);
        return status;
    }
    data->part = part;
    status = qn__lines_wanted(options) ? qn__lines_tokens(list, options, data, err)
                                       : read_list(list, options, data, err);
    data->part = NULL;
    if (status == QN_OK)
        *out = data;
    else
        qn_data_close(data);
    return status;
}

/* A table whose texts are documents or items: read first, then encoded. */
static qn_status open_documents(const qn__file_list *list, const qn_data_options *options,
                                qn__part_reading *part, qn_data **out, qn_error *err) {
    const qn_data_options of_table = qn__documents_table(options);
    const char *path = list->file[0].path;
    const qn__table_space space = {.no_file = options->no_cache == 1,
                                   .path = path,
                                   .entry = "",
                                   .ranks = qn__part_ranks(part)};
    qn_data *table = NULL, *data = NULL;
    qn_status status = open_table(list, &of_table, 1, part, &table, err);
    if (status == QN_OK) {
        table->part = part;
        data = qn__alloc(1, sizeof *data, err);
        status = data ? QN_OK : QN_MEMORY;
    }
    if (status == QN_OK) {
        data->buffer = &space;
        data->part = part;
        status = qn__documents_tokens(table, options, path, data, err);
        data->buffer = NULL;
        data->part = NULL;
    }
    qn_data_close(table);
    if (status == QN_OK)
        *out = data;
    else
        qn_data_close(data);
    return status;
}

qn_status qn__data_open_list(const qn__file_list *list, const qn_data_options *options,
                             qn__part_reading *part, qn_data **out, qn_error *err) {
    const qn_status status = qn__host_check(err); /* the readers use its arithmetic */
    if (status != QN_OK)
        return status;
    return qn__documents_wanted(options) ? open_documents(list, options, part, out, err)
                                         : open_table(list, options, 0, part, out, err);
}

int qn__data_list_encloses(const qn__file_list *list, const qn_data_options *options) {
    qn__part_files files;
    uint8_t first[QN__PROBE_BYTES];
    size_t got = 0;
    const qn__reader *reader = NULL;
    if (strcmp(list->file[0].path, QN__STANDARD_INPUT) == 0) /* it is read once */
        return 0;
    qn_status status = qn__part_files_begin(list, &files, NULL);
    if (status == QN_OK)
        status = find_reader(files.first, options, &reader, NULL);
    if (status == QN_OK && reader == qn__reader_of_folders() && !qn__source_is_folder(files.first))
        status = qn__source_peek(files.first, first, sizeof first, &got, NULL);
    qn__part_files_release(&files);
    return status == QN_OK && reader == qn__reader_of_folders() && !qn__image_is(first, got);
}

qn_status qn__documents_open(const char *const *paths, size_t count, const qn_data_options *options,
                             qn_data **out, qn_error *err) {
    qn__file_list list;
    qn_status status = qn__host_check(err);
    if (status == QN_OK)
        status = qn__file_list_make(paths, count, 0, &list, err);
    if (status != QN_OK)
        return status;
    status = open_table(&list, options, 1, NULL, out, err);
    qn__file_list_release(&list);
    return status;
}

static qn_status open_any(const char *const *paths, size_t count, const qn_data_options *options,
                          qn_data **out, qn_error *err) {
    qn__file_list list;
    qn_status status = qn__file_list_make(
        paths, count, options->skip_broken || options->resize || options->masks, &list, err);
    if (status != QN_OK)
        return status;
    status = qn__data_open_list(&list, options, NULL, out, err);
    qn__file_list_release(&list);
    return status;
}

qn_status qn_data_open_files(const char *const *paths, size_t count, const qn_data_options *given,
                             qn_data **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(paths, err);
    qn_data_options options;
    const qn_status status = qn__data_options_take(__func__, given, &options, err);
    return status == QN_OK ? open_any(paths, count, &options, out, err) : status;
}

qn_status qn_data_open(const char *path, const qn_data_options *given, qn_data **out,
                       qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    qn_data_options options;
    const qn_status status = qn__data_options_take(__func__, given, &options, err);
    return status == QN_OK ? open_any(&path, 1, &options, out, err) : status;
}
