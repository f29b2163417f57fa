#include "store/http/attempt.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "store/http/curl.h"
#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds without a byte, where the program is to end (base/files/remote.h). */
static const double READS_STALL = 0.9, WRITES_STALL = 5;

enum { HEADERS_MOST = 1 << 18, LINE = 16384, BUFFER = 1 << 18, REDIRECTIONS = 10 };

/* One attempt on its way. */
typedef struct going {
    const qn__http_request *request;
    qn__http_answer *answer;
    void *handle;
    size_t headers_size, headers_capacity, body_capacity;
    uint64_t sent; /* bytes of the request's body */
    int moved, stopped, full, stalled;
    int64_t passed; /* bytes in both directions at the last look */
    double since;   /* by qn__now: as many then */
} going;

void qn__http_header(qn__http_headers *headers, const char *format, ...) {
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    /* What follows a line break would be another header: values may come from another server. */
    line[strcspn(line, "\r\n")] = '\0';
    void *longer =
        size > 0 && size < LINE ? qn__curl_functions.list_add(headers->list, line) : NULL;
    headers->failed |= !longer;
    headers->list = longer ? longer : headers->list;
    explicit_bzero(line, sizeof line);
}

/* Appends to a text that grows, with a NUL after it; 0: it would be larger than `most`. */
static int append(char **text, size_t *size, size_t *capacity, const void *bytes, size_t more,
                  size_t most) {
    if (more > most || *size > most - more)
        return 0;
    if (*size + more + 1 > *capacity) {
        const size_t larger = 2 * (*size + more) + 256;
        char *moved = qn__alloc(larger, 1, NULL);
        if (!moved)
            return 0;
        if (*size > 0)
            memcpy(moved, *text, *size);
        qn__free(*text);
        *text = moved;
        *capacity = larger;
    }
    memcpy(*text + *size, bytes, more);
    *size += more;
    (*text)[*size] = '\0';
    return 1;
}

/* Of "HTTP/1.1 206 Partial Content"; 0: it has none. */
static int status_of(const char *line, size_t size) {
    int status = 0;
    const char *at = memchr(line, ' ', size);
    for (; at && ++at < line + size && *at >= '0' && *at <= '9' && status < 1000;)
        status = 10 * status + (*at - '0');
    return status;
}

/* Each answer of a chain of redirections begins with its status line; the last one counts. */
static size_t take_header(char *bytes, size_t one, size_t size, void *user) {
    going *g = user;
    (void)one;
    if (size >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        g->headers_size = 0;
        g->answer->status = status_of(bytes, size);
        return size;
    }
    const char *colon = memchr(bytes, ':', size);
    for (char *at = bytes; colon && at < colon; at++)
        *at = (char)tolower((unsigned char)*at);
    g->full |= !append(&g->answer->headers, &g->headers_size, &g->headers_capacity, bytes, size,
                       HEADERS_MOST);
    return g->full ? 0 : size;
}

static size_t take_body(char *bytes, size_t one, size_t size, void *user) {
    going *g = user;
    qn__http_answer *answer = g->answer;
    (void)one;
    if (g->request->take && answer->status >= 200 && answer->status < 300) {
        qn__float_state_set();
        g->stopped = !g->moved && g->request->begin && !g->request->begin(g->request->user, answer);
        if (g->stopped)
            return 0;
        g->moved |= size > 0;
        g->stopped = !g->request->take(g->request->user, bytes, size);
        return g->stopped ? 0 : size;
    }
    g->full |= !append(&answer->body, &answer->body_size, &g->body_capacity, bytes, size,
                       QN__HTTP_BODY_MOST);
    return g->full ? 0 : size;
}

static size_t give_body(char *bytes, size_t one, size_t count, void *user) {
    going *g = user;
    const qn__http_request *request = g->request;
    const uint64_t left = request->body_size - g->sent;
    size_t size = one * count < left ? one * count : (size_t)left;
    if (size > 0 && request->give)
        size = request->give(request->user, g->sent, bytes, size);
    else if (size > 0)
        memcpy(bytes, (const char *)request->body + g->sent, size);
    g->stopped |= left > 0 && size == 0;
    g->sent += size;
    return g->stopped ? QN__CURL_READ_ABORT : size;
}

static int seek_body(void *user, int64_t offset, int origin) {
    going *g = user;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > g->request->body_size)
        return 2; /* CURL_SEEKFUNC_CANTSEEK */
    g->sent = (uint64_t)offset;
    return 0;
}

int qn__http_reads(const qn__http_request *request) {
    return !request->for_write &&
           (strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0);
}

/* Called about once a second, also where nothing comes. Not 0 ends the transfer. */
static int look_at_stop(void *user, int64_t down, int64_t down_now, int64_t up, int64_t up_now) {
    going *g = user;
    (void)down, (void)up;
    const double now = qn__now(), most = qn__http_reads(g->request) ? READS_STALL : WRITES_STALL;
    if (g->since <= 0 || g->passed != down_now + up_now) {
        g->passed = down_now + up_now;
        g->since = now;
    }
    g->stalled |= atomic_load(&qn__remote_hurries) > 0 && now - g->since > most;
    g->stopped |= g->stalled || (g->request->stop && atomic_load(g->request->stop));
    return g->stopped;
}

/* Seconds without a byte after which a transfer is given up. */
static long stall_seconds(void) {
    const char *text = getenv("QUERN_STORE_STALL");
    const long seconds = text ? strtol(text, NULL, 10) : 0;
    return seconds > 0 && seconds < 3600 ? seconds : 30;
}

static void set_connection(void *handle, const qn__http_request *request) {
    qn__curl *c = &qn__curl_functions;
    const char *authority = getenv("AWS_CA_BUNDLE");
    const long https = strncmp(request->url, "https:", 6) == 0;
    const long both = QN__CURL_PROTOCOL_HTTP | QN__CURL_PROTOCOL_HTTPS;
    c->set(handle, QN__CURL_NOSIGNAL, 1L);
    c->set(handle, QN__CURL_SSL_VERIFYPEER, 1L);
    c->set(handle, QN__CURL_SSL_VERIFYHOST, 2L);
    if (authority && *authority)
        c->set(handle, QN__CURL_CAINFO, authority);
    c->set(handle, QN__CURL_PROTOCOLS, both);
    c->set(handle, QN__CURL_REDIR_PROTOCOLS, https ? (long)QN__CURL_PROTOCOL_HTTPS : both);
    c->set(handle, QN__CURL_FOLLOWLOCATION, (long)(request->follow != 0));
    c->set(handle, QN__CURL_MAXREDIRS, (long)REDIRECTIONS);
    c->set(handle, QN__CURL_FRESH_CONNECT, (long)(request->fresh != 0));
    c->set(handle, QN__CURL_HTTP_VERSION, (long)QN__CURL_HTTP_1_1); /* a connection a stream */
    c->set(handle, QN__CURL_BUFFERSIZE, (long)BUFFER);
    c->set(handle, QN__CURL_TCP_KEEPALIVE, 1L);
    c->set(handle, QN__CURL_CONNECTTIMEOUT_MS, request->few ? 1000L : 10000L);
    c->set(handle, QN__CURL_LOW_SPEED_LIMIT, 1L);
    c->set(handle, QN__CURL_LOW_SPEED_TIME, request->few ? 2L : stall_seconds());
    c->set(handle, QN__CURL_USERAGENT, "quern");
}

static void set_request(void *handle, going *g, void *headers, char *error) {
    qn__curl *c = &qn__curl_functions;
    const qn__http_request *request = g->request;
    c->set(handle, QN__CURL_URL, request->url);
    c->set(handle, QN__CURL_PATH_AS_IS, 1L); /* a key may have a part ".."; so it is signed */
    c->set(handle, QN__CURL_HTTPHEADER, headers);
    c->set(handle, QN__CURL_ERRORBUFFER, error);
    c->set(handle, QN__CURL_HEADERFUNCTION, take_header);
    c->set(handle, QN__CURL_HEADERDATA, (void *)g);
    c->set(handle, QN__CURL_WRITEFUNCTION, take_body);
    c->set(handle, QN__CURL_WRITEDATA, (void *)g);
    c->set(handle, QN__CURL_NOPROGRESS, 0L);
    c->set(handle, QN__CURL_XFERINFOFUNCTION, look_at_stop);
    c->set(handle, QN__CURL_XFERINFODATA, (void *)g);
    if (strcmp(request->method, "HEAD") == 0) {
        c->set(handle, QN__CURL_NOBODY, 1L);
    } else if (request->body_size > 0 || strcmp(request->method, "PUT") == 0 ||
               strcmp(request->method, "POST") == 0) {
        c->set(handle, QN__CURL_UPLOAD, 1L);
        c->set(handle, QN__CURL_READFUNCTION, give_body);
        c->set(handle, QN__CURL_READDATA, (void *)g);
        c->set(handle, QN__CURL_SEEKFUNCTION, seek_body);
        c->set(handle, QN__CURL_SEEKDATA, (void *)g);
        c->set(handle, QN__CURL_INFILESIZE, (int64_t)request->body_size);
        c->set(handle, QN__CURL_CUSTOMREQUEST, request->method);
    } else {
        c->set(handle, QN__CURL_HTTPGET, 1L);
        c->set(handle, QN__CURL_CUSTOMREQUEST, request->method);
    }
}

/* Runs the transfer. TLS libraries write to a connection that may be closed, which raises SIGPIPE:
 * it is held back in this thread, and taken if it came. */
static int perform(void *handle) {
    sigset_t pipe, before, waiting;
    const struct timespec at_once = {0, 0};
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    const int code = qn__curl_functions.perform(handle);
    qn__float_state_set();
    if (!sigismember(&waiting, SIGPIPE))
        (void)sigtimedwait(&pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static void say_reason(going *g, const char *error) {
    qn__http_answer *answer = g->answer;
    const char *text = g->stalled   ? "no byte came, and the program is to end"
                       : g->stopped ? "it was ended here"
                       : g->full    ? "the answer is larger than it may be"
                       : *error     ? error
                                    : qn__curl_functions.text(answer->code);
    snprintf(answer->reason, sizeof answer->reason, "%s", text);
    answer->reason[strcspn(answer->reason, "\r\n")] = '\0';
}

static qn_status send_with(going *g, qn_error *err) {
    char error[QN__CURL_ERROR_SIZE] = "";
    qn__http_headers headers = {NULL, 0};
    const qn__http_request *request = g->request;
    qn_status status = request->attempt ? request->attempt(request->user, &headers, err) : QN_OK;
    if (request->body_size > 0 || request->give)
        qn__http_header(&headers, "Expect:"); /* else libcurl waits a second for "100 Continue" */
    if (status == QN_OK && headers.failed)
        status = qn__fail_memory(err, LINE, 1);
    if (status == QN_OK) {
        set_connection(g->handle, request);
        set_request(g->handle, g, headers.list, error);
        g->answer->code = perform(g->handle);
        g->answer->stopped = g->stopped;
        if (g->answer->code != QN__CURL_OK)
            say_reason(g, error);
    }
    qn__curl_functions.list_free(headers.list);
    return status;
}

qn_status qn__http_attempt(const qn__http_request *request, qn__http_answer *answer, int *moved,
                           qn_error *err) {
    going g = {.request = request, .answer = answer};
    const int attempts = answer->attempts;
    qn__http_release(answer);
    answer->attempts = attempts + 1;
    qn_status status = qn__optional_need(&qn__curl_library, "addresses are read by libcurl",
                                         "copy the file to this machine", err);
    if (status != QN_OK)
        return status;
    g.handle = qn__curl_take();
    if (!g.handle)
        return qn__fail_memory(err, 1, BUFFER);
    status = send_with(&g, err);
    qn__curl_give(g.handle);
    *moved = g.moved;
    return status;
}

void qn__http_release(qn__http_answer *answer) {
    qn__free(answer->headers);
    qn__free(answer->body);
    *answer = (qn__http_answer){0};
}

int qn__http_value(const qn__http_answer *answer, const char *name, char *value, size_t capacity) {
    const size_t length = strlen(name);
    for (const char *at = answer->headers; at && *at;) {
        const size_t line = strcspn(at, "\n");
        if (line > length && at[length] == ':' && memcmp(at, name, length) == 0) {
            const char *begin = at + length + 1, *end = at + line;
            while (begin < end && (*begin == ' ' || *begin == '\t'))
                begin++;
            while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
                end--;
            if ((size_t)(end - begin) >= capacity)
                return 0;
            memcpy(value, begin, (size_t)(end - begin));
            value[end - begin] = '\0';
            return 1;
        }
        at += line + (at[line] == '\n');
    }
    return 0;
}

void qn__http_shown(const char *url, char *shown, size_t capacity) {
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    const size_t authority = strcspn(host, "/?#");
    for (size_t i = authority; i > 0; i--)
        if (host[i - 1] == '@') {
            snprintf(shown, capacity, "%.*s%.*s", (int)(host - url), url,
                     (int)strcspn(host + i, "?#"), host + i);
            return;
        }
    snprintf(shown, capacity, "%.*s", (int)strcspn(url, "?#"), url);
}
