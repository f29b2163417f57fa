/* Expressions: operators by precedence, with the types of C. What C leaves open gets one meaning,
 * so some operations are written in another way, with int32_t a, b and a float x:
 *
 *   text      C                                          why
 *   a + b     (int32_t)((uint32_t)(a) + (uint32_t)(b))   wraps around
 *   a / b     qn_div_i32(qn_fault, a, b)                 reports a division by zero
 *   a << b    qn_shl_i32(a, b)                           takes the count modulo 32
 *   (int)x    qn_i32_of_f32(x)                           saturates; NaN becomes 0
 *
 * A row of additions such as a + b + 1 has one conversion around all of it. Until it ends, `wraps`
 * says that the conversion is not written yet. */
#include "userkernel/language/user_expression.h"

#include "base/encoding.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ conversions and operators */

/* Ends a row of operations that wrap around, before the byte *end, which moves. */
static void settle(qn__user_parser *p, qn__user_value *v, size_t *end) {
    char before[40];
    if (!v->wraps)
        return;
    snprintf(before, sizeof before, "(%s)(", qn__user_type_word(v->type));
    qn__user_insert(p, *end, ")");
    qn__user_insert(p, v->from, before);
    *end += strlen(before) + 1;
    v->wraps = 0;
}

void qn__user_convert(qn__user_parser *p, qn__user_value *v, qn__user_type type) {
    char before[40];
    settle(p, v, &(size_t){qn__user_written(p)});
    if (v->type == type)
        return;
    /* C leaves open what becomes of a real number that an integer cannot hold. */
    if (qn__user_type_is_real(v->type) && !qn__user_type_is_real(type))
        snprintf(before, sizeof before, "qn_%s_of_%s(", qn__user_type_tag(type),
                 qn__user_type_tag(v->type));
    else
        snprintf(before, sizeof before, "((%s)(", qn__user_type_word(type));
    qn__user_wrap(p, v->from, before, strchr(before, '_') == before + 2 ? ")" : "))");
    v->type = type;
    v->node = qn__user_node_add(
        p, (qn__user_node){.kind = QN__NODE_CONVERT, .type = type, .child = {v->node}});
}

int qn__user_expression_as(qn__user_parser *p, qn__user_type type, uint32_t *depth) {
    qn__user_value v = {.from = 0};
    if (!qn__user_expression(p, &v))
        return 0;
    qn__user_convert(p, &v, type);
    if (depth && v.depth >= *depth)
        *depth = v.depth + 1;
    p->node = v.node;
    return 1;
}

/* Compilers bound the nesting of brackets: clang allows 256. */
static int check_depth(qn__user_parser *p, const qn__user_value *v, const qn__user_token *token) {
    if (v->depth <= QN__USER_DEPTH)
        return 1;
    return qn__user_refuse(p, token, "use variables for parts of it",
                           "the expression is nested deeper than %d levels", QN__USER_DEPTH);
}

static int is_among(const char *word, const char *list) {
    const char *found = strstr(list, word);
    const size_t size = strlen(word);
    for (; found; found = strstr(found + 1, word))
        if ((found == list || found[-1] == ' ') && (found[size] == ' ' || found[size] == '\0'))
            return 1;
    return 0;
}

/* Operations that C does not define for all operands are functions of the prelude, which report or
 * define them. The division of real numbers is one, because OpenCL C may round it otherwise. */
static const char *checked(const char *word) {
    if (is_among(word, "<< >>"))
        return *word == '<' ? "qn_shl" : "qn_shr";
    if (is_among(word, "/ %"))
        return *word == '/' ? "qn_div" : "qn_rem";
    return NULL;
}

/* Integers with a sign are added and multiplied as ones without, which wrap around in every
 * language. A row of such operations is converted back once. */
static int must_wrap(const char *word, qn__user_type type) {
    return is_among(word, "+ - *") && !qn__user_type_is_real(type) && qn__user_type_is_signed(type);
}

static void write_wrapping(qn__user_parser *p, const char *word, qn__user_type type,
                           qn__user_value *left, size_t right) {
    const char *bare = qn__user_type_word(type == QN__USER_I64 ? QN__USER_U64 : QN__USER_U32);
    char text[40];
    snprintf(text, sizeof text, "%s %s (%s)(", left->wraps ? "" : ")", word, bare);
    qn__user_insert(p, right, text);
    qn__user_write(p, ")");
    snprintf(text, sizeof text, "(%s)(", bare);
    if (!left->wraps)
        qn__user_insert(p, left->from, text);
    left->wraps = 1;
}

int qn__user_operation(qn__user_parser *p, const qn__user_token *sign, const char *word,
                       qn__user_value *left, const qn__user_value *right) {
    char text[64];
    const int shift = is_among(word, "<< >>");
    qn__user_type type =
        shift ? qn__user_type_promoted(left->type) : qn__user_type_common(left->type, right->type);
    if (is_among(word, "% << >> & ^ |") &&
        (qn__user_type_is_real(left->type) || qn__user_type_is_real(right->type)))
        return qn__user_refuse(p, sign, "convert the operands, as (int)x",
                               "\"%s\" needs integers, and an operand is a real number", word);
    const char *function = checked(word);
    const int wrap = must_wrap(word, type);
    size_t begin = right->from; /* of the right operand */
    if (!wrap || left->type != type)
        settle(p, left, &begin);
    left->depth = left->depth > right->depth ? left->depth : right->depth;
    if (function) {
        qn__user_insert(p, begin, ", ");
        snprintf(text, sizeof text, "%s_%s(%s", function, qn__user_type_tag(type),
                 shift || qn__user_type_is_real(type) ? "" : "qn_fault, ");
        qn__user_wrap(p, left->from, text, ")");
        left->depth++;
    } else if (wrap) {
        write_wrapping(p, word, type, left, begin);
    } else {
        snprintf(text, sizeof text, " %s ", word);
        qn__user_insert(p, begin, text);
    }
    left->type = is_among(word, "< <= > >= == != && ||") ? QN__USER_I32 : type;
    qn__user_node node = {.kind = QN__NODE_BINARY,
                          .type = left->type,
                          .common = type,
                          .child = {left->node, right->node}};
    memcpy(node.sign, word, strlen(word));
    left->node = qn__user_node_add(p, node);
    return check_depth(p, left, sign);
}

/* ------------------------------------------------------------------ numbers */

static int write_integer(qn__user_parser *p, const qn__user_token *token, qn__user_value *v) {
    char text[QN__USER_NAME_MAX + 1], *end;
    qn__user_word(p, token, text);
    const int hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const size_t digits =
        hexadecimal ? 2 + strspn(text + 2, "0123456789abcdefABCDEF") : strspn(text, "0123456789");
    const int no_sign = text[digits] == 'u' || text[digits] == 'U';
    const int wide = text[digits] && text[digits + (size_t)no_sign];
    text[digits] = '\0';
    uint64_t value = 0;
    const int fits = hexadecimal ? digits <= 18 : qn__user_type_read(QN__USER_U64, text, &value);
    if (hexadecimal && fits)
        value = strtoull(text, &end, 16);
    if (!fits || (value > INT64_MAX && !no_sign && !hexadecimal))
        return qn__user_refuse(p, token, "a decimal number above 9223372036854775807 ends with ull",
                               "the number does not fit 64 bits");
    if (value <= INT32_MAX && !wide && !no_sign)
        v->type = QN__USER_I32;
    else if (value <= UINT32_MAX && !wide && (no_sign || hexadecimal))
        v->type = QN__USER_U32;
    else
        v->type = value <= INT64_MAX && !no_sign ? QN__USER_I64 : QN__USER_U64;
    /* Without its letters a compiler looks for a type that can hold the largest. */
    qn__user_write(p, value > INT64_MAX ? "((%s)QN_U64(%" PRIu64 "))" : "((%s)%" PRIu64 ")",
                   qn__user_type_word(v->type), value);
    return 1;
}

static int write_real(qn__user_parser *p, const qn__user_token *token, qn__user_value *v) {
    char text[QN__USER_NAME_MAX + 1];
    qn__user_word(p, token, text);
    const size_t size = strlen(text);
    const int hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const int narrow = text[size - 1] == 'f' || text[size - 1] == 'F';
    const locale_t before = uselocale(qn__c_locale());
    const int finite = narrow && !(hexadecimal && !strpbrk(text, "pP"))
                           ? (int)isfinite(strtof(text, NULL))
                           : (int)isfinite(strtod(text, NULL));
    uselocale(before);
    if (!finite)
        return qn__user_refuse(p, token, "write a smaller one",
                               "the number is beyond the range of its type");
    v->type = narrow ? QN__USER_F32 : QN__USER_F64;
    p->source->has_doubles |= !narrow;
    qn__user_write(p, "%s", text);
    return 1;
}

/* What was written from a byte on, as a word of the tree. */
static uint32_t word_of(qn__user_parser *p, size_t from) {
    const qn__text *to = &p->source->functions;
    return to->failed ? 0 : qn__user_tree_word(&p->source->tree, to->data + from, to->size - from);
}

int qn__user_literal(qn__user_parser *p, qn__user_value *v) {
    const qn__user_token *token = qn__user_next(p);
    p->at++;
    if (!(token->kind == QN__USER_INTEGER ? write_integer(p, token, v) : write_real(p, token, v)))
        return 0;
    v->node = qn__user_node_add(
        p, (qn__user_node){.kind = QN__NODE_LITERAL, .type = v->type, .what = word_of(p, v->from)});
    return 1;
}

/* ------------------------------------------------------------------ functions */

typedef enum builtin_kind {
    OF_REAL, /* of the common type of the arguments; of integers, of double */
    OF_MATH, /* the same, by the text of kernels/runtime/math.cl */
    OF_ANY   /* of any common type */
} builtin_kind;

/* Correctly rounded or exact, or of a text that fixes each operation. */
static const struct {
    const char *name;
    uint32_t arguments;
    builtin_kind kind;
} builtins[] = {
    {"sqrt", 1, OF_REAL},  {"fabs", 1, OF_REAL},  {"floor", 1, OF_REAL},   {"ceil", 1, OF_REAL},
    {"trunc", 1, OF_REAL}, {"rint", 1, OF_REAL},  {"fma", 3, OF_REAL},     {"fmin", 2, OF_REAL},
    {"fmax", 2, OF_REAL},  {"cbrt", 1, OF_MATH},  {"exp", 1, OF_MATH},     {"log", 1, OF_MATH},
    {"sin", 1, OF_MATH},   {"cos", 1, OF_MATH},   {"tan", 1, OF_MATH},     {"atan", 1, OF_MATH},
    {"erf", 1, OF_MATH},   {"erfc", 1, OF_MATH},  {"normcdf", 1, OF_MATH}, {"tanh", 1, OF_MATH},
    {"exp2", 1, OF_MATH},  {"expm1", 1, OF_MATH}, {"log2", 1, OF_MATH},    {"log10", 1, OF_MATH},
    {"log1p", 1, OF_MATH}, {"asin", 1, OF_MATH},  {"acos", 1, OF_MATH},    {"sinh", 1, OF_MATH},
    {"cosh", 1, OF_MATH},  {"pow", 2, OF_MATH},   {"atan2", 2, OF_MATH},   {"hypot", 2, OF_MATH},
    {"min", 2, OF_ANY},    {"max", 2, OF_ANY}};

static int find_builtin(const char *name) {
    for (int i = 0; i < (int)(sizeof builtins / sizeof *builtins); i++)
        if (strcmp(builtins[i].name, name) == 0)
            return i;
    return -1;
}

/* What compiling a function of kernels/runtime/math.cl costs, beside words of a kernel. */
enum { MATH_WORDS = 50 };

static uint32_t add_call(qn__user_parser *p, qn__user_node_kind kind, const char *name,
                         qn__user_type type, uint32_t arguments, int flag) {
    const uint32_t word = qn__user_tree_word(&p->source->tree, name, strlen(name));
    return qn__user_node_add(p, (qn__user_node){.kind = kind,
                                                .type = type,
                                                .what = word,
                                                .child = {arguments},
                                                .flag = (unsigned char)flag});
}

/* A call, or a read of an array, has other arguments than `count`. */
static int refuse_count(qn__user_parser *p, const char *name, uint32_t count) {
    static const char *const forms[] = {"", "a", "a, b", "a, b, c"};
    char remedy[QN__USER_NAME_MAX + 32];
    snprintf(remedy, sizeof remedy, "write %s(%s)", name, count < 4 ? forms[count] : "a, b, ...");
    return qn__user_refuse(p, qn__user_next(p), remedy, "\"%s\" takes %u argument%s", name,
                           (unsigned)count, count == 1 ? "" : "s");
}

/* A call of a builtin function, after its name. The arguments have a type only when all are read,
 * so each is converted from the last one to the first. */
static int call_builtin(qn__user_parser *p, int which, qn__user_value *v) {
    qn__user_value argument[3] = {{.from = 0}};
    char before[32];
    uint32_t list = 0;
    const uint32_t count = builtins[which].arguments;
    if (!qn__user_take(p, "("))
        return refuse_count(p, builtins[which].name, count);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 ? !qn__user_take(p, ",") : qn__user_sees(p, ")"))
            return refuse_count(p, builtins[which].name, count);
        if (!qn__user_expression(p, &argument[i]))
            return 0;
        list = qn__user_tree_join(&p->source->tree, list, argument[i].node);
    }
    if (!qn__user_take(p, ")"))
        return refuse_count(p, builtins[which].name, count);
    qn__user_type type = argument[0].type;
    for (uint32_t i = 1; i < count; i++)
        type = qn__user_type_common(type, argument[i].type);
    type = qn__user_type_promoted(type);
    if (builtins[which].kind != OF_ANY && !qn__user_type_is_real(type))
        type = QN__USER_F64;
    for (uint32_t i = count - 1; i > 0; i--)
        qn__user_insert(p, argument[i].from, ", ");
    const int math = builtins[which].kind == OF_MATH;
    if (math && !qn__user_grow(p, qn__user_next(p) - 1, MATH_WORDS, 0))
        return 0;
    snprintf(before, sizeof before, "qn_%s_%s(",
             math ? qn__user_type_tag(type) : builtins[which].name,
             math ? builtins[which].name : qn__user_type_tag(type));
    p->source->has_math |= math;
    p->source->has_doubles |= type == QN__USER_F64;
    qn__user_wrap(p, v->from, before, ")");
    v->type = type;
    v->node = add_call(p, QN__NODE_BUILTIN, builtins[which].name, type, list, math);
    for (uint32_t i = 0; i < count; i++)
        v->depth = v->depth > argument[i].depth ? v->depth : argument[i].depth + 1;
    return 1;
}

int qn__user_index(qn__user_parser *p, uint32_t *depth) {
    const qn__user_token *token = qn__user_next(p);
    qn__user_value index;
    if (!qn__user_expression(p, &index))
        return 0;
    if (qn__user_type_is_real(index.type))
        return qn__user_refuse(p, token, "convert it, as (int)x", "an index is a real number");
    qn__user_convert(p, &index, QN__USER_I64);
    if (index.depth >= *depth)
        *depth = index.depth + 1;
    p->node = index.node;
    return 1;
}

/* The arguments of a call, converted to their types (NULL: indices) and separated by commas. Leaves
 * the list of their nodes in the parser. */
static int write_arguments(qn__user_parser *p, const char *name, uint32_t count,
                           const qn__user_type *type, qn__user_value *v) {
    uint32_t list = 0;
    if (!qn__user_take(p, "("))
        return refuse_count(p, name, count);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 ? !qn__user_take(p, ",") : qn__user_sees(p, ")"))
            return refuse_count(p, name, count);
        qn__user_write(p, "%s", i > 0 ? ", " : "");
        if (!(type ? qn__user_expression_as(p, type[i], &v->depth) : qn__user_index(p, &v->depth)))
            return 0;
        list = qn__user_tree_join(&p->source->tree, list, p->node);
    }
    p->node = list;
    return qn__user_take(p, ")") || refuse_count(p, name, count);
}

static int call_function(qn__user_parser *p, const qn__user_symbol *s, qn__user_value *v) {
    if (!qn__user_grow(p, qn__user_next(p) - 1, s->words, s->stack))
        return 0;
    qn__user_write(p, "u_%s(qn_fault%s%s", s->name, s->draws ? ", qn_draw" : "",
                   s->arguments > 0 ? ", " : "");
    v->type = s->type;
    if (!write_arguments(p, s->name, s->arguments, s->argument, v))
        return 0;
    v->node = add_call(p, QN__NODE_CALL, s->name, s->type, p->node, s->draws);
    qn__user_write(p, ")");
    return 1;
}

/* uniform(k) and its like. The number of the draw is taken modulo 2^32. */
static int call_draw(qn__user_parser *p, const qn__user_symbol *s, qn__user_value *v) {
    const int normal = strncmp(s->name, "normal", 6) == 0;
    if (!qn__user_grow(p, qn__user_next(p) - 1, (normal ? 3 : 1) * MATH_WORDS, 0))
        return 0;
    p->source->has_math |= normal;
    p->source->has_doubles |= s->type == QN__USER_F64;
    qn__user_write(p, "qn_%s(qn_draw, (uint32_t)", s->name);
    v->type = s->type;
    if (!write_arguments(p, s->name, 1, NULL, v))
        return 0;
    v->node = add_call(p, QN__NODE_DRAW, s->name, s->type, p->node, 0);
    qn__user_write(p, ")");
    return 1;
}

/* length(ARRAY, DIMENSION) */
static int write_length(qn__user_parser *p, qn__user_value *v) {
    char name[QN__USER_NAME_MAX + 1], number[QN__USER_NAME_MAX + 1];
    uint64_t dimension = 0;
    if (!qn__user_need(p, "(", "after length"))
        return 0;
    const qn__user_token *token = qn__user_next(p);
    qn__user_word(p, token, name);
    const qn__user_symbol *s = token->kind == QN__USER_NAME ? qn__user_find(p, name) : NULL;
    if (!s || s->kind != QN__USER_PART || !p->in_kernel ||
        p->source->part[s->part].use != QN__USER_WHOLE)
        return qn__user_refuse(p, token, "EXTENT names the lengths of the index space",
                               "length is of an array that is declared with WHOLE");
    p->at++;
    if (!qn__user_need(p, ",", "before the dimension"))
        return 0;
    token = qn__user_next(p);
    qn__user_word(p, token, number);
    if (token->kind != QN__USER_INTEGER || !qn__user_type_read(QN__USER_U64, number, &dimension) ||
        dimension >= p->source->part[s->part].dimensions)
        return qn__user_refuse(p, token, "the first dimension is 0",
                               "\"%s\" has no such dimension: it has %u", name,
                               (unsigned)p->source->part[s->part].dimensions);
    p->at++;
    qn__user_write(p, "n_%s_%u", name, (unsigned)dimension);
    v->type = QN__USER_I64;
    v->node = qn__user_node_add(p, (qn__user_node){.kind = QN__NODE_LENGTH,
                                                   .type = v->type,
                                                   .what = s->part,
                                                   .child = {(uint32_t)dimension}});
    return qn__user_need(p, ")", "after the dimension");
}

/* ------------------------------------------------------------------ names */

/* Functions of C's libraries whose results are not the same everywhere. */
static int is_vendor_function(const char *name) {
    char plain[QN__USER_NAME_MAX + 1];
    static const char list[] =
        "exp10 asinh acosh atanh tgamma lgamma fmod remainder round roundeven "
        "nearbyint ldexp frexp scalbn modf copysign rsqrt";
    strcpy(plain, name);
    const size_t size = strlen(plain);
    if (is_among(plain, list))
        return 1;
    if (size > 1 && plain[size - 1] == 'f')
        plain[size - 1] = '\0';
    return is_among(plain, list);
}

/* What C programs write that a kernel writes in another way; NULL: nothing is known. */
static const char *instead_of(const char *name) {
    static const qn__user_remedy names[] = {
        {"true", "write 1"},
        {"false", "write 0"},
        {"NULL", "write 0"},
        {"M_PI", "write static const double PI = 3.141592653589793; before the kernel"},
        {"INFINITY", "write 1 / 0.0"},
        {"abs", "write fabs(x), or max(x, -x) for an integer"},
        {NULL, NULL}};
    return qn__user_remedy_of(names, name);
}

static int refuse_name(qn__user_parser *p, const qn__user_token *token, const char *name) {
    const char *known[QN__USER_SYMBOLS + 1];
    char remedy[96], plain[QN__USER_NAME_MAX + 1];
    uint32_t count = 0;
    const size_t size = strlen(name);
    memcpy(plain, name, size + 1);
    plain[size > 0 ? size - 1 : 0] = '\0';
    if (size > 1 && name[size - 1] == 'f' && find_builtin(plain) >= 0) {
        snprintf(remedy, sizeof remedy, "write %s: it computes in the type of its arguments",
                 plain);
        return qn__user_refuse(p, token, remedy, "a kernel has no function \"%s\"", name);
    }
    if (instead_of(name))
        return qn__user_refuse(p, token, instead_of(name), "\"%s\" is not declared", name);
    if (p->function && strcmp(p->function, name) == 0)
        return qn__user_refuse(p, token, "use a loop", "the function \"%s\" cannot call itself",
                               name);
    if (is_vendor_function(name))
        return qn__user_refuse(p, token,
                               "write the formula with + - * / and the functions that "
                               "docs/kernels.md lists",
                               "the results of \"%s\" differ between C libraries", name);
    if (!p->source->has_random &&
        is_among(name, "random32 uniform uniformf normal normalf rand random"))
        return qn__user_refuse(p, token, "write RANDOM; before it, and then uniform(0)",
                               "\"%s\" needs the declaration RANDOM", name);
    for (uint32_t i = 0; i < p->symbols; i++)
        known[count++] = p->symbol[i].name;
    known[count] = NULL;
    const char *near = qn__nearest(name, known);
    if (near)
        snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", near);
    else
        snprintf(remedy, sizeof remedy,
                 "declare it before it is used; docs/kernels.md lists the functions");
    return qn__user_refuse(p, token, remedy, "\"%s\" is not declared", name);
}

int qn__user_element(qn__user_parser *p, const qn__user_symbol *array, uint32_t *depth) {
    const uint32_t length = array->length;
    if (!qn__user_need(p, "[", "after the name of an array"))
        return 0;
    qn__user_write(p, "[qn_inside(qn_fault, ");
    if (!qn__user_index(p, depth))
        return 0;
    qn__user_write(p, ", %u)]", (unsigned)length);
    return qn__user_need(p, "]", "after the index");
}

/* An access to an array of the job: NAME(i, j). Numbers of whole arrays are addressed, of halos
 * those of neighbours. */
static int write_access(qn__user_parser *p, const qn__user_token *token, const qn__user_symbol *s,
                        qn__user_value *v) {
    const qn__user_part *part = &p->source->part[s->part];
    if (qn__user_use_is_result(part->use))
        return qn__user_refuse(p, token, "compute in a variable, and assign it once",
                               "\"%s\" is written by the kernel and cannot be read", s->name);
    if (qn__user_sees(p, "["))
        return qn__user_refuse(p, qn__user_next(p), "write its indices as NAME(i, j)",
                               "\"%s\" is not read with brackets", s->name);
    if (part->use == QN__USER_HALOED && !qn__user_sees(p, "("))
        return qn__user_refuse(p, token, "write how far away the neighbour is, as NAME(0, -1)",
                               "\"%s\" is read without the place of a neighbour", s->name);
    v->type = part->type;
    qn__user_write(p, "p_%s(", s->name);
    if (!write_arguments(p, s->name,
                         part->use == QN__USER_WHOLE ? part->dimensions : p->source->dimensions,
                         NULL, v))
        return 0;
    v->node = qn__user_node_add(
        p, (qn__user_node){
               .kind = QN__NODE_READ, .type = v->type, .what = s->part, .child = {p->node}});
    qn__user_write(p, ")");
    return 1;
}

static int write_symbol(qn__user_parser *p, const qn__user_token *token, const qn__user_symbol *s,
                        qn__user_value *v) {
    const int outside = s < p->symbol + p->own;
    if (outside && !p->in_kernel && s->kind != QN__USER_FUNCTION && !s->everywhere)
        return qn__user_refuse(p, token, "pass it as an argument",
                               "only the kernel itself sees \"%s\"", s->name);
    v->type = s->type;
    if (s->kind == QN__USER_PART)
        return write_access(p, token, s, v);
    if (s->kind == QN__USER_FUNCTION)
        return call_function(p, s, v);
    if (s->kind == QN__USER_DRAW)
        return call_draw(p, s, v);
    qn__user_write(p, "u_%s", s->name);
    const int array = s->kind == QN__USER_ARRAY;
    if (array && !qn__user_element(p, s, &v->depth))
        return 0;
    if (!array && (qn__user_sees(p, "(") || qn__user_sees(p, "[")))
        return qn__user_refuse(p, qn__user_next(p),
                               "write the name alone; WHOLE and HALO declare arrays that are read "
                               "as NAME(i)",
                               "\"%s\" is one number", s->name);
    v->node = qn__user_node_add(p, (qn__user_node){.kind = array ? QN__NODE_ELEMENT : QN__NODE_NAME,
                                                   .type = v->type,
                                                   .what = s->variable,
                                                   .child = {array ? p->node : 0}});
    return 1;
}

static int write_name(qn__user_parser *p, qn__user_value *v) {
    char name[QN__USER_NAME_MAX + 1];
    const qn__user_token *token = qn__user_next(p);
    qn__user_word(p, token, name);
    p->at++;
    /* Names of the file come first: older kernels may define an erfc or a log2. */
    const qn__user_symbol *s = qn__user_find(p, name);
    const int own = s || (p->function && strcmp(p->function, name) == 0);
    const int builtin = own ? -1 : find_builtin(name);
    if (builtin >= 0)
        return call_builtin(p, builtin, v);
    if (strcmp(name, "length") == 0)
        return write_length(p, v);
    return s ? write_symbol(p, token, s, v) : refuse_name(p, token, name);
}

/* ------------------------------------------------------------------ the grammar */

static int read_unary(qn__user_parser *p, qn__user_value *v);

static int read_primary(qn__user_parser *p, qn__user_value *v) {
    char word[QN__USER_NAME_MAX + 1];
    const qn__user_token *token = qn__user_next(p);
    qn__user_move(p, token);
    *v = (qn__user_value){.from = qn__user_written(p)};
    if (token->kind == QN__USER_INTEGER || token->kind == QN__USER_REAL)
        return qn__user_literal(p, v);
    if (token->kind == QN__USER_NAME && !qn__user_sees_type(p))
        return write_name(p, v);
    if (qn__user_take(p, "(")) {
        const size_t from = v->from;
        const int read = qn__user_expression(p, v) && qn__user_need(p, ")", "after the expression");
        v->from = from;
        return read;
    }
    qn__user_word(p, token, word);
    if (*word == '*' && p->at > 0 && qn__user_token_is(&p->tokens, token - 1, "*"))
        return qn__user_refuse(p, token, "write pow(a, b), or a * a", "C has no operator \"**\"");
    if (strcmp(word, "&") == 0 || strcmp(word, "*") == 0)
        return qn__user_refuse(p, token, "read arrays as NAME(i), as they are declared",
                               "a kernel has no pointers");
    if (strcmp(word, "++") == 0 || strcmp(word, "--") == 0)
        return qn__user_refuse(p, token, "write it as a statement of its own",
                               "\"%s\" cannot stand in an expression", word);
    return qn__user_refuse(p, token, "write a number, a name or an expression before it",
                           "a value is missing where %s%s%s stands", *word ? "\"" : "",
                           *word ? word : "the end of the text", *word ? "\"" : "");
}

/* (TYPE)operand */
static int read_cast(qn__user_parser *p, qn__user_value *v) {
    qn__user_move(p, qn__user_next(p));
    const size_t from = qn__user_written(p);
    p->at++;
    const qn__user_type type = qn__user_need_type(p);
    if (type == QN__USER_TYPES || !qn__user_need(p, ")", "after the type") || !read_unary(p, v))
        return 0;
    v->from = from;
    qn__user_convert(p, v, type);
    v->depth++;
    return 1;
}

static int sees_cast(qn__user_parser *p) {
    if (!qn__user_sees(p, "("))
        return 0;
    p->at++;
    const int type = qn__user_sees_type(p);
    p->at--;
    return type;
}

static int read_sign(qn__user_parser *p, qn__user_value *v) {
    static const char *const signs[] = {"-", "+", "~", "!"};
    const qn__user_token *token = qn__user_next(p);
    char before[40];
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!qn__user_take(p, signs[i]))
            continue;
        if (!read_unary(p, v))
            return 0;
        if (*signs[i] == '~' && qn__user_type_is_real(v->type))
            return qn__user_refuse(p, token, "convert it, as (int)x",
                                   "\"~\" needs an integer, and its operand is a real number");
        v->type = *signs[i] == '!' ? QN__USER_I32 : qn__user_type_promoted(v->type);
        if (must_wrap(signs[i], v->type) && *signs[i] == '-')
            snprintf(before, sizeof before, "(%s)(0 - (u%s)", qn__user_type_word(v->type),
                     qn__user_type_word(v->type));
        else if (*signs[i] == '-' && qn__user_type_is_real(v->type))
            snprintf(before, sizeof before, "QN_NEGATIVE_%s(", qn__user_type_tag(v->type));
        else
            snprintf(before, sizeof before, *signs[i] == '!' ? "(%s" : "(%s(%s)", signs[i],
                     qn__user_type_word(v->type));
        qn__user_wrap(p, v->from, before, ")");
        v->node = qn__user_node_add(p, (qn__user_node){.kind = QN__NODE_UNARY,
                                                       .type = v->type,
                                                       .child = {v->node},
                                                       .sign = {*signs[i]}});
        v->depth++;
        return check_depth(p, v, token);
    }
    return read_primary(p, v);
}

static int read_unary(qn__user_parser *p, qn__user_value *v) {
    if (!qn__user_deeper(p))
        return 0;
    const int read = sees_cast(p) ? read_cast(p, v) : read_sign(p, v);
    p->depth--;
    return read;
}

enum { LEVELS = 10 };

/* From the weakest to the strongest, as in C. */
static const char *const levels[LEVELS] = {"||",    "&&",        "|",     "^",   "&",
                                           "== !=", "< <= > >=", "<< >>", "+ -", "* / %"};

static int read_binary(qn__user_parser *p, int level, qn__user_value *v) {
    char word[QN__USER_NAME_MAX + 1];
    if (level == LEVELS)
        return read_unary(p, v);
    if (!read_binary(p, level + 1, v))
        return 0;
    for (int found = 0;; found = 1) {
        qn__user_value right;
        const qn__user_token *sign = qn__user_next(p);
        qn__user_word(p, sign, word);
        if (sign->kind != QN__USER_SIGN || !is_among(word, levels[level])) {
            if (v->wraps)
                settle(p, v, &(size_t){qn__user_written(p)});
            else if (found) /* C reads a row of these operators from left to right, as here */
                qn__user_wrap(p, v->from, "(", ")");
            v->depth += (uint32_t)found;
            return check_depth(p, v, sign);
        }
        p->at++;
        if (!read_binary(p, level + 1, &right) || !qn__user_operation(p, sign, word, v, &right))
            return 0;
    }
}

int qn__user_expression(qn__user_parser *p, qn__user_value *v) {
    qn__user_value yes, no;
    if (!qn__user_deeper(p) || !read_binary(p, 0, v))
        return 0;
    if (qn__user_take(p, "?")) {
        if (!qn__user_expression(p, &yes) || !qn__user_need(p, ":", "after the first value"))
            return 0;
        const size_t colon = qn__user_written(p);
        if (!qn__user_expression(p, &no))
            return 0;
        const qn__user_type type = qn__user_type_common(yes.type, no.type);
        qn__user_insert(p, colon, " : ");
        /* OpenCL C takes no real number as the condition here. */
        qn__user_insert(p, yes.from, qn__user_type_is_real(v->type) ? " != 0 ? " : " ? ");
        qn__user_wrap(p, v->from, "(", ")");
        const uint32_t deeper = yes.depth > no.depth ? yes.depth : no.depth;
        *v = (qn__user_value){
            .type = type,
            .from = v->from,
            .depth = 1 + (v->depth > deeper ? v->depth : deeper),
            .node = qn__user_node_add(p, (qn__user_node){.kind = QN__NODE_CHOOSE,
                                                         .type = type,
                                                         .child = {v->node, yes.node, no.node}})};
        if (!check_depth(p, v, qn__user_next(p)))
            return 0;
    }
    p->depth--;
    return p->source->functions.failed ? qn__user_no_memory(p) : 1;
}
