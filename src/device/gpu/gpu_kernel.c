/* Host jobs that have a kernel: a user's kernel, computed by the device. Arrays that any item may
 * read are on the device as a whole. Numbers of items are sent for each launch, and what the kernel
 * writes is fetched (gpu_parts.c); unless the device has all runs to itself and enough memory. Then
 * it keeps these arrays, too, and what one run has written is what the next one reads. Totals of
 * the items' values are made on the device (gpu_totals.h); only values without such totals are
 * fetched. */
#include "base/memory.h"
#include "device/gpu/gpu_kernel.h"

/* Items of the first launch, and of the largest. */
enum { FIRST = 1024, MOST = 1 << 24 };

/* ---------------------------------------------------------------- space */

static double mebibytes(uint64_t bytes) { return (double)bytes / (1 << 20); }

static qn_status too_small(const qn__worker *w, const qn__kernel_job *job, uint64_t bytes,
                           uint64_t usable, qn_error *err) {
    qn__fail(err, QN_DEVICE, "%s: the kernel's arrays need %.1f MiB, the device allows %.1f MiB",
             w->facts->name, mebibytes(bytes), mebibytes(usable));
    return qn__remedy(err, QN_DEVICE, "%s", job->smaller);
}

static uint64_t bytes_of(const qn__kernel_job *job, const qn__kernel_array *a) {
    return a->use == QN__KERNEL_WHOLE ? a->bytes : job->items * a->each;
}

/* Drivers and displays need some memory: a sixteenth is left to them, and half of the rest is for
 * the numbers of launches at most. */
static qn_status find_space(const qn__worker *w, const qn__kernel_job *job, int resident,
                            uint64_t *most, qn_error *err) {
    const uint64_t usable = w->facts->memory - w->facts->memory / 16;
    uint64_t whole = qn__gpu_totals_bytes(w->facts, job), each = 0, widest = 1;
    for (uint32_t i = 0; i < job->arrays; ++i) {
        const qn__kernel_array *a = &job->array[i];
        const int of_items = qn__gpu_is_of_items(a, resident);
        if (!of_items && bytes_of(job, a) > w->facts->largest)
            return too_small(w, job, bytes_of(job, a), w->facts->largest, err);
        whole += of_items ? 0 : bytes_of(job, a);
        each += of_items ? a->each : 0;
        widest = of_items && a->each > widest ? a->each : widest;
    }
    const uint64_t share = (usable - (whole < usable ? whole : usable)) / 2 / QN__GPU_PARTS;
    *most = job->items < MOST ? job->items : MOST;
    if (*most > w->facts->largest / widest)
        *most = w->facts->largest / widest;
    if (each > 0 && *most > share / each)
        *most = share / each;
    if (whole >= usable || *most == 0 || (job->whole_groups && *most < QN__KERNEL_LANES))
        return too_small(w, job, whole + each, usable, err);
    return QN_OK;
}

static void release_space(qn__worker *w) {
    qn__gpu_kernel *k = w->kernel;
    for (uint32_t i = 0; i < k->arrays; ++i) {
        w->driver->release(w->gpu, &k->at[i].memory);
        qn__free(k->at[i].host);
        k->at[i] = (qn__gpu_array){0};
    }
    for (int r = 0; r < QN__GPU_PARTS; ++r) {
        w->driver->release(w->gpu, &k->buffer[r].faults);
        for (uint32_t i = 0; i < k->arrays; ++i)
            w->driver->release(w->gpu, &k->buffer[r].items[i]);
    }
    w->driver->release(w->gpu, &k->numbers);
}

/* Memory for the numbers of two launches. */
static qn_status make_items(qn__worker *w, uint32_t i, uint32_t each, int fetched, qn_error *err) {
    qn__gpu_kernel *k = w->kernel;
    qn_status status = QN_OK;
    for (int r = 0; r < QN__GPU_PARTS && status == QN_OK; ++r)
        status = w->driver->allocate(w->gpu, (size_t)(k->most * each), &k->buffer[r].items[i], err);
    if (status == QN_OK && fetched && !(k->at[i].host = qn__alloc(k->most, each, err)))
        status = QN_MEMORY;
    return status;
}

static qn_status reserve(qn__worker *w, const qn__kernel_job *job, qn_error *err) {
    qn__gpu_kernel *k = w->kernel;
    k->asked = job->resident;
    k->resident = job->resident && find_space(w, job, 1, &k->most, NULL) == QN_OK;
    qn_status status = k->resident ? QN_OK : find_space(w, job, 0, &k->most, err);
    for (int r = 0; r < QN__GPU_PARTS && status == QN_OK; ++r)
        status = w->driver->allocate(w->gpu, QN__GPU_FAULT_WORDS * sizeof(uint32_t),
                                     &k->buffer[r].faults, err);
    if (status == QN_OK)
        status = w->driver->allocate(w->gpu, job->count * sizeof *job->numbers, &k->numbers, err);
    for (uint32_t i = 0; i < job->arrays && status == QN_OK; ++i) {
        const qn__kernel_array *a = &job->array[i];
        status = qn__gpu_is_of_items(a, k->resident)
                     ? make_items(w, i, a->each, qn__gpu_is_fetched(k, a), err)
                     : w->driver->allocate(w->gpu, (size_t)bytes_of(job, a), &k->at[i].memory, err);
    }
    return status;
}

/* ---------------------------------------------------------------- preparing */

void qn__gpu_kernel_release(qn__worker *w) {
    qn__gpu_kernel *k = w->kernel;
    if (!k)
        return;
    release_space(w);
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
        const qn__gpu_array found = k->at[j];
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
        qn__gpu_array *at = &k->at[i];
        if (qn__gpu_is_of_items(a, k->resident) || a->use == QN__KERNEL_WRITTEN ||
            has_array(k, job, i))
            continue;
        at->data = NULL;
        status = w->driver->write(w->gpu, &at->memory, 0, a->data, (size_t)bytes_of(job, a), err);
        if (status == QN_OK)
            *at = (qn__gpu_array){.memory = at->memory, .data = a->data, .version = a->version};
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
        qn__gpu_array *at = &k->at[i];
        if (!a->back || !has_array(k, job, i) || !at->newer)
            continue;
        status =
            qn__gpu_read(w->driver, w->gpu, &at->memory, 0, a->back, (size_t)bytes_of(job, a), err);
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
        status = reserve(w, job, err);
    if (status == QN_OK)
        status = qn__gpu_kernel_selftest(w->driver, w->gpu, job->doubles, err);
    if (status == QN_OK)
        status = qn__gpu_totals_selftest(w->driver, w->gpu, job, &w->kernel->totals, err);
    w->driver->traffic(w->gpu, &w->measured.traffic); /* the self-test does not count */
    w->measured.busy = w->driver->busy(w->gpu);
    if (status == QN_OK)
        status = w->driver->build(w->gpu, &text, &w->kernel->program, err);
    if (status == QN_OK)
        status = send_whole(w, job, err);
    if (status != QN_OK)
        qn__gpu_kernel_release(w);
    return status;
}

/* ---------------------------------------------------------------- a call */

static qn_status send(qn__worker *w, const qn__kernel_job *job, qn_error *err) {
    qn_status status = QN_OK;
    if (!w->kernel || w->kernel->text != job->text[w->driver->language])
        status = qn__gpu_prepare(w, job, err);
    if (status == QN_OK && w->kernel->asked != job->resident) {
        release_space(w);
        status = reserve(w, job, err);
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
        status = qn__gpu_compute_spans(w, host, scratch, first, count, sums->words, err);
    if (status == QN_OK && scratch && host->finish)
        host->finish(host->context, scratch, sums->words);
    if (scratch)
        host->close(scratch);
    if (status == QN_OK)
        sums->tally->items += count;
    return status;
}
