/* The pieces of C that the loops for processors (user_program.c) and the kernels for devices
 * (execution/user_device.c) have in common: the stores of an item's results, and the check for NaN
 * before them. */
#include "userkernel/compiler/user_program_parts.h"

#include <stdio.h>

int qn__user_has_halo(const qn__user_source *s) {
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_HALOED)
            return 1;
    return 0;
}

int qn__user_has_own_array(const qn__user_source *s) {
    for (uint32_t i = 0; i < s->tree.variables; i++)
        if (s->tree.variable[i].length > 0 && !s->tree.variable[i].table)
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

void qn__user_name_number(const qn__user_part *p, uint32_t number,
                          char text[QN__USER_NUMBER_NAME]) {
    if (p->components > 0)
        snprintf(text, QN__USER_NUMBER_NAME, "o_%s[%u]", p->name, (unsigned)number);
    else
        snprintf(text, QN__USER_NUMBER_NAME, "o_%s", p->name);
}

void qn__user_write_store(const qn__user_part *p, const char *item, uint32_t number, qn__text *t) {
    char result[QN__USER_NUMBER_NAME];
    qn__user_name_number(p, number, result);
    if (p->components > 0)
        qn__text_add(t, "a_%s[(%s) * %u + %u] = %s;\n", p->name, item, (unsigned)p->components,
                     (unsigned)number, result);
    else
        qn__text_add(t, "a_%s[%s] = %s;\n", p->name, item, result);
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

static const char *word_of_check(const qn__user_source *s, uint32_t part) {
    return s->part[part].type == QN__USER_F64 && gets_function(s, part) ? "uint64_t" : "uint32_t";
}

void qn__user_write_check_begin(const qn__user_source *s, uint32_t part, qn__text *t) {
    qn__text_add(t, "    %s nan_%s = 0;\n", word_of_check(s, part), s->part[part].name);
}

/* Notes NaN, and infinity in a sum. Of doubles a comparison is an int, so that 32 bits are enough
 * and vectors have no mask to widen. But GCC unites a comparison with those at the end of a
 * function, such as cbrt, and then makes no vectors of the loop. It does not look into bits. */
static void write_check(const qn__user_source *s, uint32_t part, uint32_t number, qn__text *t) {
    const qn__user_part *p = &s->part[part];
    const int sums = p->use == QN__USER_SUM;
    char result[QN__USER_NUMBER_NAME];
    qn__user_name_number(p, number, result);
    if (p->type == QN__USER_F32)
        qn__text_add(t, "        nan_%s = qn_most_f32(nan_%s, %s);\n", p->name, p->name, result);
    else if (gets_function(s, part))
        qn__text_add(t, "        nan_%s |= qn_nan_f64(%s, %d);\n", p->name, result, sums);
    else
        qn__text_add(
            t, sums ? "        nan_%s |= -!(%s - %s == 0);\n" : "        nan_%s |= -(%s != %s);\n",
            p->name, result, result);
}

void qn__user_write_check_end(const qn__user_source *s, uint32_t part, qn__text *t) {
    const qn__user_part *p = &s->part[part];
    qn__text_add(t, "    found |= nan_%s", p->name);
    if (p->type == QN__USER_F32)
        qn__text_add(t, " > 0x7f800000u - %du", p->use == QN__USER_SUM);
    else
        qn__text_add(t, " >> (8 * sizeof nan_%s - 1)", p->name);
    qn__text_add(t, " ? QN_FAULT_NAN(%u) : 0;\n", (unsigned)part);
}

void qn__user_write_stores(const qn__user_source *s, const char *at, qn__text *t) {
    char item[32];
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!qn__user_use_is_result(p->use))
            continue;
        snprintf(item, sizeof item, "%s + %s", p->use == QN__USER_OUTPUT ? "item" : "done", at);
        for (uint32_t c = 0; c < qn__user_part_numbers(p); c++) {
            if (qn__user_type_is_real(p->type))
                write_check(s, i, c, t);
            qn__text_add(t, "        ");
            qn__user_write_store(p, item, c, t);
        }
        if (qn__user_is_marked(p))
            qn__text_add(t, "        b_%s[done + %s] = h_%s;\n", p->name, at, p->name);
    }
}
