/* Host jobs that have a kernel: a user's kernel, computed by the device. Arrays that any item may
 * read are on the device as a whole. Numbers of items are sent for each launch, and what the kernel
 * writes is fetched; unless the device has all runs to itself and enough memory. Then it keeps
 * these arrays, too, and what one run has written is what the next one reads. Totals of the items'
 * values are made on the device (gpu_totals.h); only values without such totals are fetched. A
 * launch takes a fraction of a second, because every wait for a device has a limit. */
#include "base/clock.h"
#include "base/memory.h"
#include "device/gpu/gpu_totals.h"
#include "device/gpu/gpu_worker.h"

#include <string.h>

/* Items of the first launch, and of the largest. */
enum { FIRST = 1024, MOST = 1 << 24 };
/* Seconds of a launch: shorter ones are doubled, longer ones halved. */
static const double short_launch = 0.05, long_launch = 0.4;

typedef struct array_place {
    qn__gpu_memory memory;
    const void *data; /* of an array that is kept: what the memory holds */
    uint64_t version;
    int newer;  /* 1: a run has written it, and the host may not have it */
    void *host; /* of VALUES without totals: a place for those of a launch */
} array_place;

struct qn__gpu_kernel {
    const char *text;
    qn__gpu_program *program;
    qn__gpu_memory faults, numbers;
    qn__gpu_totals totals;
    array_place at[QN__KERNEL_ARRAYS];
    uint32_t arrays;
    int resident;    /* 1: it keeps arrays of items, but for VALUES, as a whole */
    int asked;       /* qn__kernel_job.resident of the last run */
    uint64_t room;   /* items of a launch at most */
    uint64_t launch; /* items of the next launch */
};

enum { FAULT_WORDS = 3 };

/* ---------------------------------------------------------------- room */

static double mebibytes(uint64_t bytes) { return (double)bytes / (1 << 20); }

static qn_status too_small(const qn__worker *w, const qn__kernel_job *job, uint64_t bytes,
                           uint64_t usable, qn_error *err) {
    qn__fail(err, QN_DEVICE, "%s: the kernel's arrays need %.1f MiB, the device allows %.1f MiB",
             w->facts->name, mebibytes(bytes), mebibytes(usable));
    return qn__remedy(err, QN_DEVICE, "%s", job->smaller);
}

/* Whether the device has the numbers of a launch only. */
static int is_of_items(const qn__kernel_array *a, int resident) {
    return a->use == QN__KERNEL_VALUES || (a->use != QN__KERNEL_WHOLE && !resident);
}

static uint64_t bytes_of(const qn__kernel_job *job, const qn__kernel_array *a) {
    return a->use == QN__KERNEL_WHOLE ? a->bytes : job->items * a->each;
}

/* Drivers and displays need some memory: a sixteenth is left to them, and half of the rest is for
 * the numbers of a launch at most. */
static qn_status find_room(const qn__worker *w, const qn__kernel_job *job, int resident,
                           uint64_t *room, qn_error *err) {
    const uint64_t usable = w->facts->memory - w->facts->memory / 16;
    uint64_t whole = qn__gpu_totals_bytes(w->facts, job), each = 0, widest = 1;
    for (uint32_t i = 0; i < job->arrays; ++i) {
        const qn__kernel_array *a = &job->array[i];
        const int of_items = is_of_items(a, resident);
        if (!of_items && bytes_of(job, a) > w->facts->largest)
            return too_small(w, job, bytes_of(job, a), w->facts->largest, err);
        whole += of_items ? 0 : bytes_of(job, a);
        each += of_items ? a->each : 0;
        widest = of_items && a->each > widest ? a->each : widest;
    }
    *room = job->items < MOST ? job->items : MOST;
    if (*room > w->facts->largest / widest)
        *room = w->facts->largest / widest;
    if (whole < usable && each > 0 && *room > (usable - whole) / 2 / each)
        *room = (usable - whole) / 2 / each;
    if (whole >= usable || *room == 0 || (job->whole_groups && *room < QN__KERNEL_LANES))
        return too_small(w, job, whole + each, usable, err);
    return QN_OK;
}

static int is_fetched(const qn__gpu_kernel *k, const qn__kernel_array *a) {
    return a->use == QN__KERNEL_VALUES && !(a->summed && k->totals.count > 0);
}

static void release_room(qn__worker *w) {
    qn__gpu_kernel *k = w->kernel;
    for (uint32_t i = 0; i < k->arrays; ++i) {
        w->driver->release(w->gpu, &k->at[i].memory);
        qn__free(k->at[i].host);
        k->at[i] = (array_place){0};
    }
    w->driver->release(w->gpu, &k->faults);
    w->driver->release(w->gpu, &k->numbers);
}

static qn_status make_room(qn__worker *w, const qn__kernel_job *job, qn_error *err) {
    qn__gpu_kernel *k = w->kernel;
    k->asked = job->resident;
    k->resident = job->resident && find_room(w, job, 1, &k->room, NULL) == QN_OK;
    qn_status status = k->resident ? QN_OK : find_room(w, job, 0, &k->room, err);
    if (status == QN_OK)
        status = w->driver->allocate(w->gpu, FAULT_WORDS * sizeof(uint32_t), &k->faults, err);
    if (status == QN_OK)
        status = w->driver->allocate(w->gpu, job->count * sizeof *job->numbers, &k->numbers, err);
    for (uint32_t i = 0; i < job->arrays && status == QN_OK; ++i) {
        const qn__kernel_array *a = &job->array[i];
        const uint64_t bytes = is_of_items(a, k->resident) ? k->room * a->each : bytes_of(job, a);
        status = w->driver->allocate(w->gpu, (size_t)bytes, &k->at[i].memory, err);
        if (status != QN_OK || !is_fetched(k, a))
            continue;
        k->at[i].host = qn__alloc(k->room, a->each, err);
        status = k->at[i].host ? QN_OK : QN_MEMORY;
    }
    return status;
}

/* ---------------------------------------------------------------- preparing */

void qn__gpu_kernel_release(qn__worker *w) {
    qn__gpu_kernel *k = w->kernel;
    if (!k)
        return;
    release_room(w);
    qn__gpu_totals_release(w->driver, w->gpu, &k->totals);
    w->driver->drop(w->gpu, k->program);
    qn__free(k);
    w->kernel = NULL;
}

/* Whether a memory holds an array; else what an earlier run wrote may be it, and takes its place.
 */
static int has_array(qn__gpu_kernel *k, const qn__kernel_job *job, uint32_t i) {
    const qn__kernel_array *a = &job->array[i];
    for (uint32_t j = i, n = 0; n < job->arrays; j = (j + 1) % job->arrays, ++n) {
        const array_place found = k->at[j];
        if (found.data != a->data || found.version != a->version ||
            (j != i && (job->array[j].use != QN__KERNEL_WRITTEN || !k->resident)))
            continue;
        k->at[j] = k->at[i];
        k->at[i] = found;
        return 1;
    }
    return 0;
}

/* Sends what the device must have as a whole and does not have yet. */
static qn_status send_whole(qn__worker *w, const qn__kernel_job *job, qn_error *err) {
    qn__gpu_kernel *k = w->kernel;
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < job->arrays && status == QN_OK; ++i) {
        const qn__kernel_array *a = &job->array[i];
        array_place *at = &k->at[i];
        if (is_of_items(a, k->resident) || a->use == QN__KERNEL_WRITTEN || has_array(k, job, i))
            continue;
        at->data = NULL;
        status = w->driver->write(w->gpu, &at->memory, 0, a->data, (size_t)bytes_of(job, a), err);
        if (status == QN_OK)
            *at = (array_place){.memory = at->memory, .data = a->data, .version = a->version};
    }
    for (uint32_t i = 0; i < job->arrays && status == QN_OK; ++i)
        if (job->array[i].use == QN__KERNEL_WRITTEN) {
            k->at[i].data = k->resident ? job->array[i].data : NULL;
            k->at[i].version = job->array[i].version;
            k->at[i].newer = k->resident;
        }
    return status;
}

/* Copies to the host what it needs of earlier runs and does not have. */
static qn_status bring(qn__worker *w, const qn__kernel_job *job, qn_error *err) {
    qn__gpu_kernel *k = w->kernel;
    qn_status status = QN_OK;
    for (uint32_t i = 0; k && i < job->arrays && status == QN_OK; ++i) {
        const qn__kernel_array *a = &job->array[i];
        array_place *at = &k->at[i];
        if (!a->back || !has_array(k, job, i) || !at->newer)
            continue;
        status = w->driver->read(w->gpu, &at->memory, 0, a->back, (size_t)bytes_of(job, a), err);
        at->newer = status != QN_OK;
    }
    return status;
}

qn_status qn__gpu_prepare(qn__worker *w, const qn__kernel_job *job, qn_error *err) {
    const qn__gpu_text text = {.text = job->text[w->driver->language],
                               .kernel = "qn_user_items",
                               .lanes = QN__KERNEL_LANES,
                               .doubles = job->doubles};
    qn__gpu_kernel_release(w);
    w->kernel = qn__alloc(1, sizeof *w->kernel, err);
    if (!w->kernel)
        return QN_MEMORY;
    w->kernel->text = text.text;
    w->kernel->arrays = job->arrays;
    w->kernel->launch = FIRST;
    qn_status status = qn__gpu_totals_make(w->driver, w->gpu, job, &w->kernel->totals, err);
    if (status == QN_OK)
        status = make_room(w, job, err);
    if (status == QN_OK)
        status = qn__gpu_kernel_selftest(w->driver, w->gpu, job->doubles, err);
    if (status == QN_OK)
        status = qn__gpu_totals_selftest(w->driver, w->gpu, job, &w->kernel->totals, err);
    w->driver->traffic(w->gpu, &w->before); /* the self-test does not count */
    w->busy_before = w->driver->busy(w->gpu);
    if (status == QN_OK)
        status = w->driver->build(w->gpu, &text, &w->kernel->program, err);
    if (status == QN_OK)
        status = send_whole(w, job, err);
    if (status != QN_OK)
        qn__gpu_kernel_release(w);
    return status;
}

/* ---------------------------------------------------------------- a launch */

/* Some items of a span, from `first` on. */
typedef struct piece {
    qn__worker *worker;
    const qn__host_job *host;
    const qn__kernel_job *job;
    const qn__kernel_span *span;
    uint64_t first, count;
    int alone;      /* 1: only the item's fault is asked for */
    int64_t *words; /* of the call */
} piece;

static qn_status start(const piece *p, qn_error *err) {
    const qn__worker *w = p->worker;
    const qn__gpu_kernel *k = w->kernel;
    qn__gpu_argument argument[QN__KERNEL_ARRAYS + 5];
    uint32_t n = 0;
    argument[n++] = (qn__gpu_argument){.kind = 'M', .value.memory = &k->faults};
    argument[n++] = (qn__gpu_argument){.kind = 'M', .value.memory = &k->numbers};
    for (uint32_t i = 0; i < k->arrays; ++i)
        argument[n++] = (qn__gpu_argument){.kind = 'M', .value.memory = &k->at[i].memory};
    argument[n++] = (qn__gpu_argument){.kind = 'U', .value.U = k->resident ? p->first : 0};
    argument[n++] = (qn__gpu_argument){.kind = 'U', .value.U = p->first};
    argument[n++] = (qn__gpu_argument){.kind = 'u', .value.u = (uint32_t)p->count};
    const uint32_t groups = (uint32_t)qn__gpu_pieces(p->count, QN__KERNEL_LANES);
    return w->driver->start(w->gpu, k->program, groups, argument, n, err);
}

static qn_status add_totals(const piece *p, qn_error *err) {
    const qn__worker *w = p->worker;
    const qn__gpu_memory *array[QN__KERNEL_ARRAYS];
    for (uint32_t i = 0; i < w->kernel->arrays; ++i)
        array[i] = &w->kernel->at[i].memory;
    return qn__gpu_totals_add(w->driver, w->gpu, p->job, &w->kernel->totals, array, p->first,
                              p->count, err);
}

/* The items' numbers of an array that is READ; NULL: there are none. */
static const char *read_from(const piece *p, uint32_t i) {
    const qn__kernel_array *a = &p->job->array[i];
    if (a->use != QN__KERNEL_READ)
        return NULL;
    if (a->data)
        return (const char *)a->data + p->first * a->each;
    return p->span->from[i] ? (const char *)p->span->from[i] + (p->first - p->span->first) * a->each
                            : NULL;
}

/* Sends the items' numbers, starts the kernel and asks for its faults. */
static qn_status begin_piece(const piece *p, qn_error *err) {
    const qn__worker *w = p->worker;
    const qn__gpu_driver *driver = w->driver;
    qn_status status =
        driver->clear(w->gpu, &w->kernel->faults, 0, FAULT_WORDS * sizeof(uint32_t), err);
    for (uint32_t i = 0; i < p->job->arrays && status == QN_OK; ++i) {
        const qn__kernel_array *a = &p->job->array[i];
        const char *from = w->kernel->resident ? NULL : read_from(p, i);
        if (from)
            status = driver->write(w->gpu, &w->kernel->at[i].memory, 0, from,
                                   (size_t)(p->count * a->each), err);
    }
    if (status == QN_OK)
        status = start(p, err);
    if (status == QN_OK && !p->alone)
        status = add_totals(p, err);
    if (status == QN_OK)
        status = driver->post(w->gpu, &w->kernel->faults, FAULT_WORDS * sizeof(uint32_t), 0, err);
    return status == QN_OK ? driver->flush(w->gpu, err) : status;
}

static qn_status end_piece(const piece *p, uint32_t faults[FAULT_WORDS], qn_error *err) {
    const void *words = NULL;
    const qn_status status = p->worker->driver->fetch(p->worker->gpu, 0, &words, err);
    if (status == QN_OK)
        memcpy(faults, words, FAULT_WORDS * sizeof *faults);
    return status;
}

static qn_status fetch_written(const piece *p, qn_error *err) {
    const qn__worker *w = p->worker;
    const qn__gpu_kernel *k = w->kernel;
    const uint64_t from = k->resident ? p->first : 0, to = p->first - p->span->first;
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < p->job->arrays && status == QN_OK; ++i) {
        const qn__kernel_array *a = &p->job->array[i];
        const size_t bytes = (size_t)(p->count * a->each);
        if (is_fetched(k, a) && !a->unwanted)
            status = w->driver->read(w->gpu, &k->at[i].memory, 0, k->at[i].host, bytes, err);
        else if (a->use == QN__KERNEL_WRITTEN && (p->job->fetch || !k->resident))
            status = w->driver->read(w->gpu, &k->at[i].memory, (size_t)(from * a->each),
                                     (char *)p->span->to[i] + to * a->each, bytes, err);
    }
    return status;
}

/* The item alone, once more: the bits of its fault. */
static qn_status find_fault(const piece *p, uint64_t item, qn_error *err) {
    uint32_t faults[FAULT_WORDS];
    piece one = *p;
    one.first = item;
    one.count = 1;
    one.alone = 1;
    qn_status status = begin_piece(&one, err);
    if (status == QN_OK)
        status = end_piece(&one, faults, err);
    if (status == QN_OK)
        p->job->fault(p->host->context, item, (uint64_t)faults[2] << 32 | faults[1]);
    return status;
}

/* *good: the items before the first faulty one. */
static qn_status compute_piece(const piece *p, uint64_t *good, qn_error *err) {
    uint32_t faults[FAULT_WORDS] = {0};
    qn_status status = begin_piece(p, err);
    if (status == QN_OK)
        status = fetch_written(p, err);
    if (status == QN_OK)
        status = end_piece(p, faults, err);
    *good = p->count;
    if (status != QN_OK || faults[0] == 0)
        return status;
    *good = ~faults[0];
    return find_fault(p, p->first + *good, err);
}

/* ---------------------------------------------------------------- a call */

static void adapt(qn__gpu_kernel *k, uint64_t items, double seconds) {
    if (seconds < short_launch && items == k->launch && k->launch < k->room)
        k->launch = 2 * k->launch < k->room ? 2 * k->launch : k->room;
    else if (seconds > long_launch && items > 1)
        k->launch = items / 2;
}

/* Items of the next launch. */
static uint64_t most_of(const qn__gpu_kernel *k, const qn__kernel_job *job) {
    const uint64_t most = k->launch < k->room ? k->launch : k->room;
    if (!job->whole_groups)
        return most;
    return most < QN__KERNEL_LANES ? QN__KERNEL_LANES : most - most % QN__KERNEL_LANES;
}

static qn_status take_totals(const piece *p, void *scratch, qn_error *err) {
    const qn__worker *w = p->worker;
    return qn__gpu_totals_take(w->driver, w->gpu, p->job, &w->kernel->totals, p->host->context,
                               scratch, err);
}

/* *more becomes 0 when the rest of the call need not be computed. */
static qn_status compute_span(piece *p, void *scratch, int *more, qn_error *err) {
    qn__gpu_kernel *k = p->worker->kernel;
    const uint64_t end = p->span->first + p->span->count;
    const void *values[QN__KERNEL_ARRAYS];
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->arrays; ++i)
        values[i] = k->at[i].host;
    for (p->first = p->span->first; status == QN_OK && *more && p->first < end;) {
        const double begun = qn__now();
        const uint64_t most = most_of(k, p->job);
        uint64_t good = 0;
        p->count = end - p->first < most ? end - p->first : most;
        if (qn__gpu_totals_full(&k->totals, p->count))
            status = take_totals(p, scratch, err);
        if (status == QN_OK)
            status = compute_piece(p, &good, err);
        const double seconds = qn__now() - begun;
        adapt(k, p->count, seconds);
        if (status == QN_OK)
            *more = p->job->take(p->host->context, scratch, p->words, p->first, good, values,
                                 seconds) &&
                    good == p->count;
        p->first += p->count;
    }
    return status;
}

static qn_status compute_spans(qn__worker *w, const qn__host_job *host, void *scratch,
                               uint32_t first, uint32_t count, int64_t *words, qn_error *err) {
    qn__kernel_span span;
    w->kernel->totals.items = 0; /* of a call that failed */
    piece p = {.worker = w, .host = host, .job = host->kernel, .span = &span, .words = words};
    qn_status status = QN_OK;
    int more = 1;
    for (uint32_t g = first, end = first + count, n; status == QN_OK && more && g < end; g += n) {
        n = host->kernel->span(host->context, g, end - g, words, &span);
        if (n == 0)
            break;
        do
            status = compute_span(&p, scratch, &more, err);
        while (status == QN_OK && more && host->kernel->more &&
               host->kernel->more(host->context, scratch, words, &span));
    }
    return status == QN_OK ? take_totals(&p, scratch, err) : status;
}

static qn_status send(qn__worker *w, const qn__kernel_job *job, qn_error *err) {
    qn_status status = QN_OK;
    if (!w->kernel || w->kernel->text != job->text[w->driver->language])
        status = qn__gpu_prepare(w, job, err);
    if (status == QN_OK && w->kernel->asked != job->resident) {
        release_room(w);
        status = make_room(w, job, err);
    }
    if (status == QN_UNSUPPORTED) /* other workers can compute it */
        status = err->status = QN_DEVICE;
    if (status == QN_OK)
        status = w->driver->write(w->gpu, &w->kernel->numbers, 0, job->numbers,
                                  job->count * sizeof *job->numbers, err);
    return status == QN_OK ? send_whole(w, job, err) : status;
}

qn_status qn__gpu_kernel_run(qn__worker *w, const qn__host_job *host, uint32_t first,
                             uint32_t count, const qn__outlet *sums, qn_error *err) {
    void *scratch = NULL;
    if (host->kernel->bring)
        return bring(w, host->kernel, err);
    qn_status status = send(w, host->kernel, err);
    if (status == QN_OK && host->open && !(scratch = host->open(host->context, err)))
        status = QN_MEMORY;
    if (status == QN_OK)
        status = compute_spans(w, host, scratch, first, count, sums->words, err);
    if (status == QN_OK && scratch && host->finish)
        host->finish(host->context, scratch, sums->words);
    if (scratch)
        host->close(scratch);
    if (status == QN_OK)
        sums->tally->items += count;
    return status;
}
