#include "job/user_program_parts.h"

int qn__user_has_halo(const qn__user_source *s) {
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_HALOED)
            return 1;
    return 0;
}

int qn__user_is_marked(const qn__user_part *p) {
    return qn__user_use_is_extreme(p->use) || p->bins > 0;
}

const char *qn__user_mark_of(const qn__user_part *p) { return p->bins > 0 ? "int32_t" : "uint8_t"; }

uint32_t qn__user_halo_reach(const qn__user_source *s) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_HALOED && s->part[i].halo > most)
            most = s->part[i].halo;
    return most;
}

/* Whether a value is what a function gives, as it is or by a choice. */
static int is_function(const qn__user_tree *tree, uint32_t at) {
    const qn__user_node *n = &tree->node[at];
    if (n->kind == QN__NODE_CONVERT)
        return is_function(tree, n->child[0]);
    if (n->kind == QN__NODE_CHOOSE)
        return is_function(tree, n->child[1]) || is_function(tree, n->child[2]);
    return n->kind == QN__NODE_CALL || (n->kind == QN__NODE_BUILTIN && n->flag);
}

static int gets_function(const qn__user_source *s, uint32_t part) {
    for (uint32_t i = 1; i < s->tree.nodes; i++) {
        const qn__user_node *n = &s->tree.node[i];
        if (n->kind == QN__NODE_RESULT && n->what == part && is_function(&s->tree, n->child[0]))
            return 1;
    }
    return 0;
}

/* Notes NaN, and infinity in a sum. GCC unites a comparison with those at the end of a function,
 * such as cbrt, and then makes no vectors of the loop. It does not look into bits, but these take
 * an operation more. */
static void write_check(const qn__user_source *s, uint32_t part, qn__text *t) {
    const qn__user_part *p = &s->part[part];
    const int sums = p->use == QN__USER_SUM;
    if (gets_function(s, part))
        qn__text_add(t, "        nan_%s |= qn_nan_%s(o_%s, %d);\n", p->name,
                     qn__user_type_tag(p->type), p->name, sums);
    else
        qn__text_add(t,
                     sums ? "        nan_%s |= -!(o_%s - o_%s == 0);\n"
                          : "        nan_%s |= -(o_%s != o_%s);\n",
                     p->name, p->name, p->name);
}

void qn__user_write_stores(const qn__user_source *s, const char *at, qn__text *t) {
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!qn__user_use_is_result(p->use))
            continue;
        if (qn__user_type_is_real(p->type))
            write_check(s, i, t);
        qn__text_add(t, "        a_%s[%s + %s] = o_%s;\n", p->name,
                     p->use == QN__USER_OUTPUT ? "item" : "done", at, p->name);
        if (qn__user_is_marked(p))
            qn__text_add(t, "        b_%s[done + %s] = h_%s;\n", p->name, at, p->name);
    }
}
