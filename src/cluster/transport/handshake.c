#include "cluster/transport/handshake.h"

#include "base/digest/sha256.h"
#include "cluster/transport/wire.h"
#include <quern/version.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char MAGIC[8] = {'q', 'u', 'e', 'r', 'n', 0, '\r', '\n'};

/* ---------------------------------------------------------------------------------------- proof */

void qn__hmac(const void *key, size_t key_size, const void *first, size_t first_size,
              const void *second, size_t second_size, unsigned char mac[32]) {
    unsigned char block[64] = {0}, inner[32];
    qn__sha256 hash;
    if (key_size > sizeof block)
        qn__sha256_of(key, key_size, block);
    else if (key_size > 0)
        memcpy(block, key, key_size);
    for (size_t i = 0; i < sizeof block; ++i)
        block[i] ^= 0x36;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, block, sizeof block);
    qn__sha256_add(&hash, first, first_size);
    qn__sha256_add(&hash, second, second_size);
    qn__sha256_end(&hash, inner);
    for (size_t i = 0; i < sizeof block; ++i)
        block[i] ^= 0x36 ^ 0x5c;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, block, sizeof block);
    qn__sha256_add(&hash, inner, sizeof inner);
    qn__sha256_end(&hash, mac);
}

int qn__same_secret(const unsigned char a[32], const unsigned char b[32]) {
    unsigned differ = 0;
    for (size_t i = 0; i < 32; ++i)
        differ |= (unsigned)(a[i] ^ b[i]);
    return differ == 0;
}

/* The two sides prove different things, so that a proof cannot be reflected to its sender. */
static void prove(const qn__handshake *s, int dialler, unsigned char mac[32]) {
    unsigned char both[2 * QN__HELLO_BYTES];
    const char *const who = dialler ? "dialler" : "dialled";
    memcpy(both, s->dialled ? s->own_hello : s->other_hello, QN__HELLO_BYTES);
    memcpy(both + QN__HELLO_BYTES, s->dialled ? s->other_hello : s->own_hello, QN__HELLO_BYTES);
    qn__hmac(s->key, 32, who, strlen(who), both, sizeof both, mac);
}

/* ---------------------------------------------------------------------------------------- hello */

void qn__hello_fill(qn__hello *hello, qn__purpose purpose, uint32_t from, uint32_t to,
                    uint32_t ranks) {
    char host[64] = "";
    memset(hello, 0, sizeof *hello);
    hello->wire = QN__WIRE_VERSION;
    hello->contract = QN_CONTRACT;
    snprintf(hello->version, sizeof hello->version, "%s", qn_version());
    gethostname(host, sizeof host - 1);
    qn__wire_text(hello->host, sizeof hello->host, host[0] ? host : "?", sizeof host);
    hello->purpose = purpose;
    hello->from = from;
    hello->to = to;
    hello->ranks = ranks;
    hello->process = (uint32_t)getpid();
}

/* This layout never changes: two versions must be able to refuse each other. */
static void write_hello(const qn__hello *hello, unsigned char to[QN__HELLO_BYTES]) {
    memset(to, 0, QN__HELLO_BYTES);
    memcpy(to, MAGIC, 8);
    qn__put_u32(to + 8, hello->wire);
    qn__put_u32(to + 12, hello->contract);
    memcpy(to + 16, hello->version, 16);
    memcpy(to + 32, hello->host, 64);
    qn__put_u32(to + 96, hello->purpose);
    qn__put_u32(to + 100, hello->from);
    qn__put_u32(to + 104, hello->to);
    qn__put_u32(to + 108, hello->ranks);
    qn__put_u32(to + 112, hello->process);
    qn__random_bytes(to + 116, 32);
}

static int read_hello(const unsigned char from[QN__HELLO_BYTES], qn__hello *hello) {
    if (memcmp(from, MAGIC, 8) != 0)
        return 0;
    hello->wire = qn__get_u32(from + 8);
    hello->contract = qn__get_u32(from + 12);
    qn__wire_text(hello->version, sizeof hello->version, (const char *)from + 16, 16);
    qn__wire_text(hello->host, sizeof hello->host, (const char *)from + 32, 64);
    hello->purpose = qn__get_u32(from + 96);
    hello->from = qn__get_u32(from + 100);
    hello->to = qn__get_u32(from + 104);
    hello->ranks = qn__get_u32(from + 108);
    hello->process = qn__get_u32(from + 112);
    return 1;
}

/* --------------------------------------------------------------------------------------- stages */

/* The steps of the two sides, in order. */
enum {
    SEND_GREETING,
    SEND_HELLO,
    GET_HELLO,
    SEND_PROOF,
    GET_PROOF,
    DECIDE,
    SEND_VERDICT,
    GET_VERDICT,
    END
};

static const int DIALLER[] = {SEND_HELLO, GET_HELLO, SEND_PROOF, GET_VERDICT, END};
static const int DIALLED[] = {SEND_GREETING, GET_HELLO,    SEND_HELLO, GET_PROOF,
                              DECIDE,        SEND_VERDICT, END};

static int stage_of(const qn__handshake *s) { return (s->dialled ? DIALLER : DIALLED)[s->stage]; }

void qn__handshake_begin(qn__handshake *s, int file, int dialled, const qn__hello *own,
                         const unsigned char key[32]) {
    memset(s, 0, sizeof *s);
    s->file = file;
    s->dialled = dialled;
    s->key = key;
    s->state = dialled ? QN__HANDSHAKE_WRITE : QN__HANDSHAKE_READ;
    write_hello(own, s->own_hello);
}

/* Sends or receives `size` bytes: 1 when complete. */
static int transfer(qn__handshake *s, void *memory, size_t size, int out) {
    unsigned char *const bytes = memory;
    while (s->have < size) {
        const ssize_t n =
            out ? send(s->file, bytes + s->have, size - s->have, MSG_DONTWAIT | MSG_NOSIGNAL)
                : recv(s->file, bytes + s->have, size - s->have, MSG_DONTWAIT);
        if (n > 0) {
            s->have += (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN)) {
            s->state = out ? QN__HANDSHAKE_WRITE : QN__HANDSHAKE_READ;
            return 0;
        } else if (n == 0 || errno != EINTR) {
            s->state = QN__HANDSHAKE_FAILED;
            return 0;
        }
    }
    s->have = 0;
    return 1;
}

static void read_verdict(qn__handshake *s) {
    unsigned char expected[32];
    const uint32_t code = qn__get_u32(s->verdict);
    s->why[0] = 0;
    if (code == 0) {
        prove(s, 0, expected);
        s->state = qn__same_secret(expected, s->verdict + 4) ? QN__HANDSHAKE_DONE
                                                             : QN__HANDSHAKE_WRONG_KEY;
    } else {
        memcpy(s->why, s->verdict + 36, QN__VERDICT_TEXT - 1);
        s->why[QN__VERDICT_TEXT - 1] = 0;
        s->state = code == 1 ? QN__HANDSHAKE_WRONG_KEY : QN__HANDSHAKE_REFUSED;
    }
}

static void write_verdict(qn__handshake *s, uint32_t code, const char *why) {
    memset(s->verdict, 0, sizeof s->verdict);
    qn__put_u32(s->verdict, code);
    s->refuses = code != 0;
    if (code == 0)
        prove(s, 0, s->verdict + 4);
    else
        memcpy(s->verdict + 36, why, strnlen(why, QN__VERDICT_TEXT - 1));
}

/* Handles the complete bytes of a stage. 0: the handshake cannot advance. */
static int stage_done(qn__handshake *s, int stage) {
    unsigned char expected[32];
    if (stage == GET_HELLO && !read_hello(s->other_hello, &s->other)) {
        s->state = QN__HANDSHAKE_FAILED;
        return 0;
    }
    if (stage == GET_HELLO && s->dialled)
        prove(s, 1, s->proof);
    if (stage == GET_PROOF) {
        prove(s, 1, expected);
        if (!qn__same_secret(expected, s->proof)) {
            write_verdict(s, 1, "");
            s->stage++; /* there is no decision to make */
        }
    }
    if (stage == GET_VERDICT) {
        read_verdict(s);
        return 0;
    }
    if (stage == SEND_VERDICT) {
        const int key = qn__get_u32(s->verdict) == 1;
        s->state = key          ? QN__HANDSHAKE_WRONG_KEY
                   : s->refuses ? QN__HANDSHAKE_REFUSED
                                : QN__HANDSHAKE_DONE;
        return 0;
    }
    s->stage++;
    return 1;
}

qn__handshake_state qn__handshake_go(qn__handshake *s) {
    for (;;) {
        const int stage = stage_of(s);
        int whole = 1;
        if (s->state > QN__HANDSHAKE_ASK)
            return s->state;
        if (stage == DECIDE) {
            s->state = QN__HANDSHAKE_ASK;
            return s->state;
        }
        if (stage == SEND_GREETING && s->greeting)
            whole = transfer(s, (void *)s->greeting, QN__CREDENTIAL_BYTES, 1);
        else if (stage == SEND_GREETING)
            whole = 1;
        else if (stage == SEND_HELLO || stage == GET_HELLO)
            whole = transfer(s, stage == SEND_HELLO ? s->own_hello : s->other_hello,
                             QN__HELLO_BYTES, stage == SEND_HELLO);
        else if (stage == SEND_PROOF || stage == GET_PROOF)
            whole = transfer(s, s->proof, sizeof s->proof, stage == SEND_PROOF);
        else
            whole = transfer(s, s->verdict, sizeof s->verdict, stage == SEND_VERDICT);
        if (!whole || !stage_done(s, stage))
            return s->state;
    }
}

qn__handshake_state qn__handshake_decide(qn__handshake *s, const char *refusal) {
    write_verdict(s, refusal ? 2 : 0, refusal);
    s->state = QN__HANDSHAKE_WRITE;
    s->stage++;
    return qn__handshake_go(s);
}
