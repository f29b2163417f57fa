#include "job/column_job.h"

#include "base/memory.h"
#include "job/statistics_columns.h"
#include <string.h>

/* Columns of a line of a cache, which are taken out of the rows together; and those of a thread at
 * least. Words of a round, if a column has no more. */
enum { TILE = 16, LEAST_TILE = 4, ROUND_WORDS = 1 << 22 };

/* ------------------------------------------------------------------ numbers as words */

/* Copies values of 8 bytes to words, or back; without words it counts them. */
typedef struct carrier {
    int64_t *words;
    int back;
    uint64_t used;
} carrier;

static void carry(carrier *c, void *values, uint64_t count) {
    int64_t *words = c->words ? c->words + c->used : NULL;
    if (words && count > 0)
        memcpy(c->back ? values : words, c->back ? words : values, count * sizeof *words);
    c->used += count;
}

static void carry_sum(carrier *c, qn__exact_sum *sum) {
    uint64_t pending = sum->pending;
    carry(c, sum->limb, QN__EXACT_LIMBS);
    carry(c, &pending, 1);
    sum->pending = (uint32_t)pending;
}

static void carry_group(const qn__column_job *j, uint32_t categories, qn__column_numbers *n,
                        carrier *c) {
    carry(c, &n->count, 1);
    carry(c, &n->missing, 1);
    carry(c, &n->moments, sizeof n->moments / sizeof(double));
    carry(c, &n->minimum, 1);
    carry(c, &n->maximum, 1);
    carry(c, n->categories, categories);
    if (categories > 0)
        return;
    carry(c, n->quantiles, j->task->quantile_count);
    if (n->histogram)
        carry(c, n->histogram, j->most_bins);
}

static double *edges_of(const qn__column_job *j, uint32_t column) {
    return j->edges ? j->edges + (size_t)column * (j->most_bins + 1) : NULL;
}

/* All that is known of a column. */
static void carry_column(const qn__column_job *j, uint32_t column, carrier *c) {
    const uint32_t groups = j->task->groups, categories = qn__column_categories(j->data, column);
    uint64_t small[2] = {j->bins[column], j->missing[column]};
    for (uint32_t g = 0; g < groups; ++g)
        carry_group(j, categories, &j->numbers[(size_t)column * groups + g], c);
    if (categories > 0)
        return;
    carry(c, small, 2);
    j->bins[column] = (uint32_t)small[0];
    j->missing[column] = (uint8_t)small[1];
    if (j->edges)
        carry(c, edges_of(j, column), (uint64_t)j->most_bins + 1);
    if (j->first) {
        carry_sum(c, &j->first[column]);
        carry_sum(c, &j->second[column]);
    }
}

/* ------------------------------------------------------------------ the grains */

/* Some columns, whose words fit the memory. */
typedef struct columns_round {
    const qn__column_job *job;
    const uint64_t *place; /* of each column's words, of all columns */
    uint32_t from;         /* the column of grain 0 */
    uint32_t tile;         /* columns that a thread takes out of the rows at a time */
    size_t stride;         /* of a column in memory */
} columns_round;

typedef struct column_scratch {
    float *values; /* `tile` columns */
    qn__column_room room;
} column_scratch;

static void close_scratch(void *scratch) {
    column_scratch *s = scratch;
    qn__order_free(s->room.order);
    qn__free(s->values);
    qn__free(s);
}

static void *open_scratch(void *context, qn_error *err) {
    const columns_round *r = context;
    column_scratch *s = qn__alloc(1, sizeof *s, err);
    if (!s)
        return NULL;
    s->values = qn__alloc(r->tile, r->stride * sizeof *s->values, err);
    s->room.order = s->values ? qn__order_create((size_t)r->job->data->items, err) : NULL;
    if (s->room.order)
        return s;
    close_scratch(s);
    return NULL;
}

static void describe(const qn__column_job *j, uint32_t column, float *values,
                     qn__column_room *room) {
    const uint64_t items = j->data->items;
    qn__column_numbers *numbers = &j->numbers[(size_t)column * j->task->groups];
    const uint32_t categories = qn__column_categories(j->data, column);
    if (categories > 0) {
        qn__column_tally(j->task, values, items, categories, numbers);
        return;
    }
    j->bins[column] = j->wanted_bins;
    qn__column_describe(j->task, values, items, room, numbers, edges_of(j, column),
                        &j->bins[column]);
    j->missing[column] = numbers->missing > 0;
    if (j->first) {
        j->first[column] = room->all.first;
        j->second[column] = room->all.second;
    }
}

/* qn__host_job: a grain is a column. */
static qn_status describe_columns(void *context, void *scratch, uint32_t first, uint32_t count,
                                  int64_t *words, qn_error *err) {
    const columns_round *r = context;
    const qn__column_job *j = r->job;
    column_scratch *s = scratch;
    (void)err;
    for (uint32_t done = 0; done < count; done += r->tile) {
        const uint32_t column = r->from + first + done;
        const uint32_t tile = count - done < r->tile ? count - done : r->tile;
        qn__columns_gather(j->data, j->order, 0, j->data->items, column, tile, s->values,
                           r->stride);
        for (uint32_t k = 0; k < tile; ++k) {
            carrier c = {.words = words + (r->place[column + k] - r->place[r->from])};
            describe(j, column + k, s->values + k * r->stride, &s->room);
            carry_column(j, column + k, &c);
        }
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ all columns */

static uint32_t tile_of(const qn__column_job *j) {
    const uint32_t threads = (uint32_t)j->threads;
    const uint32_t most = threads > 1 ? j->columns / (2 * threads) : j->columns;
    const uint32_t tile = TILE / threads > LEAST_TILE ? TILE / threads : LEAST_TILE;
    return most == 0 ? 1 : tile < most ? tile : most;
}

/* Computes the columns up to `to` and copies their words to the results. */
static qn_status run_round(qn__team *team, columns_round *r, uint32_t to, qn_error *err) {
    const qn__host_job host = {.context = r,
                               .open = open_scratch,
                               .close = close_scratch,
                               .grains = describe_columns,
                               .words = r->place[to] - r->place[r->from],
                               .apart = 1};
    const int64_t *words;
    const qn_status status = qn__team_run(team, &host, to - r->from, &words, err);
    /* Only read. */
    carrier c = {.words = (int64_t *)(uintptr_t)words, .back = 1};
    for (uint32_t k = r->from; status == QN_OK && k < to; ++k)
        carry_column(r->job, k, &c);
    return status;
}

qn_status qn__columns_describe(qn__team *team, const qn__column_job *job, qn_error *err) {
    uint64_t *place = qn__alloc((uint64_t)job->columns + 1, sizeof *place, err);
    qn_status status = QN_OK;
    if (!place)
        return QN_MEMORY;
    for (uint32_t k = 0; k < job->columns; ++k) {
        carrier c = {.used = place[k]};
        carry_column(job, k, &c);
        place[k + 1] = c.used;
    }
    /* Columns do not begin at the same place of a page, where they would share lines of a cache. */
    columns_round r = {.job = job,
                       .place = place,
                       .tile = tile_of(job),
                       .stride = (size_t)(job->data->items + 15) / 16 * 16 + 16};
    while (status == QN_OK && r.from < job->columns) {
        uint32_t to = r.from + 1;
        while (to < job->columns && place[to + 1] - place[r.from] <= ROUND_WORDS)
            ++to;
        status = run_round(team, &r, to, err);
        r.from = to;
    }
    qn__free(place);
    return status;
}
