/* Memory with checked sizes. */
#ifndef QN_BASE_MEMORY_H
#define QN_BASE_MEMORY_H

#include "base/error.h"
#include <stdint.h>

/* count x size zeroed bytes, aligned to 64 and with at least 64 bytes behind the end that may be
 * read (not written), or NULL when the product overflows or memory is short (err says so). Zero
 * bytes give a valid pointer. Large blocks take memory only as they are touched. Released with
 * qn__free, which accepts NULL. */
void *qn__alloc(uint64_t count, uint64_t size, qn_error *err);
void qn__free(void *memory);

/* Asks for large pages in a block of memory, where it has room for some and the system has them for
 * those who ask (or in any case, where it is filled): what is drawn from all over it is then seldom
 * on a page whose place has to be looked up. `filled`: its pages are in use, and are brought
 * together now; else they will be large when they are first touched. qn__alloc does the latter. */
void qn__ask_for_large_pages(void *block, size_t bytes, int filled);

/* A copy of a NUL-terminated text, released with qn__free. */
char *qn__copy_text(const char *text, qn_error *err);

#endif
