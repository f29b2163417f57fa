#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, BEHIND = 64, LARGE_PAGE = 1 << 21 };

/* Linux 6.1; the C library's headers may be older. */
#if defined(MADV_HUGEPAGE) && !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25
#endif

void qn__ask_for_large_pages(void *block, size_t bytes, int filled) {
#if defined(MADV_HUGEPAGE)
    const size_t skip = -(uintptr_t)block % LARGE_PAGE;
    if (bytes / LARGE_PAGE < 2)
        return;
    /* Advice only: an error changes nothing. */
    (void)madvise((char *)block + skip, (bytes - skip) / LARGE_PAGE * LARGE_PAGE,
                  filled ? MADV_COLLAPSE : MADV_HUGEPAGE);
#else
    (void)block;
    (void)bytes;
    (void)filled;
#endif
}

/* calloc rather than aligned_alloc and memset: the kernel allocates zero pages at the first access.
 * So a large block uses no memory before that. Each page, which may be a large one, is on the NUMA
 * node of the core that uses it first. The address of calloc is stored just before the block, for
 * qn__free. */
void *qn__alloc(uint64_t count, uint64_t size, qn_error *err) {
    size_t bytes, total;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)(sizeof(void *) + LINE - 1 + BEHIND), &total)) {
        qn__fail_memory(err, count, size);
        return NULL;
    }
    char *base = calloc(1, total);
    if (!base) {
        qn__fail_memory(err, count, size);
        return NULL;
    }
    const uintptr_t first = (uintptr_t)base + sizeof(void *);
    const uintptr_t past = first % LINE;
    char *block = base + sizeof(void *) + (past ? LINE - past : 0);
    memcpy(block - sizeof(void *), &base, sizeof base);
    qn__ask_for_large_pages(block, bytes, 0);
    return block;
}

/* Bytes of a mapping for so many: whole large pages, if it has any, so that the last bytes are in
 * one too. */
static size_t mapped_bytes(size_t bytes) {
    const size_t all = bytes + BEHIND;
    return bytes / LARGE_PAGE < 2 ? all : (all + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
}

/* A mapping that begins with a large page, where there are any. */
static void *map_pages(size_t bytes, int flags) {
    const size_t spare = bytes / LARGE_PAGE < 2 ? 0 : LARGE_PAGE;
    char *block = mmap(NULL, bytes + spare, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (block == MAP_FAILED || spare == 0)
        return block;
    const size_t skip = -(uintptr_t)block % LARGE_PAGE;
    if (skip > 0)
        munmap(block, skip);
    munmap(block + skip + bytes, spare - skip);
    return block + skip;
}

static void *alloc_pages(size_t bytes, int flags, qn_error *err) {
    void *block = MAP_FAILED;
    if (bytes <= SIZE_MAX - BEHIND - 2 * (size_t)LARGE_PAGE)
        block = map_pages(mapped_bytes(bytes), flags);
    if (block == MAP_FAILED) {
        qn__fail_memory(err, bytes, 1);
        return NULL;
    }
    return block;
}

void *qn__alloc_pages(size_t bytes, qn_error *err) {
    void *block = alloc_pages(bytes, 0, err);
    if (block)
        qn__ask_for_large_pages(block, mapped_bytes(bytes), 0);
    return block;
}

void *qn__reserve_pages(size_t bytes, qn_error *err) {
    return alloc_pages(bytes, MAP_NORESERVE, err);
}

void qn__free_pages(void *memory, size_t bytes) {
    if (memory)
        munmap(memory, mapped_bytes(bytes));
}

void qn__free(void *memory) {
    if (!memory)
        return;
    void *base;
    memcpy(&base, (char *)memory - sizeof(void *), sizeof base);
    free(base);
}

char *qn__copy_text(const char *text, qn_error *err) {
    const size_t size = strlen(text) + 1;
    char *copy = qn__alloc(size, 1, err);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

char *qn__copy_unquoted(const char *text, size_t size, int quoted, qn_error *err) {
    char *copy = qn__alloc(size + 1, 1, err);
    size_t length = 0;
    for (size_t i = 0; copy && i < size; ++i) {
        copy[length++] = text[i];
        i += quoted && text[i] == '"';
    }
    return copy;
}
