/* Answers: built by any thread, given to the library by the thread of the connection. */
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "serve/http/http_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of pieces that a client has not read yet; one that is slower is given up. */
enum { MOST_UNREAD = 8 << 20, BLOCK = 16384, STATUS_ERROR = 500, UNAVAILABLE = 503 };
static const char json[] = "application/json";

/* ------------------------------------------------------------------------------------- headers */

void qn__answer_header(qn__request *r, const char *name, const char *value) {
    char *own_name = qn__copy_text(name, NULL), *own_value = qn__copy_text(value, NULL);
    pthread_mutex_lock(&r->lock); /* the server may answer meanwhile */
    const int fits = own_name && own_value && r->headers < QN__ANSWER_HEADERS;
    if (fits) {
        r->header[2 * r->headers] = own_name;
        r->header[2 * r->headers + 1] = own_value;
        r->headers++;
    }
    pthread_mutex_unlock(&r->lock);
    if (!fits) {
        qn__free(own_name);
        qn__free(own_value);
    }
}

void qn__request_of_model(qn__request *r, const char *name, const char *version,
                          const char *digest) {
    snprintf(r->model, sizeof r->model, "%s", name);
    snprintf(r->version, sizeof r->version, "%s", version ? version : "");
    r->digests = 1;
    qn__answer_header(r, "Quern-Model-Digest", digest);
}

/* The caller holds the request's lock, or is the only one that has the request. */
static void add_headers(qn__request *r, void *response, const char *type) {
    if (type && *type)
        qn__mhd_functions.header(response, "Content-Type", type);
    for (unsigned i = 0; i < r->headers; i++)
        qn__mhd_functions.header(response, r->header[2 * i], r->header[2 * i + 1]);
    if (atomic_load(&r->http->closing))
        qn__mhd_functions.header(response, "Connection", "close");
}

static void add_digest(qn__request *r, const void *body, size_t size) {
    uint8_t digest[32];
    char text[65];
    qn__sha256_of(body, size, digest);
    qn__hex(digest, text);
    qn__answer_header(r, "Quern-Answer-Digest", text);
}

/* ------------------------------------------------------------------------------ giving the answer
 */

/* The thread of the connection takes the answer: at once after the handler, or when it is woken.
 * The caller holds the request's lock. */
static void wake(qn__request *r) {
    if (r->suspended) {
        r->suspended = 0;
        qn__mhd_functions.resume(r->connection);
    }
}

/* What is given to the library. */
typedef struct made_answer {
    void *response; /* NULL: memory was short */
    const char *type;
    const void *whole; /* its bytes; NULL: they come in pieces */
    size_t size;
    unsigned status;
} made_answer;

/* Takes the answer for the request, unless the server has answered; releases it then. */
static void give(qn__request *r, const made_answer *made) {
    pthread_mutex_lock(&r->lock);
    const int first = !r->answered;
    if (first) {
        r->answered = 1;
        r->response = made->response;
        r->whole = made->whole;
        r->type = made->type;
        r->streams = !made->whole;
        r->status = made->status;
        r->sent = made->size;
        wake(r);
    }
    pthread_mutex_unlock(&r->lock);
    if (!first && made->response)
        qn__mhd_functions.release(made->response);
}

/* `release` frees the body, also after a failure. */
static void *response_of(qn__request *r, const char *type, void *body, size_t size,
                         void (*release)(void *body)) {
    void *response = qn__mhd_functions.from_bytes(size, body ? body : "", body ? release : NULL);
    if (response)
        add_headers(r, response, type);
    else
        release(body);
    return response;
}

static void answer(qn__request *r, unsigned status, const char *type, void *body, size_t size,
                   void (*release)(void *body)) {
    made_answer made = {.type = type, .whole = body ? body : "", .size = size, .status = status};
    if (r->digests && status == 200)
        add_digest(r, made.whole, size);
    made.response = response_of(r, type, body, size, release);
    give(r, &made);
    qn__request_release(r);
}

void qn__answer_body(qn__request *r, unsigned status, const char *type, void *body, size_t size) {
    answer(r, status, type, body, size, qn__free);
}

void qn__answer_text(qn__request *r, unsigned status, const char *type, const char *text) {
    char *copy = qn__copy_text(text, NULL);
    qn__answer_body(r, copy ? status : STATUS_ERROR, copy ? type : NULL, copy,
                    copy ? strlen(copy) : 0);
}

void qn__answer_grown(qn__request *r, unsigned status, const char *type, qn__text *text) {
    const int good = !text->failed;
    if (!good)
        qn__text_release(text);
    answer(r, good ? status : STATUS_ERROR, good ? type : NULL, text->data, text->size, free);
}

/* -------------------------------------------------------------------------------------- errors */

unsigned qn__answer_status(qn_status status) {
    switch (status) {
    case QN_OK:
        return 200;
    case QN_USAGE:
    case QN_INPUT:
    case QN_FORMAT:
    case QN_MISMATCH:
    case QN_UNSUPPORTED:
        return 400;
    case QN_NUMERIC:
        return 422;
    case QN_MEMORY:
    case QN_BUSY:
    case QN_INTERRUPTED:
        return 503;
    case QN_IO:
    case QN_DEVICE:
    case QN_DIFFERS:
    case QN_CLUSTER:
        break;
    }
    return STATUS_ERROR;
}

/* An error as the clients of the route read it. */
static void say(const qn__request *r, unsigned status, const char *words, qn__text *to) {
    if (r->route && r->route->say) {
        r->route->say(to, status, words);
        return;
    }
    qn__text_add(to, "{\"error\": ");
    qn__text_add_json(to, words);
    qn__text_add(to, "}\n");
}

static void answer_words(qn__request *r, unsigned status, const char *words) {
    qn__text text = {0};
    say(r, status, words, &text);
    qn__answer_grown(r, status, json, &text);
}

void qn__answer_error(qn__request *r, unsigned status, const qn_error *err) {
    qn__text words = {0};
    qn__text_add(&words, "%s%s%s%s%s", err->what, *err->where ? ", at " : "", err->where,
                 *err->remedy ? ": " : "", err->remedy);
    answer_words(r, status, words.data ? words.data : "there is not enough memory");
    qn__text_release(&words);
}

void qn__answer_refusal(qn__request *r, unsigned status, const char *format, ...) {
    char words[600];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    answer_words(r, status, words);
}

/* The server's answer to a request that has none. The caller holds the request's lock. */
static void answer_here(qn__request *r, const char *words) {
    qn__text text = {0};
    say(r, UNAVAILABLE, words, &text);
    if (text.failed)
        qn__text_release(&text);
    else
        r->response = response_of(r, json, text.data, text.size, free);
    r->answered = 1;
    r->status = UNAVAILABLE;
    r->sent = text.size;
}

void qn__answer_cancel(qn__request *r) {
    pthread_mutex_lock(&r->lock);
    if (!r->answered)
        answer_here(r, "the server ends");
    if (r->streams && !r->ended)
        atomic_store(&r->lost, 1);
    wake(r);
    pthread_mutex_unlock(&r->lock);
}

void qn__answer_late(qn__request *r) {
    char words[QN__LATE_WORDS];
    pthread_mutex_lock(&r->lock);
    const int answered = r->answered;
    if ((!answered || (r->streams && !r->ended)) && !atomic_exchange(&r->late, 1))
        atomic_fetch_add(&r->http->late, 1);
    if (!answered) {
        qn__request_is_late(r, words);
        answer_here(r, words);
        wake(r);
    }
    pthread_mutex_unlock(&r->lock);
}

/* -------------------------------------------------------------------------------------- pieces */

/* Called by the thread of the connection when the client can take bytes. */
static ssize_t read_pieces(void *user, uint64_t at, char *bytes, size_t most) {
    qn__request *r = user;
    ssize_t result = 0;
    (void)at;
    pthread_mutex_lock(&r->lock);
    const size_t left = r->written - r->read, count = left < most ? left : most;
    if (count > 0) {
        memcpy(bytes, r->pieces + r->read, count);
        r->read += count;
        r->sent += count;
        result = (ssize_t)count;
        if (r->read == r->written)
            r->read = r->written = 0;
    } else if (r->ended)
        result = QN__MHD_STREAM_ENDS;
    else if (atomic_load(&r->lost) || atomic_load(&r->http->stopping))
        result = QN__MHD_STREAM_FAILS;
    else {
        r->suspended = 1;
        qn__mhd_functions.suspend(r->connection);
    }
    pthread_mutex_unlock(&r->lock);
    return result;
}

void qn__answer_stream(qn__request *r, unsigned status, const char *type) {
    const made_answer made = {.response = qn__mhd_functions.from_reader(QN__MHD_UNKNOWN_SIZE, BLOCK,
                                                                        read_pieces, r, NULL),
                              .type = type,
                              .status = status};
    if (made.response)
        add_headers(r, made.response, type);
    give(r, &made);
}

static int add_piece(qn__request *r, const void *bytes, size_t size) {
    const size_t left = r->written - r->read;
    if (size == 0)
        return 1;
    if (left + size > MOST_UNREAD)
        return 0;
    if (r->read > 0)
        memmove(r->pieces, r->pieces + r->read, left);
    r->read = 0;
    r->written = left;
    if (left + size > r->piece_capacity) {
        char *pieces = realloc(r->pieces, 2 * (left + size));
        if (!pieces)
            return 0;
        r->pieces = pieces;
        r->piece_capacity = 2 * (left + size);
    }
    memcpy(r->pieces + left, bytes, size);
    r->written += size;
    return 1;
}

int qn__answer_piece(qn__request *r, const void *bytes, size_t size) {
    pthread_mutex_lock(&r->lock);
    if (!atomic_load(&r->lost) && (!r->streams || !add_piece(r, bytes, size)))
        atomic_store(&r->lost, 1);
    const int there = !atomic_load(&r->lost);
    wake(r);
    pthread_mutex_unlock(&r->lock);
    return there;
}

void qn__answer_end(qn__request *r) {
    pthread_mutex_lock(&r->lock);
    r->ended = 1;
    wake(r);
    pthread_mutex_unlock(&r->lock);
    qn__request_release(r);
}

/* The answer packed in its place, where the client takes that. */
static void pack(qn__request *r) {
    const char *coding;
    size_t size;
    void *packed = qn__answer_pack(r, &size, &coding);
    void *response = packed ? qn__mhd_functions.from_bytes(size, packed, free) : NULL;
    if (!response) {
        free(packed);
        return;
    }
    add_headers(r, response, r->type);
    qn__mhd_functions.header(response, "Content-Encoding", coding);
    qn__mhd_functions.header(response, "Vary", "Accept-Encoding");
    qn__mhd_functions.release(r->response);
    r->response = response;
    r->sent = size;
}

int qn__answer_queue(qn__request *r) {
    r->queued = 1;
    if (!r->response) /* memory was short */
        return 0;
    if (r->whole)
        pack(r);
    if (!r->streams)
        qn__connection_set(r->http, r->place, QN__PHASE_WRITING);
    return qn__mhd_functions.queue(r->connection, r->status, r->response);
}
