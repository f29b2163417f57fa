/* The handshake: against published values, with itself, and against invalid input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest/sha256.h"
#include "cluster/rendezvous/endpoint.h"
#include "cluster/transport/handshake.h"
#include "num/philox.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const unsigned char KEY[32] = "a key of thirty-two bytes, there";

static void expect_mac(const void *key, size_t key_size, const char *text, const char *hex) {
    unsigned char mac[32], split[32];
    char got[65];
    qn__hmac(key, key_size, text, strlen(text), "", 0, mac);
    qn__hex(mac, got);
    assert_string_equal(got, hex);
    qn__hmac(key, key_size, text, strlen(text) / 3, text + strlen(text) / 3,
             strlen(text) - strlen(text) / 3, split);
    assert_true(qn__same_secret(mac, split));
}

/* RFC 4231, cases 1, 2 and 6. */
static void test_hmac(void **state) {
    (void)state;
    unsigned char key[131];
    memset(key, 0x0b, 20);
    expect_mac(key, 20, "Hi There",
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect_mac("Jefe", 4, "what do ya want for nothing?",
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    expect_mac(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First",
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    unsigned char a[32] = {0}, b[32] = {0};
    for (int i = 0; i < 32; ++i) {
        b[i] = 1;
        assert_false(qn__same_secret(a, b));
        b[i] = 0;
    }
    assert_true(qn__same_secret(a, b));
}

typedef struct two {
    int file[2];
    qn__handshake dialler, dialled;
} two;

static void begin(two *t, const unsigned char *dialler_key, const unsigned char *dialled_key) {
    qn__hello a, b;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t->file), 0);
    qn__hello_fill(&a, QN__FOR_TRANSPORT, 3, 1, 5);
    qn__hello_fill(&b, QN__FOR_TRANSPORT, 1, UINT32_MAX, 5);
    qn__handshake_begin(&t->dialler, t->file[0], 1, &a, dialler_key);
    qn__handshake_begin(&t->dialled, t->file[1], 0, &b, dialled_key);
}

static void end(two *t) {
    close(t->file[0]);
    close(t->file[1]);
}

/* Both sides continue until neither can. */
static void run(two *t, const char *refusal) {
    for (int i = 0; i < 20; ++i) {
        qn__handshake_go(&t->dialler);
        if (qn__handshake_go(&t->dialled) == QN__HANDSHAKE_ASK)
            qn__handshake_decide(&t->dialled, refusal);
    }
}

static void test_two_that_know_the_key(void **state) {
    (void)state;
    two t;
    begin(&t, KEY, KEY);
    run(&t, NULL);
    assert_int_equal(t.dialler.state, QN__HANDSHAKE_DONE);
    assert_int_equal(t.dialled.state, QN__HANDSHAKE_DONE);
    assert_int_equal(t.dialled.other.from, 3);
    assert_int_equal(t.dialled.other.to, 1);
    assert_int_equal(t.dialler.other.from, 1);
    assert_int_equal(t.dialler.other.ranks, 5);
    end(&t);
    begin(&t, KEY, KEY);
    run(&t, "the reason");
    assert_int_equal(t.dialler.state, QN__HANDSHAKE_REFUSED);
    assert_int_equal(t.dialled.state, QN__HANDSHAKE_REFUSED);
    assert_string_equal(t.dialler.why, "the reason");
    end(&t);
}

static void test_another_key_in_any_bit(void **state) {
    (void)state;
    for (int bit = 0; bit < 256; bit += 17) {
        unsigned char other[32];
        two t;
        memcpy(other, KEY, 32);
        other[bit / 8] ^= (unsigned char)(1 << bit % 8);
        begin(&t, other, KEY);
        run(&t, NULL);
        assert_int_equal(t.dialler.state, QN__HANDSHAKE_WRONG_KEY);
        assert_int_equal(t.dialled.state, QN__HANDSHAKE_WRONG_KEY);
        end(&t);
    }
}

/* A man in the middle, which forwards bytes, records them and may change one. */
typedef struct wire {
    int left[2], right[2]; /* dialler - left[1] ... right[0] - dialled */
    qn__handshake dialler, dialled;
    unsigned char kept[2][1024];
    size_t passed[2];
} wire;

static void wire_begin(wire *w) {
    qn__hello a, b;
    memset(w, 0, sizeof *w);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->left), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->right), 0);
    qn__hello_fill(&a, QN__FOR_TRANSPORT, 3, 1, 5);
    qn__hello_fill(&b, QN__FOR_TRANSPORT, 1, UINT32_MAX, 5);
    qn__handshake_begin(&w->dialler, w->left[0], 1, &a, KEY);
    qn__handshake_begin(&w->dialled, w->right[1], 0, &b, KEY);
}

static void wire_end(wire *w) {
    for (int i = 0; i < 2; ++i) {
        close(w->left[i]);
        close(w->right[i]);
    }
}

static void carry(wire *w, int back, size_t change, unsigned char by) {
    const int from = back ? w->right[0] : w->left[1], to = back ? w->left[1] : w->right[0];
    unsigned char bytes[1024];
    const ssize_t got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    for (ssize_t i = 0; i < got; ++i) {
        const size_t at = w->passed[back]++;
        if (at == change)
            bytes[i] ^= by;
        if (at < sizeof w->kept[back])
            w->kept[back][at] = bytes[i];
    }
    if (got > 0)
        assert_int_equal(send(to, bytes, (size_t)got, MSG_NOSIGNAL), got);
}

static void wire_run(wire *w, size_t change_there, size_t change_back, unsigned char by) {
    for (int i = 0; i < 12; ++i) {
        qn__handshake_go(&w->dialler);
        carry(w, 0, change_there, by);
        if (qn__handshake_go(&w->dialled) == QN__HANDSHAKE_ASK)
            qn__handshake_decide(&w->dialled, NULL);
        carry(w, 1, change_back, by);
    }
}

/* Whichever byte is changed, in either direction: the side that received it does not accept. */
static void test_every_changed_byte_is_noticed(void **state) {
    (void)state;
    wire w;
    for (size_t at = 0; at < QN__HELLO_BYTES + 32; ++at) {
        wire_begin(&w);
        wire_run(&w, at, SIZE_MAX, (unsigned char)(1 << at % 8));
        assert_true(w.dialled.state != QN__HANDSHAKE_DONE);
        assert_true(w.dialler.state != QN__HANDSHAKE_DONE);
        wire_end(&w);
    }
    for (size_t at = 0; at < QN__HELLO_BYTES + 36; ++at) {
        wire_begin(&w);
        wire_run(&w, SIZE_MAX, at, (unsigned char)(1 << at % 8));
        assert_true(w.dialler.state != QN__HANDSHAKE_DONE);
        wire_end(&w);
    }
    wire_begin(&w);
    wire_run(&w, SIZE_MAX, SIZE_MAX, 0);
    assert_int_equal(w.dialler.state, QN__HANDSHAKE_DONE);
    assert_int_equal(w.dialled.state, QN__HANDSHAKE_DONE);
    wire_end(&w);
}

/* A recorded proof is not accepted again, nor one that is reflected to its sender. */
static void test_replays(void **state) {
    (void)state;
    wire heard;
    two t;
    wire_begin(&heard);
    wire_run(&heard, SIZE_MAX, SIZE_MAX, 0);
    begin(&t, KEY, KEY);
    assert_int_equal(send(t.file[0], heard.kept[0], heard.passed[0], 0), heard.passed[0]);
    for (int i = 0; i < 5; ++i)
        assert_int_not_equal(qn__handshake_go(&t.dialled), QN__HANDSHAKE_ASK);
    assert_int_equal(t.dialled.state, QN__HANDSHAKE_WRONG_KEY);
    end(&t);
    /* A mirror: the dialling side gets its own hello and its own proof back. */
    int file[2];
    qn__hello own;
    qn__handshake shake;
    unsigned char echo[1024];
    size_t have = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, file), 0);
    qn__hello_fill(&own, QN__FOR_TRANSPORT, 3, 1, 5);
    qn__handshake_begin(&shake, file[0], 1, &own, KEY);
    for (int i = 0; i < 6; ++i) {
        qn__handshake_go(&shake);
        const ssize_t got = recv(file[1], echo + have, sizeof echo - have, MSG_DONTWAIT);
        if (got > 0) {
            unsigned char verdict[QN__VERDICT_BYTES] = {0};
            if (have == 0) {
                assert_int_equal(send(file[1], echo, (size_t)got, 0), got);
            } else {
                memcpy(verdict + 4, echo + have, 32);
                assert_int_equal(send(file[1], verdict, sizeof verdict, 0), sizeof verdict);
            }
            have += (size_t)got;
        }
    }
    assert_int_equal(shake.state, QN__HANDSHAKE_WRONG_KEY);
    close(file[0]);
    close(file[1]);
    wire_end(&heard);
}

/* Random bytes of any length, truncated anywhere. */
static void test_rubbish(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 2000; ++seed) {
        two t;
        unsigned char bytes[600];
        uint32_t random[4];
        begin(&t, KEY, KEY);
        for (uint32_t i = 0; i < sizeof bytes; i += 16) {
            qn__philox((uint32_t[4]){i, seed, 0, 0}, (uint32_t[2]){7, 7}, random);
            memcpy(bytes + i, random, i + 16 <= sizeof bytes ? 16 : sizeof bytes - i);
        }
        if (seed % 2)
            memcpy(bytes, "quern\0\r\n", 8);
        const int side = (int)(seed / 2 % 2);
        qn__handshake *victim = side ? &t.dialler : &t.dialled;
        qn__handshake_go(victim);
        (void)!send(t.file[side], bytes, random[0] % sizeof bytes, MSG_NOSIGNAL);
        for (int i = 0; i < 5; ++i)
            qn__handshake_go(victim);
        assert_true(victim->state != QN__HANDSHAKE_DONE && victim->state != QN__HANDSHAKE_ASK);
        shutdown(t.file[side], SHUT_WR);
        for (int i = 0; i < 5; ++i)
            qn__handshake_go(victim);
        assert_true(victim->state > QN__HANDSHAKE_ASK && victim->state != QN__HANDSHAKE_DONE);
        end(&t);
    }
}

static void test_endpoints(void **state) {
    (void)state;
    unsigned char bytes[QN__ENDPOINT_BYTES], again[QN__ENDPOINT_BYTES];
    qn__endpoint endpoint, back;
    qn__listeners listeners;
    assert_int_equal(qn__endpoint_own(NULL, 0, &endpoint, &listeners, NULL), QN_OK);
    qn__listeners_close(&listeners);
    qn__endpoint_write(&endpoint, bytes);
    assert_true(qn__endpoint_read(bytes, &back));
    qn__endpoint_write(&back, again);
    assert_memory_equal(bytes, again, sizeof bytes);
    for (uint32_t seed = 0; seed < 20000; ++seed) {
        uint32_t random[4];
        memcpy(again, bytes, sizeof bytes);
        for (uint32_t i = 0; i < 8; ++i) {
            qn__philox((uint32_t[4]){i, seed, 1, 0}, (uint32_t[2]){7, 7}, random);
            again[random[0] % QN__ENDPOINT_BYTES] = (unsigned char)random[1];
        }
        if (!qn__endpoint_read(again, &back))
            continue;
        assert_true(back.count >= 1 && back.count <= QN__ADDRESSES_MOST);
        assert_true(back.port >= 1 && back.port <= 65535);
        assert_true(strlen(back.host) < sizeof back.host && strlen(back.version) < 16);
        assert_true(strlen(back.unix_name) < sizeof back.unix_name);
        for (const char *c = back.host; *c; ++c)
            assert_true(*c > ' ' && *c < 127);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hmac),
        cmocka_unit_test(test_two_that_know_the_key),
        cmocka_unit_test(test_another_key_in_any_bit),
        cmocka_unit_test(test_every_changed_byte_is_noticed),
        cmocka_unit_test(test_replays),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
