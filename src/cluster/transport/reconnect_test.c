/* TCP connections between two ranks through a relay that damages, resets and stalls them. All
 * messages arrive complete, once and in order, and no rank counts as gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "cluster/transport/socket_state.h"
#include "cluster/transport/socket_transport.h"
#include "cluster/transport/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONG = 60, PAIRS = 64, CHUNK = 1 << 14 };

static const qn__address loopback = {.kind = 4, .bytes = {127, 0, 0, 1}};

/* --------------------------------------------------------------------------------------- the relay
 *
 * It listens in place of rank 0, to which the higher rank 1 connects, and forwards bytes in both
 * directions. */

typedef struct relay {
    int listener;
    uint16_t port, target; /* its own, and that of rank 0 */
    int pair[PAIRS][2];    /* [0]: to rank 1, [1]: to rank 0 */
    atomic_int stop, cut, stalled;
    atomic_int deaf;      /* accepts no connection */
    atomic_long flip[2];  /* bytes from [side] that still pass before one is damaged; -1: none */
    atomic_uint accepted; /* connections of rank 1 */
    pthread_t thread;
} relay;

static void close_hard(int file) {
    const struct linger now = {1, 0};
    setsockopt(file, SOL_SOCKET, SO_LINGER, &now, sizeof now); /* a reset, not an end */
    close(file);
}

static void relay_drop(relay *r, int i, int hard) {
    for (int side = 0; side < 2; ++side)
        if (hard)
            close_hard(r->pair[i][side]);
        else
            close(r->pair[i][side]);
    r->pair[i][0] = r->pair[i][1] = -1;
}

static int connect_to(uint16_t port) {
    const int file = qn__socket_dial(&loopback, port);
    struct pollfd wait = {.fd = file, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (file < 0 || poll(&wait, 1, 5000) != 1 ||
        getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error)
        return -1;
    return file;
}

static void relay_accept(relay *r) {
    const int file = qn__socket_accept(r->listener);
    for (int i = 0; file >= 0 && i < PAIRS; ++i)
        if (r->pair[i][0] < 0) {
            r->pair[i][0] = file;
            r->pair[i][1] = connect_to(r->target);
            if (r->pair[i][1] < 0)
                relay_drop(r, i, 1);
            else
                atomic_fetch_add(&r->accepted, 1);
            return;
        }
}

/* 0: that connection has ended. */
static int relay_pass(relay *r, int i, int side) {
    unsigned char bytes[CHUNK];
    const ssize_t got = recv(r->pair[i][side], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 1;
    if (got <= 0)
        return 0;
    long at = atomic_load(&r->flip[side]);
    if (at >= 0 && at < got)
        bytes[at] ^= 0x10;
    if (at >= 0)
        atomic_compare_exchange_strong(&r->flip[side], &at, at < got ? -1 : at - got);
    for (ssize_t sent = 0; sent < got;) {
        const ssize_t n = send(r->pair[i][!side], bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            usleep(200);
        else if (n <= 0)
            return 0;
        else
            sent += n;
    }
    return 1;
}

static void *relay_main(void *argument) {
    relay *r = argument;
    while (!atomic_load(&r->stop)) {
        struct pollfd list[2 * PAIRS + 1];
        int some = 0;
        for (int i = 0; i < PAIRS; ++i)
            for (int side = 0; side < 2; ++side)
                list[2 * i + side] = (struct pollfd){.fd = r->pair[i][side], .events = POLLIN};
        list[2 * PAIRS] = (struct pollfd){.fd = r->listener, .events = POLLIN};
        if (atomic_load(&r->stalled)) {
            usleep(1000);
            continue;
        }
        poll(list, 2 * PAIRS + 1, 5);
        if (list[2 * PAIRS].revents && !atomic_load(&r->deaf))
            relay_accept(r);
        for (int i = 0; i < PAIRS; ++i)
            for (int side = 0; side < 2; ++side)
                if (r->pair[i][0] >= 0 && list[2 * i + side].revents && ++some &&
                    !relay_pass(r, i, side))
                    relay_drop(r, i, 0);
        if (atomic_exchange(&r->cut, 0))
            for (int i = 0; i < PAIRS; ++i)
                if (r->pair[i][0] >= 0)
                    relay_drop(r, i, 1);
    }
    for (int i = 0; i < PAIRS; ++i)
        if (r->pair[i][0] >= 0)
            relay_drop(r, i, 1);
    close(r->listener);
    return NULL;
}

/* ---------------------------------------------------------------------------------------- ranks */

typedef struct side {
    qn__transport *transport;
    uint32_t rank;
    atomic_uint messages, wrong, restored, damaged;
    atomic_int gone; /* -1: not gone */
} side;

typedef struct couple {
    relay relay;
    side side[2];
    uint64_t sent[2];
} couple;

static unsigned char byte_of(uint64_t number, uint64_t at) {
    return (unsigned char)(number * 31 + at * 7 + (at >> 8));
}

static void on_message(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    side *s = user;
    const unsigned number = atomic_load(&s->messages);
    int wrong = from == s->rank || head->number[0] != number || head->type != 40;
    for (uint64_t i = 0; body && i < body->bytes; ++i)
        wrong |= body->data[i] != byte_of(number, i);
    atomic_fetch_add(&s->wrong, (unsigned)wrong);
    atomic_fetch_add(&s->messages, 1);
    qn__buffer_drop(body);
}

static void on_gone(void *user, uint32_t rank, qn__loss_kind how) {
    (void)rank;
    atomic_store(&((side *)user)->gone, (int)how);
}

static void on_restored(void *user, uint32_t rank, double seconds, int damaged) {
    side *s = user;
    (void)rank;
    atomic_fetch_add(&s->wrong, seconds < 0);
    atomic_fetch_add(&s->restored, 1);
    atomic_fetch_add(&s->damaged, (unsigned)damaged);
}

static uint16_t listen_somewhere(int *file) {
    uint16_t port = 0;
    qn_error err;
    assert_int_equal(qn__socket_listen(&loopback, &port, file, &err), QN_OK);
    return port;
}

static void meet(couple *c, double rank_timeout) {
    static const unsigned char key[32] = {1, 2, 3};
    int listener[2], file[2];
    memset(c, 0, sizeof *c);
    const uint16_t port[2] = {listen_somewhere(&listener[0]), listen_somewhere(&listener[1])};
    memset(c->relay.pair, 0xff, sizeof c->relay.pair);
    atomic_init(&c->relay.flip[0], -1);
    atomic_init(&c->relay.flip[1], -1);
    c->relay.port = listen_somewhere(&c->relay.listener);
    c->relay.target = port[0];
    assert_int_equal(pthread_create(&c->relay.thread, NULL, relay_main, &c->relay), 0);
    file[1] = connect_to(c->relay.port);
    assert_true(file[1] >= 0);
    while ((file[0] = qn__socket_accept(listener[0])) < 0)
        usleep(1000);
    for (uint32_t r = 0; r < 2; ++r) {
        qn__link link[2] = {{.file = -1}, {.file = -1}};
        link[1 - r] = (qn__link){file[r], 0, r == 1 ? c->relay.port : port[1]};
        const qn__transport_setup setup = {.ranks = 2,
                                           .rank = r,
                                           .link = link,
                                           .rank_timeout = rank_timeout,
                                           .key = key,
                                           .listener = listener[r]};
        c->side[r].rank = r;
        atomic_init(&c->side[r].gone, -1);
        const qn__transport_events events = {&c->side[r], on_message,  on_gone, NULL,
                                             NULL,        on_restored, NULL};
        assert_int_equal(qn__transport_open(&setup, &c->side[r].transport, NULL), QN_OK);
        assert_int_equal(qn__transport_listen(c->side[r].transport, &events, NULL), QN_OK);
    }
}

static void say(couple *c, uint32_t from, uint64_t bytes) {
    qn__transport *transport = c->side[from].transport;
    const uint64_t number = c->sent[from]++;
    qn__message_buffer *body = bytes ? transport->calls->buffer(transport, bytes) : NULL;
    for (uint64_t i = 0; i < bytes; ++i)
        body->data[i] = byte_of(number, i);
    transport->calls->send(transport, 1 - from, &(qn__head){.type = 40, .number = {number}}, body);
}

static int all_there(const couple *c, double seconds) {
    const double until = qn__now() + seconds;
    while (qn__now() < until) {
        if (atomic_load(&c->side[0].messages) == c->sent[1] &&
            atomic_load(&c->side[1].messages) == c->sent[0])
            return 1;
        usleep(500);
    }
    return 0;
}

static void both_are_well(couple *c) {
    assert_true(all_there(c, LONG));
    for (int r = 0; r < 2; ++r) {
        assert_int_equal(atomic_load(&c->side[r].wrong), 0);
        assert_int_equal(atomic_load(&c->side[r].gone), -1);
    }
}

static void *leaves(void *transport) {
    qn__transport_close(transport);
    return NULL;
}

/* Both leave, and all messages sent before have arrived. */
static void part(couple *c) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, leaves, c->side[0].transport), 0);
    qn__transport_close(c->side[1].transport);
    pthread_join(thread, NULL);
    atomic_store(&c->relay.stop, 1);
    pthread_join(c->relay.thread, NULL);
    for (int r = 0; r < 2; ++r) {
        assert_int_equal(atomic_load(&c->side[r].messages), c->sent[1 - r]);
        assert_int_equal(atomic_load(&c->side[r].wrong), 0);
    }
}

/* Ends what is no longer connected. */
static void give_up(couple *c) {
    qn__transport_close(c->side[1].transport);
    qn__transport_close(c->side[0].transport);
    atomic_store(&c->relay.stop, 1);
    pthread_join(c->relay.thread, NULL);
}

static void say_some(couple *c, int count, uint64_t bytes) {
    for (int i = 0; i < count; ++i)
        for (uint32_t r = 0; r < 2; ++r)
            say(c, r, bytes * (uint64_t)(i % 5) / 2);
}

/* ---------------------------------------------------------------------------------------- tests */

/* Resets between two live processes, during large and small messages. */
static void test_resets(void **state) {
    (void)state;
    couple c;
    meet(&c, 20);
    for (int i = 0; i < 12; ++i) {
        say_some(&c, 10, i % 3 ? 300000 : 100);
        usleep((useconds_t)(i % 4) * 700);
        atomic_store(&c.relay.cut, 1);
        say_some(&c, 5, 1000);
        both_are_well(&c);
        while (atomic_load(&c.relay.cut)) /* the relay may have waited for a processor */
            usleep(200);
        usleep(20000);
    }
    assert_true(atomic_load(&c.side[0].restored) >= 6);
    assert_true(atomic_load(&c.side[1].restored) >= 6);
    part(&c);
}

/* One bit of a frame's header, of its MACs, or of a body: the run continues unaffected. */
static void test_damage(void **state) {
    (void)state;
    static const long places[] = {0, 5, 9, 30, 41, 47, 48, 57, 66, 72, 5000};
    enum { PLACES = sizeof places / sizeof *places };
    for (size_t i = 0; i < PLACES; ++i)
        for (int from = 0; from < 2; ++from) {
            couple c;
            meet(&c, 20);
            say_some(&c, 3, 10000);
            both_are_well(&c);
            /* Only pings pass now, so the next frame of any kind is damaged, or one soon after. */
            atomic_store(&c.relay.flip[1 - from], places[i]);
            say(&c, (uint32_t)from, 20000);
            say_some(&c, 4, 5000);
            both_are_well(&c);
            assert_int_equal(atomic_load(&c.relay.flip[1 - from]), -1);
            assert_int_equal(atomic_load(&c.side[0].damaged) + atomic_load(&c.side[1].damaged), 1);
            part(&c);
        }
}

/* A rank whose frames are damaged repeatedly is given up. */
static void test_lasting_damage(void **state) {
    (void)state;
    couple c;
    meet(&c, 20);
    const double until = qn__now() + LONG;
    while (atomic_load(&c.side[0].gone) < 0 && qn__now() < until) {
        atomic_store(&c.relay.flip[0], 3000);
        say(&c, 1, 20000);
        usleep(20000);
    }
    assert_int_equal(atomic_load(&c.side[0].gone), QN__GONE_SILENT);
    while (atomic_load(&c.side[1].gone) < 0 && qn__now() < until)
        usleep(1000);
    assert_int_equal(atomic_load(&c.side[1].gone), QN__GONE_SILENT);
    assert_int_equal(atomic_load(&c.side[0].wrong), 0);
    give_up(&c);
}

/* 0: a rank was given up. */
static int outlasts_outages(couple *c) {
    for (int i = 0; i < 2; ++i) {
        say_some(c, 10, 100000);
        atomic_store(&c->relay.stalled, 1);
        say_some(c, 10, 100000);
        usleep(2400000);
        atomic_store(&c->relay.cut, i); /* queued bytes are lost, or arrive after all */
        atomic_store(&c->relay.stalled, 0);
        for (int k = 0; k < 10 * LONG && !all_there(c, 0.1); ++k)
            if (atomic_load(&c->side[0].gone) >= 0 || atomic_load(&c->side[1].gone) >= 0)
                return 0;
        both_are_well(c);
    }
    return 1;
}

/* An outage of nearly rank_timeout, after which old connections never resume. On a busy machine it
 * may last longer: one good run of several is enough. */
static void test_outage(void **state) {
    (void)state;
    int good = 0;
    for (int i = 0; i < 6 && !good; ++i) {
        couple c;
        meet(&c, 3);
        good = outlasts_outages(&c);
        if (good)
            part(&c);
        else
            give_up(&c);
    }
    assert_true(good);
}

/* Both systems close the connection, and nobody answers for more than a second: that does not prove
 * a death. */
static void test_reset_before_an_outage(void **state) {
    (void)state;
    couple c;
    meet(&c, 20);
    say_some(&c, 3, 1000);
    both_are_well(&c);
    atomic_store(&c.relay.deaf, 1);
    atomic_store(&c.relay.cut, 1);
    say_some(&c, 3, 1000);
    usleep(1700000);
    atomic_store(&c.relay.deaf, 0);
    both_are_well(&c);
    part(&c);
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Connects from 127.0.0.2, where no rank is, and sends nothing. */
static int connect_as_foreign(uint16_t port) {
    static const qn__address other = {.kind = 4, .bytes = {127, 0, 0, 2}};
    struct sockaddr_storage from, to;
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const socklen_t size = qn__address_to_socket(&other, 0, &from);
    assert_true(file >= 0);
    assert_int_equal(bind(file, (struct sockaddr *)&from, size), 0);
    qn__address_to_socket(&loopback, port, &to);
    (void)connect(file, (struct sockaddr *)&to, size);
    return file;
}

/* Foreign connections neither prevent a reconnection nor use up a core. */
static void test_foreign_peers(void **state) {
    (void)state;
    enum { STRANGERS = 300 };
    int file[STRANGERS];
    couple c;
    meet(&c, 20);
    for (int i = 0; i < STRANGERS; ++i)
        file[i] = connect_as_foreign(c.relay.target);
    /* Not even without a free descriptor to accept them. */
    struct rlimit limit, none;
    getrlimit(RLIMIT_NOFILE, &limit);
    none = (struct rlimit){.rlim_cur = 200, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    usleep(100000);
    const double before = cpu_seconds();
    usleep(1000000);
    const double used = cpu_seconds() - before;
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_true(used < 0.5);
    for (int i = 0; i < 3; ++i) {
        say_some(&c, 3, 1000);
        atomic_store(&c.relay.cut, 1);
        both_are_well(&c);
    }
    part(&c);
    for (int i = 0; i < STRANGERS; ++i)
        close(file[i]);
}

/* Sent just before the end, while the connection was lost: it still arrives. */
static void test_last_words(void **state) {
    (void)state;
    couple c;
    meet(&c, 20);
    say_some(&c, 3, 100);
    both_are_well(&c);
    atomic_store(&c.relay.stalled, 1);
    pthread_t thread;
    say(&c, 0, 300000);
    assert_int_equal(pthread_create(&thread, NULL, leaves, c.side[0].transport), 0);
    usleep(300000);
    atomic_store(&c.relay.cut, 1);
    atomic_store(&c.relay.stalled, 0);
    assert_true(all_there(&c, LONG));
    pthread_join(thread, NULL);
    const double until = qn__now() + LONG;
    while (atomic_load(&c.side[1].gone) < 0 && qn__now() < until)
        usleep(1000);
    assert_int_equal(atomic_load(&c.side[1].gone), QN__GONE_LEFT);
    qn__transport_close(c.side[1].transport);
    atomic_store(&c.relay.stop, 1);
    pthread_join(c.relay.thread, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resets),         cmocka_unit_test(test_damage),
        cmocka_unit_test(test_lasting_damage), cmocka_unit_test(test_outage),
        cmocka_unit_test(test_last_words),     cmocka_unit_test(test_reset_before_an_outage),
        cmocka_unit_test(test_foreign_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
