/* A request: its parts as handlers see them, and its memory. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "serve/http/http_state.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <poll.h>
#include <string.h>

enum { FIRST_BODY = 4096 };

static void name_client(qn__request *r) {
    const struct sockaddr *const *address = qn__mhd_functions.fact(r->connection, QN__MHD_CLIENT);
    if (!address || !*address)
        return;
    if ((*address)->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)*address)->sin_addr,
                  r->client, sizeof r->client);
    if ((*address)->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)*address)->sin6_addr,
                  r->client, sizeof r->client);
}

static void enlist(qn__http *http, qn__request *r) {
    pthread_mutex_lock(&http->lock);
    r->next = http->requests;
    if (r->next)
        r->next->before = r;
    http->requests = r;
    http->active++;
    pthread_mutex_unlock(&http->lock);
}

qn__request *qn__request_make(qn__http *http, void *connection, const char *method,
                              const char *path) {
    qn__request *r = qn__alloc(1, sizeof *r, NULL);
    if (!r || pthread_mutex_init(&r->lock, NULL) != 0) {
        qn__free(r);
        return NULL;
    }
    r->http = http;
    r->connection = connection;
    r->begun = qn__now();
    r->number = atomic_fetch_add(&http->count, 1) + 1;
    r->is_head = strcmp(method, "HEAD") == 0;
    atomic_init(&r->references, 1);
    snprintf(r->method, sizeof r->method, "%s", method);
    snprintf(r->path, sizeof r->path, "%s", path);
    qn__connection *const *place = qn__mhd_functions.fact(connection, QN__MHD_CONTEXT);
    r->place = place ? *place : NULL;
    name_client(r);
    enlist(http, r);
    return r;
}

/* A block of twice the size, within the limit of all bodies. */
static int grow(qn__request *r, size_t needed) {
    size_t capacity = r->capacity ? r->capacity : FIRST_BODY;
    while (capacity < needed)
        capacity *= 2;
    const size_t more = capacity - r->capacity;
    if (atomic_fetch_add(&r->http->bodies, more) + more > r->http->options.most_bodies) {
        atomic_fetch_sub(&r->http->bodies, more);
        return 0;
    }
    char *body = realloc(r->body, capacity);
    if (!body) {
        atomic_fetch_sub(&r->http->bodies, more);
        return 0;
    }
    r->body = body;
    r->capacity = capacity;
    return 1;
}

void qn__request_drop_body(qn__request *r) {
    atomic_fetch_sub(&r->http->bodies, r->capacity);
    free(r->body);
    r->body = NULL;
    r->size = r->capacity = 0;
}

void qn__request_add(qn__request *r, const char *bytes, size_t size) {
    if (r->too_large || r->out_of_memory)
        return;
    r->too_large = size > r->http->options.most_body - r->size;
    r->out_of_memory =
        !r->too_large && r->size + size + 1 > r->capacity && !grow(r, r->size + size + 1);
    if (r->too_large || r->out_of_memory) {
        qn__request_drop_body(r);
        return;
    }
    memcpy(r->body + r->size, bytes, size);
    r->size += size;
    r->body[r->size] = '\0';
}

void qn__request_release(qn__request *r) {
    if (atomic_fetch_sub(&r->references, 1) != 1)
        return;
    qn__request_drop_body(r);
    for (unsigned i = 0; i < QN__ROUTE_VARIABLES; i++)
        qn__free(r->variable[i]);
    for (unsigned i = 0; i < 2 * r->headers; i++)
        qn__free(r->header[i]);
    if (r->response)
        qn__mhd_functions.release(r->response);
    free(r->pieces);
    pthread_mutex_destroy(&r->lock);
    qn__free(r);
}

const char *qn__request_variable(const qn__request *r, unsigned index) {
    return index < QN__ROUTE_VARIABLES && r->variable[index] ? r->variable[index] : "";
}

const char *qn__request_query(qn__request *r, const char *name) {
    return qn__mhd_functions.value(r->connection, QN__MHD_QUERY, name);
}

const char *qn__request_header(qn__request *r, const char *name) {
    return qn__mhd_functions.value(r->connection, QN__MHD_HEADERS, name);
}

const char *qn__request_body(const qn__request *r, size_t *size) {
    *size = r->size;
    return r->body ? r->body : "";
}

uint64_t qn__request_number(const qn__request *r) { return r->number; }

/* The library does not look at a connection that waits for its answer. */
static int has_left(const qn__request *r) {
    struct pollfd on = {.events = POLLRDHUP};
    if (r->answered || !r->place)
        return 0;
    on.fd = r->place->descriptor;
    return poll(&on, 1, 0) > 0;
}

int qn__request_is_lost(qn__request *r) {
    pthread_mutex_lock(&r->lock);
    if (!atomic_load(&r->lost) && has_left(r))
        atomic_store(&r->lost, 1);
    pthread_mutex_unlock(&r->lock);
    return atomic_load(&r->lost) || atomic_load(&r->late);
}

int qn__request_is_late(const qn__request *r, char words[QN__LATE_WORDS]) {
    snprintf(words, QN__LATE_WORDS,
             "the answer took longer than %g seconds: ask for less at once, or try again later",
             r->http->options.answer_seconds);
    return atomic_load(&r->late);
}
