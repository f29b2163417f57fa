/* The content of a file that may be larger than memory. */
#include "base/files/cache_file.h"
#include "base/margin.h"
#include "base/system/available.h"
#include "data/bytes/source.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Smaller texts never need a file; asking how much memory there is takes longer. Bytes that are
 * copied to a file at once, and by which it grows. */
#define LEAST ((uint64_t)4 << 20)
#define PIECE ((size_t)1 << 20)
#define STEP ((size_t)64 << 20)
/* A packed text that becomes so many times larger would fill the disk before it says anything. */
#define SWELLS 250

static qn_status refuse(const char *path, const char *why, qn_error *err) {
    qn__fail(err, QN_MEMORY,
             "memory does not hold the text, and it cannot be kept in a file: %.200s", why);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_MEMORY,
                      "name a folder with space by QUERN_CACHE, or use a machine with more memory");
}

static qn_status refuse_bomb(const char *path, qn_error *err) {
    qn__fail(err, QN_FORMAT, "it unpacks to more than %d times its size", SWELLS);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_FORMAT, "if that is meant, unpack it and name the plain file");
}

/* Reads what is left of the source into a file, after the `size` bytes that are there. */
static qn_status fill(qn__source *source, qn__mapped_file *file, size_t *size, qn_error *err) {
    const uint64_t most =
        qn__source_packing(source) ? SWELLS * qn__source_file_size(source) : UINT64_MAX;
    for (size_t got = PIECE; got == PIECE; *size += got) {
        qn_status status = QN_OK;
        if (*size > most)
            return refuse_bomb(qn__source_path(source), err);
        if (qn__mapped_file_size(file) < *size + PIECE + QN__DATA_MARGIN)
            status = qn__mapped_file_grow(file, *size + STEP, err);
        if (status != QN_OK)
            return refuse(qn__source_path(source), err ? err->what : "", err);
        status = qn__source_read(source, qn__mapped_file_bytes(file) + *size, PIECE, &got, err);
        if (status != QN_OK)
            return status;
        qn__mapped_file_wrote(file, *size + got);
    }
    return QN_OK;
}

/* The rest of the source, and the bytes before it, which are released. */
static qn_status move_to_file(qn__source *source, qn__buffer *first, qn__contents *out,
                              qn_error *err) {
    qn_error why = {.what = ""};
    const uint64_t plain = qn__source_packing(source) ? 0 : qn__source_file_size(source);
    qn_status status = qn__cache_file_make("", (first->size > plain ? first->size : plain) + STEP,
                                           &out->file, &why);
    if (status == QN_OK) {
        if (first->size > 0)
            memcpy(qn__mapped_file_bytes(out->file), first->data, first->size);
        out->size = first->size;
    } else {
        status = refuse(qn__source_path(source), why.what, err);
    }
    free(first->data);
    if (status == QN_OK)
        status = fill(source, out->file, &out->size, err);
    if (status == QN_OK)
        out->data = (const char *)qn__mapped_file_bytes(out->file);
    else
        qn__contents_release(out);
    return status;
}

/* 1: a plain file is used where it lies. */
static int borrow(const qn__source *source, qn__contents *out) {
    const uint64_t bytes = qn__source_file_size(source);
    if (qn__source_packing(source) || qn__source_part(source) || bytes > SIZE_MAX / 4 ||
        qn__mapped_file_borrow(qn__source_descriptor(source), qn__source_stamp(source),
                               qn__source_path(source), (size_t)bytes, &out->file, NULL) != QN_OK)
        return 0;
    out->data = (const char *)qn__mapped_file_bytes(out->file);
    out->size = (size_t)bytes;
    (void)madvise(qn__mapped_file_bytes(out->file), (size_t)bytes, MADV_SEQUENTIAL); /* a hint */
    return 1;
}

qn_status qn__source_contents_of_any_size(qn__source *source, int change, qn__contents *out,
                                          qn_error *err) {
    qn__buffer buffer;
    *out = (qn__contents){0};
    if (qn__source_unpacked_most(source) < LEAST)
        return qn__source_contents(source, out, err);
    const uint64_t limit = qn__available_memory() / 4;
    const int plain = !qn__source_packing(source) && !qn__source_part(source);
    if (plain && qn__source_file_size(source) <= limit)
        return qn__source_contents(source, out, err);
    if (!change && borrow(source, out))
        return QN_OK;
    const size_t most = plain                  ? 0
                        : limit < LEAST        ? (size_t)LEAST
                        : limit > SIZE_MAX / 4 ? SIZE_MAX / 4
                                               : (size_t)limit;
    const qn_status status = qn__source_take(source, most, &buffer, err);
    if (status != QN_OK)
        return status;
    if (buffer.size == most)
        return move_to_file(source, &buffer, out, err);
    *out = (qn__contents){(const char *)buffer.data, buffer.size, buffer.data, NULL};
    return QN_OK;
}

qn_status qn__contents_make(uint64_t size, const char *path, qn__contents *out, qn_error *err) {
    qn_error why = {.what = ""};
    *out = (qn__contents){0};
    if (size > SIZE_MAX / 4)
        return qn__fail_memory(err, size, 1);
    out->size = (size_t)size;
    if (size < LEAST || size <= qn__available_memory() / 4) {
        out->memory = malloc(out->size + QN__DATA_MARGIN);
        out->data = out->memory;
        return out->memory ? QN_OK : qn__fail_memory(err, size, 1);
    }
    const qn_status status = qn__cache_file_make("", size + QN__DATA_MARGIN, &out->file, &why);
    if (status != QN_OK)
        return refuse(path, why.what, err);
    out->data = (const char *)qn__mapped_file_bytes(out->file);
    return QN_OK;
}

void qn__contents_wrote(const qn__contents *contents, size_t bytes) {
    if (contents->file)
        qn__mapped_file_wrote(contents->file, bytes);
}

void qn__contents_forget(const qn__contents *contents, size_t from, size_t to) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)contents->data + from + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)contents->data + to) / page * page;
    if (begin < end) /* only a hint: an error changes nothing */
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void qn__contents_release(qn__contents *contents) {
    free(contents->memory);
    qn__mapped_file_close(contents->file);
    *contents = (qn__contents){0};
}
