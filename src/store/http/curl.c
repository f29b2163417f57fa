#include "store/http/curl.h"
#include "base/system/float_state.h"
#include "store/http/wiped_memory.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

qn__curl qn__curl_functions;

static const qn__library_symbol symbols[] = {
    {"curl_global_init_mem", &qn__curl_functions.global_init},
    {"curl_easy_init", &qn__curl_functions.make},
    {"curl_easy_reset", &qn__curl_functions.reset},
    {"curl_easy_cleanup", &qn__curl_functions.free},
    {"curl_easy_setopt", &qn__curl_functions.set},
    {"curl_easy_perform", &qn__curl_functions.perform},
    {"curl_easy_getinfo", &qn__curl_functions.get},
    {"curl_easy_strerror", &qn__curl_functions.text},
    {"curl_slist_append", &qn__curl_functions.list_add},
    {"curl_slist_free_all", &qn__curl_functions.list_free},
    {"curl_version", &qn__curl_functions.version},
    {NULL, NULL}};

/* "libcurl/7.88.1 OpenSSL/3.0.20 ...": the number, and who does TLS. */
static void version(char text[32]) {
    const char *all = qn__curl_functions.version(), *slash = strchr(all, '/');
    const char *number = slash ? slash + 1 : all;
    const size_t size = strcspn(number, " ");
    const char *next = number + size + strspn(number + size, " ");
    snprintf(text, 32, "%.*s, %.*s", (int)(size < 10 ? size : 10), number,
             (int)(strcspn(next, "/ ") < 16 ? strcspn(next, "/ ") : 16), next);
}

qn__optional_library qn__curl_library = {.name = "libcurl",
                                         .file = "libcurl.so.4",
                                         .debian = "libcurl4",
                                         .fedora = "libcurl",
                                         .symbol = symbols,
                                         .version = version};

/* Handles that wait for a request. Each keeps its connections, so the one that was used last is
 * taken first. */
enum { KEPT = 64, GLOBAL_ALL = 3 };
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void *kept[KEPT];
static int kept_count, is_begun;

/* Where this program has used libcurl before, it keeps its memory. */
static int begin(void) {
    return qn__curl_functions.global_init(GLOBAL_ALL, qn__wiped_make, qn__wiped_free,
                                          qn__wiped_resize, qn__wiped_copy, qn__wiped_many);
}

void *qn__curl_take(void) {
    void *handle = NULL;
    if (!qn__optional_open(&qn__curl_library))
        return NULL;
    pthread_mutex_lock(&guard);
    if (!is_begun)
        is_begun = begin() == QN__CURL_OK;
    if (is_begun)
        handle = kept_count > 0 ? kept[--kept_count] : qn__curl_functions.make();
    pthread_mutex_unlock(&guard);
    qn__float_state_set();
    return handle;
}

void qn__curl_give(void *handle) {
    if (!handle)
        return;
    qn__curl_functions.reset(handle);
    pthread_mutex_lock(&guard);
    const int is_kept = kept_count < KEPT;
    if (is_kept)
        kept[kept_count++] = handle;
    pthread_mutex_unlock(&guard);
    if (!is_kept)
        qn__curl_functions.free(handle);
}
