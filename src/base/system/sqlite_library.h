/* SQLite's library, opened at run time: the parts of sqlite3.h in use, which are stable since
 * version 3. A `base` is a sqlite3 *, a `statement` a sqlite3_stmt *. */
#ifndef QN_BASE_SYSTEM_SQLITE_LIBRARY_H
#define QN_BASE_SYSTEM_SQLITE_LIBRARY_H

#include "base/system/library.h"
#include <stdint.h>

enum {
    QN__SQLITE_OK = 0,
    QN__SQLITE_BUSY = 5,
    QN__SQLITE_MEMORY = 7,
    QN__SQLITE_ROW = 100,
    QN__SQLITE_DONE = 101
};
/* How a file is opened. */
enum { QN__SQLITE_READ = 1, QN__SQLITE_WRITE = 2, QN__SQLITE_CREATE = 4 };

typedef struct qn__sqlite {
    int (*open)(const char *path, void **base, int flags, const char *vfs);
    int (*close)(void *base);
    const char *(*text)(void *base);
    int (*exec)(void *base, const char *sql, int (*row)(void *, int, char **, char **), void *user,
                char **message);
    int (*prepare)(void *base, const char *sql, int size, void **statement, const char **tail);
    int (*step)(void *statement);
    int (*reset)(void *statement);
    int (*finalize)(void *statement);
    int (*columns)(void *statement);
    const char *(*name)(void *statement, int column);
    int (*type)(void *statement, int column);
    int64_t (*whole)(void *statement, int column);
    double (*number)(void *statement, int column);
    const unsigned char *(*words)(void *statement, int column);
    int (*bytes)(void *statement, int column);
    /* Parameters count from 1. The text must stay until the statement ends. */
    int (*bind_text)(void *statement, int parameter, const char *text, int size,
                     void (*release)(void *));
    int (*bind_whole)(void *statement, int parameter, int64_t value);
    int (*bind_number)(void *statement, int parameter, double value);
    int (*bind_null)(void *statement, int parameter);
    const char *(*version)(void);
} qn__sqlite;

/* Its functions, once qn__optional_need or qn__optional_open has found the library. */
extern qn__sqlite qn__sqlite_functions;
extern qn__optional_library qn__sqlite_library;

#endif
