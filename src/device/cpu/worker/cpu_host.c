/* Host jobs: functions over grains. The threads take ranges of grains that shrink towards the end,
 * so that all finish nearly together, and a range is long enough to be worth its preparation. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "device/cpu/worker/cpu_worker.h"

/* A thread takes this part of an equal share of what is left. */
enum { EVEN = 2, UNEVEN = 16 };

typedef struct one_thread {
    void *scratch;
    int64_t *words;
    uint32_t failed_at;
    qn_error error;
} one_thread;

typedef struct host_pass {
    qn__worker *worker;
    const qn__host_job *job;
    uint32_t first, count;
    atomic_uint taken;     /* of `count` */
    atomic_uint failed_at; /* the lowest range that failed; UINT32_MAX: none */
    int64_t *words;
    one_thread *thread;
} host_pass;

/* The next range of a thread, relative to the first grain; returns its length, or 0. */
static uint32_t take(host_pass *p, uint32_t *from) {
    const uint32_t ahead = p->job->uneven ? UNEVEN : EVEN;
    const uint32_t parts = p->worker->threads > 1 ? ahead * (uint32_t)p->worker->threads : 1;
    unsigned taken = atomic_load(&p->taken);
    uint32_t size;
    do {
        if (taken == p->count)
            return 0;
        size = (p->count - taken) / parts;
        size = size > 0 ? size : 1;
    } while (!atomic_compare_exchange_weak(&p->taken, &taken, taken + size));
    *from = taken;
    return size;
}

/* Lower ranges are already taken, so the lowest failure is found. */
static void note_failure(host_pass *p, one_thread *own, uint32_t from) {
    unsigned before = atomic_load(&p->failed_at);
    own->failed_at = from;
    while (from < before && !atomic_compare_exchange_weak(&p->failed_at, &before, from))
        ;
}

/* The first thread adds to the caller's words. */
static int64_t *words_of(const host_pass *p, int thread, qn_error *err) {
    if (thread == 0 || p->job->apart)
        return p->words;
    return qn__alloc(p->job->words, sizeof(int64_t), err);
}

static int begin(host_pass *p, one_thread *own, int thread) {
    if (!(own->words = words_of(p, thread, &own->error)))
        return 0;
    return !p->job->open || (own->scratch = p->job->open(p->job->context, &own->error));
}

static void compute(void *context, int thread) {
    host_pass *p = context;
    one_thread *own = &p->thread[thread];
    const double begun = qn__now();
    uint32_t from, size;
    own->failed_at = UINT32_MAX;
    while ((size = take(p, &from)) > 0 && from < atomic_load(&p->failed_at)) {
        if (!own->words && !begin(p, own, thread)) {
            note_failure(p, own, from);
            break;
        }
        if (p->job->grains(p->job->context, own->scratch, p->first + from, size, own->words,
                           &own->error) != QN_OK)
            note_failure(p, own, from);
    }
    p->worker->core[thread].busy += qn__now() - begun;
}

static const one_thread *failed_thread(const host_pass *p) {
    const one_thread *failed = NULL;
    for (int t = 0; t < p->worker->threads; ++t) {
        const one_thread *own = &p->thread[t];
        if (own->failed_at != UINT32_MAX && (!failed || own->failed_at < failed->failed_at))
            failed = own;
    }
    return failed;
}

/* Adds the results of all threads and frees them; reports the lowest failure. */
static qn_status finish(host_pass *p, qn_error *err) {
    const one_thread *failed = failed_thread(p);
    for (int t = 0; t < p->worker->threads; ++t) {
        one_thread *own = &p->thread[t];
        if (own->scratch && p->job->finish && !failed)
            p->job->finish(p->job->context, own->scratch, p->words);
        if (own->scratch)
            p->job->close(own->scratch);
        if (!own->words || own->words == p->words)
            continue;
        for (uint64_t i = 0; i < p->job->words; ++i)
            p->words[i] += own->words[i];
        qn__free(own->words);
    }
    if (failed && err)
        *err = failed->error;
    return failed ? failed->error.status : QN_OK;
}

qn_status qn__cpu_host(qn__worker *w, const qn__host_job *job, uint32_t first, uint32_t count,
                       const qn__outlet *sums, qn_error *err) {
    host_pass p = {.worker = w, .job = job, .first = first, .count = count, .words = sums->words};
    p.thread = qn__alloc((uint64_t)w->threads, sizeof *p.thread, err);
    if (!p.thread)
        return QN_MEMORY;
    atomic_init(&p.taken, 0);
    atomic_init(&p.failed_at, UINT32_MAX);
    /* Threads are not woken for a single grain. */
    for (int t = 1; count == 1 && t < w->threads; ++t)
        p.thread[t].failed_at = UINT32_MAX;
    if (count == 1)
        compute(&p, 0);
    else
        qn__pool_run(w->pool, compute, &p);
    const qn_status status = finish(&p, err);
    qn__free(p.thread);
    if (status == QN_OK)
        sums->tally->items += count;
    return status;
}
