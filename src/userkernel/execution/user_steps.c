/* Several iterations over a range of rows, by one thread. Each iteration needs the neighbours that
 * the one before it has computed. With a reach of one row, three iterations of the rows 4 to 9:
 *
 *   row           1  2  3  4  5  6  7  8  9 10 11 12
 *   state         r  r  r  r  r  r  r  r  r  r  r  r  read
 *   iteration 1      x  x  x  x  x  x  x  x  x  x     to one place of the thread
 *   iteration 2         x  x  x  x  x  x  x  x        to the other place
 *   iteration 3            x  x  x  x  x  x           to the arrays of the kernel
 *
 * The rows at both ends are computed by the neighbouring threads, too. That costs less than to
 * wait for each other after each iteration, and the rows stay in the cache meanwhile. At the ends
 * of the space there are no further rows. With the border `wrap` a range goes on at the other
 * end. */
#include "userkernel/execution/user_steps.h"

#include "base/memory.h"
#include <string.h>

int64_t qn__user_reach(const qn__user_source *s, int *everywhere) {
    int64_t most = 0;
    *everywhere = 0;
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!p->next)
            continue;
        *everywhere |= p->use == QN__USER_WHOLE;
        if (p->use == QN__USER_HALOED && p->halo > most)
            most = p->halo;
    }
    return most;
}

int qn__user_wraps(const qn__user_source *s) {
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_HALOED && s->part[i].next &&
            s->part[i].border == QN__USER_WRAP)
            return 1;
    return 0;
}

/* ------------------------------------------------------------------ memory */

static void release(qn__user_place place[2][QN__USER_PARTS]) {
    for (uint32_t i = 0; i < 2 * QN__USER_PARTS; i++) {
        qn__user_place *p = &place[i / QN__USER_PARTS][i % QN__USER_PARTS];
        qn__free_pages(p->at, p->bytes);
        *p = (qn__user_place){.at = NULL};
    }
}

static void free_stepper(qn__user_stepper *t) {
    release(t->near);
    release(t->wide);
    qn__user_thread_close(t->thread);
    qn__free(t);
}

void qn__user_stepper_close(void *stepper) {
    qn__user_stepper *t = stepper;
    if (!t)
        return;
    if (!t->kept) {
        free_stepper(t);
        return;
    }
    pthread_mutex_lock(&t->kept->lock);
    t->next = t->kept->first;
    t->kept->first = t;
    pthread_mutex_unlock(&t->kept->lock);
}

void qn__user_kept_release(qn__user_kept *kept) {
    while (kept->first) {
        qn__user_stepper *t = kept->first;
        kept->first = t->next;
        free_stepper(t);
    }
}

static qn__user_stepper *take_kept(qn__user_kept *kept) {
    pthread_mutex_lock(&kept->lock);
    qn__user_stepper *t = kept->first;
    if (t)
        kept->first = t->next;
    pthread_mutex_unlock(&kept->lock);
    return t;
}

/* Outputs that the next iteration reads change their place with each. */
static int is_carried(const qn__user_part *p) { return p->use == QN__USER_OUTPUT && p->next; }

/* `places` of them for each output, of `rows` rows. */
static int make_places(const qn__user_job *job, qn__user_place place[2][QN__USER_PARTS],
                       int64_t rows, qn_error *err) {
    const qn__user_source *s = job->source;
    const int64_t row = qn__user_job_items(job) / qn__user_job_rows(job);
    for (uint32_t i = 0; i < s->parts; i++) {
        const size_t bytes = (size_t)(rows * row) * qn__user_part_each(&s->part[i]);
        const int places = s->part[i].use != QN__USER_OUTPUT           ? 0
                           : is_carried(&s->part[i]) && job->steps > 2 ? 2
                                                                       : 1;
        for (int k = 0; k < places; k++) {
            qn__user_place *p = &place[k][i];
            if (p->bytes >= bytes)
                continue;
            qn__free_pages(p->at, p->bytes);
            p->at = qn__alloc_pages(bytes, err);
            p->bytes = p->at ? bytes : 0;
            if (!p->at)
                return 0;
        }
    }
    return 1;
}

/* The rows of a range with those around it that its first iteration computes. There is space for
 * the most iterations at once, so that the pages of few serve for more: new ones cost as much time
 * as an iteration. */
static int64_t near_rows(const qn__user_job *job) {
    int everywhere;
    const int64_t steps = SIZE_MAX > UINT32_MAX ? QN__USER_STEPS_MAX : job->steps;
    const int64_t row = qn__user_job_items(job) / qn__user_job_rows(job);
    return qn__user_job_grain(job) / row + 2 +
           2 * (steps - 1) * qn__user_reach(job->source, &everywhere);
}

/* Pages that nobody uses cost nothing, so a wide place has as many rows as there are. */
static int prepare(const qn__user_job *job, qn__user_stepper *t, qn_error *err) {
    if (job->steps < 2)
        return 1;
    const int64_t rows = qn__user_job_rows(job), some = near_rows(job);
    return make_places(job, t->near, some < rows ? some : rows, err) &&
           (!qn__user_wraps(job->source) || make_places(job, t->wide, rows, err));
}

qn__user_stepper *qn__user_stepper_open(const qn__user_job *job, qn_error *err) {
    qn__user_stepper *t = job->kept ? take_kept(job->kept) : NULL;
    if (!t)
        t = qn__alloc(1, sizeof *t, err);
    if (t && !t->thread)
        t->thread = qn__user_thread_open(job, err);
    if (t && t->thread && prepare(job, t, err)) {
        qn__user_thread_begin(job, t->thread);
        t->kept = job->kept;
        return t;
    }
    if (t)
        free_stepper(t);
    return NULL;
}

/* ------------------------------------------------------------------ iterations */

/* A range of rows, which may go beyond both ends where the space wraps. */
typedef struct rows {
    int64_t begin, end;
} rows;

static rows widen(const qn__user_job *job, rows own, int64_t by) {
    const int64_t all = qn__user_job_rows(job);
    rows r = {own.begin - by, own.end + by};
    if (!qn__user_wraps(job->source)) {
        r.begin = r.begin < 0 ? 0 : r.begin;
        r.end = r.end > all ? all : r.end;
    } else if (r.end - r.begin > all) {
        r = (rows){0, all};
    }
    return r;
}

static int is_beyond(const qn__user_job *job, rows r) {
    return r.begin < 0 || r.end > qn__user_job_rows(job);
}

/* Where row 0 of a place would be. */
static void *origin(const qn__user_place *p, int64_t first_row, size_t row_bytes) {
    return (void *)((uintptr_t)p->at - (uintptr_t)first_row * row_bytes);
}

/* The arrays of an iteration between the first and the last: `step` counts them. */
static void connect(const qn__user_job *job, qn__user_stepper *t, void *const *final, int64_t step,
                    rows widest) {
    const qn__user_source *s = job->source;
    const int beyond = is_beyond(job, widest);
    const int64_t row = qn__user_job_items(job) / qn__user_job_rows(job);
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        const size_t bytes = (size_t)row * qn__user_part_each(p);
        void *place[2];
        if (p->use != QN__USER_OUTPUT)
            continue;
        for (int k = 0; k < 2; k++)
            place[k] =
                origin(beyond ? &t->wide[k][i] : &t->near[k][i], beyond ? 0 : widest.begin, bytes);
        t->thread->array[i] = step == job->steps - 1 ? final[i]
                              : is_carried(p)        ? place[step % 2]
                                                     : place[0];
        if (p->next)
            t->thread->array[p->next - 1] =
                step == 0 ? job->array[p->next - 1] : place[(step - 1) % 2];
    }
}

static void compute_rows(const qn__user_job *job, qn__user_thread *t, rows r,
                         atomic_int_fast64_t *wrong) {
    const int64_t all = qn__user_job_rows(job), row = qn__user_job_items(job) / all;
    const rows inside = {r.begin < 0 ? 0 : r.begin, r.end > all ? all : r.end};
    if (r.begin < 0)
        qn__user_items(job, t, (all + r.begin) * row, -r.begin * row, wrong);
    qn__user_items(job, t, inside.begin * row, (inside.end - inside.begin) * row, wrong);
    if (r.end > all)
        qn__user_items(job, t, 0, (r.end - all) * row, wrong);
}

static void run_steps(const qn__user_job *job, qn__user_stepper *t, int64_t first, int64_t count,
                      atomic_int_fast64_t *wrong) {
    int everywhere;
    void *final[QN__USER_PARTS];
    const int64_t row = qn__user_job_items(job) / qn__user_job_rows(job);
    const int64_t reach = qn__user_reach(job->source, &everywhere);
    const rows own = {first / row, (first + count + row - 1) / row};
    const rows widest = widen(job, own, (job->steps - 1) * reach);
    const int adds = t->thread->adds;
    memcpy(final, t->thread->array, sizeof final);
    for (int64_t step = 0; step < job->steps && atomic_load(wrong) == INT64_MAX; step++) {
        const int last = step == job->steps - 1;
        connect(job, t, final, step, widest);
        t->thread->iteration = job->iteration + step;
        t->thread->adds = adds && last;
        if (last)
            qn__user_items(job, t->thread, first, count, wrong);
        else
            compute_rows(job, t->thread, widen(job, own, (job->steps - 1 - step) * reach), wrong);
    }
    t->thread->adds = adds;
    t->thread->iteration = job->iteration;
    for (uint32_t i = 0; i < job->source->parts; i++) /* for calls of single iterations */
        if (job->source->part[i].use < QN__USER_OUTPUT)
            t->thread->array[i] = job->array[i];
        else if (job->source->part[i].use == QN__USER_OUTPUT)
            t->thread->array[i] = final[i];
}

void qn__user_steps(const qn__user_job *job, qn__user_stepper *t, int64_t first, int64_t count,
                    atomic_int_fast64_t *faulty) {
    atomic_int_fast64_t wrong;
    if (job->steps < 2) {
        qn__user_items(job, t->thread, first, count, faulty);
        return;
    }
    atomic_init(&wrong, INT64_MAX);
    run_steps(job, t, first, count, &wrong);
    if (atomic_load(&wrong) != INT64_MAX)
        atomic_store(faulty, 0);
}
