/* The sink of CSV: a file that is written whole, or one that grows by lines. */
#include "base/files/file.h"
#include "base/files/remote.h"
#include "base/files/write_whole.h"
#include "base/memory.h"
#include "data/write/sink_keys.h"
#include "data/write/sink_kinds.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of lines that are kept before they are written. */
enum { PIECE = 1 << 16 };

typedef struct csv {
    qn__writer *writer; /* of a whole result */
    qn__text text;
    int file;            /* of a table that grows; -1: none */
    int is_regular;      /* 0: a pipe or a device, which cannot be cut */
    int is_torn;         /* 1: there may be more than whole lines */
    off_t size;          /* up to here it is whole lines */
    qn__sink_keys *keys; /* of its rows */
} csv;

static qn_status check_text(const qn__text *text, qn_error *err) {
    return text->failed ? qn__fail_memory(err, text->size, 1) : QN_OK;
}

/* ------------------------------------------------------------------ a whole result */

/* A database in its place would be lost. */
static qn_status refuse_database(const char *path, qn_error *err) {
    char first[16] = "";
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t got = file >= 0 ? read(file, first, sizeof first) : 0;
    if (file >= 0)
        close(file);
    if (got != sizeof first || memcmp(first, "SQLite format 3", sizeof first) != 0)
        return QN_OK;
    qn__fail(err, QN_USAGE, "this file is a SQLite database, which a CSV file would replace");
    qn__at(err, "%.400s", path);
    return qn__remedy(err, QN_USAGE,
                      "write sqlite:%.300s to add a table to it, or name another "
                      "file",
                      path);
}

static int is_file(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static qn_status make_state(qn__sink *s, csv **out, qn_error *err) {
    csv *own = s->own = *out = qn__alloc(1, sizeof *own, err);
    if (!own)
        return QN_MEMORY;
    own->file = -1;
    return QN_OK;
}

static qn_status begin(qn__sink *s, int *there, qn_error *err) {
    csv *own;
    *there = 0;
    qn_status status = is_file(s->to.place) ? refuse_database(s->to.place, err) : QN_OK;
    if (status == QN_OK)
        status = make_state(s, &own, err);
    if (status == QN_OK)
        status = qn__writer_create(s->to.place, &own->writer, err);
    if (status == QN_OK)
        qn__sink_add_header(&own->text, &s->table);
    return status;
}

static qn_status flush(csv *own, qn_error *err) {
    qn_status status = check_text(&own->text, err);
    if (status == QN_OK && own->text.size > 0)
        status = qn__writer_add(own->writer, own->text.data, own->text.size, err);
    own->text.size = 0;
    return status;
}

static qn_status add(qn__sink *s, const qn__sink_cell *cells, qn_error *err) {
    csv *own = s->own;
    qn__sink_add_line(&own->text, &s->table, cells);
    return own->text.size < PIECE && !own->text.failed ? QN_OK : flush(own, err);
}

static qn_status commit(qn__sink *s, int (*may)(void *user), void *user, qn_error *err) {
    csv *own = s->own;
    const qn_status status = flush(own, err);
    qn__writer *writer = own->writer;
    own->writer = NULL;
    if (may)
        qn__writer_ask(writer, may, user);
    return qn__writer_finish(writer, NULL, status, err);
}

static void close_csv(qn__sink *s) {
    csv *own = s->own;
    qn__writer_drop(own->writer);
    qn__text_release(&own->text);
    if (own->file >= 0)
        close(own->file);
    qn__sink_keys_free(own->keys);
    qn__free(own);
}

/* ------------------------------------------------------------------ a table that grows */

static int open_place(const char *path) {
    return strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                                  : open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
}

static qn_status lock(const qn__sink *s, const csv *own, qn_error *err) {
    if (flock(own->file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return QN_OK; /* a file system without locks */
    qn__fail(err, QN_BUSY, "another process writes to this file");
    qn__at(err, "%.400s", s->to.shown);
    return qn__remedy(err, QN_BUSY, "wait until it ends, or name another file");
}

/* It is of no use to try again. */
static qn_status refuse_end(const qn__sink *s, const char *what, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%.400s", s->to.shown);
    return QN_INPUT;
}

static qn_status write_all(const qn__sink *s, int file, const char *data, size_t size,
                           qn_error *err) {
    const int why = qn__write_whole(file, data, size);
    if (why == EPIPE)
        return refuse_end(s, "nobody reads what is written here any more", err);
    return why == 0 ? QN_OK : qn__fail_errno(err, "write to", s->to.shown);
}

/* What a failed write has left is cut off, so that the next one begins with a line. */
static qn_status cut(const qn__sink *s, csv *own, qn_error *err) {
    if (ftruncate(own->file, own->size) != 0 || lseek(own->file, own->size, SEEK_SET) < 0)
        return qn__fail_errno(err, "write to", s->to.shown);
    own->is_torn = 0;
    return QN_OK;
}

static qn_status append_safely(const qn__sink *s, csv *own, qn_error *err) {
    struct stat about;
    if (fstat(own->file, &about) == 0 && about.st_nlink == 0)
        return refuse_end(s, "the file was removed while rows were added to it", err);
    qn_status status = own->is_torn ? cut(s, own, err) : QN_OK;
    if (status != QN_OK)
        return status;
    own->is_torn = 1;
    status = write_all(s, own->file, own->text.data, own->text.size, err);
    if (status == QN_OK && fsync(own->file) != 0)
        status = qn__fail_errno(err, "write to", s->to.shown);
    if (status != QN_OK) {
        (void)cut(s, own, NULL);
        return status;
    }
    own->is_torn = 0;
    own->size += (off_t)own->text.size;
    return QN_OK;
}

static qn_status append(const qn__sink *s, csv *own, qn_error *err) {
    return own->is_regular ? append_safely(s, own, err)
                           : write_all(s, own->file, own->text.data, own->text.size, err);
}

/* The folder's entry of a new file must be stored, too. */
static void sync_folder(const char *path) {
    const char *end = strrchr(path, '/');
    char folder[4096] = ".";
    if (end && (size_t)(end - path) + 1 < sizeof folder)
        memcpy(folder, path, (size_t)(end - path) + 1), folder[end - path + 1] = '\0';
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return;
    (void)fsync(file);
    close(file);
}

static qn_status start(const qn__sink *s, csv *own, qn_error *err) {
    own->text.size = 0;
    qn__sink_add_header(&own->text, &s->table);
    qn_status status = check_text(&own->text, err);
    if (status == QN_OK)
        status = append(s, own, err);
    if (status == QN_OK && own->is_regular)
        sync_folder(s->to.place);
    return status;
}

static qn_status go_on(const qn__sink *s, csv *own, qn_error *err) {
    uint64_t size = 0;
    qn_status status = qn__sink_keys_read(own->keys, own->file, s->to.shown, &size, err);
    if (status != QN_OK)
        return status;
    own->size = (off_t)size;
    if (ftruncate(own->file, own->size) != 0 || lseek(own->file, own->size, SEEK_SET) < 0)
        return qn__fail_errno(err, "write to", s->to.shown);
    return size == 0 ? start(s, own, err) : QN_OK;
}

static qn_status open_csv(qn__sink *s, qn_error *err) {
    csv *own;
    struct stat about;
    qn_status status = make_state(s, &own, err);
    if (status == QN_OK)
        status = qn__sink_keys_create(&s->table, &own->keys, err);
    if (status != QN_OK)
        return status;
    if (qn__remote_is(s->to.place)) {
        qn__fail(err, QN_UNSUPPORTED, "a store takes whole files, and not one that grows");
        qn__at(err, "%.400s", s->to.shown);
        return qn__remedy(err, QN_UNSUPPORTED, "name a file of this machine, or a database");
    }
    own->file = open_place(s->to.place);
    if (own->file < 0 || fstat(own->file, &about) != 0)
        return qn__fail_errno(err, "write to", s->to.shown);
    /* What the shell appends to is its file: it is not read back. */
    own->is_regular = S_ISREG(about.st_mode) && strcmp(s->to.place, "-") != 0;
    if (!own->is_regular)
        return start(s, own, err);
    status = lock(s, own, err);
    return status == QN_OK ? go_on(s, own, err) : status;
}

/* Keys are noted when the lines are stored: a batch that failed may come again. */
static qn_status put(qn__sink *s, const qn__sink_cell *cells, uint64_t rows, qn_error *err) {
    csv *own = s->own;
    qn_status status = QN_OK;
    own->text.size = 0;
    qn__sink_keys_begin(own->keys);
    for (uint64_t i = 0; i < rows && status == QN_OK; i++) {
        const qn__sink_cell *row = cells + i * s->table.columns;
        int is_new = 0;
        status = qn__sink_keys_add(own->keys, row, &is_new, err);
        if (is_new)
            qn__sink_add_line(&own->text, &s->table, row);
    }
    if (status == QN_OK)
        status = check_text(&own->text, err);
    if (status == QN_OK && own->text.size > 0)
        status = append(s, own, err);
    if (status == QN_OK)
        qn__sink_keys_keep(own->keys);
    else
        qn__sink_keys_drop(own->keys);
    return status;
}

static qn_status holds(qn__sink *s, const qn__sink_cell *key, int *out, qn_error *err) {
    const csv *own = s->own;
    return qn__sink_keys_hold(own->keys, key, out, err);
}

static qn_status last(qn__sink *s, const qn__sink_cell *first, int64_t *out, qn_error *err) {
    const csv *own = s->own;
    return qn__sink_keys_last(own->keys, first, out, err);
}

const qn__sink_kind qn__csv_sink = {.begin = begin,
                                    .add = add,
                                    .commit = commit,
                                    .open = open_csv,
                                    .put = put,
                                    .holds = holds,
                                    .last = last,
                                    .close = close_csv};
