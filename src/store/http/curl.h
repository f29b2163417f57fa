/* libcurl, opened when the first address is read. */
#ifndef QN_STORE_HTTP_CURL_H
#define QN_STORE_HTTP_CURL_H

#include "base/system/library.h"

/* Own declarations of the parts of curl/curl.h in use, which are stable since version 7.61 (2018).
 * The options' numbers say the type of the value: below 10000 long, then pointers, functions from
 * 20000, 64-bit sizes from 30000. */
typedef enum qn__curl_option {
    QN__CURL_WRITEDATA = 10001,
    QN__CURL_URL = 10002,
    QN__CURL_READDATA = 10009,
    QN__CURL_ERRORBUFFER = 10010,
    QN__CURL_LOW_SPEED_LIMIT = 19,
    QN__CURL_LOW_SPEED_TIME = 20,
    QN__CURL_USERAGENT = 10018,
    QN__CURL_HTTPHEADER = 10023,
    QN__CURL_HEADERDATA = 10029,
    QN__CURL_CUSTOMREQUEST = 10036,
    QN__CURL_NOPROGRESS = 43,
    QN__CURL_XFERINFODATA = 10057,
    QN__CURL_XFERINFOFUNCTION = 20219,
    QN__CURL_NOBODY = 44,
    QN__CURL_UPLOAD = 46,
    QN__CURL_FOLLOWLOCATION = 52,
    QN__CURL_SSL_VERIFYPEER = 64,
    QN__CURL_MAXREDIRS = 68,
    QN__CURL_FRESH_CONNECT = 74,
    QN__CURL_CONNECTTIMEOUT_MS = 156,
    QN__CURL_HTTPGET = 80,
    QN__CURL_SSL_VERIFYHOST = 81,
    QN__CURL_HTTP_VERSION = 84,
    QN__CURL_BUFFERSIZE = 98,
    QN__CURL_NOSIGNAL = 99,
    QN__CURL_PROTOCOLS = 181,
    QN__CURL_REDIR_PROTOCOLS = 182,
    QN__CURL_TCP_KEEPALIVE = 213,
    QN__CURL_PATH_AS_IS = 234,
    QN__CURL_CAINFO = 10065,
    QN__CURL_WRITEFUNCTION = 20011,
    QN__CURL_READFUNCTION = 20012,
    QN__CURL_HEADERFUNCTION = 20079,
    QN__CURL_SEEKFUNCTION = 20167,
    QN__CURL_SEEKDATA = 10168,
    QN__CURL_INFILESIZE = 30115
} qn__curl_option;

enum {
    QN__CURL_RESPONSE_CODE = 0x200002, /* of getinfo */
    QN__CURL_REDIRECT_COUNT = 0x200014,
    QN__CURL_READ_ABORT = 0x10000000,
    QN__CURL_HTTP_1_1 = 2,
    QN__CURL_PROTOCOL_HTTP = 1,
    QN__CURL_PROTOCOL_HTTPS = 2,
    QN__CURL_ERROR_SIZE = 256
};

/* Codes of a transfer that are told apart. */
enum {
    QN__CURL_OK = 0,
    QN__CURL_BAD_URL = 3,
    QN__CURL_PROXY_UNKNOWN = 5,
    QN__CURL_HOST_UNKNOWN = 6,
    QN__CURL_NOT_CONNECTED = 7,
    QN__CURL_PARTIAL = 18,
    QN__CURL_WRITE = 23,
    QN__CURL_TIMEOUT = 28,
    QN__CURL_TLS_CONNECT = 35,
    QN__CURL_REDIRECTS = 47,
    QN__CURL_NOTHING = 52,
    QN__CURL_SEND = 55,
    QN__CURL_RECEIVE = 56,
    QN__CURL_PEER = 60,
    QN__CURL_CA_FILE = 77,
    QN__CURL_CHUNK = 8,
    QN__CURL_HTTP2_STREAM = 92
};

typedef struct qn__curl {
    int (*global_init)(long flags, void *(*make)(size_t size), void (*free)(void *memory),
                       void *(*resize)(void *memory, size_t size), char *(*copy)(const char *text),
                       void *(*clear)(size_t count, size_t size));
    void *(*make)(void);
    void (*reset)(void *handle);
    void (*free)(void *handle);
    int (*set)(void *handle, int option, ...);
    int (*perform)(void *handle);
    int (*get)(void *handle, int what, ...);
    const char *(*text)(int code);
    void *(*list_add)(void *list, const char *line);
    void (*list_free)(void *list);
    const char *(*version)(void);
} qn__curl;

extern qn__curl qn__curl_functions; /* set once the library is open */
extern qn__optional_library qn__curl_library;

/* A handle that nobody else uses, with the connections of earlier requests; NULL: memory is short,
 * or the library is not open. Any thread. */
void *qn__curl_take(void);
/* Gives it back. Accepts NULL. */
void qn__curl_give(void *handle);

#endif
