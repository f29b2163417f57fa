/* The producer shares our memory and is trusted not to lie about sizes of buffers, which the
 * interface does not tell; all that it does tell is checked. */
#include "data/arrow/arrow_table.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

static const char *name_of(const qn__arrow_table *table, uint64_t column) {
    const char *name = table->schema.children[column]->name;
    return name ? name : "";
}

qn_status qn__arrow_refuse(const qn__arrow_table *table, uint64_t column, uint64_t item,
                           const char *remedy, qn_error *err) {
    const char *name = name_of(table, column);
    char of_item[40] = "";
    const char *file = table->name;
    if (item != QN__ARROW_NO_ITEM && table->source && table->source->place)
        file = table->source->place(table->source->stream, &item);
    if (item != QN__ARROW_NO_ITEM)
        snprintf(of_item, sizeof of_item, ", item %llu", (unsigned long long)item);
    qn__at(err, "%s%s, column %llu%s%.80s", file, of_item, (unsigned long long)column + 1,
           *name ? ", " : "", name);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* ------------------------------------------------------------------ the stream */

static qn_status refuse_table(const qn__arrow_table *table, const char *what, const char *remedy,
                              qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s", table->name);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static qn_status fail_stream(const qn__arrow_source *source, int code, qn_error *err) {
    struct ArrowArrayStream *stream = source->stream;
    if (source->status && *source->status == QN_MEMORY && source->pieces)
        return qn__remedy(err, QN_MEMORY,
                          "write the file with smaller %s, or use a machine or a limit (ulimit) "
                          "with more memory",
                          source->pieces);
    if (source->status && *source->status != QN_OK)
        return *source->status;
    if (source->status)
        return qn__fail_memory(err, 1, 1 << 16);
    const char *told = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    qn__fail(err, QN_INPUT, "the Arrow stream failed: %.200s", told ? told : strerror(code));
    qn__at(err, "%s", source->name);
    return qn__remedy(err, QN_INPUT, "correct the error in the program that made the stream");
}

static qn_status check_schema(const qn__arrow_table *table, qn_error *err) {
    const struct ArrowSchema *schema = &table->schema;
    int whole = schema->release && schema->format && schema->n_children >= 0 &&
                schema->n_children <= UINT32_MAX;
    if (whole && strcmp(schema->format, "+s") != 0) {
        qn__fail(err, QN_INPUT, "the Arrow stream has the type \"%.20s\", which is not a table",
                 schema->format);
        qn__at(err, "%s", table->name);
        return qn__remedy(err, QN_INPUT,
                          "give a stream of record batches (\"+s\"), such as a table's");
    }
    for (int64_t i = 0; whole && i < schema->n_children; i++)
        whole = schema->children && schema->children[i] && schema->children[i]->format;
    if (!whole || schema->n_children == 0)
        return refuse_table(table, "the table has no columns",
                            "give a table with at least one column", err);
    return QN_OK;
}

static int is_whole(const struct ArrowArray *array, const struct ArrowSchema *schema,
                    int64_t least) {
    return array && array->length >= least && array->offset >= 0 && array->n_buffers >= 0 &&
           array->length <= INT64_MAX - array->offset && array->n_children == schema->n_children &&
           !array->dictionary == !schema->dictionary && (array->n_buffers == 0 || array->buffers);
}

/* Whether rows are null as a whole; a count of -1 is unknown. */
static int has_null_rows(const struct ArrowArray *part) {
    const uint8_t *valid = part->n_buffers > 0 ? part->buffers[0] : NULL;
    if (part->null_count >= 0 || !valid)
        return part->null_count > 0;
    for (int64_t i = part->offset; i < part->offset + part->length; i++)
        if (!(valid[i / 8] >> i % 8 & 1))
            return 1;
    return 0;
}

static qn_status check_part(const qn__arrow_table *table, const struct ArrowArray *part,
                            qn_error *err) {
    int whole = is_whole(part, &table->schema, 0) && part->children;
    const int64_t rows = whole ? part->length + part->offset : 0;
    for (uint64_t i = 0; whole && i < table->columns; i++) {
        const struct ArrowSchema *type = table->schema.children[i];
        const struct ArrowArray *column = part->children[i];
        whole = is_whole(column, type, rows) &&
                (!type->dictionary || is_whole(column->dictionary, type->dictionary, 0));
    }
    if (!whole)
        return refuse_table(table, "a part of the table does not have the shape of its schema",
                            "correct the program that made the stream", err);
    if (has_null_rows(part))
        return refuse_table(table, "the table has rows that are null as a whole",
                            "leave these rows out", err);
    return QN_OK;
}

/* The part moves into the table, unless it has no rows. */
static qn_status keep_part(qn__arrow_table *table, struct ArrowArray *part, qn_error *err) {
    if (table->parts == table->capacity) {
        const uint64_t capacity = table->capacity ? 2 * table->capacity : 16;
        struct ArrowArray *more = qn__alloc(capacity, sizeof *more, err);
        if (!more)
            return QN_MEMORY;
        if (table->parts)
            memcpy(more, table->part, table->parts * sizeof *more);
        qn__free(table->part);
        table->part = more;
        table->capacity = capacity;
    }
    table->part[table->parts++] = *part;
    table->rows += (uint64_t)part->length;
    part->release = NULL;
    return QN_OK;
}

static qn_status take_parts(const qn__arrow_source *source, qn__arrow_table *table, qn_error *err) {
    struct ArrowArrayStream *stream = source->stream;
    for (;;) {
        struct ArrowArray part = {0};
        const int code = stream->get_next(stream, &part);
        if (code != 0)
            return fail_stream(source, code, err);
        table->ended = !part.release;
        if (table->ended)
            return QN_OK;
        qn_status status = check_part(table, &part, err);
        if (status == QN_OK && part.length > 0)
            status = keep_part(table, &part, err);
        if (part.release)
            part.release(&part);
        const int is_full = source->portion_rows > 0 && table->rows >= source->portion_rows;
        if (status != QN_OK || is_full)
            return status;
    }
}

qn_status qn__arrow_read_schema(const qn__arrow_source *source, qn__arrow_table *table,
                                qn_error *err) {
    struct ArrowArrayStream *stream = source->stream;
    *table = (qn__arrow_table){.name = source->name, .source = source, .pool = source->pool};
    if (!stream->release)
        return refuse_table(table, "the Arrow stream is released already",
                            "a stream can be read once: export the table again", err);
    const int code = stream->get_schema(stream, &table->schema);
    if (code != 0)
        return fail_stream(source, code, err);
    const qn_status status = check_schema(table, err);
    if (status == QN_OK)
        table->columns = (uint64_t)table->schema.n_children;
    return status;
}

static qn_status refuse_rows(const qn__arrow_table *table, qn_error *err) {
    return refuse_table(table, "the file changed while it was read",
                        "read it when nothing writes to it any more", err);
}

/* Space is made for the items that are known, so there must not be more. */
static qn_status check_rows(qn__arrow_table *table, qn_error *err) {
    table->is_empty = table->items == 0;
    if (table->is_empty)
        return refuse_table(table, "the table has no rows", "give a table with at least one row",
                            err);
    return table->rows <= table->items - table->first ? QN_OK : refuse_rows(table, err);
}

qn_status qn__arrow_read_parts(const qn__arrow_source *source, qn__arrow_table *table,
                               qn_error *err) {
    int code = 0;
    if (source->rows && table->first == 0)
        code = source->rows(source->stream, &table->items);
    if (code != 0)
        return fail_stream(source, code, err);
    const qn_status status = take_parts(source, table, err);
    if (status == QN_OK && !source->rows)
        table->items = table->first + table->rows;
    return status == QN_OK ? check_rows(table, err) : status;
}

static void release_parts(qn__arrow_table *table) {
    for (uint64_t i = 0; i < table->parts; i++)
        if (table->part[i].release)
            table->part[i].release(&table->part[i]);
    table->parts = 0;
}

int qn__arrow_next_portion(const qn__arrow_source *source, qn__arrow_table *table) {
    release_parts(table);
    table->first += table->rows;
    table->rows = 0;
    return source->more ? source->more(source->stream) : !table->ended;
}

qn_status qn__arrow_check_end(const qn__arrow_table *table, qn_error *err) {
    return table->first == table->items ? QN_OK : refuse_rows(table, err);
}

void qn__arrow_release(qn__arrow_table *table) {
    release_parts(table);
    qn__free(table->part);
    if (table->schema.release)
        table->schema.release(&table->schema);
    *table = (qn__arrow_table){0};
}
