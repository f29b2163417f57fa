#include "userkernel/compiler/user_common.h"

#include "userkernel/compiler/user_program_parts.h"
#include <string.h>

/* In the table of kernels/runtime/math_common.inc, of double and of float. */
static int is_common(const char *name, qn__user_type type) {
    static const char *const names[] = {"sin", "cos", "tan", "exp", "log", "erf", "tanh", "pow"};
    const size_t angles = 3, all = sizeof names / sizeof *names;
    for (size_t i = 0; i < (type == QN__USER_F64 ? all : angles); i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

int qn__user_has_common(const qn__user_source *s) {
    const qn__user_tree *tree = &s->tree;
    int found = 0;
    if (!s->has_math || tree->lanes || tree->failed || qn__user_has_halo(s))
        return 0;
    for (uint32_t i = 1; i < tree->nodes; i++) {
        const qn__user_node *n = &tree->node[i];
        if (qn__user_is_loop(n))
            return 0;
        found |= n->kind == QN__NODE_BUILTIN && n->flag &&
                 is_common(tree->words.data + n->what, n->type);
    }
    return found;
}
