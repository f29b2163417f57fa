/* What leaves: at once where the socket takes it, otherwise later by the post's thread. */
#include "cluster/post_state.h"
#include "cluster/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LETTERS_AT_ONCE = 16 };

static void write_head(unsigned char to[QN__FRAME_BYTES], const qn__head *head) {
    qn__put_u32(to, head->type);
    qn__put_u32(to + 4, head->extra);
    for (size_t i = 0; i < 4; ++i)
        qn__put_u64(to + 8 + 8 * i, head->number[i]);
    qn__put_u64(to + 40, head->bytes);
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
    for (const qn__letter *l = peer->first; l && parts + 2 <= 2 * LETTERS_AT_ONCE; l = l->next) {
        if (l->file >= 0 && parts > 0)
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
    struct msghdr message = {.msg_iov = part, .msg_iovlen = parts};
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

/* Takes off what has left. */
static void account(qn__sockets_post *post, qn__peer *peer, uint64_t sent) {
    while (peer->first) {
        qn__letter *letter = peer->first;
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
        if (!peer->local && qn__get_u32(letter->head) >= QN__MAIL_OWN)
            atomic_fetch_add_explicit(&post->bytes_out, length_of(letter), memory_order_relaxed);
        peer->first = letter->next;
        if (!peer->first)
            peer->last = NULL;
        drop_letter(post, letter);
    }
}

/* All letters behind `kept`, which may be NULL. */
static void drop_behind(qn__sockets_post *post, qn__peer *peer, qn__letter *kept) {
    qn__letter **from = kept ? &kept->next : &peer->first;
    while (*from) {
        qn__letter *letter = *from;
        *from = letter->next;
        drop_letter(post, letter);
    }
    peer->last = kept;
}

/* Under the peer's lock. A broken connection is the thread's to notice: its epoll tells it. */
static void push(qn__sockets_post *post, qn__peer *peer) {
    struct iovec part[2 * LETTERS_AT_ONCE];
    while (peer->first && peer->file >= 0) {
        int file;
        const size_t parts = gather(peer, part, &file);
        const ssize_t sent = put_on_wire(peer, part, parts, file);
        if (sent >= 0) {
            account(post, peer, (uint64_t)sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            wait_for_room(post, peer, 1);
            return;
        } else if (errno != EINTR) {
            peer->broken = errno;
            peer->state = QN__PEER_SHUT;
            drop_behind(post, peer, NULL);
        }
    }
    if (peer->file >= 0)
        wait_for_room(post, peer, 0);
}

/* A letter that is filled, or NULL; body and file are given up then. */
static qn__letter *fill(qn__sockets_post *post, const qn__head *head, qn__parcel *body, int file) {
    qn__letter *letter = qn__pool_letter(post);
    if (!letter) {
        qn__parcel_drop(body);
        if (file >= 0)
            close(file);
        return NULL;
    }
    qn__head whole = *head;
    whole.bytes = body ? body->bytes : 0;
    write_head(letter->head, &whole);
    letter->next = NULL;
    letter->body = body;
    letter->sent = 0;
    letter->file = file;
    return letter;
}

/* Under the peer's lock. */
static void append(qn__sockets_post *post, qn__peer *peer, qn__letter *letter) {
    const int alone = !peer->first;
    if (peer->last)
        peer->last->next = letter;
    else
        peer->first = letter;
    peer->last = letter;
    if (alone)
        push(post, peer);
}

int qn__mail_queue(qn__sockets_post *post, uint32_t to, const qn__head *head, qn__parcel *body,
                   int file) {
    qn__letter *letter = fill(post, head, body, file);
    if (!letter)
        return 0;
    int taken = 0;
    if (to < post->ranks && to != post->rank) {
        qn__peer *peer = &post->peer[to];
        pthread_mutex_lock(&peer->lock);
        taken = peer->state == QN__PEER_OPEN;
        if (taken)
            append(post, peer, letter);
        pthread_mutex_unlock(&peer->lock);
    }
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
    const int empty = !peer->first;
    pthread_mutex_unlock(&peer->lock);
    return empty;
}

/* Under the peer's lock. */
static void forget(qn__sockets_post *post, qn__peer *peer) {
    drop_behind(post, peer, peer->first && peer->first->sent > 0 ? peer->first : NULL);
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
    drop_behind(post, peer, NULL);
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
    qn__letter *letter = fill(post, &head, body, -1);
    qn__peer *peer = &post->peer[to];
    pthread_mutex_lock(&peer->lock);
    const int taken = letter && (peer->state == QN__PEER_OPEN ||
                                 (peer->state == QN__PEER_GONE && type == QN__MAIL_EXPEL));
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
