#include "cluster/items.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <stdio.h>
#include <string.h>

/* Requests of other ranks that wait here; further ones are refused. Bytes of a reason. */
enum { WAITING_MOST = 1 << 14, REASON = 400 };

typedef enum request_state { WAITS, HAS, REFUSED, GONE, FAILED } request_state;

struct qn__item_request {
    struct qn__item_request *next;
    uint64_t id;
    uint32_t part, asked; /* the rank that was asked last */
    request_state state;
    qn__ranks refused; /* ranks that could not give the part */
    qn__message_buffer *body;
    char reason[REASON];
    uint32_t bytes, count;
    qn__item_piece piece[];
};

/* A request of another rank. */
typedef struct waiting {
    struct waiting *next;
    uint32_t from;
    qn__head head;
    qn__message_buffer *body;
} waiting;

struct qn__items {
    qn_cluster *cluster;
    qn__cluster_listener listener;
    qn__item_holder holder;
    uint32_t ranks, rank;
    pthread_mutex_t lock, reaching;
    pthread_cond_t answered, asked;
    pthread_t thread;
    int ending;
    qn__ranks gone;
    qn__item_request *open;
    uint64_t ids;
    waiting *first, **last;
    uint32_t waits;
};

/* ------------------------------------------------------------ what others ask */

/* The bytes of the pieces together; 0: too many, or a piece is empty. */
static uint32_t bytes_of(const qn__item_piece *piece, uint32_t count) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count && bytes <= QN__ANSWER_MOST; ++i) {
        if (piece[i].bytes == 0)
            return 0;
        bytes += piece[i].bytes;
    }
    return bytes <= QN__ANSWER_MOST ? (uint32_t)bytes : 0;
}

static qn_status reach(qn__items *s, uint32_t part, qn_error *err) {
    if (part == s->rank || part >= s->ranks)
        return QN_OK;
    pthread_mutex_lock(&s->reaching);
    const qn_status status = s->holder.reach(s->holder.user, part, err);
    pthread_mutex_unlock(&s->reaching);
    return status;
}

/* Copies the pieces of a part that this rank has; NULL: it cannot. */
static qn__message_buffer *collect(qn__items *s, uint32_t part, const qn__item_piece *piece,
                                   uint32_t count, qn_error *err) {
    const uint32_t bytes = bytes_of(piece, count);
    if (part >= s->ranks || bytes == 0) {
        qn__fail(err, QN_FORMAT, "the request for items is malformed");
        return NULL;
    }
    qn__message_buffer *body = qn__cluster_buffer(s->cluster, bytes);
    if (!body)
        qn__fail_memory(err, 1, bytes);
    uint8_t *to = body ? body->data : NULL;
    for (uint32_t i = 0; body && i < count; to += piece[i++].bytes)
        if (!s->holder.copy(s->holder.user, part, &piece[i], to)) {
            qn__fail(err, QN_FORMAT, "the request names items that the part does not have");
            qn__buffer_drop(body);
            body = NULL;
        }
    return body;
}

static void refuse(qn__items *s, const waiting *w, const char *why) {
    const size_t size = strlen(why);
    qn__message_buffer *body = qn__cluster_buffer(s->cluster, size);
    const qn__head head = {.type = QN__MESSAGE_ANSWER,
                           .extra = 1,
                           .number = {w->head.number[0], w->head.number[1]},
                           .bytes = body ? size : 0};
    if (body)
        memcpy(body->data, why, size);
    qn__cluster_send(s->cluster, w->from, &head, body);
}

static void write_reason(const qn_error *why, char text[REASON]) {
    snprintf(text, REASON, why->where[0] ? "%.220s (%.160s)" : "%.220s", why->what, why->where);
}

static void answer(qn__items *s, const waiting *w) {
    qn_error why = {.what = ""};
    char text[REASON];
    qn__message_buffer *body = NULL;
    const int fine = w->body && w->body->bytes % sizeof(qn__item_piece) == 0 &&
                     w->body->bytes / sizeof(qn__item_piece) <= QN__PIECES_MOST;
    const qn_status reached = fine ? reach(s, w->head.extra, &why) : QN_OK;
    qn__cluster_hold(s->cluster);
    if (reached != QN_OK)
        ; /* `why` says it */
    else if (fine)
        body = collect(s, w->head.extra, (const qn__item_piece *)(const void *)w->body->data,
                       (uint32_t)(w->body->bytes / sizeof(qn__item_piece)), &why);
    else
        qn__fail(&why, QN_FORMAT, "the request for items is malformed");
    if (body) {
        const qn__head head = {.type = QN__MESSAGE_ANSWER,
                               .number = {w->head.number[0], w->head.number[1]},
                               .bytes = body->bytes};
        qn__cluster_send(s->cluster, w->from, &head, body);
    } else {
        write_reason(&why, text);
        refuse(s, w, text);
    }
    qn__cluster_let_go(s->cluster);
}

static void free_waiting(waiting *w) {
    qn__buffer_drop(w->body);
    qn__free(w);
}

static void *answer_all(void *context) {
    qn__items *s = context;
    qn__float_state_set();
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->ending)
            pthread_cond_wait(&s->asked, &s->lock);
        waiting *w = s->first;
        if (s->ending)
            break;
        s->first = w->next;
        s->last = s->first ? s->last : &s->first;
        --s->waits;
        if (w->body)
            w->body->transport = NULL; /* these connections may end before it is dropped */
        pthread_mutex_unlock(&s->lock);
        answer(s, w);
        free_waiting(w);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ------------------------------------------------------------------- events of the transport */

static void take_request(qn__items *s, uint32_t from, const qn__head *head,
                         qn__message_buffer *body) {
    waiting *w = qn__alloc(1, sizeof *w, NULL);
    pthread_mutex_lock(&s->lock);
    const int fits = w && s->waits < WAITING_MOST;
    if (fits) {
        *w = (waiting){.from = from, .head = *head, .body = body};
        *s->last = w;
        s->last = &w->next;
        ++s->waits;
        pthread_cond_signal(&s->asked);
    }
    pthread_mutex_unlock(&s->lock);
    if (fits)
        return;
    refuse(s, &(waiting){.from = from, .head = *head}, "too many requests wait for items");
    qn__free(w);
    qn__buffer_drop(body);
}

static void take_refusal(qn__item_request *r, const qn__head *head,
                         const qn__message_buffer *body) {
    const int told = head->extra && body;
    const char *text = told          ? (const char *)body->data
                       : head->extra ? "it has closed the table"
                                     : "its answer is malformed";
    const uint64_t size = told ? body->bytes : strlen(text);
    const size_t used = size < REASON - 1 ? (size_t)size : REASON - 1;
    memcpy(r->reason, text, used);
    r->reason[used] = 0;
    r->state = REFUSED;
}

/* An answer that nobody waits for, or of another rank than was asked, is ignored. */
static void take_answer(qn__items *s, uint32_t from, const qn__head *head,
                        qn__message_buffer *body) {
    pthread_mutex_lock(&s->lock);
    qn__item_request *r = s->open;
    while (r && (r->id != head->number[0] || r->asked != from || r->state != WAITS))
        r = r->next;
    if (r && head->extra == 0 && body && body->bytes == r->bytes) {
        r->state = HAS;
        r->body = body;
        body = NULL;
    } else if (r) {
        take_refusal(r, head, body);
    }
    pthread_cond_broadcast(&s->answered);
    pthread_mutex_unlock(&s->lock);
    qn__buffer_drop(body);
}

static void on_message(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    if (head->type == QN__MESSAGE_ASK)
        take_request(user, from, head, body);
    else if (head->type == QN__MESSAGE_ANSWER)
        take_answer(user, from, head, body);
    else
        qn__buffer_drop(body);
}

static int is_gone(qn__items *s, uint32_t rank) {
    pthread_mutex_lock(&s->lock);
    const int gone = qn__ranks_has(&s->gone, rank);
    pthread_mutex_unlock(&s->lock);
    return gone;
}

static void on_gone(void *user, uint32_t rank) {
    qn__items *s = user;
    pthread_mutex_lock(&s->lock);
    qn__ranks_add(&s->gone, rank);
    for (qn__item_request *r = s->open; r; r = r->next)
        if (r->state == WAITS && r->asked == rank)
            r->state = GONE;
    pthread_cond_broadcast(&s->answered);
    pthread_mutex_unlock(&s->lock);
}

/* Requests are sent again by those who wait. What was answered outlives the connections. */
static void on_renewed(void *user) {
    qn__items *s = user;
    pthread_mutex_lock(&s->lock);
    s->gone = (qn__ranks){{0}};
    for (qn__item_request *r = s->open; r; r = r->next) {
        r->refused = (qn__ranks){{0}};
        if (r->state == WAITS && r->asked != s->rank)
            r->state = GONE;
        if (r->body)
            r->body->transport = NULL;
    }
    while (s->first) {
        waiting *w = s->first;
        s->first = w->next;
        free_waiting(w);
    }
    s->last = &s->first;
    s->waits = 0;
    pthread_cond_broadcast(&s->answered);
    pthread_mutex_unlock(&s->lock);
    if (s->holder.renewed)
        s->holder.renewed(s->holder.user);
}

static int read_whole(void *user, uint64_t first, uint64_t count, void *to) {
    const qn__items *s = user;
    return s->holder.whole && s->holder.whole(s->holder.user, first, count, to);
}

/* ------------------------------------------------------------ what this rank asks */

static qn__message_buffer *request_body(const qn__items *s, const qn__item_request *r) {
    const size_t size = r->count * sizeof *r->piece;
    qn__message_buffer *body = qn__cluster_buffer(s->cluster, size);
    if (body)
        memcpy(body->data, r->piece, size);
    return body;
}

/* The rank that is asked next, which is noted; or QN__MAX_RANKS. */
static uint32_t choose(qn__items *s, qn__item_request *r) {
    uint32_t to = QN__MAX_RANKS;
    pthread_mutex_lock(&s->lock);
    for (uint32_t k = 0; k < s->ranks && to == QN__MAX_RANKS; ++k) {
        const uint32_t rank = (r->part + k) % s->ranks;
        if (!qn__ranks_has(&s->gone, rank) && !qn__ranks_has(&r->refused, rank))
            to = rank;
    }
    r->asked = to;
    r->state = to == QN__MAX_RANKS ? FAILED : WAITS;
    pthread_mutex_unlock(&s->lock);
    return to;
}

static void fetch_here(qn__items *s, qn__item_request *r) {
    qn_error why = {.what = ""};
    qn__message_buffer *body = NULL;
    const qn_status reached = reach(s, r->part, &why);
    qn__cluster_hold(s->cluster);
    if (reached == QN_OK)
        body = collect(s, r->part, r->piece, r->count, &why);
    if (body)
        body->transport = NULL; /* as above */
    qn__cluster_let_go(s->cluster);
    pthread_mutex_lock(&s->lock);
    r->body = body;
    r->state = body ? HAS : REFUSED;
    if (!body)
        write_reason(&why, r->reason);
    pthread_mutex_unlock(&s->lock);
}

static void send_request(qn__items *s, qn__item_request *r) {
    const uint32_t to = choose(s, r);
    if (to == QN__MAX_RANKS)
        return;
    if (to == s->rank) {
        fetch_here(s, r);
        return;
    }
    qn__cluster_hold(s->cluster);
    qn__message_buffer *body = request_body(s, r);
    const qn__head head = {.type = QN__MESSAGE_ASK,
                           .extra = r->part,
                           .number = {r->id, s->listener.table},
                           .bytes = r->count * sizeof *r->piece};
    if (body)
        qn__cluster_send(s->cluster, to, &head, body);
    qn__cluster_let_go(s->cluster);
    if (body)
        return;
    pthread_mutex_lock(&s->lock);
    snprintf(r->reason, sizeof r->reason, "out of memory");
    r->state = REFUSED;
    pthread_mutex_unlock(&s->lock);
}

qn__item_request *qn__items_ask(qn__items *s, uint32_t part, const qn__item_piece *piece,
                                uint32_t count, qn_error *err) {
    qn__item_request *r = qn__alloc(1, sizeof *r + count * sizeof *piece, err);
    if (!r)
        return NULL;
    r->part = part;
    r->count = count;
    r->bytes = bytes_of(piece, count);
    memcpy(r->piece, piece, count * sizeof *piece);
    pthread_mutex_lock(&s->lock);
    r->id = ++s->ids;
    r->state = GONE;
    r->next = s->open;
    s->open = r;
    pthread_mutex_unlock(&s->lock);
    send_request(s, r);
    return r;
}

qn_status qn__items_wait(qn__items *s, qn__item_request *r, const uint8_t **bytes, qn_error *err) {
    pthread_mutex_lock(&s->lock);
    while (r->state != HAS && r->state != FAILED) {
        if (r->state == WAITS) {
            pthread_cond_wait(&s->answered, &s->lock);
            continue;
        }
        if (r->state == REFUSED)
            qn__ranks_add(&r->refused, r->asked);
        pthread_mutex_unlock(&s->lock);
        send_request(s, r);
        pthread_mutex_lock(&s->lock);
    }
    const request_state state = r->state;
    pthread_mutex_unlock(&s->lock);
    if (state == HAS) {
        *bytes = r->body->data;
        return QN_OK;
    }
    qn__fail(err, QN_IO, "%s %s, and no other rank can read its part: %s",
             qn_cluster_name(s->cluster, r->part),
             is_gone(s, r->part) ? "is gone" : "does not give its items", r->reason);
    if (s->holder.name)
        qn__at(err, "%s", s->holder.name(s->holder.user, r->part));
    return QN_IO;
}

void qn__items_drop(qn__items *s, qn__item_request *r) {
    if (!r)
        return;
    pthread_mutex_lock(&s->lock);
    qn__item_request **at = &s->open;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    qn__buffer_drop(r->body); /* with the lock: see on_renewed */
    pthread_mutex_unlock(&s->lock);
    qn__free(r);
}

/* ----------------------------------------------------------------------------- many bytes */

/* Requests that are open at a time. */
enum { OPEN = 4 };

typedef struct fetching {
    qn__items *items;
    qn__item_request *request[OPEN];
    uint8_t *to[OPEN];
} fetching;

/* Takes what was asked for in place i. */
static qn_status take(fetching *f, uint32_t i, qn_error *err) {
    const uint8_t *bytes;
    if (!f->request[i])
        return QN_OK;
    const qn_status status = qn__items_wait(f->items, f->request[i], &bytes, err);
    if (status == QN_OK)
        memcpy(f->to[i], bytes, f->request[i]->bytes);
    qn__items_drop(f->items, f->request[i]);
    f->request[i] = NULL;
    return status;
}

qn_status qn__items_fetch(qn__items *s, uint32_t part, uint32_t array, uint64_t offset,
                          uint64_t size, void *to, qn_error *err) {
    fetching f = {.items = s};
    qn_status status = QN_OK;
    uint32_t next = 0;
    for (uint64_t at = 0; at < size && status == QN_OK; next = (next + 1) % OPEN) {
        const uint64_t left = size - at;
        const uint32_t bytes = left < QN__ANSWER_MOST ? (uint32_t)left : QN__ANSWER_MOST;
        const qn__item_piece piece = {array, bytes, offset + at};
        status = take(&f, next, err);
        if (status != QN_OK)
            break;
        f.to[next] = (uint8_t *)to + at;
        f.request[next] = qn__items_ask(s, part, &piece, 1, err);
        status = f.request[next] ? QN_OK : QN_MEMORY;
        at += bytes;
    }
    for (uint32_t i = 0; i < OPEN; i++) {
        if (status == QN_OK)
            status = take(&f, i, err);
        qn__items_drop(s, f.request[i]);
    }
    return status;
}

/* ----------------------------------------------------------------------------- begin and end */

static void open_locks(qn__items *s) {
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->reaching, NULL);
    pthread_cond_init(&s->answered, NULL);
    pthread_cond_init(&s->asked, NULL);
}

static void release(qn__items *s) {
    while (s->first) {
        waiting *w = s->first;
        s->first = w->next;
        refuse(s, w, "it has closed the table"); /* its rank waits for an answer */
        free_waiting(w);
    }
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->reaching);
    pthread_cond_destroy(&s->answered);
    pthread_cond_destroy(&s->asked);
    qn__free(s);
}

qn_status qn__items_create(qn_cluster *c, uint64_t table, const qn__item_holder *holder,
                           qn__items **out, qn_error *err) {
    qn__items *s = qn__alloc(1, sizeof *s, err);
    *out = NULL;
    if (!s)
        return QN_MEMORY;
    s->cluster = c;
    s->holder = *holder;
    s->ranks = qn_cluster_ranks(c);
    s->rank = qn_cluster_rank(c);
    s->last = &s->first;
    open_locks(s);
    const int error = qn__thread_start(&s->thread, NULL, answer_all, s);
    if (error) {
        release(s);
        return qn__fail(err, QN_MEMORY, "no thread can be started: %s", strerror(error));
    }
    s->listener = (qn__cluster_listener){.table = table,
                                         .user = s,
                                         .message = on_message,
                                         .gone = on_gone,
                                         .renewed = on_renewed,
                                         .whole = read_whole};
    qn__cluster_listen(c, &s->listener);
    *out = s;
    return QN_OK;
}

void qn__items_destroy(qn__items *s) {
    if (!s)
        return;
    qn__cluster_unlisten(s->cluster, &s->listener);
    pthread_mutex_lock(&s->lock);
    s->ending = 1;
    pthread_cond_signal(&s->asked);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    release(s);
}
