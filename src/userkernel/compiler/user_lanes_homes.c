/* What the order of a kernel's text says about its variables, before it is known what differs
 * between items: the home of each variable, and what counts the rounds of each loop.
 *
 *   float t = 0, a = x;                      a is read in the loop only: the loop is its home
 *   int k = 0;                               k is read after the loop, too, and counts its rounds
 *   while (t < n) { t += a * w(k); k++; a *= 2; }
 *   y = t + k;
 *
 * Why a home matters: items that left the loop never read the variable again. So it is as if
 * declared in the loop: an assignment may overwrite the lanes of these items, and needs no mask.
 *
 * Why a counter matters: all items that are still in the loop have one value of it. So in the loop
 * it is one number in place of a vector, and w(k) is read once for all items. After the loop each
 * item has its own value, which follows from how often the item counted. */
#include "userkernel/compiler/user_lanes_parts.h"

#include <string.h>

enum { DEEPEST = 88 }; /* loops in loops: a text is nested 80 deep at most */

typedef struct nest {
    qn__user_tree *tree;
    uint32_t loop[DEEPEST];
    uint32_t loops;
} nest;

static void walk(nest *s, uint32_t list);

/* The home of a variable is the loop that contains everything that reads it. Of nested loops it is
 * the outermost one that does not contain the declaration. `away`: there is no such loop. */
static void note_read(nest *s, qn__user_variable *v) {
    const uint32_t around = v->loops < s->loops ? s->loop[v->loops] : 0;
    v->away |= around == 0 || (v->home != 0 && v->home != around);
    v->home = around;
}

static void walk_loop(nest *s, const qn__user_node *n) {
    walk(s, n->child[0]);
    if (s->loops < DEEPEST) {
        s->loop[s->loops++] = (uint32_t)(n - s->tree->node);
        for (int i = 1; i < 4; i++)
            walk(s, n->child[i]);
        s->loops--;
    }
}

static void walk(nest *s, uint32_t list) {
    for (; list; list = s->tree->node[list].next) {
        const qn__user_node *n = &s->tree->node[list];
        if (qn__user_is_loop(n)) {
            walk_loop(s, n);
            continue;
        }
        if (n->kind == QN__NODE_NAME)
            note_read(s, &s->tree->variable[n->what]);
        if (n->kind == QN__NODE_DECLARE) {
            s->tree->variable[n->what].loops = s->loops;
            s->tree->variable[n->what].declared = 1;
        }
        if (n->kind == QN__NODE_ASSIGN)
            s->tree->variable[n->what].assigned++;
        for (int i = 0; i < 4 && n->kind != QN__NODE_LENGTH; i++)
            walk(s, n->child[i]);
    }
}

/* ------------------------------------------------------------------ counters */

/* What conversions to integers of `size` bytes or more convert. */
static const qn__user_node *inside(const qn__user_tree *tree, uint32_t at, size_t size) {
    const qn__user_node *n = &tree->node[at];
    while (n->kind == QN__NODE_CONVERT && !qn__user_type_is_real(n->type) &&
           qn__user_type_size(n->type) >= size)
        n = &tree->node[n->child[0]];
    return n;
}

static int is_whole_literal(const qn__user_tree *tree, uint32_t at) {
    const qn__user_node *n = inside(tree, at, 0);
    return n->kind == QN__NODE_LITERAL && !qn__user_type_is_real(n->type);
}

const qn__user_node *qn__lanes_step(const qn__user_tree *tree, const qn__user_node *n) {
    return inside(tree, n->child[0], qn__user_type_size(tree->variable[n->what].type));
}

/* Whether an assignment adds a whole number of the text to its variable, or subtracts one. */
static int is_step(const qn__user_tree *tree, const qn__user_node *n) {
    if (n->kind != QN__NODE_ASSIGN)
        return 0;
    const qn__user_variable *v = &tree->variable[n->what];
    if (v->length > 0 || qn__user_type_is_real(v->type))
        return 0;
    const qn__user_node *sum = qn__lanes_step(tree, n);
    if (sum->kind != QN__NODE_BINARY ||
        (strcmp(sum->sign, "+") != 0 && strcmp(sum->sign, "-") != 0))
        return 0;
    const qn__user_node *left = inside(tree, sum->child[0], qn__user_type_size(v->type));
    return left->kind == QN__NODE_NAME && left->what == n->what &&
           is_whole_literal(tree, sum->child[1]);
}

int qn__lanes_continues(const qn__user_tree *tree, uint32_t list) {
    for (; list; list = tree->node[list].next) {
        const qn__user_node *n = &tree->node[list];
        if (n->kind == QN__NODE_CONTINUE)
            return 1;
        for (int i = 0; i < 3 && !qn__user_is_loop(n) && n->kind >= QN__NODE_BLOCK; i++)
            if (qn__lanes_continues(tree, n->child[i]))
                return 1;
    }
    return 0;
}

/* How often the head of a loop gives the variable a whole number of the text; -1: another value. */
static int starts(const qn__user_tree *tree, uint32_t list, uint32_t variable) {
    int found = 0;
    for (; list; list = tree->node[list].next) {
        const qn__user_node *n = &tree->node[list];
        if (n->kind != QN__NODE_ASSIGN || n->what != variable)
            continue;
        if (found || !is_whole_literal(tree, n->child[0]))
            return -1;
        found = 1;
    }
    return found;
}

/* A counter changes in each round, by the same for all items that are still in the loop, and
 * nowhere else. So they have one value of it, from a declaration beside the loop or its head. */
static uint32_t find_step(const qn__user_tree *tree, const qn__user_node *loop, uint32_t loops,
                          uint32_t list) {
    for (; list; list = tree->node[list].next) {
        const qn__user_node *n = &tree->node[list];
        if (!is_step(tree, n))
            continue;
        const qn__user_variable *v = &tree->variable[n->what];
        if (!v->away || !v->declared || v->loops != loops)
            continue;
        const int begins = starts(tree, loop->child[0], n->what);
        if (begins >= 0 && v->assigned == 1 + (uint32_t)begins)
            return 1 + n->what;
    }
    return 0;
}

static void find_counters(qn__user_tree *tree, uint32_t list, uint32_t loops) {
    for (; list; list = tree->node[list].next) {
        qn__user_node *n = &tree->node[list];
        if (n->kind < QN__NODE_BLOCK)
            return;
        if (qn__user_is_loop(n)) {
            const qn__user_node *body = &tree->node[n->child[2]];
            n->what = find_step(tree, n, loops, n->child[3]);
            if (!n->what && body->kind == QN__NODE_BLOCK && !qn__lanes_continues(tree, n->child[2]))
                n->what = find_step(tree, n, loops, body->child[0]);
            find_counters(tree, n->child[2], loops + 1);
            continue;
        }
        for (int i = n->kind == QN__NODE_IF; i < 3 && n->kind <= QN__NODE_IF; i++)
            find_counters(tree, n->child[i], loops);
    }
}

void qn__lanes_homes(qn__user_tree *tree) {
    nest s = {.tree = tree};
    walk(&s, tree->body);
    for (uint32_t i = 0; i < tree->variables; i++)
        if (tree->variable[i].away || tree->variable[i].length > 0)
            tree->variable[i].home = 0;
    find_counters(tree, tree->body, 0);
}
