/* Memory for libcurl: its copies of requests hold tokens, so it is not in a core file, and it is
 * wiped when it is released. Any thread. */
#ifndef QN_STORE_HTTP_CURL_MEMORY_H
#define QN_STORE_HTTP_CURL_MEMORY_H

#include <stddef.h>

/* As malloc, free, realloc, strdup and calloc. */
void *qn__curl_memory_make(size_t size);
void qn__curl_memory_free(void *memory);
void *qn__curl_memory_resize(void *memory, size_t size);
char *qn__curl_memory_copy(const char *text);
void *qn__curl_memory_clear(size_t count, size_t size);

#endif
