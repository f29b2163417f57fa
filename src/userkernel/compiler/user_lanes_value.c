/* Expressions of lanes. A value that is the same for all items is written in plain C, others as
 * vectors. In x * (s + 1), with an input x and a scalar s, the sum is computed once, and C
 * multiplies each lane with it:
 *
 *   (u_x[qn_u] * (float)(u_s + 1))
 *
 * What vectors do not have, such as a division of integers, is computed lane by lane with the
 * functions of one item. Those report faults, for example an index out of range. A fault counts
 * only for lanes that take part, so the second operand of && has a mask of its own. */
#include "userkernel/compiler/user_lanes_parts.h"

#include <stdio.h>
#include <string.h>

static const qn__user_node *node_of(const qn__lanes_writer *w, uint32_t at) {
    return &w->tree->node[at];
}

static const char *word_at(const qn__lanes_writer *w, uint32_t what) {
    return w->tree->words.data + what;
}

static int is_any(const char *sign, const char *list) {
    const size_t size = strlen(sign);
    for (const char *at = strstr(list, sign); at; at = strstr(at + 1, sign))
        if ((at == list || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0'))
            return 1;
    return 0;
}

static int is_checked(const qn__user_node *n) {
    return n->kind == QN__NODE_BINARY && is_any(n->sign, "/ %") &&
           !qn__user_type_is_real(n->common);
}

/* Whether computing a value can report a fault. */
static int can_fail(const qn__lanes_writer *w, uint32_t list) {
    for (; list; list = node_of(w, list)->next) {
        const qn__user_node *n = node_of(w, list);
        if (n->kind == QN__NODE_READ || n->kind == QN__NODE_ELEMENT || n->kind == QN__NODE_CALL ||
            is_checked(n))
            return 1;
        for (int i = 0; i < 3 && n->kind != QN__NODE_LENGTH; i++)
            if (n->child[i] && can_fail(w, n->child[i]))
                return 1;
    }
    return 0;
}

static int calls(const qn__lanes_writer *w, uint32_t list) {
    for (; list; list = node_of(w, list)->next) {
        const qn__user_node *n = node_of(w, list);
        if (n->kind == QN__NODE_CALL)
            return 1;
        for (int i = 0; i < 3 && n->kind != QN__NODE_LENGTH; i++)
            if (n->child[i] && calls(w, n->child[i]))
                return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ the same for all items */

static void plain(qn__lanes_writer *w, uint32_t at);

static void plain_list(qn__lanes_writer *w, uint32_t list, const char *before) {
    for (; list; list = node_of(w, list)->next) {
        qn__lanes_add(w, "%s", before);
        plain(w, list);
        before = ", ";
    }
    qn__lanes_add(w, ")");
}

static void plain_as(qn__lanes_writer *w, uint32_t at, qn__user_type type) {
    qn__lanes_add(w, "((%s)", qn__user_type_word(type));
    plain(w, at);
    qn__lanes_add(w, ")");
}

/* The function of the prelude that an operation is, or NULL. */
static const char *function_of(const char *sign) {
    return strcmp(sign, "<<") == 0   ? "qn_shl"
           : strcmp(sign, ">>") == 0 ? "qn_shr"
           : strcmp(sign, "/") == 0  ? "qn_div"
           : strcmp(sign, "%") == 0  ? "qn_rem"
                                     : NULL;
}

static void plain_operation(qn__lanes_writer *w, const qn__user_node *n) {
    const char *function = function_of(n->sign);
    if (is_any(n->sign, "&& ||")) {
        qn__lanes_add(w, "(");
        plain(w, n->child[0]);
        qn__lanes_add(w, " %s ", n->sign);
        plain(w, n->child[1]);
    } else if (function) {
        qn__lanes_add(w, "%s_%s(%s", function, qn__user_type_tag(n->common),
                      is_checked(n) ? "qn_fault, " : "");
        plain_as(w, n->child[0], n->common);
        qn__lanes_add(w, ", ");
        if (is_any(n->sign, "<< >>"))
            plain(w, n->child[1]);
        else
            plain_as(w, n->child[1], n->common);
    } else {
        qn__lanes_add(w, "(");
        plain_as(w, n->child[0], n->common);
        qn__lanes_add(w, " %s ", n->sign);
        plain_as(w, n->child[1], n->common);
    }
    qn__lanes_add(w, ")");
}

/* How a function is called, up to its arguments; they follow after a comma if *comma. */
static void call_begin(qn__lanes_writer *w, const qn__user_node *n, const char **comma) {
    const char *tag = qn__user_type_tag(n->type);
    *comma = "";
    if (n->kind == QN__NODE_READ) {
        qn__lanes_add(w, "p_%s(", w->source->part[n->what].name);
    } else if (n->kind == QN__NODE_CALL) {
        qn__lanes_add(w, "u_%s(qn_fault%s", word_at(w, n->what), n->flag ? ", qn_draw" : "");
        *comma = ", ";
    } else if (n->kind == QN__NODE_DRAW) {
        qn__lanes_add(w, "qn_%s(qn_draw, (uint32_t)", word_at(w, n->what));
    } else if (n->flag) {
        qn__lanes_add(w, "qn_%s_%s(", tag, word_at(w, n->what));
    } else {
        qn__lanes_add(w, "qn_%s_%s(", word_at(w, n->what), tag);
    }
}

static void plain_conversion(qn__lanes_writer *w, const qn__user_node *n) {
    const qn__user_type from = node_of(w, n->child[0])->type;
    if (qn__user_type_is_real(from) && !qn__user_type_is_real(n->type)) {
        qn__lanes_add(w, "qn_%s_of_%s(", qn__user_type_tag(n->type), qn__user_type_tag(from));
        plain(w, n->child[0]);
        qn__lanes_add(w, ")");
    } else {
        plain_as(w, n->child[0], n->type);
    }
}

static void plain(qn__lanes_writer *w, uint32_t at) {
    const qn__user_node *n = node_of(w, at);
    const char *comma = "";
    switch (n->kind) {
    case QN__NODE_LITERAL:
        qn__lanes_add(w, "%s", word_at(w, n->what));
        return;
    case QN__NODE_NAME:
        if (n->flag)
            qn__lanes_add(w, "qn_c%u", (unsigned)n->what);
        else
            qn__lanes_add(w, "u_%s", w->tree->variable[n->what].name);
        return;
    case QN__NODE_ELEMENT:
        qn__lanes_add(w, "u_%s[qn_inside(qn_fault, ", w->tree->variable[n->what].name);
        plain(w, n->child[0]);
        qn__lanes_add(w, ", %u)]", (unsigned)w->tree->variable[n->what].length);
        return;
    case QN__NODE_LENGTH:
        qn__lanes_add(w, "n_%s_%u", w->source->part[n->what].name, (unsigned)n->child[0]);
        return;
    case QN__NODE_CONVERT:
        plain_conversion(w, n);
        return;
    case QN__NODE_UNARY:
        if (*n->sign == '-' && qn__user_type_is_real(n->type))
            qn__lanes_add(w, "QN_NEGATIVE_%s(", qn__user_type_tag(n->type));
        else
            qn__lanes_add(w, "(%s", n->sign);
        if (*n->sign == '!')
            plain(w, n->child[0]);
        else
            plain_as(w, n->child[0], n->type);
        qn__lanes_add(w, ")");
        return;
    case QN__NODE_BINARY:
        plain_operation(w, n);
        return;
    case QN__NODE_CHOOSE:
        qn__lanes_add(w, "(");
        plain(w, n->child[0]);
        qn__lanes_add(w, " ? ");
        plain_as(w, n->child[1], n->type);
        qn__lanes_add(w, " : ");
        plain_as(w, n->child[2], n->type);
        qn__lanes_add(w, ")");
        return;
    default:
        call_begin(w, n, &comma);
        plain_list(w, n->child[0], comma);
    }
}

/* Writes whether some item takes part. */
static void some(qn__lanes_writer *w) {
    if (w->each)
        qn__lanes_add(w, "qv_any(%s)", w->now);
    else
        qn__lanes_add(w, "qv_any_of(qn_m%u)", (unsigned)w->mask[w->masks - 1]);
}

/* Around a value that may report what no item did. A function may have a loop that ends only for
 * numbers of an item, so it is called where one takes part. */
static void guard_begin(qn__lanes_writer *w, uint32_t at, qn__user_type type) {
    qn__lanes_add(w, "({ QN_FOUND qn_own = 0, *const qn_fault = &qn_own; const %s qn_r = ",
                  qn__user_type_word(type));
    if (calls(w, at)) {
        qn__lanes_add(w, "!");
        some(w);
        qn__lanes_add(w, " ? 0 : ");
    }
}

static void guard_end(qn__lanes_writer *w) {
    qn__lanes_add(w, "; *qn_faults |= qn_own && ");
    some(w);
    qn__lanes_add(w, " ? qn_own : 0; qn_r; })");
}

void qn__lanes_same(qn__lanes_writer *w, uint32_t at) {
    const int guarded = !w->sure && can_fail(w, at);
    if (guarded)
        guard_begin(w, at, node_of(w, at)->type);
    plain(w, at);
    if (guarded)
        guard_end(w);
}

/* ------------------------------------------------------------------ what may be left out */

typedef struct part_state {
    int sure;
    char now[QN__LANES_WORD];
} part_state;

/* From here to part_end only items of a mask take part: `not` of name k. */
static part_state part_begin(qn__lanes_writer *w, const char * not, uint32_t k) {
    part_state before = {.sure = w->sure};
    memcpy(before.now, w->now, sizeof before.now);
    const uint32_t own = ++w->names;
    qn__lanes_add(w, "({ const qv_mask qn_k%u = %s & %sqn_k%u; ", (unsigned)own, w->now, not,
                  (unsigned)k);
    snprintf(w->now, sizeof w->now, "qn_k%u", (unsigned)own);
    w->sure = 0;
    return before;
}

static void part_end(qn__lanes_writer *w, part_state before) {
    qn__lanes_add(w, "; })");
    memcpy(w->now, before.now, sizeof w->now);
    w->sure = before.sure;
}

static void value_of_some(qn__lanes_writer *w, uint32_t at, qn__user_type type, const char * not,
                          uint32_t k) {
    if (!can_fail(w, at)) {
        qn__lanes_value(w, at, type);
        return;
    }
    const part_state before = part_begin(w, not, k);
    qn__lanes_value(w, at, type);
    part_end(w, before);
}

/* ------------------------------------------------------------------ lane by lane */

/* Arguments as constants qn_a0, qn_a1, ... of this value, which the loop over lanes reads. */
static void lane_arguments(qn__lanes_writer *w, uint32_t list, int indices, qn__user_type type) {
    for (uint32_t i = 0; list; i++, list = node_of(w, list)->next) {
        const uint32_t at = indices ? qn__lanes_index(w->tree, list) : list;
        const qn__user_type own = type == QN__USER_TYPES ? node_of(w, at)->type : type;
        if (node_of(w, at)->varies) {
            qn__lanes_add(w, "const qv_%s qn_a%u = ", qn__user_type_tag(own), (unsigned)i);
            qn__lanes_value(w, at, own);
        } else {
            qn__lanes_add(w, "const %s qn_a%u = ", qn__user_type_word(own), (unsigned)i);
            qn__lanes_same(w, at);
        }
        qn__lanes_add(w, "; ");
    }
}

static void lane_begin(qn__lanes_writer *w, qn__user_type type, int fails) {
    qn__lanes_add(w, "%s qn_x[QV_N]; %s%s; QV_LANES { ", qn__user_type_word(type),
                  fails ? "const qv_mask qn_taking = " : "", fails ? w->now : "(void)0");
    if (fails)
        qn__lanes_add(w, "QN_FOUND qn_own = 0, *const qn_fault = &qn_own; ");
}

static void lane_end(qn__lanes_writer *w, qn__user_type type, int fails) {
    if (fails)
        qn__lanes_add(w, "*qn_faults |= qn_own & (QN_FOUND)QV_ON(qn_taking, qn_l); ");
    qn__lanes_add(w, "} qv_%s qn_v; memcpy(&qn_v, qn_x, sizeof qn_v); qn_v; })",
                  qn__user_type_tag(type));
}

/* What an item has for itself, in the loop over lanes. */
static void lane_item(qn__lanes_writer *w, const qn__user_node *n) {
    const int haloed = n->kind == QN__NODE_READ && w->source->part[n->what].use == QN__USER_HALOED;
    if (haloed) /* items after the last one read where it does */
        qn__lanes_add(w, "const int64_t qn_i2 = qv_place(qn_first, qn_count, qn_u, qn_l); ");
    if (n->kind == QN__NODE_DRAW || (n->kind == QN__NODE_CALL && n->flag))
        qn__lanes_add(w, "const qn_draws qn_draw = qn_draws_of(qn_seed, qn_iteration, "
                         "(uint64_t)(qn_item + QV_N * qn_u + qn_l)); ");
}

static void lane_names(qn__lanes_writer *w, uint32_t list, int indices, const char *before) {
    for (uint32_t i = 0; list; i++, list = node_of(w, list)->next) {
        const uint32_t at = indices ? qn__lanes_index(w->tree, list) : list;
        qn__lanes_add(w, "%sqn_a%u%s", before, (unsigned)i, node_of(w, at)->varies ? "[qn_l]" : "");
        before = ", ";
    }
}

static void lane_call(qn__lanes_writer *w, const qn__user_node *n) {
    const int indices = n->kind == QN__NODE_READ || n->kind == QN__NODE_DRAW;
    const int fails = n->kind == QN__NODE_READ || n->kind == QN__NODE_CALL;
    const char *comma;
    qn__lanes_add(w, "({ ");
    lane_arguments(w, n->child[0], indices, n->kind == QN__NODE_BUILTIN ? n->type : QN__USER_TYPES);
    lane_begin(w, n->type, fails);
    lane_item(w, n);
    /* A function may have a loop that ends only for the numbers of items that take part. */
    qn__lanes_add(w, "qn_x[qn_l] = %s",
                  n->kind == QN__NODE_CALL ? "!QV_ON(qn_taking, qn_l) ? 0 : " : "");
    call_begin(w, n, &comma);
    if (n->kind == QN__NODE_DRAW)
        qn__lanes_add(w, "(");
    lane_names(w, n->child[0], indices, comma);
    qn__lanes_add(w, n->kind == QN__NODE_DRAW ? ")); " : "); ");
    lane_end(w, n->type, fails);
}

/* An element of a table, or of an array, whose index varies. */
static void lane_element(qn__lanes_writer *w, const qn__user_node *n) {
    const qn__user_variable *v = &w->tree->variable[n->what];
    qn__lanes_add(w, "({ ");
    lane_arguments(w, n->child[0], 1, QN__USER_TYPES);
    lane_begin(w, n->type, 1);
    qn__lanes_add(w, "qn_x[qn_l] = u_%s[qn_inside(qn_fault, ", v->name);
    lane_names(w, n->child[0], 1, "");
    qn__lanes_add(w, ", %u)]%s; ", (unsigned)v->length, v->table ? "" : "[qn_u][qn_l]");
    lane_end(w, n->type, 1);
}

/* A division of integers, or a conversion to one. */
static void lane_operation(qn__lanes_writer *w, const qn__user_node *n) {
    const int division = n->kind == QN__NODE_BINARY;
    qn__lanes_add(w, "({ ");
    for (uint32_t i = 0; i <= (uint32_t)division; i++) {
        const uint32_t at = n->child[i];
        const qn__user_type type = division ? n->common : node_of(w, at)->type;
        qn__lanes_add(w, "const qv_%s qn_a%u = ", qn__user_type_tag(type), (unsigned)i);
        qn__lanes_value(w, at, type);
        qn__lanes_add(w, "; ");
    }
    lane_begin(w, n->type, division);
    if (division)
        qn__lanes_add(w, "qn_x[qn_l] = %s_%s(qn_fault, qn_a0[qn_l], qn_a1[qn_l]); ",
                      function_of(n->sign), qn__user_type_tag(n->common));
    else
        qn__lanes_add(w, "qn_x[qn_l] = qn_%s_of_%s(qn_a0[qn_l]); ", qn__user_type_tag(n->type),
                      qn__user_type_tag(node_of(w, n->child[0])->type));
    lane_end(w, n->type, division);
}

void qn__lanes_bin(qn__lanes_writer *w, uint32_t index, uint32_t part) {
    qn__lanes_add(w, "({ ");
    lane_arguments(w, index, 1, QN__USER_TYPES);
    lane_begin(w, QN__USER_I32, 1);
    qn__lanes_add(w, "qn_x[qn_l] = qn_bin(qn_fault, QN_FAULT_READ(%u), ", (unsigned)part);
    lane_names(w, index, 1, "");
    qn__lanes_add(w, ", %u); ", (unsigned)w->source->part[part].bins);
    lane_end(w, QN__USER_I32, 1);
}

/* ------------------------------------------------------------------ masks */

/* An operand of an operation, of the type in which it is computed; beside a vector a plain number
 * stands for all lanes. */
static void operand(qn__lanes_writer *w, uint32_t at, qn__user_type type) {
    if (node_of(w, at)->varies) {
        qn__lanes_value(w, at, type);
        return;
    }
    qn__lanes_add(w, "((%s)", qn__user_type_word(type));
    qn__lanes_same(w, at);
    qn__lanes_add(w, ")");
}

static void operation(qn__lanes_writer *w, const qn__user_node *n) {
    qn__lanes_add(w, "(");
    operand(w, n->child[0], n->common);
    qn__lanes_add(w, " %s ", n->sign);
    operand(w, n->child[1], n->common);
    qn__lanes_add(w, ")");
}

/* In the lanes of `mask`. */
static void comparison(qn__lanes_writer *w, const qn__user_node *n, const char *mask) {
    const char *name = *n->sign == '<'   ? n->sign[1] ? "le" : "lt"
                       : *n->sign == '>' ? n->sign[1] ? "ge" : "gt"
                       : *n->sign == '=' ? "eq"
                                         : "ne";
    qn__lanes_add(w, "qv_%s_%s(%s, ", name, qn__user_type_tag(n->common), mask);
    qn__lanes_value(w, n->child[0], n->common);
    qn__lanes_add(w, ", ");
    qn__lanes_value(w, n->child[1], n->common);
    qn__lanes_add(w, ")");
}

/* && and ||: the second operand counts where the first leaves it open. */
static void mask_of_two(qn__lanes_writer *w, const qn__user_node *n) {
    const int both = *n->sign == '&';
    if (!can_fail(w, n->child[1])) {
        qn__lanes_add(w, "(");
        qn__lanes_mask(w, n->child[0]);
        qn__lanes_add(w, " %c ", *n->sign);
        qn__lanes_mask(w, n->child[1]);
        qn__lanes_add(w, ")");
        return;
    }
    const uint32_t k = ++w->names;
    qn__lanes_add(w, "({ const qv_mask qn_k%u = ", (unsigned)k);
    qn__lanes_mask(w, n->child[0]);
    qn__lanes_add(w, "; qn_k%u %c ", (unsigned)k, *n->sign);
    const part_state before = part_begin(w, both ? "" : "~", k);
    qn__lanes_mask(w, n->child[1]);
    part_end(w, before);
    qn__lanes_add(w, "; })");
}

void qn__lanes_mask(qn__lanes_writer *w, uint32_t at) {
    const qn__user_node *n = node_of(w, at);
    if (!n->varies) {
        qn__lanes_add(w, "qv_flag(0 != ");
        qn__lanes_same(w, at);
        qn__lanes_add(w, ")");
    } else if (n->kind == QN__NODE_BINARY && is_any(n->sign, "&& ||")) {
        mask_of_two(w, n);
    } else if (n->kind == QN__NODE_BINARY && is_any(n->sign, "< <= > >= == !=")) {
        comparison(w, n, "qv_flag(1)");
    } else if (n->kind == QN__NODE_UNARY && *n->sign == '!') {
        qn__lanes_add(w, "(~");
        qn__lanes_mask(w, n->child[0]);
        qn__lanes_add(w, ")");
    } else {
        qn__lanes_add(w, "qv_ne_%s(qv_flag(1), ", qn__user_type_tag(n->type));
        qn__lanes_value(w, at, n->type);
        qn__lanes_add(w, ", qv_all_%s(0))", qn__user_type_tag(n->type));
    }
}

void qn__lanes_narrow(qn__lanes_writer *w, uint32_t at) {
    const qn__user_node *n = node_of(w, at);
    qn__lanes_add(w, "%s = ", w->now);
    if (n->kind == QN__NODE_BINARY && is_any(n->sign, "< <= > >= == !=")) {
        comparison(w, n, w->now);
    } else {
        qn__lanes_add(w, "%s & ", w->now);
        qn__lanes_mask(w, at);
    }
}

/* ------------------------------------------------------------------ vectors */

static void choice(qn__lanes_writer *w, const qn__user_node *n) {
    if (!node_of(w, n->child[0])->varies) {
        qn__lanes_add(w, "(");
        qn__lanes_same(w, n->child[0]);
        qn__lanes_add(w, " ? ");
        qn__lanes_value(w, n->child[1], n->type);
        qn__lanes_add(w, " : ");
        qn__lanes_value(w, n->child[2], n->type);
        qn__lanes_add(w, ")");
        return;
    }
    const uint32_t k = ++w->names;
    qn__lanes_add(w, "({ const qv_mask qn_k%u = ", (unsigned)k);
    qn__lanes_mask(w, n->child[0]);
    qn__lanes_add(w, "; qv_select_%s(qn_k%u, ", qn__user_type_tag(n->type), (unsigned)k);
    value_of_some(w, n->child[1], n->type, "", k);
    qn__lanes_add(w, ", ");
    value_of_some(w, n->child[2], n->type, "~", k);
    qn__lanes_add(w, "); })");
}

static void shift(qn__lanes_writer *w, const qn__user_node *n) {
    const char *tag = qn__user_type_tag(n->common);
    qn__lanes_add(w, "qv_%s_%s(", *n->sign == '<' ? "shl" : "shr", tag);
    qn__lanes_value(w, n->child[0], n->common);
    /* The count is taken modulo the width, so its upper bits do not matter. */
    qn__lanes_add(w, ", ");
    qn__lanes_value(w, n->child[1], n->common);
    qn__lanes_add(w, ")");
}

static void binary(qn__lanes_writer *w, uint32_t at) {
    const qn__user_node *n = node_of(w, at);
    if (is_any(n->sign, "&& || < <= > >= == !=")) {
        qn__lanes_add(w, "qv_number(");
        qn__lanes_mask(w, at);
        qn__lanes_add(w, ")");
    } else if (is_checked(n)) {
        lane_operation(w, n);
    } else if (is_any(n->sign, "<< >>")) {
        shift(w, n);
    } else {
        operation(w, n);
    }
}

static void builtin(qn__lanes_writer *w, const qn__user_node *n) {
    const char *name = word_at(w, n->what);
    if (!is_any(name, "min max fmin fmax fabs sin cos tan")) {
        lane_call(w, n);
        return;
    }
    qn__lanes_add(w, "qv_%s_%s(", name, qn__user_type_tag(n->type));
    for (uint32_t i = n->child[0]; i; i = node_of(w, i)->next) {
        qn__lanes_add(w, "%s", i == n->child[0] ? "" : ", ");
        qn__lanes_value(w, i, n->type);
    }
    qn__lanes_add(w, ")");
}

static void unary(qn__lanes_writer *w, uint32_t at) {
    const qn__user_node *n = node_of(w, at);
    if (*n->sign == '!') {
        qn__lanes_add(w, "qv_number(");
        qn__lanes_mask(w, at);
        qn__lanes_add(w, ")");
        return;
    }
    qn__lanes_add(w, "(%s", *n->sign == '+' ? "" : n->sign);
    qn__lanes_value(w, n->child[0], n->type);
    qn__lanes_add(w, ")");
}

static void element(qn__lanes_writer *w, const qn__user_node *n) {
    const qn__user_variable *v = &w->tree->variable[n->what];
    if (node_of(w, n->child[0])->varies) {
        lane_element(w, n);
        return;
    }
    qn__lanes_add(w, "u_%s[", v->name);
    if (!w->sure)
        guard_begin(w, n->child[0], QN__USER_I64);
    qn__lanes_add(w, "qn_inside(qn_fault, ");
    plain(w, n->child[0]);
    qn__lanes_add(w, ", %u)", (unsigned)v->length);
    if (!w->sure)
        guard_end(w);
    qn__lanes_add(w, "][qn_u]");
}

/* A value that varies, in its own type. */
static void vector(qn__lanes_writer *w, uint32_t at) {
    const qn__user_node *n = node_of(w, at);
    switch (n->kind) {
    case QN__NODE_NAME:
        qn__lanes_add(w, "u_%s[qn_u]", w->tree->variable[n->what].name);
        return;
    case QN__NODE_ELEMENT:
        element(w, n);
        return;
    case QN__NODE_CONVERT:
        if (qn__user_type_is_real(node_of(w, n->child[0])->type) && !qn__user_type_is_real(n->type))
            lane_operation(w, n);
        else
            qn__lanes_value(w, n->child[0], n->type);
        return;
    case QN__NODE_UNARY:
        unary(w, at);
        return;
    case QN__NODE_BINARY:
        binary(w, at);
        return;
    case QN__NODE_CHOOSE:
        choice(w, n);
        return;
    case QN__NODE_BUILTIN:
        builtin(w, n);
        return;
    default:
        lane_call(w, n);
    }
}

void qn__lanes_value(qn__lanes_writer *w, uint32_t at, qn__user_type type) {
    const qn__user_node *n = node_of(w, at);
    if (!n->varies) {
        qn__lanes_add(w, "qv_all_%s(", qn__user_type_tag(type));
        qn__lanes_same(w, at);
        qn__lanes_add(w, ")");
    } else if (n->type == type) {
        vector(w, at);
    } else {
        qn__lanes_add(w, "__builtin_convertvector(");
        vector(w, at);
        qn__lanes_add(w, ", qv_%s)", qn__user_type_tag(type));
    }
}
