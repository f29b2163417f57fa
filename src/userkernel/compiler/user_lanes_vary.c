/* Which values differ between items that are computed together, and which loops such items leave
 * at different times. What does not differ is computed once, in plain C.
 *
 * A loop or branch that only some items may take raises the level. A variable that is assigned on
 * a higher level than that of its declaration differs, because only some items get the value:
 *
 *   float t = 0;                       level 0
 *   for (int k = 0; k < s; k++)        s is a scalar: all items leave the loop together, level 0
 *       if (x > k)                     x is an input and differs: the branch has level 1
 *           t += k;                    t differs, although k does not
 *
 * Then whatever is computed from t differs, too, and it may stand before this line in a loop. So
 * the walk is repeated until nothing changes. It ends, because marks are only added. A variable
 * that is read in one loop only (its home, user_lanes_homes.c) is as if declared there.
 *
 * At the end is decided whether lanes pay: docs/kernels.md, "Several items at once", has the rules
 * for users. */
#include "userkernel/compiler/user_lanes.h"

#include "userkernel/compiler/user_lanes_parts.h"
#include "userkernel/compiler/user_program_parts.h"
#include <stdlib.h>
#include <string.h>

typedef struct scope {
    uint32_t node;
    uint32_t level; /* of its body */
    struct scope *around;
} scope;

typedef struct analysis {
    qn__user_source *source;
    qn__user_tree *tree;
    int changed;
} analysis;

static void set(analysis *a, unsigned char *flags, int flag) {
    if ((*flags & flag) == flag)
        return;
    *flags = (unsigned char)(*flags | flag);
    a->changed = 1;
}

/* ------------------------------------------------------------------ values */

static int list_varies(analysis *a, uint32_t list);

static int value_varies(analysis *a, uint32_t at) {
    qn__user_node *n = &a->tree->node[at];
    int varies = 0;
    switch (n->kind) {
    case QN__NODE_NAME:
        n->flag = a->tree->variable[n->what].counts;
        varies = a->tree->variable[n->what].varies && !n->flag;
        break;
    case QN__NODE_ELEMENT:
        varies = value_varies(a, n->child[0]) | !a->tree->variable[n->what].table;
        break;
    case QN__NODE_READ:
        varies = list_varies(a, n->child[0]) | (a->source->part[n->what].use == QN__USER_HALOED);
        break;
    case QN__NODE_CALL:
        varies = list_varies(a, n->child[0]) | n->flag;
        break;
    case QN__NODE_BUILTIN:
        varies = list_varies(a, n->child[0]);
        break;
    case QN__NODE_DRAW:
        varies = value_varies(a, n->child[0]) | 1;
        break;
    case QN__NODE_CONVERT:
    case QN__NODE_UNARY:
    case QN__NODE_BINARY:
    case QN__NODE_CHOOSE:
        for (int i = 0; i < 3; i++)
            varies |= n->child[i] ? value_varies(a, n->child[i]) : 0;
        break;
    default:
        break;
    }
    n->varies = (unsigned char)varies;
    return varies;
}

static int list_varies(analysis *a, uint32_t list) {
    int varies = 0;
    for (; list; list = a->tree->node[list].next)
        varies |= value_varies(a, list);
    return varies;
}

/* ------------------------------------------------------------------ statements */

static void walk(analysis *a, uint32_t list, uint32_t level, scope *around);

static void walk_assignment(analysis *a, qn__user_node *n, uint32_t level) {
    qn__user_variable *v = &a->tree->variable[n->what];
    int varies = list_varies(a, n->child[0]);
    if (n->kind == QN__NODE_DECLARE) {
        v->level = level;
        set(a, &v->unequal, varies);
    }
    n->varies = level == v->level;
    n->flag = v->counts;
    if (n->kind == QN__NODE_ASSIGN && n->child[1])
        value_varies(a, n->child[1]);
    if (varies || level > v->level || v->length > 0)
        set(a, &v->varies, 1);
}

/* Whether the variable that may count a loop has several values when the loop begins. */
static int begins_unequal(const analysis *a, const qn__user_node *n) {
    for (uint32_t first = n->child[0]; first; first = a->tree->node[first].next)
        if (a->tree->node[first].kind == QN__NODE_ASSIGN &&
            a->tree->node[first].what + 1 == n->what)
            return 0; /* it gets a number of the text */
    return a->tree->variable[n->what - 1].unequal;
}

/* The loop's own variables are on the level that it has inside, or on that of their declaration. */
static void enter_home(analysis *a, uint32_t loop, uint32_t level) {
    for (uint32_t i = 0; i < a->tree->variables; i++)
        if (a->tree->variable[i].home == loop)
            a->tree->variable[i].level = level;
}

/* A loop is left by all items at once, unless its condition differs between them, or some leave it
 * or the kernel from a higher level. */
static void walk_loop(analysis *a, uint32_t at, uint32_t level, scope *around) {
    qn__user_node *n = &a->tree->node[at];
    if (n->what && begins_unequal(a, n)) {
        n->what = 0;
        a->changed = 1;
    }
    qn__user_variable *counter = n->what && n->varies ? &a->tree->variable[n->what - 1] : NULL;
    if (counter)
        counter->counts = 1;
    if (n->child[1] && value_varies(a, n->child[1]))
        set(a, &n->varies, QN__LOOP_VARIES);
    if (counter)
        counter->counts = 0; /* in the head */
    const uint32_t own = level + (n->varies ? 1 : 0);
    scope l = {at, own + (n->varies & QN__LOOP_SKIPS ? 1 : 0), around};
    /* What the head declares ends with the loop, so items that left do not read it again. */
    for (uint32_t first = n->child[0]; first; first = a->tree->node[first].next)
        if (a->tree->node[first].kind == QN__NODE_DECLARE) {
            walk_assignment(a, &a->tree->node[first], own);
        } else {
            walk(a, first, level, around);
            break; /* a head declares or assigns */
        }
    enter_home(a, at, own);
    if (counter)
        counter->counts = 1;
    walk(a, n->child[2], l.level, &l);
    walk(a, n->child[3], own, &l);
    if (counter)
        counter->counts = 0;
}

static void walk_leave(analysis *a, const qn__user_node *n, uint32_t level, scope *around) {
    if (n->kind == QN__NODE_RETURN) {
        a->tree->leaves |= level > 0;
        for (scope *l = level > 0 ? around : NULL; l; l = l->around)
            set(a, &a->tree->node[l->node].varies, QN__LOOP_VARIES);
        return;
    }
    if (!around)
        return; /* the parser refuses it */
    unsigned char *flags = &a->tree->node[around->node].varies;
    if (level != around->level)
        set(a, flags, QN__LOOP_VARIES);
    if (n->kind == QN__NODE_CONTINUE && *flags)
        set(a, flags, QN__LOOP_VARIES | QN__LOOP_SKIPS);
}

static void walk(analysis *a, uint32_t list, uint32_t level, scope *around) {
    for (; list; list = a->tree->node[list].next) {
        qn__user_node *n = &a->tree->node[list];
        switch (n->kind) {
        case QN__NODE_BLOCK:
            walk(a, n->child[0], level, around);
            break;
        case QN__NODE_DECLARE:
        case QN__NODE_ASSIGN:
            walk_assignment(a, n, level);
            break;
        case QN__NODE_RESULT:
            value_varies(a, n->child[0]);
            if (n->child[1])
                value_varies(a, n->child[1]);
            break;
        case QN__NODE_IF: {
            const uint32_t inside = level + (value_varies(a, n->child[0]) ? 1 : 0);
            walk(a, n->child[1], inside, around);
            walk(a, n->child[2], inside, around);
            break;
        }
        case QN__NODE_LOOP:
        case QN__NODE_DO:
            walk_loop(a, list, level, around);
            break;
        case QN__NODE_BREAK:
        case QN__NODE_CONTINUE:
        case QN__NODE_RETURN:
            walk_leave(a, n, level, around);
            break;
        default:
            break;
        }
    }
}

/* ------------------------------------------------------------------ what pays */

/* An index, without the conversion to the type of indices. */
uint32_t qn__lanes_index(const qn__user_tree *tree, uint32_t at) {
    const qn__user_node *n = &tree->node[at];
    if (n->kind == QN__NODE_CONVERT && !qn__user_type_is_real(tree->node[n->child[0]].type) &&
        qn__user_type_size(tree->node[n->child[0]].type) <= 4)
        return n->child[0];
    return at;
}

static int is_wide(const qn__user_tree *tree, uint32_t list, int in_loop);

/* Whether vectors of 64 bits a lane are needed in a loop. */
static int node_is_wide(const qn__user_tree *tree, uint32_t at, int in_loop) {
    const qn__user_node *n = &tree->node[at];
    const int loop = qn__user_is_loop(n);
    if (loop && n->what && n->varies && qn__user_type_size(tree->variable[n->what - 1].type) == 8)
        return 1;
    if (n->kind < QN__NODE_BLOCK) {
        if (!n->varies || !in_loop)
            return 0;
        if (qn__user_type_size(n->type) == 8 ||
            (n->kind == QN__NODE_BINARY && qn__user_type_size(n->common) == 8))
            return 1;
    }
    if (n->kind == QN__NODE_READ || n->kind == QN__NODE_ELEMENT) {
        for (uint32_t i = n->child[0]; i; i = tree->node[i].next)
            if (node_is_wide(tree, qn__lanes_index(tree, i), in_loop))
                return 1;
        return 0;
    }
    for (int i = 0; i < 4; i++)
        if (n->kind != QN__NODE_LENGTH && n->child[i] &&
            is_wide(tree, n->child[i], in_loop || loop))
            return 1;
    return 0;
}

static int is_wide(const qn__user_tree *tree, uint32_t list, int in_loop) {
    for (; list; list = tree->node[list].next)
        if (node_is_wide(tree, list, in_loop))
            return 1;
    return 0;
}

/* Whether a node is computed lane by lane: it takes longer than for one item after the other. */
static int is_slow(const qn__user_tree *tree, const qn__user_node *n) {
    const int indexed = n->kind == QN__NODE_READ || n->kind == QN__NODE_ELEMENT;
    const int division = n->kind == QN__NODE_BINARY && !qn__user_type_is_real(n->common) &&
                         (strcmp(n->sign, "/") == 0 || strcmp(n->sign, "%") == 0);
    if (indexed) /* of an array of the kernel, too */
        for (uint32_t i = n->child[0]; i; i = tree->node[i].next)
            if (tree->node[i].varies)
                return 1;
    return n->varies && (indexed || division || n->kind == QN__NODE_CALL);
}

/* Counts what is in loops. */
typedef struct contents {
    int slow, draws, functions;
} contents;

static void count(const qn__user_tree *tree, uint32_t list, int in_loop, contents *c) {
    for (; list; list = tree->node[list].next) {
        const qn__user_node *n = &tree->node[list];
        const int inside = in_loop || qn__user_is_loop(n);
        c->slow += in_loop && is_slow(tree, n);
        c->draws += in_loop && n->kind == QN__NODE_DRAW;
        c->functions += in_loop && n->kind == QN__NODE_BUILTIN && n->flag && n->varies;
        for (int i = 0; i < 4 && n->kind != QN__NODE_LENGTH; i++)
            if (n->child[i])
                count(tree, n->child[i], inside, c);
    }
}

/* Several vectors of each variable hide the time that an operation takes, as long as they are in
 * registers. They multiply the text that is compiled, and a long one would take seconds. */
enum { FEW = 16, SHORT = 400, LONG = 1000 };

/* Straight lines go into vectors as they are, by the compiler; so do draws of random numbers in a
 * loop, unless there are functions such as exp, too. */
static int pays(const qn__user_source *s) {
    const qn__user_tree *tree = &s->tree;
    contents c = {0};
    int loops = 0;
    for (uint32_t i = 1; i < tree->nodes; i++)
        loops |= qn__user_is_loop(&tree->node[i]);
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_HALOED)
            return 0;
    if (qn__user_has_own_array(s))
        return 0;
    count(tree, tree->body, 0, &c);
    return loops && c.slow == 0 && (c.draws == 0 || c.functions > 0) && tree->nodes <= LONG;
}

/* How deep a list is nested. */
static uint32_t depth_of(const qn__user_tree *tree, uint32_t list) {
    uint32_t most = 0;
    for (; list; list = tree->node[list].next)
        for (int i = 0; i < 4 && tree->node[list].kind != QN__NODE_LENGTH; i++) {
            const uint32_t child = tree->node[list].child[i];
            const uint32_t deep = child ? depth_of(tree, child) : 0;
            most = most > deep ? most : deep;
        }
    return most + 1;
}

/* Brackets in brackets, of which clang allows 256: a level has five at most, and what follows a way
 * out of a loop is in one, too. */
static int is_deep(const qn__user_tree *tree) {
    uint32_t ways = 0;
    for (uint32_t i = 1; i < tree->nodes; i++)
        ways += tree->node[i].kind >= QN__NODE_BREAK;
    return 5 * depth_of(tree, tree->body) + ways > 240;
}

void qn__user_lanes_plan(qn__user_source *s) {
    analysis a = {s, &s->tree, 1};
    qn__user_tree *tree = &s->tree;
    for (uint32_t i = 0; i < tree->variables; i++) {
        const char *name = tree->variable[i].name;
        tree->variable[i].varies = strcmp(name, s->index[s->dimensions - 1]) == 0;
        for (uint32_t k = 0; k < s->parts; k++)
            if (s->part[k].use == QN__USER_INPUT && strcmp(name, s->part[k].name) == 0)
                tree->variable[i].varies = 1;
    }
    qn__lanes_homes(tree);
    while (a.changed) {
        a.changed = 0;
        walk(&a, tree->body, 0, NULL);
    }
    uint32_t varying = 0;
    for (uint32_t i = 0; i < tree->variables; i++)
        varying += tree->variable[i].varies;
    tree->wide = is_wide(tree, tree->body, 0) ? 8 : 4;
    tree->vectors = tree->nodes > SHORT ? 1 : varying <= FEW ? 4 : 2;
    const char *wish = getenv("QUERN_KERNEL_LANES"); /* for tests: "always" or "never" */
    const int forced = wish && strcmp(wish, "always") == 0;
    tree->lanes = is_deep(tree) ? 0 : wish ? forced : pays(s);
    tree->forced = forced;
}
