/* GNU libmicrohttpd, opened at run time: the parts of microhttpd.h in use, which are stable since
 * version 0.9.60. A `daemon` is a struct MHD_Daemon *, a `connection` a struct MHD_Connection *, a
 * `response` a struct MHD_Response *. Results are 1 for yes and 0 for no. */
#ifndef QN_SERVE_HTTP_MICROHTTPD_LIBRARY_H
#define QN_SERVE_HTTP_MICROHTTPD_LIBRARY_H

#include "base/system/library.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Flags of start. */
enum {
    QN__MHD_TLS = 2,
    QN__MHD_OWN_THREADS = 8,
    QN__MHD_NO_LISTENER = 256,
    QN__MHD_SUSPEND = 8192 | 1024,
    QN__MHD_AUTO = 65536 /* epoll where there is one */
};
/* Options of start, each followed by its value. */
enum {
    QN__MHD_END = 0,
    QN__MHD_MEMORY = 1,      /* size_t: bytes of a connection */
    QN__MHD_CONNECTIONS = 2, /* unsigned */
    QN__MHD_TIMEOUT = 3,     /* unsigned: seconds without traffic */
    QN__MHD_COMPLETED = 4,   /* a function and its context */
    QN__MHD_KEY = 8,
    QN__MHD_CERTIFICATE = 9,
    QN__MHD_LISTENER = 12,  /* int */
    QN__MHD_POOL = 14,      /* unsigned: threads */
    QN__MHD_UNESCAPE = 16,  /* a function and its context */
    QN__MHD_CONNECTED = 27, /* a function and its context */
    QN__MHD_STRICT = 29     /* int */
};
enum { QN__MHD_HEADERS = 1, QN__MHD_QUERY = 8 }; /* kinds of values */
enum { QN__MHD_IS_WHOLE = 0 };                   /* how a request ended */
/* Facts of a connection; the last one is the size of the head. */
enum { QN__MHD_CLIENT = 2, QN__MHD_SOCKET = 6, QN__MHD_CONTEXT = 7, QN__MHD_HEAD = 10 };
enum { QN__MHD_STREAM_ENDS = -1, QN__MHD_STREAM_FAILS = -2 };
#define QN__MHD_UNKNOWN_SIZE UINT64_MAX

typedef int (*qn__mhd_handler)(void *user, void *connection, const char *path, const char *method,
                               const char *version, const char *bytes, size_t *size,
                               void **request);

typedef struct qn__mhd {
    void *(*start)(unsigned flags, uint16_t port, void *allows, void *allows_user,
                   qn__mhd_handler handler, void *user, ...);
    int (*quiesce)(void *daemon);
    void (*stop)(void *daemon);
    int (*values)(void *connection, int kind,
                  int (*each)(void *user, int kind, const char *name, const char *value),
                  void *user);
    const char *(*value)(void *connection, int kind, const char *name);
    int (*queue)(void *connection, unsigned status, void *response);
    void (*suspend)(void *connection);
    void (*resume)(void *connection);
    void *(*from_bytes)(size_t size, void *bytes, void (*release)(void *bytes));
    void *(*from_reader)(uint64_t size, size_t block,
                         ssize_t (*read)(void *user, uint64_t at, char *bytes, size_t most),
                         void *user, void (*release)(void *user));
    int (*header)(void *response, const char *name, const char *value);
    void (*release)(void *response);
    const void *(*fact)(void *connection, int fact, ...); /* a union of its values */
    const char *(*version)(void);
} qn__mhd;

/* Its functions, once qn__optional_need has found the library. */
extern qn__mhd qn__mhd_functions;
extern qn__optional_library qn__mhd_library;

#endif
