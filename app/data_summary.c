#include "data_summary.h"
#include "message.h"
#include "ranks.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_COUNTED = 1 << 20 };

/* Without a given size, images are square if the number of features is a square. */
static void find_size(const qn_data *data, uint32_t *rows, uint32_t *columns) {
    qn_data_image_size(data, rows, columns);
    uint32_t n = qn_data_features(data), side = (uint32_t)(sqrt((double)n) + 0.5);
    if (*rows == 0 && side >= 4 && side <= 256 && side * side == n &&
        qn_data_type_of(data) == QN_U8)
        *rows = *columns = side;
}

/* Of tokens. The greatest number of their type is not a token. */
static void find_vocabulary(const qn_data *data, data_summary *s) {
    const qn_data_type type = qn_data_type_of(data);
    const uint64_t items = qn_data_items(data);
    const uint32_t features = qn_data_features(data);
    const double none = type == QN_TOKENS16 ? UINT16_MAX : UINT32_MAX;
    for (uint64_t i = 0; i < items; i++) {
        const void *values = qn_data_item(data, i);
        for (uint32_t k = 0; k < features; k++) {
            const double token = columns_number(type, values, k);
            s->padding += token == none;
            if (token == none)
                continue;
            s->least = token < s->least ? token : s->least;
            s->greatest = token > s->greatest ? token : s->greatest;
        }
    }
}

/* Images of bytes are many, and nobody asks for the range of a pixel's place. */
static void find_range_of_bytes(const qn_data *data, data_summary *s) {
    const uint8_t *value = qn_data_values(data);
    const uint64_t count = qn_data_items(data) * qn_data_features(data);
    uint8_t least = UINT8_MAX, greatest = 0;
    for (uint64_t i = 0; i < count; i++) {
        least = value[i] < least ? value[i] : least;
        greatest = value[i] > greatest ? value[i] : greatest;
    }
    s->least = least;
    s->greatest = greatest;
}

static range range_of(const float *numbers, uint64_t count) {
    range r = {HUGE_VAL, -HUGE_VAL};
    for (uint64_t i = 0; numbers && i < count; i++) {
        r.least = (double)numbers[i] < r.least ? (double)numbers[i] : r.least;
        r.greatest = (double)numbers[i] > r.greatest ? (double)numbers[i] : r.greatest;
    }
    return r;
}

/* Counts of several targets: of the classes of pixels, or of the items that have each label. */
static int count_several(const qn_data *data, data_summary *s) {
    qn_several several = {.size = sizeof several};
    qn_error err;
    if (qn_data_several(data, &several, &err) != QN_OK)
        return message_error(&err);
    if (several.rows == 0)
        s->classes = several.each;
    if (s->classes > MOST_COUNTED || !(s->counts = calloc(s->classes + 1, sizeof *s->counts)))
        return s->classes > MOST_COUNTED ? -1 : message_fail(QN_MEMORY, "out of memory", "", "");
    for (uint64_t i = 0; i < qn_data_items(data) * several.each; i++) {
        const uint8_t target = several.target[i];
        s->ignored += target == 255;
        if (several.rows > 0 && target != 255)
            s->counts[target]++;
        else if (several.rows == 0 && target == 1)
            s->counts[i % several.each]++;
    }
    return -1;
}

static int count_own(const qn_data *data, data_summary *s) {
    const uint64_t n = qn_data_items(data);
    const int32_t *labels = qn_data_labels(data);
    *s = (data_summary){.least = HUGE_VAL,
                        .greatest = -HUGE_VAL,
                        .classes = qn_data_classes(data),
                        .targets = range_of(qn_data_targets(data), n),
                        .weights = range_of(qn_data_weights(data), n)};
    find_size(data, &s->rows, &s->columns);
    if (s->rows > 0 && qn_data_type_of(data) == QN_U8)
        find_range_of_bytes(data, s);
    else if (qn_data_tokens(data))
        find_vocabulary(data, s);
    else if (!(s->column = columns_find(data)))
        return message_fail(QN_MEMORY, "out of memory", "", "");
    if (qn_data_target(data) == QN_TARGET_SEVERAL)
        return count_several(data, s);
    /* A single large label must not cause gigabytes of counters. */
    if (!labels || s->classes > MOST_COUNTED)
        return -1;
    s->counts = calloc(s->classes, sizeof *s->counts);
    if (!s->counts)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    for (uint64_t i = 0; i < n; i++)
        s->counts[labels[i]]++;
    return -1;
}

/* ------------------------------------------------------------------ parts */

/* What a rank tells of its part beside columns and counts. */
typedef struct told {
    uint64_t items, first, ignored, padding;
    range values, targets, weights;
} told;

static void widen(range *r, const range *by) {
    r->least = by->least < r->least ? by->least : r->least;
    r->greatest = by->greatest > r->greatest ? by->greatest : r->greatest;
}

/* Of the parts that have values in the column; of equal values the first one is told. */
static void join_column(const told *of, uint32_t ranks, const column *all, uint32_t features,
                        column *to) {
    *to = (column){.least = HUGE_VAL, .greatest = -HUGE_VAL, .whole = 1};
    for (uint32_t r = 0; r < ranks; r++) {
        const column *c = &all[(size_t)r * features];
        to->missing += c->missing;
        if (c->missing == of[r].items)
            continue;
        to->whole &= c->whole;
        if (c->least < to->least) {
            to->least = c->least;
            to->least_item = of[r].first + c->least_item;
        }
        if (c->greatest > to->greatest) {
            to->greatest = c->greatest;
            to->greatest_item = of[r].first + c->greatest_item;
        }
    }
    if (to->least > to->greatest) /* every value is missing */
        to->least = to->greatest = 0;
}

/* What all ranks tell, for free(). NULL after a failure. */
static void *gather(const qn_parts *parts, uint32_t ranks, const void *own, size_t bytes,
                    qn_error *err) {
    void *all = calloc(ranks, bytes + 1);
    if (qn_parts_gather(parts, own, bytes, all, err) == QN_OK)
        return all;
    free(all);
    return NULL;
}

static int join_columns(const qn_parts *parts, uint32_t ranks, const told *of, uint32_t features,
                        data_summary *s, qn_error *err) {
    column *all = gather(parts, ranks, s->column, features * sizeof *all, err);
    for (uint32_t k = 0; all && k < features; k++)
        join_column(of, ranks, all + k, features, &s->column[k]);
    free(all);
    return all != NULL;
}

static int join_counts(const qn_parts *parts, uint32_t ranks, data_summary *s, qn_error *err) {
    uint64_t *all = gather(parts, ranks, s->counts, s->classes * sizeof *all, err);
    for (uint32_t k = 0; all && k < s->classes; k++) {
        s->counts[k] = 0;
        for (uint32_t r = 0; r < ranks; r++)
            s->counts[k] += all[(size_t)r * s->classes + k];
    }
    free(all);
    return all != NULL;
}

/* Collective: the counts of each part become those of the whole. */
static int join(const qn_parts *parts, uint32_t ranks, uint32_t features, data_summary *s,
                qn_error *err) {
    const told own = {.items = qn_data_items(qn_parts_own(parts)),
                      .first = qn_parts_first(parts),
                      .ignored = s->ignored,
                      .padding = s->padding,
                      .values = {s->least, s->greatest},
                      .targets = s->targets,
                      .weights = s->weights};
    range values = {HUGE_VAL, -HUGE_VAL};
    told *all = gather(parts, ranks, &own, sizeof own, err);
    s->ignored = s->padding = 0;
    for (uint32_t r = 0; all && r < ranks; r++) {
        if (all[r].items == 0) /* or the rank has ended, and others have its rows */
            continue;
        s->ignored += all[r].ignored;
        s->padding += all[r].padding;
        widen(&values, &all[r].values);
        widen(&s->targets, &all[r].targets);
        widen(&s->weights, &all[r].weights);
    }
    s->least = values.least;
    s->greatest = values.greatest;
    int done = all != NULL;
    if (done && s->column)
        done = join_columns(parts, ranks, all, features, s, err);
    if (done && s->counts)
        done = join_counts(parts, ranks, s, err);
    free(all);
    return done;
}

/* ------------------------------------------------------------------ the whole */

/* The least and the greatest value of all columns, where a value is not missing. */
static void find_range(const qn_data *data, data_summary *s) {
    for (uint32_t k = 0; k < qn_data_features(data); k++) {
        const column *c = &s->column[k];
        if (c->missing == qn_data_items(data))
            continue;
        s->least = c->least < s->least ? c->least : s->least;
        s->greatest = c->greatest > s->greatest ? c->greatest : s->greatest;
    }
}

/* A rank has ended, and the counts of its part with it: each rank counts in all. */
static int count_whole(const qn_data *data, data_summary *s) {
    data_summary_release(s);
    const int code = count_own(data, s);
    ranks_hold();
    return ranks_agree(code, NULL, 0, 0);
}

int data_summary_make(const qn_data *data, data_summary *s) {
    const qn_parts *parts = qn_data_parts(data);
    const uint32_t ranks = qn_cluster_ranks(ranks_cluster());
    qn_error err;
    int code = count_own(parts ? qn_parts_own(parts) : data, s);
    ranks_hold();
    code = ranks_agree(code, NULL, 0, 0);
    if (code < 0 && parts && !join(parts, ranks, qn_data_features(data), s, &err))
        code = err.status == QN_IO ? count_whole(data, s) : ranks_failed(&err);
    if (code < 0 && s->column)
        find_range(data, s);
    if (s->least > s->greatest) /* no part has a number or a token */
        s->least = s->greatest = 0;
    return code;
}

void data_summary_release(data_summary *s) {
    free(s->counts);
    free(s->column);
}
