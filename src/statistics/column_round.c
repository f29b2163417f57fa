#include "statistics/column_round.h"

#include "base/memory.h"
#include "data/table/table_columns.h"
#include <string.h>

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

double *qn__column_edges(const qn__column_job *j, uint32_t column) {
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
        carry(c, qn__column_edges(j, column), (uint64_t)j->most_bins + 1);
    if (j->first) {
        carry_sum(c, &j->first[column]);
        carry_sum(c, &j->second[column]);
    }
}

void qn__column_put(const qn__columns_round *r, uint32_t column, int64_t *words) {
    carrier c = {.words = words + (r->place[column] - r->place[r->from])};
    carry_column(r->job, column, &c);
}

/* Copies all that is known of a column from words. */
void qn__column_fetch(const qn__columns_round *r, uint32_t column, const int64_t *words) {
    const int64_t *own = words + (r->place[column] - r->place[r->from]);
    carrier c = {.words = (int64_t *)(uintptr_t)own, .back = 1}; /* only read */
    carry_column(r->job, column, &c);
}

uint64_t qn__column_words(const qn__column_job *j, uint32_t column) {
    carrier c = {.words = NULL};
    carry_column(j, column, &c);
    return c.used;
}

/* ------------------------------------------------------------------ a column */

void qn__column_count_categories(const qn__column_job *j, uint32_t column, const float *values) {
    qn__column_tally(j->task, values, j->data->items, qn__column_categories(j->data, column),
                     &j->numbers[(size_t)column * j->task->groups]);
}

void qn__column_note_sums(const qn__column_job *j, uint32_t column, const qn__moments *all) {
    j->missing[column] = all->count < j->data->items;
    if (j->first) {
        j->first[column] = all->first;
        j->second[column] = all->second;
    }
}

qn_status qn__column_scratch_make(const qn__columns_round *r, uint32_t columns,
                                  qn__column_scratch *out, qn_error *err) {
    out->values = qn__alloc(columns, r->stride * sizeof *out->values, err);
    out->buffer.order = out->values ? qn__order_create((size_t)r->job->data->items, err) : NULL;
    if (out->buffer.order)
        return QN_OK;
    qn__free(out->values);
    out->values = NULL;
    return QN_MEMORY;
}

void qn__column_scratch_release(qn__column_scratch *s) {
    qn__order_free(s->buffer.order);
    qn__free(s->values);
}
