/* What one thread does with a range of items. The compiled program writes outputs to their arrays.
 * Values for totals go to memory of the thread, a piece of items at a time, and are then added:
 *
 *   items of a grain   [ piece ][ piece ][ piece ]
 *   program                |  outputs --> array of the kernel
 *                          +- values  --> memory of the thread --> totals of the thread
 *
 * A piece fits the cache of a core, so its values are added before they leave it. */
#include "userkernel/execution/user_grains.h"

#include "base/memory.h"
#include "userkernel/execution/user_fault.h"
#include <math.h>

/* Items whose values for sums are in memory at once, in the cache of a core; and those of a call
 * without sums, so that a call is not long. */
enum { PIECE = 1024, CALL = 4096 };
/* Bytes of the values of a part, and of whether items assigned them, or to which bin. */
enum { EACH = PIECE * (sizeof(uint64_t) + sizeof(int32_t)) };

static int is_summed(const qn__user_part *p) { return p->use >= QN__USER_SUM; }

static int has_sums(const qn__user_source *s) {
    for (uint32_t i = 0; i < s->parts; i++)
        if (is_summed(&s->part[i]))
            return 1;
    return 0;
}

void qn__user_thread_close(void *thread) {
    qn__user_thread *t = thread;
    if (t) {
        qn__user_totals_close(t->total);
        qn__free(t->memory);
    }
    qn__free(t);
}

/* A place for the values of a piece, for each part. */
qn__user_thread *qn__user_thread_open(const qn__user_job *job, qn_error *err) {
    const qn__user_source *s = job->source;
    const int sums = has_sums(s);
    qn__user_thread *t = qn__alloc(1, sizeof *t, err);
    if (t && sums)
        t->memory = qn__alloc(s->parts, EACH, err);
    if (!t || (sums && !t->memory) || qn__user_totals_open(s, t->total, err) != QN_OK) {
        qn__user_thread_close(t);
        return NULL;
    }
    qn__user_thread_begin(job, t);
    return t;
}

void qn__user_thread_begin(const qn__user_job *job, qn__user_thread *t) {
    const qn__user_source *s = job->source;
    if (t->adds)
        qn__user_totals_clear(s, t->total);
    t->seconds = 0;
    t->iteration = job->iteration;
    t->adds = !job->without_totals;
    for (uint32_t i = 0; i < s->parts; i++) {
        char *own = is_summed(&s->part[i]) ? (char *)t->memory + i * EACH : NULL;
        t->array[i] = own ? own : job->array[i];
        t->array[QN__USER_PARTS + i] = own ? own + PIECE * sizeof(uint64_t) : NULL;
    }
}

/* The value that an item assigned to a real sum is an infinity. */
static int is_infinite(const qn__user_part *p, const void *value) {
    return p->type == QN__USER_F32 ? isinf(*(const float *)value) : isinf(*(const double *)value);
}

/* The program reports an infinity for a sum as it reports NaN. */
static uint64_t tell_infinity(const qn__user_job *job, const qn__user_thread *t, uint64_t fault) {
    const qn__user_source *s = job->source;
    uint64_t infinite = 0;
    for (uint32_t i = s->parts; i-- > 0;) {
        const uint64_t bit = (uint64_t)1 << (QN__USER_FAULT_NAN + i);
        if (!(fault & bit) || s->part[i].use != QN__USER_SUM ||
            !is_infinite(&s->part[i], t->array[i]))
            continue;
        infinite = QN__USER_FAULT_INFINITE(i);
        fault &= ~bit;
    }
    return fault ? fault : infinite;
}

uint64_t qn__user_item_fault(const qn__user_job *job, qn__user_thread *t, int64_t item) {
    const qn__user_source *s = job->source;
    const qn__user_call call = qn__user_call_of(job, t->array, t->iteration);
    const uint64_t fault = tell_infinity(job, t, job->grain(&call, item, 1));
    for (uint32_t i = 0; i < s->parts && fault == 0; i++) {
        qn__user_total one = {.count = 0};
        if (is_summed(&s->part[i]) &&
            qn__user_total_add(&one, &s->part[i], t->array[i], t->array[QN__USER_PARTS + i], item,
                               1) >= 0)
            return QN__USER_FAULT_INFINITE(i);
    }
    return fault;
}

static void find_fault(const qn__user_job *job, qn__user_thread *t, int64_t first, int64_t count,
                       atomic_int_fast64_t *faulty) {
    int64_t item = first;
    while (item < first + count && item < atomic_load(faulty) &&
           qn__user_item_fault(job, t, item) == 0)
        item++;
    if (item < first + count)
        qn__user_fault_note(faulty, item);
}

static void compute_piece(const qn__user_job *job, qn__user_thread *t, int64_t first, int64_t count,
                          atomic_int_fast64_t *faulty) {
    const qn__user_source *s = job->source;
    const qn__user_call call = qn__user_call_of(job, t->array, t->iteration);
    int wrong = job->grain(&call, first, count) != 0;
    for (uint32_t i = 0; i < s->parts && !wrong && t->adds; i++)
        if (is_summed(&s->part[i]))
            wrong = qn__user_total_add(&t->total[i], &s->part[i], t->array[i],
                                       t->array[QN__USER_PARTS + i], first, count) >= 0;
    if (wrong)
        find_fault(job, t, first, count, faulty);
}

void qn__user_take_values(const qn__user_job *job, qn__user_thread *t, const void *const *array,
                          int64_t first, int64_t count) {
    const qn__user_source *s = job->source;
    for (uint32_t i = 0; i < s->parts && t->adds; i++)
        if (is_summed(&s->part[i]) && array[i])
            qn__user_total_add(&t->total[i], &s->part[i], array[i], array[QN__USER_PARTS + i],
                               first, count);
}

void qn__user_items(const qn__user_job *job, qn__user_thread *t, int64_t first, int64_t count,
                    atomic_int_fast64_t *faulty) {
    const int64_t most = t->memory ? PIECE : CALL;
    for (int64_t at = first, end = first + count; at < end && at <= atomic_load(faulty); at += most)
        compute_piece(job, t, at, end - at < most ? end - at : most, faulty);
}
