#include "cluster/rendezvous/mesh.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "cluster/transport/acceptor.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Seconds for one attempt to connect, and for the handshake after it. */
static const double CONNECT_TIME = 3, SHAKE_TIME = 10;
/* Seconds between two attempts. */
static const double PAUSE = 0.02, PAUSE_MOST = 0.5;
/* Seconds that the others wait for rank 0's answer after rank 0 has stopped waiting. */
static const double GRACE = 5;

/* In place of a status: a rank has ended, and the ranks meet again. */
enum { AGAIN = 3 };

/* A connection attempt to a lower rank. */
typedef struct dial {
    qn__handshake shake; /* file -1: no attempt under way */
    double since, next, pause;
    uint32_t attempts;
} dial;

typedef struct connector {
    const qn__mesh *mesh;
    qn__link *link;
    dial *dial; /* of ranks 0 .. rank-1 */
    struct pollfd *poll;
    qn__acceptor *acceptor;
    uint32_t missing;
} connector;

static int is_there(const qn__mesh *m, uint32_t rank) {
    return !m->present || qn__ranks_has(m->present, rank);
}

static void join(connector *c, uint32_t other, int file, int local) {
    if (c->link[other].file >= 0)
        close(c->link[other].file); /* the peer gave it up and connected again */
    else
        c->missing--;
    c->link[other] = (qn__link){file, local, (uint16_t)c->mesh->endpoint[other].port};
}

/* --------------------------------------------------------------------- accept from higher ranks */

static const char *decide(void *user, const qn__hello *other) {
    const connector *c = user;
    const qn__mesh *m = c->mesh;
    if (other->purpose != QN__FOR_TRANSPORT || other->to != m->rank || other->ranks != m->ranks ||
        other->from <= m->rank || other->from >= m->ranks || !is_there(m, other->from))
        return "another rank was meant";
    return NULL;
}

static void joined(void *user, const qn__hello *other, int file, int local) {
    join(user, other->from, file, local);
}

/* ----------------------------------------------------------------------- connect to lower ranks */

static int same_machine(const qn__mesh *m, uint32_t other) {
    return memcmp(m->endpoint[m->rank].machine, m->endpoint[other].machine, 32) == 0;
}

/* The address of this attempt: the one that rank 0 saw first, then those of the endpoint, in
 * turn. */
static const qn__address *candidate(const qn__endpoint *endpoint, uint32_t attempt) {
    const uint32_t seen = endpoint->seen.kind != 0;
    const uint32_t at = attempt % (endpoint->count + seen);
    return at < seen ? &endpoint->seen : &endpoint->address[at - seen];
}

static void begin(connector *c, uint32_t other, double now) {
    const qn__mesh *m = c->mesh;
    const qn__endpoint *endpoint = &m->endpoint[other];
    dial *d = &c->dial[other];
    const int file = same_machine(m, other) ? qn__socket_dial_unix(endpoint->unix_name)
                                            : qn__socket_dial(candidate(endpoint, d->attempts),
                                                              (uint16_t)endpoint->port);
    d->attempts++;
    d->since = now;
    d->next = now + d->pause;
    d->pause = d->pause * 2 < PAUSE_MOST ? d->pause * 2 : PAUSE_MOST;
    if (file < 0)
        return;
    qn__hello hello;
    qn__hello_fill(&hello, QN__FOR_TRANSPORT, m->rank, other, m->ranks);
    qn__handshake_begin(&d->shake, file, 1, &hello, m->key);
}

/* Whether the peer is the intended rank. Another network may have a machine with the same
 * address. */
static int expected(const connector *c, uint32_t other) {
    const qn__hello *h = &c->dial[other].shake.other;
    return h->from == other && h->ranks == c->mesh->ranks;
}

static void advance(connector *c, uint32_t other, double now) {
    dial *d = &c->dial[other];
    if (c->link[other].file >= 0 || !is_there(c->mesh, other))
        return;
    if (d->shake.file < 0) {
        if (now >= d->next)
            begin(c, other, now);
        if (d->shake.file < 0)
            return;
    }
    const qn__handshake_state state = qn__handshake_go(&d->shake);
    const int file = d->shake.file;
    if (state == QN__HANDSHAKE_DONE && expected(c, other)) {
        d->shake.file = -1;
        join(c, other, file, same_machine(c->mesh, other));
        return;
    }
    const int connecting = d->shake.stage == 0;
    if (state > QN__HANDSHAKE_ASK || now - d->since > (connecting ? CONNECT_TIME : SHAKE_TIME)) {
        close(file);
        d->shake.file = -1;
        d->next = now + d->pause;
    }
}

/* ------------------------------------------------------------------------------ all connections */

static void wait_for_news(connector *c, double now) {
    size_t count = qn__acceptor_polls(c->acceptor, c->poll);
    double until = now + 0.5;
    for (uint32_t r = 0; r < c->mesh->rank; ++r) {
        const dial *d = &c->dial[r];
        if (c->link[r].file >= 0 || !is_there(c->mesh, r))
            continue;
        if (d->shake.file >= 0)
            c->poll[count++] =
                (struct pollfd){.fd = d->shake.file,
                                .events = d->shake.state == QN__HANDSHAKE_WRITE ? POLLOUT : POLLIN};
        else if (d->next < until)
            until = d->next;
    }
    qn__socket_wait(c->poll, count, until - now);
}

/* What a connection has: 1 data, 0 nothing yet, -1 its peer has ended. Data that it sent before its
 * end is read first. */
static int news(int file) {
    unsigned char byte[1];
    const ssize_t n = recv(file, byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 1                                                                 ? 1
           : n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0
                                                                                  : -1;
}

static int rank0_ended(const connector *c) {
    const qn__mesh *m = c->mesh;
    const int file = m->rank > 0 && c->link[0].file >= 0 ? c->link[0].file : m->rank0;
    return m->rank > 0 && file >= 0 && news(file) < 0;
}

/* Whether rank 0 has sent its verdict. Before this rank has all connections it is a failure. */
static int rank0_gave_up(const connector *c) {
    return c->mesh->rank > 0 && c->link[0].file >= 0 && news(c->link[0].file) > 0;
}

/* Whether rank 0 knows that all ranks that it lacks have ended. The others are connected to it by
 * then, so its verdict reaches them. */
static int missing_ended(const connector *c) {
    const qn__mesh *m = c->mesh;
    int ended = m->held != NULL;
    for (uint32_t r = 1; r < m->ranks && ended; ++r)
        ended =
            c->link[r].file >= 0 || !is_there(m, r) || (m->held[r] >= 0 && news(m->held[r]) < 0);
    return ended;
}

static void connect_missing(connector *c) {
    const qn__mesh *m = c->mesh;
    for (double now = qn__now();
         c->missing > 0 && now < m->until && !rank0_ended(c) && !rank0_gave_up(c) &&
         !missing_ended(c) && !(m->ends && m->ends(m->user));
         now = qn__now()) {
        qn__acceptor_serve(c->acceptor, now);
        for (uint32_t r = 0; r < m->rank; ++r)
            advance(c, r, now);
        if (c->missing > 0)
            wait_for_news(c, now);
    }
}

static qn_status has_ended(const connector *c, uint32_t rank, qn_error *err) {
    qn__fail(err, QN_BUSY, "rank %u on %s ended before all ranks were connected", rank,
             c->mesh->endpoint[rank].host);
    return qn__remedy(err, QN_BUSY, "start all ranks again");
}

static qn_status name_missing(const connector *c, qn_error *err) {
    const qn__mesh *m = c->mesh;
    uint32_t other = 0;
    while (other == m->rank || !is_there(m, other) || c->link[other].file >= 0)
        ++other;
    if (missing_ended(c))
        return has_ended(c, other, err);
    char text[QN__ADDRESS_TEXT];
    const uint32_t dialled = other < m->rank ? other : m->rank;
    const qn__endpoint *endpoint = &m->endpoint[dialled];
    qn__address_text(&endpoint->address[0], (uint16_t)endpoint->port, text);
    qn__fail(err, QN_CLUSTER, "rank %u on %s and rank %u on %s found no connection to each other",
             m->rank, m->endpoint[m->rank].host, other, m->endpoint[other].host);
    qn__at(err, "rank %u listens at %s%s", dialled, text, endpoint->count > 1 ? " and others" : "");
    return qn__remedy(err, QN_CLUSTER,
                      "let programs of these machines connect to each other (a firewall?), or name "
                      "the network interface that all share");
}

static qn_status stopped_answering(const connector *c, uint32_t rank, qn_error *err) {
    return qn__fail(err, QN_CLUSTER,
                    "rank %u on %s stopped answering before all ranks were connected", rank,
                    c->mesh->endpoint[rank].host);
}

/* The status of a rank, or its end. */
static qn_status hear_rank(const connector *c, uint32_t rank, qn_error *err) {
    unsigned char message[QN__STATUS_BYTES];
    const int got =
        qn__socket_transfer(c->link[rank].file, message, sizeof message, 0, c->mesh->until + GRACE);
    const char *failure = got == 1 ? qn__status_read(message) : NULL;
    if (failure)
        return qn__fail(err, QN_CLUSTER, "%s", failure);
    return got == 1 ? QN_OK : got == 0 ? has_ended(c, rank, err) : stopped_answering(c, rank, err);
}

/* Each rank has sent nothing but its status. If a rank ends, others may still wait for it. */
static qn_status hear_all(connector *c, qn_error *err) {
    const qn__mesh *m = c->mesh;
    const double until = m->until + GRACE;
    qn__ranks silent = {{0}};
    qn_status status = QN_OK;
    for (uint32_t r = 1; r < m->ranks; ++r) {
        c->poll[r - 1] = (struct pollfd){.fd = c->link[r].file, .events = POLLIN};
        if (is_there(m, r))
            qn__ranks_add(&silent, r);
    }
    while (status == QN_OK && qn__ranks_count(&silent) > 0) {
        const double now = qn__now();
        if (now >= until)
            return stopped_answering(c, qn__ranks_first(&silent), err);
        qn__socket_wait(c->poll, m->ranks - 1, until - now);
        for (uint32_t r = 1; r < m->ranks && status == QN_OK; ++r) {
            if (!c->poll[r - 1].revents)
                continue;
            if (qn__ranks_has(&silent, r))
                status = hear_rank(c, r, err);
            else if (news(c->link[r].file) < 0)
                status = has_ended(c, r, err);
            qn__ranks_drop(&silent, r);
        }
    }
    return status;
}

/* Each rank sends rank 0 its status; rank 0 sends the combined status to all. */
static qn_status lead(connector *c, qn_status status, qn_error *err) {
    const qn__mesh *m = c->mesh;
    unsigned char message[QN__STATUS_BYTES];
    if (status == QN_OK)
        status = hear_all(c, err);
    char text[512] = "";
    if (status != QN_OK)
        memcpy(text, err->what, sizeof text);
    qn__status_write(message, status == QN_OK ? NULL : text);
    if (status == QN_BUSY)
        qn__put_u32(message, AGAIN);
    for (uint32_t r = 1; r < m->ranks; ++r)
        if (c->link[r].file >= 0)
            qn__socket_transfer(c->link[r].file, message, sizeof message, 1, m->until + 2 * GRACE);
    return status;
}

/* Rank 0's verdict. */
static qn_status hear(const connector *c, qn_error *err) {
    const qn__mesh *m = c->mesh;
    unsigned char message[QN__STATUS_BYTES];
    const int got =
        qn__socket_transfer(c->link[0].file, message, sizeof message, 0, m->until + 2 * GRACE);
    const char *failure = got == 1 ? qn__status_read(message) : NULL;
    if (failure) {
        qn__fail(err, QN_CLUSTER, "%s", failure);
        return qn__get_u32(message) == AGAIN ? QN_BUSY : QN_CLUSTER;
    }
    if (got == 0)
        return has_ended(c, 0, err);
    if (got != 1)
        return stopped_answering(c, 0, err);
    return QN_OK;
}

static qn_status follow(const connector *c, qn_status status, qn_error *err) {
    const int file = c->link[0].file;
    unsigned char message[QN__STATUS_BYTES];
    if (file < 0)
        return status;
    qn__status_write(message, status == QN_OK ? NULL : err ? err->what : "a rank failed");
    qn__socket_transfer(file, message, sizeof message, 1, c->mesh->until + GRACE);
    return status == QN_OK ? hear(c, err) : status;
}

static qn_status connect_all(connector *c, qn_error *err) {
    const qn__mesh *m = c->mesh;
    qn_error own;
    qn_status status = QN_OK;
    for (uint32_t r = 0; r < m->rank; ++r) {
        c->dial[r].shake.file = -1;
        c->dial[r].pause = PAUSE;
    }
    c->acceptor->listeners = m->listeners;
    c->acceptor->key = m->key;
    c->acceptor->greeting = NULL;
    c->acceptor->user = c;
    c->acceptor->decide = decide;
    c->acceptor->joined = joined;
    qn__hello_fill(&c->acceptor->own, QN__FOR_TRANSPORT, m->rank, UINT32_MAX, m->ranks);
    qn__acceptor_open(c->acceptor);
    connect_missing(c);
    qn__acceptor_close(c->acceptor);
    for (uint32_t r = 0; r < m->rank; ++r)
        if (c->dial[r].shake.file >= 0)
            close(c->dial[r].shake.file);
    const int told = c->missing > 0 && rank0_gave_up(c);
    const int ended = !told && c->missing > 0 && rank0_ended(c);
    if (told)
        status = hear(c, &own);
    else if (ended)
        status = has_ended(c, 0, &own);
    else if (c->missing > 0)
        status = name_missing(c, &own);
    if (!told && !ended)
        status = m->rank == 0 ? lead(c, status, &own) : follow(c, status, &own);
    if (status != QN_OK && err)
        *err = own;
    return status;
}

qn_status qn__mesh_connect(const qn__mesh *mesh, qn__link *link, qn_error *err) {
    connector c = {.mesh = mesh, .link = link, .missing = mesh->ranks - 1};
    for (uint32_t r = 0; r < mesh->ranks; ++r)
        c.missing -= (uint32_t)!is_there(mesh, r);
    qn_status status = QN_MEMORY;
    for (uint32_t r = 0; r < mesh->ranks; ++r)
        link[r] = (qn__link){.file = -1};
    c.dial = qn__alloc(mesh->rank, sizeof *c.dial, err);
    c.poll = c.dial ? qn__alloc(mesh->ranks + QN__ACCEPTOR_POLLS, sizeof *c.poll, err) : NULL;
    c.acceptor = c.poll ? qn__alloc(1, sizeof *c.acceptor, err) : NULL;
    if (c.acceptor)
        status = connect_all(&c, err);
    for (uint32_t r = 0; r < mesh->ranks && status != QN_OK; ++r)
        if (link[r].file >= 0) {
            close(link[r].file);
            link[r].file = -1;
        }
    qn__free(c.dial);
    qn__free(c.poll);
    qn__free(c.acceptor);
    return status;
}

static const char *layout_name(uint32_t wire) {
    static const char *const names[8] = {
        "64-bit little-endian",         "64-bit big-endian",
        "32-bit little-endian",         "32-bit big-endian",
        "64-bit little-endian, packed", "64-bit big-endian, packed",
        "32-bit little-endian, packed", "32-bit big-endian, packed"};
    return names[wire >> QN__LAYOUT_SHIFT & 7];
}

static qn_status other_layout(uint32_t rank, const char *host, uint32_t wire,
                              const qn__endpoint *first, qn_error *err) {
    qn__fail(err, QN_CLUSTER,
             "rank %u on %s has another layout of numbers in memory (%s) than rank 0 on %s (%s)",
             rank, host, layout_name(wire), first->host, layout_name(first->wire));
    return qn__remedy(err, QN_CLUSTER,
                      "run all ranks on processors of one byte order and one size of addresses; "
                      "files and checkpoints may come from any");
}

static qn_status other_version(uint32_t rank, const char *host, const char *version,
                               uint32_t contract, uint32_t wire, const qn__endpoint *first,
                               qn_error *err) {
    if ((wire ^ first->wire) >> QN__LAYOUT_SHIFT != 0)
        return other_layout(rank, host, wire, first, err);
    qn__fail(err, QN_CLUSTER,
             "rank %u on %s runs Quern %s (contract %u, wire %u), rank 0 on %s runs Quern %s "
             "(contract %u, wire %u)",
             rank, host, version, contract, wire, first->host, first->version, first->contract,
             first->wire);
    return qn__remedy(err, QN_CLUSTER, "install the same version of Quern on all machines");
}

qn_status qn__mesh_versions(const qn__endpoint *endpoint, uint32_t ranks, qn_error *err) {
    for (uint32_t r = 1; r < ranks; ++r)
        if (!qn__endpoint_is_empty(&endpoint[r]) &&
            (endpoint[r].wire != endpoint[0].wire || endpoint[r].contract != endpoint[0].contract ||
             strcmp(endpoint[r].version, endpoint[0].version) != 0))
            return other_version(r, endpoint[r].host, endpoint[r].version, endpoint[r].contract,
                                 endpoint[r].wire, &endpoint[0], err);
    return QN_OK;
}

qn__peer_fault qn__mesh_peer(const qn__endpoint *first, uint32_t ranks, const qn__hello *peer,
                             qn_error *why) {
    if (peer->wire != first->wire || peer->contract != first->contract ||
        strcmp(peer->version, first->version) != 0) {
        other_version(peer->from, peer->host, peer->version, peer->contract, peer->wire, first,
                      why);
        return QN__PEER_IS_OTHER;
    }
    if (peer->purpose != QN__FOR_RENDEZVOUS) {
        qn__fail(why, QN_CLUSTER, "this is the rendezvous address, not a rank's own transport");
        return QN__PEER_IS_WRONG;
    }
    if (peer->ranks != ranks) {
        qn__fail(why, QN_CLUSTER,
                 "rank %u on %s was started as one of %u, rank 0 on %s as one of %u", peer->from,
                 peer->host, peer->ranks, first->host, ranks);
        qn__remedy(why, QN_CLUSTER, "start all ranks with the same number of ranks");
        return QN__PEER_IS_OTHER;
    }
    if (peer->from > 0 && peer->from < ranks)
        return QN__PEER_FITS;
    qn__fail(why, QN_CLUSTER, "rank %u, on %s, is outside of a run of %u", peer->from, peer->host,
             ranks);
    return QN__PEER_IS_WRONG;
}
