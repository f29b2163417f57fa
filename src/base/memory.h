/* Memory with checked sizes. */
#ifndef QN_BASE_MEMORY_H
#define QN_BASE_MEMORY_H

#include "base/error.h"
#include <stdint.h>

/* count x size zeroed bytes, aligned to 64, with at least 64 bytes after the end that may be read
 * (not written). NULL when the product overflows or memory is short; err has the reason. Zero bytes
 * give a valid pointer. Large blocks use memory only after the first access. Released with
 * qn__free, which accepts NULL. */
void *qn__alloc(uint64_t count, uint64_t size, qn_error *err);
void qn__free(void *memory);

/* The same for `bytes` of which few may be used. qn__alloc clears a block that was in use before;
 * these are always new pages, which take no memory until they are used. Released with
 * qn__free_pages, which accepts NULL. */
void *qn__alloc_pages(size_t bytes, qn_error *err);
/* The same where there may be less memory than `bytes`. */
void *qn__reserve_pages(size_t bytes, qn_error *err);
void qn__free_pages(void *memory, size_t bytes);

/* Requests large pages for a block of memory that is large enough, if the system grants them on
 * request. Random access then has fewer TLB misses. `filled`: its pages are in use, and are merged
 * now, even if the system does not grant large pages on request. Otherwise large pages are used at
 * the first access; qn__alloc requests this. */
void qn__ask_for_large_pages(void *block, size_t bytes, int filled);

/* A copy of a NUL-terminated text, released with qn__free. */
char *qn__copy_text(const char *text, qn_error *err);

/* A copy of `size` bytes as a text, released with qn__free. Where they stood between quotes
 * (`quoted`), two quotes stand for one. */
char *qn__copy_unquoted(const char *text, size_t size, int quoted, qn_error *err);

#endif
