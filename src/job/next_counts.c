#include "job/next_counts.h"

#include "layer/embedding.h"
#include "num/ratio.h"
#include <math.h>
#include <string.h>

/* The positions of an item that have a token or a target: the others tell nothing. */
static uint32_t end_of(const qn_data *data, const void *values, uint32_t positions,
                       uint32_t known) {
    uint32_t end = positions + 1;
    while (end > 0 && qn__next_token((float)qn__element_number(data->type, values, end - 1),
                                     known) == QN__NO_ANSWER)
        --end;
    return end < positions ? end : positions;
}

void qn__next_add(const qn__program *program, const qn_data *data, uint64_t item,
                  const float *losses, const int32_t *tokens, qn__next_counts *counts) {
    const uint32_t positions = program->answers, known = qn__program_classes(program);
    const void *values = qn__data_item(data, item);
    const size_t at = (size_t)item * positions;
    const uint32_t end = end_of(data, values, positions, known);
    const qn__text_window window = qn__data_window(data, item);
    const uint32_t first = qn__data_first_target(data, item) - 1;
    qn__next_item *const own = &counts->own;
    qn__exact_sum sum = {.pending = 0};
    uint32_t targets = 0, right = 0;
    if (window.number == 0) {
        *own = (qn__next_item){.targets = 0};
        counts->text = sum;
    }
    own->label = -1;
    own->prediction = end > 0 ? tokens[end - 1] : -1;
    for (uint32_t t = 0; t < positions; ++t) {
        const float value = (float)qn__element_number(data->type, values, t + 1);
        const uint32_t target = qn__next_token(value, known);
        const int counts_here = target != QN__NO_ANSWER && t >= first;
        if (counts->logprob)
            counts->logprob[at + t] = counts_here ? 0.0f - losses[t] : NAN;
        if (counts->token)
            counts->token[at + t] = t < end ? tokens[t] : -1;
        own->label = counts_here ? (int32_t)target : -1;
        if (!counts_here)
            continue;
        qn__exact_add(&sum, (double)losses[t]);
        ++targets;
        right += (uint32_t)tokens[t] == target;
    }
    counts->items += own->targets == 0 && targets > 0;
    counts->targets += targets;
    counts->right += right;
    own->targets += targets;
    own->right += right;
    qn__exact_merge(&counts->text, &sum);
    own->logprob = counts->item ? 0.0 - qn__ratio_of_sum(&counts->text, 1) : 0.0;
    if (counts->item)
        counts->item[window.text] = *own;
    qn__exact_merge(&counts->loss, &sum);
}

static void move_item(uint64_t from, int has, uint64_t to, uint32_t positions,
                      qn__next_counts *counts) {
    static const qn__next_item none = {.logprob = (double)NAN, .label = -1, .prediction = -1};
    if (counts->item)
        counts->item[to] = has ? counts->item[from] : none;
    for (uint32_t t = positions; t-- > 0;) {
        const size_t at = (size_t)to * positions + t, old = (size_t)from * positions + t;
        if (counts->logprob)
            counts->logprob[at] = has ? counts->logprob[old] : NAN;
        if (counts->token)
            counts->token[at] = has ? counts->token[old] : -1;
    }
}

void qn__next_spread(const qn_data *complete, uint64_t items, uint32_t positions,
                     qn__next_counts *counts) {
    uint64_t left = complete->items;
    for (uint64_t i = items; i-- > 0;) {
        const int has = left > 0 && complete->index[left - 1] == i;
        left -= (uint64_t)has;
        move_item(left, has, i, positions, counts);
    }
}
