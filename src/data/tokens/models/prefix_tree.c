#include "data/tokens/models/prefix_tree.h"

#include "base/memory.h"
#include "data/tokens/models/word_table.h"

enum { FIRST_SLOTS = 1024 };

static qn_status grow(qn__prefix_tree *tree, qn_error *err) {
    if (2 * ((uint64_t)tree->count + 1) < tree->slots)
        return QN_OK;
    qn__prefix_tree longer = {.slots = tree->slots ? 2 * tree->slots : FIRST_SLOTS,
                              .count = tree->count};
    longer.edge = longer.slots ? qn__alloc(longer.slots, sizeof *longer.edge, err) : NULL;
    if (!longer.edge)
        return QN_MEMORY;
    for (uint32_t k = 0; k < tree->slots; k++)
        if (tree->edge[k].key) {
            const uint64_t from = tree->edge[k].key - 1;
            *qn__prefix_tree_edge(&longer, (uint32_t)(from >> 8), (uint8_t)from) = tree->edge[k];
        }
    qn__free(tree->edge);
    *tree = longer;
    return QN_OK;
}

qn_status qn__prefix_tree_add(qn__prefix_tree *tree, const uint8_t *text, size_t size,
                              uint32_t number, qn_error *err) {
    uint32_t node = 0;
    for (size_t k = 0; k < size; k++) {
        const qn_status status = grow(tree, err);
        if (status != QN_OK)
            return status;
        qn__prefix_edge *edge = qn__prefix_tree_edge(tree, node, text[k]);
        if (!edge->key)
            *edge = (qn__prefix_edge){((uint64_t)node << 8 | text[k]) + 1, ++tree->count,
                                      QN__WORD_NONE};
        if (k + 1 == size)
            edge->number = number;
        node = edge->to;
    }
    return QN_OK;
}

void qn__prefix_tree_release(qn__prefix_tree *tree) {
    qn__free(tree->edge);
    *tree = (qn__prefix_tree){0};
}
