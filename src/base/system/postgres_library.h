/* PostgreSQL's library libpq, opened at run time: the parts of libpq-fe.h in use, which are stable
 * since PostgreSQL 9.2. A `server` is a PGconn *, a `result` a PGresult *. */
#ifndef QN_BASE_SYSTEM_POSTGRES_LIBRARY_H
#define QN_BASE_SYSTEM_POSTGRES_LIBRARY_H

#include "base/system/library.h"

/* Own declarations of its numbers. */
enum {
    QN__PQ_CONNECTED = 0,
    QN__PQ_COMMAND = 1,
    QN__PQ_ROWS = 2,
    QN__PQ_COPY_IN = 4,
    QN__PQ_SINGLE_ROW = 9,
    QN__PQ_FIELD_MESSAGE = 'M',
    QN__PQ_FIELD_CODE = 'C'
};

typedef struct qn__pq_option {
    char *keyword, *variable, *compiled, *value, *label, *mark;
    int size;
} qn__pq_option;

typedef struct qn__pq {
    qn__pq_option *(*parse)(const char *address, char **message);
    void (*forget)(qn__pq_option *options);
    void *(*connect)(const char *const *keyword, const char *const *value, int expand);
    void (*close)(void *server);
    int (*status)(const void *server);
    char *(*text)(const void *server);
    int (*send)(void *server, const char *query);
    int (*single)(void *server);
    void *(*result)(void *server);
    void (*clear)(void *result);
    int (*kind)(const void *result);
    char *(*field)(const void *result, int code);
    int (*columns)(const void *result);
    char *(*name)(const void *result, int column);
    unsigned (*type)(const void *result, int column);
    int (*rows)(const void *result);
    int (*is_null)(const void *result, int row, int column);
    char *(*value)(const void *result, int row, int column);
    int (*length)(const void *result, int row, int column);
    void *(*exec)(void *server, const char *sql);
    /* Values are texts, NULL for NULL. */
    void *(*exec_values)(void *server, const char *sql, int count, const unsigned *types,
                         const char *const *values, const int *lengths, const int *formats,
                         int binary);
    int (*copy)(void *server, const char *bytes, int size);
    int (*copy_end)(void *server, const char *message);
    int (*version)(void);
} qn__pq;

/* Its functions, once qn__optional_need or qn__optional_open has found the library. */
extern qn__pq qn__pq_functions;
extern qn__optional_library qn__pq_library;

#endif
