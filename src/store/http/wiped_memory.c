/* Blocks of powers of two, cut from large areas; what is released waits in a list of its size. */
#include "store/http/wiped_memory.h"
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEAD = 16, SMALLEST = 6, LARGEST = 21, AREA = 1 << 22 };

typedef struct block {
    size_t power; /* the block with this head has 2^power bytes */
    struct block *next;
} block;
_Static_assert(sizeof(block) <= HEAD, "bytes after the head are aligned for any type");

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static block *waiting[LARGEST + 1];
static char *area;
static size_t left;

void qn__wiped_keep_from_core(void *memory, size_t bytes) {
#ifdef MADV_DONTDUMP
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)memory / page * page,
                    end = ((uintptr_t)memory + bytes + page - 1) / page * page;
    (void)madvise((void *)begin, end - begin, MADV_DONTDUMP);
#else
    (void)memory, (void)bytes;
#endif
}

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    qn__wiped_keep_from_core(memory, bytes);
    return memory;
}

/* The rest of an area that is too small for the block is not used any more. */
static block *cut(size_t power) {
    const size_t bytes = (size_t)1 << power;
    if (left < bytes) {
        char *more = map(AREA);
        if (!more)
            return NULL;
        area = more;
        left = AREA;
    }
    block *made = (block *)(void *)area;
    area += bytes;
    left -= bytes;
    return made;
}

static size_t power_of(size_t bytes) {
    size_t power = SMALLEST;
    while (power < 63 && (size_t)1 << power < bytes)
        power++;
    return power;
}

void *qn__wiped_make(size_t size) {
    if (size > SIZE_MAX / 4)
        return NULL;
    const size_t power = power_of(size + HEAD);
    block *made;
    if (power > LARGEST) {
        made = map((size_t)1 << power);
    } else {
        pthread_mutex_lock(&guard);
        made = waiting[power];
        if (made)
            waiting[power] = made->next;
        else
            made = cut(power);
        pthread_mutex_unlock(&guard);
    }
    if (!made)
        return NULL;
    made->power = power;
    return (char *)made + HEAD;
}

static block *head_of(void *memory) { return (block *)(void *)((char *)memory - HEAD); }

void qn__wiped_free(void *memory) {
    if (!memory)
        return;
    block *old = head_of(memory);
    const size_t power = old->power, bytes = (size_t)1 << power;
    if (power > LARGEST) {
        (void)munmap(old, bytes);
        return;
    }
    explicit_bzero(memory, bytes - HEAD);
    pthread_mutex_lock(&guard);
    old->next = waiting[power];
    waiting[power] = old;
    pthread_mutex_unlock(&guard);
}

void *qn__wiped_resize(void *memory, size_t size) {
    const size_t had = memory ? ((size_t)1 << head_of(memory)->power) - HEAD : 0;
    if (memory && size <= had)
        return memory;
    void *made = qn__wiped_make(size);
    if (made && memory) {
        memcpy(made, memory, had);
        qn__wiped_free(memory);
    }
    return made;
}

char *qn__wiped_copy(const char *text) {
    const size_t size = strlen(text) + 1;
    char *made = qn__wiped_make(size);
    if (made)
        memcpy(made, text, size);
    return made;
}

void *qn__wiped_many(size_t count, size_t size) {
    return size > 0 && count > SIZE_MAX / size ? NULL : qn__wiped_make(count * size);
}
