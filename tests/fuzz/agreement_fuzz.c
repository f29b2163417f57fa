/* Messages of membership and reduction, as another rank with the run's key would send them: the
 * state machines of one rank of four under a transport that only remembers. The input is records of
 * one event each; in its numbers, 255 stands for that of the last message which this rank sent. */
#include "fuzz/fuzz.h"

#include "cluster/reduction/reduction_state.h"

enum { RANKS = 4, WORDS = 8, CHUNKS = 6, EVENTS = 200, STEPS = 8 };
static const char *const name[RANKS] = {"rank 0", "rank 1", "rank 2", "rank 3"};

typedef struct world {
    qn__transport transport;
    qn__head last; /* of what was sent */
    double now;
    int begun;       /* this rank is in a reduction */
    uint32_t chunks; /* that it has computed */
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
    FUZZ_MUST(to < RANKS && (!body || body->bytes == head->bytes));
    ((world *)transport)->last = *head;
    qn__buffer_drop(body);
}

static void evict(qn__transport *transport, uint32_t rank, const char *why) {
    (void)transport;
    FUZZ_MUST(rank < RANKS && why);
}

static void wake(qn__transport *transport) { (void)transport; }
static double now(qn__transport *transport) { return ((world *)transport)->now; }

static const qn__transport_calls calls = {
    .buffer = buffer, .send = send_nowhere, .evict = evict, .wake = wake, .now = now};

/* A head of small numbers, and as its body what follows, each byte a word or a byte. */
static void deliver(qn__reducer *r, const world *w, uint32_t from, input *in) {
    qn__head head = {.type = 16 + next(in) % 24};
    const uint8_t extra = next(in);
    head.extra = extra == 255 ? w->last.extra : extra;
    for (size_t i = 0; i < 4; i++) {
        const uint8_t number = next(in);
        head.number[i] = number == 255 ? w->last.number[i] : number;
    }
    const uint64_t bytes = next(in), wide = next(in) & 1;
    qn__message_buffer *body = bytes ? qn__buffer_create(NULL, bytes) : NULL;
    head.bytes = bytes;
    for (uint64_t i = 0; i < bytes; i++)
        body->data[i] = wide && i % 8 ? 0 : next(in);
    qn__reducer_message(r, from, &head, body);
}

/* As the one thread of a rank calls it. */
static void compute(qn__reducer *r, world *w) {
    qn__chunk_range range;
    while (qn__reducer_chunks(r, &range)) {
        FUZZ_MUST(range.count > 0 && range.first + range.count <= CHUNKS);
        w->chunks += range.count;
    }
    qn__reducer_added(r, w->chunks);
}

static void begin(qn__reducer *r, world *w) {
    static const qn__reduction reduction = {
        .kind = QN__REDUCTION_STEP, .words = WORDS, .chunks = CHUNKS};
    if (w->begun || qn__reducer_begin(r, &reduction) != 1)
        return;
    w->begun = 1;
    w->chunks = 0;
    compute(r, w);
}

static void work(qn__reducer *r, world *w) {
    for (int i = 0; w->begun && i < STEPS; i++)
        switch (qn__reducer_step(r)) {
        case QN__REDUCER_AGAIN:
            break;
        case QN__REDUCER_MORE:
            compute(r, w);
            break;
        case QN__REDUCER_WAITS:
            return;
        default:
            w->begun = 0;
        }
}

static void happen(qn__reducer *r, world *w, input *in) {
    const uint8_t what = next(in);
    const uint32_t other = (r->rank + 1 + next(in) % (RANKS - 1)) % RANKS;
    switch (what % 8) {
    case 0:
        qn__reducer_gone(r, other, (qn__loss_kind)(what / 8 % 3));
        break;
    case 1:
        qn__reducer_evicted(r, other, "because");
        break;
    case 2:
        w->now += what / 8;
        qn__reducer_tick(r, w->now);
        break;
    case 3:
        begin(r, w);
        break;
    case 4:
        work(r, w);
        break;
    default:
        deliver(r, w, other, in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static qn__reducer reducer;
    world w = {.transport = {&calls}};
    qn__common common;
    qn_error err = {0};
    input in = {bytes, bytes + size};
    memset(&reducer, 0, sizeof reducer);
    FUZZ_MUST(qn__common_open(&common, -1, 0, 1, &err) == QN_OK);
    FUZZ_MUST(qn__reducer_open(&reducer, &w.transport, RANKS, next(&in) % RANKS, NULL, name, 10.0,
                               &common, &err) == QN_OK);
    for (int i = 0; i < EVENTS && in.at < in.end; i++)
        happen(&reducer, &w, &in);
    qn__reducer_shut(&reducer);
    qn__reducer_close(&reducer);
    qn__common_close(&common);
    return 0;
}
