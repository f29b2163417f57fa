/* Sending. Data leaves at once if the socket takes it, otherwise later from the transport's thread.
 * Over TCP a message is kept until the peer has acknowledged it. */
#include "cluster/transport/socket_state.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LETTERS_AT_ONCE = 16 };

static uint32_t type_of(const qn__message *message) { return qn__get_u32(message->head); }

/* Whether the message is sent again if it was lost. */
static int is_sequenced(uint32_t type) {
    return type >= QN__MESSAGE_OWN || type == QN__MESSAGE_FILE || type == QN__MESSAGE_BYE;
}

/* Whether the message is useless once its connection is gone. */
static int is_of_the_moment(const qn__message *message) {
    const uint32_t type = type_of(message);
    return type == QN__MESSAGE_PING || type == QN__MESSAGE_PONG || type == QN__MESSAGE_ACK ||
           type == QN__MESSAGE_RESUME;
}

static uint64_t length_of(const qn__message *message) {
    return QN__FRAME_BYTES + (message->body ? message->body->bytes : 0);
}

/* Starts or stops waiting for EPOLLOUT. */
static void wait_for_space(qn__socket_transport *transport, qn__peer *peer, int waiting) {
    if (peer->waiting == waiting)
        return;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (waiting ? EPOLLOUT : 0u),
                                .data.u32 = peer->rank};
    if (epoll_ctl(transport->poll_file, EPOLL_CTL_MOD, peer->file, &event) == 0)
        peer->waiting = waiting;
}

/* Collects the unsent parts of the first messages. A descriptor is sent with the first byte of its
 * message and with no byte of the next. Returns the number of parts. */
static size_t gather(const qn__peer *peer, struct iovec *part, int *file) {
    size_t parts = 0;
    *file = -1;
    for (const qn__message *l = peer->queue.first; l && parts + 2 <= 2 * LETTERS_AT_ONCE;
         l = l->next) {
        if ((l->file >= 0 && parts > 0) || (peer->held && type_of(l) != QN__MESSAGE_RESUME))
            break;
        uint64_t skip = l->sent;
        if (skip < QN__FRAME_BYTES) {
            part[parts++] = (struct iovec){(void *)(l->head + skip), QN__FRAME_BYTES - skip};
            skip = QN__FRAME_BYTES;
        }
        skip -= QN__FRAME_BYTES;
        if (l->body && skip < l->body->bytes)
            part[parts++] = (struct iovec){l->body->data + skip, l->body->bytes - skip};
        if (l->file >= 0) {
            *file = l->file;
            break;
        }
    }
    return parts;
}

static ssize_t put_on_wire(const qn__peer *peer, struct iovec *part, size_t parts, int file) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = part};
    message.msg_iovlen = (uint8_t)parts; /* an int in some C libraries, a size_t in others */
    if (file >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(c), &file, sizeof file);
    }
    return sendmsg(peer->file, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void drop_message(qn__socket_transport *transport, qn__message *message) {
    if (message->file >= 0)
        close(message->file);
    qn__buffer_drop(message->body);
    qn__pool_take_message(transport, message);
}

static void put_last(qn__message_queue *list, qn__message *message) {
    message->next = NULL;
    if (list->last)
        list->last->next = message;
    else
        list->first = message;
    list->last = message;
}

static void put_first(qn__message_queue *list, qn__message *message) {
    message->next = list->first;
    list->first = message;
    if (!list->last)
        list->last = message;
}

static qn__message *take_first(qn__message_queue *list) {
    qn__message *message = list->first;
    list->first = message->next;
    if (!list->first)
        list->last = NULL;
    return message;
}

static void drop_all(qn__socket_transport *transport, qn__message_queue *list) {
    while (list->first)
        drop_message(transport, take_first(list));
}

/* Removes what was sent from the queue. */
static void account(qn__socket_transport *transport, qn__peer *peer, uint64_t sent) {
    while (peer->queue.first) {
        qn__message *message = peer->queue.first;
        const uint64_t left = length_of(message) - message->sent;
        if (message->file >= 0 && sent > 0) {
            close(message->file);
            message->file = -1;
        }
        if (sent < left) {
            message->sent += sent;
            return;
        }
        sent -= left;
        if (!peer->local && type_of(message) >= QN__MESSAGE_OWN)
            atomic_fetch_add_explicit(&transport->bytes_out, length_of(message),
                                      memory_order_relaxed);
        take_first(&peer->queue);
        if (message->sequence && !peer->local)
            put_last(&peer->kept, message);
        else
            drop_message(transport, message);
    }
}

/* Under the peer's lock. The thread detects a broken connection by epoll. */
static void push(qn__socket_transport *transport, qn__peer *peer) {
    struct iovec part[2 * LETTERS_AT_ONCE];
    while (peer->queue.first && peer->file >= 0 && !peer->broken) {
        int file;
        const size_t parts = gather(peer, part, &file);
        if (parts == 0)
            break;
        const ssize_t sent = put_on_wire(peer, part, parts, file);
        if (sent >= 0) {
            account(transport, peer, (uint64_t)sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            wait_for_space(transport, peer, 1);
            return;
        } else if (errno != EINTR) {
            peer->broken = errno;
        }
    }
    if (peer->file >= 0)
        wait_for_space(transport, peer, 0);
}

/* A filled message, or NULL; body and file are then released. */
static qn__message *fill(qn__socket_transport *transport, const qn__peer *peer,
                         const qn__head *head, qn__message_buffer *body, int file) {
    qn__message *message = qn__pool_message(transport);
    if (!message) {
        qn__buffer_drop(body);
        if (file >= 0)
            close(file);
        return NULL;
    }
    qn__frame_write(&peer->key, head, body, message->head);
    message->next = NULL;
    message->body = body;
    message->sequence = message->sent = 0;
    message->file = file;
    return message;
}

/* Under the peer's lock. */
static void append(qn__socket_transport *transport, qn__peer *peer, qn__message *message) {
    const int alone = !peer->queue.first;
    if (is_sequenced(type_of(message)))
        message->sequence = ++peer->sequenced;
    qn__frame_seal(&peer->key, message->sequence, message->head);
    put_last(&peer->queue, message);
    if (alone)
        push(transport, peer);
}

/* Whether a message may still be sent to a rank that is gone, or after goodbye. */
static int goes(const qn__peer *peer, uint32_t type) {
    if (type == QN__MESSAGE_ACK)
        return peer->file >= 0;
    return peer->state == QN__PEER_OPEN ||
           (peer->state == QN__PEER_GONE && type == QN__MESSAGE_EVICT);
}

int qn__transport_queue(qn__socket_transport *transport, uint32_t to, const qn__head *head,
                        qn__message_buffer *body, int file) {
    if (to >= transport->ranks || to == transport->rank) {
        qn__buffer_drop(body);
        if (file >= 0)
            close(file);
        return 0;
    }
    qn__peer *peer = &transport->peer[to];
    qn__message *message = fill(transport, peer, head, body, file);
    if (!message)
        return 0;
    pthread_mutex_lock(&peer->lock);
    const int taken = goes(peer, head->type);
    if (taken)
        append(transport, peer, message);
    pthread_mutex_unlock(&peer->lock);
    if (!taken)
        drop_message(transport, message);
    return taken;
}

void qn__transport_send(qn__transport *base, uint32_t to, const qn__head *head,
                        qn__message_buffer *body) {
    qn__transport_queue(qn__socket_transport_of(base), to, head, body, -1);
}

void qn__peer_push(qn__socket_transport *transport, qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    push(transport, peer);
    pthread_mutex_unlock(&peer->lock);
}

int qn__peer_queue_empty(qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    const int empty = !peer->queue.first;
    pthread_mutex_unlock(&peer->lock);
    return empty;
}

int qn__peer_all_arrived(qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    const int there = !peer->queue.first && !peer->kept.first;
    pthread_mutex_unlock(&peer->lock);
    return there;
}

/* Under the peer's lock. */
static void forget(qn__socket_transport *transport, qn__peer *peer) {
    qn__message_queue begun = {0};
    if (peer->queue.first && peer->queue.first->sent > 0)
        put_last(&begun, take_first(&peer->queue));
    drop_all(transport, &peer->queue);
    drop_all(transport, &peer->kept);
    peer->queue = begun;
    if (peer->state == QN__PEER_OPEN)
        peer->state = QN__PEER_GONE;
}

void qn__peer_forget(qn__socket_transport *transport, qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    forget(transport, peer);
    pthread_mutex_unlock(&peer->lock);
}

void qn__peer_close(qn__socket_transport *transport, qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    peer->state = QN__PEER_SHUT;
    drop_all(transport, &peer->queue);
    drop_all(transport, &peer->kept);
    if (peer->file >= 0)
        close(peer->file);
    peer->file = -1;
    pthread_mutex_unlock(&peer->lock);
}

void qn__transport_send_last(qn__socket_transport *transport, uint32_t to, uint32_t type,
                             const char *text) {
    const size_t size = strnlen(text, 1000);
    qn__message_buffer *body = size ? qn__pool_buffer(&transport->base, size) : NULL;
    if (body)
        memcpy(body->data, text, size);
    const qn__head head = {.type = type};
    qn__peer *peer = &transport->peer[to];
    qn__message *message = fill(transport, peer, &head, body, -1);
    pthread_mutex_lock(&peer->lock);
    const int taken = message && goes(peer, type);
    if (taken && type != QN__MESSAGE_BYE)
        forget(transport, peer);
    if (taken)
        append(transport, peer, message);
    if (peer->state != QN__PEER_SHUT)
        peer->state = type == QN__MESSAGE_TIMEOUT ? QN__PEER_GONE : QN__PEER_SHUT;
    pthread_mutex_unlock(&peer->lock);
    if (message && !taken)
        drop_message(transport, message);
}

/* ------------------------------------------------------------------- replacing a TCP connection */

/* Under the peer's lock: queues all unacknowledged messages again, in order. */
static void unlink_file(qn__socket_transport *transport, qn__peer *peer) {
    qn__message_queue old = peer->queue;
    if (peer->file >= 0)
        close(peer->file); /* which also removes it from the epoll set */
    peer->file = -1;
    peer->broken = peer->waiting = peer->held = 0;
    peer->queue = peer->kept;
    peer->kept = (qn__message_queue){0};
    while (old.first) {
        qn__message *message = take_first(&old);
        if (is_of_the_moment(message))
            drop_message(transport, message);
        else
            put_last(&peer->queue, message);
    }
    for (qn__message *l = peer->queue.first; l; l = l->next)
        l->sent = 0;
}

void qn__peer_unlink(qn__socket_transport *transport, qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    unlink_file(transport, peer);
    pthread_mutex_unlock(&peer->lock);
}

int qn__peer_link(qn__socket_transport *transport, qn__peer *peer, int file) {
    const qn__head head = {.type = QN__MESSAGE_RESUME, .number = {peer->received}};
    qn__message *message = fill(transport, peer, &head, NULL, -1);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = peer->rank};
    if (!message || epoll_ctl(transport->poll_file, EPOLL_CTL_ADD, file, &event) != 0) {
        if (message)
            drop_message(transport, message);
        close(file);
        return 0;
    }
    pthread_mutex_lock(&peer->lock);
    unlink_file(transport, peer);
    qn__frame_seal(&peer->key, 0, message->head);
    put_first(&peer->queue, message);
    peer->file = file;
    peer->held = 1;
    push(transport, peer);
    pthread_mutex_unlock(&peer->lock);
    peer->acknowledged = peer->received;
    peer->unacknowledged = 0;
    return 1;
}

/* Under the peer's lock: drops acknowledged messages from the list, which is ordered. */
static void drop_arrived(qn__socket_transport *transport, qn__peer *peer, qn__message_queue *list) {
    while (list->first && list->first->sequence && list->first->sequence <= peer->arrived)
        drop_message(transport, take_first(list));
}

static int note_arrived(qn__peer *peer, uint64_t arrived) {
    if (arrived < peer->arrived || arrived > peer->sequenced)
        return 0;
    peer->arrived = arrived;
    return 1;
}

int qn__peer_resume(qn__socket_transport *transport, qn__peer *peer, uint64_t arrived) {
    qn__message *own = NULL;
    pthread_mutex_lock(&peer->lock);
    const int fine = peer->held && note_arrived(peer, arrived);
    if (fine) {
        /* The RESUME message of this side may still be first in the queue. */
        if (peer->queue.first && type_of(peer->queue.first) == QN__MESSAGE_RESUME)
            own = take_first(&peer->queue);
        drop_arrived(transport, peer, &peer->queue);
        if (own)
            put_first(&peer->queue, own);
        peer->held = 0;
        push(transport, peer);
    }
    pthread_mutex_unlock(&peer->lock);
    return fine;
}

void qn__peer_arrived(qn__socket_transport *transport, qn__peer *peer, uint64_t arrived) {
    pthread_mutex_lock(&peer->lock);
    if (note_arrived(peer, arrived))
        drop_arrived(transport, peer, &peer->kept);
    pthread_mutex_unlock(&peer->lock);
}

void qn__peer_acknowledge(qn__socket_transport *transport, qn__peer *peer) {
    const qn__head head = {.type = QN__MESSAGE_ACK, .number = {peer->received}};
    if (peer->local || peer->acknowledged == peer->received)
        return;
    peer->acknowledged = peer->received;
    peer->unacknowledged = 0;
    qn__transport_queue(transport, peer->rank, &head, NULL, -1);
}
