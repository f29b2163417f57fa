#include "device/shorten.h"

#include "layer/embedding.h"
#include "layer/padding.h"

int qn__can_shorten(const qn__program *p) {
    const int ends_as_positions = qn__has_token_positions(p->layer, p->layer[p->layers - 1].to);
    return p->layer[0].kind == QN__LAYER_EMBEDDING && !p->sequences && !p->moves_answers &&
           (p->answers || !ends_as_positions) &&
           qn__padding_mixed(p->layer, p->layers) == p->layers;
}

/* At least `least`. The last value may be a target alone. */
static uint32_t tokens_of(const qn__program *p, const qn__feed *feed, const void *row,
                          uint32_t least) {
    const uint16_t *narrow = row;
    const uint32_t *wide = row;
    const uint32_t known = qn__layer_tokens(&p->layer[0]);
    const uint32_t classes = p->next ? qn__program_classes(p) : 0;
    const uint32_t tokens = known > classes ? known : classes;
    const int is_narrow = feed->type == QN__ELEMENT_TOKEN16;
    uint32_t length = feed->features;
    while (length > least && (is_narrow ? narrow[length - 1] : wide[length - 1]) >= tokens)
        --length;
    return length;
}

uint32_t qn__item_length(const qn__program *p, const qn__feed *feed, const void *row) {
    return qn__element_is_token(feed->type) ? tokens_of(p, feed, row, 0) : feed->features;
}

/* A token that is only a target, after the positions that the network reads, needs the last of
 * them. */
static uint32_t positions_of_tokens(const qn__program *p, const qn__feed *feed, const void *row,
                                    uint32_t least) {
    const uint32_t all = p->layer[0].to.width, tokens = tokens_of(p, feed, row, least);
    return tokens < all ? tokens : all;
}

uint32_t qn__item_positions(const qn__program *p, const qn__feed *feed, uint64_t item,
                            const void *row, uint32_t least) {
    const uint32_t read = positions_of_tokens(p, feed, row, least);
    if (!feed->answers)
        return read;
    const uint32_t each = qn__answers_of_pixel(p);
    const uint8_t *target = qn__feed_answers(feed, p, item);
    uint32_t end = p->answers;
    while (end > read * each && target[end - 1] == QN__IGNORED)
        --end;
    return end > read * each ? (end - 1) / each + 1 : read;
}

int qn__needs_all_positions(const qn__program *p, const qn__applied *applied) {
    return p->answers && applied && (applied->outputs || applied->inputs);
}

uint32_t qn__longest(const qn__program *p, const qn__batch *batch, const qn__applied *applied) {
    enum { SOME = 16 };
    const uint32_t all = p->layer[0].to.width;
    const int learns_integers = !applied && p->arith != QN__ARITH_F32;
    uint32_t longest = 1;
    uint64_t item[SOME];
    if (!qn__can_shorten(p) || qn__fills_positions(batch->feed) || learns_integers ||
        qn__needs_all_positions(p, applied))
        return all;
    for (uint32_t first = 0; first < batch->items && longest < all; first += SOME) {
        const uint32_t left = batch->items - first, count = left < SOME ? left : SOME;
        qn__batch_items(batch, first, count, item);
        for (uint32_t i = 0; i < count; ++i)
            longest = qn__item_positions(p, batch->feed, item[i],
                                         qn__batch_values(batch, first + i, item[i]), longest);
    }
    return longest;
}
