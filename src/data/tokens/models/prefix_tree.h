/* Texts by their beginnings, each with a number. Start with {0}. */
#ifndef QN_DATA_TOKENS_MODELS_PREFIX_TREE_H
#define QN_DATA_TOKENS_MODELS_PREFIX_TREE_H

#include "base/error.h"
#include <stdint.h>

/* An edge in a hash table with open addressing: from a node by a byte to the next node. */
typedef struct qn__prefix_edge {
    uint64_t key;    /* 1 + node and byte; 0: free */
    uint32_t to;     /* 1 and on; 0 is the root */
    uint32_t number; /* of the text that ends there; QN__WORD_NONE: none does */
} qn__prefix_edge;

typedef struct qn__prefix_tree {
    qn__prefix_edge *edge;
    uint32_t slots; /* a power of two, more than twice `count` */
    uint32_t count; /* of edges */
} qn__prefix_tree;

/* Adds a text, or gives one that is there another number. Fails with QN_MEMORY. */
qn_status qn__prefix_tree_add(qn__prefix_tree *tree, const uint8_t *text, size_t size,
                              uint32_t number, qn_error *err);
void qn__prefix_tree_release(qn__prefix_tree *tree);

static inline qn__prefix_edge *qn__prefix_tree_edge(const qn__prefix_tree *tree, uint32_t node,
                                                    uint8_t byte) {
    const uint64_t key = ((uint64_t)node << 8 | byte) + 1;
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 32) & (tree->slots - 1);
    while (tree->edge[at].key && tree->edge[at].key != key)
        at = (at + 1) & (tree->slots - 1);
    return &tree->edge[at];
}

/* Goes from *node, 0 at first, over a byte; *number is that of the text that ends there. 0: no text
 * goes on so. */
static inline int qn__prefix_tree_next(const qn__prefix_tree *tree, uint32_t *node, uint8_t byte,
                                       uint32_t *number) {
    const qn__prefix_edge *edge = tree->slots ? qn__prefix_tree_edge(tree, *node, byte) : NULL;
    if (!edge || !edge->key)
        return 0;
    *node = edge->to;
    *number = edge->number;
    return 1;
}

#endif
