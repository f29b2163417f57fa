/* Batches of rows (format/Message.fbs of Apache Arrow): lengths and buffers of all columns. */
#include "base/memory.h"
#include "data/bytes/unpack.h"
#include "data/columnar/ipc.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Fields of the tables, and bytes of their structs. */
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VIEWS };
enum { COMPRESSION_CODEC = 0, COMPRESSION_METHOD = 1 };
enum { NODE_SIZE = 16, BUFFER_SIZE = 16 };

typedef struct reading {
    const qn__ipc_message *message;
    qn__flat flat; /* its own state of errors */
    int64_t rows;
    size_t node, nodes, buffer, buffers, view, views; /* places and counts of the lists */
    int packed;
    qn__codec codec;
    qn__pile *pile;
} reading;

/* A buffer as it is used: in the file or unpacked. */
typedef struct buffer {
    const uint8_t *bytes; /* NULL: it is empty */
    size_t size;
} buffer;

static qn_status refuse(qn_error *err, const char *what) {
    qn__fail(err, QN_INPUT, "%s", what);
    return qn__remedy(err, QN_INPUT, "copy the file, or write it again");
}

static qn_status unpack(const reading *r, buffer *b, qn_error *err) {
    int64_t made = 0;
    if (b->size < 8)
        return refuse(err, "a compressed buffer of the Arrow file is cut off");
    for (int i = 0; i < 8; i++)
        made |= (int64_t)((uint64_t)b->bytes[i] << 8 * i);
    b->bytes += 8;
    b->size -= 8;
    if (made == -1) /* stored */
        return QN_OK;
    if (made < 0 || (uint64_t)made > qn__unpacked_most(r->codec, b->size))
        return refuse(err, "a compressed buffer of the Arrow file claims an impossible size");
    const qn_status status = qn__codec_need(r->codec, err);
    if (status != QN_OK)
        return status;
    uint8_t *to = qn__pile_alloc(r->pile, (uint64_t)made, 1, err);
    if (!to)
        return QN_MEMORY;
    if (!qn__unpack(r->codec, b->bytes, b->size, to, (size_t)made))
        return refuse(err, "a compressed buffer of the Arrow file is corrupt");
    *b = (buffer){to, (size_t)made};
    return QN_OK;
}

/* Buffer `index` of the batch. */
static qn_status take_buffer(reading *r, size_t index, buffer *out, qn_error *err) {
    const size_t place = r->buffer + BUFFER_SIZE * index;
    const uint64_t at = (uint64_t)qn__flat_number(&r->flat, place, 8),
                   size = (uint64_t)qn__flat_number(&r->flat, place + 8, 8),
                   have = r->message->body_size;
    if (index >= r->buffers || r->flat.broken || size > have || at > have - size)
        return refuse(err, "a buffer of the Arrow file lies outside its message");
    *out = (buffer){size ? r->message->body + at : NULL, (size_t)size};
    return size > 0 && r->packed ? unpack(r, out, err) : QN_OK;
}

/* ------------------------------------------------------------------ columns */

static int64_t offset_at(const uint8_t *bytes, size_t width, uint64_t i) {
    int32_t narrow;
    int64_t wide;
    if (width == sizeof wide) {
        memcpy(&wide, bytes + i * width, sizeof wide);
        return wide;
    }
    memcpy(&narrow, bytes + i * width, sizeof narrow);
    return narrow;
}

/* Texts lie after each other inside their bytes. */
static int offsets_fit(const buffer *offsets, const buffer *texts, size_t width, uint64_t rows) {
    int64_t before = 0;
    for (uint64_t i = 0; i <= rows; i++) {
        const int64_t offset = offset_at(offsets->bytes, width, i);
        if (offset < before || (uint64_t)offset > texts->size)
            return 0;
        before = offset;
    }
    return 1;
}

static int is_large_enough(const buffer *b, uint64_t count, uint64_t bits) {
    return bits == 0 || count <= (b->bytes ? (uint64_t)b->size : 0) * 8 / bits;
}

/* The buffers of views and a last one with their sizes. */
static qn_status take_views(reading *r, size_t first, uint64_t views, struct ArrowArray *to,
                            qn_error *err) {
    if (views > r->buffers - first)
        return refuse(err, "a buffer of the Arrow file lies outside its message");
    const void **buffers = qn__pile_alloc(r->pile, views + 3, sizeof *buffers, err);
    int64_t *sizes = qn__pile_alloc(r->pile, views, sizeof *sizes, err);
    if (!buffers || !sizes)
        return QN_MEMORY;
    buffers[0] = to->buffers[0];
    buffers[1] = to->buffers[1];
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < views && status == QN_OK; i++) {
        buffer b = {0};
        status = take_buffer(r, first + (size_t)i, &b, err);
        buffers[2 + i] = b.bytes;
        sizes[i] = (int64_t)b.size;
    }
    buffers[2 + views] = sizes;
    to->buffers = buffers;
    to->n_buffers = (int64_t)views + 3;
    return status;
}

/* A column whose buffers begin at `first`. */
static qn_status take_column(reading *r, const qn__ipc_type *type, size_t first, uint64_t views,
                             struct ArrowArray *to, qn_error *err) {
    static const uint8_t none[16];
    const uint64_t rows = (uint64_t)to->length;
    buffer b[QN__PART_BUFFERS] = {0};
    for (int i = 0; i < type->buffers; i++) {
        const qn_status status = take_buffer(r, first + (size_t)i, &b[i], err);
        if (status != QN_OK)
            return status;
        to->buffers[i] = b[i].bytes;
    }
    to->n_buffers = type->buffers;
    /* Without rows the one offset may be left out. */
    int fits = rows == 0 || is_large_enough(&b[1], rows + (type->offsets > 0), type->bits);
    if (b[0].bytes)
        fits = fits && is_large_enough(&b[0], rows, 1);
    else if (to->null_count != 0 && type->buffers > 0)
        fits = 0;
    if (fits && rows > 0 && type->offsets && type->buffers > 2) /* else those of a list */
        fits = offsets_fit(&b[1], &b[2], type->offsets, rows);
    if (!fits)
        return refuse(err, "the buffers of a column do not fit its rows");
    for (int i = 1; i < type->buffers; i++)
        if (!to->buffers[i])
            to->buffers[i] = none;
    return type->views ? take_views(r, first + 2, views, to, err) : QN_OK;
}

/* ------------------------------------------------------------------ the batch */

static qn_status refuse_batch(qn_error *err) {
    return refuse(err, "a batch of the Arrow file is broken");
}

static int can_be_rows(int64_t rows) { return rows >= 0 && rows <= (int64_t)1 << 48; }

qn_status qn__ipc_batch_rows(const qn__ipc_message *message, int64_t *rows, qn_error *err) {
    qn__flat flat = message->flat;
    *rows = qn__flat_get(&flat, message->header, BATCH_LENGTH, 8, 0);
    return flat.broken || !can_be_rows(*rows) ? refuse_batch(err) : QN_OK;
}

static qn_status begin(reading *r, size_t batch, qn_error *err) {
    qn__flat *flat = &r->flat;
    r->rows = qn__flat_get(flat, batch, BATCH_LENGTH, 8, 0);
    r->node = qn__flat_vector(flat, batch, BATCH_NODES, NODE_SIZE, &r->nodes);
    r->buffer = qn__flat_vector(flat, batch, BATCH_BUFFERS, BUFFER_SIZE, &r->buffers);
    r->view = qn__flat_vector(flat, batch, BATCH_VIEWS, 8, &r->views);
    const size_t compression = qn__flat_table(flat, batch, BATCH_COMPRESSION);
    r->packed = compression != 0;
    const int64_t codec = r->packed ? qn__flat_get(flat, compression, COMPRESSION_CODEC, 1, 0) : 0,
                  method =
                      r->packed ? qn__flat_get(flat, compression, COMPRESSION_METHOD, 1, 0) : 0;
    r->codec = codec == 1 ? QN__CODEC_ZSTD : QN__CODEC_LZ4_FRAME;
    if (batch == 0 || flat->broken || !can_be_rows(r->rows))
        return refuse_batch(err);
    if (codec >= 0 && codec <= 1 && method == 0)
        return QN_OK;
    return refuse(err, "the Arrow file is compressed in an unknown way");
}

/* The number of buffers of the next node; its further ones are counted in *views. */
static uint64_t buffers_of(reading *r, const qn__ipc_type *type, size_t *view, uint64_t *views) {
    *views = 0;
    if (type->views) {
        *views = *view < r->views ? (uint64_t)qn__flat_number(&r->flat, r->view + 8 * *view, 8) : 0;
        ++*view;
        if (*views > r->buffers)
            *views = r->buffers; /* too many: take_views refuses them */
    }
    return (uint64_t)type->buffers + *views;
}

/* ------------------------------------------------------------------ threads */

/* A column that is read. */
typedef struct job {
    const qn__ipc_type *type;
    size_t first; /* its first buffer */
    uint64_t views;
    struct ArrowArray *to;
} job;

typedef struct work {
    const reading *r;
    const job *jobs;
    size_t count;
    qn__pile *pile; /* of each thread */
    atomic_size_t next;
    pthread_mutex_t lock;
    size_t failed; /* the first job that failed; SIZE_MAX: none */
    qn_status status;
    qn_error *err;
} work;

/* The error of the first column that failed is kept, whichever thread had it. */
static void note(work *w, size_t number, qn_status status, const qn_error *err) {
    pthread_mutex_lock(&w->lock);
    if (number < w->failed) {
        w->failed = number;
        w->status = status;
        if (w->err)
            *w->err = *err;
    }
    pthread_mutex_unlock(&w->lock);
}

static void take_some(void *context, int thread) {
    work *w = context;
    reading r = *w->r;
    r.pile = &w->pile[thread];
    for (;;) {
        qn_error err = {0};
        const size_t number = atomic_fetch_add(&w->next, 1);
        if (number >= w->count)
            return;
        const job *j = &w->jobs[number];
        const qn_status status = take_column(&r, j->type, j->first, j->views, j->to, &err);
        if (status == QN_OK)
            continue;
        note(w, number, status, &err);
        atomic_store(&w->next, w->count); /* those before this one have been taken */
    }
}

static qn_status take_columns(const reading *r, const job *jobs, size_t count,
                              const qn__ipc_threads *threads, qn_error *err) {
    work w = {.r = r,
              .jobs = jobs,
              .count = count,
              .pile = threads ? threads->pile : r->pile,
              .failed = SIZE_MAX,
              .err = err};
    pthread_mutex_init(&w.lock, NULL);
    if (threads && r->packed)
        qn__pool_run(threads->pool, take_some, &w);
    else
        take_some(&w, 0);
    pthread_mutex_destroy(&w.lock);
    return w.status;
}

/* ------------------------------------------------------------------ all columns */

/* Lists the columns that are read, with the places of their buffers. */
static qn_status list_columns(reading *r, const qn__ipc_schema *schema, const uint8_t *wanted,
                              struct ArrowArray *out, job *jobs, size_t *count, qn_error *err) {
    size_t next = 0, view = 0;
    for (size_t c = 0; c < schema->columns; c++) {
        const qn__ipc_column *column = &schema->column[c];
        struct ArrowArray *to = out->children[c];
        for (size_t n = column->first; n < column->first + column->nodes; n++) {
            uint64_t views;
            const size_t first = next, place = r->node + NODE_SIZE * n;
            next += (size_t)buffers_of(r, &schema->node[n], &view, &views);
            if (n >= r->nodes || next > r->buffers)
                return refuse(err, "a batch of the Arrow file lacks columns");
            if (n > column->first && !column->words)
                continue;
            if (!wanted[c] && n > column->first && qn__parts_list(r->pile, 0, to, err) != QN_OK)
                return QN_MEMORY;
            if (!wanted[c])
                continue;
            const int64_t length = qn__flat_number(&r->flat, place, 8);
            if (r->flat.broken || !can_be_rows(length) || (n == column->first && length != r->rows))
                return refuse(err, "a column of the Arrow file has another length than its batch");
            if (n > column->first && qn__parts_list(r->pile, length, to, err) != QN_OK)
                return QN_MEMORY;
            struct ArrowArray *own = n > column->first ? *to->children : to;
            own->null_count = qn__flat_number(&r->flat, place + 8, 8);
            jobs[(*count)++] = (job){&schema->node[n], first, views, own};
        }
    }
    return QN_OK;
}

qn_status qn__ipc_read_batch(const qn__ipc_message *message, size_t batch,
                             const qn__ipc_schema *schema, const uint8_t *wanted,
                             struct ArrowArray **dictionary, const qn__ipc_threads *threads,
                             qn__pile *pile, struct ArrowArray *out, qn_error *err) {
    reading r = {.message = message, .flat = message->flat, .pile = pile};
    size_t count = 0;
    qn_status status = begin(&r, batch, err);
    if (status == QN_OK)
        status = qn__parts_array(pile, schema->columns, r.rows, out, err);
    job *jobs = status == QN_OK ? qn__alloc(schema->nodes, sizeof *jobs, err) : NULL;
    if (!jobs)
        return status == QN_OK ? QN_MEMORY : status;
    for (size_t c = 0; dictionary && c < schema->columns; c++)
        out->children[c]->dictionary = dictionary[c];
    status = list_columns(&r, schema, wanted, out, jobs, &count, err);
    if (status == QN_OK)
        status = take_columns(&r, jobs, count, threads, err);
    qn__free(jobs);
    return status;
}
