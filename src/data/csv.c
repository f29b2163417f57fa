/* The CSV reader: takes the shape of the table from the first line, counts the lines, then parses.
 *
 * The text is divided into blocks of 1 MiB; a line belongs to the block in which it begins. Threads
 * count the lines of all blocks, which gives each block its first row. They then parse the blocks
 * into the table, first as bytes. If any cell is not a whole number up to 255, they parse again as
 * float32. If several rows are invalid, the first one is reported, whichever thread finds it.
 * Quoted cells may contain separators, but line ends only in the header, so that any thread can
 * find the start of a line. */
#include "base/memory.h"
#include "base/text.h"
#include "data/csv.h"
#include "data/csv_header.h"
#include "data/csv_text.h"
#include "data/readers.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)1 << 20)

typedef struct table {
    const qn__csv_header *header;
    qn__csv_text *text;
    size_t begin, size; /* the lines after the header: offset and bytes */
    size_t block_count;
    uint64_t *first_row; /* of each block, and after the last the number of rows */
    /* The current pass. */
    qn_data_type type;
    uint8_t *values;
    int32_t *labels;
    atomic_size_t next;
    atomic_size_t failed; /* the lowest block with an invalid row, or SIZE_MAX */
    pthread_mutex_t lock; /* for failure */
    qn__row_failure failure;
} table;

/* The offset of the byte before a block, which shows whether a line begins with the block. */
static size_t before(size_t block) { return block * BLOCK - (block > 0); }

static void count_lines(void *context, int thread) {
    table *t = context;
    size_t block;
    while ((block = atomic_fetch_add(&t->next, 1)) < t->block_count) {
        const size_t after = (block + 1) * BLOCK - 1, from = before(block);
        const size_t size = (after < t->size ? after : t->size) - from;
        const char *at = qn__csv_text_at(t->text, thread, t->begin + from, size);
        if (!at)
            return;
        uint64_t count = block == 0;
        for (const char *p = at; p < at + size && (p = memchr(p, '\n', size - (size_t)(p - at)));
             p++)
            count++;
        t->first_row[block + 1] = count;
    }
}

static qn_status count_rows(table *t, qn__pool *pool, qn_error *err) {
    t->block_count = t->size / BLOCK + (t->size % BLOCK != 0);
    t->first_row = qn__alloc(t->block_count + 1, sizeof *t->first_row, err);
    if (!t->first_row)
        return QN_MEMORY;
    atomic_store(&t->next, 0);
    qn__pool_run(pool, count_lines, t);
    for (size_t i = 0; i < t->block_count; i++)
        t->first_row[i + 1] += t->first_row[i];
    return qn__csv_text_status(t->text, err);
}

static void note_failure(table *t, size_t block, const qn__row_failure *failure) {
    pthread_mutex_lock(&t->lock);
    if (block < atomic_load(&t->failed)) {
        atomic_store(&t->failed, block);
        t->failure = *failure;
    }
    pthread_mutex_unlock(&t->lock);
}

/* The lines that begin in a block, of which there is at least one: *at is the start of the first,
 * *end the end of the last. 0 if they cannot be read. */
static int block_lines(const table *t, int thread, size_t block, const char **at,
                       const char **end) {
    const size_t from = before(block), last = (block + 1) * BLOCK - 1;
    for (size_t more = BLOCK / 16;; more *= 2) {
        const size_t left = t->size - from;
        const size_t size = left < BLOCK + more ? left : BLOCK + more;
        const char *text = qn__csv_text_at(t->text, thread, t->begin + from, size);
        if (!text)
            return 0;
        *end = last < from + size ? memchr(text + (last - from), '\n', from + size - last) : NULL;
        if (!*end && size < left)
            continue;
        *end = *end ? *end : text + size;
        *at = block > 0 ? memchr(text, '\n', size) : text;
        *at = *at && block > 0 ? *at + 1 : *at;
        return *at != NULL; /* NULL only if the file has changed since its lines were counted */
    }
}

static void parse_block(table *t, int thread, size_t block) {
    const qn__csv_shape *shape = &t->header->shape;
    const char *at, *end;
    uint64_t row = t->first_row[block], last = t->first_row[block + 1];
    if (row == last)
        return;
    if (!block_lines(t, thread, block, &at, &end)) {
        note_failure(t, block, &(qn__row_failure){.fault = QN__ROW_BLANK, .row = row});
        return;
    }
    const char *begin = at;
    size_t stride = (size_t)shape->features * (t->type == QN_F32 ? sizeof(float) : 1);
    for (; row < last; row++) {
        qn__row_failure failure = {.fault = QN__ROW_FINE};
        void *values = t->values + (size_t)row * stride;
        int32_t *label = t->labels ? t->labels + row : NULL;
        at = t->type == QN_U8 ? qn__row_bytes(shape, at, end, values, label)
                              : qn__row_floats(shape, at, end, values, label, &failure);
        if (!at) {
            failure.row = row;
            note_failure(t, block, &failure);
            return;
        }
    }
    if (t->type == QN_F32) /* the last pass */
        qn__csv_text_forget(t->text, begin, at);
}

static void parse_blocks(void *context, int thread) {
    table *t = context;
    size_t block;
    /* Blocks are taken in ascending order, so all below a failed one are parsed completely. */
    while ((block = atomic_fetch_add(&t->next, 1)) < t->block_count &&
           block < atomic_load(&t->failed))
        parse_block(t, thread, block);
}

/* Parses all rows into the table; 1 if all are valid. */
static int parse_rows(table *t, qn__pool *pool) {
    atomic_store(&t->next, 0);
    atomic_store(&t->failed, SIZE_MAX);
    qn__pool_run(pool, parse_blocks, t);
    return atomic_load(&t->failed) == SIZE_MAX;
}

/* If the text is too short for the cells that the first line promises, some line is invalid.
 * Finding it needs memory for one row, not for the table. */
static qn_status find_short_row(table *t, qn_error *err) {
    const qn__csv_shape *shape = &t->header->shape;
    const char *at = qn__csv_text_at(t->text, 0, t->begin, t->size), *end = at ? at + t->size : at;
    if (!at)
        return qn__csv_text_status(t->text, err);
    float *values = qn__alloc(shape->features, sizeof *values, err);
    if (!values)
        return QN_MEMORY;
    int32_t label;
    while (at && at < end) {
        at = qn__row_floats(shape, at, end, values, &label, &t->failure);
        t->failure.row += at != NULL;
    }
    qn__free(values);
    return at ? qn__fail(err, QN_INPUT, "the file changed while it was read")
              : qn__csv_refuse_row(t->header, &t->failure, err);
}

/* Allocates the table as one type. The size of the text bounds it: each cell but the last needs a
 * separator. */
static qn_status make_room(table *t, qn_data *data, qn_data_type type, qn_error *err) {
    qn__free(data->memory);
    data->type = type;
    data->release = qn__free;
    data->memory = qn__alloc(data->items, qn__data_stride(data), err);
    data->values = data->memory;
    t->type = type;
    t->values = data->memory;
    return data->memory ? QN_OK : QN_MEMORY;
}

static qn_status fill(table *t, qn__pool *pool, qn_data *data, qn_error *err) {
    const qn__csv_shape *shape = &t->header->shape;
    data->items = t->first_row[t->block_count];
    data->features = shape->features;
    /* a line has columns - 1 separators, at least one character for each number, and a line end */
    uint64_t bytes = (uint64_t)t->size + 1;
    if (data->items > bytes / shape->columns / 2)
        return find_short_row(t, err);
    if (shape->label < shape->columns) {
        data->labels = qn__alloc(data->items, sizeof *data->labels, err);
        if (!data->labels)
            return QN_MEMORY;
        t->labels = data->labels;
    }
    qn_status status = make_room(t, data, QN_U8, err);
    if (status != QN_OK || parse_rows(t, pool))
        return status;
    status = qn__csv_text_status(t->text, err);
    if (status == QN_OK)
        status = make_room(t, data, QN_F32, err);
    if (status != QN_OK || parse_rows(t, pool))
        return status;
    status = qn__csv_text_status(t->text, err);
    return status != QN_OK ? status : qn__csv_refuse_row(t->header, &t->failure, err);
}

static qn_status read_table(qn__csv_text *text, const char *path, const qn_data_options *options,
                            qn__pool *pool, qn_data *data, qn_error *err) {
    qn__csv_header header;
    size_t begin, size;
    qn_status status = qn__csv_text_header(text, path, options, &header, &begin, &size, err);
    if (status != QN_OK)
        return status;
    table t = {.header = &header, .text = text, .begin = begin, .size = size};
    pthread_mutex_init(&t.lock, NULL);
    status = count_rows(&t, pool, err);
    if (status == QN_OK)
        status = fill(&t, pool, data, err);
    pthread_mutex_destroy(&t.lock);
    qn__free(t.first_row);
    if (status == QN_OK)
        data->names = qn__csv_header_take_names(&header);
    qn__csv_header_release(&header);
    return status;
}

qn_status qn__csv_read(qn__source *source, const qn_data_options *options, qn__pool *pool,
                       qn_data *data, qn_error *err) {
    qn__csv_text *text;
    qn_status status = qn__csv_text_open(source, qn__pool_threads(pool), &text, err);
    if (status != QN_OK)
        return status;
    status = read_table(text, qn__source_path(source), options, pool, data, err);
    qn__csv_text_close(text);
    return status;
}
