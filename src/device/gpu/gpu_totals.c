/* Totals of a user kernel (gpu_totals.h). A kernel adds to words of 64 bits on the device, which
 * the host fetches only when they might overflow, and at the end of a call: the values themselves,
 * megabytes a launch, need not be copied.
 *
 *     items of a launch   y[0] y[1] y[2] ...     stay on the device
 *                            \   |   /
 *     words of a total        of 64 bits         each item changes one by less than 2^32
 *                                |
 *     the host                  sum              after at most 2^28 items, so no word overflows */
#include "device/gpu/gpu_totals.h"

#include "base/memory.h"
#include "device/gpu/gpu_call.h"

#include <string.h>

/* Items of which the words hold the totals: each changes one by less than 2^32, a few times. */
#define MOST_ITEMS ((uint64_t)1 << 28)
/* Items for which a group is worth while. */
enum { OF_A_GROUP = 32 * QN__KERNEL_LANES };
/* Values of the self-test: for several groups, the last one not full. */
enum { TRIALS = 2 * OF_A_GROUP + 77 };

uint64_t qn__gpu_totals_bytes(const qn__gpu_facts *facts, const qn__kernel_job *job) {
    return job->sum && facts->atomics ? job->total_words * sizeof(int64_t) : 0;
}

/* Totals of the same kind have the same text, and one program. */
static qn_status build(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_job *job,
                       qn__gpu_totals *out, uint32_t i, qn_error *err) {
    const qn__gpu_text text = {.text = job->total[i].text[driver->language],
                               .kernel = "qn_user_totals",
                               .lanes = QN__KERNEL_LANES};
    out->same[i] = i;
    for (uint32_t k = 0; k < i && out->same[i] == i; ++k)
        if (strcmp(job->total[k].text[driver->language], text.text) == 0)
            out->same[i] = k;
    return out->same[i] == i ? driver->build(gpu, &text, &out->program[i], err) : QN_OK;
}

qn_status qn__gpu_totals_make(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_job *job,
                              qn__gpu_totals *out, qn_error *err) {
    *out = (qn__gpu_totals){.count = 0};
    const uint64_t bytes = qn__gpu_totals_bytes(driver->facts(gpu), job);
    if (bytes == 0)
        return QN_OK;
    out->count = job->totals;
    out->host = qn__alloc(job->total_words, sizeof *out->host, err);
    qn_status status = out->host ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        status = driver->allocate(gpu, (size_t)bytes, &out->words, err);
    for (uint32_t i = 0; i < out->count && status == QN_OK; ++i)
        status = build(driver, gpu, job, out, i, err);
    return status;
}

void qn__gpu_totals_release(const qn__gpu_driver *driver, qn__gpu *gpu, qn__gpu_totals *totals) {
    driver->release(gpu, &totals->words);
    for (uint32_t i = 0; i < totals->count; ++i)
        driver->drop(gpu, totals->program[i]);
    qn__free(totals->host);
    *totals = (qn__gpu_totals){.count = 0};
}

int qn__gpu_totals_full(const qn__gpu_totals *totals, uint64_t count) {
    return totals->items + count > MOST_ITEMS;
}

static qn_status start(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_total *total,
                       const qn__gpu_totals *totals, const qn__gpu_program *program,
                       const qn__gpu_memory *const *array, uint64_t first, uint64_t count,
                       qn_error *err) {
    const uint64_t groups = qn__gpu_pieces(count, OF_A_GROUP);
    qn__gpu_call call = {.count = 0};
    QN__PUSH_MEMORY(&call, &totals->words);
    for (uint32_t i = 0; i < total->arrays; ++i)
        QN__PUSH_MEMORY(&call, array[total->array + i]);
    QN__PUSH_WIDE(&call, total->word, first);
    QN__PUSH_NUMBERS(&call, (uint32_t)count);
    return driver->start(gpu, program,
                         groups < QN__KERNEL_GROUPS ? (uint32_t)groups : QN__KERNEL_GROUPS,
                         call.argument, call.count, err);
}

/* ---------------------------------------------------------------- the self-test */

static qn_status refuse(const qn__gpu_driver *driver, qn__gpu *gpu, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED,
             "%s cannot be used: it computes a sum, an extreme or bins wrongly",
             driver->facts(gpu)->name);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "leave it out of `compute.devices`; a newer driver may fix it");
}

/* Makes a total of chosen values. */
static qn_status try_total(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_job *job,
                           qn__gpu_totals *totals, uint32_t which, void *const host[2],
                           qn_error *err) {
    const qn__kernel_total *total = &job->total[which];
    qn__gpu_memory memory[2] = {{0}, {0}};
    const qn__gpu_memory *array[QN__KERNEL_ARRAYS] = {NULL};
    int right = 0;
    qn_status status = driver->clear(gpu, &totals->words, 0, totals->words.bytes, err);
    total->sample(total->part, TRIALS, host[0], total->arrays > 1 ? host[1] : NULL);
    for (uint32_t i = 0; i < 2 && i < total->arrays && status == QN_OK; ++i) {
        const size_t bytes = TRIALS * (size_t)job->array[total->array + i].each;
        array[total->array + i] = &memory[i];
        status = driver->allocate(gpu, bytes, &memory[i], err);
        if (status == QN_OK)
            status = driver->write(gpu, &memory[i], 0, host[i], bytes, err);
    }
    if (status == QN_OK)
        status = start(driver, gpu, total, totals, totals->program[totals->same[which]], array, 0,
                       TRIALS, err);
    if (status == QN_OK)
        status = qn__gpu_read(driver, gpu, &totals->words, (size_t)total->word * sizeof(int64_t),
                              totals->host, (size_t)total->words * sizeof(int64_t), err);
    for (int i = 0; i < 2; ++i)
        driver->release(gpu, &memory[i]);
    if (status == QN_OK)
        status = total->check(total->part, TRIALS, host[0], host[1], totals->host, &right, err);
    return status == QN_OK && !right ? refuse(driver, gpu, err) : status;
}

qn_status qn__gpu_totals_selftest(const qn__gpu_driver *driver, qn__gpu *gpu,
                                  const qn__kernel_job *job, qn__gpu_totals *totals,
                                  qn_error *err) {
    void *host[2] = {qn__alloc(TRIALS, sizeof(uint64_t), err),
                     qn__alloc(TRIALS, sizeof(int32_t), err)};
    qn_status status = host[0] && host[1] ? QN_OK : QN_MEMORY;
    for (uint32_t i = 0; i < totals->count && status == QN_OK; ++i)
        if (totals->same[i] == i)
            status = try_total(driver, gpu, job, totals, i, host, err);
    qn__free(host[0]);
    qn__free(host[1]);
    return status;
}

/* ---------------------------------------------------------------- items */

qn_status qn__gpu_totals_add(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_job *job,
                             qn__gpu_totals *totals, const qn__gpu_memory *const *array,
                             uint64_t first, uint64_t count, qn_error *err) {
    qn_status status = QN_OK;
    if (totals->count == 0 || job->without_totals)
        return QN_OK;
    if (totals->items == 0)
        status = driver->clear(gpu, &totals->words, 0, totals->words.bytes, err);
    totals->items += count;
    for (uint32_t i = 0; i < totals->count && status == QN_OK; ++i)
        status = start(driver, gpu, &job->total[i], totals, totals->program[totals->same[i]], array,
                       first, count, err);
    return status;
}

qn_status qn__gpu_totals_take(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_job *job,
                              qn__gpu_totals *totals, void *context, void *scratch, qn_error *err) {
    if (totals->items == 0)
        return QN_OK;
    totals->items = 0;
    const qn_status status =
        qn__gpu_read(driver, gpu, &totals->words, 0, totals->host, totals->words.bytes, err);
    if (status == QN_OK)
        job->sum(context, scratch, totals->host);
    return status;
}
