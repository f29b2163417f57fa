/* The parts of a call. Each is a launch. Two are under way, so that the device sends, computes and
 * receives at the same time: while part k is computed, the numbers of part k + 1 are sent and what
 * part k - 1 has written is fetched.
 *
 *     lane UP     send 0 | send 1    | send 2    | send 3    |           |
 *     lane WORK          | compute 0 | compute 1 | compute 2 | compute 3 |
 *     lane DOWN                      | fetch 0   | fetch 1   | fetch 2   | fetch 3
 *
 * A part begins only when the host has seen the end of the part before the last one, whose memory
 * it takes: so nothing writes to memory that is still read. A launch waits on the device for the
 * copies of its own numbers, and for nothing else.
 *
 * A launch takes a fraction of a second, because every wait for a device has a limit. */
#include "base/system/clock.h"
#include "device/gpu/gpu_kernel.h"

#include <string.h>

/* Seconds of a part: shorter ones are doubled, longer ones halved. Where copies take most of the
 * time, at least so many bytes in a second, parts are short: the first copy to the device and the
 * last one to the host overlap with nothing. */
static const double short_launch = 0.05, short_copy = 0.01, long_launch = 0.4, copying = 1e9;

/* The last parts become smaller, because their fetching overlaps with little: a fraction of what is
 * left, but not less than a fraction of a part, and than so many bytes to copy. */
enum { OF_WHAT_IS_LEFT = 4, SMALLEST = 16, FEW_BYTES = 1 << 20 };

/* Some items of a span, from `first` on. */
typedef struct part {
    qn__kernel_span span;
    uint64_t first, count;
    uint32_t capacity;
    int alone; /* 1: only the item's fault is asked for */
} part;

/* A call. */
typedef struct flow {
    qn__worker *worker;
    const qn__host_job *host;
    const qn__kernel_job *job;
    void *scratch;
    int64_t *words;
    uint32_t grain, end;          /* grains that are in no span yet */
    qn__kernel_span span;         /* the span that is being cut, */
    uint64_t next;                /* and its next item */
    int any;                      /* 1: there is such a span */
    part part[QN__GPU_PARTS + 1]; /* those under way, and the next one */
    uint32_t begun, taken;        /* parts */
    int more;                     /* 0: the rest of the call need not be computed */
    double since;                 /* when the last part was taken */
    uint64_t each;                /* bytes that are copied for an item */
} flow;

static part *part_of(flow *f, uint32_t number) { return &f->part[number % (QN__GPU_PARTS + 1)]; }

/* ---------------------------------------------------------------- sizes */

/* Bytes that are copied for an item. */
static uint64_t bytes_of_item(const flow *f) {
    const qn__gpu_kernel *k = f->worker->kernel;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->job->arrays; ++i) {
        const qn__kernel_array *a = &f->job->array[i];
        const int copied = a->use == QN__KERNEL_READ      ? !k->resident
                           : a->use == QN__KERNEL_WRITTEN ? f->job->fetch || !k->resident
                                                          : qn__gpu_is_fetched(k, a);
        bytes += copied ? a->each : 0;
    }
    return bytes;
}

/* Two parts are under way when the time of a third one is known, so sizes are far from right for
 * long unless they grow fast. */
static void adapt(const flow *f, uint64_t items, double seconds) {
    qn__gpu_kernel *k = f->worker->kernel;
    const int copies = (double)(items * f->each) > copying * seconds;
    const double enough = copies ? short_copy : short_launch;
    const uint64_t more = k->launch * (seconds < enough / 16 ? 8 : 2);
    if (seconds < enough && items == k->launch && k->launch < k->most)
        k->launch = more < k->most ? more : k->most;
    else if (seconds > long_launch && items > 1)
        k->launch = items / 2;
}

/* Items of the next part. */
static uint64_t size_of(const flow *f) {
    const qn__gpu_kernel *k = f->worker->kernel;
    const uint64_t left = f->span.first + f->span.count - f->next;
    uint64_t most = k->launch < k->most ? k->launch : k->most, least = most / SMALLEST;
    if (least * f->each < FEW_BYTES)
        least = f->each > 0 ? FEW_BYTES / f->each : most;
    if (left / OF_WHAT_IS_LEFT > least)
        least = left / OF_WHAT_IS_LEFT;
    most = least < most ? least : most;
    if (f->job->whole_groups && most < QN__KERNEL_LANES)
        most = QN__KERNEL_LANES;
    if (most > QN__KERNEL_LANES)
        most -= most % QN__KERNEL_LANES;
    most = most > 0 ? most : 1;
    return left < most ? left : most;
}

/* Finds a span that has items left. Where the rest of the last span depends on what was taken, all
 * of it must have been taken. 0: there is none, or not yet. */
static int find_span(flow *f) {
    const qn__kernel_job *job = f->job;
    while (!f->any || f->next == f->span.first + f->span.count) {
        if (f->any && job->more && f->begun > f->taken)
            return 0;
        if (!f->any || !job->more || !job->more(f->host->context, f->scratch, f->words, &f->span)) {
            const uint32_t left = f->end - f->grain;
            const uint32_t n =
                left > 0 ? job->span(f->host->context, f->grain, left, f->words, &f->span) : 0;
            f->grain = n > 0 ? f->grain + n : f->end;
            f->any = n > 0;
            if (n == 0)
                return 0;
        }
        f->next = f->span.first;
    }
    return 1;
}

/* The next part. NULL: there is none, or not yet. */
static part *cut(flow *f) {
    if (!f->more || !find_span(f))
        return NULL;
    part *p = part_of(f, f->begun);
    *p = (part){.span = f->span,
                .first = f->next,
                .count = size_of(f),
                .capacity = f->begun % QN__GPU_PARTS};
    f->next += p->count;
    return p;
}

/* ---------------------------------------------------------------- copies */

/* The items' numbers of an array that is READ; NULL: there are none. */
static const char *read_from(const flow *f, const part *p, uint32_t i) {
    const qn__kernel_array *a = &f->job->array[i];
    if (a->use != QN__KERNEL_READ)
        return NULL;
    if (a->data)
        return (const char *)a->data + p->first * a->each;
    return p->span.from[i] ? (const char *)p->span.from[i] + (p->first - p->span.first) * a->each
                           : NULL;
}

static uint32_t list_up(const flow *f, const part *p, qn__gpu_copy *copy) {
    const qn__gpu_kernel *k = f->worker->kernel;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->job->arrays && !k->resident; ++i) {
        const char *from = read_from(f, p, i);
        if (from)
            copy[n++] = (qn__gpu_copy){.memory = qn__gpu_array_memory(k, p->capacity, i),
                                       .bytes = (size_t)(p->count * f->job->array[i].each),
                                       .from = from};
    }
    return n;
}

static uint32_t list_down(const flow *f, const part *p, qn__gpu_copy *copy) {
    const qn__gpu_kernel *k = f->worker->kernel;
    const uint64_t from = k->resident ? p->first : 0, to = p->first - p->span.first;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->job->arrays; ++i) {
        const qn__kernel_array *a = &f->job->array[i];
        qn__gpu_copy one = {.memory = qn__gpu_array_memory(k, p->capacity, i),
                            .bytes = (size_t)(p->count * a->each)};
        if (qn__gpu_is_fetched(k, a) && !a->unwanted)
            one.to = k->at[i].host;
        else if (a->use == QN__KERNEL_WRITTEN && (f->job->fetch || !k->resident)) {
            one.offset = (size_t)(from * a->each);
            one.to = (char *)p->span.to[i] + to * a->each;
        }
        if (one.to)
            copy[n++] = one;
    }
    return n;
}

/* Sends the numbers of a part and fetches what another one has written; each may be NULL. */
static qn_status exchange(const flow *f, const part *up, const part *down, qn_error *err) {
    qn__gpu_copy ups[QN__KERNEL_ARRAYS], downs[QN__KERNEL_ARRAYS];
    const uint32_t u = up ? list_up(f, up, ups) : 0, d = down ? list_down(f, down, downs) : 0;
    return qn__gpu_exchange(f->worker->driver, f->worker->gpu, ups, u, downs, d, err);
}

/* ---------------------------------------------------------------- a launch */

static qn_status start(const flow *f, const part *p, qn_error *err) {
    const qn__worker *w = f->worker;
    const qn__gpu_kernel *k = w->kernel;
    qn__gpu_argument argument[QN__KERNEL_ARRAYS + 5];
    uint32_t n = 0;
    argument[n++] = (qn__gpu_argument){.kind = 'M', .value.memory = &k->buffer[p->capacity].faults};
    argument[n++] = (qn__gpu_argument){.kind = 'M', .value.memory = &k->numbers};
    for (uint32_t i = 0; i < k->arrays; ++i)
        argument[n++] = (qn__gpu_argument){.kind = 'M',
                                           .value.memory = qn__gpu_array_memory(k, p->capacity, i)};
    argument[n++] = (qn__gpu_argument){.kind = 'U', .value.U = k->resident ? p->first : 0};
    argument[n++] = (qn__gpu_argument){.kind = 'U', .value.U = p->first};
    argument[n++] = (qn__gpu_argument){.kind = 'u', .value.u = (uint32_t)p->count};
    const uint32_t groups = (uint32_t)qn__gpu_pieces(p->count, QN__KERNEL_LANES);
    return w->driver->start(w->gpu, k->program, groups, argument, n, err);
}

static qn_status take_totals(const flow *f, qn_error *err) {
    const qn__worker *w = f->worker;
    return qn__gpu_totals_take(w->driver, w->gpu, f->job, &w->kernel->totals, f->host->context,
                               f->scratch, err);
}

static qn_status add_totals(const flow *f, const part *p, qn_error *err) {
    const qn__worker *w = f->worker;
    const qn__gpu_memory *array[QN__KERNEL_ARRAYS];
    for (uint32_t i = 0; i < w->kernel->arrays; ++i)
        array[i] = qn__gpu_array_memory(w->kernel, p->capacity, i);
    return qn__gpu_totals_add(w->driver, w->gpu, f->job, &w->kernel->totals, array, p->first,
                              p->count, err);
}

/* Starts the kernel, whose numbers are on their way, and asks for its faults. */
static qn_status launch(const flow *f, const part *p, qn_error *err) {
    const qn__worker *w = f->worker;
    const qn__gpu_driver *driver = w->driver;
    const qn__gpu_memory *faults = &w->kernel->buffer[p->capacity].faults;
    const size_t bytes = QN__GPU_FAULT_WORDS * sizeof(uint32_t);
    qn_status status = QN_OK;
    if (qn__gpu_totals_full(&w->kernel->totals, p->count))
        status = take_totals(f, err);
    if (status == QN_OK)
        status = driver->clear(w->gpu, faults, 0, bytes, err);
    if (status == QN_OK)
        status = driver->follow(w->gpu, QN__GPU_UP, err);
    if (status == QN_OK)
        status = start(f, p, err);
    if (status == QN_OK && !p->alone)
        status = add_totals(f, p, err);
    if (status == QN_OK)
        status = driver->post(w->gpu, faults, bytes, p->capacity, err);
    return status == QN_OK ? driver->flush(w->gpu, err) : status;
}

/* Waits for the launch. */
static qn_status await(const flow *f, const part *p, uint32_t faults[QN__GPU_FAULT_WORDS],
                       qn_error *err) {
    const void *words = NULL;
    const qn_status status = f->worker->driver->fetch(f->worker->gpu, p->capacity, &words, err);
    if (status == QN_OK)
        memcpy(faults, words, QN__GPU_FAULT_WORDS * sizeof *faults);
    return status;
}

/* The item alone, once more: the bits of its fault. */
static qn_status find_fault(const flow *f, const part *p, uint64_t item, qn_error *err) {
    uint32_t faults[QN__GPU_FAULT_WORDS];
    part one = *p;
    one.first = item;
    one.count = 1;
    one.alone = 1;
    qn_status status = exchange(f, &one, NULL, err);
    if (status == QN_OK)
        status = launch(f, &one, err);
    if (status == QN_OK)
        status = await(f, &one, faults, err);
    if (status == QN_OK)
        f->job->fault(f->host->context, item, (uint64_t)faults[2] << 32 | faults[1]);
    return status;
}

/* ---------------------------------------------------------------- parts */

/* Gives the items of a part before the first faulty one to the job. */
static void take(flow *f, const part *p, uint64_t good) {
    const void *values[QN__KERNEL_ARRAYS];
    const double seconds = qn__now() - f->since;
    for (uint32_t i = 0; i < f->worker->kernel->arrays; ++i)
        values[i] = f->worker->kernel->at[i].host;
    adapt(f, p->count, seconds);
    f->more &=
        f->job->take(f->host->context, f->scratch, f->words, p->first, good, values, seconds) &&
        good == p->count;
    f->since = qn__now();
}

/* Begins a part and ends the oldest one that is under way; each may be NULL. */
static qn_status go_on(flow *f, const part *next, const part *oldest, qn_error *err) {
    uint32_t faults[QN__GPU_FAULT_WORDS] = {0};
    qn_status status = oldest ? await(f, oldest, faults, err) : QN_OK;
    if (faults[0] != 0)
        next = NULL;
    if (status == QN_OK)
        status = exchange(f, next, oldest, err);
    if (status == QN_OK && next) {
        status = launch(f, next, err);
        ++f->begun;
    }
    if (status != QN_OK || !oldest)
        return status;
    ++f->taken;
    if (faults[0] == 0) {
        take(f, oldest, oldest->count);
        return QN_OK;
    }
    const uint64_t good = ~faults[0];
    status = find_fault(f, oldest, oldest->first + good, err);
    if (status == QN_OK)
        take(f, oldest, good);
    return status;
}

/* Waits for parts that nobody needs any more: their memory is used again. */
static qn_status end_rest(flow *f, qn_error *err) {
    uint32_t faults[QN__GPU_FAULT_WORDS];
    qn_status status = QN_OK;
    for (; f->taken < f->begun && status == QN_OK; ++f->taken)
        status = await(f, part_of(f, f->taken), faults, err);
    return status;
}

qn_status qn__gpu_compute_spans(qn__worker *w, const qn__host_job *host, void *scratch,
                                uint32_t first, uint32_t count, int64_t *words, qn_error *err) {
    flow f = {.worker = w,
              .host = host,
              .job = host->kernel,
              .scratch = scratch,
              .words = words,
              .grain = first,
              .end = first + count,
              .more = 1,
              .since = qn__now()};
    qn_status status = QN_OK;
    f.each = bytes_of_item(&f);
    w->kernel->totals.items = 0; /* of a call that failed */
    while (status == QN_OK && f.more) {
        const part *next = cut(&f), *oldest = NULL;
        if (f.begun > f.taken && (!next || f.begun - f.taken == QN__GPU_PARTS))
            oldest = part_of(&f, f.taken);
        if (!next && !oldest)
            break;
        status = go_on(&f, next, oldest, err);
    }
    if (status == QN_OK)
        status = end_rest(&f, err);
    return status == QN_OK ? take_totals(&f, err) : status;
}
