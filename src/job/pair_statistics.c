/* Pairs of columns are cut into squares of SIDE x SIDE, the grains of a host job. A thread takes a
 * square and adds all items to its sums, a block at a time. So the columns of a block stay in the
 * cache while they are multiplied, and the sums need little memory. */
#include "job/pair_statistics.h"
#include "base/memory.h"
#include "job/statistics_columns.h"
#include "num/moments.h"
#include "num/products.h"
#include <math.h>
#include <string.h>

/* Words of a square: covariances, then correlations. Squares of a round: 32 MiB of words. */
enum { SIDE = 16, BLOCK = QN__PRODUCTS_BLOCK, WORDS = 2 * SIDE * SIDE, ROUND = 1 << 13 };

/* A block of a column: its values, 0 where one is missing, their squares, and 1 where one is there.
 */
typedef struct part {
    qn__factor value, square, present;
} part;

/* Of a pair: the sums of products, of values, and of squares where the other value is there too. */
typedef struct pair_sums {
    qn__exact_sum products, first[2], second[2];
    uint64_t count;
} pair_sums;

typedef struct room {
    float values[SIDE][BLOCK];
    part side[2][SIDE];
    pair_sums sums[SIDE][SIDE];
} room;

typedef struct work {
    const qn_data *data;
    const uint8_t *missing;
    const qn__exact_sum *first, *second;
    int any;                   /* 1: some column lacks a value */
    uint32_t columns, squares; /* squares along a side */
    uint32_t from;             /* the square of grain 0 */
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

static void load(const work *w, room *r, int which, uint32_t square, uint64_t from, size_t count) {
    const uint32_t first = square * SIDE, left = w->columns - first;
    const uint32_t columns = left < SIDE ? left : SIDE;
    qn__columns_gather(w->data, NULL, from, from + count, first, columns, r->values[0], BLOCK);
    for (uint32_t k = 0; k < columns; k++)
        set_part(&r->side[which][k], r->values[k], count, w->missing[first + k], w->any);
}

static void add_pair(const part *a, const part *b, int missing, pair_sums *sums) {
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

static void finish_pair(const work *w, uint32_t a, uint32_t b, pair_sums *sums, double *covariance,
                        double *correlation) {
    if (!w->missing[a] && !w->missing[b]) {
        sums->count = w->data->items;
        sums->first[0] = w->first[a];
        sums->first[1] = w->first[b];
        sums->second[0] = w->second[a];
        sums->second[1] = w->second[b];
    }
    qn__moments_pair(sums->count, &sums->first[0], &sums->first[1], &sums->second[0],
                     &sums->second[1], &sums->products, covariance, correlation);
}

static void add_block(const work *w, room *r, uint32_t down, uint32_t across) {
    const part *right = r->side[down == across ? 0 : 1];
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t k = 0; k < SIDE; k++) {
            const uint32_t a = down * SIDE + i, b = across * SIDE + k;
            if (is_wanted(w, a, b))
                add_pair(&r->side[0][i], &right[k], w->missing[a] | w->missing[b], &r->sums[i][k]);
        }
}

static void describe_square(const work *w, room *r, uint32_t down, uint32_t across,
                            int64_t *words) {
    const uint64_t items = w->data->items;
    double result[2][SIDE][SIDE] = {0};
    memset(r->sums, 0, sizeof r->sums);
    for (uint64_t from = 0; from < items; from += BLOCK) {
        const size_t count = items - from < BLOCK ? (size_t)(items - from) : BLOCK;
        load(w, r, 0, down, from, count);
        if (down != across)
            load(w, r, 1, across, from, count);
        add_block(w, r, down, across);
    }
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

static void *open_room(void *context, qn_error *err) {
    (void)context;
    return qn__alloc(1, sizeof(room), err);
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

qn_status qn__pairs_describe(const qn__pairs *pairs, qn__team *team, double *covariance,
                             double *correlation, qn_error *err) {
    const uint32_t columns = qn__columns_of(pairs->data), side = (columns + SIDE - 1) / SIDE;
    const uint32_t all = side * (side + 1) / 2;
    work w = {.data = pairs->data,
              .missing = pairs->missing,
              .first = pairs->first,
              .second = pairs->second,
              .columns = columns,
              .squares = side};
    qn_status status = QN_OK;
    for (size_t i = 0; i < (size_t)columns * columns; i++)
        covariance[i] = correlation[i] = (double)NAN;
    for (uint32_t k = 0; k < columns; k++)
        w.any |= pairs->missing[k];
    for (; status == QN_OK && w.from < all; w.from += ROUND) {
        const uint32_t count = all - w.from < ROUND ? all - w.from : ROUND;
        const qn__host_job host = {.context = &w,
                                   .open = open_room,
                                   .close = qn__free,
                                   .grains = describe_squares,
                                   .words = (uint64_t)count * WORDS,
                                   .apart = 1};
        const int64_t *words;
        status = qn__team_run(team, &host, count, &words, err);
        for (uint32_t i = 0; status == QN_OK && i < count; i++)
            place_square(&w, w.from + i, words + (uint64_t)i * WORDS, covariance, correlation);
    }
    return status;
}
