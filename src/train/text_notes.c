/* What a training tells about layers that read positions of a text which they should not. */
#include "layer/embedding.h"
#include "layer/layer.h"
#include "layer/padding.h"
#include "train/trainer_state.h"
#include <stdlib.h>

/* Tells `before`, the words of a layer, and `after`. */
static void note_layer(const qn_train *t, uint32_t l, const char *before, const char *after) {
    qn__text text = {0};
    qn__text_add(&text, "layer %u, \"", l);
    qn__network_layer_text(&t->job.recipe.network.layer[l], &text);
    qn__text_add(&text, "\", %s%s", before, after);
    if (!text.failed)
        qn__train_note(t, text.data);
    free(text.data);
}

/* Whether an item ends before the last position of its table. */
static int are_filled_up(const qn_data *data, uint32_t tokens) {
    if (!qn__element_is_token(data->type))
        return 0;
    for (uint64_t i = 0; i < data->items; ++i)
        if (qn__element_number(data->type, qn__data_item(data, i), data->features - 1) >= tokens)
            return 1;
    return 0;
}

/* A product of the embedding reads zeros after the last token: they count for nothing. */
static int reads_zeros(const qn__layer *layer, uint32_t l) {
    return layer[l].depth && qn__layer_source(layer, l) == 0 && layer[0].activation == QN__ACT_NONE;
}

static void note_padding(const qn_train *t) {
    const qn__program *p = &t->job.program;
    const uint32_t l = qn__padding_mixed(p->layer, p->layers);
    if (l < p->layers && !reads_zeros(p->layer, l) &&
        are_filled_up(t->sets.given.train, qn__layer_tokens(&p->layer[0])))
        note_layer(t, l,
                   "counts what fills up short texts as if it were text, so answers depend on the "
                   "number of positions; ",
                   "`attention`, `rmsnorm` and `pool mean` do not");
}

/* Outputs of a position are those of the next token: it must not be read before. */
static void note_ahead(const qn_train *t) {
    const qn__program *p = &t->job.program;
    for (uint32_t l = 0; l < p->layers; ++l) {
        const qn__layer_ops *ops = qn__layer_ops_of(p->layer[l].kind);
        if (ops->steps && ops->steps(&p->layer[l]))
            continue;
        note_layer(t, l,
                   "reads tokens that the model is to tell, so its losses say little and it cannot "
                   "generate; ",
                   p->layer[l].kind == QN__LAYER_ATTENTION ? "add \"causal\""
                   : p->layer[l].reverse                   ? "leave \"reverse\" out"
                                         : "only `attention`, `lstm` and `gru` may read others");
        return;
    }
}

void qn__train_note_texts(const qn_train *t) {
    if (!t->options.on_note || !qn__train_is_writer(t) ||
        t->job.program.layer[0].kind != QN__LAYER_EMBEDDING)
        return;
    note_padding(t);
    if (t->job.recipe.task == QN__TASK_NEXT)
        note_ahead(t);
}
