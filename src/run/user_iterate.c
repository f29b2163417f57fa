#include "run/user_iterate.h"
#include "run/user_outputs.h"

#include "base/argument.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "job/user_scan.h"
#include <inttypes.h>
#include <string.h>

/* More would take longer than any machine lasts, and items times iterations fit in 128 bits. */
#define MOST_ITERATIONS ((uint64_t)1 << 48)

qn_status qn__user_iterations_set(qn_kernel *k, uint64_t iterations, qn_error *err) {
    k->iterations = iterations > 0 ? iterations : 1;
    if (k->iterations > MOST_ITERATIONS) {
        qn__fail(err, QN_USAGE, "there are more than 2^48 iterations");
        qn__at(err, "`kernel.iterations`");
        return qn__remedy(err, QN_USAGE, "give fewer");
    }
    if (k->iterations == 1 || k->source.has_next || k->source.iteration[0] || k->source.has_random)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the kernel has no NEXT, so all %" PRIu64 " iterations are the same",
             k->iterations);
    qn__at(err, "%s", k->name);
    return qn__remedy(err, QN_USAGE,
                      "declare NEXT(output, input); or leave `kernel.iterations` out");
}

/* ------------------------------------------------------------------ series */

int qn__user_has_series(qn__user_use use) { return use >= QN__USER_SUM && use <= QN__USER_COUNT; }

void qn__user_series_release(qn__user_bound *b) {
    qn__user_array_release(&b->series);
    qn__free(b->series_path);
    b->series_path = NULL;
    b->wants_series = 0;
}

qn_status qn_kernel_series(qn_kernel *k, const char *name, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(name, err);
    const uint32_t i = qn__user_part_named(k, name);
    if (i == QN__USER_PARTS || !qn__user_has_series(k->source.part[i].use)) {
        qn__fail(err, QN_USAGE, "the kernel has no SUM, MIN, MAX or COUNT \"%s\"", name);
        qn__at(err, "%s", k->name);
        return qn__remedy(err, QN_USAGE, "name one of these for `kernel.series`");
    }
    char *copy = path ? qn__copy_text(path, err) : NULL;
    if (path && !copy)
        return QN_MEMORY;
    qn__user_series_release(&k->part[i]);
    k->part[i].series_path = copy;
    k->part[i].wants_series = 1;
    return QN_OK;
}

/* Wide enough for every number of the part: int64, uint64 or float64. */
static qn__user_type series_type(const qn__user_part *p) {
    return p->use == QN__USER_COUNT           ? QN__USER_U64
           : qn__user_type_is_real(p->type)   ? QN__USER_F64
           : qn__user_type_is_signed(p->type) ? QN__USER_I64
                                              : QN__USER_U64;
}

static qn_status make_series(qn_kernel *k, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        qn__user_array *a = &k->part[i].series;
        if (!k->part[i].wants_series)
            continue;
        qn__user_array_release(a);
        *a = (qn__user_array){.type = series_type(&k->source.part[i]), .dimensions = 1};
        a->shape[0] = k->iterations;
        status = qn__user_array_make(a, err);
    }
    return status;
}

/* The bytes of a number as those of its series. */
static uint64_t widen(const qn__user_part *p, uint64_t value) {
    char text[40];
    float narrow;
    uint64_t wide = 0;
    if (p->use == QN__USER_COUNT || qn__user_type_size(p->type) == 8)
        return value;
    if (p->type == QN__USER_F32) {
        memcpy(&narrow, &value, sizeof narrow);
        memcpy(&wide, &(double){(double)narrow}, sizeof wide);
        return wide;
    }
    qn__user_type_print(p->type, &value, text);
    qn__user_type_read(series_type(p), text, &wide);
    return wide;
}

/* Adds the results of an iteration to the series. */
static qn_status add_to_series(qn_kernel *k, uint64_t iteration, qn__user_total *total,
                               qn_error *err) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_part *p = &k->source.part[i];
        uint64_t value = 0;
        if (!k->part[i].wants_series)
            continue;
        const int extreme = p->use == QN__USER_MIN || p->use == QN__USER_MAX;
        const int fits = qn__user_total_value(&total[i], p, &value);
        if (fits && (!extreme || total[i].count > 0)) {
            ((uint64_t *)k->part[i].series.data)[iteration] = widen(p, value);
            continue;
        }
        if (fits)
            qn__fail(err, QN_NUMERIC, "no item gave a number for \"%s\", which has a series",
                     p->name);
        else
            qn__fail(err, QN_NUMERIC, "the sum \"%s\" is beyond the range of %s", p->name,
                     qn__user_type_word(p->type));
        qn__at(err, "iteration %" PRIu64, iteration);
        return fits ? qn__remedy(err, QN_NUMERIC,
                                 "assign it in every iteration, or leave out `kernel.series` %s",
                                 p->name)
                    : qn__remedy(err, QN_NUMERIC, "scale what the items add, or sum another type");
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ iterations */

/* Outputs that the next iteration reads alternate between two places. */
typedef struct places {
    qn__user_array spare[QN__USER_PARTS];
    qn__mapped_file *file[QN__USER_PARTS]; /* of a spare, or NULL */
} places;

static qn_status make_places(const qn_kernel *k, places *all, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK && k->iterations > 1; i++)
        if (k->source.part[i].use == QN__USER_OUTPUT && k->source.part[i].next)
            status = qn__user_spare_make(&k->part[i], &all->spare[i], &all->file[i], err);
    return status;
}

static void release_places(const qn_kernel *k, places *all) {
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (all->file[i])
            qn__mapped_file_close(all->file[i]);
        else
            qn__user_array_release(&all->spare[i]);
}

/* The place of an output in an iteration: the last one writes to the output's own. */
static void *place_of(const qn_kernel *k, const places *all, uint32_t part, uint64_t iteration) {
    const int own = (k->iterations - 1 - iteration) % 2 == 0;
    return own ? k->part[part].array.data : all->spare[part].data;
}

/* Sets the arrays of an iteration. */
static void place(qn_kernel *k, const places *all, uint64_t iteration) {
    qn__user_job *job = &k->job;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_part *p = &k->source.part[i];
        if (p->use != QN__USER_OUTPUT || !p->next)
            continue;
        const uint32_t input = p->next - 1;
        job->array[i] = place_of(k, all, i, iteration);
        job->array[input] =
            iteration == 0 ? k->part[input].array.data : place_of(k, all, i, iteration - 1);
    }
    job->iteration = (int64_t)iteration;
    job->iterations = (int64_t)k->iterations;
}

qn_status qn__user_iterate(qn_kernel *k, qn__team *team, qn__user_total *total, qn_error *err) {
    places all = {0};
    qn__pool *pool = NULL;
    qn_status status = make_series(k, err);
    if (status == QN_OK && k->source.has_scan)
        status = qn__pool_create(k->report.threads, 1, &pool, err);
    if (status == QN_OK)
        status = make_places(k, &all, err);
    for (uint64_t t = 0; t < k->iterations && status == QN_OK; t++) {
        memset(total, 0, QN__USER_PARTS * sizeof *total);
        place(k, &all, t);
        status = qn__user_job_run(&k->job, team, total, err);
        if (status == QN_OK && pool)
            status = qn__user_job_scan(&k->job, pool, err);
        if (status == QN_OK)
            status = add_to_series(k, t, total, err);
    }
    qn__pool_destroy(pool);
    release_places(k, &all);
    return status;
}
