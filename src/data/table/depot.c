#include "data/table/depot.h"

#include "base/files/cache_file.h"
#include "base/memory.h"
#include "base/system/available.h"
#include <pthread.h>

/* The part of the available memory that a depot may take: a table has several, and a job needs most
 * of it. */
enum { PART = 8 };

/* Fewer bytes never need a file. Bytes of the first file; the next ones are as large as half of
 * those before together, so that a process has few of them. */
#define LEAST ((size_t)4 << 20)
#define STEP ((size_t)64 << 20)
/* BEHIND: bytes after a piece that can be read, as qn__alloc has them. */
enum { ALIGNED = 16, FIRST_BLOCKS = 16, BEHIND = 64 };

struct qn__depot {
    pthread_mutex_t lock;
    int owners;
    void **block; /* in memory */
    size_t blocks, capacity, in_memory;
    qn__mapped_file **file;
    size_t files, used, in_files; /* used: of the last one */
};

qn__depot *qn__depot_create(qn_error *err) {
    qn__depot *d = qn__alloc(1, sizeof *d, err);
    if (!d)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    d->owners = 1;
    return d;
}

qn__depot *qn__depot_share(qn__depot *d) {
    if (!d)
        return NULL;
    pthread_mutex_lock(&d->lock);
    d->owners++;
    pthread_mutex_unlock(&d->lock);
    return d;
}

void qn__depot_release(qn__depot *d) {
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    const int left = --d->owners;
    pthread_mutex_unlock(&d->lock);
    if (left > 0)
        return;
    for (size_t i = 0; i < d->blocks; i++)
        qn__free(d->block[i]);
    for (size_t i = 0; i < d->files; i++)
        qn__mapped_file_close(d->file[i]);
    qn__free((void *)d->block);
    qn__free((void *)d->file);
    pthread_mutex_destroy(&d->lock);
    qn__free(d);
}

static void *take_memory(qn__depot *d, size_t bytes, qn_error *err) {
    if (d->blocks == d->capacity) {
        const size_t capacity = d->capacity ? 2 * d->capacity : FIRST_BLOCKS;
        void **more = (void **)qn__alloc(capacity, sizeof *more, err);
        if (!more)
            return NULL;
        for (size_t i = 0; i < d->blocks; i++)
            more[i] = d->block[i];
        qn__free((void *)d->block);
        d->block = more;
        d->capacity = capacity;
    }
    void *block = qn__alloc(bytes, 1, err);
    if (!block)
        return NULL;
    d->block[d->blocks++] = block;
    d->in_memory += bytes;
    return block;
}

/* There is space for `bytes` in the last file. */
static qn_status need_file(qn__depot *d, size_t bytes, qn_error *err) {
    if (d->files > 0 && qn__mapped_file_size(d->file[d->files - 1]) - d->used >= bytes + BEHIND)
        return QN_OK;
    qn__mapped_file **more = (qn__mapped_file **)qn__alloc(d->files + 1, sizeof *more, err);
    if (!more)
        return QN_MEMORY;
    for (size_t i = 0; i < d->files; i++)
        more[i] = d->file[i];
    qn__free((void *)d->file);
    d->file = more;
    const size_t least = d->in_files / 2 > STEP ? d->in_files / 2 : STEP;
    const size_t size = bytes + BEHIND > least ? bytes + BEHIND : least;
    const qn_status status = qn__cache_file_make("", size, &d->file[d->files], err);
    if (status != QN_OK)
        return status;
    d->files++;
    d->used = 0;
    d->in_files += size;
    return QN_OK;
}

static void *take_file(qn__depot *d, size_t bytes, qn_error *err) {
    if (need_file(d, bytes, err) != QN_OK)
        return NULL;
    qn__mapped_file *file = d->file[d->files - 1];
    qn__mapped_file_wrote(file, d->used);
    void *piece = qn__mapped_file_bytes(file) + d->used;
    d->used += bytes;
    return piece;
}

static void *take(qn__depot *d, size_t bytes, qn_error *err) {
    const size_t all = d->in_memory + bytes;
    qn_error why = {.what = ""};
    void *piece = NULL;
    if (d->files == 0 && (all <= LEAST || all <= qn__available_memory() / PART))
        piece = take_memory(d, bytes, &why);
    if (!piece)
        piece = take_file(d, bytes, &why);
    if (piece)
        return piece;
    qn__fail(err, QN_MEMORY,
             "memory does not hold the data, and they cannot be kept in a file: %.200s", why.what);
    qn__remedy(err, QN_MEMORY,
               "name a folder with space by QUERN_CACHE, or use a machine with more memory");
    return NULL;
}

void *qn__depot_take(qn__depot *depot, size_t bytes, qn_error *err) {
    if (bytes > SIZE_MAX / 4) {
        qn__fail_memory(err, bytes, 1);
        return NULL;
    }
    bytes = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    pthread_mutex_lock(&depot->lock);
    void *piece = take(depot, bytes, err);
    pthread_mutex_unlock(&depot->lock);
    return piece;
}

int qn__depot_is_large(qn__depot *depot) {
    if (!depot)
        return 0;
    pthread_mutex_lock(&depot->lock);
    const int large = depot->files > 0;
    pthread_mutex_unlock(&depot->lock);
    return large;
}
