/* Messages about items of parts, as another rank with the run's key would send them, and requests
 * of this rank meanwhile: one rank of four under a transport that sends nowhere. The input is
 * records of one event each. Each request of others is answered once. */
#include "fuzz/fuzz.h"

#include "cluster/cluster_state.h"
#include "cluster/items.h"

#include <unistd.h>

enum { RANKS = 4, BYTES = 300, EVENTS = 200, OPEN = 16, PIECES = 12 };
static const char *name[RANKS] = {"rank 0", "rank 1", "rank 2", "rank 3"};

typedef struct world {
    qn__transport transport; /* first: the calls get it */
    qn_cluster cluster;
    qn__items *items;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    uint32_t asks, answers; /* of others; to them */
    qn__item_request *open[OPEN];
    uint32_t bytes[OPEN];
    uint64_t asked; /* the number of the last request that was sent */
} world;

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }

static qn__message_buffer *buffer(qn__transport *transport, uint64_t bytes) {
    return qn__buffer_create(transport, bytes);
}

static void send_nowhere(qn__transport *transport, uint32_t to, const qn__head *head,
                         qn__message_buffer *body) {
    world *w = (world *)transport;
    unsigned sum = 0;
    FUZZ_MUST(to < RANKS && head->bytes == (body ? body->bytes : 0));
    for (uint64_t i = 0; i < head->bytes; i++)
        sum += body->data[i];
    FUZZ_MUST(sum <= 255 * head->bytes);
    pthread_mutex_lock(&w->lock);
    if (head->type == QN__MESSAGE_ANSWER)
        ++w->answers;
    else
        w->asked = head->number[0];
    pthread_cond_signal(&w->answered);
    pthread_mutex_unlock(&w->lock);
    qn__buffer_drop(body);
}

static const qn__transport_calls calls = {.buffer = buffer, .send = send_nowhere};

static qn_status reach(void *user, uint32_t part, qn_error *err) {
    (void)user;
    FUZZ_MUST(part < RANKS);
    return part == 3 ? qn__fail(err, QN_IO, "there is no such file") : QN_OK;
}

static int copy(void *user, uint32_t part, const qn__item_piece *piece, void *to) {
    (void)user;
    FUZZ_MUST(part < RANKS && piece->bytes > 0);
    if (piece->array > 1 || piece->offset > BYTES || piece->bytes > BYTES - piece->offset)
        return 0;
    memset(to, (int)part, piece->bytes);
    return 1;
}

/* Pieces of small numbers, now and then one that is too large. Returns their number. */
static uint32_t take_pieces(input *in, qn__item_piece piece[PIECES], uint32_t *bytes) {
    const uint32_t count = 1 + next(in) % PIECES;
    *bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t size = next(in), at = next(in);
        piece[i] = (qn__item_piece){size & 1u, size == 255 ? 1u << 23 : size / 2u,
                                    at == 255 ? UINT64_MAX - 3 : 2u * at};
        *bytes += piece[i].bytes;
    }
    return count;
}

static void deliver_ask(world *w, uint32_t from, input *in) {
    qn__item_piece piece[PIECES];
    uint32_t bytes;
    const uint32_t part = next(in) % (RANKS + 1), cut = next(in);
    const size_t whole = take_pieces(in, piece, &bytes) * sizeof *piece;
    const size_t size = cut < 8 ? cut : whole; /* cut: not a whole number of pieces, or none */
    qn__message_buffer *body = size ? qn__buffer_create(&w->transport, size) : NULL;
    const qn__head head = {
        .type = QN__MESSAGE_ASK, .extra = part, .number = {next(in)}, .bytes = size};
    if (body)
        memcpy(body->data, piece, size);
    ++w->asks;
    w->cluster.listeners->message(w->cluster.listeners->user, from, &head, body);
}

static void deliver_answer(world *w, uint32_t from, input *in) {
    const uint8_t number = next(in), extra = next(in) % 3, size = next(in);
    uint64_t bytes = size;
    for (uint32_t k = 0; size == 255 && k < OPEN; k++)
        bytes = w->open[k] ? w->bytes[k] : bytes; /* as was asked for */
    bytes = bytes > 4096 ? 4096 : bytes;
    qn__message_buffer *body = bytes ? qn__buffer_create(&w->transport, bytes) : NULL;
    const qn__head head = {.type = QN__MESSAGE_ANSWER + (number == 254),
                           .extra = extra,
                           .number = {number == 255 ? w->asked : number},
                           .bytes = bytes};
    for (uint64_t i = 0; i < bytes; i++)
        body->data[i] = (unsigned char)i;
    w->cluster.listeners->message(w->cluster.listeners->user, from, &head, body);
}

static void ask(world *w, input *in) {
    qn__item_piece piece[PIECES];
    const uint32_t k = next(in) % OPEN, part = next(in) % RANKS;
    qn__items_drop(w->items, w->open[k]);
    const uint32_t count = take_pieces(in, piece, &w->bytes[k]);
    w->open[k] = qn__items_ask(w->items, part, piece, count, NULL);
    FUZZ_MUST(w->open[k] != NULL);
}

static void happen(world *w, input *in) {
    const uint8_t what = next(in);
    const uint32_t other = (w->cluster.rendezvous.rank + 1 + what / 8 % (RANKS - 1)) % RANKS;
    switch (what % 8) {
    case 0:
        w->cluster.listeners->gone(w->cluster.listeners->user, other);
        break;
    case 1:
    case 2:
        deliver_ask(w, other, in);
        break;
    case 3:
    case 4:
        deliver_answer(w, other, in);
        break;
    default:
        ask(w, in);
    }
}

/* With all others gone each request ends. */
static void finish_own(world *w) {
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (rank != w->cluster.rendezvous.rank)
            w->cluster.listeners->gone(w->cluster.listeners->user, rank);
    for (uint32_t k = 0; k < OPEN; k++) {
        const uint8_t *bytes;
        qn_error err = {0};
        unsigned sum = 0;
        if (!w->open[k])
            continue;
        const qn_status status = qn__items_wait(w->items, w->open[k], &bytes, &err);
        FUZZ_MUST(status == QN_OK || (status == QN_IO && err.what[0]));
        for (uint32_t i = 0; status == QN_OK && i < w->bytes[k]; i++)
            sum += bytes[i];
        FUZZ_MUST(sum <= 255 * w->bytes[k]);
        qn__items_drop(w->items, w->open[k]);
    }
}

static void wait_for_answers(world *w) {
    pthread_mutex_lock(&w->lock);
    while (w->answers < w->asks)
        pthread_cond_wait(&w->answered, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void live(world *w, input *in) {
    const qn__item_holder holder = {.user = w, .reach = reach, .copy = copy};
    qn_error err = {0};
    const int patient = next(in) & 1; /* else requests are open when the table is closed */
    FUZZ_MUST(qn__items_create(&w->cluster, 0, &holder, &w->items, &err) == QN_OK);
    for (int i = 0; i < EVENTS && in->at < in->end; i++)
        happen(w, in);
    finish_own(w);
    if (patient)
        wait_for_answers(w);
    qn__items_destroy(w->items);
    FUZZ_MUST(w->answers == w->asks);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static world w;
    qn__common common;
    qn_error err = {0};
    input in = {bytes, bytes + size};
    memset(&w, 0, sizeof w);
    w.transport.calls = &calls;
    w.cluster.process = getpid();
    w.cluster.name = name;
    w.cluster.rendezvous.ranks = RANKS;
    w.cluster.rendezvous.meeting.door = -1;
    w.cluster.rendezvous.rank = next(&in) % RANKS;
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.answered, NULL);
    pthread_mutex_init(&w.cluster.listening, NULL);
    pthread_mutex_init(&w.cluster.supplying, NULL);
    pthread_rwlock_init(&w.cluster.connected, NULL);
    FUZZ_MUST(qn__common_open(&common, -1, 0, 1, &err) == QN_OK);
    w.cluster.reducer = &w.cluster.slot[0];
    FUZZ_MUST(qn__reducer_open(w.cluster.reducer, &w.transport, RANKS, w.cluster.rendezvous.rank,
                               NULL, name, 10.0, &common, &err) == QN_OK);
    live(&w, &in);
    qn__reducer_shut(w.cluster.reducer);
    qn__reducer_close(w.cluster.reducer);
    qn__common_close(&common);
    pthread_mutex_destroy(&w.cluster.listening);
    pthread_mutex_destroy(&w.cluster.supplying);
    pthread_rwlock_destroy(&w.cluster.connected);
    pthread_cond_destroy(&w.answered);
    pthread_mutex_destroy(&w.lock);
    return 0;
}
