/* The stages that read a user kernel, one by one: tokens, types, and the tree of small texts.
 * Places in messages: `@` marks where the message has to point, and the test itself counts lines
 * and columns. user_source_test.c has the whole reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "userkernel/language/user_source.h"

/* ------------------------------------------------------------------ tokens */

static void test_tokens(void **state) {
    static const char text[] = "#include <quern/kernel_file.h>\n\xc2\xb5";
    static const struct {
        const char *text, *tokens; /* N name, I integer, R real, S sign; a blank between */
    } cases[] = {
        {"a<<=b>>2", "N:a S:<<= N:b S:>> I:2"},
        {"x---y", "N:x S:-- S:- N:y"},
        {"a.5 .5f 1.e3 0x1p-3F", "N:a R:.5 R:.5f R:1.e3 R:0x1p-3F"},
        {"12u 12ll 0xFFull 0", "I:12u I:12ll I:0xFFull I:0"},
        {"a/*b\n*/c//d\n e", "N:a N:c N:e"},
        {"# include\t<quern/kernel_file.h> \r\nif(!_a1)", "N:if S:( S:! N:_a1 S:)"},
        {"", ""},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char found[256] = "";
        qn__user_tokens all;
        qn_error err;
        assert_int_equal(qn__user_tokens_read(cases[k].text, "k.c", &all, &err), QN_OK);
        for (uint32_t i = 0; i + 1 < all.count; i++) {
            const qn__user_token *t = &all.token[i];
            const size_t used = strlen(found);
            snprintf(found + used, sizeof found - used, "%s%c:%.*s", i > 0 ? " " : "",
                     "NIRS"[t->kind], (int)t -> size, cases[k].text + t->at);
            uint32_t line = 1;
            for (uint32_t c = 0; c < t->at; c++)
                line += cases[k].text[c] == '\n';
            assert_int_equal(t->line, line);
        }
        assert_int_equal(all.token[all.count - 1].kind, QN__USER_END);
        assert_string_equal(found, cases[k].tokens);
        qn__user_tokens_release(&all);
    }
    qn__user_tokens all;
    qn_error err;
    assert_int_equal(qn__user_tokens_read(text, "k.c", &all, &err), QN_INPUT);
    assert_string_equal(err.where, "k.c, line 2, column 1");
}

/* ------------------------------------------------------------------ types */

/* The type of an expression, as the compiler of this test has it. */
#define TYPE_OF(x)                                                                                 \
    _Generic((x), int8_t                                                                           \
             : QN__USER_I8, int16_t                                                                \
             : QN__USER_I16, int32_t                                                               \
             : QN__USER_I32, int64_t                                                               \
             : QN__USER_I64, uint8_t                                                               \
             : QN__USER_U8, uint16_t                                                               \
             : QN__USER_U16, uint32_t                                                              \
             : QN__USER_U32, uint64_t                                                              \
             : QN__USER_U64, float                                                                 \
             : QN__USER_F32, double                                                                \
             : QN__USER_F64)
#define ALL(F, a)                                                                                  \
    F(a, int8_t)                                                                                   \
    F(a, int16_t)                                                                                  \
    F(a, int32_t)                                                                                  \
    F(a, int64_t)                                                                                  \
    F(a, uint8_t) F(a, uint16_t) F(a, uint32_t) F(a, uint64_t) F(a, float) F(a, double)
#define COMMON(a, b)                                                                               \
    assert_int_equal(qn__user_type_common(TYPE_OF((a)0), TYPE_OF((b)0)), TYPE_OF((a)0 + (b)0));
#define ALONE(unused, a)                                                                           \
    assert_int_equal(qn__user_type_promoted(TYPE_OF((a)0)), TYPE_OF(+(a)0));                       \
    assert_int_equal(qn__user_type_of(#a, strlen(#a)), TYPE_OF((a)0));                             \
    assert_int_equal(qn__user_type_size(TYPE_OF((a)0)), sizeof(a));                                \
    assert_int_equal(qn__user_type_is_signed(TYPE_OF((a)0)), (double)(a)(-1) < 0);                 \
    assert_int_equal(qn__user_type_is_real(TYPE_OF((a)0)), (double)(a)0.5 > 0);

static void test_types(void **state) {
    static const struct {
        const char *text;
        int fits[QN__USER_TYPES]; /* in the order of the types: i8 to i64, u8 to u64, f32, f64 */
    } cases[] = {{"127", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
                 {"-128", {1, 1, 1, 1, 0, 0, 0, 0, 1, 1}},
                 {"-129", {0, 1, 1, 1, 0, 0, 0, 0, 1, 1}},
                 {"255", {0, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
                 {"4294967296", {0, 0, 0, 1, 0, 0, 0, 1, 1, 1}},
                 {"9223372036854775808", {0, 0, 0, 0, 0, 0, 0, 1, 1, 1}},
                 {"18446744073709551616", {0, 0, 0, 0, 0, 0, 0, 0, 1, 1}},
                 {"0.5", {0, 0, 0, 0, 0, 0, 0, 0, 1, 1}},
                 {"1e300", {0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
                 {"x", {0}},
                 {"", {0}},
                 {"1 ", {0}}};
    (void)state;
    ALL(ALONE, unused)
    ALL(COMMON, int8_t)
    ALL(COMMON, int16_t)
    ALL(COMMON, int32_t)
    ALL(COMMON, int64_t)
    ALL(COMMON, uint8_t)
    ALL(COMMON, uint16_t)
    ALL(COMMON, uint32_t)
    ALL(COMMON, uint64_t)
    ALL(COMMON, float)
    ALL(COMMON, double)
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int t = 0; t < QN__USER_TYPES; t++) {
            uint64_t number = 0;
            char text[40];
            const int fits = qn__user_type_read((qn__user_type)t, cases[k].text, &number);
            if (fits != cases[k].fits[t])
                fail_msg("\"%s\" as %s: %d", cases[k].text, qn__user_type_word((qn__user_type)t),
                         fits);
            if (!fits)
                continue;
            qn__user_type_print((qn__user_type)t, &number, text);
            const float narrow = strtof(cases[k].text, NULL);
            if (t == QN__USER_F32)
                assert_true(strtof(text, NULL) == narrow);
            else if (t == QN__USER_F64)
                assert_true(strtod(text, NULL) == strtod(cases[k].text, NULL));
            else
                assert_string_equal(text, cases[k].text);
        }
}

/* ------------------------------------------------------------------ trees */

typedef struct printer {
    const qn__user_source *source;
    char text[1024];
} printer;

static void put(printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(printer *p, const char *format, ...) {
    const size_t used = strlen(p->text);
    va_list list;
    va_start(list, format);
    vsnprintf(p->text + used, sizeof p->text - used, format, list);
    va_end(list);
}

static void print_list(printer *p, uint32_t list);

/* What a node names: a variable, a part, or a word. */
static const char *name_of(const printer *p, const qn__user_node *n) {
    const qn__user_tree *tree = &p->source->tree;
    switch (n->kind) {
    case QN__NODE_NAME:
    case QN__NODE_ELEMENT:
    case QN__NODE_DECLARE:
    case QN__NODE_ASSIGN:
        return tree->variable[n->what].name;
    case QN__NODE_READ:
    case QN__NODE_LENGTH:
    case QN__NODE_RESULT:
        return p->source->part[n->what].name;
    case QN__NODE_LITERAL:
    case QN__NODE_CALL:
    case QN__NODE_BUILTIN:
    case QN__NODE_DRAW:
        return tree->words.data + n->what;
    default:
        return n->sign;
    }
}

/* (kind type name children ...), where an empty child is "-". */
static void print(printer *p, uint32_t at) {
    static const char *const kinds[] = {
        "none",   "literal", "name",  "element", "read",   "length",   "call",    "builtin",
        "draw",   "convert", "unary", "binary",  "choose", "block",    "declare", "assign",
        "result", "if",      "loop",  "do",      "break",  "continue", "return"};
    const qn__user_node *n = &p->source->tree.node[at];
    int last = 3;
    while (last >= 0 && n->child[last] == 0)
        last--;
    put(p, "(%s", kinds[n->kind]);
    if (n->kind < QN__NODE_BLOCK)
        put(p, " %s", qn__user_type_tag(n->type));
    if (*name_of(p, n))
        put(p, " %s", name_of(p, n));
    if (n->kind == QN__NODE_LENGTH)
        put(p, " %u", (unsigned)n->child[0]);
    for (int i = 0; i <= last && n->kind != QN__NODE_LENGTH; i++) {
        put(p, " ");
        print_list(p, n->child[i]);
    }
    put(p, ")");
}

static void print_list(printer *p, uint32_t list) {
    if (list == 0)
        put(p, "-");
    for (uint32_t at = list; at; at = p->source->tree.node[at].next) {
        put(p, "%s", at == list ? "" : ", ");
        print(p, at);
    }
}

#define TREE                                                                                       \
    "INDEX(i);INPUT(float,x);INPUT(int16_t,n);WHOLE(double,w,2);HALO(float,h,1,wrap);"             \
    "OUTPUT(double,y);COUNT(c,3);RANDOM;static int f(int a,int b){return a+b;}KERNEL"

static void test_trees(void **state) {
    static const struct {
        const char *text, *tree;
    } cases[] = {
        {"y = x * 2 + n;", "(result y (convert f64 (binary f32 + (binary f32 * (name f32 x) "
                           "(literal i32 ((int32_t)2))) (name i16 n))))"},
        {"y = n / 3u;",
         "(result y (convert f64 (binary u32 / (name i16 n) (literal u32 ((uint32_t)3)))))"},
        {"y = -n < 2 && !x;",
         "(result y (convert f64 (binary i32 && (binary i32 < (unary i32 - (name i16 n)) (literal "
         "i32 ((int32_t)2))) (unary i32 ! (name f32 x)))))"},
        {"y = n ? x : 1;", "(result y (convert f64 (choose f32 (name i16 n) (name f32 x) (literal "
                           "i32 ((int32_t)1)))))"},
        {"y = w(1, n);", "(result y (read f64 w (convert i64 (literal i32 ((int32_t)1))), (convert "
                         "i64 (name i16 n))))"},
        {"y = h(-1);", "(result y (convert f64 (read f32 h (convert i64 (unary i32 - (literal i32 "
                       "((int32_t)1)))))))"},
        {"y = length(w, 1);", "(result y (convert f64 (length i64 w 1)))"},
        {"y = sqrt(n) + exp(x);", "(result y (binary f64 + (builtin f64 sqrt (name i16 n)) "
                                  "(builtin f32 exp (name f32 x))))"},
        {"y = min(n, x) + f(n, 2);",
         "(result y (convert f64 (binary f32 + (builtin f32 min (name i16 n), (name f32 x)) (call "
         "i32 f (convert i32 (name i16 n)), (literal i32 ((int32_t)2))))))"},
        {"y = normal(i);", "(result y (draw f64 normal (name i64 i)))"},
        {"c[n] = x > 0;", "(result c (binary i32 > (name f32 x) (literal i32 ((int32_t)0))) "
                          "(convert i64 (name i16 n)))"},
        {"int a = 1, b = n;",
         "(declare a (literal i32 ((int32_t)1))), (declare b (convert i32 (name i16 n)))"},
        {"int a[3] = {1, n}; a[2] = a[n];",
         "(declare a (literal i32 ((int32_t)1)), (convert i32 (name i16 n))), (assign a (element "
         "i32 a (convert i64 (name i16 n))) (convert i64 (literal i32 ((int32_t)2))))"},
        {"double d = x; d *= n;", "(declare d (convert f64 (name f32 x))), (assign d (binary f64 * "
                                  "(name f64 d) (name i16 n)))"},
        {"for (int k = 0; k < n; k++) y = k;",
         "(loop (declare k (literal i32 ((int32_t)0))) (binary i32 < (name i32 k) (name i16 n)) "
         "(result y (convert f64 (name i32 k))) (assign k (binary i32 + (name i32 k) (literal i32 "
         "1))))"},
        {"while (x > 1) { break; }",
         "(loop - (binary i32 > (name f32 x) (literal i32 ((int32_t)1))) (block (break)))"},
        {"do continue; while (n);", "(do - (name i16 n) (continue))"},
        {"if (n) y = 1; else if (x > 0) y = 2; else return;",
         "(if (name i16 n) (result y (convert f64 (literal i32 ((int32_t)1)))) (if (binary i32 > "
         "(name f32 x) (literal i32 ((int32_t)0))) (result y (convert f64 (literal i32 "
         "((int32_t)2)))) (return)))"},
        {";{}", "(block)"},
        {"y = (uint8_t)x << 3;", "(result y (convert f64 (binary i32 << (convert u8 (name f32 x)) "
                                 "(literal i32 ((int32_t)3)))))"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1024];
        qn__user_source source;
        qn_error err = {0};
        snprintf(text, sizeof text, TREE "{c[0]=1;y=0;%s}", cases[k].text);
        if (qn__user_source_read(text, "k.c", &source, &err) != QN_OK)
            fail_msg("%s: %s at %s", cases[k].text, err.what, err.where);
        printer p = {&source, ""};
        uint32_t first = source.tree.node[source.tree.body].child[0];
        first = source.tree.node[source.tree.node[first].next].next; /* after c and y */
        print_list(&p, first);
        if (strcmp(p.text, cases[k].tree) != 0)
            fail_msg("%s\n  is     %s\n  wanted %s", cases[k].text, p.text, cases[k].tree);
        qn__user_source_release(&source);
    }
}
/* ------------------------------------------------------------------ places of messages */

#define WRONG "INDEX(i);\nINPUT(float, x);\nWHOLE(int32_t, w, 2);\nOUTPUT(double, y);\n"

/* `@` is the place that the message has to name. */
static void test_places(void **state) {
    static const struct {
        const char *text, *what;
    } cases[] = {
        /* tokens */
        {WRONG "KERNEL { y = @08; }", "\"08\" is not a number"},
        {WRONG "KERNEL {\n\t\ty = @1.5l; }", "\"1.5l\" is not a number"},
        {WRONG "KERNEL { y = @0x; }", "\"0x\" is not a number"},
        {WRONG "KERNEL { y = @1e; }", "\"1e\" is not a number"},
        {WRONG "KERNEL { y = @0x1.8; }", "\"0x1.8\" is not a number"},
        {WRONG "KERNEL { y = @$; }", "not part of C"},
        {WRONG "KERNEL { y = @\"a\"; }", "strings"},
        {WRONG "KERNEL { y = 1; } // a @\\\n", "goes on in the next line"},
        {WRONG "KERNEL { y = 1; } @/* a\n\n", "not closed"},
        {WRONG " @#pragma once\n", "preprocessor"},
        {WRONG "KERNEL { y = @a2345678901234567890123456789012345678901; }", "more than 40"},
        /* declarations */
        {"@OUTPUT(double, y);", "OUTPUT stands before INDEX"},
        {"INDEX(i);\n@INDEX(j);", "a second INDEX"},
        {"INDEX(a, b, c, @d);", "more names than 3"},
        {"INDEX(y, x);\nEXTENT(h@);", "fewer names than 2"},
        {"INDEX(i);\nINPUT(@long, x);", "\"long\" is not a type"},
        {"INDEX(i);\nINPUT(float, @if);", "cannot be declared"},
        {"INDEX(i);\nINPUT(float, @i);", "\"i\" is declared already"},
        {"INDEX(i);\nWHOLE(float, w, @4);", "number of dimensions"},
        {"INDEX(i);\nSCALAR(uint8_t, s, @-1);", "the default of \"s\""},
        {"INDEX(i);\nOUTPUT(float, y)\n@SUM(double, s);", "\";\" is missing"},
        {"INDEX(i);\nINPUT(float, x);\nOUTPUT(double, y);\nNEXT(y, @x);", "\"y\" is double"},
        {WRONG "static const int A = @0.5;", "a real number"},
        {WRONG "static const int A[2] = {1, 2, @3};", "more elements than 2"},
        {WRONG "static int f(int @*a) { return 1; }", "no pointers"},
        {WRONG "static int f(int a) { @b = 1; return a; }", "\"b\" is not declared"},
        {WRONG "@KERNEL { return; }", "never assigns \"y\""},
        {WRONG "KERNEL { y = 1; }\n\n  @int", "after the kernel"},
        /* statements */
        {WRONG "KERNEL { int a@; y = 1; }", "no initial value"},
        {WRONG "KERNEL { int a[@0] = {1}; y = 1; }", "length of the array"},
        {WRONG "KERNEL {\n  if (x) @int b = 1;\n  y = 1; }", "alone does nothing"},
        {WRONG "KERNEL { for (int k = 0; k < 3; k++@; ) y = 1; }", "\")\" is missing"},
        {WRONG "KERNEL { while (1) y = 1; continue@; }", "in no loop"},
        {WRONG "KERNEL { @switch (1) {} }", "no \"switch\""},
        {WRONG "KERNEL { int k = 0; k@; y = 1; }", "changes nothing"},
        {WRONG "KERNEL { do y = 1; while (0) @}", "\";\" is missing"},
        {WRONG "KERNEL { { y = 1; }@", "ends inside a function"},
        {WRONG "KERNEL { if (x) { y = 1; } else { y = 2 @} }", "\";\" is missing"},
        /* expressions */
        {WRONG "KERNEL { y = x + @; }", "a value is missing"},
        {WRONG "KERNEL { y = (x@; }", "\")\" is missing"},
        {WRONG "KERNEL { y = w(1@); }", "takes 2 arguments"},
        {WRONG "KERNEL { y = w(1, @x); }", "a real number"},
        {WRONG "KERNEL { y = 1 @% x; }", "needs integers"},
        {WRONG "KERNEL { y = x @<< 2; }", "needs integers"},
        {WRONG "KERNEL {\n    y =\n        @foo(x); }", "\"foo\""},
        {WRONG "KERNEL { y = sqrt(1@, 2); }", "takes 1 argument"},
        {WRONG "KERNEL { y = x ? 1@; }", "\":\" is missing"},
        {WRONG "KERNEL { y = @y; }", "cannot be read"},
        {WRONG "KERNEL { int a[3] = {1}; y = a@; }", "\"[\" is missing"},
    };
    (void)state;
    assert_true(sizeof cases / sizeof *cases >= 40);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[512], where[64];
        const char *mark = strchr(cases[k].text, '@');
        const size_t at = (size_t)(mark - cases[k].text);
        unsigned line = 1, column = 1;
        qn__user_source source;
        qn_error err = {0};
        for (size_t i = 0; i < at; i++) {
            column = cases[k].text[i] == '\n' ? 1 : column + 1;
            line += cases[k].text[i] == '\n';
        }
        snprintf(text, sizeof text, "%.*s%s", (int)at, cases[k].text, mark + 1);
        snprintf(where, sizeof where, "k.c, line %u, column %u", line, column);
        assert_int_equal(qn__user_source_read(text, "k.c", &source, &err), QN_INPUT);
        if (strcmp(err.where, where) != 0 || !strstr(err.what, cases[k].what) || !*err.remedy)
            fail_msg("%s: %s at %s, not %s", text, err.what, err.where, where);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
