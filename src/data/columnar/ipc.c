/* The reader of Arrow IPC: streams of messages, and files (Feather version 2), which hold such a
 * stream and a list of its batches after it. A portion is as many batches as fit into a part of
 * the memory, or one. */
#include "data/columnar/ipc.h"
#include "base/memory.h"
#include "data/arrow/arrow_portions.h"
#include "data/arrow/pandas_index.h"
#include "data/bytes/descriptor.h"
#include "data/cells/readers.h"
#include <string.h>

static const char file_magic[] = "ARROW1";

enum { MAGIC = 6, BEGINNING = 8, CONTINUATION = 4, V4 = 3, V5 = 4 };
/* Fields of the tables, and bytes of a block of the footer: offset, two sizes. */
enum { MESSAGE_VERSION, MESSAGE_KIND, MESSAGE_HEADER, MESSAGE_BODY };
enum { FOOTER_VERSION, FOOTER_SCHEMA, FOOTER_DICTIONARIES, FOOTER_BATCHES };
enum { BLOCK_SIZE = 24 };
enum { DICTIONARY_ID, DICTIONARY_DATA, DICTIONARY_DELTA };

typedef struct ipc {
    qn__portions base;
    const char *path, *unpacked; /* "" or " of the unpacked file", for messages */
    const uint8_t *bytes;  /* of an unpacked file; NULL: they are read where they are needed */
    qn__contents contents; /* the same */
    int file;
    size_t size;
    qn__pile pile;
    qn__pile portion; /* what the batches of this portion take, with the piles of the threads */
    uint64_t most;    /* bytes of a portion */
    size_t given;     /* batches of it, and the bytes of the last one */
    uint64_t last;
    int ended; /* no batch follows */
    qn__ipc_threads threads;
    qn__ipc_schema schema;
    struct ArrowArray **dictionary; /* of each column; what is left out has an empty one */
    size_t at;                      /* stream: the next message */
    qn__flat footer;                /* file: lists of dictionaries and batches, size 0: stream */
    size_t dictionaries, dictionary_list, batches, batch_list, next;
} ipc;

static qn_status refuse_at(const ipc *r, size_t at, const char *remedy) {
    qn__at(r->base.err, "%s, byte %zu%s", r->path, at, r->unpacked);
    return qn__remedy(r->base.err, QN_INPUT, "%s", remedy);
}

static qn_status refuse_broken(const ipc *r, size_t at, const char *what) {
    qn__fail(r->base.err, QN_INPUT, "%s", what);
    return refuse_at(r, at, "copy the file, or write it again");
}

/* What and remedy are set, unless memory is short. */
static qn_status refuse_message(const ipc *r, const qn__ipc_message *m, qn_status status) {
    if (status == QN_INPUT || status == QN_UNSUPPORTED)
        qn__at(r->base.err, "%s, the message at byte %zu%s", r->path, m->at, r->unpacked);
    return status;
}

/* `size` bytes of the file from `at`, which it has; the pile's. */
static qn_status take_bytes(const ipc *r, size_t at, size_t size, qn__pile *pile,
                            const uint8_t **out) {
    if (r->bytes) {
        *out = r->bytes + at;
        return QN_OK;
    }
    uint8_t *bytes = qn__pile_alloc(pile, size, 1, r->base.err);
    *out = bytes;
    return bytes ? qn__descriptor_read_at(r->file, r->path, at, bytes, size, r->base.err)
                 : QN_MEMORY;
}

static qn_status copy_bytes(const ipc *r, size_t at, size_t size, uint8_t *to) {
    if (!r->bytes)
        return qn__descriptor_read_at(r->file, r->path, at, to, size, r->base.err);
    memcpy(to, r->bytes + at, size);
    return QN_OK;
}

static size_t number_of(const uint8_t bytes[4]) {
    return (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 |
           (size_t)bytes[3] << 24;
}

/* ------------------------------------------------------------------ messages */

static qn_status describe(const ipc *r, qn__ipc_message *m) {
    qn__flat *flat = &m->flat;
    const size_t root = (size_t)(uint32_t)qn__flat_number(flat, 0, 4);
    m->version = (int)qn__flat_get(flat, root, MESSAGE_VERSION, 2, 0);
    m->kind = (int)qn__flat_get(flat, root, MESSAGE_KIND, 1, 0);
    m->header = qn__flat_table(flat, root, MESSAGE_HEADER);
    const int64_t size = qn__flat_get(flat, root, MESSAGE_BODY, 8, 0);
    if (flat->broken || m->header == 0)
        return refuse_broken(r, m->at, "a message of the Arrow file is broken");
    if (m->version < V4) {
        qn__fail(r->base.err, QN_INPUT, "the Arrow file is of a version before 0.8");
        return refuse_at(r, m->at, "write it again with a newer version of its program");
    }
    if (size < 0 || (uint64_t)size > r->size - m->body_at)
        return refuse_broken(r, m->at, "the Arrow file ends inside a message");
    m->body_size = (size_t)size;
    return QN_OK;
}

/* The message at byte `at`, without its body; kind 0: the stream ends there. */
static qn_status take_message(const ipc *r, size_t at, qn__pile *pile, qn__ipc_message *m) {
    uint8_t head[2 * CONTINUATION];
    *m = (qn__ipc_message){.at = at};
    if (at == r->size)
        return QN_OK; /* a stream may end without saying so */
    if (at > r->size || r->size - at < sizeof head)
        return refuse_broken(r, at, "the Arrow file ends inside a message");
    qn_status status = copy_bytes(r, at, sizeof head, head);
    if (status != QN_OK)
        return status;
    size_t begin = at + CONTINUATION, size = number_of(head);
    if (size == 0xFFFFFFFF) { /* before version 0.15 messages began with their size */
        size = number_of(head + CONTINUATION);
        begin += CONTINUATION;
    }
    if (size == 0)
        return QN_OK;
    if (size > r->size - begin)
        return refuse_broken(r, at, "the Arrow file ends inside a message");
    m->body_at = begin + size;
    m->flat.size = size;
    status = take_bytes(r, begin, size, pile, &m->flat.bytes);
    return status == QN_OK ? describe(r, m) : status;
}

static qn_status take_body(const ipc *r, qn__pile *pile, qn__ipc_message *m) {
    return take_bytes(r, m->body_at, m->body_size, pile, &m->body);
}

/* The next message of dictionaries or rows; kind 0: there is none. */
static qn_status next_message(ipc *r, qn__pile *pile, qn__ipc_message *m) {
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
    const qn_status status = take_message(r, at, pile, m);
    if (status == QN_OK && m->kind != 0)
        r->at = m->body_at + m->body_size;
    return status;
}

/* ------------------------------------------------------------------ the schema */

/* The list that follows the stream: its size and the magic number end the file. */
static qn_status find_footer(ipc *r) {
    uint8_t tail[4 + MAGIC];
    const size_t end = r->size - sizeof tail;
    qn_status status =
        r->size < BEGINNING + sizeof tail ? QN_INPUT : copy_bytes(r, end, sizeof tail, tail);
    if (status == QN_INPUT || (status == QN_OK && memcmp(tail + 4, file_magic, MAGIC) != 0))
        return refuse_broken(r, r->size, "the Arrow file is cut off");
    if (status != QN_OK)
        return status;
    const size_t size = number_of(tail);
    if (size > end - BEGINNING || size < 4)
        return refuse_broken(r, end, "the list of batches of the Arrow file is broken");
    qn__flat *flat = &r->footer;
    status = take_bytes(r, end - size, size, &r->pile, &flat->bytes);
    if (status != QN_OK)
        return status;
    flat->size = size;
    const size_t root = (size_t)(uint32_t)qn__flat_number(flat, 0, 4);
    r->dictionary_list =
        qn__flat_vector(flat, root, FOOTER_DICTIONARIES, BLOCK_SIZE, &r->dictionaries);
    r->batch_list = qn__flat_vector(flat, root, FOOTER_BATCHES, BLOCK_SIZE, &r->batches);
    const size_t schema = qn__flat_table(flat, root, FOOTER_SCHEMA);
    const int version = (int)qn__flat_get(flat, root, FOOTER_VERSION, 2, 0);
    if (flat->broken)
        return refuse_broken(r, end - size, "the list of batches of the Arrow file is broken");
    status = qn__ipc_read_schema(flat, schema, version, &r->pile, &r->schema, r->base.err);
    if (status == QN_INPUT)
        qn__at(r->base.err, "%s, byte %zu%s", r->path, end - size, r->unpacked);
    return status;
}

static qn_status find_schema(ipc *r) {
    qn__ipc_message m;
    uint8_t first[MAGIC];
    qn_status status = copy_bytes(r, 0, MAGIC, first);
    if (status == QN_OK && memcmp(first, file_magic, MAGIC) == 0)
        return find_footer(r);
    if (status == QN_OK)
        status = next_message(r, &r->pile, &m);
    if (status != QN_OK)
        return status;
    if (m.kind != QN__IPC_SCHEMA)
        return refuse_broken(r, 0, "the Arrow stream does not begin with its columns");
    return refuse_message(
        r, &m,
        qn__ipc_read_schema(&m.flat, m.header, m.version, &r->pile, &r->schema, r->base.err));
}

static qn_status make_schema(qn__portions *reader, struct ArrowSchema *out) {
    ipc *r = (ipc *)reader;
    qn_status status = find_schema(r);
    if (status != QN_OK)
        return status;
    const size_t columns = r->schema.columns;
    r->base.columns = columns;
    qn__column_type *type = qn__pile_alloc(&r->pile, columns, sizeof *type, r->base.err);
    struct ArrowArray *empty = qn__pile_alloc(&r->pile, 1, sizeof *empty, r->base.err);
    r->base.wanted = qn__pile_alloc(&r->pile, columns, 1, r->base.err);
    r->dictionary = qn__pile_alloc(&r->pile, columns, sizeof *r->dictionary, r->base.err);
    if (!type || !empty || !r->base.wanted || !r->dictionary)
        return QN_MEMORY;
    for (size_t i = 0; i < columns; i++) {
        const qn__ipc_column *column = &r->schema.column[i];
        type[i] = (qn__column_type){column->name, column->type.format,
                                    column->has_dictionary ? column->values.format : NULL,
                                    column->words, column->extension};
        r->dictionary[i] = column->has_dictionary ? empty : NULL;
        r->base.wanted[i] = 1;
    }
    status = qn__parts_schema(&r->pile, type, columns, out, r->base.err);
    return status == QN_OK && r->schema.pandas
               ? qn__pandas_put(out, &r->pile, r->schema.pandas, r->schema.pandas_size, r->base.err)
               : status;
}

/* ------------------------------------------------------------------ batches */

/* The values of all columns that have this dictionary. They all have one type. */
static qn_status take_dictionary(ipc *r, qn__ipc_message *m) {
    static const uint8_t wanted[1] = {1};
    qn__flat flat = m->flat;
    const int64_t id = qn__flat_get(&flat, m->header, DICTIONARY_ID, 8, 0);
    const size_t batch = qn__flat_table(&flat, m->header, DICTIONARY_DATA);
    const int delta = qn__flat_get(&flat, m->header, DICTIONARY_DELTA, 1, 0) != 0;
    for (size_t i = 0; i < r->schema.columns; i++) {
        qn__ipc_column *column = &r->schema.column[i];
        if (!column->has_dictionary || column->dictionary != id || !r->base.wanted[i])
            continue;
        if (delta) {
            qn__fail(r->base.err, QN_INPUT,
                     "a dictionary of the Arrow file grows from batch to batch");
            return refuse_at(r, m->at, "write the table with one dictionary for each column");
        }
        if (*column->values.format == '+')
            continue; /* it is refused by its type */
        qn_status status = m->body ? QN_OK : take_body(r, &r->pile, m);
        if (status != QN_OK)
            return status;
        qn__ipc_column values = {.type = column->values, .nodes = 1};
        const qn__ipc_schema schema = {
            .column = &values, .columns = 1, .node = &values.type, .nodes = 1};
        struct ArrowArray part;
        status =
            qn__ipc_read_batch(m, batch, &schema, wanted, NULL, NULL, &r->pile, &part, r->base.err);
        if (status != QN_OK)
            return refuse_message(r, m, status);
        r->dictionary[i] = part.children[0];
    }
    return QN_OK;
}

/* The bytes that this portion takes. */
static uint64_t bytes_of(const ipc *r) {
    uint64_t bytes = r->portion.bytes;
    for (int i = 0; i < qn__pool_threads(r->threads.pool); i++)
        bytes += r->threads.pile[i].bytes;
    return bytes;
}

static qn_status take_batch(ipc *r, qn__ipc_message *m, struct ArrowArray *out) {
    const uint64_t before = bytes_of(r);
    qn_status status = QN_OK;
    if (!r->bytes) /* or the body is in memory already */
        status = qn__parts_check_memory((double)m->body_size, "a batch", r->path, r->base.err);
    if (status == QN_OK)
        status = take_body(r, &r->portion, m);
    if (status != QN_OK)
        return status;
    status = qn__ipc_read_batch(m, m->header, &r->schema, r->base.wanted, r->dictionary,
                                &r->threads, &r->portion, out, r->base.err);
    r->last = bytes_of(r) - before;
    r->given++;
    return refuse_message(r, m, status);
}

/* The next batch of this portion, unless it would probably be too much. */
static qn_status next_part(qn__portions *reader, struct ArrowArray *out) {
    ipc *r = (ipc *)reader;
    if (r->given > 0 && bytes_of(r) + r->last > r->most)
        return QN_OK;
    for (;;) {
        qn__ipc_message m;
        qn_status status = next_message(r, &r->portion, &m);
        r->ended = m.kind == 0;
        if (status != QN_OK || r->ended)
            return status;
        if (m.kind == QN__IPC_BATCH)
            return take_batch(r, &m, out);
        if (m.kind == QN__IPC_DICTIONARY)
            status = take_dictionary(r, &m);
        if (status != QN_OK)
            return status;
    }
}

static void release_portion(ipc *r) {
    for (int i = 0; i < qn__pool_threads(r->threads.pool); i++)
        qn__pile_release(&r->threads.pile[i]);
    qn__pile_release(&r->portion);
    r->given = 0;
}

/* Adds the rows and the bytes of a message. */
static qn_status count_message(const ipc *r, const qn__ipc_message *m, uint64_t *rows,
                               uint64_t *bytes) {
    int64_t more = 0;
    *bytes += m->body_at - m->at + m->body_size;
    if (*bytes > r->size) /* or a small file would claim any number of batches */
        return refuse_broken(r, m->at, "the batches of the Arrow file overlap");
    const qn_status status =
        m->kind == QN__IPC_BATCH ? qn__ipc_batch_rows(m, &more, r->base.err) : QN_OK;
    *rows += (uint64_t)more;
    return refuse_message(r, m, status);
}

/* Goes through all messages, and back. */
static qn_status count_rows(qn__portions *reader, uint64_t *rows) {
    ipc *r = (ipc *)reader;
    const size_t at = r->at, next = r->next;
    uint64_t bytes = 0;
    qn_status status = QN_OK;
    *rows = 0;
    for (int kind = 1; kind != 0 && status == QN_OK;) {
        qn__pile pile = {0};
        qn__ipc_message m;
        status = next_message(r, &pile, &m);
        kind = m.kind;
        if (status == QN_OK && kind != 0)
            status = count_message(r, &m, rows, &bytes);
        qn__pile_release(&pile);
    }
    r->at = at;
    r->next = next;
    r->most = qn__parts_portion((double)r->size + 8.0 * (double)*rows * (double)r->schema.columns);
    return status == QN_OK ? qn__parts_check_rows((double)*rows, r->base.wanted, r->schema.columns,
                                                  r->size, r->path, r->base.err)
                           : status;
}

/* ------------------------------------------------------------------ the stream */

static int more(qn__portions *reader) {
    ipc *r = (ipc *)reader;
    release_portion(r);
    return !r->ended;
}

static void release_ipc(qn__portions *reader) {
    ipc *r = (ipc *)reader;
    release_portion(r);
    qn__free(r->threads.pile);
    qn__pile_release(&r->pile);
    qn__contents_release(&r->contents);
    qn__free(r);
}

static const qn__portions_table portions = {make_schema, count_rows,  next_part,
                                            more,        release_ipc, "batches"};

static qn_status open_ipc(qn__source *source, qn__pool *pool, qn__arrow_file *out, qn_error *err) {
    const int packed = qn__source_packing(source) != QN__PLAIN;
    qn__contents contents = {.size = (size_t)qn__source_file_size(source)};
    qn_status status = qn__parts_need_little_endian(qn__source_path(source), err);
    if (status == QN_OK && packed)
        status = qn__source_contents_of_any_size(source, 0, &contents, err);
    if (status != QN_OK)
        return status;
    ipc *r = qn__alloc(1, sizeof *r, err);
    qn__pile *piles = qn__alloc((uint64_t)qn__pool_threads(pool), sizeof *piles, err);
    if (!r || !piles) {
        qn__free(r);
        qn__free(piles);
        qn__contents_release(&contents);
        return QN_MEMORY;
    }
    *r = (ipc){.base = {.table = &portions, .err = err},
               .path = qn__source_path(source),
               .unpacked = packed ? " of the unpacked file" : "",
               .bytes = (const uint8_t *)contents.data,
               .contents = contents,
               .file = qn__source_descriptor(source),
               .size = contents.size,
               .threads = {pool, piles}};
    qn__portions_stream(&r->base, r->path, pool, out);
    return QN_OK;
}

static qn_status read_ipc(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    return qn__arrow_read_files(files, open_ipc, options, pool, data, err);
}

static int probe_ipc(const uint8_t *first, size_t size, const char *path) {
    (void)path;
    const int is_file = size >= BEGINNING && memcmp(first, "ARROW1\0\0", BEGINNING) == 0,
              is_stream = size >= BEGINNING && memcmp(first, "\xFF\xFF\xFF\xFF", 4) == 0 &&
                          first[6] == 0 && first[7] == 0 && (first[4] & 7) == 0;
    return is_file || is_stream ? QN__PROBE_MAGIC : QN__PROBE_NO;
}

const qn__reader qn__ipc_reader = {
    .name = QN__PACKED_NAMES("arrow"),
    .about = "Arrow IPC, files (Feather) and streams",
    .endings = {"arrow", "feather"},
    .columns = 1,
    .typed = 1,
    .weights = 1,
    .quantities = 1,
    .labels_remedy = "name its column with `data.label_column`",
    .probe = probe_ipc,
    .read_parts = read_ipc,
};
