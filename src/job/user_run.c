#include "job/user_run.h"

#include "base/float_state.h"
#include "base/memory.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Items whose values for sums are in memory at once, in the cache of a core; and of a grain. */
enum { PIECE = 1024, LEAST = 64, MOST = 1 << 16 };

/* Beyond those of qn__user_grain: a value of a sum is infinite; with the part's number. */
#define FAULT_INFINITE(part) ((uint64_t)1 << 63 | (part))

typedef struct worker {
    void *array[2 * QN__USER_PARTS]; /* those of the job, and own ones for the other results */
    qn__user_total *total;           /* of each part */
    void *memory;
} worker;

typedef struct run {
    const qn__user_job *job;
    qn__user_total *total; /* of each worker and part */
    worker *worker;
    int64_t items, grain;
    atomic_int_fast64_t next;
    atomic_int_fast64_t faulty; /* the first item that is known to be impossible, or INT64_MAX */
} run;

int64_t qn__user_job_items(const qn__user_job *job) {
    return job->extent[0] * job->extent[1] * job->extent[2];
}

/* ------------------------------------------------------------------ memory */

static int is_summed(const qn__user_part *p) { return p->use >= QN__USER_SUM; }

static int has_sums(const qn__user_source *s) {
    for (uint32_t i = 0; i < s->parts; i++)
        if (is_summed(&s->part[i]))
            return 1;
    return 0;
}

/* Gives a worker a place for the values of a piece. */
static qn_status open_worker(const qn__user_job *job, worker *w, qn__user_total *total,
                             qn_error *err) {
    const qn__user_source *s = job->source;
    const size_t each = PIECE * sizeof(uint64_t) + PIECE;
    w->total = total;
    w->memory = has_sums(s) ? qn__alloc(s->parts, each, err) : NULL;
    if (has_sums(s) && !w->memory)
        return QN_MEMORY;
    for (uint32_t i = 0; i < s->parts; i++) {
        char *own = is_summed(&s->part[i]) ? (char *)w->memory + i * each : NULL;
        w->array[i] = own ? own : job->array[i];
        w->array[QN__USER_PARTS + i] = own ? own + PIECE * sizeof(uint64_t) : NULL;
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ computing */

static qn__user_call call_of(const run *r, const worker *w) {
    qn__user_call call = {.array = w->array,
                          .scalar = r->job->scalar,
                          .length = r->job->length,
                          .seed = r->job->seed,
                          .iteration = r->job->iteration};
    memcpy(call.extent, r->job->extent, sizeof call.extent);
    return call;
}

static void note_fault(run *r, int64_t item) {
    int_fast64_t known = atomic_load(&r->faulty);
    while (item < known && !atomic_compare_exchange_weak(&r->faulty, &known, item))
        ;
}

/* One item again, alone: what is wrong with it. */
static uint64_t fault_of(const run *r, const worker *w, int64_t item) {
    const qn__user_source *s = r->job->source;
    const qn__user_call call = call_of(r, w);
    const uint64_t fault = r->job->grain(&call, item, 1);
    for (uint32_t i = 0; i < s->parts && fault == 0; i++) {
        qn__user_total one = {.count = 0};
        if (is_summed(&s->part[i]) &&
            qn__user_total_add(&one, &s->part[i], w->array[i], w->array[QN__USER_PARTS + i], item,
                               1) >= 0)
            return FAULT_INFINITE(i);
    }
    return fault;
}

static void find_fault(run *r, const worker *w, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count && i < atomic_load(&r->faulty); i++)
        if (fault_of(r, w, i) != 0)
            note_fault(r, i);
}

static void compute_piece(run *r, const worker *w, int64_t first, int64_t count) {
    const qn__user_source *s = r->job->source;
    const qn__user_call call = call_of(r, w);
    int wrong = r->job->grain(&call, first, count) != 0;
    for (uint32_t i = 0; i < s->parts && !wrong; i++)
        if (is_summed(&s->part[i]))
            wrong = qn__user_total_add(&w->total[i], &s->part[i], w->array[i],
                                       w->array[QN__USER_PARTS + i], first, count) >= 0;
    if (wrong)
        find_fault(r, w, first, count);
}

static int is_stopped(const qn__user_job *job) {
    return job->stop && atomic_load_explicit(job->stop, memory_order_relaxed);
}

/* Grains are taken in ascending order, and those before a faulty item are completed, so the first
 * faulty item of all is found whatever the number of threads. */
static void work(void *context, int thread) {
    run *r = context;
    const worker *w = &r->worker[thread];
    const int64_t most = has_sums(r->job->source) ? PIECE : r->grain;
    qn__float_state_set();
    for (;;) {
        const int64_t first = atomic_fetch_add(&r->next, r->grain);
        if (first >= r->items || first > atomic_load(&r->faulty) || is_stopped(r->job))
            return;
        const int64_t end = first + (r->grain < r->items - first ? r->grain : r->items - first);
        for (int64_t at = first; at < end; at += most)
            compute_piece(r, w, at, end - at < most ? end - at : most);
    }
}

/* ------------------------------------------------------------------ faults */

static uint32_t lowest(uint64_t bits) { return (uint32_t)__builtin_ctzll(bits); }

static void name_item(const qn__user_job *job, int64_t item, char *text, size_t size) {
    const int64_t x = item % job->extent[2], row = item / job->extent[2];
    const int64_t y = row % job->extent[1], z = row / job->extent[1];
    if (job->source->dimensions == 1)
        snprintf(text, size, "item %" PRId64, x);
    else if (job->source->dimensions == 2)
        snprintf(text, size, "item (%" PRId64 ", %" PRId64 ")", y, x);
    else
        snprintf(text, size, "item (%" PRId64 ", %" PRId64 ", %" PRId64 ")", z, y, x);
}

static const char *describe(const qn__user_job *job, uint64_t fault, qn_error *err) {
    const qn__user_part *part = job->source->part;
    const uint64_t reads = fault >> QN__USER_FAULT_READ & 0xFFFFFF;
    const uint64_t nans = fault >> QN__USER_FAULT_NAN & 0xFFFFFF;
    if (fault >> 63) {
        qn__fail(err, QN_NUMERIC, "the value for the sum \"%s\" is infinite",
                 part[fault & 0xFF].name);
        return "guard the computation, for example with fmin and fmax";
    }
    if (fault & QN__USER_FAULT_DIVISION) {
        qn__fail(err, QN_NUMERIC, "an integer is divided by zero");
        return "test the divisor first";
    }
    if (fault & QN__USER_FAULT_ELEMENT) {
        qn__fail(err, QN_NUMERIC, "an index of a local array is out of range");
        return "test the index first, or make the array longer";
    }
    if (reads) {
        const qn__user_part *p = &part[lowest(reads)];
        qn__fail(err, QN_NUMERIC,
                 p->use == QN__USER_HALOED ? "a neighbour in \"%s\" is beyond its reach of %u"
                                           : "an index of \"%s\" is out of range (dimensions: %u)",
                 p->name, (unsigned)(p->use == QN__USER_HALOED ? p->halo : p->dimensions));
        return p->use == QN__USER_HALOED ? "declare a wider halo"
                                         : "test the indices first: length gives the lengths";
    }
    qn__fail(err, QN_NUMERIC, "the result \"%s\" is not a number (NaN)", part[lowest(nans)].name);
    return "guard the computation: 0 / 0, infinities and NaN in an input lead to it";
}

static qn_status report(const run *r, qn_error *err) {
    char item[96];
    const int64_t at = atomic_load(&r->faulty);
    const char *remedy = describe(r->job, fault_of(r, &r->worker[0], at), err);
    name_item(r->job, at, item, sizeof item);
    if (r->job->iterations > 1)
        qn__at(err, "%s of iteration %" PRId64, item, r->job->iteration);
    else
        qn__at(err, "%s", item);
    return qn__remedy(err, QN_NUMERIC, "%s", remedy);
}

/* ------------------------------------------------------------------ the job */

static int64_t grain_of(const qn__user_job *job, int64_t items, int threads) {
    if (job->items_of_grain > 0)
        return job->items_of_grain;
    const int64_t some = items / ((int64_t)threads * 128);
    return some < LEAST ? LEAST : some > MOST ? MOST : some;
}

static void add_up(const run *r, int threads, qn__user_total *total) {
    const qn__user_source *s = r->job->source;
    for (int t = 0; t < threads; t++)
        for (uint32_t i = 0; i < s->parts; i++)
            if (is_summed(&s->part[i]))
                qn__user_total_merge(&total[i], &s->part[i], &r->worker[t].total[i]);
}

qn_status qn__user_job_run(const qn__user_job *job, qn__pool *pool, qn__user_total *total,
                           qn_error *err) {
    const int threads = qn__pool_threads(pool);
    run r = {.job = job, .items = qn__user_job_items(job), .faulty = INT64_MAX};
    r.grain = grain_of(job, r.items, threads);
    r.worker = qn__alloc((uint64_t)threads, sizeof *r.worker, err);
    r.total = qn__alloc((uint64_t)threads * QN__USER_PARTS, sizeof *r.total, err);
    qn_status status = r.worker && r.total ? QN_OK : QN_MEMORY;
    for (int t = 0; t < threads && status == QN_OK; t++)
        status = open_worker(job, &r.worker[t], r.total + (size_t)t * QN__USER_PARTS, err);
    if (status == QN_OK) {
        qn__pool_run(pool, work, &r);
        if (is_stopped(job))
            status = qn__fail(err, QN_INTERRUPTED, "the run of the kernel was stopped");
        else if (atomic_load(&r.faulty) != INT64_MAX)
            status = report(&r, err);
        else
            add_up(&r, threads, total);
    }
    for (int t = 0; t < threads && r.worker; t++)
        qn__free(r.worker[t].memory);
    qn__free(r.worker);
    qn__free(r.total);
    return status;
}
