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
enum { ALIGNED = 16, BEHIND = 64 };

/* A piece of memory, ALIGNED bytes after this, or a file. */
typedef struct block {
    struct block *before;
    qn__mapped_file *file; /* NULL: memory */
} block;

struct qn__depot {
    pthread_mutex_t lock;
    int owners;
    block *last;                      /* after a file all are files */
    size_t in_memory, in_files, used; /* used: of the last file */
};

_Static_assert(sizeof(block) <= ALIGNED, "pieces are aligned");

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
    for (block *b = d->last, *before; b; b = before) {
        before = b->before;
        qn__mapped_file_close(b->file);
        qn__free(b);
    }
    pthread_mutex_destroy(&d->lock);
    qn__free(d);
}

static void *take_memory(qn__depot *d, size_t bytes, qn_error *err) {
    block *b = qn__alloc(ALIGNED + bytes, 1, err);
    if (!b)
        return NULL;
    b->before = d->last;
    d->last = b;
    d->in_memory += bytes;
    return (uint8_t *)b + ALIGNED;
}

static int is_large(const qn__depot *d) { return d->last && d->last->file; }

/* There is space for `bytes` in the last file. */
static qn_status need_file(qn__depot *d, size_t bytes, qn_error *err) {
    if (is_large(d) && qn__mapped_file_size(d->last->file) - d->used >= bytes + BEHIND)
        return QN_OK;
    const size_t least = d->in_files / 2 > STEP ? d->in_files / 2 : STEP;
    const size_t size = bytes + BEHIND > least ? bytes + BEHIND : least;
    block *b = qn__alloc(1, sizeof *b, err);
    const qn_status status = b ? qn__cache_file_make("", size, &b->file, err) : QN_MEMORY;
    if (status != QN_OK) {
        qn__free(b);
        return status;
    }
    b->before = d->last;
    d->last = b;
    d->used = 0;
    d->in_files += size;
    return QN_OK;
}

static void *take_file(qn__depot *d, size_t bytes, qn_error *err) {
    if (need_file(d, bytes, err) != QN_OK)
        return NULL;
    qn__mapped_file *file = d->last->file;
    qn__mapped_file_wrote(file, d->used);
    void *piece = qn__mapped_file_bytes(file) + d->used;
    d->used += bytes;
    return piece;
}

static void *take(qn__depot *d, size_t bytes, qn_error *err) {
    const size_t all = d->in_memory + bytes;
    qn_error why = {.what = ""};
    void *piece = NULL;
    if (!is_large(d) && (all <= LEAST || all <= qn__available_memory() / PART))
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
    const int large = is_large(depot);
    pthread_mutex_unlock(&depot->lock);
    return large;
}
