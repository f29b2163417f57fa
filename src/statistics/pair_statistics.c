/* Pairs of columns are cut into squares of SIDE x SIDE, the grains of a host job. A thread takes a
 * square and adds all items to its sums, a block at a time. So the columns of a block stay in the
 * cache while they are multiplied, and the sums need little memory. Of a GPU the host gets the sums
 * of parts of the rows (pair_device.h). It adds them, and computes the results from them as for its
 * own squares, with all its threads: that takes thousands of operations on long integers a pair. */
#include "statistics/pair_statistics.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "num/moments.h"
#include "num/products.h"
#include "statistics/pair_device.h"
#include "data/table/table_columns.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Words of a square: covariances, then correlations. Squares of a round: 32 MiB of words. */
enum { SIDE = QN__PAIR_SIDE, BLOCK = QN__PRODUCTS_BLOCK, WORDS = 2 * SIDE * SIDE, ROUND = 1 << 13 };

/* A block of a column: its values, 0 where one is missing, their squares, and 1 where one is there.
 */
typedef struct part {
    qn__factor value, square, present;
} part;

typedef struct scratch_space {
    float values[SIDE][BLOCK];
    part side[2][SIDE];
    qn__pair_sums sums[SIDE][SIDE];
    qn__pool *pool; /* of a thread that drives a GPU */
} scratch_space;

typedef struct work {
    const qn_data *data;
    uint64_t items; /* of all ranks */
    const uint8_t *missing;
    qn__moments_side *side;    /* of each column that lacks no value */
    int any;                   /* 1: some column lacks a value */
    uint32_t columns, squares; /* squares along a side */
    uint32_t from;             /* the square of grain 0 */
    int threads;
    qn__pair_device *device; /* NULL: no GPU takes part */
    atomic_int wrong;        /* 1: a GPU gave a wrong sum */
} work;

static void set_part(part *p, float *values, size_t count, int missing, int any) {
    if (!any) {
        qn__factor_set(&p->value, values, count);
        return;
    }
    p->present.top = 1;
    p->present.unit = 0;
    for (size_t i = 0; i < BLOCK; i++)
        p->present.x[i] = i < count && values[i] == values[i];
    for (size_t i = 0; missing && i < count; i++)
        values[i] = values[i] == values[i] ? values[i] : 0;
    qn__factor_set(&p->value, values, count);
    qn__factor_square(&p->value, &p->square);
}

static void load(const work *w, scratch_space *r, int which, uint32_t square, uint64_t from,
                 size_t count) {
    const uint32_t first = square * SIDE, left = w->columns - first;
    const uint32_t columns = left < SIDE ? left : SIDE;
    qn__columns_gather(w->data, NULL, from, from + count, first, columns, r->values[0], BLOCK);
    for (uint32_t k = 0; k < columns; k++)
        set_part(&r->side[which][k], r->values[k], count, w->missing[first + k], w->any);
}

static void add_pair(const part *a, const part *b, int missing, qn__pair_sums *sums) {
    qn__factor_multiply(&a->value, &b->value, &sums->products);
    if (!missing)
        return; /* the sums of a column alone are known */
    qn__factor_multiply(&a->value, &b->present, &sums->first[0]);
    qn__factor_multiply(&a->present, &b->value, &sums->first[1]);
    qn__factor_multiply(&a->square, &b->present, &sums->second[0]);
    qn__factor_multiply(&a->present, &b->square, &sums->second[1]);
    for (size_t i = 0; i < BLOCK; i++)
        sums->count += a->present.x[i] != 0 && b->present.x[i] != 0;
}

static int is_number(const work *w, uint32_t column) {
    return column < w->columns && qn__column_categories(w->data, column) == 0;
}

/* Pairs below the diagonal are those above it. */
static int is_wanted(const work *w, uint32_t a, uint32_t b) {
    return a <= b && is_number(w, a) && is_number(w, b);
}

/* Without missing values the sides of a pair are those of the columns. */
static void finish_pair(const work *w, uint32_t a, uint32_t b, qn__pair_sums *sums,
                        double *covariance, double *correlation) {
    const qn__moments_side *one = &w->side[a], *other = &w->side[b];
    qn__moments_side own[2];
    uint64_t count = w->items;
    if (w->missing[a] || w->missing[b]) {
        count = sums->count;
        for (int i = 0; i < 2; i++)
            qn__moments_side_of(count, &sums->first[i], &sums->second[i], &own[i]);
        one = &own[0];
        other = &own[1];
    }
    qn__moments_pair(count, one, other, &sums->products, covariance, correlation);
}

static qn_status make_sides(work *w, const qn__pairs *pairs, qn_error *err) {
    w->side = qn__alloc(w->columns, sizeof *w->side, err);
    for (uint32_t k = 0; w->side && k < w->columns; k++) {
        qn__exact_sum first = pairs->first[k], second = pairs->second[k];
        qn__moments_side_of(w->items, &first, &second, &w->side[k]);
    }
    return w->side ? QN_OK : QN_MEMORY;
}

static void add_block(const work *w, scratch_space *r, uint32_t down, uint32_t across) {
    const part *right = r->side[down == across ? 0 : 1];
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t k = 0; k < SIDE; k++) {
            const uint32_t a = down * SIDE + i, b = across * SIDE + k;
            if (is_wanted(w, a, b))
                add_pair(&r->side[0][i], &right[k], w->missing[a] | w->missing[b], &r->sums[i][k]);
        }
}

/* The sums of a square, of the items that are here. */
static void add_square(const work *w, scratch_space *r, uint32_t down, uint32_t across) {
    const uint64_t items = w->data->items;
    memset(r->sums, 0, sizeof r->sums);
    for (uint64_t from = 0; from < items; from += BLOCK) {
        const size_t count = items - from < BLOCK ? (size_t)(items - from) : BLOCK;
        load(w, r, 0, down, from, count);
        if (down != across)
            load(w, r, 1, across, from, count);
        add_block(w, r, down, across);
    }
}

static void describe_square(const work *w, scratch_space *r, uint32_t down, uint32_t across,
                            int64_t *words) {
    double result[2][SIDE][SIDE] = {0};
    add_square(w, r, down, across);
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t k = 0; k < SIDE; k++)
            if (is_wanted(w, down * SIDE + i, across * SIDE + k))
                finish_pair(w, down * SIDE + i, across * SIDE + k, &r->sums[i][k], &result[0][i][k],
                            &result[1][i][k]);
    memcpy(words, result, sizeof result);
}

/* Squares on and above the diagonal, row by row. */
static void find_square(const work *w, uint32_t number, uint32_t *down, uint32_t *across) {
    uint32_t row = 0;
    while (number >= w->squares - row)
        number -= w->squares - row++;
    *down = row;
    *across = row + number;
}

static void *open_space(void *context, qn_error *err) {
    (void)context;
    return qn__alloc(1, sizeof(scratch_space), err);
}

static void close_space(void *scratch) {
    qn__pool_destroy(((scratch_space *)scratch)->pool);
    qn__free(scratch);
}

/* qn__host_job: a grain is a square. */
static qn_status describe_squares(void *context, void *scratch, uint32_t first, uint32_t count,
                                  int64_t *words, qn_error *err) {
    const work *w = context;
    (void)err;
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t down, across;
        find_square(w, w->from + i, &down, &across);
        describe_square(w, scratch, down, across, words + (uint64_t)i * WORDS);
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ by a device */

/* qn__kernel_job: squares whose items follow each other. */
static uint32_t device_span(void *context, uint32_t first, uint32_t most, int64_t *words,
                            qn__kernel_span *out) {
    const work *w = context;
    (void)words;
    out->first = first * qn__pair_device_items(w->device);
    out->count = most * qn__pair_device_items(w->device);
    return most;
}

/* No item of the kernel has a fault: the device is faulty. */
static void note_fault(void *context, uint64_t item, uint64_t bits) {
    (void)item;
    (void)bits;
    atomic_store(&((work *)context)->wrong, 1);
}

/* A square whose sums are complete, and its results. */
typedef struct ending {
    const work *work;
    scratch_space *buffer;
    uint32_t down, across;
    atomic_uint next; /* the first pair that no thread has */
    double result[2][SIDE][SIDE];
} ending;

static void finish_pairs(void *context, int thread) {
    ending *e = context;
    uint32_t pair;
    (void)thread;
    while ((pair = atomic_fetch_add(&e->next, 1)) < QN__PAIRS) {
        const uint32_t i = pair / SIDE, k = pair % SIDE;
        const uint32_t a = e->down * SIDE + i, b = e->across * SIDE + k;
        if (is_wanted(e->work, a, b))
            finish_pair(e->work, a, b, &e->buffer->sums[i][k], &e->result[0][i][k],
                        &e->result[1][i][k]);
    }
}

/* Without memory for threads this one does it. */
static void finish_square(const work *w, scratch_space *r, uint32_t down, uint32_t across,
                          int64_t *words) {
    ending e = {.work = w, .buffer = r, .down = down, .across = across};
    if (!r->pool)
        qn__pool_create(w->threads, 0, &r->pool, NULL);
    if (r->pool)
        qn__pool_run(r->pool, finish_pairs, &e);
    else
        finish_pairs(&e, 0);
    memcpy(words, e.result, sizeof e.result);
}

/* One sum of each launch is compared with that of the host. */
static int take_values(void *context, void *scratch, int64_t *words, uint64_t first, uint64_t count,
                       const void *const *values, double seconds) {
    work *w = context;
    scratch_space *r = scratch;
    const qn__pair_device *d = w->device;
    const uint64_t each = qn__pair_device_items(d);
    const uint64_t *value = values[1];
    uint64_t square = UINT64_MAX;
    uint32_t down = 0, across = 0;
    int checked = 0;
    (void)seconds;
    qn__float_state_set();
    for (uint64_t item = first; item < first + count; item++, value += 4) {
        const uint32_t i = (uint32_t)(item / SIDE % SIDE), k = (uint32_t)(item % SIDE);
        if (item / each != square)
            find_square(w, w->from + (uint32_t)(square = item / each), &down, &across);
        if (item % each == 0)
            memset(r->sums, 0, sizeof r->sums);
        const uint32_t a = down * SIDE + i, b = across * SIDE + k;
        if (is_wanted(w, a, b)) {
            if (!checked++ && !qn__pair_device_check(d, item, a, b, value)) {
                atomic_store(&w->wrong, 1);
                return 0;
            }
            qn__pair_device_add(d, item, a, b, value, &r->sums[i][k]);
        }
        if (item % each == each - 1)
            finish_square(w, r, down, across, words + square * WORDS);
    }
    return 1;
}

static qn_status open_device(work *w, const qn__pairs *pairs, qn__pair_device *device,
                             qn_error *err) {
    const qn_status status = qn__pair_device_make(pairs->data, w->any, device, err);
    if (status != QN_OK)
        return status;
    w->device = device;
    device->job.span = device_span;
    device->job.take = take_values;
    device->job.fault = note_fault;
    return QN_OK;
}

static qn_status tell_wrong(qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "a device computes the sums of a covariance wrongly");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "leave the GPUs out of `compute.devices`; a newer driver may fix it");
}

/* ------------------------------------------------------------------ all pairs */

/* Copies the pairs of a square to both places of the matrices. */
static void place_square(const work *w, uint32_t number, const int64_t *words, double *covariance,
                         double *correlation) {
    double result[2][SIDE][SIDE];
    uint32_t down, across;
    find_square(w, number, &down, &across);
    memcpy(result, words, sizeof result);
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t k = 0; k < SIDE; k++) {
            const size_t a = down * SIDE + i, b = across * SIDE + k;
            if (!is_wanted(w, (uint32_t)a, (uint32_t)b))
                continue;
            covariance[a * w->columns + b] = covariance[b * w->columns + a] = result[0][i][k];
            correlation[a * w->columns + b] = correlation[b * w->columns + a] = result[1][i][k];
        }
}

static qn_status run_round(work *w, qn__team *team, uint32_t count, double *covariance,
                           double *correlation, qn_error *err) {
    const qn__host_job host = {.context = w,
                               .open = open_space,
                               .close = close_space,
                               .grains = describe_squares,
                               .words = (uint64_t)count * WORDS,
                               .apart = 1,
                               .kernel = w->device ? &w->device->job : NULL};
    const int64_t *words;
    if (w->device)
        qn__pair_device_begin(w->device, w->from, w->squares);
    const qn_status status = qn__team_run(team, &host, count, &words, err);
    if (status == QN_OK && atomic_load(&w->wrong))
        return tell_wrong(err);
    for (uint32_t i = 0; status == QN_OK && i < count; i++)
        place_square(w, w->from + i, words + (uint64_t)i * WORDS, covariance, correlation);
    return status;
}

static qn_status run_rounds(work *w, qn__team *team, double *covariance, double *correlation,
                            qn_error *err) {
    const uint32_t all = w->squares * (w->squares + 1) / 2;
    qn_status status = QN_OK;
    for (; status == QN_OK && w->from < all; w->from += ROUND)
        status = run_round(w, team, all - w->from < ROUND ? all - w->from : ROUND, covariance,
                           correlation, err);
    return status;
}

/* ------------------------------------------------------------------ data in parts */

/* Squares that are computed at a time, one a thread; sums of a pair where values are missing. */
enum { AT_ONCE = 16, KINDS = 5 };

typedef struct adding {
    work *work;
    const qn_parts *parts;
    scratch_space *space; /* of each square */
    uint32_t count;
    atomic_uint next;
    qn__exact_sum **sum; /* of all pairs at hand */
    int64_t *words;      /* their counts; then the results of the squares */
    double *covariance, *correlation;
} adding;

static void add_squares(void *context, int thread) {
    adding *a = context;
    (void)thread;
    for (uint32_t i; (i = atomic_fetch_add(&a->next, 1)) < a->count;) {
        uint32_t down, across;
        find_square(a->work, a->work->from + i, &down, &across);
        add_square(a->work, &a->space[i], down, across);
    }
}

/* The sums of the pairs that are wanted, and their counts. Returns how many pairs there are. */
static uint64_t list_sums(const adding *a, uint64_t *sums) {
    const work *w = a->work;
    uint64_t pairs = 0;
    *sums = 0;
    for (uint32_t i = 0; i < a->count * QN__PAIRS; i++) {
        qn__pair_sums *s = &a->space[i / QN__PAIRS].sums[i / SIDE % SIDE][i % SIDE];
        qn__exact_sum *const each[KINDS] = {&s->products, &s->first[0], &s->first[1], &s->second[0],
                                            &s->second[1]};
        uint32_t down, across;
        find_square(w, w->from + i / QN__PAIRS, &down, &across);
        const uint32_t one = down * SIDE + i / SIDE % SIDE, other = across * SIDE + i % SIDE;
        if (!is_wanted(w, one, other))
            continue;
        const int kinds = w->missing[one] || w->missing[other] ? KINDS : 1;
        for (int k = 0; k < kinds; k++)
            a->sum[(*sums)++] = each[k];
        a->words[pairs++] = (int64_t)s->count;
    }
    return pairs;
}

static void take_counts(const adding *a) {
    const work *w = a->work;
    const int64_t *word = a->words;
    for (uint32_t i = 0; i < a->count * QN__PAIRS; i++) {
        uint32_t down, across;
        find_square(w, w->from + i / QN__PAIRS, &down, &across);
        if (is_wanted(w, down * SIDE + i / SIDE % SIDE, across * SIDE + i % SIDE))
            a->space[i / QN__PAIRS].sums[i / SIDE % SIDE][i % SIDE].count = (uint64_t)*word++;
    }
}

/* A rank computes the pairs of some squares, and tells them to the others. */
static qn_status finish_squares(adding *a, qn_error *err) {
    work *w = a->work;
    memset(a->words, 0, (size_t)a->count * WORDS * sizeof *a->words);
    const uint32_t there = qn__parts_place(a->parts, a->parts->ranks);
    for (uint32_t i = qn__parts_place(a->parts, a->parts->rank); i < a->count; i += there) {
        uint32_t down, across;
        find_square(w, w->from + i, &down, &across);
        finish_square(w, &a->space[i], down, across, a->words + (size_t)i * WORDS);
    }
    const qn_status status = qn__parts_add(a->parts, a->words, (uint64_t)a->count * WORDS, err);
    for (uint32_t i = 0; i < a->count && status == QN_OK; i++)
        place_square(w, w->from + i, a->words + (size_t)i * WORDS, a->covariance, a->correlation);
    return status;
}

/* Adds the sums of all ranks, and computes the pairs. */
static qn_status join_squares(adding *a, qn_error *err) {
    uint64_t sums;
    const uint64_t pairs = list_sums(a, &sums);
    qn_status status = qn__parts_add_sums(a->parts, a->sum, sums, err);
    if (status == QN_OK && a->work->any) {
        status = qn__parts_add(a->parts, a->words, pairs, err);
        take_counts(a);
    }
    return status == QN_OK ? finish_squares(a, err) : status;
}

static qn_status run_all_parts(adding *a, qn_error *err) {
    work *w = a->work;
    const uint32_t all = w->squares * (w->squares + 1) / 2;
    qn__pool *pool = NULL;
    qn_status status = QN_OK;
    if (qn__pool_create(w->threads, 0, &pool, NULL) != QN_OK)
        pool = NULL; /* the thread of the caller is enough */
    for (; status == QN_OK && w->from < all; w->from += AT_ONCE) {
        a->count = all - w->from < AT_ONCE ? all - w->from : AT_ONCE;
        atomic_store(&a->next, 0);
        if (pool)
            qn__pool_run(pool, add_squares, a);
        else
            add_squares(a, 0);
        status = join_squares(a, err);
    }
    qn__pool_destroy(pool);
    return status;
}

/* `status`: how it went so far on this rank. */
static qn_status run_parts(work *w, const qn_parts *parts, qn_status status, double *covariance,
                           double *correlation, qn_error *err) {
    adding a = {.work = w,
                .parts = parts,
                .space = qn__alloc(AT_ONCE, sizeof *a.space, err),
                .sum = (qn__exact_sum **)qn__alloc((uint64_t)AT_ONCE * QN__PAIRS * KINDS,
                                                   sizeof *a.sum, err),
                .words = qn__alloc(AT_ONCE, WORDS * sizeof *a.words, err),
                .covariance = covariance,
                .correlation = correlation};
    if (status == QN_OK && (!a.space || !a.sum || !a.words))
        status = QN_MEMORY;
    status = qn__parts_agree(parts, status, err);
    if (status == QN_OK)
        status = run_all_parts(&a, err);
    for (uint32_t i = 0; a.space && i < AT_ONCE; i++)
        qn__pool_destroy(a.space[i].pool);
    qn__free(a.space);
    qn__free((void *)a.sum);
    qn__free(a.words);
    return status;
}

qn_status qn__pairs_describe(const qn__pairs *pairs, qn__team *team, double *covariance,
                             double *correlation, qn_error *err) {
    const uint32_t columns = qn__columns_of(pairs->data);
    qn__pair_device device = {.parts = 0};
    work w = {.data = pairs->data,
              .items = pairs->parts ? qn__parts_items(pairs->parts) : pairs->data->items,
              .missing = pairs->missing,
              .columns = columns,
              .squares = (columns + SIDE - 1) / SIDE,
              .threads = pairs->threads};
    qn_status status = make_sides(&w, pairs, err);
    for (size_t i = 0; i < (size_t)columns * columns; i++)
        covariance[i] = correlation[i] = (double)NAN;
    for (uint32_t k = 0; k < columns; k++)
        w.any |= pairs->missing[k];
    if (status == QN_OK && pairs->devices && pairs->data->items > 0)
        status = open_device(&w, pairs, &device, err);
    if (pairs->parts)
        status = run_parts(&w, pairs->parts, status, covariance, correlation, err);
    else if (status == QN_OK)
        status = run_rounds(&w, team, covariance, correlation, err);
    qn__pair_device_release(&device);
    qn__free(w.side);
    return status;
}
