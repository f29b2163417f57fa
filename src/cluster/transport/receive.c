/* Receiving. Small messages are read through a staging buffer, many at a time; the rest of a large
 * body is read directly into its buffer. A damaged frame ends its connection, never the run. */
#include "cluster/transport/socket_state.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Maximum bytes read from one rank before the others are served. */
enum { TURN = 1 << 20 };

/* An ACK is sent after so many messages or bytes, and with each ping. */
enum { ACK_MESSAGES = 32, ACK_BYTES = 1 << 20 };

/* musl's macro converts a negative number to an unsigned one. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
static struct cmsghdr *next_part(struct msghdr *message, struct cmsghdr *part) {
    return CMSG_NXTHDR(message, part);
}
#pragma GCC diagnostic pop

/* Descriptors beyond the limit are closed: a peer cannot make this rank run out of descriptors. */
static void keep_files(qn__peer *peer, struct msghdr *message) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = next_part(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; ++i) {
            int file;
            memcpy(&file, CMSG_DATA(c) + i * sizeof file, sizeof file);
            if (peer->loose_count < QN__FILES_MOST)
                peer->loose[peer->loose_count++] = file;
            else
                close(file);
        }
    }
}

static ssize_t read_some(qn__peer *peer) {
    union {
        char bytes[CMSG_SPACE(QN__FILES_MOST * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part[2];
    size_t parts = 0;
    if (peer->body)
        part[parts++] =
            (struct iovec){peer->body->data + peer->body_have, peer->body->bytes - peer->body_have};
    part[parts++] =
        (struct iovec){peer->stage + peer->stage_have, QN__STAGE_BYTES - peer->stage_have};
    struct msghdr message = {.msg_iov = part};
    message.msg_iovlen = (uint8_t)parts; /* an int in some C libraries, a size_t in others */
    if (peer->local) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
    }
    const ssize_t got = recvmsg(peer->file, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0 && peer->local)
        keep_files(peer, &message);
    return got;
}

static void file_came(qn__socket_transport *transport, qn__peer *peer) {
    if (peer->loose_count == 0)
        return;
    const int file = peer->loose[0];
    peer->loose_count--;
    memmove(peer->loose, peer->loose + 1, (size_t)peer->loose_count * sizeof(int));
    pthread_mutex_lock(&transport->taken_lock);
    struct qn__taken *taken = &transport->taken[peer->rank];
    if (taken->count < QN__FILES_MOST)
        taken->file[taken->count++] = file;
    else
        close(file);
    pthread_cond_broadcast(&transport->taken_more);
    pthread_mutex_unlock(&transport->taken_lock);
}

static void evicted(qn__socket_transport *transport, qn__peer *peer,
                    const qn__message_buffer *body) {
    char why[256] = "";
    if (body) {
        const size_t size = body->bytes < sizeof why - 1 ? body->bytes : sizeof why - 1;
        memcpy(why, body->data, size);
        why[size] = 0;
    }
    if (peer->ended)
        return;
    peer->ended = 1;
    /* Also if this rank already counts the peer as silent: an eviction is certain. */
    if (!atomic_load(&transport->ending) && !atomic_load(&peer->evicted))
        transport->events.evicted(transport->events.user, peer->rank, why);
    qn__watch_gone(transport, peer, QN__GONE_SILENT);
}

static void own_message(qn__socket_transport *transport, qn__peer *peer, double now) {
    const qn__head *head = &peer->frame.head;
    switch (head->type) {
    case QN__MESSAGE_PING: {
        const qn__head pong = {.type = QN__MESSAGE_PONG,
                               .number = {head->number[0], qn__watch_nanoseconds(now)}};
        if (qn__peer_queue_empty(peer))
            qn__transport_queue(transport, peer->rank, &pong, NULL, -1);
        qn__peer_acknowledge(transport, peer);
        break;
    }
    case QN__MESSAGE_PONG:
        qn__watch_pong(peer, head);
        break;
    case QN__MESSAGE_ACK:
        qn__peer_arrived(transport, peer, head->number[0]);
        break;
    case QN__MESSAGE_FILE:
        file_came(transport, peer);
        break;
    case QN__MESSAGE_BYE:
        peer->ended = 1;
        qn__watch_gone(transport, peer, QN__GONE_LEFT);
        qn__peer_acknowledge(transport, peer); /* the peer waits for it */
        break;
    case QN__MESSAGE_EVICT:
        evicted(transport, peer, peer->body);
        break;
    case QN__MESSAGE_TIMEOUT:
        qn__watch_gone(transport, peer, QN__GONE_SILENT);
        break;
    default:
        break; /* of a later version; may be ignored */
    }
}

/* Counts a message with a sequence number. 0: one is missing before it. */
static int count(qn__peer *peer) {
    const uint64_t sequence = peer->frame.sequence;
    if (sequence == 0)
        return 1;
    if (sequence != peer->received + 1)
        return 0;
    ++peer->received;
    peer->unacknowledged += QN__FRAME_BYTES + peer->frame.head.bytes;
    return 1;
}

/* Delivers a complete message. 0: it is damaged, or out of sequence. */
static int deliver(qn__socket_transport *transport, qn__peer *peer, double now) {
    qn__message_buffer *body = peer->body;
    const qn__head *head = &peer->frame.head;
    if (!qn__frame_body_is_good(&peer->their_key, &peer->frame, body) || !count(peer))
        return 0;
    if (head->type == QN__MESSAGE_RESUME) {
        if (peer->local || !qn__peer_resume(transport, peer, head->number[0]))
            return 0;
    } else if (head->type < QN__MESSAGE_OWN) {
        own_message(transport, peer, now);
    } else if (!peer->gone && !atomic_load(&peer->evicted) && !atomic_load(&transport->ending)) {
        if (!peer->local)
            atomic_fetch_add_explicit(&transport->bytes_in, QN__FRAME_BYTES + head->bytes,
                                      memory_order_relaxed);
        peer->body = NULL;
        transport->events.message(transport->events.user, peer->rank, head, body);
        body = NULL;
    }
    peer->body = NULL;
    qn__buffer_drop(body);
    if (peer->received - peer->acknowledged >= ACK_MESSAGES || peer->unacknowledged >= ACK_BYTES)
        qn__peer_acknowledge(transport, peer);
    return 1;
}

/* Begins the message whose frame is at `at`. 0: invalid. */
static int begin_message(qn__socket_transport *transport, qn__peer *peer, const unsigned char *at) {
    const qn__head *head = &peer->frame.head;
    if (!qn__frame_read(&peer->their_key, at, &peer->frame) ||
        head->bytes > (head->type < QN__MESSAGE_OWN ? 4096 : QN__BODY_MOST))
        return 0;
    peer->body_have = 0;
    peer->body = head->bytes ? qn__pool_buffer(&transport->base, head->bytes) : NULL;
    return head->bytes == 0 || peer->body;
}

/* Splits the staging buffer into messages; an incomplete header moves to its beginning. 0:
 * malformed data, or out of memory. */
static int take_apart(qn__socket_transport *transport, qn__peer *peer, double now) {
    size_t at = 0;
    while (peer->stage_have - at >= QN__FRAME_BYTES || peer->body) {
        if (!peer->body) {
            if (!begin_message(transport, peer, peer->stage + at))
                return 0;
            at += QN__FRAME_BYTES;
        }
        if (peer->body) {
            const uint64_t missing = peer->body->bytes - peer->body_have;
            const size_t have = peer->stage_have - at;
            const size_t take = missing < have ? (size_t)missing : have;
            memcpy(peer->body->data + peer->body_have, peer->stage + at, take);
            peer->body_have += take;
            at += take;
            if (peer->body_have < peer->body->bytes)
                break;
        }
        if (!deliver(transport, peer, now))
            return 0;
        if (peer->file < 0)
            return 1; /* the peer ended meanwhile */
    }
    memmove(peer->stage, peer->stage + at, peer->stage_have - at);
    peer->stage_have -= at;
    return 1;
}

/* Accounts for `got` bytes that read_some has appended, those of the body first. */
static void place(qn__peer *peer, size_t got) {
    if (peer->body) {
        const uint64_t missing = peer->body->bytes - peer->body_have;
        const size_t take = missing < got ? (size_t)missing : got;
        peer->body_have += take;
        got -= take;
    }
    peer->stage_have += got;
}

void qn__peer_read(qn__socket_transport *transport, qn__peer *peer, double now) {
    for (size_t turn = 0; turn < TURN && peer->file >= 0;) {
        const ssize_t got = read_some(peer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0) {
            qn__watch_ended(transport, peer, got < 0 ? errno : 0, now);
            return;
        }
        turn += (size_t)got;
        peer->heard = now;
        if (peer->discards)
            continue;
        place(peer, (size_t)got);
        if (!take_apart(transport, peer, now)) {
            qn__watch_ended(transport, peer, EBADMSG, now);
            return;
        }
    }
}
