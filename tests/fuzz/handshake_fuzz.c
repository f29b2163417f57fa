/* Handshakes between two ranks, and endpoints. The target stands between them: the input is XORed
 * into what each side says, so that zeros change nothing, and it fills in the hello of who dials,
 * which is then sealed as it ought to be. */
#include "fuzz/fuzz.h"

#include "cluster/rendezvous/endpoint.h"
#include "cluster/transport/handshake.h"

#include <sys/socket.h>
#include <unistd.h>

enum { TURNS = 16, MOST = 4096 };

static const unsigned char key[32] = "the key of a run, 32 bytes long";

/* The next byte of the input, 0 after its end. */
typedef struct input {
    const uint8_t *at, *end;
    int changed;
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }

/* Passes on what one side has said. */
static void carry(int from, int to, input *in) {
    unsigned char bytes[MOST];
    const ssize_t got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    for (ssize_t i = 0; i < got; i++) {
        const uint8_t change = next(in);
        in->changed |= change != 0;
        bytes[i] ^= change;
    }
    if (got > 0)
        FUZZ_MUST(send(to, bytes, (size_t)got, MSG_DONTWAIT | MSG_NOSIGNAL) == got);
}

static void check_other(const qn__hello *other) {
    FUZZ_MUST(memchr(other->host, 0, sizeof other->host));
    FUZZ_MUST(memchr(other->version, 0, sizeof other->version));
    for (const char *c = other->host; *c; c++)
        FUZZ_MUST(*c > ' ' && *c < 127);
}

static void shake_hands(input *in) {
    int a[2], b[2];
    qn__hello own, dialler;
    static qn__handshake s[2];
    qn__hello_fill(&own, QN__FOR_RENDEZVOUS, 1, 0, 4);
    dialler = own;
    dialler.purpose ^= next(in);
    dialler.from ^= next(in);
    dialler.ranks ^= next(in);
    for (size_t i = 0; i < 8; i++)
        dialler.host[i] = (char)(dialler.host[i] ^ next(in));
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, a) == 0);
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);
    qn__handshake_begin(&s[0], a[0], 1, &dialler, key);
    qn__handshake_begin(&s[1], b[0], 0, &own, key);
    const int refuses = next(in) & 1;
    for (int turn = 0; turn < TURNS; turn++) {
        for (int k = 0; k < 2; k++)
            if (s[k].state <= QN__HANDSHAKE_WRITE)
                qn__handshake_go(&s[k]);
        if (s[1].state == QN__HANDSHAKE_ASK) {
            check_other(&s[1].other);
            qn__handshake_decide(&s[1], refuses ? "no" : NULL);
        }
        carry(a[1], b[1], in);
        carry(b[1], a[1], in);
    }
    /* Nobody believes what was changed on its way. */
    FUZZ_MUST(!in->changed || s[0].state != QN__HANDSHAKE_DONE || s[1].state != QN__HANDSHAKE_DONE);
    if (!in->changed)
        FUZZ_MUST(s[0].state == (refuses ? QN__HANDSHAKE_REFUSED : QN__HANDSHAKE_DONE));
    FUZZ_MUST(memchr(s[0].why, 0, sizeof s[0].why));
    for (int k = 0; k < 2; k++)
        close(a[k]), close(b[k]);
}

static void read_card(const uint8_t *bytes, size_t size) {
    unsigned char text[QN__ENDPOINT_BYTES] = {0}, again[QN__ENDPOINT_BYTES];
    qn__endpoint endpoint, second;
    memcpy(text, bytes, size < sizeof text ? size : sizeof text);
    if (!qn__endpoint_read(text, &endpoint))
        return;
    FUZZ_MUST(endpoint.count <= QN__ADDRESSES_MOST);
    FUZZ_MUST(memchr(endpoint.host, 0, sizeof endpoint.host) &&
              memchr(endpoint.version, 0, sizeof endpoint.version));
    FUZZ_MUST(memchr(endpoint.unix_name, 0, sizeof endpoint.unix_name));
    qn__endpoint_write(&endpoint, again);
    FUZZ_MUST(qn__endpoint_read(again, &second) && second.count == endpoint.count);
    FUZZ_MUST(strcmp(second.host, endpoint.host) == 0 && second.port == endpoint.port);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    input in = {bytes, bytes + size, 0};
    shake_hands(&in);
    read_card(bytes, size);
    return 0;
}
