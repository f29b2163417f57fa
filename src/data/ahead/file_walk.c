#include "data/ahead/file_walk.h"
#include "base/files/mapped_file.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of a chunk: they fit a core's cache, so whoever needs them next has them there. Chunks that
 * are asked for ahead: a disk of 500 MB/s takes 2 ms for each. */
enum { CHUNK = 1 << 20, AHEAD = 4 };

static uintptr_t page_size(void) { return (uintptr_t)sysconf(_SC_PAGESIZE); }

/* The items of the i-th chunk of the walk. */
static void items_of(const qn__file_walk *w, uint64_t i, uint64_t *from, uint64_t *end) {
    *from = (w->first + i) % w->chunks * w->items;
    *end = w->data->items - *from < w->items ? w->data->items : *from + w->items;
}

/* The pages in which items lie. */
static uint8_t *pages_of(const qn_data *data, uint64_t from, uint64_t end, size_t *bytes) {
    const uintptr_t begin = (uintptr_t)qn__data_item(data, from) / page_size() * page_size();
    *bytes = (uintptr_t)qn__data_item(data, end - 1) + qn__data_stride(data) - begin;
    return (uint8_t *)begin;
}

static void ask_for(const qn__file_walk *w, uint64_t i) {
    uint64_t from, end;
    size_t bytes;
    if (i >= w->chunks)
        return;
    items_of(w, i, &from, &end);
    uint8_t *pages = pages_of(w->data, from, end, &bytes);
    (void)madvise(pages, bytes, MADV_WILLNEED); /* only a hint */
}

/* Whether the first page of a chunk is in the file cache, which stands for the others. */
static int is_cached(const qn_data *data, uint64_t item) {
    unsigned char in_cache = 0;
    size_t bytes;
    uint8_t *page = pages_of(data, item, item + 1, &bytes);
    return mincore(page, 1, &in_cache) == 0 && in_cache & 1;
}

void qn__file_walk_begin(qn__file_walk *w, const qn_data *data) {
    w->data = data;
    w->items = CHUNK / qn__data_stride(data) + 1;
    w->chunks = (data->items + w->items - 1) / w->items;
    w->first = w->chunks;
    while (w->first > 0 && is_cached(data, (w->first - 1) * w->items))
        w->first--;
    atomic_store(&w->next, 0);
    for (uint64_t i = 0; i < AHEAD; i++)
        ask_for(w, i);
}

int qn__file_walk_next(qn__file_walk *w, uint64_t *from, uint64_t *end) {
    const uint64_t i = atomic_fetch_add(&w->next, 1);
    if (i >= w->chunks)
        return 0;
    ask_for(w, i + AHEAD);
    items_of(w, i, from, end);
    return 1;
}

void qn__file_walk_drop(const qn__file_walk *w, uint64_t from, uint64_t end) {
    const qn__mapped_file *file = w->data->in_file;
    size_t bytes;
    uint8_t *pages = pages_of(w->data, from, end, &bytes);
    const size_t first = (size_t)(pages - qn__mapped_file_bytes(file));
    if (madvise(pages, bytes, MADV_DONTNEED) == 0)
        (void)posix_fadvise(qn__mapped_file_descriptor(file), (off_t)first, (off_t)bytes,
                            POSIX_FADV_DONTNEED); /* only a hint */
}
