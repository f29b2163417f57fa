#include "data/text/csv_text.h"

#include "base/files/remote.h"
#include "base/memory.h"
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Bytes read first; they usually contain the first two lines. */
enum { FIRST_PIECE = 1 << 16 };

typedef struct scratch_space {
    char *bytes;
    size_t size;
} scratch_space;

struct qn__csv_text {
    const qn__source *source;
    qn__contents contents; /* of gzip */
    size_t size;
    int threads;
    scratch_space *buffer; /* one buffer for each thread; NULL: all is in `contents` */
    pthread_mutex_t lock;  /* for the failure */
    qn_error failure;      /* the first one; QN_OK: none */
};

static void note_failure(qn__csv_text *t, const qn_error *failure) {
    pthread_mutex_lock(&t->lock);
    if (t->failure.status == QN_OK)
        t->failure = *failure;
    pthread_mutex_unlock(&t->lock);
}

static qn_status read_piece(const qn__csv_text *t, char *bytes, size_t from, size_t size,
                            qn_error *err) {
    const int file = qn__source_descriptor(t->source);
    const qn_status status = qn__remote_ensure(file, from, size, err);
    if (status != QN_OK)
        return status;
    for (size_t got = 0; got < size;) {
        const ssize_t now = pread(file, bytes + got, size - got, (off_t)(from + got));
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            return qn__fail_errno(err, "read", qn__source_path(t->source));
        if (now == 0) {
            qn__fail(err, QN_INPUT, "the file became shorter while it was read");
            qn__at(err, "%s, byte %zu of %zu", qn__source_path(t->source), from + got, t->size);
            return qn__remedy(err, QN_INPUT, "read it when nothing writes to it any more");
        }
        got += (size_t)now;
    }
    return QN_OK;
}

/* A buffer that is large enough; its contents are lost. */
static qn_status reserve(scratch_space *r, size_t size, qn_error *err) {
    if (size <= r->size)
        return QN_OK;
    qn__free(r->bytes);
    r->bytes = qn__alloc(size, 1, err);
    r->size = r->bytes ? size : 0;
    return r->bytes ? QN_OK : QN_MEMORY;
}

const char *qn__csv_text_at(qn__csv_text *text, int thread, size_t from, size_t size) {
    if (!text->buffer)
        return text->contents.data + from;
    scratch_space *r = &text->buffer[thread];
    qn_error failure;
    qn_status status = reserve(r, size ? size : 1, &failure);
    if (status == QN_OK)
        status = read_piece(text, r->bytes, from, size, &failure);
    if (status != QN_OK)
        note_failure(text, &failure);
    return status == QN_OK ? r->bytes : NULL;
}

qn_status qn__csv_text_status(const qn__csv_text *text, qn_error *err) {
    if (text->failure.status != QN_OK && err)
        *err = text->failure;
    return text->failure.status;
}

void qn__csv_text_forget(const qn__csv_text *text, const char *begin, const char *end) {
    if (!text->buffer)
        qn__contents_forget(&text->contents, (size_t)(begin - text->contents.data),
                            (size_t)(end - text->contents.data));
}

qn_status qn__csv_text_renew(qn__csv_text *text, qn_error *err) {
    qn__source *again;
    if (text->buffer)
        return QN_OK;
    qn__contents_release(&text->contents);
    qn_status status = qn__source_again(text->source, &again, err);
    if (status != QN_OK)
        return status;
    status = qn__source_contents_of_any_size(again, 1, &text->contents, err);
    qn__source_close(again);
    if (status != QN_OK || text->contents.size == text->size)
        return status;
    qn__fail(err, QN_INPUT, "the file changed while it was read");
    qn__at(err, "%s", qn__source_path(text->source));
    return qn__remedy(err, QN_INPUT, "read it when nothing writes to it any more");
}

size_t qn__csv_text_size(const qn__csv_text *text) { return text->size; }

qn_status qn__csv_text_end(qn__csv_text *t, size_t least, size_t *end, qn_error *err) {
    enum { PIECE = 4096 };
    *end = t->size;
    while (*end > least) {
        const size_t size = *end - least < PIECE ? *end - least : PIECE;
        const char *piece = qn__csv_text_at(t, 0, *end - size, size);
        if (!piece)
            return qn__csv_text_status(t, err);
        for (size_t left = size; left > 0; left--, (*end)--)
            if (!qn__csv_is_ending(piece[left - 1]))
                return QN_OK;
    }
    return QN_OK;
}

qn_status qn__csv_text_header(qn__csv_text *t, const char *path, const qn__csv_keys *keys,
                              const qn_data_options *options, qn__csv_header *header, size_t *begin,
                              size_t *size, qn_error *err) {
    for (size_t piece = t->buffer ? FIRST_PIECE : t->size;; piece *= 2) {
        const size_t part = piece < t->size ? piece : t->size;
        const char *text = qn__csv_text_at(t, 0, 0, part);
        if (!text)
            return qn__csv_text_status(t, err);
        const qn_status status = qn__csv_header_read(text, part, path, keys, options, header, err);
        if (part < t->size && (status != QN_OK || !qn__csv_header_is_settled(header))) {
            if (status == QN_OK)
                qn__csv_header_release(header);
            continue;
        }
        if (status != QN_OK)
            return status;
        size_t end = (size_t)(header->end - text);
        *begin = (size_t)(header->body - text);
        const qn_status found = part < t->size ? qn__csv_text_end(t, end, &end, err) : QN_OK;
        if (found != QN_OK)
            qn__csv_header_release(header);
        *size = end - *begin;
        return found;
    }
}

static qn_status open_text(qn__csv_text *t, qn__source *source, int threads, qn_error *err) {
    if (qn__source_packing(source)) {
        const qn_status status = qn__source_contents_of_any_size(source, 1, &t->contents, err);
        t->size = t->contents.size;
        return status;
    }
    if (qn__source_file_size(source) > SIZE_MAX / 2)
        return qn__fail_memory(err, SIZE_MAX, 1);
    t->size = (size_t)qn__source_file_size(source);
    t->threads = threads;
    t->buffer = qn__alloc((size_t)threads, sizeof *t->buffer, err);
    return t->buffer ? QN_OK : QN_MEMORY;
}

qn_status qn__csv_text_open(qn__source *source, int threads, qn__csv_text **out, qn_error *err) {
    *out = NULL;
    qn__csv_text *t = qn__alloc(1, sizeof *t, err);
    if (!t)
        return QN_MEMORY;
    t->source = source;
    pthread_mutex_init(&t->lock, NULL);
    const qn_status status = open_text(t, source, threads, err);
    if (status == QN_OK)
        *out = t;
    else
        qn__csv_text_close(t);
    return status;
}

void qn__csv_text_close(qn__csv_text *text) {
    if (!text)
        return;
    for (int i = 0; text->buffer && i < text->threads; i++)
        qn__free(text->buffer[i].bytes);
    qn__free(text->buffer);
    qn__contents_release(&text->contents);
    pthread_mutex_destroy(&text->lock);
    qn__free(text);
}
