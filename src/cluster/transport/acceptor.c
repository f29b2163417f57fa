#include "cluster/transport/acceptor.h"

#include "base/system/clock.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Seconds that a handshake may take. When all slots are in use, the oldest is closed after the
 * shorter time. */
static const double PATIENCE = 5, PATIENCE_FULL = 0.25;

/* Maximum number of connections accepted in one call. */
enum { ACCEPTS = 256 };

void qn__acceptor_open(qn__acceptor *acceptor) {
    acceptor->wrong_keys = 0;
    memset(&acceptor->wrong_from, 0, sizeof acceptor->wrong_from);
    for (size_t i = 0; i < QN__PENDING_PEERS; ++i)
        acceptor->pending[i].shake.file = -1;
}

size_t qn__acceptor_polls(const qn__acceptor *acceptor, struct pollfd *list) {
    size_t count = 0;
    for (size_t i = 0; i < QN__PENDING_PEERS; ++i) {
        const qn__handshake *s = &acceptor->pending[i].shake;
        if (s->file >= 0)
            list[count++] = (struct pollfd){
                .fd = s->file, .events = s->state == QN__HANDSHAKE_WRITE ? POLLOUT : POLLIN};
    }
    /* poll skips negative descriptors. While all slots are in use, new connections stay in the
     * backlog. */
    const int full = count == QN__PENDING_PEERS;
    list[count++] = (struct pollfd){.fd = full ? -1 : acceptor->listeners->tcp, .events = POLLIN};
    list[count++] = (struct pollfd){.fd = full ? -1 : acceptor->listeners->local, .events = POLLIN};
    return count;
}

static void drop_pending(qn__pending_peer *pending) {
    close(pending->shake.file);
    pending->shake.file = -1;
}

static qn__pending_peer *free_slot(qn__acceptor *acceptor, double now) {
    qn__pending_peer *first = NULL;
    for (size_t i = 0; i < QN__PENDING_PEERS; ++i) {
        qn__pending_peer *g = &acceptor->pending[i];
        if (g->shake.file < 0)
            return g;
        if (!first || g->since < first->since)
            first = g;
    }
    if (!first || now - first->since < PATIENCE_FULL)
        return NULL;
    drop_pending(first);
    return first;
}

/* A slot for a connection; `known`: it comes from a rank's address. Such a connection may replace
 * the oldest one from an unknown address, or one that has had enough time. */
static qn__pending_peer *slot_for(qn__acceptor *acceptor, int known, double now) {
    qn__pending_peer *free = NULL, *first = NULL;
    uint32_t pending = 0, foreign = 0;
    for (size_t i = 0; i < QN__PENDING_PEERS; ++i) {
        qn__pending_peer *g = &acceptor->pending[i];
        if (g->shake.file < 0) {
            free = free ? free : g;
            continue;
        }
        ++pending;
        foreign += (uint32_t)!g->known;
        if (!first || g->known < first->known ||
            (g->known == first->known && g->since < first->since))
            first = g;
    }
    const int capacity = free && pending < acceptor->slots;
    if (!known)
        return capacity && 2 * foreign < acceptor->slots ? free : NULL;
    if (capacity)
        return free;
    if (!first || (first->known && now - first->since < PATIENCE_FULL))
        return NULL;
    drop_pending(first);
    return first;
}

/* Accepts all waiting connections; those from ranks' addresses take precedence. */
static void accept_ranks_first(qn__acceptor *acceptor, double now) {
    acceptor->refused = 0;
    for (int tries = 0; tries < ACCEPTS; ++tries) {
        const int file = qn__socket_accept(acceptor->listeners->tcp);
        if (file < 0) {
            acceptor->refused |= errno != EAGAIN && errno != EWOULDBLOCK;
            return;
        }
        const int known = acceptor->is_rank_address(acceptor->user, file);
        qn__pending_peer *slot = slot_for(acceptor, known, now);
        if (!slot) {
            acceptor->refused = 1;
            close(file);
            continue;
        }
        *slot = (qn__pending_peer){.since = now, .known = known};
        qn__handshake_begin(&slot->shake, file, 0, &acceptor->own, acceptor->key);
    }
}

static void accept_pending(qn__acceptor *acceptor, double now) {
    if (acceptor->is_rank_address) {
        accept_ranks_first(acceptor, now);
        return;
    }
    for (int local = 0; local < 2; ++local) {
        const int listener = local ? acceptor->listeners->local : acceptor->listeners->tcp;
        qn__pending_peer *slot;
        while (listener >= 0 && (slot = free_slot(acceptor, now))) {
            const int file = qn__socket_accept(listener);
            if (file < 0)
                break;
            slot->since = now;
            slot->local = local;
            qn__handshake_begin(&slot->shake, file, 0, &acceptor->own, acceptor->key);
            slot->shake.greeting = acceptor->greeting;
        }
    }
}

static void go_on(qn__acceptor *acceptor, qn__pending_peer *pending, double now) {
    qn__handshake *s = &pending->shake;
    qn__handshake_state state = qn__handshake_go(s);
    if (state == QN__HANDSHAKE_ASK)
        state = qn__handshake_decide(s, acceptor->decide(acceptor->user, &s->other));
    if (state == QN__HANDSHAKE_DONE) {
        const int file = s->file;
        s->file = -1;
        acceptor->joined(acceptor->user, &s->other, file, pending->local);
        return;
    }
    if (state == QN__HANDSHAKE_WRONG_KEY) {
        acceptor->wrong_keys++;
        qn__address_of_peer(s->file, &acceptor->wrong_from);
    }
    if (state > QN__HANDSHAKE_ASK || now - pending->since > PATIENCE)
        drop_pending(pending);
}

void qn__acceptor_serve(qn__acceptor *acceptor, double now) {
    accept_pending(acceptor, now);
    for (size_t i = 0; i < QN__PENDING_PEERS; ++i)
        if (acceptor->pending[i].shake.file >= 0)
            go_on(acceptor, &acceptor->pending[i], now);
}

int qn__acceptor_pending(const qn__acceptor *acceptor) {
    int count = 0;
    for (size_t i = 0; i < QN__PENDING_PEERS; ++i)
        count += acceptor->pending[i].shake.file >= 0;
    return count;
}

void qn__acceptor_close(qn__acceptor *acceptor) {
    for (size_t i = 0; i < QN__PENDING_PEERS; ++i)
        if (acceptor->pending[i].shake.file >= 0)
            drop_pending(&acceptor->pending[i]);
}

void qn__socket_wait(struct pollfd *list, size_t count, double seconds) {
    const int most = seconds <= 0 ? 0 : seconds > 1 ? 1000 : (int)(seconds * 1e3) + 1;
    (void)poll(list, (nfds_t)count, most);
}

int qn__socket_transfer(int file, void *bytes, size_t size, int out, double until) {
    unsigned char *at = bytes;
    while (size > 0) {
        const ssize_t n = out ? send(file, at, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : recv(file, at, size, MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            struct pollfd wait = {.fd = file, .events = out ? POLLOUT : POLLIN};
            const double left = until - qn__now();
            if (left <= 0)
                return -1;
            qn__socket_wait(&wait, 1, left);
        } else if (n == 0 || errno != EINTR) {
            return 0;
        }
    }
    return 1;
}

void qn__status_write(unsigned char message[QN__STATUS_BYTES], const char *failure) {
    memset(message, 0, QN__STATUS_BYTES);
    qn__put_u32(message, failure != NULL);
    if (failure)
        memcpy(message + 4, failure, strnlen(failure, QN__STATUS_BYTES - 5));
}

const char *qn__status_read(unsigned char message[QN__STATUS_BYTES]) {
    message[QN__STATUS_BYTES - 1] = 0;
    return qn__get_u32(message) ? (const char *)message + 4 : NULL;
}
