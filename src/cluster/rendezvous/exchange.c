#include "cluster/rendezvous/exchange.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "cluster/rendezvous/mesh.h"
#include "cluster/rendezvous/munge.h"
#include "cluster/transport/acceptor.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ADDRESSES = 8, SESSION_BYTES = QN__SESSION_BYTES };

/* In place of a status: the run has begun. */
enum { BEGUN = 2 };

/* Seconds that the others wait for rank 0's answer after rank 0 has stopped waiting. */
static const double GRACE = 5;
/* Seconds after a failure in which rank 0 still reports it to ranks that arrive late. */
static const double LATE = 3;
/* Lifetime of a credential in seconds; MUNGE's expire after 300 seconds by default. */
static const double RENEWED = 60;
/* Seconds until a rank first reports what it waits for, and between two such reports. */
static const double PATIENCE = 3, REMINDER = 30;

int qn__exchange_is_loopback(const char *host) {
    qn__address list[ADDRESSES];
    const int count = qn__address_resolve(host, list, ADDRESSES);
    int loopback = count > 0;
    for (int i = 0; i < count; ++i)
        loopback &= qn__address_is_loopback(&list[i]);
    return loopback;
}

void qn__exchange_secret(const char *secret, const char *run, unsigned char key[32]) {
    static const char label[] = "quern rendezvous";
    const char *text = secret ? secret : "";
    qn__hmac(text, strlen(text), label, sizeof label, run ? run : "", run ? strlen(run) : 0, key);
}

/* The same from a secret sent by MUNGE. The name of the run keeps ranks of another run out. */
static void key_of_munge(const unsigned char secret[32], const char *run, unsigned char key[32]) {
    qn__hmac(secret, 32, run, strlen(run), "", 0, key);
}

/* Another run with the same secret cannot use this key. */
void qn__exchange_key(const unsigned char secret[32], const unsigned char session[SESSION_BYTES],
                      unsigned char key[32]) {
    static const char label[] = "quern transport";
    qn__hmac(secret, 32, label, sizeof label, session, SESSION_BYTES, key);
}

/* -------------------------------------------------------------------------------------- waiting */

/* Reports what the rank waits for, if it is time. `due`: when that is next. */
static void report_waiting(const qn__exchange *p, double *due, const char *what) {
    char text[512];
    const double now = qn__now();
    if (!p->note || now < *due)
        return;
    *due = now + REMINDER;
    snprintf(text, sizeof text, "%s; the limit is %g seconds (`cluster.rendezvous_timeout`)", what,
             p->timeout);
    p->note(p->user, text);
}

/* --------------------------------------------------------------------------------------- rank 0 */

typedef struct host {
    qn__exchange place;
    qn__endpoint *endpoint;
    int *file;           /* of each connected rank; -1 */
    unsigned char *have; /* 1: its endpoint is complete */
    size_t *got;         /* bytes of its endpoint received */
    unsigned char (*bytes)[QN__ENDPOINT_BYTES];
    struct pollfd *poll;
    qn__acceptor *acceptor;
    uint32_t missing;
    int lost;               /* 1: a rank that was there has ended */
    unsigned char sent[32]; /* the secret inside the credential */
    char credential[QN__CREDENTIAL_BYTES];
    double sealed; /* time when the credential was made */
    double failed; /* time when a rank arrived that cannot take part; 0: none did */
    uint32_t refused;
    qn_error why; /* the first of these failures */
    char refusal[QN__VERDICT_TEXT];
} host;

/* Writes the refusal for the peer. `fatal`: the run cannot start, and all ranks get the reason. */
static const char *refuse(host *h, const qn_error *why, int fatal) {
    snprintf(h->refusal, sizeof h->refusal, "%.*s", QN__VERDICT_TEXT - 1, why->what);
    h->refused += fatal != 0;
    if (fatal && h->failed == 0) {
        h->failed = qn__now();
        h->why = *why;
    }
    return h->refusal;
}

/* A rank that ended before all had arrived may be started again. */
static void lost(host *h, uint32_t r) {
    close(h->file[r]);
    h->file[r] = -1;
    h->missing += h->have[r];
    h->lost |= h->have[r];
    h->have[r] = 0;
}

static void receive_endpoint(host *h, uint32_t r) {
    unsigned char more[1];
    const int whole = h->got[r] == QN__ENDPOINT_BYTES;
    const ssize_t n = whole ? recv(h->file[r], more, 1, MSG_DONTWAIT | MSG_PEEK)
                            : recv(h->file[r], h->bytes[r] + h->got[r],
                                   QN__ENDPOINT_BYTES - h->got[r], MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0 || whole) {
        lost(h, r);
        return;
    }
    h->got[r] += (size_t)n;
    if (h->got[r] < QN__ENDPOINT_BYTES)
        return;
    if (!qn__endpoint_read(h->bytes[r], &h->endpoint[r])) {
        lost(h, r);
        return;
    }
    qn__address_of_peer(h->file[r], &h->endpoint[r].seen);
    h->have[r] = 1;
    h->missing--;
}

/* Whether a rank is still connected. Reads twice, because its end may be queued after the rest of
 * its endpoint when a restarted rank arrives. */
static int is_there(host *h, uint32_t r) {
    for (int i = 0; i < 2 && h->file[r] >= 0; ++i)
        receive_endpoint(h, r);
    return h->file[r] >= 0;
}

static const char *decide(void *user, const qn__hello *other) {
    host *h = user;
    qn_error why;
    const qn__peer_fault fault = qn__mesh_peer(&h->endpoint[0], h->place.ranks, other, &why);
    if (fault != QN__PEER_FITS)
        return refuse(h, &why, fault == QN__PEER_IS_OTHER);
    if (is_there(h, other->from)) {
        qn__fail(&why, QN_CLUSTER, "rank %u is there already, on %s; another came from %s",
                 other->from, h->endpoint[other->from].host, other->host);
        return refuse(h, &why, 0);
    }
    return NULL;
}

static void joined(void *user, const qn__hello *other, int file, int local) {
    host *h = user;
    (void)local;
    h->file[other->from] = file;
    h->got[other->from] = 0;
    memcpy(h->endpoint[other->from].host, other->host, sizeof other->host);
}

/* Replaces the credential before it expires. */
static void renew(host *h, double now) {
    if (!h->place.munge || (h->sealed > 0 && now - h->sealed < RENEWED))
        return;
    h->sealed = now;
    if (qn__munge_seal(h->sent, h->credential, &h->why) != QN_OK)
        h->failed = now - LATE; /* no rank can join without a credential */
}

/* The number of ranks that need not be there at the beginning. */
static uint32_t may_come_later(const host *h) {
    return h->place.least > 0 ? h->place.ranks - h->place.least : 0;
}

/* Those that are missing come to the door of the run. */
static void go_without(host *h) {
    for (uint32_t r = 1; r < h->place.ranks; ++r)
        if (!h->have[r]) {
            memset(&h->endpoint[r], 0, sizeof h->endpoint[r]);
            if (h->file[r] >= 0)
                close(h->file[r]);
            h->file[r] = -1;
        }
}

/* Whether to wait for more ranks. After a failure it also waits a while, or ranks that are still
 * connecting would not get the reason. */
static int waiting(const host *h, double now) {
    const uint32_t later = may_come_later(h);
    return h->missing > (h->refused > later ? h->refused : later) &&
           (h->failed == 0 || now - h->failed < LATE);
}

/* "ranks 1, 3", of very many the first. */
static void list_missing(const host *h, char *text, size_t size) {
    const qn__exchange *p = &h->place;
    char list[200] = "";
    size_t used = 0;
    for (uint32_t r = 1; r < p->ranks && used < sizeof list - 16; ++r)
        if (!h->have[r])
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", used ? ", " : "", r);
    snprintf(text, size, "rank%s %s%s", h->missing > 1 ? "s" : "", list,
             used >= sizeof list - 16 ? " and others" : "");
}

static void report_missing(const host *h, double *due) {
    const qn__exchange *p = &h->place;
    char list[256], text[400];
    list_missing(h, list, sizeof list);
    snprintf(text, sizeof text, "rank 0 waits at %.80s:%u for %s: %u of %u ranks are there",
             p->host, p->port, list, p->ranks - h->missing, p->ranks);
    report_waiting(p, due, text);
}

static void gather(host *h, double until) {
    double due = qn__now() + PATIENCE;
    for (double now = qn__now(); waiting(h, now) && now < until; now = qn__now()) {
        renew(h, now);
        qn__acceptor_serve(h->acceptor, now);
        for (uint32_t r = 1; r < h->place.ranks; ++r)
            if (h->file[r] >= 0)
                receive_endpoint(h, r);
        if (!waiting(h, now))
            break;
        report_missing(h, &due);
        size_t count = qn__acceptor_polls(h->acceptor, h->poll);
        for (uint32_t r = 1; r < h->place.ranks; ++r)
            if (h->file[r] >= 0)
                h->poll[count++] = (struct pollfd){.fd = h->file[r], .events = POLLIN};
        qn__socket_wait(h->poll, count, until - now < 0.25 ? until - now : 0.25);
    }
}

static qn_status name_missing(const host *h, qn_error *err) {
    const qn__exchange *p = &h->place;
    char list[256];
    list_missing(h, list, sizeof list);
    qn__fail(err, QN_CLUSTER, "%s did not come to %s:%u within %g seconds%s", list, p->host,
             p->port, p->timeout,
             h->lost || p->again ? ", or ended before all ranks were connected" : "");
    if (h->acceptor->wrong_keys > 0) {
        char text[QN__ADDRESS_TEXT];
        qn__address_text(&h->acceptor->wrong_from, 0, text);
        qn__at(err, "%s:%u: %u came with another key, the last of them from %s", p->host, p->port,
               h->acceptor->wrong_keys, text);
    }
    return qn__remedy(err, QN_CLUSTER,
                      "look whether they were started and what they say; all need the same "
                      "rendezvous address and the same key");
}

/* Sends the table or the failure to all connected ranks. */
static void answer(const host *h, qn_status status, const qn_error *err,
                   const unsigned char session[SESSION_BYTES], double until) {
    unsigned char message[QN__STATUS_BYTES], bytes[QN__ENDPOINT_BYTES];
    qn__status_write(message, status == QN_OK ? NULL : err->what);
    for (uint32_t r = 1; r < h->place.ranks; ++r) {
        int good = h->file[r] >= 0 &&
                   qn__socket_transfer(h->file[r], message, sizeof message, 1, until) == 1;
        if (!good || status != QN_OK)
            continue;
        unsigned char copy[SESSION_BYTES];
        memcpy(copy, session, sizeof copy);
        good = qn__socket_transfer(h->file[r], copy, sizeof copy, 1, until) == 1;
        for (uint32_t other = 0; other < h->place.ranks && good; ++other) {
            qn__endpoint_write(&h->endpoint[other], bytes);
            good = qn__socket_transfer(h->file[r], bytes, sizeof bytes, 1, until) == 1;
        }
    }
}

/* Listens at one of the addresses; at all with a count of 0. */
static qn_status listen_there(const qn__address *list, int count, uint16_t port, int *file,
                              qn_error *err) {
    qn_status status = QN_CLUSTER;
    if (count == 0)
        return qn__socket_listen(NULL, &port, file, err);
    for (int i = 0; i < count && status != QN_OK; ++i)
        status = qn__socket_listen(&list[i], &port, file, err);
    return status;
}

/* Many systems map a machine's own name to a loopback address, which other machines cannot reach.
 */
qn_status qn__exchange_listen(qn__exchange *p, int *file, qn_error *err) {
    qn__address list[ADDRESSES];
    const int count = p->everywhere ? 0 : qn__address_resolve(p->host, list, ADDRESSES);
    if (count == 0 && !p->everywhere) {
        qn__fail(err, QN_CLUSTER, "there is no address for the name \"%s\"", p->host);
        return qn__remedy(err, QN_CLUSTER, "name the machine of rank 0, or write its address");
    }
    for (int port = p->port; port <= p->port + p->more; ++port)
        if (listen_there(list, count, (uint16_t)port, file, err) == QN_OK) {
            p->port = (uint16_t)port;
            p->more = 0;
            return QN_OK;
        }
    if (p->more)
        qn__remedy(err, QN_CLUSTER, "the ports %u to %u were tried: choose others, or end programs",
                   p->port, p->port + p->more);
    return QN_CLUSTER;
}

static qn_status host_all(host *h, const unsigned char secret[32], double until,
                          unsigned char session[SESSION_BYTES], qn_error *err) {
    qn__listeners listeners = {-1, -1};
    qn_error own;
    qn_status status = qn__exchange_listen(&h->place, &listeners.tcp, err);
    if (status != QN_OK)
        return status;
    *h->acceptor = (qn__acceptor){.listeners = &listeners,
                                  .key = secret,
                                  .greeting = h->place.munge ? h->credential : NULL,
                                  .user = h,
                                  .decide = decide,
                                  .joined = joined};
    qn__hello_fill(&h->acceptor->own, QN__FOR_RENDEZVOUS, 0, UINT32_MAX, h->place.ranks);
    qn__acceptor_open(h->acceptor);
    gather(h, until);
    if (h->failed != 0) {
        own = h->why;
        status = own.status;
    } else if (h->missing > may_come_later(h)) {
        status = name_missing(h, &own);
    } else {
        go_without(h);
    }
    qn__random_bytes(session, SESSION_BYTES);
    answer(h, status, &own, session, until + GRACE);
    qn__acceptor_close(h->acceptor);
    qn__listeners_close(&listeners);
    if (status != QN_OK && err)
        *err = own;
    return status;
}

static qn_status exchange_as_server(const qn__exchange *place, qn__endpoint *endpoint,
                                    unsigned char secret[32], unsigned char session[SESSION_BYTES],
                                    double until, int *held, qn_error *err) {
    const uint32_t n = place->ranks;
    host h = {.place = *place, .endpoint = endpoint, .file = held, .missing = n - 1};
    if (place->munge) {
        qn__random_bytes(h.sent, sizeof h.sent);
        key_of_munge(h.sent, place->run, secret);
    }
    qn_status status = QN_MEMORY;
    h.have = qn__alloc(n, sizeof *h.have, err);
    h.got = h.have ? qn__alloc(n, sizeof *h.got, err) : NULL;
    h.bytes = h.got ? qn__alloc(n, sizeof *h.bytes, err) : NULL;
    h.poll = h.bytes ? qn__alloc(n + QN__ACCEPTOR_POLLS, sizeof *h.poll, err) : NULL;
    h.acceptor = h.poll ? qn__alloc(1, sizeof *h.acceptor, err) : NULL;
    if (h.acceptor)
        status = host_all(&h, secret, until, session, err);
    qn__free(h.have);
    qn__free(h.got);
    qn__free(h.bytes);
    qn__free(h.poll);
    qn__free(h.acceptor);
    return status;
}

/* ---------------------------------------------------------------------------------- other ranks */

/* Receives the credential of rank 0, which contains the key. */
static qn_status take_key(const qn__exchange *p, int file, unsigned char secret[32], double until,
                          qn_error *err) {
    char credential[QN__CREDENTIAL_BYTES];
    unsigned char sent[32];
    if (qn__socket_transfer(file, credential, sizeof credential, 0, until) != 1)
        return QN_BUSY;
    const qn_status status = qn__munge_open(credential, sent, err);
    if (status == QN_OK)
        key_of_munge(sent, p->run, secret);
    return status;
}

/* One attempt at one address. QN_OK: connected to rank 0. QN_BUSY: no listener, try again.
 * QN_MISMATCH: the listener has another key. */
static qn_status try_address(const qn__exchange *p, const qn__address *address,
                             unsigned char secret[32], double until, int *file, qn_error *err) {
    qn__hello hello;
    qn__handshake shake;
    const double begin = qn__now();
    *file = qn__socket_dial(address, p->port);
    if (*file < 0)
        return QN_BUSY;
    if (p->munge) {
        const qn_status status =
            take_key(p, *file, secret, until < begin + 10 ? until : begin + 10, err);
        if (status != QN_OK) {
            close(*file);
            *file = -1;
            return status;
        }
    }
    qn__hello_fill(&hello, QN__FOR_RENDEZVOUS, p->rank, 0, p->ranks);
    qn__handshake_begin(&shake, *file, 1, &hello, secret);
    while (qn__handshake_go(&shake) < QN__HANDSHAKE_ASK) {
        struct pollfd wait = {.fd = *file,
                              .events = shake.state == QN__HANDSHAKE_WRITE ? POLLOUT : POLLIN};
        const double now = qn__now(), most = begin + (shake.stage == 0 ? 3 : 10);
        if (now >= until || now >= most)
            break;
        qn__socket_wait(&wait, 1, (until < most ? until : most) - now);
    }
    if (shake.state == QN__HANDSHAKE_DONE)
        return QN_OK;
    close(*file);
    *file = -1;
    if (shake.state == QN__HANDSHAKE_WRONG_KEY) {
        qn__fail(err, QN_CLUSTER, "rank 0 at %s:%u holds another key than rank %u", p->host,
                 p->port, p->rank);
        qn__remedy(err, QN_CLUSTER,
                   "give all ranks of a run the same key, and each run on a machine a port of its "
                   "own");
        return QN_MISMATCH;
    }
    if (shake.state == QN__HANDSHAKE_REFUSED)
        return qn__fail(err, QN_CLUSTER, "%s", shake.why);
    return QN_BUSY;
}

/* One attempt at all ports of rank 0, of which the one that answers becomes the place's port. A
 * listener with another key belongs to another run where rank 0 may have another port. */
static qn_status try_ports(qn__exchange *p, const qn__address *list, int count,
                           unsigned char secret[32], double until, int *file, qn_error *err) {
    const qn__exchange all = *p;
    for (int port = all.port; port <= all.port + all.more; ++port)
        for (int i = 0; i < count; ++i) {
            p->port = (uint16_t)port;
            const qn_status status = try_address(p, &list[i], secret, until, file, err);
            if (status != QN_BUSY && !(status == QN_MISMATCH && all.more))
                return status == QN_MISMATCH ? QN_CLUSTER : status;
        }
    p->port = all.port;
    return QN_BUSY;
}

static qn_status no_host(const qn__exchange *p, int known, qn_error *err) {
    if (p->again) {
        qn__fail(err, QN_CLUSTER,
                 "rank 0 at %s:%u ended before all ranks were connected, and none was there again "
                 "within %g "
                 "seconds",
                 p->host, p->port, p->timeout);
        return qn__remedy(err, QN_CLUSTER,
                          "look what rank 0 said; while the others wait, it may be started again");
    }
    if (known && p->more)
        qn__fail(err, QN_CLUSTER,
                 "found no rank 0 of this run at %s, ports %u to %u, within %g seconds", p->host,
                 p->port, p->port + p->more, p->timeout);
    else if (known)
        qn__fail(err, QN_CLUSTER, "found no rank 0 at %s:%u within %g seconds", p->host, p->port,
                 p->timeout);
    else
        qn__fail(err, QN_CLUSTER, "found no address for the name \"%s\" within %g seconds", p->host,
                 p->timeout);
    return qn__remedy(err, QN_CLUSTER,
                      "start rank 0 there, and let programs of this machine connect to it");
}

static qn_status find_host(qn__exchange *p, unsigned char secret[32], double until, int *file,
                           qn_error *err) {
    double pause = 0.02, due = qn__now() + PATIENCE;
    char waits[400];
    int known = 0;
    snprintf(waits, sizeof waits, "rank %u waits for rank 0 to listen at %.255s:%u", p->rank,
             p->host, p->port);
    for (;;) {
        const double now = qn__now();
        if (now >= until)
            break;
        qn__address list[ADDRESSES];
        const int count = qn__address_resolve(p->host, list, ADDRESSES);
        known |= count > 0;
        const qn_status status = try_ports(p, list, count, secret, until, file, err);
        if (status != QN_BUSY)
            return status;
        report_waiting(p, &due, waits);
        qn__socket_wait(NULL, 0, until - now < pause ? until - now : pause);
        pause = pause * 1.5 < 0.5 ? pause * 1.5 : 0.5;
    }
    return no_host(p, known, err);
}

/* Until rank 0 sends something or has ended. It sends nothing before all ranks are connected. */
static void await_answer(const qn__exchange *p, int file, double until) {
    char waits[400];
    double due = qn__now() + PATIENCE;
    struct pollfd answer = {.fd = file, .events = POLLIN};
    snprintf(waits, sizeof waits,
             "rank %u is connected to rank 0 at %.255s:%u and waits for other ranks of %u", p->rank,
             p->host, p->port, p->ranks);
    for (double now = qn__now(); now < until && !answer.revents; now = qn__now()) {
        qn__socket_wait(&answer, 1, (until < due ? until : due) - now);
        if (!answer.revents)
            report_waiting(p, &due, waits);
    }
}

int qn__exchange_tell_begun(int file, uint32_t ranks, const qn__endpoint *endpoint,
                            const char *described, uint64_t bytes, double until) {
    unsigned char message[QN__STATUS_BYTES], one[QN__ENDPOINT_BYTES], size[8];
    qn__status_write(message, "the run has begun");
    qn__put_u32(message, BEGUN);
    qn__put_u64(size, bytes);
    int good = qn__socket_transfer(file, message, sizeof message, 1, until);
    for (uint32_t r = 0; r < ranks && good == 1; ++r) {
        qn__endpoint_write(&endpoint[r], one);
        good = qn__socket_transfer(file, one, sizeof one, 1, until);
    }
    if (good == 1)
        good = qn__socket_transfer(file, size, sizeof size, 1, until);
    if (good == 1)
        good = qn__socket_transfer(file, (void *)described, bytes, 1, until);
    return good == 1;
}

/* What a run is that has begun. */
static int fetch_described(const qn__exchange *p, int file, double until) {
    unsigned char size[8];
    int good = qn__socket_transfer(file, size, sizeof size, 0, until);
    if (good != 1)
        return good;
    p->begun->bytes = qn__get_u64(size);
    if (p->begun->bytes > QN__DESCRIBED_BYTES)
        return 0;
    p->begun->described = qn__alloc(p->begun->bytes + 1, 1, NULL);
    if (!p->begun->described)
        return 0;
    good = qn__socket_transfer(file, p->begun->described, p->begun->bytes, 0, until);
    p->begun->has = good == 1;
    return good;
}

static qn_status fetch_table(const qn__exchange *p, int file, qn__endpoint *endpoint,
                             unsigned char session[SESSION_BYTES], double until, qn_error *err) {
    unsigned char message[QN__STATUS_BYTES], bytes[QN__ENDPOINT_BYTES];
    qn__endpoint_write(&endpoint[p->rank], bytes);
    int good = qn__socket_transfer(file, bytes, sizeof bytes, 1, until);
    if (good == 1) {
        await_answer(p, file, until);
        good = qn__socket_transfer(file, message, sizeof message, 0, until);
    }
    const int begun = good == 1 && p->begun && qn__get_u32(message) == BEGUN;
    const char *failure = good == 1 && !begun ? qn__status_read(message) : NULL;
    if (failure)
        return qn__fail(err, QN_CLUSTER, "%s", failure);
    if (good == 1 && !begun)
        good = qn__socket_transfer(file, session, SESSION_BYTES, 0, until);
    for (uint32_t r = 0; r < p->ranks && good == 1; ++r) {
        good = qn__socket_transfer(file, bytes, sizeof bytes, 0, until);
        if (good == 1 && !qn__endpoint_read(bytes, &endpoint[r]) &&
            !qn__endpoint_is_empty(&endpoint[r]))
            return qn__fail(err, QN_CLUSTER, "rank 0 at %s:%u sent a malformed table of ranks",
                            p->host, p->port);
    }
    if (good == 1 && begun)
        good = fetch_described(p, file, until);
    if (good == 1) {
        qn__address_of_peer(file, &endpoint[0].seen);
        return QN_OK;
    }
    qn__fail(err, QN_CLUSTER, "rank 0 at %s:%u %s before all ranks were connected", p->host,
             p->port, good == 0 ? "ended" : "stopped answering");
    return good == 0 ? QN_BUSY : QN_CLUSTER;
}

static qn_status exchange_as_client(const qn__exchange *place, qn__endpoint *endpoint,
                                    unsigned char secret[32], unsigned char session[SESSION_BYTES],
                                    double until, int *held, qn_error *err) {
    qn__exchange found = *place;
    const qn_status status = find_host(&found, secret, until, &held[0], err);
    if (status != QN_OK)
        return status;
    return fetch_table(&found, held[0], endpoint, session, until + GRACE, err);
}

qn_status qn__exchange_run(const qn__exchange *place, qn__endpoint *endpoint, unsigned char key[32],
                           double until, int *held, qn_error *err) {
    unsigned char secret[32], session[SESSION_BYTES];
    qn__exchange_secret(place->secret, place->run, secret);
    const qn_status status =
        place->rank == 0 ? exchange_as_server(place, endpoint, secret, session, until, held, err)
                         : exchange_as_client(place, endpoint, secret, session, until, held, err);
    if (status == QN_OK)
        qn__exchange_key(secret, session, key);
    return status;
}
