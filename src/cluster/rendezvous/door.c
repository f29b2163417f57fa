#include "cluster/rendezvous/door.h"

#include "base/digest/hmac.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "cluster/rendezvous/mesh.h"
#include "cluster/transport/acceptor.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Seconds in which a rank takes what the door sends; and gets what it asks for, which other ranks
 * may have. */
static const double PATIENCE = 5, ANSWER_TIME = 60;
/* Seconds after which a rank that is ready, and has not said so again, has fallen silent. */
static const double SILENT = 1;

/* What a rank says that prepares itself and asks: not the number of its invitations, 0. */
enum { SAYS_ASKS = 0xa5, CODE = 32, NONCE = 16 };

/* A request for bytes of the store; its code follows the answer. */
typedef struct question {
    uint64_t table, first, count;
    unsigned char nonce[NONCE];
} question;

/* A rank at the door. */
typedef struct guest {
    int file; /* -1: there is none */
    /* IS_TOLD, ASKS: the door's thread sends to it, without the lock */
    enum { COMES, IS_TOLD, PREPARES, ASKS, READY, INVITED } state;
    size_t got;           /* bytes of its endpoint */
    uint32_t invitations; /* that it was sent */
    double heard;         /* when it last said that it is ready */
    unsigned char bytes[QN__ENDPOINT_BYTES];
    qn__endpoint endpoint;
} guest;

struct qn__door {
    uint32_t ranks;
    qn__listeners listeners;
    unsigned char secret[32];
    qn__door_store store;
    unsigned char *answer; /* QN__DOOR_MOST, and what its code covers */
    char *described;
    uint64_t described_bytes;
    int wake, started, ending; /* wake: an eventfd */
    pthread_t thread;
    pthread_mutex_t lock;          /* for what follows, and `ending` */
    qn__endpoint *endpoint, *told; /* told: the thread's copy */
    guest *guest;                  /* of each rank */
    struct pollfd *poll;
    qn__acceptor *acceptor;
    char refusal[QN__VERDICT_TEXT];
};

/* ------------------------------------------------------------------------------- ranks that come
 */

/* What was said before must arrive: a socket that is closed with bytes that nobody has read ends
 * the connection at once, and may drop what it has not sent. */
static void send_away(guest *g) {
    unsigned char unread[64];
    while (recv(g->file, unread, sizeof unread, MSG_DONTWAIT) > 0)
        continue;
    close(g->file);
    *g = (guest){.file = -1};
}

/* Words are short: none waits until the one before has been confirmed. */
static void hurry(int file) {
    const int one = 1;
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static const char *decide(void *user, const qn__hello *other) {
    qn__door *door = user;
    qn_error why;
    if (qn__mesh_peer(&door->endpoint[0], door->ranks, other, &why) == QN__PEER_FITS)
        return NULL;
    snprintf(door->refusal, sizeof door->refusal, "%.*s", QN__VERDICT_TEXT - 1, why.what);
    return door->refusal;
}

static void joined(void *user, const qn__hello *other, int file, int local) {
    qn__door *door = user;
    guest *g = &door->guest[other->from];
    (void)local;
    if (g->file >= 0 && g->state == INVITED) {
        close(file); /* it was started again, and comes again */
        return;
    }
    if (g->file >= 0)
        send_away(g); /* the same */
    *g = (guest){.file = file, .state = COMES};
    hurry(file);
}

/* The rank knows then that rank 0 is well. */
static void say_heard(guest *g) {
    unsigned char word[4];
    qn__put_u32(word, QN__DOOR_HEARS);
    if (send(g->file, word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof word)
        send_away(g); /* it does not read */
}

/* Reads what has come from a guest. */
static void serve(guest *g) {
    unsigned char said[64];
    const int comes = g->state == COMES;
    const ssize_t n =
        comes ? recv(g->file, g->bytes + g->got, QN__ENDPOINT_BYTES - g->got, MSG_DONTWAIT)
              : recv(g->file, said, g->state == PREPARES ? 1 : sizeof said, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0) {
        send_away(g);
        return;
    }
    if (!comes && g->state == PREPARES && g->invitations == 0 && said[0] == SAYS_ASKS) {
        g->state = ASKS;
        return;
    }
    if (!comes) { /* what it said before its last invitation is old */
        if (said[n - 1] == (unsigned char)g->invitations) {
            g->state = READY;
            g->heard = qn__now();
        }
        say_heard(g);
        return;
    }
    g->got += (size_t)n;
    if (g->got < QN__ENDPOINT_BYTES)
        return;
    if (qn__endpoint_read(g->bytes, &g->endpoint))
        g->state = IS_TOLD;
    else
        send_away(g);
}

/* The code of an answer: under the key of the run, with the request. */
static void code_of(const unsigned char secret[32], unsigned char *answer, uint64_t bytes,
                    const question *q, unsigned char code[CODE]) {
    memcpy(answer + bytes, q, sizeof *q);
    qn__hmac_sha256(secret, 32, answer, (size_t)bytes + sizeof *q, code);
}

static int answer(qn__door *door, int file) {
    question q;
    unsigned char code[CODE], word[4];
    if (qn__socket_transfer(file, (void *)&q, sizeof q, 0, qn__now() + PATIENCE) != 1)
        return 0;
    const uint64_t bytes = q.count ? q.count : sizeof(uint64_t);
    if (q.count > QN__DOOR_MOST || !door->store.supply)
        return 0;
    if (!door->answer)
        door->answer = qn__alloc(1, QN__DOOR_MOST + sizeof q, NULL);
    if (!door->answer ||
        !door->store.supply(door->store.user, q.table, q.first, q.count, door->answer))
        return 0;
    code_of(door->secret, door->answer, bytes, &q, code);
    qn__put_u32(word, QN__DOOR_HAS);
    return qn__socket_transfer(file, word, sizeof word, 1, qn__now() + PATIENCE) == 1 &&
           qn__socket_transfer(file, door->answer, (size_t)bytes, 1, qn__now() + PATIENCE) == 1 &&
           qn__socket_transfer(file, code, sizeof code, 1, qn__now() + PATIENCE) == 1;
}

/* Sends what the guest has come for; without the lock, which the other thread needs meanwhile. */
static void attend(qn__door *door, guest *g) {
    const int asks = g->state == ASKS;
    memcpy(door->told, door->endpoint, door->ranks * sizeof *door->told);
    pthread_mutex_unlock(&door->lock);
    const int good =
        asks ? answer(door, g->file)
             : qn__exchange_tell_begun(g->file, door->ranks, door->told, door->described,
                                       door->described_bytes, qn__now() + PATIENCE);
    pthread_mutex_lock(&door->lock);
    qn__address_of_peer(g->file, &g->endpoint.seen);
    g->state = PREPARES;
    if (!good)
        send_away(g);
}

/* The files to wait for. */
static size_t list(const qn__door *door) {
    size_t count = qn__acceptor_polls(door->acceptor, door->poll);
    door->poll[count++] = (struct pollfd){.fd = door->wake, .events = POLLIN};
    for (uint32_t r = 1; r < door->ranks; ++r)
        if (door->guest[r].file >= 0 && door->guest[r].state != INVITED)
            door->poll[count++] = (struct pollfd){.fd = door->guest[r].file, .events = POLLIN};
    return count;
}

static void *door_main(void *argument) {
    qn__door *door = argument;
    qn__float_state_set();
    pthread_mutex_lock(&door->lock);
    while (!door->ending) {
        uint64_t number;
        const size_t count = list(door);
        pthread_mutex_unlock(&door->lock);
        qn__socket_wait(door->poll, count, 1);
        (void)!read(door->wake, &number, sizeof number);
        pthread_mutex_lock(&door->lock);
        qn__acceptor_serve(door->acceptor, qn__now());
        for (uint32_t r = 1; r < door->ranks; ++r) {
            guest *g = &door->guest[r];
            if (g->file >= 0 && g->state != INVITED)
                serve(g);
            if (g->file >= 0 && (g->state == IS_TOLD || g->state == ASKS))
                attend(door, g);
        }
    }
    pthread_mutex_unlock(&door->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------- open and close */

static qn_status start(qn__door *door, qn_error *err) {
    door->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (door->wake < 0)
        return qn__fail_errno(err, "watch", "the door of the run");
    *door->acceptor = (qn__acceptor){.listeners = &door->listeners,
                                     .key = door->secret,
                                     .user = door,
                                     .decide = decide,
                                     .joined = joined};
    qn__hello_fill(&door->acceptor->own, QN__FOR_RENDEZVOUS, 0, UINT32_MAX, door->ranks);
    qn__acceptor_open(door->acceptor);
    door->started = qn__thread_start(&door->thread, NULL, door_main, door) == 0;
    return door->started ? QN_OK : qn__fail(err, QN_MEMORY, "cannot start the thread of the door");
}

qn_status qn__door_open(const qn__rendezvous *rendezvous, const char *described, uint64_t bytes,
                        const qn__door_store *store, qn__door **out, qn_error *err) {
    const qn__meeting *m = &rendezvous->meeting;
    const uint32_t n = rendezvous->ranks;
    qn__exchange place = {.host = m->host, .port = m->port, .everywhere = m->everywhere};
    *out = NULL;
    qn__door *door = qn__alloc(1, sizeof *door, err);
    if (!door)
        return QN_MEMORY;
    door->ranks = n;
    door->store = *store;
    door->listeners = (qn__listeners){-1, -1};
    door->wake = -1;
    memcpy(door->secret, m->secret, sizeof door->secret);
    pthread_mutex_init(&door->lock, NULL);
    door->described = qn__alloc(bytes + 1, 1, err);
    door->endpoint = qn__alloc(n, sizeof *door->endpoint, err);
    door->told = qn__alloc(n, sizeof *door->told, err);
    door->guest = qn__alloc(n, sizeof *door->guest, err);
    door->poll = qn__alloc(n + 1 + QN__ACCEPTOR_POLLS, sizeof *door->poll, err);
    door->acceptor = qn__alloc(1, sizeof *door->acceptor, err);
    for (uint32_t r = 0; r < n && door->guest; ++r)
        door->guest[r].file = -1;
    qn_status status = QN_MEMORY;
    if (door->described && door->endpoint && door->told && door->guest && door->poll &&
        door->acceptor) {
        memcpy(door->described, described, bytes);
        door->described_bytes = bytes;
        memcpy(door->endpoint, m->endpoint, n * sizeof *door->endpoint);
        status = qn__exchange_listen(&place, &door->listeners.tcp, err);
    }
    if (status == QN_OK)
        status = start(door, err);
    if (status == QN_OK)
        *out = door;
    else
        qn__door_close(door);
    return status;
}

static void say(int file, qn__door_word word) {
    unsigned char bytes[4];
    qn__put_u32(bytes, word);
    (void)qn__socket_transfer(file, bytes, sizeof bytes, 1, qn__now() + PATIENCE);
}

void qn__door_close(qn__door *door) {
    const uint64_t one = 1;
    if (!door)
        return;
    if (door->started) {
        pthread_mutex_lock(&door->lock);
        door->ending = 1;
        pthread_mutex_unlock(&door->lock);
        (void)!write(door->wake, &one, sizeof one);
        pthread_join(door->thread, NULL);
        qn__acceptor_close(door->acceptor);
    }
    for (uint32_t r = 0; r < door->ranks && door->guest; ++r)
        if (door->guest[r].file >= 0) {
            say(door->guest[r].file, QN__DOOR_OVER);
            send_away(&door->guest[r]);
        }
    if (door->wake >= 0)
        close(door->wake);
    qn__listeners_close(&door->listeners);
    pthread_mutex_destroy(&door->lock);
    qn__free(door->described);
    qn__free(door->answer);
    qn__free(door->endpoint);
    qn__free(door->told);
    qn__free(door->guest);
    qn__free(door->poll);
    qn__free(door->acceptor);
    explicit_bzero(door->secret, sizeof door->secret);
    qn__free(door);
}

/* ------------------------------------------------------------------------------ the other thread
 */

int qn__door_waits(qn__door *door, const qn__ranks *members, uint32_t *rank, qn__endpoint *endpoint,
                   uint32_t *invitations) {
    const double since = qn__now() - SILENT;
    int waits = 0;
    pthread_mutex_lock(&door->lock);
    for (uint32_t r = 1; r < door->ranks && !waits; ++r)
        if (door->guest[r].file >= 0 && door->guest[r].state == READY &&
            door->guest[r].heard >= since && !qn__ranks_has(members, r)) {
            *rank = r;
            *endpoint = door->guest[r].endpoint;
            *invitations = door->guest[r].invitations;
            waits = 1;
        }
    pthread_mutex_unlock(&door->lock);
    return waits;
}

int qn__door_invite(qn__door *door, uint32_t rank, const qn__invitation *invitation,
                    const qn__endpoint *endpoint) {
    unsigned char one[QN__ENDPOINT_BYTES], word[4];
    const double until = qn__now() + PATIENCE;
    qn__invitation copy = *invitation;
    pthread_mutex_lock(&door->lock);
    guest *g = &door->guest[rank];
    const int file = g->file >= 0 && g->state == READY ? g->file : -1;
    if (file >= 0) {
        g->state = INVITED;
        g->invitations++;
    }
    pthread_mutex_unlock(&door->lock);
    if (file < 0)
        return -1;
    qn__put_u32(word, QN__DOOR_INVITES);
    int good = qn__socket_transfer(file, word, sizeof word, 1, until);
    if (good == 1)
        good = qn__socket_transfer(file, &copy, sizeof copy, 1, until);
    for (uint32_t r = 0; r < door->ranks && good == 1; ++r) {
        qn__endpoint_write(&endpoint[r], one);
        good = qn__socket_transfer(file, one, sizeof one, 1, until);
    }
    return file;
}

void qn__door_tell(qn__door *door, uint32_t rank, qn__door_word word) {
    const uint64_t one = 1;
    guest *g = &door->guest[rank];
    pthread_mutex_lock(&door->lock);
    const int file = g->file >= 0 && g->state == INVITED ? g->file : -1;
    pthread_mutex_unlock(&door->lock);
    if (file >= 0)
        say(file, word); /* the door's thread leaves it alone until then */
    pthread_mutex_lock(&door->lock);
    if (file >= 0) {
        if (word == QN__DOOR_LETS_IN)
            send_away(g);
        else
            g->state = PREPARES; /* until it says again that it is ready */
    }
    pthread_mutex_unlock(&door->lock);
    (void)!write(door->wake, &one, sizeof one);
}

void qn__door_update(qn__door *door, const qn__endpoint *endpoint) {
    pthread_mutex_lock(&door->lock);
    memcpy(door->endpoint, endpoint, door->ranks * sizeof *endpoint);
    pthread_mutex_unlock(&door->lock);
}

/* ------------------------------------------------------------------------ on the rank that comes
 */

void qn__door_watch(int file, double seconds) {
    const int one = 1, idle = seconds < 1 ? 1 : seconds > 3600 ? 3600 : (int)seconds;
    hurry(file);
    setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof one);
}

static qn__door_word hear_word(int file, double until) {
    unsigned char word[4];
    const int got = qn__socket_transfer(file, word, sizeof word, 0, until);
    const uint32_t said = got == 1 ? qn__get_u32(word) : QN__DOOR_GONE;
    return said <= QN__DOOR_HAS ? (qn__door_word)said : QN__DOOR_GONE;
}

qn__door_word qn__door_ask(int file, const unsigned char secret[32], uint64_t table, uint64_t first,
                           uint64_t count, uint64_t bytes, void *to) {
    const double until = qn__now() + ANSWER_TIME;
    question q = {.table = table, .first = first, .count = count};
    unsigned char says[1 + sizeof q], code[CODE], own[CODE];
    unsigned char *answer = qn__alloc(1, bytes + sizeof q, NULL);
    qn__random_bytes(q.nonce, sizeof q.nonce);
    says[0] = SAYS_ASKS;
    memcpy(says + 1, &q, sizeof q);
    if (answer) /* where this fails, rank 0 may have said that the run is over */
        (void)qn__socket_transfer(file, says, sizeof says, 1, until);
    const qn__door_word word = answer ? hear_word(file, until) : QN__DOOR_GONE;
    int good = word == QN__DOOR_HAS &&
               qn__socket_transfer(file, answer, (size_t)bytes, 0, until) == 1 &&
               qn__socket_transfer(file, code, sizeof code, 0, until) == 1;
    if (good) {
        code_of(secret, answer, bytes, &q, own);
        good = qn__same_secret(own, code);
    }
    if (good)
        memcpy(to, answer, (size_t)bytes);
    qn__free(answer);
    return good ? QN__DOOR_HAS : word == QN__DOOR_OVER ? QN__DOOR_OVER : QN__DOOR_GONE;
}

int qn__door_ready(int file, uint32_t invitations) {
    unsigned char byte[1] = {(unsigned char)invitations};
    return qn__socket_transfer(file, byte, sizeof byte, 1, qn__now() + PATIENCE) == 1;
}

int qn__door_said(int file, double seconds) {
    struct pollfd wait = {.fd = file, .events = POLLIN};
    qn__socket_wait(&wait, 1, seconds);
    return wait.revents != 0;
}

qn__door_word qn__door_hear(int file, uint32_t ranks, uint32_t rank, qn__invitation *invitation,
                            qn__endpoint *endpoint, double until) {
    unsigned char one[QN__ENDPOINT_BYTES];
    qn__endpoint other;
    const qn__door_word said = hear_word(file, until);
    if (said != QN__DOOR_INVITES)
        return said == QN__DOOR_HAS ? QN__DOOR_GONE : said;
    int good = qn__socket_transfer(file, invitation, sizeof *invitation, 0, until) == 1 &&
               qn__ranks_has(&invitation->present, 0) && qn__ranks_has(&invitation->present, rank);
    for (uint32_t r = ranks; r < QN__MAX_RANKS && good; ++r)
        good = !qn__ranks_has(&invitation->present, r);
    for (uint32_t r = 0; r < ranks && good; ++r) {
        good = qn__socket_transfer(file, one, sizeof one, 0, until) == 1 &&
               (qn__endpoint_read(one, &other) || !qn__ranks_has(&invitation->present, r));
        if (good && r != rank)
            endpoint[r] = other;
    }
    if (good)
        qn__address_of_peer(file, &endpoint[0].seen);
    return good ? QN__DOOR_INVITES : QN__DOOR_GONE;
}
