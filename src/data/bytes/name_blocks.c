#include "data/bytes/name_blocks.h"
#include "base/memory.h"
#include <string.h>

/* The first block is small: most lists have few names. */
enum { SMALLEST = 1 << 10, LARGEST = 1 << 18 };

typedef struct qn__name_block {
    struct qn__name_block *before;
    char text[];
} block;

char *qn__name_blocks_add(qn__name_blocks *names, const char *text, qn_error *err) {
    const size_t size = strlen(text) + 1;
    if (size > names->capacity - names->used) {
        size_t capacity = names->capacity ? 2 * names->capacity : SMALLEST;
        capacity = capacity < LARGEST ? capacity : LARGEST;
        capacity = capacity > size ? capacity : size;
        block *more = qn__alloc(sizeof *more + capacity, 1, err);
        if (!more)
            return NULL;
        more->before = names->last;
        *names = (qn__name_blocks){more, 0, capacity};
    }
    char *copy = names->last->text + names->used;
    memcpy(copy, text, size);
    names->used += size;
    return copy;
}

void qn__name_blocks_release(qn__name_blocks *names) {
    for (block *at = names->last, *before; at; at = before) {
        before = at->before;
        qn__free(at);
    }
    *names = (qn__name_blocks){0};
}
