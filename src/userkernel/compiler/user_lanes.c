/* Statements of lanes.
 *
 * One instruction computes a statement for several items, one in each lane of a vector. Items may
 * take different branches. So a mask says which lanes take part, and an assignment changes only
 * these. A loop runs until no lane is left in its mask. Four items with the numbers 1, 3, 5 and 9:
 *
 *   while (t < 9)        round   mask      t after it
 *       t *= 2;          1       1 1 1 0    2  6 10  9
 *                        2       1 1 0 0    4 12 10  9
 *                        3       1 0 0 0    8 12 10  9
 *                        4       1 0 0 0   16 12 10  9
 *                        5       0 0 0 0   the loop ends
 *
 * It is written as:
 *
 *   for (;;) {
 *       QV_EACH { qn_m1[qn_u] = qv_lt_f32(qn_m1[qn_u], u_t[qn_u], 9); }
 *       if (!qv_any_of(qn_m1)) break;
 *       QV_EACH { u_t[qn_u] = qv_select_f32(qn_m1[qn_u], u_t[qn_u] * 2, u_t[qn_u]); }
 *   }
 *
 * Each lane does the operations of its item in their order, so no bit of a result changes. Where a
 * condition is the same for all items (user_lanes_vary.c) there is no mask, but an `if` of C.
 *
 * Names in the text: u_NAME is a variable, one number or QV_U vectors. qn_m1 is a mask, whose
 * number is in w->mask. qn_u counts vectors, and qn_l lanes. qn_c7 is the counter of a loop,
 * variable 7, and qn_t7 says how often each item counted. */
#include "userkernel/compiler/user_lanes.h"

#include "user_lanes_text.h"
#include "userkernel/compiler/user_lanes_parts.h"
#include "userkernel/compiler/user_program_parts.h"

#include <stdio.h>
#include <string.h>

static const qn__user_node *node_of(const qn__lanes_writer *w, uint32_t at) {
    return &w->tree->node[at];
}

static void write_list(qn__lanes_writer *w, uint32_t list);

/* ------------------------------------------------------------------ masks */

static uint32_t top(const qn__lanes_writer *w) { return w->mask[w->masks - 1]; }

static void push(qn__lanes_writer *w, uint32_t mask) { w->mask[w->masks++] = mask; }

/* From here to each_end one vector of all is written. */
static void each_begin(qn__lanes_writer *w) {
    w->each = 1;
    snprintf(w->now, sizeof w->now, "qn_m%u[qn_u]", (unsigned)top(w));
    qn__lanes_add(w, "QV_EACH { ");
}

static void each_end(qn__lanes_writer *w) {
    w->each = 0;
    qn__lanes_add(w, "; }\n");
}

/* Whether some items leave a loop or the kernel in a statement before others, which narrows masks.
 * `own`: it stands in no loop of the statement. */
static int leaves(const qn__lanes_writer *w, uint32_t at, int own) {
    const qn__user_node *n = node_of(w, at);
    const int loop = qn__user_is_loop(n);
    if (n->kind == QN__NODE_RETURN)
        return w->tree->leaves;
    if (n->kind == QN__NODE_BREAK || n->kind == QN__NODE_CONTINUE)
        return own && w->loop_mask > 0;
    if (n->kind != QN__NODE_BLOCK && n->kind != QN__NODE_IF && !loop)
        return 0;
    for (int i = 0; i < 3; i++)
        for (uint32_t k = n->child[i]; k; k = node_of(w, k)->next)
            if (leaves(w, k, own && !loop))
                return 1;
    return 0;
}

/* The items of the last mask leave: all masks from the one numbered `from` on lose them. */
static void write_leave(qn__lanes_writer *w, uint32_t from) {
    qn__lanes_add(w, "QV_EACH { const qv_mask qn_stay = ~qn_m%u[qn_u];", (unsigned)top(w));
    for (uint32_t i = from; i < w->masks; i++)
        qn__lanes_add(w, " qn_m%u[qn_u] &= qn_stay;", (unsigned)w->mask[i]);
    qn__lanes_add(w, " }\n");
}

/* ------------------------------------------------------------------ assignments */

/* Assigns to `target` of the type, in the lanes of those that take part or, with `all`, in all. */
static void begin_target(qn__lanes_writer *w, const char *target, qn__user_type type, int all) {
    qn__lanes_add(w, "%s = ", target);
    if (!all)
        qn__lanes_add(w, "qv_select_%s(%s, ", qn__user_type_tag(type), w->now);
}

static void end_target(qn__lanes_writer *w, const char *target, int all) {
    if (!all)
        qn__lanes_add(w, ", %s)", target);
}

static void write_array(qn__lanes_writer *w, const qn__user_node *n, const qn__user_variable *v) {
    uint32_t k = 0;
    qn__lanes_add(w, "qv_%s u_%s[%u][QV_U] = {0};\n", qn__user_type_tag(v->type), v->name,
                  (unsigned)v->length);
    for (uint32_t i = n->child[0]; i; i = node_of(w, i)->next) {
        each_begin(w);
        qn__lanes_add(w, "u_%s[%u][qn_u] = ", v->name, (unsigned)k++);
        qn__lanes_value(w, i, v->type);
        each_end(w);
    }
}

/* A number that is the same for all items as NAME and the number of its variable. */
static void write_common_value(qn__lanes_writer *w, const qn__user_node *n, const char *name) {
    qn__lanes_add(w, "%s %s%u = ", qn__user_type_word(w->tree->variable[n->what].type), name,
                  (unsigned)n->what);
    qn__lanes_same(w, n->child[0]);
    qn__lanes_add(w, "; ");
}

static void write_declaration(qn__lanes_writer *w, const qn__user_node *n) {
    const qn__user_variable *v = &w->tree->variable[n->what];
    if (v->length > 0) {
        write_array(w, n, v);
    } else if (!v->varies) {
        qn__lanes_add(w, "%s u_%s = ", qn__user_type_word(v->type), v->name);
        qn__lanes_same(w, n->child[0]);
        qn__lanes_add(w, ";\n");
    } else {
        const int same = !node_of(w, n->child[0])->varies;
        if (same) /* a loop that it counts begins with it */
            write_common_value(w, n, "qn_s");
        qn__lanes_add(w, "qv_%s u_%s[QV_U]; ", qn__user_type_tag(v->type), v->name);
        each_begin(w);
        qn__lanes_add(w, "u_%s[qn_u] = ", v->name);
        if (same)
            qn__lanes_add(w, "qv_all_%s(qn_s%u)", qn__user_type_tag(v->type), (unsigned)n->what);
        else
            qn__lanes_value(w, n->child[0], v->type);
        each_end(w);
    }
}

/* TARGET[index] = value, lane by lane. `inside`: a call without its end, which tests the index. */
static void write_indexed(qn__lanes_writer *w, const qn__user_node *n, qn__user_type type,
                          const char *target, const char *inside, uint32_t length) {
    qn__lanes_add(w, "const qv_i64 qn_at = ");
    qn__lanes_value(w, n->child[1], QN__USER_I64);
    qn__lanes_add(w, "; const qv_%s qn_new = ", qn__user_type_tag(type));
    qn__lanes_value(w, n->child[0], type);
    qn__lanes_add(w,
                  "; const qv_mask qn_taking = %s; QV_LANES { QN_FOUND qn_own = 0; "
                  "const int64_t qn_place = %s, qn_at[qn_l], %u); "
                  "*qn_faults |= qn_own & (QN_FOUND)QV_ON(qn_taking, qn_l); "
                  "if (QV_ON(qn_taking, qn_l)) %s[qn_place][qn_u][qn_l] = qn_new[qn_l]; }",
                  w->now, inside, (unsigned)length, target);
}

/* NAME[index] = value of an array. */
static void write_element(qn__lanes_writer *w, const qn__user_node *n, const qn__user_variable *v) {
    char target[QN__USER_NAME_MAX + 8];
    snprintf(target, sizeof target, "u_%s", v->name);
    write_indexed(w, n, v->type, target, "qn_inside(&qn_own", v->length);
}

/* NAME[component] = value of an output. */
static void write_component(qn__lanes_writer *w, const qn__user_node *n, const qn__user_part *p) {
    char target[QN__USER_NAME_MAX + 8], inside[64];
    snprintf(target, sizeof target, "o_%s", p->name);
    snprintf(inside, sizeof inside, "qn_component(&qn_own, QN_FAULT_READ(%u)", (unsigned)n->what);
    write_indexed(w, n, p->type, target, inside, p->components);
}

/* All who are in the loop have one value of what counts it. How often each of them counted is
 * enough for what the variable is after the loop. */
static void write_count(qn__lanes_writer *w, const qn__user_node *n) {
    qn__lanes_add(w, "qn_c%u = ", (unsigned)n->what);
    qn__lanes_same(w, n->child[0]);
    qn__lanes_add(w, "; QV_EACH qn_t%u[qn_u] = qv_count(qn_t%u[qn_u], qn_m%u[qn_u]);\n",
                  (unsigned)n->what, (unsigned)n->what, (unsigned)top(w));
}

static void write_assignment(qn__lanes_writer *w, const qn__user_node *n) {
    const qn__user_variable *v = &w->tree->variable[n->what];
    char target[QN__USER_NAME_MAX + 16];
    if (n->flag) {
        write_count(w, n);
        return;
    }
    if (!v->varies) {
        qn__lanes_add(w, "u_%s = ", v->name);
        qn__lanes_same(w, n->child[0]);
        qn__lanes_add(w, ";\n");
        return;
    }
    each_begin(w);
    if (v->length > 0) {
        write_element(w, n, v);
    } else {
        /* Items that left the level of the declaration do not read the variable again. */
        const int all = n->varies;
        snprintf(target, sizeof target, "u_%s[qn_u]", v->name);
        begin_target(w, target, v->type, all);
        qn__lanes_value(w, n->child[0], v->type);
        end_target(w, target, all);
    }
    each_end(w);
}

static void write_result(qn__lanes_writer *w, const qn__user_node *n) {
    const qn__user_part *p = &w->source->part[n->what];
    const int all = w->level == 0 && !w->tree->leaves;
    char target[QN__USER_NAME_MAX + 24];
    each_begin(w);
    if (p->components > 0 && n->number == 0) {
        write_component(w, n, p);
        each_end(w);
        return;
    }
    if (qn__user_is_marked(p)) {
        snprintf(target, sizeof target, "h_%s[qn_u]", p->name);
        begin_target(w, target, p->bins > 0 ? QN__USER_I32 : QN__USER_U8, all);
        if (p->bins > 0)
            qn__lanes_bin(w, n->child[1], n->what);
        else
            qn__lanes_add(w, "qv_all_u8(1)");
        end_target(w, target, all);
        qn__lanes_add(w, "; ");
    }
    if (n->number > 0)
        snprintf(target, sizeof target, "o_%s[%u][qn_u]", p->name, (unsigned)n->number - 1);
    else
        snprintf(target, sizeof target, "o_%s[qn_u]", p->name);
    begin_target(w, target, p->type, all);
    if (p->use == QN__USER_COUNT) {
        qn__lanes_add(w, "__builtin_convertvector(qv_number(");
        qn__lanes_mask(w, n->child[0]);
        qn__lanes_add(w, "), qv_u8)");
    } else {
        qn__lanes_value(w, n->child[0], p->type);
    }
    end_target(w, target, all);
    each_end(w);
}

/* ------------------------------------------------------------------ branches */

static void write_part(qn__lanes_writer *w, uint32_t list, uint32_t mask) {
    qn__lanes_add(w, "if (qv_any_of(qn_m%u)) {\n", (unsigned)mask);
    push(w, mask);
    w->level++;
    write_list(w, list);
    w->level--;
    w->masks--;
    qn__lanes_add(w, "}\n");
}

static void write_if(qn__lanes_writer *w, const qn__user_node *n) {
    if (!node_of(w, n->child[0])->varies) {
        qn__lanes_add(w, "if (");
        qn__lanes_same(w, n->child[0]);
        qn__lanes_add(w, ") {\n");
        write_list(w, n->child[1]);
        qn__lanes_add(w, "} else {\n");
        write_list(w, n->child[2]);
        qn__lanes_add(w, "}\n");
        return;
    }
    const uint32_t yes = ++w->names, no = ++w->names;
    qn__lanes_add(w, "{ qv_mask qn_m%u[QV_U], qn_m%u[QV_U]; ", (unsigned)yes, (unsigned)no);
    each_begin(w);
    qn__lanes_add(w, "const qv_mask qn_c = ");
    qn__lanes_mask(w, n->child[0]);
    qn__lanes_add(w, "; qn_m%u[qn_u] = %s & qn_c; qn_m%u[qn_u] = %s & ~qn_c", (unsigned)yes, w->now,
                  (unsigned)no, w->now);
    each_end(w);
    if (n->child[1])
        write_part(w, n->child[1], yes);
    if (n->child[2])
        write_part(w, n->child[2], no);
    qn__lanes_add(w, "}\n");
}

/* ------------------------------------------------------------------ loops */

static void write_common_condition(qn__lanes_writer *w, const qn__user_node *n) {
    if (!n->child[1])
        return;
    qn__lanes_add(w, "if (!");
    qn__lanes_same(w, n->child[1]);
    qn__lanes_add(w, ") break;\n");
}

/* All items take this loop together. What follows its body stands before it where there is a
 * "continue", which would pass over it. */
static void write_common_loop(qn__lanes_writer *w, const qn__user_node *n) {
    const int before = qn__lanes_continues(w->tree, n->child[2]), first = n->kind == QN__NODE_LOOP;
    qn__lanes_add(w, before ? "for (int qn_again = 0;; qn_again = 1) {\nif (qn_again) {\n"
                            : "for (;;) {\n");
    if (before) {
        write_list(w, n->child[3]);
        if (!first)
            write_common_condition(w, n);
        qn__lanes_add(w, "}\n");
    }
    if (first)
        write_common_condition(w, n);
    write_list(w, n->child[2]);
    if (!before) {
        write_list(w, n->child[3]);
        if (!first)
            write_common_condition(w, n);
    }
    qn__lanes_add(w, "}\n");
}

/* Items for which one of the conditions does not hold leave the loop before the next is looked at;
 * where all have it in common they leave together. */
static void write_conditions(qn__lanes_writer *w, uint32_t at) {
    const qn__user_node *n = node_of(w, at);
    if (n->varies && n->kind == QN__NODE_BINARY && strcmp(n->sign, "&&") == 0) {
        write_conditions(w, n->child[0]);
        write_conditions(w, n->child[1]);
    } else if (n->varies) {
        each_begin(w);
        qn__lanes_narrow(w, at);
        each_end(w);
        w->sure = 0;
    } else {
        qn__lanes_add(w, "if (!");
        qn__lanes_same(w, at);
        qn__lanes_add(w, ") break;\n");
    }
}

/* Items leave this loop at different times. */
static void write_condition(qn__lanes_writer *w, const qn__user_node *n, uint32_t mask) {
    const int sure = w->sure;
    if (n->child[1])
        write_conditions(w, n->child[1]);
    w->sure = sure;
    qn__lanes_add(w, "if (!qv_any_of(qn_m%u)) break;\n", (unsigned)mask);
}

/* What counts the loop has the value of its head, or that of its declaration. */
static void write_counter(qn__lanes_writer *w, const qn__user_node *loop) {
    const qn__user_variable *v = &w->tree->variable[loop->what - 1];
    const qn__user_node *head = NULL;
    for (uint32_t k = loop->child[0]; k; k = node_of(w, k)->next)
        if (node_of(w, k)->kind == QN__NODE_ASSIGN && node_of(w, k)->what + 1 == loop->what)
            head = node_of(w, k);
    if (head)
        write_common_value(w, head, "qn_c");
    else
        qn__lanes_add(w, "%s qn_c%u = qn_s%u; ", qn__user_type_word(v->type),
                      (unsigned)(loop->what - 1), (unsigned)(loop->what - 1));
    qn__lanes_add(w, "qv_rounds qn_t%u[QV_U] = {0};\n", (unsigned)(loop->what - 1));
}

/* The assignment in a list that changes the counter, or NULL. */
static const qn__user_node *step_in(const qn__lanes_writer *w, const qn__user_node *loop,
                                    uint32_t list) {
    for (uint32_t k = list; k; k = node_of(w, k)->next)
        if (node_of(w, k)->kind == QN__NODE_ASSIGN && node_of(w, k)->what + 1 == loop->what)
            return node_of(w, k);
    return NULL;
}

/* After the loop each item has its own value of what counts it. */
static void write_counted(qn__lanes_writer *w, const qn__user_node *loop) {
    const qn__user_node *last = step_in(w, loop, loop->child[3]);
    const qn__user_node *step =
        last ? last : step_in(w, loop, node_of(w, loop->child[2])->child[0]);
    const qn__user_variable *v = &w->tree->variable[loop->what - 1];
    const char *tag = qn__user_type_tag(v->type);
    const qn__user_node *sum = qn__lanes_step(w->tree, step);
    qn__lanes_add(w,
                  "QV_EACH u_%s[qn_u] %s= __builtin_convertvector(qn_t%u[qn_u], qv_%s) * "
                  "qv_all_%s((%s)",
                  v->name, sum->sign, (unsigned)(loop->what - 1), tag, tag,
                  qn__user_type_word(v->type));
    qn__lanes_same(w, sum->child[1]);
    qn__lanes_add(w, ");\n");
}

static void write_own_loop(qn__lanes_writer *w, const qn__user_node *n) {
    const uint32_t stays = ++w->names, goes_on = ++w->names;
    const int skips = (n->varies & QN__LOOP_SKIPS) != 0;
    qn__lanes_add(w, "{ qv_mask qn_m%u[QV_U]; QV_EACH qn_m%u[qn_u] = qn_m%u[qn_u];\n",
                  (unsigned)stays, (unsigned)stays, (unsigned)top(w));
    if (n->what)
        write_counter(w, n);
    qn__lanes_add(w, "for (;;) {\n");
    push(w, stays);
    w->level++;
    if (n->kind == QN__NODE_LOOP)
        write_condition(w, n, stays);
    if (skips) {
        qn__lanes_add(w, "qv_mask qn_m%u[QV_U]; QV_EACH qn_m%u[qn_u] = qn_m%u[qn_u];\n",
                      (unsigned)goes_on, (unsigned)goes_on, (unsigned)stays);
        push(w, goes_on);
        w->level++;
    }
    qn__lanes_add(w, "{\n");
    write_list(w, n->child[2]);
    qn__lanes_add(w, "}\n");
    w->masks -= (uint32_t)skips;
    w->level -= (uint32_t)skips;
    if (n->child[2] && leaves(w, n->child[2], 1))
        qn__lanes_add(w, "if (!qv_any_of(qn_m%u)) break;\n", (unsigned)stays);
    write_list(w, n->child[3]);
    if (n->kind == QN__NODE_DO)
        write_condition(w, n, stays);
    w->level--;
    w->masks--;
    qn__lanes_add(w, "}\n");
    if (n->what)
        write_counted(w, n);
    qn__lanes_add(w, "}\n");
}

static void write_loop(qn__lanes_writer *w, const qn__user_node *n) {
    const uint32_t around = w->loop_mask;
    qn__lanes_add(w, "{\n");
    write_list(w, n->child[0]);
    w->loop_mask = n->varies ? w->masks : 0;
    if (n->varies)
        write_own_loop(w, n);
    else
        write_common_loop(w, n);
    w->loop_mask = around;
    qn__lanes_add(w, "}\n");
}

static void write_return(qn__lanes_writer *w) {
    if (!w->tree->leaves) {
        qn__lanes_add(w, "return;\n");
        return;
    }
    write_leave(w, 0);
    qn__lanes_add(w, "if (!qv_any_of(qn_m0)) return;\n");
}

/* ------------------------------------------------------------------ statements */

static void write_statement(qn__lanes_writer *w, const qn__user_node *n) {
    switch (n->kind) {
    case QN__NODE_BLOCK:
        qn__lanes_add(w, "{\n");
        write_list(w, n->child[0]);
        qn__lanes_add(w, "}\n");
        return;
    case QN__NODE_DECLARE:
        write_declaration(w, n);
        return;
    case QN__NODE_ASSIGN:
        write_assignment(w, n);
        return;
    case QN__NODE_RESULT:
        write_result(w, n);
        return;
    case QN__NODE_IF:
        write_if(w, n);
        return;
    case QN__NODE_LOOP:
    case QN__NODE_DO:
        write_loop(w, n);
        return;
    case QN__NODE_BREAK:
        if (w->loop_mask > 0)
            write_leave(w, w->loop_mask);
        else
            qn__lanes_add(w, "break;\n");
        return;
    case QN__NODE_CONTINUE:
        if (w->loop_mask > 0)
            write_leave(w, w->loop_mask + 1);
        else
            qn__lanes_add(w, "continue;\n");
        return;
    default:
        write_return(w);
    }
}

/* What stands after a statement that items may leave is for the others, if there are any: a loop
 * there may not end for numbers that none has. */
static void write_list(qn__lanes_writer *w, uint32_t list) {
    for (; list; list = node_of(w, list)->next) {
        write_statement(w, node_of(w, list));
        if (!node_of(w, list)->next || !leaves(w, list, 1))
            continue;
        qn__lanes_add(w, "if (qv_any_of(qn_m%u)) {\n", (unsigned)top(w));
        write_list(w, node_of(w, list)->next);
        qn__lanes_add(w, "}\n");
        return;
    }
}

/* ------------------------------------------------------------------ the body */

/* The parameters are those of the body of one item, as qn__user_write_parameters has them, with
 * vectors for what differs between items. */
static void write_parameters(const qn__user_source *s, qn__text *t) {
    /* Where neighbours are read, six loops call it. */
    qn__text_add(t,
                 "%s void qn_lanes(QN_FOUND *qn_fault, const int qn_inner, "
                 "const int qn_last, qv_mask *qn_m0, const int64_t qn_first, "
                 "const int64_t qn_count, const int64_t qn_item",
                 qn__user_has_halo(s) ? "static __attribute__((noinline))" : "QN_INLINE");
    if (s->has_random)
        qn__text_add(t, ", const uint64_t qn_seed, const uint64_t qn_iteration");
    for (uint32_t d = 0; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(
            t, d < 2 ? ", const int64_t qn_n%u, const int64_t qn_i%u" : ", const int64_t qn_n%u",
            (unsigned)d, (unsigned)d);
    for (uint32_t d = 0; d + 1 < s->dimensions; d++)
        qn__text_add(t, ", const int64_t u_%s", s->index[d]);
    for (uint32_t d = 0; d < s->dimensions && s->extent[0][0]; d++)
        qn__text_add(t, ", const int64_t u_%s", s->extent[d]);
    if (s->iteration[0])
        qn__text_add(t, ", const int64_t u_%s", s->iteration);
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        const char *type = qn__user_type_word(p->type), *tag = qn__user_type_tag(p->type);
        if (p->use == QN__USER_SCALAR)
            qn__text_add(t, ", const %s u_%s", type, p->name);
        else if (p->use == QN__USER_INPUT)
            qn__text_add(t, ", const qv_%s *u_%s", tag, p->name);
        else if (qn__user_use_is_result(p->use))
            qn__text_add(t, p->components > 0 ? ", qv_%s(*o_%s)[QV_U]" : ", qv_%s *o_%s", tag,
                         p->name);
        else
            qn__text_add(t, ", const %s *restrict a_%s", type, p->name);
        for (uint32_t d = 0; d < p->dimensions; d++)
            qn__text_add(t, ", const int64_t n_%s_%u", p->name, (unsigned)d);
        if (qn__user_is_marked(p))
            qn__text_add(t, ", qv_%s *h_%s", p->bins > 0 ? "i32" : "u8", p->name);
    }
    qn__text_add(t,
                 ") {\nQN_FOUND *const qn_faults = qn_fault;\nqv_i64 u_%s[QV_U]; "
                 "QV_EACH QV_LANES u_%s[qn_u][qn_l] = qn_first + QV_N * qn_u + qn_l;\n",
                 s->index[s->dimensions - 1], s->index[s->dimensions - 1]);
}

void qn__user_lanes_write_body(const qn__user_source *source, qn__text *out) {
    qn__lanes_writer w = {
        .source = source, .tree = &source->tree, .out = out, .masks = 1, .sure = 1};
    /* GCC has the conversions of vectors since version 9. */
    qn__text_add(out,
                 "#line 1 \"lanes\"\n"
                 "#if (defined __clang__ || __GNUC__ >= 9) && \\\n"
                 "    (%d || defined __SSE2__ || defined __aarch64__ || defined __VSX__)\n"
                 "#define QV_USED 1\n#define QV_WIDE %u\n#define QV_U %u\n%s",
                 source->tree.forced, (unsigned)source->tree.wide, (unsigned)source->tree.vectors,
                 qn__text_user_lanes);
    write_parameters(source, out);
    write_list(&w, source->tree.body);
    qn__text_add(out, "}\n#endif\n");
}

/* ------------------------------------------------------------------ the items */

/* Inputs as vectors: after the last item there are zeros. */
static void write_inputs(const qn__user_source *s, qn__text *t) {
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (p->use != QN__USER_INPUT)
            continue;
        qn__text_add(t,
                     "        %s x_%s[QV_W] = {0};\n"
                     "        for (int64_t l = 0; l < count; l++)\n"
                     "            x_%s[l] = a_%s[item + k + l];\n"
                     "        qv_%s v_%s[QV_U];\n        memcpy(v_%s, x_%s, sizeof v_%s);\n",
                     qn__user_type_word(p->type), p->name, p->name, p->name,
                     qn__user_type_tag(p->type), p->name, p->name, p->name, p->name);
    }
}

/* The first dimension of an output with components: "[3]", else "". */
static const char *rows_of(const qn__user_part *p, char text[16]) {
    text[0] = '\0';
    if (p->components > 0)
        snprintf(text, 16, "[%u]", (unsigned)p->components);
    return text;
}

static void write_results(const qn__user_source *s, qn__text *t) {
    char rows[16];
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!qn__user_use_is_result(p->use))
            continue;
        qn__text_add(t, "        qv_%s w_%s%s[QV_U] = {0};\n", qn__user_type_tag(p->type), p->name,
                     rows_of(p, rows));
        if (qn__user_is_marked(p))
            qn__text_add(t,
                         "        qv_%s k_%s[QV_U];\n        QV_EACH k_%s[qn_u] = qv_all_%s(%d);\n",
                         p->bins > 0 ? "i32" : "u8", p->name, p->name, p->bins > 0 ? "i32" : "u8",
                         p->bins > 0 ? -1 : 0);
    }
}

static void write_call(const qn__user_source *s, const char *inner, qn__text *t) {
    qn__text_add(t, "        qn_lanes(fault, %s, taking, i2 + k, count, item + k", inner);
    if (s->has_random)
        qn__text_add(t, ", seed, (uint64_t)iteration");
    qn__text_add(t, ", e0, i0, e1, i1, e2");
    for (uint32_t d = 0; d + 1 < s->dimensions; d++)
        qn__text_add(t, ", i%u", (unsigned)(QN__USER_DIMENSIONS - s->dimensions + d));
    for (uint32_t d = 0; d < s->dimensions && s->extent[0][0]; d++)
        qn__text_add(t, ", e%u", (unsigned)(QN__USER_DIMENSIONS - s->dimensions + d));
    if (s->iteration[0])
        qn__text_add(t, ", iteration");
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        qn__text_add(t, ", %s%s",
                     p->use == QN__USER_SCALAR        ? "u_"
                     : p->use == QN__USER_INPUT       ? "v_"
                     : qn__user_use_is_result(p->use) ? "w_"
                                                      : "a_",
                     p->name);
        for (uint32_t d = 0; d < p->dimensions; d++)
            qn__text_add(t, ", n_%s_%u", p->name, (unsigned)d);
        if (qn__user_is_marked(p))
            qn__text_add(t, ", k_%s", p->name);
    }
    qn__text_add(t, ");\n");
}

/* An item's result from what its lane made. */
static void write_own(const qn__user_part *p, qn__text *t) {
    const char *type = qn__user_type_word(p->type);
    char rows[16];
    if (p->components == 0) {
        qn__text_add(t, "        const %s o_%s = x_%s[l];\n", type, p->name, p->name);
        return;
    }
    qn__text_add(t, "        const %s o_%s%s = {", type, p->name, rows_of(p, rows));
    for (uint32_t c = 0; c < p->components; c++)
        qn__text_add(t, "%sx_%s[%u][l]", c > 0 ? ", " : "", p->name, (unsigned)c);
    qn__text_add(t, "};\n");
}

void qn__user_lanes_write_items(const qn__user_source *s, const char *from, const char *to,
                                const char *inner, qn__text *t) {
    char rows[16];
    qn__text_add(t,
                 "    for (int64_t k = %s; k < %s; k += QV_W) {\n"
                 "        const int64_t count = %s - k < QV_W ? %s - k : QV_W;\n"
                 "        qv_mask taking[QV_U];\n"
                 "        QV_EACH taking[qn_u] = qv_below(count - QV_N * qn_u);\n",
                 from, to, to, to);
    write_inputs(s, t);
    write_results(s, t);
    write_call(s, inner, t);
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!qn__user_use_is_result(p->use))
            continue;
        qn__text_add(t, "        %s x_%s%s[QV_W];\n        memcpy(x_%s, w_%s, sizeof x_%s);\n",
                     qn__user_type_word(p->type), p->name, rows_of(p, rows), p->name, p->name,
                     p->name);
        if (qn__user_is_marked(p))
            qn__text_add(t, "        %s y_%s[QV_W];\n        memcpy(y_%s, k_%s, sizeof y_%s);\n",
                         qn__user_mark_of(p), p->name, p->name, p->name, p->name);
    }
    qn__text_add(t, "        for (int64_t l = 0; l < count; l++) {\n");
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!qn__user_use_is_result(p->use))
            continue;
        write_own(p, t);
        if (qn__user_is_marked(p))
            qn__text_add(t, "        const %s h_%s = y_%s[l];\n", qn__user_mark_of(p), p->name,
                         p->name);
    }
    qn__user_write_stores(s, "k + l", t);
    qn__text_add(t, "        }\n    }\n");
}
