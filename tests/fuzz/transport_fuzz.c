/* Frames on a connection, as another rank or whoever got hold of its socket would send them. The
 * input is records: an even byte and a length, raw bytes; an odd one, a head of small numbers and a
 * body, which the target seals with the run's key. */
#include "fuzz/fuzz.h"

#include "cluster/transport/socket_state.h"
#include "cluster/transport/wire.h"

#include <sys/socket.h>
#include <unistd.h>

enum { SENT_MOST = 1 << 16 };

static const unsigned char key[32] = "the key of a run, 32 bytes long";

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }

static void on_message(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    unsigned *sum = user;
    FUZZ_MUST(from == 1 && head->type >= QN__MESSAGE_OWN &&
              head->bytes == (body ? body->bytes : 0));
    for (uint64_t i = 0; i < head->bytes; i++)
        *sum += body->data[i];
    qn__buffer_drop(body);
}

static void on_gone(void *user, uint32_t rank, qn__loss_kind how) {
    (void)user;
    FUZZ_MUST(rank == 1 && how <= QN__GONE_LEFT);
}

static void on_evicted(void *user, uint32_t by, const char *why) {
    (void)user;
    FUZZ_MUST(by == 1 && strlen(why) < 256);
}

static void on_tick(void *user, double now) {
    (void)user;
    FUZZ_MUST(now == now);
}

/* A frame that the other side takes for one of the run's. */
static size_t seal(input *in, uint64_t *sequence, unsigned char *to) {
    qn__frame_key keys;
    qn__head head = {.type = next(in), .extra = next(in)};
    for (size_t i = 0; i < 4; i++)
        head.number[i] = next(in);
    const size_t wanted = (size_t)next(in) * 8, left = (size_t)(in->end - in->at);
    const size_t bytes = wanted < left ? wanted : left;
    const int lie = next(in) == 255;
    qn__message_buffer *body = bytes ? qn__buffer_create(NULL, bytes) : NULL;
    FUZZ_MUST(!bytes || body);
    for (size_t i = 0; i < bytes; i++)
        body->data[i] = next(in);
    qn__frame_keys(key, 1, 0, &keys);
    qn__frame_write(&keys, &head, body, to);
    if (lie)
        qn__put_u64(to + 40, bytes + head.extra * 1000u);
    qn__frame_seal(
        &keys, head.type == QN__MESSAGE_PING || head.type == QN__MESSAGE_ACK ? 0 : ++*sequence, to);
    if (body)
        memcpy(to + QN__FRAME_BYTES, body->data, bytes);
    qn__buffer_drop(body);
    return QN__FRAME_BYTES + bytes;
}

static void talk(int file, input *in) {
    static unsigned char text[4096];
    uint64_t sequence = 0;
    for (size_t sent = 0; in->at < in->end && sent < SENT_MOST;) {
        size_t size;
        if (next(in) & 1) {
            size = seal(in, &sequence, text);
        } else {
            size = next(in);
            for (size_t i = 0; i < size; i++)
                text[i] = next(in);
        }
        const ssize_t gone = send(file, text, size, MSG_NOSIGNAL);
        if (gone < 0)
            return; /* it has given this one up */
        sent += size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    int pair[2];
    unsigned sum = 0;
    qn_error err = {0};
    qn__transport *transport = NULL;
    input in = {bytes, bytes + size};
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    const struct timeval soon = {.tv_usec = 200000};
    setsockopt(pair[1], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    const qn__link link[2] = {{-1, 0, 0}, {pair[0], 1, 0}};
    const qn__transport_setup setup = {2, 0, link, 0.5, key, -1};
    const qn__transport_events events = {&sum,    on_message, on_gone, on_evicted,
                                         on_tick, NULL,       NULL};
    FUZZ_MUST(qn__transport_open(&setup, &transport, &err) == QN_OK);
    FUZZ_MUST(qn__transport_listen(transport, &events, &err) == QN_OK);
    talk(pair[1], &in);
    close(pair[1]);
    qn__transport_close(transport);
    return 0;
}
