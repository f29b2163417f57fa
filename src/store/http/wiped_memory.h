/* Memory for secrets, and for libcurl, whose copies of requests hold tokens: it is not in a core
 * file, and it is wiped when it is released. Any thread. */
#ifndef QN_STORE_HTTP_WIPED_MEMORY_H
#define QN_STORE_HTTP_WIPED_MEMORY_H

#include <stddef.h>

/* As malloc, free, realloc, strdup and calloc. What the first one gives is zero, too. */
void *qn__wiped_make(size_t size);
void qn__wiped_free(void *memory);
void *qn__wiped_resize(void *memory, size_t size);
char *qn__wiped_copy(const char *text);
void *qn__wiped_many(size_t count, size_t size);

/* Leaves the pages of other memory out of core files, too. A hint: an old kernel refuses it. */
void qn__wiped_keep_from_core(void *memory, size_t bytes);

#endif
