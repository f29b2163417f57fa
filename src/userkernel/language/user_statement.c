/* Statements, and the constants of a file. They are written as they are, but for these:
 *
 *   text                       C                                       why
 *   while (n) ...              for (;;) {if (!(n)) break; ...}         see read_loop_body
 *   y = x; of a result         p_y = x, and a mark for MIN and MAX     an item may assign none
 *   int a = 1, b = a;          two declarations                        each has a node of the tree
 *
 * Words of C that a kernel lacks are refused with the way to do without. */
#include "userkernel/language/user_statement.h"

#include "userkernel/language/user_expression.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of an array in a function, which lies on the stack, and of a table of the file. */
enum { ELEMENTS = 2048, TABLE = 4096 };

/* Most "else if" of one if. Compilers nest them. */
enum { LINKS = 1000 };

typedef struct scope {
    qn__user_parser *p;
    uint32_t *assigned;
} scope;

static int read_statement(scope *s, int declares);

/* ------------------------------------------------------------------ declarations */

/* The length between brackets, after the name of an array. */
static int read_length(qn__user_parser *p, uint32_t most, uint32_t *length) {
    return qn__user_need_size(p, most, 0, "the length of the array", length) &&
           qn__user_need(p, "]", "after the length");
}

static int no_value(qn__user_parser *p, const char *name) {
    return qn__user_refuse(p, qn__user_next(p), "write = and its first value after the name",
                           "\"%s\" has no initial value", name);
}

/* { value, ... }: elements without one are 0. */
static int read_elements(qn__user_parser *p, qn__user_type type, uint32_t length,
                         int (*read)(qn__user_parser *p, qn__user_type type)) {
    if (!qn__user_need(p, "{", "before the elements"))
        return 0;
    qn__user_write(p, "{");
    uint32_t list = 0;
    for (uint32_t i = 0; i == 0 || qn__user_take(p, ","); i++) {
        if (i > 0 && qn__user_sees(p, "}"))
            break;
        if (i == length)
            return qn__user_refuse(p, qn__user_next(p), "leave them out, or give a greater length",
                                   "there are more elements than %u", (unsigned)length);
        qn__user_write(p, "%s", i > 0 ? ", " : "");
        if (!read(p, type))
            return 0;
        list = qn__user_tree_join(&p->source->tree, list, p->node);
    }
    p->node = list;
    qn__user_write(p, "}");
    return qn__user_need(p, "}", "after the elements");
}

static int read_value(qn__user_parser *p, qn__user_type type) {
    return qn__user_expression_as(p, type, NULL);
}

/* Tells the tree that a variable is an array. */
static void note_length(qn__user_parser *p, const qn__user_symbol *v, int table) {
    qn__user_tree *tree = &p->source->tree;
    if (tree->failed)
        return;
    tree->variable[v->variable].length = v->kind == QN__USER_ARRAY ? v->length : 0;
    tree->variable[v->variable].table = (unsigned char)table;
}

/* One name of a declaration with its value. */
static int read_variable(qn__user_parser *p, qn__user_type type, int constant) {
    const qn__user_token *token = qn__user_next(p);
    qn__user_move(p, token);
    qn__user_symbol *v =
        qn__user_declare(p, constant ? QN__USER_CONSTANT : QN__USER_VARIABLE, type);
    if (!v)
        return 0;
    qn__user_write(p, "%s u_%s", qn__user_type_word(type), v->name);
    if (qn__user_take(p, "[")) {
        v->kind = QN__USER_ARRAY;
        if (constant)
            return qn__user_refuse(p, qn__user_next(p),
                                   "remove const, or write a table as static "
                                   "const before the kernel",
                                   "an array of a function cannot be const");
        if (!read_length(p, ELEMENTS, &v->length))
            return 0;
        qn__user_write(p, "[%u]", (unsigned)v->length);
        if (!qn__user_grow(p, token, 0, v->length * qn__user_type_size(type)))
            return 0;
    }
    if (v->kind == QN__USER_ARRAY && qn__user_sees(p, "["))
        return qn__user_refuse(p, qn__user_next(p), "write a[9] for 3 times 3, and a[3 * i + j]",
                               "an array of a function has one dimension");
    if (!qn__user_take(p, "="))
        return no_value(p, v->name);
    qn__user_write(p, " = ");
    /* In C a name is in scope in its own first value, where it has none yet. */
    p->symbols--;
    const int read = v->kind == QN__USER_ARRAY ? read_elements(p, type, v->length, read_value)
                                               : qn__user_expression_as(p, type, NULL);
    p->symbols++;
    qn__user_write(p, ";");
    note_length(p, v, 0);
    p->node = qn__user_node_add(
        p, (qn__user_node){.kind = QN__NODE_DECLARE, .what = v->variable, .child = {p->node}});
    return read;
}

/* Each name becomes a declaration of its own. Leaves the list of them in the parser. */
static int read_declaration(qn__user_parser *p) {
    const int constant = qn__user_take(p, "const");
    const qn__user_type type = qn__user_need_type(p);
    if (type == QN__USER_TYPES)
        return 0;
    uint32_t list = 0;
    do {
        qn__user_write(p, " ");
        if (!read_variable(p, type, constant))
            return 0;
        list = qn__user_tree_join(&p->source->tree, list, p->node);
    } while (qn__user_take(p, ","));
    p->node = list;
    return 1;
}

static int is_zero(const qn__user_parser *p, const qn__user_token *number) {
    char text[QN__USER_NAME_MAX + 1];
    qn__user_word(p, number, text);
    return number->kind == QN__USER_REAL && strtod(text, NULL) == 0;
}

/* A number with or without a sign: compilers take nothing else for a constant everywhere. */
static int read_number(qn__user_parser *p, qn__user_type type) {
    const qn__user_token *token = qn__user_next(p);
    const int negative = qn__user_take(p, "-");
    const qn__user_token *number = qn__user_next(p);
    qn__user_value v = {.from = qn__user_written(p)};
    if (number->kind != QN__USER_INTEGER && number->kind != QN__USER_REAL)
        return qn__user_refuse(p, number, "write the number itself, such as 0.25",
                               "a constant of the file is a number");
    qn__user_move(p, number);
    v.from = qn__user_written(p);
    if (!qn__user_literal(p, &v))
        return 0;
    if (qn__user_type_is_real(v.type) && !qn__user_type_is_real(type))
        return qn__user_refuse(p, token, "write a number without a point, or another type",
                               "a real number stands where an integer belongs");
    if (negative && is_zero(p, number)) /* user_prelude.inc says why */
        return qn__user_refuse(p, token, "write 0.0, and a sign where the constant is used",
                               "a constant of the file cannot be -0.0");
    if (negative)
        qn__user_wrap(p, v.from, "(-", ")");
    qn__user_convert(p, &v, type);
    p->node = 0; /* a constant of the file is not part of the tree */
    return 1;
}

/* The value of a constant, which is next, where it is an integer that can count elements; else 0.
 */
static uint32_t number_of(const qn__user_parser *p, qn__user_type type) {
    char text[QN__USER_NAME_MAX + 1];
    const uint32_t bits = 8 * qn__user_type_size(type) - (uint32_t)qn__user_type_is_signed(type);
    qn__user_word(p, qn__user_next(p), text);
    if (qn__user_next(p)->kind != QN__USER_INTEGER || qn__user_type_is_real(type))
        return 0;
    const uint64_t value = strtoull(text, NULL, 0);
    return value < (uint64_t)1 << (bits < 31 ? bits : 31) ? (uint32_t)value : 0;
}

int qn__user_constant(qn__user_parser *p, qn__user_type type) {
    qn__user_move(p, qn__user_next(p));
    qn__user_symbol *v = qn__user_declare(p, QN__USER_CONSTANT, type);
    if (!v)
        return 0;
    v->everywhere = 1;
    qn__user_write(p, "QN_CONSTANT %s u_%s", qn__user_type_word(type), v->name);
    if (qn__user_take(p, "[")) {
        v->kind = QN__USER_ARRAY;
        if (!read_length(p, TABLE, &v->length))
            return 0;
        qn__user_write(p, "[%u]", (unsigned)v->length);
    }
    qn__user_write(p, " = ");
    if (!qn__user_take(p, "="))
        return no_value(p, v->name);
    v->number = v->kind == QN__USER_ARRAY ? 0 : number_of(p, type);
    note_length(p, v, v->kind == QN__USER_ARRAY);
    if (!(v->kind == QN__USER_ARRAY ? read_elements(p, type, v->length, read_number)
                                    : read_number(p, type)))
        return 0;
    qn__user_write(p, ";");
    p->form = "write the number itself, such as 0.25, and then ;";
    if (!qn__user_need(p, ";", "after the constant"))
        return 0;
    p->form = NULL;
    return 1;
}

/* ------------------------------------------------------------------ assignments */

/* NAME[BIN] of a result that is an array: which bin the item takes. */
static int write_bin(qn__user_parser *p, const qn__user_symbol *v) {
    const uint32_t bins = p->source->part[v->part].bins;
    uint32_t depth = 0;
    if (!qn__user_take(p, "["))
        return qn__user_refuse(p, qn__user_next(p), "write NAME[bin] = x",
                               "\"%s\" has %u bins, and none is named", v->name, (unsigned)bins);
    qn__user_write(p, "(t_%s = qn_bin(qn_fault, QN_FAULT_READ(%u), ", v->name, (unsigned)v->part);
    if (!qn__user_index(p, &depth))
        return 0;
    qn__user_write(p, ", %u), ", (unsigned)bins);
    return qn__user_need(p, "]", "after the bin");
}

/* [COMPONENT] of an output, after its name. *number: 1 + the component where it is a literal. */
static int write_component(qn__user_parser *p, const qn__user_symbol *v, uint32_t *number) {
    char text[QN__USER_NAME_MAX + 1];
    uint64_t value = 0;
    const uint32_t numbers = p->source->part[v->part].components;
    uint32_t depth = 0;
    if (!qn__user_take(p, "["))
        return qn__user_refuse(p, qn__user_next(p), "write NAME[component] = x",
                               "\"%s\" has %u components, and none is named", v->name,
                               (unsigned)numbers);
    qn__user_word(p, qn__user_next(p), text);
    const int known = qn__user_next(p)->kind == QN__USER_INTEGER &&
                      qn__user_token_is(&p->tokens, qn__user_after(p), "]") &&
                      qn__user_type_read(QN__USER_U64, text, &value) && value < numbers;
    *number = known ? 1 + (uint32_t)value : 0;
    qn__user_write(p, "(o_%s[qn_component(qn_fault, QN_FAULT_READ(%u), ", v->name,
                   (unsigned)v->part);
    if (!qn__user_index(p, &depth))
        return 0;
    qn__user_write(p, ", %u)] = ", (unsigned)numbers);
    return qn__user_need(p, "]", "after the component");
}

/* What a message says of the right way to assign a result. */
static const char *assigning(const qn__user_part *part) {
    return part->bins > 0         ? "assign what this item gives the bin, as NAME[bin] = x"
           : part->components > 0 ? "assign a number, as NAME[component] = x"
           : part->use == QN__USER_SUM || part->scans
               ? "assign what this item adds, as NAME = x; Quern adds all items up"
               : "assign its value, as NAME = x, without an index";
}

/* NAME = value of what all items give. */
static int write_result(scope *s, const qn__user_symbol *v) {
    qn__user_parser *p = s->p;
    const qn__user_part *part = &p->source->part[v->part];
    uint32_t number = 0;
    if (part->bins > 0 && !write_bin(p, v))
        return 0;
    if (part->components > 0 && !write_component(p, v, &number))
        return 0;
    const qn__user_token *token = qn__user_next(p);
    if (!qn__user_take(p, "="))
        return qn__user_refuse(p, token, assigning(part), "\"%s\" can only be assigned", v->name);
    qn__user_node node = {.kind = QN__NODE_RESULT, .what = v->part, .number = number};
    node.child[1] = part->bins > 0 || part->components > 0 ? p->node : 0;
    *s->assigned |= (uint32_t)1 << v->part;
    if (part->bins == 0 && part->components == 0)
        qn__user_write(p, qn__user_use_is_extreme(part->use) ? "(t_%s = 1, " : "(", v->name);
    if (part->components == 0)
        qn__user_write(p, "p_%s = ", v->name);
    if (part->use != QN__USER_COUNT) {
        if (!qn__user_expression_as(p, part->type, NULL))
            return 0;
        node.child[0] = p->node;
    } else {
        qn__user_value value;
        qn__user_write(p, "0 != ");
        if (!qn__user_expression(p, &value))
            return 0;
        node.child[0] = value.node;
    }
    qn__user_write(p, ")");
    p->node = qn__user_node_add(p, node);
    return 1;
}

/* An assignment of the value that was read last. */
static int add_assignment(qn__user_parser *p, const qn__user_symbol *v, uint32_t index) {
    p->node = qn__user_node_add(
        p,
        (qn__user_node){.kind = QN__NODE_ASSIGN, .what = v->variable, .child = {p->node, index}});
    return 1;
}

/* NAME OP= value, with what stands before written as the left side; `index`: the node of its index.
 */
static int write_change(qn__user_parser *p, const qn__user_symbol *v, size_t from,
                        const qn__user_token *sign, uint32_t index) {
    char word[QN__USER_NAME_MAX + 1], target[QN__USER_NAME_MAX + 8];
    const qn__user_type type = v->type;
    qn__user_word(p, sign, word);
    const int step = strcmp(word, "++") == 0 || strcmp(word, "--") == 0;
    if (strcmp(word, "=") == 0) {
        qn__user_write(p, " = ");
        return qn__user_expression_as(p, type, NULL) && add_assignment(p, v, index);
    }
    if (v->kind == QN__USER_ARRAY)
        return qn__user_refuse(p, sign, "write a[i] = a[i] + x",
                               "an element of an array can only be assigned with =");
    snprintf(target, sizeof target, "u_%s = ", v->name);
    word[strlen(word) - 1] = '\0';
    qn__user_value left = {.type = type, .from = from}, right = {.from = qn__user_written(p)};
    left.node = qn__user_node_add(
        p, (qn__user_node){.kind = QN__NODE_NAME, .type = type, .what = v->variable});
    if (step) {
        right.type = QN__USER_I32;
        right.node = qn__user_node_add(
            p, (qn__user_node){.kind = QN__NODE_LITERAL,
                               .type = right.type,
                               .what = qn__user_tree_word(&p->source->tree, "1", 1)});
        qn__user_write(p, "1");
    } else if (!qn__user_expression(p, &right)) {
        return 0;
    }
    if (!qn__user_operation(p, sign, word, &left, &right))
        return 0;
    qn__user_convert(p, &left, type);
    qn__user_insert(p, from, target);
    p->node = left.node;
    return add_assignment(p, v, 0);
}

static int is_assignment(const qn__user_parser *p, const qn__user_token *token) {
    static const char *const signs[] = {
        "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (qn__user_token_is(&p->tokens, token, signs[i]))
            return 1;
    return 0;
}

static int refuse_target(qn__user_parser *p, const qn__user_token *token, const char *name,
                         const qn__user_symbol *v) {
    if (token->kind != QN__USER_NAME)
        return qn__user_refuse(p, token,
                               "begin with a type, a name, if, for, while, do, return or {",
                               "a statement cannot begin with \"%s\"", name);
    if (!v && qn__user_token_is(&p->tokens, qn__user_after(p), "("))
        return qn__user_refuse(p, token, "remove it: a kernel does nothing but compute numbers",
                               "a kernel cannot call \"%s\" as a statement", name);
    if (strcmp(name, "else") == 0)
        return qn__user_refuse(p, token, "write if (...) { ... } before it",
                               "an \"else\" has no \"if\" before it");
    if (!v)
        return qn__user_refuse(p, token, "declare it with its type where it gets its first value",
                               "\"%s\" is not declared", name);
    if (v->kind == QN__USER_PART)
        return qn__user_refuse(p, token, "declare an OUTPUT for what the kernel writes",
                               "\"%s\" is an input and cannot be written", name);
    if (v->kind == QN__USER_FUNCTION)
        return qn__user_refuse(p, token, "use its result",
                               "a call of \"%s\" changes nothing as a statement", name);
    return qn__user_refuse(p, token, "use a variable of your own", "\"%s\" cannot be changed",
                           name);
}

static int read_assignment(scope *s) {
    qn__user_parser *p = s->p;
    char name[QN__USER_NAME_MAX + 1];
    const qn__user_token *first = qn__user_next(p), *step = NULL;
    if (qn__user_take(p, "++") || qn__user_take(p, "--"))
        step = first;
    const qn__user_token *token = qn__user_next(p);
    qn__user_word(p, token, name);
    const qn__user_symbol *v = token->kind == QN__USER_NAME ? qn__user_find(p, name) : NULL;
    const int own = v && v >= p->symbol + p->own;
    qn__user_move(p, token);
    if (v && v->kind == QN__USER_PART && p->in_kernel && !step &&
        qn__user_use_is_result(p->source->part[v->part].use)) {
        p->at++;
        return write_result(s, v);
    }
    if (!v || !own || (v->kind != QN__USER_VARIABLE && v->kind != QN__USER_ARRAY))
        return refuse_target(p, token, name, v);
    p->at++;
    const size_t from = qn__user_written(p);
    qn__user_write(p, "u_%s", name);
    uint32_t depth = 0;
    if (v->kind == QN__USER_ARRAY && !qn__user_element(p, v, &depth))
        return 0;
    const qn__user_token *sign = step ? step : qn__user_next(p);
    if (!is_assignment(p, sign))
        return qn__user_refuse(p, sign, "assign a value, as x = y + 1",
                               "a statement that changes nothing");
    p->at += !step;
    return write_change(p, v, from, sign, depth > 0 ? p->node : 0);
}

/* Assignments with commas between, as in the head of a loop. Leaves the list in the parser. */
static int read_assignments(scope *s) {
    uint32_t list = 0;
    do {
        if (!read_assignment(s))
            return 0;
        list = qn__user_tree_join(&s->p->source->tree, list, s->p->node);
        if (qn__user_sees(s->p, ","))
            qn__user_write(s->p, ", ");
    } while (qn__user_take(s->p, ","));
    s->p->node = list;
    return 1;
}

/* ------------------------------------------------------------------ statements */

static int read_condition(scope *s) {
    qn__user_value v;
    qn__user_write(s->p, "(");
    if (!qn__user_need(s->p, "(", "before the condition") || !qn__user_expression(s->p, &v) ||
        !qn__user_need(s->p, ")", "after the condition"))
        return 0;
    qn__user_write(s->p, ")");
    s->p->node = v.node;
    return 1;
}

static int read_block(scope *s) {
    uint32_t list = 0;
    qn__user_parser *p = s->p;
    const uint32_t symbols = p->symbols;
    if (!qn__user_need(p, "{", "before the statements"))
        return 0;
    qn__user_write(p, "{");
    while (!qn__user_sees(p, "}")) {
        if (!read_statement(s, 1))
            return 0;
        list = qn__user_tree_join(&p->source->tree, list, p->node);
    }
    qn__user_move(p, qn__user_next(p));
    p->at++;
    p->symbols = symbols;
    qn__user_write(p, "}");
    p->node = qn__user_node_add(p, (qn__user_node){.kind = QN__NODE_BLOCK, .child = {list}});
    return 1;
}

/* In braces whatever the text has, because a declaration becomes several. */
static int read_branch(scope *s) {
    qn__user_write(s->p, "{");
    if (!read_statement(s, 0))
        return 0;
    qn__user_write(s->p, "}");
    return 1;
}

/* One condition of a chain and its branch, which becomes child 2 of the one before. */
static int read_link(scope *s, uint32_t *before) {
    qn__user_parser *p = s->p;
    qn__user_node node = {.kind = QN__NODE_IF};
    qn__user_write(p, "if ");
    if (!read_condition(s))
        return 0;
    node.child[0] = p->node;
    if (!read_branch(s))
        return 0;
    node.child[1] = p->node;
    const uint32_t made = qn__user_node_add(p, node);
    if (*before > 0 && made > 0)
        p->source->tree.node[*before].child[2] = made;
    *before = made;
    return 1;
}

/* A chain of "else if" is read and written as such: it is not nested, however long it is. */
static int read_if(scope *s) {
    qn__user_parser *p = s->p;
    uint32_t last = 0, count = 0;
    if (!read_link(s, &last))
        return 0;
    const uint32_t first = last;
    while (qn__user_take(p, "else")) {
        const qn__user_token *token = qn__user_next(p);
        qn__user_write(p, " else ");
        if (!qn__user_take(p, "if")) {
            if (!read_branch(s))
                return 0;
            if (last > 0)
                p->source->tree.node[last].child[2] = p->node;
            break;
        }
        if (++count > LINKS)
            return qn__user_refuse(p, token, "use a table, or several chains one after the other",
                                   "there are more than %d \"else if\" in a row", LINKS);
        qn__user_move(p, token);
        if (!read_link(s, &last))
            return 0;
    }
    p->node = first;
    return 1;
}

/* A compiler may assume that a loop with a condition ends, and leave it out (C17, 6.8.5). So each
 * loop is written without one, and begins with "if (!condition) break;". The body follows, in the
 * braces of the loop. */
static int read_loop_body(scope *s) {
    s->p->loops++;
    const int read = read_statement(s, 0);
    s->p->loops--;
    return read;
}

static int read_while(scope *s) {
    qn__user_node node = {.kind = QN__NODE_LOOP};
    qn__user_write(s->p, "for (;;) {if (!");
    if (!read_condition(s))
        return 0;
    node.child[1] = s->p->node;
    qn__user_write(s->p, ") break; ");
    if (!read_loop_body(s))
        return 0;
    node.child[2] = s->p->node;
    s->p->node = qn__user_node_add(s->p, node);
    qn__user_write(s->p, "}");
    return 1;
}

static int read_do(scope *s) {
    qn__user_parser *p = s->p;
    qn__user_write(p, "for (int qn_first = 1;; qn_first = 0) {");
    const size_t body = qn__user_written(p);
    qn__user_node node = {.kind = QN__NODE_DO};
    if (!read_loop_body(s) || !qn__user_need(p, "while", "after the loop's body"))
        return 0;
    node.child[2] = p->node;
    const size_t condition = qn__user_written(p);
    qn__user_write(p, "if (!qn_first && !");
    if (!read_condition(s))
        return 0;
    node.child[1] = p->node;
    p->node = qn__user_node_add(p, node);
    qn__user_write(p, ") break; ");
    qn__user_swap(p, body, condition);
    qn__user_write(p, "}");
    return qn__user_need(p, ";", "after the condition");
}

/* The parts between parentheses; what comes first stands before the loop, in a block with it. */
static int read_for_head(scope *s, qn__user_node *node) {
    qn__user_parser *p = s->p;
    qn__user_value v = {.node = 0};
    p->node = 0;
    if (!qn__user_need(p, "(", "after for"))
        return 0;
    if (qn__user_sees_type(p) || qn__user_sees(p, "const")) {
        if (!read_declaration(p))
            return 0;
    } else if (!qn__user_sees(p, ";")) {
        if (!read_assignments(s))
            return 0;
        qn__user_write(p, ";");
    }
    node->child[0] = p->node;
    qn__user_write(p, " for (;; ");
    const size_t condition = qn__user_written(p);
    qn__user_write(p, "{if (!(");
    if (!qn__user_need(p, ";", "after the first part of for"))
        return 0;
    if (qn__user_sees(p, ";"))
        qn__user_write(p, "1");
    else if (!qn__user_expression(p, &v))
        return 0;
    qn__user_write(p, ")) break; ");
    node->child[1] = v.node;
    p->node = 0;
    const size_t last = qn__user_written(p);
    if (!qn__user_need(p, ";", "after the condition of for") ||
        (!qn__user_sees(p, ")") && !read_assignments(s)) ||
        !qn__user_need(p, ")", "after the last part of for"))
        return 0;
    qn__user_write(p, ") ");
    node->child[3] = p->node;
    qn__user_swap(p, condition, last);
    return 1;
}

static int read_for(scope *s) {
    const uint32_t symbols = s->p->symbols;
    qn__user_write(s->p, "{");
    qn__user_node node = {.kind = QN__NODE_LOOP};
    if (!read_for_head(s, &node) || !read_loop_body(s))
        return 0;
    node.child[2] = s->p->node;
    s->p->node = qn__user_node_add(s->p, node);
    s->p->symbols = symbols;
    qn__user_write(s->p, "}}");
    return 1;
}

static int read_return(scope *s) {
    qn__user_parser *p = s->p;
    if (p->in_kernel) {
        if (!qn__user_sees(p, ";"))
            return qn__user_refuse(p, qn__user_next(p), "assign the results, and write return;",
                                   "the kernel returns no value");
        qn__user_write(p, "return;");
        p->node = qn__user_node_add(p, (qn__user_node){.kind = QN__NODE_RETURN});
        return qn__user_take(p, ";");
    }
    qn__user_write(p, "return ");
    if (!qn__user_expression_as(p, p->result, NULL))
        return 0;
    qn__user_write(p, ";");
    return qn__user_need(p, ";", "after the result");
}

static int read_leap(scope *s, const char *word) {
    if (s->p->loops == 0)
        return qn__user_refuse(s->p, qn__user_next(s->p), "use return to end the function",
                               "\"%s\" stands in no loop", word);
    qn__user_write(s->p, "%s;", word);
    s->p->node = qn__user_node_add(
        s->p, (qn__user_node){.kind = *word == 'b' ? QN__NODE_BREAK : QN__NODE_CONTINUE});
    return qn__user_need(s->p, ";", "after the word");
}

/* Words of C that a kernel lacks, with the way to do without. */
static int refuse_word(qn__user_parser *p, const qn__user_token *token, const char *word) {
    static const qn__user_remedy words[] = {
        {"goto", "use a loop with break, or a function with return"},
        {"switch", "use if and else"},
        {"static", "a variable of a function is computed anew for each item"},
        {"volatile", "remove the word"},
        {"register", "remove the word"},
        {"asm", "write it in C"},
        {"__asm__", "write it in C"},
        {"typedef", "write the type itself"},
        {"enum", "write static const int NAME = 1; before the kernel"},
        {"extern", "declare arrays with INPUT, WHOLE, HALO and OUTPUT"},
        {NULL, NULL}};
    const char *remedy = qn__user_remedy_of(words, word);
    return !remedy || qn__user_refuse(p, token, remedy, "a kernel has no \"%s\"", word);
}

static int read_simple(scope *s, int declares) {
    qn__user_parser *p = s->p;
    if (qn__user_sees_type(p) || qn__user_sees(p, "const")) {
        if (!declares)
            return qn__user_refuse(p, qn__user_next(p), "put it into braces",
                                   "a declaration alone does nothing here");
        return read_declaration(p) && qn__user_need(p, ";", "after the declaration");
    }
    if (!read_assignments(s))
        return 0;
    qn__user_write(p, ";");
    return qn__user_need(p, ";", "after the statement");
}

static int read_kind(scope *s, const char *word, int declares) {
    static const struct {
        const char *word;
        int (*read)(scope *s);
    } kinds[] = {{"if", read_if},
                 {"for", read_for},
                 {"while", read_while},
                 {"do", read_do},
                 {"return", read_return}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].word, word) == 0) {
            s->p->at++;
            return kinds[i].read(s);
        }
    if (strcmp(word, "break") == 0 || strcmp(word, "continue") == 0) {
        s->p->at++;
        return read_leap(s, word);
    }
    return read_simple(s, declares);
}

static int read_statement(scope *s, int declares) {
    qn__user_parser *p = s->p;
    char word[QN__USER_NAME_MAX + 1];
    const qn__user_token *token = qn__user_next(p);
    qn__user_move(p, token);
    qn__user_word(p, token, word);
    if (token->kind == QN__USER_END)
        return qn__user_refuse(p, token, "close it with }", "the text ends inside a function");
    if (!qn__user_deeper(p) || !refuse_word(p, token, word))
        return 0;
    int read = 1;
    p->node = 0;
    if (strcmp(word, "{") == 0)
        read = read_block(s);
    else if (!qn__user_take(p, ";"))
        read = read_kind(s, word, declares);
    p->depth--;
    qn__user_write(p, " ");
    return read && p->source->functions.failed ? qn__user_no_memory(p) : read;
}

int qn__user_body(qn__user_parser *p, uint32_t *assigned) {
    scope s = {p, assigned};
    return read_block(&s);
}
