/* Memory with checked sizes. */
#ifndef QN_BASE_MEMORY_H
#define QN_BASE_MEMORY_H

#include "base/error.h"
#include <stddef.h>

/* count x size zeroed bytes, aligned to 64 and with at least 64 bytes behind the end that may be
 * read (not written), or NULL when the product overflows or memory is short (err says so). Zero
 * bytes give a valid pointer. Large blocks take memory only as they are touched. Released with
 * qn__free, which accepts NULL. */
void *qn__alloc(size_t count, size_t size, qn_error *err);
void qn__free(void *memory);

/* A copy of a NUL-terminated text, released with qn__free. */
char *qn__copy_text(const char *text, qn_error *err);

#endif
