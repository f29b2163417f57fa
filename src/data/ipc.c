/* The reader of Arrow IPC: streams of messages, and files (Feather version 2), which hold such a
 * stream and a list of its batches behind it. */
#include "base/memory.h"
#include "data/arrow_table.h"
#include "data/ipc.h"
#include "data/readers.h"
#include <errno.h>
#include <string.h>

static const char file_magic[] = "ARROW1";

enum { MAGIC = 6, BEGINNING = 8, CONTINUATION = 4, V4 = 3, V5 = 4 };
/* Fields of the tables, and bytes of a block of the footer: offset, two sizes. */
enum { MESSAGE_VERSION, MESSAGE_KIND, MESSAGE_HEADER, MESSAGE_BODY };
enum { FOOTER_VERSION, FOOTER_SCHEMA, FOOTER_DICTIONARIES, FOOTER_BATCHES };
enum { BLOCK_SIZE = 24 };
enum { DICTIONARY_ID, DICTIONARY_DATA, DICTIONARY_DELTA };

typedef struct ipc {
    const char *path, *unpacked; /* "" or " of the unpacked file", for messages */
    const uint8_t *bytes;
    size_t size;
    qn__pile pile;
    qn__ipc_threads threads;
    qn__ipc_schema schema;
    uint8_t *wanted;
    struct ArrowArray **dictionary; /* of each column; what is left out has an empty one */
    size_t at;                      /* stream: the next message */
    qn__flat footer;                /* file: lists of dictionaries and batches, size 0: stream */
    size_t dictionaries, dictionary_list, batches, batch_list, next;
    double rows;
    qn_status status;
    qn_error *err;
} ipc;

static qn_status refuse_at(const ipc *r, size_t at, const char *remedy) {
    qn__at(r->err, "%s, byte %zu%s", r->path, at, r->unpacked);
    return qn__remedy(r->err, QN_INPUT, "%s", remedy);
}

static qn_status refuse_broken(const ipc *r, size_t at, const char *what) {
    qn__fail(r->err, QN_INPUT, "%s", what);
    return refuse_at(r, at, "copy the file, or write it again");
}

/* What and remedy are set, unless memory is short. */
static qn_status refuse_message(const ipc *r, const qn__ipc_message *m, qn_status status) {
    if (status == QN_INPUT || status == QN_UNSUPPORTED)
        qn__at(r->err, "%s, the message at byte %zu%s", r->path, m->at, r->unpacked);
    return status;
}

static size_t number_at(const ipc *r, size_t at) {
    return (size_t)r->bytes[at] | (size_t)r->bytes[at + 1] << 8 | (size_t)r->bytes[at + 2] << 16 |
           (size_t)r->bytes[at + 3] << 24;
}

/* ------------------------------------------------------------------ messages */

static qn_status describe(const ipc *r, qn__ipc_message *m) {
    qn__flat *flat = &m->flat;
    const size_t root = (size_t)(uint32_t)qn__flat_number(flat, 0, 4);
    m->version = (int)qn__flat_get(flat, root, MESSAGE_VERSION, 2, 0);
    m->kind = (int)qn__flat_get(flat, root, MESSAGE_KIND, 1, 0);
    m->header = qn__flat_table(flat, root, MESSAGE_HEADER);
    const int64_t size = qn__flat_get(flat, root, MESSAGE_BODY, 8, 0);
    m->body = flat->bytes + flat->size;
    if (flat->broken || m->header == 0)
        return refuse_broken(r, m->at, "a message of the Arrow file is broken");
    if (m->version < V4) {
        qn__fail(r->err, QN_INPUT, "the Arrow file is of a version before 0.8");
        return refuse_at(r, m->at, "write it again with a newer version of its program");
    }
    if (size < 0 || (uint64_t)size > r->size - (size_t)(m->body - r->bytes))
        return refuse_broken(r, m->at, "the Arrow file ends inside a message");
    m->body_size = (size_t)size;
    return QN_OK;
}

/* The message at byte `at`; kind 0: the stream ends there. */
static qn_status take_message(const ipc *r, size_t at, qn__ipc_message *m) {
    *m = (qn__ipc_message){.at = at};
    if (at == r->size)
        return QN_OK; /* a stream may end without saying so */
    if (at > r->size || r->size - at < 2 * CONTINUATION)
        return refuse_broken(r, at, "the Arrow file ends inside a message");
    size_t begin = at + CONTINUATION, size = number_at(r, at);
    if (size == 0xFFFFFFFF) { /* before version 0.15 messages began with their size */
        size = number_at(r, begin);
        begin += CONTINUATION;
    }
    if (size == 0)
        return QN_OK;
    if (size > r->size - begin)
        return refuse_broken(r, at, "the Arrow file ends inside a message");
    m->flat = (qn__flat){.bytes = r->bytes + begin, .size = size};
    return describe(r, m);
}

/* The next message of dictionaries or rows; kind 0: there is none. */
static qn_status next_message(ipc *r, qn__ipc_message *m) {
    size_t at = r->at;
    if (r->footer.size > 0) {
        *m = (qn__ipc_message){0};
        if (r->next == r->dictionaries + r->batches)
            return QN_OK;
        const size_t block = r->next < r->dictionaries
                                 ? r->dictionary_list + BLOCK_SIZE * r->next
                                 : r->batch_list + BLOCK_SIZE * (r->next - r->dictionaries);
        at = (size_t)qn__flat_number(&r->footer, block, 8);
        r->next++;
    }
    const qn_status status = take_message(r, at, m);
    if (status == QN_OK && m->kind != 0)
        r->at = (size_t)(m->body + m->body_size - r->bytes);
    return status;
}

/* ------------------------------------------------------------------ the schema */

/* The list behind the stream: its size and the magic number end the file. */
static qn_status find_footer(ipc *r) {
    const size_t end = r->size - MAGIC - 4;
    if (r->size < BEGINNING + MAGIC + 4 || memcmp(r->bytes + end + 4, file_magic, MAGIC) != 0)
        return refuse_broken(r, r->size, "the Arrow file is cut off");
    const size_t size = number_at(r, end);
    if (size > end - BEGINNING || size < 4)
        return refuse_broken(r, end, "the list of batches of the Arrow file is broken");
    r->footer = (qn__flat){.bytes = r->bytes + end - size, .size = size};
    qn__flat *flat = &r->footer;
    const size_t root = (size_t)(uint32_t)qn__flat_number(flat, 0, 4);
    r->dictionary_list =
        qn__flat_vector(flat, root, FOOTER_DICTIONARIES, BLOCK_SIZE, &r->dictionaries);
    r->batch_list = qn__flat_vector(flat, root, FOOTER_BATCHES, BLOCK_SIZE, &r->batches);
    const size_t schema = qn__flat_table(flat, root, FOOTER_SCHEMA);
    const int version = (int)qn__flat_get(flat, root, FOOTER_VERSION, 2, 0);
    if (flat->broken)
        return refuse_broken(r, end - size, "the list of batches of the Arrow file is broken");
    const qn_status status =
        qn__ipc_read_schema(flat, schema, version, &r->pile, &r->schema, r->err);
    if (status == QN_INPUT)
        qn__at(r->err, "%s, byte %zu%s", r->path, end - size, r->unpacked);
    return status;
}

static qn_status find_schema(ipc *r) {
    qn__ipc_message m;
    if (memcmp(r->bytes, file_magic, MAGIC) == 0)
        return find_footer(r);
    const qn_status status = next_message(r, &m);
    if (status != QN_OK)
        return status;
    if (m.kind != QN__IPC_SCHEMA)
        return refuse_broken(r, 0, "the Arrow stream does not begin with its columns");
    return refuse_message(
        r, &m, qn__ipc_read_schema(&m.flat, m.header, m.version, &r->pile, &r->schema, r->err));
}

static qn_status make_schema(ipc *r, struct ArrowSchema *out) {
    qn_status status = find_schema(r);
    if (status != QN_OK)
        return status;
    const size_t columns = r->schema.columns;
    qn__column_type *type = qn__pile_alloc(&r->pile, columns, sizeof *type, r->err);
    struct ArrowArray *empty = qn__pile_alloc(&r->pile, 1, sizeof *empty, r->err);
    r->wanted = qn__pile_alloc(&r->pile, columns, 1, r->err);
    r->dictionary = qn__pile_alloc(&r->pile, columns, sizeof *r->dictionary, r->err);
    if (!type || !empty || !r->wanted || !r->dictionary)
        return QN_MEMORY;
    for (size_t i = 0; i < columns; i++) {
        const qn__ipc_column *column = &r->schema.column[i];
        type[i] = (qn__column_type){column->name, column->type.format,
                                    column->has_dictionary ? column->values.format : NULL};
        r->dictionary[i] = column->has_dictionary ? empty : NULL;
        r->wanted[i] = 1;
    }
    return qn__parts_schema(&r->pile, type, columns, out, r->err);
}

/* ------------------------------------------------------------------ batches */

/* The values of all columns that have this dictionary. They all have one type. */
static qn_status take_dictionary(ipc *r, const qn__ipc_message *m) {
    static const uint8_t wanted[1] = {1};
    qn__flat flat = m->flat;
    const int64_t id = qn__flat_get(&flat, m->header, DICTIONARY_ID, 8, 0);
    const size_t batch = qn__flat_table(&flat, m->header, DICTIONARY_DATA);
    const int delta = qn__flat_get(&flat, m->header, DICTIONARY_DELTA, 1, 0) != 0;
    for (size_t i = 0; i < r->schema.columns; i++) {
        qn__ipc_column *column = &r->schema.column[i];
        if (!column->has_dictionary || column->dictionary != id || !r->wanted[i])
            continue;
        if (delta) {
            qn__fail(r->err, QN_INPUT, "a dictionary of the Arrow file grows from batch to batch");
            return refuse_at(r, m->at, "write the table with one dictionary for each column");
        }
        if (*column->values.format == '+')
            continue; /* it is refused by its type */
        qn__ipc_column values = {.type = column->values, .nodes = 1};
        const qn__ipc_schema schema = {
            .column = &values, .columns = 1, .node = &values.type, .nodes = 1};
        struct ArrowArray part;
        const qn_status status =
            qn__ipc_read_batch(m, batch, &schema, wanted, NULL, NULL, &r->pile, &part, r->err);
        if (status != QN_OK)
            return refuse_message(r, m, status);
        r->dictionary[i] = part.children[0];
    }
    return QN_OK;
}

static qn_status take_batch(ipc *r, const qn__ipc_message *m, struct ArrowArray *out) {
    const qn_status status = qn__ipc_read_batch(m, m->header, &r->schema, r->wanted, r->dictionary,
                                                &r->threads, &r->pile, out, r->err);
    if (status != QN_OK)
        return refuse_message(r, m, status);
    r->rows += (double)out->length;
    return qn__parts_check_rows(r->rows, r->wanted, r->schema.columns, r->size, r->path, r->err);
}

static qn_status next_part(ipc *r, struct ArrowArray *out) {
    for (;;) {
        qn__ipc_message m;
        qn_status status = next_message(r, &m);
        if (status != QN_OK || m.kind == 0)
            return status;
        if (m.kind == QN__IPC_BATCH)
            return take_batch(r, &m, out);
        if (m.kind == QN__IPC_DICTIONARY)
            status = take_dictionary(r, &m);
        if (status != QN_OK)
            return status;
    }
}

/* ------------------------------------------------------------------ the stream */

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    ipc *r = stream->private_data;
    r->status = make_schema(r, out);
    return r->status == QN_OK ? 0 : EINVAL;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    ipc *r = stream->private_data;
    *out = (struct ArrowArray){0};
    r->status = next_part(r, out);
    return r->status == QN_OK ? 0 : EINVAL;
}

static void want(struct ArrowArrayStream *stream, const uint8_t *wanted) {
    ipc *r = stream->private_data;
    memcpy(r->wanted, wanted, r->schema.columns);
}

static void nothing_to_release(struct ArrowArrayStream *stream) { stream->release = NULL; }

static qn_status fill_from(ipc *r, const qn_data_options *options, qn_data *data, qn_error *err) {
    struct ArrowArrayStream stream = {.get_schema = get_schema,
                                      .get_next = get_next,
                                      .release = nothing_to_release,
                                      .private_data = r};
    const qn__arrow_source source = {.stream = &stream,
                                     .name = r->path,
                                     .status = &r->status,
                                     .want = want,
                                     .pool = r->threads.pool};
    return qn__arrow_fill(&source, options, data, err);
}

static qn_status read_ipc(qn__source *source, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    qn__contents contents;
    qn_status status = qn__parts_need_little_endian(qn__source_path(source), err);
    if (status == QN_OK)
        status = qn__source_contents(source, &contents, err);
    if (status != QN_OK)
        return status;
    ipc r = {.path = qn__source_path(source),
             .unpacked = qn__source_packing(source) ? " of the unpacked file" : "",
             .bytes = (const uint8_t *)contents.data,
             .size = contents.size,
             .threads = {pool, NULL},
             .err = err};
    const int threads = qn__pool_threads(pool);
    r.threads.pile = qn__alloc((uint64_t)threads, sizeof *r.threads.pile, err);
    status = r.threads.pile ? fill_from(&r, options, data, err) : QN_MEMORY;
    for (int i = 0; r.threads.pile && i < threads; i++)
        qn__pile_release(&r.threads.pile[i]);
    qn__free(r.threads.pile);
    qn__pile_release(&r.pile);
    qn__contents_release(&contents);
    return status;
}

static int probe_ipc(const uint8_t *first, size_t size, const char *path) {
    (void)path;
    const int is_file = size >= BEGINNING && memcmp(first, "ARROW1\0\0", BEGINNING) == 0,
              is_stream = size >= BEGINNING && memcmp(first, "\xFF\xFF\xFF\xFF", 4) == 0 &&
                          first[6] == 0 && first[7] == 0 && (first[4] & 7) == 0;
    return is_file || is_stream ? QN__PROBE_MAGIC : QN__PROBE_NO;
}

const qn__reader qn__ipc_reader = {
    .name = "arrow",
    .gzip_name = "arrow.gz",
    .zstd_name = "arrow.zst",
    .columns = 1,
    .typed = 1,
    .weights = 1,
    .quantities = 1,
    .labels_remedy = "name its column with `data.label_column`",
    .probe = probe_ipc,
    .read = read_ipc,
};
