#include "userkernel/language/user_tree.h"

#include "base/memory.h"
#include <string.h>

void qn__user_tree_release(qn__user_tree *tree) {
    qn__free(tree->node);
    qn__free(tree->variable);
    qn__text_release(&tree->words);
    *tree = (qn__user_tree){0};
}

uint32_t qn__user_tree_add(qn__user_tree *tree, qn__user_node node) {
    const uint32_t at = tree->nodes > 0 ? tree->nodes : 1;
    tree->node =
        qn__user_one_more(tree->node, at, &tree->node_capacity, sizeof node, &tree->failed);
    if (tree->failed)
        return 0;
    tree->node[at] = node;
    tree->nodes = at + 1;
    return at;
}

uint32_t qn__user_tree_join(qn__user_tree *tree, uint32_t list, uint32_t item) {
    uint32_t last = list;
    if (list == 0 || item == 0)
        return list == 0 ? item : list;
    while (tree->node[last].next != 0)
        last = tree->node[last].next;
    tree->node[last].next = item;
    return list;
}

uint32_t qn__user_tree_word(qn__user_tree *tree, const char *word, size_t size) {
    const size_t at = tree->words.size;
    qn__text_add(&tree->words, "%.*s\n", (int)size, word);
    tree->failed |= tree->words.failed;
    if (!tree->failed) /* each word ends in a NUL of its own */
        tree->words.data[tree->words.size - 1] = '\0';
    return (uint32_t)at;
}

uint32_t qn__user_tree_variable(qn__user_tree *tree, const char *name, qn__user_type type) {
    tree->variable = qn__user_one_more(tree->variable, tree->variables, &tree->variable_capacity,
                                       sizeof *tree->variable, &tree->failed);
    if (tree->failed)
        return 0;
    qn__user_variable *v = &tree->variable[tree->variables];
    *v = (qn__user_variable){.type = type};
    strcpy(v->name, name);
    return tree->variables++;
}
