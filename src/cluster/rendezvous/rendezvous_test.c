/* The rendezvous over loopback, and its failures: missing ranks, other versions, other keys,
 * foreign peers that send nothing, too much, or malformed data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/rendezvous/exchange.h"
#include "cluster/rendezvous/rendezvous_case_test.h"
#include "cluster/transport/acceptor.h"
#include "cluster/transport/sockets.h"

#include <fcntl.h>
#include <quern/version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ------------------------------------------------------------------------ successful rendezvous */

/* machines[r] is a letter; the expected numbers follow from the letters alone. */
static void meet_on(const char *machines) {
    group g;
    const uint32_t count = (uint32_t)strlen(machines);
    group_join(&g, count, machines);
    for (uint32_t r = 0; r < count; ++r) {
        const qn__rendezvous *m = &g.member[r].rendezvous;
        assert_int_equal(m->ranks, count);
        assert_int_equal(m->rank, r);
        uint32_t machines_seen = 0;
        for (uint32_t other = 0; other < count; ++other) {
            uint32_t before = 0, same = other;
            for (uint32_t k = other; k-- > 0;)
                if (machines[k] == machines[other]) {
                    same = k;
                    ++before;
                }
            assert_int_equal(m->info[other].local, before);
            assert_int_equal(m->info[other].machine,
                             before ? m->info[same].machine : machines_seen++);
            assert_true(m->info[other].host[0] != 0);
        }
    }
    group_listen(&g);
    group_exchange(&g, 100);
    group_end(&g);
}

static void test_ranks_find_each_other(void **state) {
    (void)state;
    static const char *const groups[] = {"aa",  "ab",    "aaa",       "aba",
                                         "abc", "aabbc", "abcabcabc", "aaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; ++i)
        meet_on(groups[i]);
}

static void test_alone(void **state) {
    (void)state;
    qn__rendezvous m;
    qn_error err;
    qn_cluster_options o = {.size = sizeof o, .rendezvous = "none"};
    assert_int_equal(qn__rendezvous_begin(&o, &m, &err), QN_OK);
    assert_int_equal(m.ranks, 0);
    qn__rendezvous_end(&m);
    o.rendezvous = "127.0.0.1:5600";
    o.ranks = 1;
    assert_int_equal(qn__rendezvous_begin(&o, &m, &err), QN_OK);
    assert_int_equal(m.ranks, 0);
    qn__rendezvous_end(&m);
}

/* With a key, ranks can use any address; ranks of different machines use the network's. */
static void test_a_key_opens_the_network(void **state) {
    (void)state;
    qn__address own[QN__ADDRESSES_MOST];
    char text[QN__ADDRESS_TEXT];
    group g;
    assert_true(qn__socket_own_addresses(NULL, own, QN__ADDRESSES_MOST, NULL) > 0);
    group_prepare(&g, 3);
    qn__address_text(&own[0], free_port(), text);
    for (uint32_t r = 0; r < 3; ++r) {
        g.member[r].machine[0] = "aab"[r];
        g.member[r].options.rendezvous = text;
        g.member[r].options.key = "correct horse battery staple";
    }
    group_start(&g, 0);
    for (uint32_t r = 0; r < 3; ++r)
        assert_int_equal(g.member[r].status, QN_OK);
    group_listen(&g);
    group_exchange(&g, 50);
    group_end(&g);
}

static void test_interfaces(void **state) {
    (void)state;
    static const char *const names[] = {"lo", "127.0.0.1", NULL};
    for (size_t i = 0; i < 3; ++i) {
        group g;
        group_prepare(&g, 2);
        for (uint32_t r = 0; r < 2; ++r) {
            g.member[r].machine[0] = "ab"[r];
            g.member[r].options.interface = names[i];
        }
        group_start(&g, 0);
        assert_int_equal(g.member[0].status, QN_OK);
        assert_int_equal(g.member[1].status, QN_OK);
        group_end(&g);
    }
    group g;
    group_prepare(&g, 2);
    g.member[1].options.interface = "nowhere0";
    group_start(&g, 1);
    assert_int_equal(g.member[1].status, QN_USAGE);
    assert_non_null(strstr(g.member[1].err.what, "nowhere0"));
}

/* ------------------------------------------------------------------------------ invalid options */

static void expect(const qn_cluster_options *o, qn_status status, const char *says) {
    qn__rendezvous m;
    qn_error err;
    assert_int_equal(qn__rendezvous_begin(o, &m, &err), status);
    assert_int_equal(m.ranks, 0);
    assert_null(m.transport);
    if (!strstr(err.what, says))
        fail_msg("\"%s\" does not say \"%s\"", err.what, says);
    assert_true(err.remedy[0] != 0);
}

static void test_options_that_make_no_sense(void **state) {
    (void)state;
    const qn_cluster_options good = {
        .size = sizeof good, .rendezvous = "127.0.0.1:5600", .ranks = 2};
    qn_cluster_options o = good;
    static const char *const places[] = {"",       "host",       "host:",   ":5600",
                                         "host:0", "host:65536", "host:1x", "::1:5600",
                                         "[::1]",  "[]:1",       "host:-1"};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        o.rendezvous = places[i];
        expect(&o, QN_USAGE, "invalid rendezvous address");
    }
    o = good;
    o.rank = 2;
    expect(&o, QN_USAGE, "rank 2 of 2");
    o = good;
    o.ranks = 0;
    expect(&o, QN_USAGE, "of 0");
    o = good;
    o.ranks = QN__MAX_RANKS + 1;
    expect(&o, QN_USAGE, "of 1025");
    o = good;
    o.rendezvous_timeout = -1;
    expect(&o, QN_USAGE, "invalid timeouts");
    o = good;
    o.rank_timeout = 0.01;
    expect(&o, QN_USAGE, "invalid timeouts");
    o = good;
    o.rendezvous = "192.0.2.77:5600";
    expect(&o, QN_USAGE, "without a key");
    o.key = "k";
    expect(&o, QN_CLUSTER, "listen at 192.0.2.77:5600");
    o.rendezvous = "no-such-host.invalid:5600";
    o.rendezvous_timeout = 0.3;
    expect(&o, QN_CLUSTER, "no-such-host.invalid");
    o.rank = 1;
    expect(&o, QN_CLUSTER, "no-such-host.invalid");
}

/* ---------------------------------------------------------------------- ranks that do not match */

static void says(const member *m, const char *text) {
    assert_int_equal(m->status, QN_CLUSTER);
    if (!strstr(m->err.what, text))
        fail_msg("rank %u: \"%s\" does not say \"%s\"", m->options.rank, m->err.what, text);
}

static void test_missing_ranks_are_named(void **state) {
    (void)state;
    group g;
    group_prepare(&g, 5);
    for (uint32_t r = 0; r < 5; ++r)
        g.member[r].options.rendezvous_timeout = 1;
    group_start(&g, 1u << 1 | 1u << 3);
    for (uint32_t r = 0; r < 5; r += 2) {
        says(&g.member[r], "ranks 1, 3 did not come");
        assert_true(g.member[r].took > 0.9 && g.member[r].took < 15);
    }
    group_prepare(&g, 2);
    g.member[1].options.rendezvous_timeout = 0.7;
    group_start(&g, 1);
    says(&g.member[1], "found no rank 0");
    assert_true(g.member[1].took < 15);
}

static void test_another_key(void **state) {
    (void)state;
    group g;
    group_prepare(&g, 3);
    for (uint32_t r = 0; r < 3; ++r) {
        g.member[r].options.rendezvous_timeout = r == 2 ? 20 : 2;
        g.member[r].options.key = r == 2 ? "secret!" : "secret";
    }
    group_start(&g, 0);
    says(&g.member[0], "rank 2 did not come");
    assert_non_null(strstr(g.member[0].err.where, "1 came with another key"));
    says(&g.member[1], "rank 2 did not come");
    says(&g.member[2], "another key");
    assert_true(g.member[2].took < 15); /* it need not wait */
}

static void test_other_numbers(void **state) {
    (void)state;
    group g;
    group_prepare(&g, 3);
    g.member[2].options.ranks = 4;
    group_start(&g, 0);
    for (uint32_t r = 0; r < 3; ++r) {
        says(&g.member[r], "as one of 4");
        assert_true(g.member[r].took < 15);
    }
    group_prepare(&g, 3);
    g.member[2].options.rank = 1;
    for (uint32_t r = 0; r < 3; ++r)
        g.member[r].options.rendezvous_timeout = 2;
    group_start(&g, 0);
    says(&g.member[0], "rank 2 did not come to");
    /* The one that came second fails with this message; the other waits like the rest. */
    assert_true((strstr(g.member[1].err.what, "is there already") != NULL) !=
                (strstr(g.member[2].err.what, "is there already") != NULL));
}

/* A rank of another version, written by hand. */
typedef struct outsider {
    pthread_t thread;
    uint16_t port;
    uint32_t rank, ranks;
    const char *version;
    uint32_t contract, wire;
    qn__handshake_state ended;
    char why[QN__VERDICT_TEXT];
} outsider;

static int dial_loopback(uint16_t port) {
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < 500; ++i) {
        const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(file, (struct sockaddr *)&to, sizeof to) == 0)
            return file;
        close(file);
        usleep(10000);
    }
    return -1;
}

static void *comes_from_outside(void *argument) {
    outsider *o = argument;
    static const char label[] = "quern rendezvous";
    unsigned char key[32];
    qn__hello hello;
    qn__handshake shake;
    qn__hmac("", 0, label, sizeof label, "", 0, key); /* the key of runs without a secret */
    qn__hello_fill(&hello, QN__FOR_RENDEZVOUS, o->rank, 0, o->ranks);
    if (o->version)
        snprintf(hello.version, sizeof hello.version, "%s", o->version);
    hello.contract += o->contract;
    hello.wire += o->wire;
    const int file = dial_loopback(o->port);
    qn__handshake_begin(&shake, file, 1, &hello, key);
    while (qn__handshake_go(&shake) < QN__HANDSHAKE_ASK)
        usleep(1000);
    o->ended = shake.state;
    memcpy(o->why, shake.why, sizeof o->why);
    close(file);
    return NULL;
}

static void test_other_versions_are_named(void **state) {
    (void)state;
    const outsider kinds[] = {
        {.version = "9.8.7"}, {.contract = 1}, {.wire = 1}, {.wire = 1u << 16}};
    char contract[32];
    snprintf(contract, sizeof contract, "contract %d", QN_CONTRACT + 1);
    const char *const texts[] = {"rank 1 on", contract, "wire 5", "another layout"};
    for (size_t i = 0; i < 4; ++i) {
        group g;
        outsider o = kinds[i];
        group_prepare(&g, 3);
        o.rank = 1;
        o.ranks = 3;
        o.port = (uint16_t)atoi(strchr(g.place, ':') + 1);
        pthread_create(&o.thread, NULL, comes_from_outside, &o);
        group_start(&g, 1u << 1);
        pthread_join(o.thread, NULL);
        says(&g.member[0], texts[i]);
        assert_true(g.member[0].took < 15);
        assert_int_equal(o.ended, QN__HANDSHAKE_REFUSED);
        assert_non_null(strstr(o.why, texts[i]));
        if (i == 0)
            says(&g.member[0], "runs Quern 9.8.7");
        assert_int_equal(g.member[2].status, QN_CLUSTER);
    }
}

/* A rank that ended before all had arrived may be started again. */
static void test_a_rank_that_is_started_again(void **state) {
    (void)state;
    group g;
    group_prepare(&g, 3);
    const pid_t pid = fork();
    if (pid == 0) {
        member_joins(&g.member[2]);
        _exit(0);
    }
    pthread_create(&g.member[0].thread, NULL, member_joins, &g.member[0]);
    usleep(400000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (uint32_t r = 1; r < 3; ++r)
        pthread_create(&g.member[r].thread, NULL, member_joins, &g.member[r]);
    for (uint32_t r = 0; r < 3; ++r)
        pthread_join(g.member[r].thread, NULL);
    for (uint32_t r = 0; r < 3; ++r)
        if (g.member[r].status != QN_OK)
            fail_msg("rank %u: %s", r, g.member[r].err.what);
    group_end(&g);
}

/* A connection to rank 0, as between all ranks that have met. */
static int connect_to_first(const qn__endpoint *first, const unsigned char key[32]) {
    qn__hello hello;
    qn__handshake shake;
    const int file = qn__socket_dial_unix(first->unix_name);
    qn__hello_fill(&hello, QN__FOR_TRANSPORT, 2, 0, 3);
    qn__handshake_begin(&shake, file, 1, &hello, key);
    while (qn__handshake_go(&shake) < QN__HANDSHAKE_ASK)
        usleep(1000);
    return file;
}

/* Rank 2 of 3, which all have met, ends before it is connected to all others; it may be connected
 * to rank 0. */
static void meets_and_ends(const member *m, int connects) {
    int held[3] = {-1, -1, -1}, file = -1;
    unsigned char key[32];
    qn__endpoint endpoint[3];
    qn__listeners listeners;
    const qn__exchange place = {.host = "127.0.0.1",
                                .port = (uint16_t)atoi(strchr(m->group->place, ':') + 1),
                                .ranks = 3,
                                .rank = 2,
                                .timeout = LONG};
    if (qn__endpoint_own(NULL, 1, &endpoint[2], &listeners, NULL) != QN_OK)
        return;
    if (qn__exchange_run(&place, endpoint, key, qn__now() + LONG, held, NULL) == QN_OK && connects)
        file = connect_to_first(&endpoint[0], key);
    if (file >= 0)
        close(file);
    qn__listeners_close(&listeners);
    if (held[0] >= 0)
        close(held[0]);
}

static void *comes_a_third_time(void *argument) {
    member *m = argument;
    meets_and_ends(m, 0);
    meets_and_ends(m, 1);
    return member_joins(m);
}

/* Nobody waits for it until the time to meet is over. It may be started again. */
static void test_a_rank_that_ends_while_all_connect(void **state) {
    (void)state;
    group g;
    group_prepare(&g, 3);
    for (uint32_t r = 0; r < 3; ++r) {
        g.member[r].options.rendezvous_timeout = LONG;
        pthread_create(&g.member[r].thread, NULL, r < 2 ? member_joins : comes_a_third_time,
                       &g.member[r]);
    }
    for (uint32_t r = 0; r < 3; ++r)
        pthread_join(g.member[r].thread, NULL);
    for (uint32_t r = 0; r < 3; ++r) {
        if (g.member[r].status != QN_OK)
            fail_msg("rank %u: %s", r, g.member[r].err.what);
        assert_true(g.member[r].took < LONG);
    }
    group_end(&g);
}

/* It is not started again, and need not be there: the others begin. */
static void test_a_rank_that_ends_and_is_not_needed(void **state) {
    (void)state;
    group g;
    group_prepare(&g, 3);
    g.member[0].options.min_ranks = 2;
    for (uint32_t r = 0; r < 2; ++r)
        g.member[r].options.rendezvous_timeout = LONG;
    pthread_create(&g.member[0].thread, NULL, member_joins, &g.member[0]);
    meets_and_ends(&g.member[2], 1);
    pthread_create(&g.member[1].thread, NULL, member_joins, &g.member[1]);
    for (uint32_t r = 0; r < 2; ++r)
        pthread_join(g.member[r].thread, NULL);
    for (uint32_t r = 0; r < 2; ++r)
        if (g.member[r].status != QN_OK)
            fail_msg("rank %u: %s", r, g.member[r].err.what);
    assert_int_equal(qn__ranks_count(&g.member[0].rendezvous.present), 2);
    group_end(&g);
}

/* -------------------------------------------------------------------------------- foreign peers */

typedef struct crowd {
    pthread_t thread;
    uint16_t port;
    atomic_int stop;
    int count;
} crowd;

/* Sends nothing, little, malformed data, or a valid beginning; then stays or closes. */
static void *bothers(void *argument) {
    crowd *c = argument;
    int file[100];
    char rubbish[4096];
    memset(rubbish, 'x', sizeof rubbish);
    memcpy(rubbish, "quern\0\r\n", 8);
    for (c->count = 0; c->count < 100; ++c->count) {
        const int f = file[c->count] = dial_loopback(c->port);
        const size_t sizes[] = {0, 1, 8, 175, 176, 208, 4096};
        if (f >= 0)
            (void)!send(f, c->count % 2 ? "GET / HTTP/1.1" : rubbish,
                        c->count % 2 ? 14 : sizes[(size_t)c->count / 2 % 7], MSG_NOSIGNAL);
        if (c->count % 3 == 0) {
            close(f);
            file[c->count] = -1;
        }
        if (atomic_load(&c->stop))
            break;
    }
    while (!atomic_load(&c->stop))
        usleep(1000);
    for (int i = 0; i < c->count; ++i)
        if (file[i] >= 0)
            close(file[i]);
    return NULL;
}

static void test_foreign_peers_do_no_harm(void **state) {
    (void)state;
    group g;
    crowd c = {.count = 0};
    group_prepare(&g, 4);
    c.port = (uint16_t)atoi(strchr(g.place, ':') + 1);
    atomic_init(&c.stop, 0);
    pthread_create(&c.thread, NULL, bothers, &c);
    pthread_create(&g.member[0].thread, NULL, member_joins, &g.member[0]);
    usleep(600000); /* all slots are in use by now */
    for (uint32_t r = 1; r < 4; ++r)
        pthread_create(&g.member[r].thread, NULL, member_joins, &g.member[r]);
    for (uint32_t r = 0; r < 4; ++r)
        pthread_join(g.member[r].thread, NULL);
    atomic_store(&c.stop, 1);
    pthread_join(c.thread, NULL);
    for (uint32_t r = 0; r < 4; ++r) {
        if (g.member[r].status != QN_OK)
            fail_msg("rank %u: %s", r, g.member[r].err.what);
        assert_true(g.member[r].took < 18);
    }
    group_listen(&g);
    group_exchange(&g, 20);
    group_end(&g);
}

/* A listener at the rendezvous address is not Quern: ranks that connect give up in time. */
static void test_a_foreign_listener_at_rank_0(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; ++kind) {
        group g;
        group_prepare(&g, 2);
        uint16_t port = (uint16_t)atoi(strchr(g.place, ':') + 1);
        const qn__address loopback = {.kind = 4, .bytes = {127, 0, 0, 1}};
        int listener = -1;
        assert_int_equal(qn__socket_listen(&loopback, &port, &listener, NULL), QN_OK);
        g.member[1].options.rendezvous_timeout = 1.5;
        pthread_create(&g.member[1].thread, NULL, member_joins, &g.member[1]);
        for (int i = 0; i < 30; ++i) {
            const int file = qn__socket_accept(listener);
            char text[300];
            memset(text, kind == 1 ? 'S' : 0, sizeof text);
            if (file >= 0 && kind > 0)
                (void)!send(file, text, sizeof text, MSG_NOSIGNAL);
            if (file >= 0 && kind != 2)
                close(file);
            usleep(60000);
        }
        pthread_join(g.member[1].thread, NULL);
        close(listener);
        says(&g.member[1], "found no rank 0");
        assert_true(g.member[1].took < 15);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_find_each_other),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_a_key_opens_the_network),
        cmocka_unit_test(test_interfaces),
        cmocka_unit_test(test_options_that_make_no_sense),
        cmocka_unit_test(test_missing_ranks_are_named),
        cmocka_unit_test(test_another_key),
        cmocka_unit_test(test_other_numbers),
        cmocka_unit_test(test_other_versions_are_named),
        cmocka_unit_test(test_a_rank_that_is_started_again),
        cmocka_unit_test(test_a_rank_that_ends_while_all_connect),
        cmocka_unit_test(test_a_rank_that_ends_and_is_not_needed),
        cmocka_unit_test(test_foreign_peers_do_no_harm),
        cmocka_unit_test(test_a_foreign_listener_at_rank_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
