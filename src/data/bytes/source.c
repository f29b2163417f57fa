/* Input files: opened with clear messages, read directly, through what packing.h has, or out of a
 * ZIP archive. */
#include "data/bytes/source.h"
#include "data/bytes/packed_stream.h"
#include "base/files/file_stamp.h"
#include "base/files/remote.h"
#include "base/margin.h"
#include "base/memory.h"
#include "data/bytes/descriptor.h"
#include "data/bytes/named_formats.h"
#include "data/bytes/server_address.h"
#include "data/bytes/standard_input.h"
#include "data/bytes/zip_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEEK_MAX 512
/* First estimate of the size of a decompressed file; doubled as needed. */
#define FIRST_CAPACITY ((size_t)1 << 20)

struct qn__source {
    char *path;
    char *address; /* of a server; NULL: a file or a folder */
    char *part;    /* of the archive that the path names; NULL: none */
    int fd, folder, shared;
    uint64_t file_size;
    struct stat opened; /* of a file */
    qn__packing packing;
    qn__packed *packed;   /* of a compressed file, else NULL */
    qn__zip_file *zipped; /* of a file in a ZIP archive, else NULL */
    uint8_t peeked[PEEK_MAX];
    size_t peeked_size, peeked_taken;
};

/* The error of opening a data file. A missing file is an input error, not a system error. */
static qn_status refuse_open(const char *path, qn_error *err) {
    if (errno == ENOENT || errno == ENOTDIR) {
        if (qn__named_address_check(path, err) != QN_OK)
            return QN_INPUT;
        qn__fail(err, QN_INPUT, "there is no such file");
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_INPUT,
                          "check the path; a relative path starts at the current folder");
    }
    if (errno == EACCES) {
        qn__fail(err, QN_IO, "you do not have permission to read the file");
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_IO, "make it readable: chmod u+r");
    }
    return qn__fail_errno(err, "open", path);
}

static qn_status check_kind(const char *path, const struct stat *info, qn_error *err) {
    if (S_ISDIR(info->st_mode)) {
        qn__fail(err, QN_INPUT, "this is a folder, not a data file");
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_INPUT, "name a data file in it");
    }
    if (!S_ISREG(info->st_mode)) {
        qn__fail(err, QN_INPUT, "this is not a regular file, so it cannot be read twice");
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_INPUT,
                          "save the data to a file first, or pipe it into the standard input, "
                          "whose name is -");
    }
    if (info->st_size == 0) {
        qn__fail(err, QN_INPUT, "the file is empty");
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_INPUT,
                          "give a file with at least one item; where several files are one table, "
                          "leave this one out");
    }
    return QN_OK;
}

/* Checks the first bytes and seeks back to the beginning. */
static qn_status find_packing(qn__source *source, qn_error *err) {
    uint8_t first[8] = {0};
    size_t got = 0;
    qn_status status =
        qn__descriptor_read(source->fd, source->path, first, sizeof first, &got, err);
    if (status != QN_OK)
        return status;
    if (lseek(source->fd, 0, SEEK_SET) != 0)
        return qn__fail_errno(err, "read", source->path);
    const qn__unpacker *unpacker = qn__unpacker_for(first, got, &source->packing);
    if (unpacker)
        return qn__packed_create(unpacker, source->fd, source->path, source->file_size,
                                 &source->packed, err);
    if (!qn__is_zip(first, got))
        return QN_OK;
    status = qn__zip_file_open(source->fd, source->path, source->file_size, source->part,
                               &source->zipped, err);
    source->packing = source->zipped ? QN__ZIPPED : QN__PLAIN;
    return status;
}

const char *qn__source_part_in(const char *path) {
    const char *colon = strrchr(path, ':');
    const int cut = colon && colon - path >= 4 &&
                    (strncmp(colon - 4, ".npz", 4) == 0 || strncmp(colon - 4, ".zip", 4) == 0);
    return cut ? colon + 1 : NULL;
}

/* Cuts "archive.npz:x" at the colon. */
static qn_status cut_part(qn__source *source, qn_error *err) {
    const char *part = qn__source_part_in(source->path);
    if (!part)
        return QN_OK;
    source->part = qn__copy_text(part, err);
    source->path[part - source->path - 1] = '\0';
    return source->part ? QN_OK : QN_MEMORY;
}

/* An open file, whose stamp was taken. */
static qn_status open_file(qn__source *source, qn_error *err) {
    const qn_status status = check_kind(source->path, &source->opened, err);
    if (status != QN_OK)
        return status;
    source->file_size = (uint64_t)source->opened.st_size;
    return find_packing(source, err);
}

/* A folder's address ends in a slash. Messages do not show the query of an address: it may hold a
 * key. */
static qn_status open_address(qn__source *source, int folders, qn_error *err) {
    const size_t size = strlen(source->path);
    source->folder = folders && source->path[size - 1] == '/' && qn__remote_can_list(source->path);
    if (source->folder) {
        source->path[size - 1] = '\0';
        return QN_OK;
    }
    const qn_status status = qn__remote_open(source->path, &source->fd, err);
    if (status != QN_OK)
        return status;
    char *shown = qn__copy_text(source->path, err);
    if (!shown)
        return QN_MEMORY;
    qn__remote_shown(source->path, shown, size + 1);
    qn__free(source->path);
    source->path = shown;
    if (qn__file_stamp_take(source->fd, shown, &source->opened, err) != QN_OK)
        return QN_IO;
    return open_file(source, err);
}

static qn_status open_into(qn__source *source, const char *given, int folders, qn_error *err) {
    source->fd = -1;
    if (folders && qn__is_server(given)) {
        source->address = qn__copy_text(given, err);
        source->path = qn__server_shown(given, err);
        return source->address && source->path ? QN_OK : QN_MEMORY;
    }
    const int standard = strcmp(given, QN__STANDARD_INPUT) == 0;
    source->path = qn__copy_text(standard ? QN__STANDARD_INPUT_SHOWN : given, err);
    if (!source->path || cut_part(source, err) != QN_OK)
        return QN_MEMORY;
    const char *path = source->path;
    qn_status status = QN_OK;
    if (qn__remote_is(path))
        return open_address(source, folders, err);
    if (standard)
        status = qn__standard_input_open(&source->fd, err);
    else /* without O_NONBLOCK, open would wait for a writer of a named pipe */
        source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->fd < 0)
        return status == QN_OK ? refuse_open(path, err) : status;
    qn__remote_hold(source->fd); /* it may be that of another source, opened through /proc */
    struct stat *info = &source->opened;
    if (qn__file_stamp_take(source->fd, path, info, err) != QN_OK)
        return QN_IO;
    source->folder = folders && S_ISDIR(info->st_mode);
    return source->folder ? QN_OK : open_file(source, err);
}

static qn_status open_source(const char *path, int folders, qn__source **out, qn_error *err) {
    *out = NULL;
    qn__source *source = qn__alloc(1, sizeof *source, err);
    if (!source)
        return QN_MEMORY;
    qn_status status = open_into(source, path, folders, err);
    if (status != QN_OK) {
        qn__source_close(source);
        return status;
    }
    *out = source;
    return QN_OK;
}

qn_status qn__source_open(const char *path, qn__source **out, qn_error *err) {
    return open_source(path, 0, out, err);
}

qn_status qn__source_open_any(const char *path, qn__source **out, qn_error *err) {
    return open_source(path, 1, out, err);
}

/* The path may name another file by now, and that of a pipe is a copy without a name. */
static qn_status duplicate(const qn__source *from, qn__source *to, qn_error *err) {
    to->path = qn__copy_text(from->path, err);
    to->part = from->part ? qn__copy_text(from->part, err) : NULL;
    to->fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
    qn__remote_hold(to->fd);
    to->file_size = from->file_size;
    if (!to->path || (from->part && !to->part))
        return QN_MEMORY;
    if (to->fd < 0 || lseek(to->fd, 0, SEEK_SET) != 0)
        return qn__fail_errno(err, "read", to->path);
    return find_packing(to, err);
}

qn_status qn__source_again(const qn__source *source, qn__source **out, qn_error *err) {
    qn__source *again = qn__alloc(1, sizeof *again, err);
    *out = NULL;
    if (!again)
        return QN_MEMORY;
    again->fd = -1;
    const qn_status status = duplicate(source, again, err);
    if (status == QN_OK)
        *out = again;
    else
        qn__source_close(again);
    return status;
}

qn_status qn__source_beside(const qn__source *source, qn__source **out, qn_error *err) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", source->fd);
    return qn__source_open(path, out, err);
}

qn_status qn__source_end(const qn__source *source, qn_status status, qn_error *err) {
    struct stat now;
    if ((status != QN_OK && status != QN_INPUT) || source->fd < 0 || source->folder ||
        source->shared || qn__remote_stat(source->fd, &now) != 0 ||
        qn__file_stamp_same(&source->opened, &now, source->path))
        return status;
    if (status == QN_INPUT && now.st_size < source->opened.st_size)
        return status; /* the reader has said where the file ended */
    return qn__file_stamp_refuse(source->path, QN_INPUT, err);
}

void qn__source_share(qn__source *source) { source->shared = 1; }

void qn__source_close(qn__source *source) {
    if (!source)
        return;
    qn__packed_destroy(source->packed);
    qn__zip_file_close(source->zipped);
    qn__remote_close(source->fd);
    qn__free(source->path);
    qn__free(source->part);
    qn__free(source->address);
    qn__free(source);
}

int qn__source_is_folder(const qn__source *source) { return source->folder; }

const char *qn__source_address(const qn__source *source) { return source->address; }

qn__packing qn__source_packing(const qn__source *source) { return source->packing; }

const char *qn__source_path(const qn__source *source) { return source->path; }

int qn__source_is_stream(const qn__source *source) {
    return strcmp(source->path, QN__STANDARD_INPUT_SHOWN) == 0;
}

const char *qn__source_part(const qn__source *source) { return source->part; }

int qn__source_descriptor(const qn__source *source) { return source->fd; }

const struct stat *qn__source_stamp(const qn__source *source) { return &source->opened; }

uint64_t qn__source_file_size(const qn__source *source) { return source->file_size; }

uint64_t qn__source_unpacked_most(const qn__source *source) {
    return source->packing ? qn__unpacked_bound(source->file_size) : source->file_size;
}

static qn_status read_below(qn__source *source, void *bytes, size_t size, size_t *got,
                            qn_error *err) {
    if (source->packed)
        return qn__packed_read(source->packed, bytes, size, got, err);
    if (source->zipped)
        return qn__zip_file_read(source->zipped, bytes, size, got, err);
    return qn__descriptor_read(source->fd, source->path, bytes, size, got, err);
}

qn_status qn__source_read(qn__source *source, void *bytes, size_t size, size_t *got,
                          qn_error *err) {
    size_t kept = source->peeked_size - source->peeked_taken;
    size_t first = kept < size ? kept : size;
    if (first > 0)
        memcpy(bytes, source->peeked + source->peeked_taken, first);
    source->peeked_taken += first;
    size_t rest = 0;
    qn_status status = QN_OK;
    if (first < size)
        status = read_below(source, (uint8_t *)bytes + first, size - first, &rest, err);
    *got = first + rest;
    return status;
}

qn_status qn__source_peek(qn__source *source, uint8_t *bytes, size_t size, size_t *got,
                          qn_error *err) {
    if (source->peeked_size == 0) {
        qn_status status = read_below(source, source->peeked, PEEK_MAX, &source->peeked_size, err);
        if (status != QN_OK)
            return status;
    }
    *got = source->peeked_size < size ? source->peeked_size : size;
    memcpy(bytes, source->peeked, *got);
    return QN_OK;
}

/* Grows to `capacity` bytes and the margin. realloc moves large blocks by remapping, so growing
 * copies nothing, and pages that were not written take no memory. */
static qn_status grow(qn__buffer *buffer, size_t capacity, qn_error *err) {
    if (capacity > SIZE_MAX - QN__DATA_MARGIN)
        return qn__fail_memory(err, capacity, 1);
    uint8_t *larger = realloc(buffer->data, capacity + QN__DATA_MARGIN);
    if (!larger)
        return qn__fail_memory(err, capacity, 1);
    buffer->data = larger;
    return QN_OK;
}

qn_status qn__source_take(qn__source *source, size_t wanted, qn__buffer *out, qn_error *err) {
    *out = (qn__buffer){0};
    size_t vouched = qn__source_packing(source) ? FIRST_CAPACITY : (size_t)source->file_size;
    size_t capacity = wanted < vouched ? wanted : vouched;
    qn_status status = QN_OK;
    for (;;) {
        size_t got = 0;
        status = grow(out, capacity, err);
        if (status == QN_OK)
            status =
                qn__source_read(source, out->data + out->size, capacity - out->size, &got, err);
        if (status != QN_OK)
            break;
        out->size += got;
        if (out->size < capacity || capacity == wanted)
            break;
        capacity = capacity > wanted / 2 ? wanted : capacity * 2;
    }
    if (status == QN_OK)
        status = grow(out, out->size, err); /* releases unused memory */
    if (status != QN_OK) {
        free(out->data);
        *out = (qn__buffer){0};
        return status;
    }
    memset(out->data + out->size, 0, QN__DATA_MARGIN);
    qn__ask_for_large_pages(out->data, out->size, 1); /* realloc moved it to small pages */
    return QN_OK;
}

qn_status qn__source_contents(qn__source *source, qn__contents *out, qn_error *err) {
    qn__buffer buffer;
    *out = (qn__contents){0};
    /* What a plain file got since it was opened is a change that qn__source_end finds. */
    const int plain = !source->packed && !source->zipped;
    const qn_status status =
        qn__source_take(source, plain ? (size_t)source->file_size : SIZE_MAX, &buffer, err);
    if (status == QN_OK)
        *out = (qn__contents){(const char *)buffer.data, buffer.size, buffer.data, NULL};
    return status;
}
