/* Predictions of several pictures: each core takes some of them through all layers by itself.
 *
 *     together          core 0  | layer 0 | layer 1 | ...      | is a barrier: each core has a
 *                       core 1  | layer 0 | layer 1 | ...        part of every item
 *
 *     by themselves     core 0  | items 0-15: layers 0, 1, ... | items 32-39 ...
 *                       core 1  | items 16-31: layers 0, 1, ...      | items 40-47 ...
 *
 * Nobody waits for others, what a core reads is in its own cache, and pieces have the number of
 * items for which the kernels are fastest. Each core is a worker of one thread, which reads the
 * parameters of the large one.
 *
 * A batch that takes some microseconds is computed by the calling thread alone, whatever the
 * network: waking others takes longer, and while they look for work they take a core from the
 * thread that makes the next batch. */
#include "device/cpu/worker/cpu_alone.h"

#include "base/memory.h"
#include <stdatomic.h>
#include <string.h>

/* WEIGHTS: with 22 and 50 MB two threads of a Zen 4 took 6 to 10 % longer by pieces of 4 items than
 * together, and as long by pieces of 16. SMALL: some 4 us of a core at its peak. A batch of one row
 * of 16 numbers took 12.7 us of processor time where it woke a second thread, and 5.6 us alone. */
enum {
    PIECE = 16,            /* most items of a piece: two tiles of the kernel that slides */
    ROWS_PIECE = 64,       /* the same of a network that does not read pictures */
    PIECE_BYTES = 1 << 25, /* most bytes of a layer's outputs of a piece: each core keeps some */
    WEIGHTS = 1 << 24,     /* most bytes of weights: a core reads all of them for each piece */
    SMALL = 1 << 18        /* most products of a small batch */
};

static size_t weights_of(const qn__worker *w) {
    size_t bytes = 0;
    for (uint32_t l = 0; l < w->program->layers; ++l)
        bytes += (size_t)qn__cpu_blocks(&w->layer[l]) * w->layer[l].out_panels * QN__PANEL *
                 QN__PANEL * sizeof(float);
    return bytes;
}

/* The items of a large piece: a power of 2. */
static uint32_t piece_of(const qn__worker *w) {
    size_t most = 1;
    uint32_t piece = w->layer[0].pictures ? PIECE : ROWS_PIECE;
    for (uint32_t l = 0; l < w->program->layers; ++l)
        most = w->program->layer[l].out > most ? w->program->layer[l].out : most;
    while (piece > 1 && piece * most * sizeof(float) > PIECE_BYTES)
        piece /= 2;
    return piece;
}

/* Whether a worker of one thread can read the parameters: in float32. */
static int can_share(const qn__worker *w) {
    return !w->owner && !w->bits && !w->takes_lists && !w->program->sequences;
}

static int goes_by_pieces(const qn__worker *w) {
    return w->layer[0].pictures && weights_of(w) <= WEIGHTS;
}

static int is_small(const qn__worker *w, uint32_t items) {
    uint64_t products = 0;
    for (uint32_t l = 0; l < w->program->layers && products <= SMALL; ++l)
        products += (uint64_t)items * w->layer[l].out_pixels * qn__cpu_blocks(&w->layer[l]) *
                    w->layer[l].out_panels * QN__PANEL * QN__PANEL;
    return products <= SMALL;
}

static qn_status open_one(qn__worker *w, qn__worker **out, qn_error *err) {
    qn__worker *own = *out = qn__alloc(1, sizeof *own, err);
    if (!own)
        return QN_MEMORY;
    own->owner = w;
    own->program = w->program;
    own->kernels = w->kernels;
    own->intgemm = w->intgemm;
    own->threads = 1;
    own->slots = 0;
    own->capacity = piece_of(w) + (size_t)1;
    qn_status status = qn__pool_create(1, 0, &own->pool, err);
    return status == QN_OK ? qn__cpu_allocate(own, err) : status;
}

static void close_one(qn__worker *own) {
    if (!own)
        return;
    qn__pool_destroy(own->pool);
    qn__cpu_release(own);
    qn__free(own);
}

/* The first `count` of them. Without memory the cores compute together. */
static int need_workers(qn__worker *w, int count) {
    qn_error err;
    if (!w->alone)
        w->alone = qn__alloc((uint64_t)w->threads, sizeof *w->alone, &err);
    for (int t = 0; w->alone && t < count; ++t) {
        if (w->alone[t])
            continue;
        if (open_one(w, &w->alone[t], &err) == QN_OK)
            continue;
        close_one(w->alone[t]);
        w->alone[t] = NULL;
        return 0;
    }
    return w->alone != NULL;
}

void qn__cpu_alone_free(qn__worker *w) {
    for (int t = 0; w->alone && t < w->threads; ++t)
        close_one(w->alone[t]);
    qn__free(w->alone);
}

typedef struct alone {
    qn__worker *worker;
    const qn__job *job;
    uint32_t from, items, piece;
    atomic_uint taken; /* pieces */
    atomic_int failed; /* no core begins another piece */
} alone;

/* Takes the next piece. Each core's share is divided into large pieces, then at most one of each
 * smaller power of 2: there are as many of each size as cores. Returns its items, 0: none is left.
 */
static uint32_t take(alone *a, uint32_t *at) {
    const uint32_t threads = (uint32_t)a->worker->threads, share = a->items / threads;
    const uint32_t whole = share / a->piece * threads;
    uint32_t piece = atomic_fetch_add_explicit(&a->taken, 1, memory_order_relaxed);
    if (atomic_load_explicit(&a->failed, memory_order_relaxed))
        return 0;
    *at = a->piece * piece;
    if (piece < whole)
        return a->piece;
    piece -= whole;
    *at = a->piece * whole;
    for (uint32_t size = a->piece / 2; size > 0; size /= 2) {
        if (!(share & size))
            continue;
        if (piece < threads) {
            *at += piece * size;
            return size;
        }
        piece -= threads;
        *at += threads * size;
    }
    return 0;
}

/* Items of the job from `at` on, by one thread. */
static qn_status run_piece(const qn__worker *w, int thread, const qn__job *job, uint32_t at,
                           uint32_t count) {
    qn__worker *own = w->alone[thread];
    qn__applied applied = qn__applied_from(w->program, job->applied, at);
    const qn__batch part = qn__batch_part(job->batch, at, count);
    qn__cpu_pass pass = {.worker = own, .batch = &part, .applied = &applied};
    const double before = own->core[0].busy;
    const qn_status status = qn__cpu_run(&pass, NULL, NULL);
    w->core[thread].busy += own->core[0].busy - before;
    return status;
}

static void body(void *context, int thread) {
    alone *a = context;
    for (uint32_t at, count; (count = take(a, &at)) > 0;)
        if (run_piece(a->worker, thread, a->job, a->from + at, count) != QN_OK)
            atomic_store_explicit(&a->failed, 1, memory_order_relaxed);
}

static void renew_derived(qn__worker *w) {
    if (w->derived.folded)
        return;
    qn__cpu_fold(w);
    for (int t = 0; t < w->threads; ++t)
        if (w->alone[t])
            w->alone[t]->derived.folded = 0;
}

/* All items, by the calling thread. Returns 0 after a failure. */
static int apply_small(qn__worker *w, const qn__job *job, uint32_t from, uint32_t items) {
    const uint32_t piece = piece_of(w);
    qn_status status = QN_OK;
    renew_derived(w);
    for (uint32_t at = 0; status == QN_OK && at < items; at += piece)
        status = run_piece(w, 0, job, from + at, items - at < piece ? items - at : piece);
    return status == QN_OK;
}

/* The same by all cores. */
static int apply_pieces(qn__worker *w, const qn__job *job, uint32_t from, uint32_t items) {
    alone a = {.worker = w, .job = job, .from = from, .items = items, .piece = piece_of(w)};
    renew_derived(w);
    qn__pool_run(w->pool, body, &a);
    return !atomic_load_explicit(&a.failed, memory_order_relaxed);
}

uint32_t qn__cpu_apply_alone(qn__worker *w, const qn__job *job, uint32_t from, uint32_t items) {
    const uint32_t threads = (uint32_t)w->threads, whole = items / threads * threads;
    if (!can_share(w))
        return 0;
    if (threads > 1 && is_small(w, items) && need_workers(w, 1))
        return apply_small(w, job, from, items) ? items : 0;
    if (!goes_by_pieces(w) || items < 2 || whole == 0 || !need_workers(w, w->threads))
        return 0;
    return apply_pieces(w, job, from, whole) ? whole : 0;
}
