/* What leaves: at once where the socket takes it, otherwise later by the post's thread. Over TCP it
 * is kept until the other side has said that it arrived. */
#include "cluster/transport/socket_state.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LETTERS_AT_ONCE = 16 };

static uint32_t type_of(const qn__letter *letter) { return qn__get_u32(letter->head); }

/* Whether it is sent again when it did not arrive. */
static int is_sequenced(uint32_t type) {
    return type >= QN__MAIL_OWN || type == QN__MAIL_FILE || type == QN__MAIL_BYE;
}

/* Of no use any more once the connection that it was for is gone. */
static int is_of_the_moment(const qn__letter *letter) {
    const uint32_t type = type_of(letter);
    return type == QN__MAIL_PING || type == QN__MAIL_PONG || type == QN__MAIL_ACK ||
           type == QN__MAIL_RESUME;
}

static uint64_t length_of(const qn__letter *letter) {
    return QN__FRAME_BYTES + (letter->body ? letter->body->bytes : 0);
}

/* Asks the thread to be told when the socket takes more, or no longer. */
static void wait_for_room(qn__sockets_post *post, qn__peer *peer, int waiting) {
    if (peer->waiting == waiting)
        return;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (waiting ? EPOLLOUT : 0u),
                                .data.u32 = peer->rank};
    if (epoll_ctl(post->poll_file, EPOLL_CTL_MOD, peer->file, &event) == 0)
        peer->waiting = waiting;
}

/* The parts of the first letters that have not left. A descriptor travels with the first byte of
 * its message and nothing of the one behind it. Returns the number of parts. */
static size_t gather(const qn__peer *peer, struct iovec *part, int *file) {
    size_t parts = 0;
    *file = -1;
    for (const qn__letter *l = peer->queue.first; l && parts + 2 <= 2 * LETTERS_AT_ONCE;
         l = l->next) {
        if ((l->file >= 0 && parts > 0) || (peer->held && type_of(l) != QN__MAIL_RESUME))
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

static void drop_letter(qn__sockets_post *post, qn__letter *letter) {
    if (letter->file >= 0)
        close(letter->file);
    qn__parcel_drop(letter->body);
    qn__pool_take_letter(post, letter);
}

static void put_last(qn__letters *list, qn__letter *letter) {
    letter->next = NULL;
    if (list->last)
        list->last->next = letter;
    else
        list->first = letter;
    list->last = letter;
}

static void put_first(qn__letters *list, qn__letter *letter) {
    letter->next = list->first;
    list->first = letter;
    if (!list->last)
        list->last = letter;
}

static qn__letter *take_first(qn__letters *list) {
    qn__letter *letter = list->first;
    list->first = letter->next;
    if (!list->first)
        list->last = NULL;
    return letter;
}

static void drop_all(qn__sockets_post *post, qn__letters *list) {
    while (list->first)
        drop_letter(post, take_first(list));
}

/* Takes off what has left. */
static void account(qn__sockets_post *post, qn__peer *peer, uint64_t sent) {
    while (peer->queue.first) {
        qn__letter *letter = peer->queue.first;
        const uint64_t left = length_of(letter) - letter->sent;
        if (letter->file >= 0 && sent > 0) {
            close(letter->file);
            letter->file = -1;
        }
        if (sent < left) {
            letter->sent += sent;
            return;
        }
        sent -= left;
        if (!peer->local && type_of(letter) >= QN__MAIL_OWN)
            atomic_fetch_add_explicit(&post->bytes_out, length_of(letter), memory_order_relaxed);
        take_first(&peer->queue);
        if (letter->sequence && !peer->local)
            put_last(&peer->kept, letter);
        else
            drop_letter(post, letter);
    }
}

/* Under the peer's lock. A broken connection is the thread's to notice: its epoll tells it. */
static void push(qn__sockets_post *post, qn__peer *peer) {
    struct iovec part[2 * LETTERS_AT_ONCE];
    while (peer->queue.first && peer->file >= 0 && !peer->broken) {
        int file;
        const size_t parts = gather(peer, part, &file);
        if (parts == 0)
            break;
        const ssize_t sent = put_on_wire(peer, part, parts, file);
        if (sent >= 0) {
            account(post, peer, (uint64_t)sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            wait_for_room(post, peer, 1);
            return;
        } else if (errno != EINTR) {
            peer->broken = errno;
        }
    }
    if (peer->file >= 0)
        wait_for_room(post, peer, 0);
}

/* A letter that is filled, or NULL; body and file are given up then. */
static qn__letter *fill(qn__sockets_post *post, const qn__peer *peer, const qn__head *head,
                        qn__parcel *body, int file) {
    qn__letter *letter = qn__pool_letter(post);
    if (!letter) {
        qn__parcel_drop(body);
        if (file >= 0)
            close(file);
        return NULL;
    }
    qn__frame_write(&peer->key, head, body, letter->head);
    letter->next = NULL;
    letter->body = body;
    letter->sequence = letter->sent = 0;
    letter->file = file;
    return letter;
}

/* Under the peer's lock. */
static void append(qn__sockets_post *post, qn__peer *peer, qn__letter *letter) {
    const int alone = !peer->queue.first;
    if (is_sequenced(type_of(letter)))
        letter->sequence = ++peer->sequenced;
    qn__frame_seal(&peer->key, letter->sequence, letter->head);
    put_last(&peer->queue, letter);
    if (alone)
        push(post, peer);
}

/* What may go to a rank that is gone for this one, or that this one has said goodbye to. */
static int goes(const qn__peer *peer, uint32_t type) {
    if (type == QN__MAIL_ACK)
        return peer->file >= 0;
    return peer->state == QN__PEER_OPEN || (peer->state == QN__PEER_GONE && type == QN__MAIL_EXPEL);
}

int qn__mail_queue(qn__sockets_post *post, uint32_t to, const qn__head *head, qn__parcel *body,
                   int file) {
    if (to >= post->ranks || to == post->rank) {
        qn__parcel_drop(body);
        if (file >= 0)
            close(file);
        return 0;
    }
    qn__peer *peer = &post->peer[to];
    qn__letter *letter = fill(post, peer, head, body, file);
    if (!letter)
        return 0;
    pthread_mutex_lock(&peer->lock);
    const int taken = goes(peer, head->type);
    if (taken)
        append(post, peer, letter);
    pthread_mutex_unlock(&peer->lock);
    if (!taken)
        drop_letter(post, letter);
    return taken;
}

void qn__mail_send(qn__post *base, uint32_t to, const qn__head *head, qn__parcel *body) {
    qn__mail_queue(qn__sockets_of(base), to, head, body, -1);
}

void qn__mail_push(qn__sockets_post *post, qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    push(post, peer);
    pthread_mutex_unlock(&peer->lock);
}

int qn__mail_empty(qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    const int empty = !peer->queue.first;
    pthread_mutex_unlock(&peer->lock);
    return empty;
}

int qn__mail_is_there(qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    const int there = !peer->queue.first && !peer->kept.first;
    pthread_mutex_unlock(&peer->lock);
    return there;
}

/* Under the peer's lock. */
static void forget(qn__sockets_post *post, qn__peer *peer) {
    qn__letters begun = {0};
    if (peer->queue.first && peer->queue.first->sent > 0)
        put_last(&begun, take_first(&peer->queue));
    drop_all(post, &peer->queue);
    drop_all(post, &peer->kept);
    peer->queue = begun;
    if (peer->state == QN__PEER_OPEN)
        peer->state = QN__PEER_GONE;
}

void qn__mail_forget(qn__sockets_post *post, qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    forget(post, peer);
    pthread_mutex_unlock(&peer->lock);
}

void qn__mail_close(qn__sockets_post *post, qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    peer->state = QN__PEER_SHUT;
    drop_all(post, &peer->queue);
    drop_all(post, &peer->kept);
    if (peer->file >= 0)
        close(peer->file);
    peer->file = -1;
    pthread_mutex_unlock(&peer->lock);
}

void qn__mail_last(qn__sockets_post *post, uint32_t to, uint32_t type, const char *text) {
    const size_t size = strnlen(text, 1000);
    qn__parcel *body = size ? qn__pool_parcel(&post->base, size) : NULL;
    if (body)
        memcpy(body->data, text, size);
    const qn__head head = {.type = type};
    qn__peer *peer = &post->peer[to];
    qn__letter *letter = fill(post, peer, &head, body, -1);
    pthread_mutex_lock(&peer->lock);
    const int taken = letter && goes(peer, type);
    if (taken && type != QN__MAIL_BYE)
        forget(post, peer);
    if (taken)
        append(post, peer, letter);
    if (peer->state != QN__PEER_SHUT)
        peer->state = type == QN__MAIL_DEAF ? QN__PEER_GONE : QN__PEER_SHUT;
    pthread_mutex_unlock(&peer->lock);
    if (letter && !taken)
        drop_letter(post, letter);
}

/* ---------------------------------------------------- from one connection to the next; for TCP */

/* Under the peer's lock: all that may not have arrived is to be sent once more, in its order. */
static void unlink_file(qn__sockets_post *post, qn__peer *peer) {
    qn__letters old = peer->queue;
    if (peer->file >= 0)
        close(peer->file); /* which takes it out of the epoll as well */
    peer->file = -1;
    peer->broken = peer->waiting = peer->held = 0;
    peer->queue = peer->kept;
    peer->kept = (qn__letters){0};
    while (old.first) {
        qn__letter *letter = take_first(&old);
        if (is_of_the_moment(letter))
            drop_letter(post, letter);
        else
            put_last(&peer->queue, letter);
    }
    for (qn__letter *l = peer->queue.first; l; l = l->next)
        l->sent = 0;
}

void qn__mail_unlink(qn__sockets_post *post, qn__peer *peer) {
    pthread_mutex_lock(&peer->lock);
    unlink_file(post, peer);
    pthread_mutex_unlock(&peer->lock);
}

int qn__mail_link(qn__sockets_post *post, qn__peer *peer, int file) {
    const qn__head head = {.type = QN__MAIL_RESUME, .number = {peer->received}};
    qn__letter *letter = fill(post, peer, &head, NULL, -1);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = peer->rank};
    if (!letter || epoll_ctl(post->poll_file, EPOLL_CTL_ADD, file, &event) != 0) {
        if (letter)
            drop_letter(post, letter);
        close(file);
        return 0;
    }
    pthread_mutex_lock(&peer->lock);
    unlink_file(post, peer);
    qn__frame_seal(&peer->key, 0, letter->head);
    put_first(&peer->queue, letter);
    peer->file = file;
    peer->held = 1;
    push(post, peer);
    pthread_mutex_unlock(&peer->lock);
    peer->told = peer->received;
    peer->untold = 0;
    return 1;
}

/* Under the peer's lock: drops those of the list that have arrived. They are in order. */
static void drop_arrived(qn__sockets_post *post, qn__peer *peer, qn__letters *list) {
    while (list->first && list->first->sequence && list->first->sequence <= peer->arrived)
        drop_letter(post, take_first(list));
}

static int note_arrived(qn__peer *peer, uint64_t arrived) {
    if (arrived < peer->arrived || arrived > peer->sequenced)
        return 0;
    peer->arrived = arrived;
    return 1;
}

int qn__mail_resume(qn__sockets_post *post, qn__peer *peer, uint64_t arrived) {
    qn__letter *own = NULL;
    pthread_mutex_lock(&peer->lock);
    const int fine = peer->held && note_arrived(peer, arrived);
    if (fine) {
        /* This side's own resumption may still be on its way, in front of the others. */
        if (peer->queue.first && type_of(peer->queue.first) == QN__MAIL_RESUME)
            own = take_first(&peer->queue);
        drop_arrived(post, peer, &peer->queue);
        if (own)
            put_first(&peer->queue, own);
        peer->held = 0;
        push(post, peer);
    }
    pthread_mutex_unlock(&peer->lock);
    return fine;
}

void qn__mail_arrived(qn__sockets_post *post, qn__peer *peer, uint64_t arrived) {
    pthread_mutex_lock(&peer->lock);
    if (note_arrived(peer, arrived))
        drop_arrived(post, peer, &peer->kept);
    pthread_mutex_unlock(&peer->lock);
}

void qn__mail_acknowledge(qn__sockets_post *post, qn__peer *peer) {
    const qn__head head = {.type = QN__MAIL_ACK, .number = {peer->received}};
    if (peer->local || peer->told == peer->received)
        return;
    peer->told = peer->received;
    peer->untold = 0;
    qn__mail_queue(post, peer->rank, &head, NULL, -1);
}
