#include "base/system/sqlite_library.h"

#include "base/system/library.h"
#include <pthread.h>

static struct {
    qn__library library;
    qn__sqlite functions;
} the;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static qn__library_function find(const char *name) { return qn__library_find(&the.library, name); }

static void find_functions(qn__sqlite *f) {
    f->open = (int (*)(const char *, void **, int, const char *))find("sqlite3_open_v2");
    f->close = (int (*)(void *))find("sqlite3_close");
    f->text = (const char *(*)(void *))find("sqlite3_errmsg");
    f->exec = (int (*)(void *, const char *, int (*)(void *, int, char **, char **), void *,
                       char **))find("sqlite3_exec");
    f->prepare =
        (int (*)(void *, const char *, int, void **, const char **))find("sqlite3_prepare_v2");
    f->step = (int (*)(void *))find("sqlite3_step");
    f->finalize = (int (*)(void *))find("sqlite3_finalize");
    f->columns = (int (*)(void *))find("sqlite3_column_count");
    f->name = (const char *(*)(void *, int))find("sqlite3_column_name");
    f->type = (int (*)(void *, int))find("sqlite3_column_type");
    f->whole = (int64_t(*)(void *, int))find("sqlite3_column_int64");
    f->number = (double (*)(void *, int))find("sqlite3_column_double");
    f->words = (const unsigned char *(*)(void *, int))find("sqlite3_column_text");
    f->bytes = (int (*)(void *, int))find("sqlite3_column_bytes");
    f->bind_text =
        (int (*)(void *, int, const char *, int, void (*)(void *)))find("sqlite3_bind_text");
    f->bind_whole = (int (*)(void *, int, int64_t))find("sqlite3_bind_int64");
    f->bind_number = (int (*)(void *, int, double))find("sqlite3_bind_double");
    f->version = (const char *(*)(void))find("sqlite3_libversion");
}

static void open_library(void) {
    if (qn__library_open(&the.library, "libsqlite3.so.0"))
        find_functions(&the.functions);
    if (the.library.handle)
        (void)qn__library_is_whole(&the.library);
}

const qn__sqlite *qn__sqlite_open(void) {
    pthread_once(&opened, open_library);
    return the.library.handle ? &the.functions : NULL;
}
