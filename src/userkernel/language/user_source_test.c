/* The reader of user kernels: what it takes, what it refuses with line and remedy, and what C it
 * writes. tests/test_kernel.py runs kernels and compares with NumPy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "userkernel/language/user_source.h"

#define HEAD "INDEX(i);\nINPUT(float, x);\nWHOLE(int32_t, table, 2);\nOUTPUT(double, y);\n"

static void test_accepted(void **state) {
    static const char *const texts[] = {
        HEAD "KERNEL { y = x; }",
        "\xef\xbb\xbf#include <quern/kernel_file.h>\r\nINDEX(i);\r\nCOUNT(n);\r\nKERNEL { n = 1; } "
        "// e\r\n",
        "#include <quern/kernel_file.h>\n" HEAD "KERNEL { y = 2 * x; }",
        HEAD "static int twice(int a) { return 2 * a; }\nKERNEL { y = twice(table(0, 1)); }",
        HEAD "static const double PI = 3.14159;\nstatic const int8_t W[3] = {1, -2, 1};\n"
             "KERNEL { for (int k = 0; k < 3; k++) if (W[k] > 0) continue; else break; y = PI; }",
        HEAD "KERNEL { int a[4] = {1, 2}; a[2] = a[1] << 3; unsigned int u = 0xFFu; u >>= 2;\n"
             "do { u--; } while (u > 1u && !0); y = a[2] > 1 ? u : (float)sqrt(x); return; }",
        "INDEX(y, x);\nEXTENT(h, w);\nHALO(float, t, 2, wrap);\nOUTPUT(float, o);\nMIN(float, m);\n"
        "COUNT(n);\nKERNEL { float v = t(-1, 0) + t(0, 2); o = v; m = v; n = x < w - 1 && y < h; }",
        "INDEX(i);\nSCALAR(double, s, -0.5e3);\nSUM(double, t);\nKERNEL { t = s * i; }",
        "INDEX(i);\nstatic const uint8_t B = 0xFFu;\nSUM(float, t, B);\nCOUNT(c, 1048576);\n"
        "KERNEL { if (i) t[i % B] = 1; else c[2 * i] = 1; }",
        "INDEX(i);\nSUM(double, t);\nstatic double normcdf(double a, int b) { return a * b; }\n"
        "KERNEL { double erfc = normcdf(2, 3); t = erfc; }",
        "INDEX(i);\nSUM(double, t);\nstatic int uniform(int a) { return a; }\n"
        "KERNEL { double normal = uniform(2); t = normal; }",
        "INDEX(i);\nstatic int f(int a) { return a; }\nRANDOM;\nSUM(double, t);\n"
        "static double g(int a) { return normal(f(a)); }\n"
        "KERNEL { t = g(0) + uniform(1u) + uniformf(i) + normalf(-1) + random32(2); }",
    };
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        qn__user_source source;
        qn_error err = {0};
        if (qn__user_source_read(texts[k], "k.c", &source, &err) != QN_OK)
            fail_msg("%s: %s at %s", texts[k], err.what, err.where);
        qn__user_source_release(&source);
    }
}

static void test_refused(void **state) {
    static const struct {
        const char *text, *what, *where, *remedy;
    } cases[] = {
        {"", "no KERNEL", "line 1, column 1", "write KERNEL"},
        {"KERNEL { }", "KERNEL stands before INDEX", "line 1", "INDEX(i)"},
        {HEAD "KERNEL { }", "never assigns \"y\"", "line 5", "assign it"},
        {HEAD "KERNEL {\n  y = fmod(x);\n}", "\"fmod\" differ", "line 6, column 7",
         "docs/kernels.md"},
        {HEAD "KERNEL { y = sqrtf(x); }", "no function \"sqrtf\"", "line 5", "write sqrt"},
        {HEAD "KERNEL { y = x; x = 1; }", "\"x\" cannot be changed", "line 5, column 17",
         "variable"},
        {HEAD "KERNEL { y = 1; y = y + 1; }", "cannot be read", "column 21", "assign it once"},
        {HEAD "KERNEL { y += 1; }", "can only be assigned", "line 5", "NAME = x"},
        {HEAD "KERNEL { static int a = 0; y = a; }", "no \"static\"", "line 5", "anew"},
        {HEAD "KERNEL { volatile int a = 0; y = a; }", "no \"volatile\"", "line 5", "remove"},
        {HEAD "KERNEL { asm(); }", "no \"asm\"", "line 5", "in C"},
        {HEAD "KERNEL { int *p = 0; y = 1; }", "no pointers", "line 5", "INPUT, WHOLE"},
        {HEAD "KERNEL { y = *x; }", "no pointers", "line 5", "NAME(i)"},
        {HEAD "KERNEL { y = x[1]; }", "\"x\" is one number", "line 5", "the name alone"},
        {HEAD "KERNEL { y = table[1]; }", "not read with brackets", "line 5", "NAME(i, j)"},
        {HEAD "KERNEL { y = table(1); }", "takes 2 arguments", "line 5", "table(a, b)"},
        {HEAD "KERNEL { y = table(1, 0.5); }", "an index is a real number", "column 23", "(int)x"},
        {HEAD "KERNEL { table(1, 1) = 2; }", "is an input", "line 5", "OUTPUT"},
        {HEAD "KERNEL { int a; y = a; }", "no initial value", "line 5", "first value"},
        {HEAD "KERNEL { int a[2049] = {0}; y = a[0]; }", "length of the array", "line 5",
         "1 to 2048"},
        {HEAD "KERNEL { long a = 1; y = a; }", "not a type of a kernel", "line 5", "int64_t"},
        {HEAD "KERNEL { y = 1; } int b;", "after the kernel", "line 5", "before KERNEL"},
        {HEAD "KERNEL { y = z; }", "\"z\" is not declared", "line 5", "declare"},
        {HEAD "KERNEL { y = tabel(0, 0); }", "not declared", "line 5", "\"table\""},
        {HEAD "KERNEL { else y = 1; }", "an \"else\" has no \"if\"", "line 5", "before it"},
        {HEAD "KERNEL { int a = a; y = a; }", "\"a\" is not declared", "line 5", "declare"},
        {HEAD "KERNEL { int i = 1; y = i; }", "\"i\" is declared already", "line 5", "another"},
        {HEAD "static int f(int a) { return f(a); }\nKERNEL { y = f(1); }", "call itself", "line 5",
         "loop"},
        {HEAD "KERNEL { exit(1); y = 1; }", "cannot call \"exit\"", "line 5", "remove"},
        {HEAD "static float f(int a) { return a * x; }\nKERNEL { y = f(1); }", "only the kernel",
         "line 5", "argument"},
        {HEAD "KERNEL { y = 1 % x; }", "needs integers", "line 5", "(int)x"},
        {HEAD "KERNEL { y = ~x; }", "needs an integer", "line 5", "(int)x"},
        {HEAD "KERNEL { y = 010; }", "not a number", "line 5", "octal"},
        {HEAD "KERNEL { y = 1e999; }", "beyond the range", "line 5", "smaller"},
        {HEAD "KERNEL { y = 99999999999999999999; }", "64 bits", "line 5", "ull"},
        {HEAD "KERNEL { y = 'a'; }", "character constants", "line 5", "remove"},
        {HEAD "KERNEL { if (x = 1) y = 1; }", "\")\" is missing", "line 5", "write =="},
        {HEAD "KERNEL { y = 1", "the text ends", "line 5", "complete"},
        {HEAD "KERNEL { break; y = 1; }", "in no loop", "line 5", "return"},
        {HEAD "KERNEL { goto a; }", "no \"goto\"", "line 5", "loop"},
        {HEAD "#define A 1\nKERNEL { y = A; }", "preprocessor", "line 5", "static const"},
        {"INDEX(i);\nSUM(int8_t, s);\nKERNEL { s = 1; }", "not a type of a sum", "line 2",
         "int64_t"},
        {"INDEX(i);\nSCAN(int32_t, s);\nKERNEL { s = 1; }", "not a type of a sum", "line 2",
         "int64_t"},
        {"SCAN(double, s);\n", "SCAN stands before INDEX", "line 1", "INDEX(i)"},
        {"INDEX(i);\nSCAN(double, s);\nKERNEL { s += 1; }", "can only be assigned", "line 3",
         "what this item adds"},
        {"INDEX(i);\nSUM(double, s, 0);\n", "the number of bins is", "line 2, column 16",
         "1 to 16384"},
        {"INDEX(i);\nCOUNT(s, 1048577);\n", "the number of bins is", "line 2", "1 to 1048576"},
        {"INDEX(i);\nstatic const float B = 4;\nCOUNT(s, B);\n", "the number of bins is", "line 3",
         "constant"},
        {"INDEX(i);\nCOUNT(s, i);\n", "the number of bins is", "line 2", "constant"},
        {"INDEX(i);\nMIN(float, m, 16385);\n", "the number of bins", "line 2, column 15", "16384"},
        {"INDEX(i);\nARGMIN(float, m);\n", "ARGMIN needs bins", "line 2, column 16", "MIN or MAX"},
        {"INDEX(i);\nSCAN(float, s, after);\n", "inclusive or exclusive", "line 2, column 16",
         "exclusive"},
        {"INDEX(i);\nOUTPUT(float, m, 65);\n", "the number of components", "line 2", "1 to 64"},
        {"INDEX(z, y, x);\nOUTPUT(float, m, 3);\n", "no components", "line 2, column 16",
         "for each component"},
        {"INDEX(i);\nOUTPUT(float, m, 3);\nKERNEL { m = 1; }", "none is named", "line 3",
         "NAME[component]"},
        {"INDEX(i);\nOUTPUT(float, m, 3);\nKERNEL { m[0] += 1; }", "can only be assigned", "line 3",
         "NAME[component] = x"},
        {"INDEX(i);\nINPUT(float, x);\nOUTPUT(float, m, 3);\nNEXT(m, x);\n", "has components",
         "line 4", "for each component"},
        {"INDEX(i);\nCOUNT(s, 4);\nKERNEL { s = 1; }", "has 4 bins, and none is named", "line 3",
         "NAME[bin]"},
        {"INDEX(i);\nCOUNT(s, 4);\nKERNEL { s(1) = 1; }", "none is named", "line 3", "NAME[bin]"},
        {"INDEX(i);\nCOUNT(s, 4);\nKERNEL { s[0.5] = 1; }", "a real number", "line 3", "(int)x"},
        {"INDEX(i);\nCOUNT(s, 4);\nKERNEL { s[1] += 1; }", "can only be assigned", "line 3",
         "NAME[bin] = x"},
        {"INDEX(i);\nCOUNT(s, 4);\nKERNEL { s[s[1]] = 1; }", "cannot be read", "line 3", "once"},
        {"INDEX(i);\nCOUNT(s);\nKERNEL { s[1] = 1; }", "can only be assigned", "line 3", "x"},
        {"INDEX(i);\nHALO(float, a, 1, far);\n", "needs a border", "line 2, column 19", "nearest"},
        {"INDEX(i);\nHALO(float, a, 99, wrap);\n", "out of range", "line 2", "1 to 64"},
        {"INDEX(i);\nSCALAR(int8_t, a, 200);\n", "not of type int8_t", "line 2", "decimal"},
        {"INDEX(i, i);\n", "declared already", "line 1", "another"},
        {HEAD "KERNEL { y = uniform(0); }", "\"uniform\" needs the declaration RANDOM", "line 5",
         "write RANDOM;"},
        {HEAD "KERNEL { y = rand(); }", "\"rand\" needs", "line 5", "write RANDOM;"},
        {"RANDOM;\n" HEAD "KERNEL { y = 1; }", "RANDOM stands before INDEX", "line 1", "INDEX(i)"},
        {HEAD "RANDOM; RANDOM;\n", "a second RANDOM", "line 5, column 9", "leave it out"},
        {HEAD "RANDOM\nKERNEL { y = 1; }", "\";\" is missing after RANDOM", "line 6", "RANDOM;"},
        {HEAD "static int normal(int a) { return a; }\nRANDOM;\n", "\"normal\" is declared already",
         "line 6", "another"},
        {HEAD "RANDOM;\nKERNEL { int uniform = 1; y = uniform; }", "declared already", "line 6",
         "another"},
        {HEAD "RANDOM;\nKERNEL { y = uniform(0.5); }", "an index is a real number", "line 6",
         "(int)x"},
        {HEAD "RANDOM;\nKERNEL { y = uniform(); }", "takes 1 argument", "line 6", "uniform(a)"},
        {HEAD "RANDOM;\nKERNEL { y = uniform(0, 1); }", "takes 1 argument", "line 6", "(a)"},
        {HEAD "RANDOM;\nKERNEL { uniform(0) = 1; }", "\"uniform\" cannot be changed", "line 6",
         "variable"},
        {HEAD "RANDOM;\nKERNEL { y = uniform; }", "takes 1 argument", "line 6", "uniform(a)"},
        {"INDEX(i);\nOUTPUT(float, m, 3, 4);\n", "more arguments than 3", "line 2, column 19",
         "OUTPUT(type, name, components)"},
        {"INDEX(i);\nOUTPUT(float m);\n", "\",\" is missing", "line 2", "OUTPUT(type, name)"},
        {"INDEX(i);\nSCAN(int64_t);\n", "\",\" is missing", "line 2", "name, exclusive)"},
        {"INDEX();\n", "cannot be declared", "line 1, column 7", "INDEX(y, x)"},
        {"INDEX(i);\nCOUNT(float, c);\n", "cannot be declared", "line 2", "COUNT(name, bins)"},
        {"INDEX(i);\nHALO(float, h, 2);\n", "before the border", "line 2", "reach, border)"},
        {"INDEX(i);\nHALO(float, h, 2, wrap);\nOUTPUT(float, o);\nKERNEL { o = h; }",
         "the place of a neighbour", "line 4, column 14", "NAME(0, -1)"},
        {HEAD "float f(float a) { return a; }\n", "no declaration", "line 5", "write static"},
        {HEAD "struct point { float a; };\n", "no declaration", "line 5, column 1",
         "one variable for each member"},
        {HEAD "long f(int a) { return a; }\n", "no declaration", "line 5", "write int64_t"},
        {HEAD "static float f(int n, float a[3]) { return a[0]; }\n", "\"a\" is an array",
         "line 5, column 30", "each element as a parameter"},
        {HEAD "static const float A = 1.0 / 3;\n", "after the constant", "line 5", "0.25"},
        {HEAD "KERNEL y = 1;", "statements of the kernel", "line 5, column 8", "KERNEL {"},
        {HEAD "KERNEL { y = 1 }", "\";\" is missing", "line 5", "write ; before \"}\""},
        {HEAD "KERNEL { y = ; }", "a value is missing", "line 5", "a number, a name"},
        {HEAD "KERNEL { y = x ** 2; }", "\"**\"", "line 5, column 17", "pow(a, b)"},
        {HEAD "KERNEL { y = pow(x); }", "takes 2 arguments", "line 5", "pow(a, b)"},
        {HEAD "KERNEL { y = M_PI; }", "not declared", "line 5", "3.14159"},
        {HEAD "KERNEL { float a[3][3] = {0}; y = a[0]; }", "one dimension", "line 5", "3 * i + j"},
        {HEAD "KERNEL { y = 1; return 1; }", "returns no value", "line 5", "return;"},
        {HEAD "KERNEL { + 1; }", "cannot begin with \"+\"", "line 5", "begin with a type"},
        {HEAD "static double erfc(double a) { return erfc(a); }\nKERNEL { y = erfc(1); }",
         "call itself", "line 5", "loop"},
        {HEAD "KERNEL { y = 1; /* }", "comment is not closed", "line 5", "*/"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        qn__user_source source;
        qn_error err = {0};
        const qn_status status = qn__user_source_read(cases[k].text, "k.c", &source, &err);
        if (status != QN_INPUT || !strstr(err.what, cases[k].what) ||
            !strstr(err.where, cases[k].where) || !strstr(err.remedy, cases[k].remedy))
            fail_msg("%s: status %d, %s / %s / %s", cases[k].text, (int)status, err.what, err.where,
                     err.remedy);
        assert_null(source.functions.data);
    }
}

/* The C after the line that names the file, of a body in which `expression` is assigned. */
static void expect(const char *expression, const char *wanted) {
    char text[512];
    qn__user_source source;
    qn_error err = {0};
    snprintf(text, sizeof text,
             "INDEX(i); INPUT(float, x); INPUT(int32_t, n); INPUT(uint8_t, b); OUTPUT(int32_t, y); "
             "RANDOM; KERNEL { y = %s; }",
             expression);
    if (qn__user_source_read(text, "k.c", &source, &err) != QN_OK)
        fail_msg("%s: %s", expression, err.what);
    const char *at = strstr(source.functions.data, "p_y = ");
    const char *end = strrchr(source.functions.data, ')');
    assert_non_null(at);
    at += strlen("p_y = ");
    if (strlen(wanted) != (size_t)(end - at) || strncmp(at, wanted, strlen(wanted)) != 0)
        fail_msg("%s: %.*s instead of %s", expression, (int)(end - at), at, wanted);
    qn__user_source_release(&source);
}

static void test_written(void **state) {
    (void)state;
    expect("n - n - n", "(int32_t)((uint32_t)(u_n) - (uint32_t)(u_n) - (uint32_t)(u_n))");
    expect("n - (n - n)",
           "(int32_t)((uint32_t)(u_n) - (uint32_t)((int32_t)((uint32_t)(u_n) - (uint32_t)(u_n))))");
    expect("n + n * 2 / n", "(int32_t)((uint32_t)(u_n) + (uint32_t)((qn_div_i32(qn_fault, "
                            "(int32_t)((uint32_t)(u_n) * (uint32_t)(((int32_t)2))), u_n))))");
    /* The type changes in the middle, then the operations. */
    expect("n + b * 1ll - 2u",
           "((int32_t)((int64_t)((uint64_t)(u_n) + (uint64_t)((int64_t)((uint64_t)(u_b) * "
           "(uint64_t)(((int64_t)1)))) - (uint64_t)(((uint32_t)2)))))");
    expect("n - n + 1ll", "((int32_t)((int64_t)((uint64_t)((int32_t)((uint32_t)(u_n) - "
                          "(uint32_t)(u_n))) + (uint64_t)(((int64_t)1)))))");
    expect("n * n * x", "qn_i32_of_f32(((int32_t)((uint32_t)(u_n) * (uint32_t)(u_n)) * u_x))");
    expect("n - 1 - 2u", "((int32_t)(((int32_t)((uint32_t)(u_n) - (uint32_t)(((int32_t)1))) - "
                         "((uint32_t)2))))");
    expect("x / n", "qn_i32_of_f32((qn_div_f32(u_x, u_n)))");
    expect("x", "qn_i32_of_f32(u_x)");
    expect("(uint8_t)x << 3", "(qn_shl_i32(qn_u8_of_f32(u_x), ((int32_t)3)))");
    expect("b * 300u", "((int32_t)((u_b * ((uint32_t)300))))");
    expect("-b", "(int32_t)(0 - (uint32_t)u_b)");
    expect("n < 2 && x > 0.5", "((u_n < ((int32_t)2)) && (u_x > 0.5))");
    expect("n ? 1 : 2", "(u_n ? ((int32_t)1) : ((int32_t)2))");
    expect("18446744073709551615ull % 7",
           "((int32_t)((qn_rem_u64(qn_fault, "
           "((uint64_t)QN_U64(18446744073709551615)), ((int32_t)7)))))");
    expect("exp(x) + pow(n, x)", "qn_i32_of_f32((qn_f32_exp(u_x) + qn_f32_pow(u_n, u_x)))");
    expect("erfc(n)", "qn_i32_of_f64(qn_f64_erfc(u_n))");
    expect("log10(n) - hypot(x, n)", "qn_i32_of_f64((qn_f64_log10(u_n) - qn_f32_hypot(u_x, u_n)))");
    expect("erf(n)", "qn_i32_of_f64(qn_f64_erf(u_n))");
    expect("min(n, b)", "qn_min_i32(u_n, u_b)");
    expect("random32(n)", "((int32_t)(qn_random32(qn_draw, (uint32_t)((int64_t)(u_n)))))");
    expect("floor(n) + fma(x, x, 1)",
           "qn_i32_of_f64((qn_floor_f64(u_n) + qn_fma_f32(u_x, u_x, ((int32_t)1))))");
}

/* Lines of the text are lines of the C, so that a compiler names the user's. */
static void test_lines(void **state) {
    qn__user_source source;
    qn_error err;
    (void)state;
    assert_int_equal(
        qn__user_source_read("INDEX(i);\n\nOUTPUT(int32_t, y);\nKERNEL {\n\n  y =\n\n 7;\n}",
                             "a\"b?\t.c", &source, &err),
        QN_OK);
    const char *text = source.functions.data;
    assert_memory_equal(text, "#line 1 \"a\\\"b\\?_.c\"\n", 20);
    uint32_t line = 0;
    for (const char *c = text; c < strstr(text, "((int32_t)7)"); c++)
        line += *c == '\n';
    assert_int_equal(line, 8); /* the first one is before line 1 */
    qn__user_source_release(&source);
}

/* A compiler bounds the depth of brackets, and reading is recursive. */
static void test_depth(void **state) {
    static char text[40000];
    qn_error err;
    (void)state;
    static const char *const nested[] = {"(", "- ", "n / (", "(int)", "sqrt(", "n ? 1 : ", "a["};
    for (size_t k = 0; k < sizeof nested / sizeof *nested; k++) {
        qn__user_source source;
        size_t used =
            (size_t)snprintf(text, sizeof text,
                             "INDEX(i); INPUT(int, n); OUTPUT(int, y); static const int a[1] = "
                             "{0}; KERNEL { y = ");
        for (int i = 0; i < 300; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", nested[k]);
        assert_int_equal(qn__user_source_read(text, "k.c", &source, &err), QN_INPUT);
        if (!strstr(err.what, "deeper") || !strstr(err.remedy, "as variables"))
            fail_msg("%s: %s", nested[k], err.what);
    }
    static const char *const statements[] = {"for (int k%d = 0; k%d < n; k%d++) {", "if (n) {",
                                             "while (n) do "};
    for (size_t k = 0; k < sizeof statements / sizeof *statements; k++) {
        qn__user_source source;
        size_t used = (size_t)snprintf(text, sizeof text,
                                       "INDEX(i); INPUT(int, n); OUTPUT(int, y); KERNEL {\n");
        for (int i = 0; i < 90; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, statements[k], i, i, i);
        assert_int_equal(qn__user_source_read(text, "k.c", &source, &err), QN_INPUT);
        if (!strstr(err.what, "deeper") || !strstr(err.remedy, "as a function"))
            fail_msg("%s: %s / %s", statements[k], err.what, err.remedy);
    }
}

/* A default with f is a float, whatever the scalar's type. */
static void test_defaults(void **state) {
    static const char text[] = "INDEX(i); SCALAR(double, a, -0.1f); SCALAR(double, b, 0.1); "
                               "SCALAR(float, c, 0.1); COUNT(y); KERNEL { y = i; }";
    const double wanted[2] = {-0.1f, 0.1};
    const float last = 0.1f;
    qn__user_source source;
    qn_error err;
    (void)state;
    assert_int_equal(qn__user_source_read(text, "k.c", &source, &err), QN_OK);
    assert_memory_equal(&source.part[0].value, &wanted[0], 8);
    assert_memory_equal(&source.part[1].value, &wanted[1], 8);
    assert_memory_equal(&source.part[2].value, &last, 4);
    qn__user_source_release(&source);
}

/* A compiler may leave out a loop that has a condition and no end. */
static void test_loops(void **state) {
    static const char wanted[] =
        "{ int32_t u_k = ((int32_t)1); for (;; u_k = (int32_t)((uint32_t)(u_k) + (uint32_t)(1))) "
        "{if (!(u_n)) break;  }} "
        "for (;;) {if (!(u_n)) break; {continue; } } "
        "for (int qn_first = 1;; qn_first = 0) {if (!qn_first && !(u_n)) break; {break; } } ";
    qn__user_source source;
    qn_error err;
    (void)state;
    assert_int_equal(qn__user_source_read("INDEX(i); INPUT(int, n); COUNT(y); KERNEL {"
                                          "for (int k = 1; n; k++); while (n) { continue; } "
                                          "do { break; } while (n); y = n; }",
                                          "k.c", &source, &err),
                     QN_OK);
    if (!strstr(source.functions.data, wanted))
        fail_msg("%s", source.functions.data);
    qn__user_source_release(&source);
}

/* Functions are compiled into their callers: 20 of them may become a million. */
static void test_copies(void **state) {
    static const char *const bodies[] = {"return f%d(a) + f%d(a * 2);",
                                         "int b[200] = {a}; return f%d(b[a]) + f%d(a);",
                                         "double b = exp(a); return b > 1 ? f%d(a) : f%d(1);"};
    static const char *const said[] = {"30000 tokens", "262144 bytes", "30000 tokens"};
    char text[8192];
    qn__user_source source;
    qn_error err;
    (void)state;
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++)
        for (int count = 4; count <= 20; count += 16) {
            size_t used = (size_t)snprintf(text, sizeof text,
                                           "INDEX(i); OUTPUT(int, y);\n"
                                           "static int f0(int a) { return a; }");
            for (int i = 0; i < count; i++) {
                used += (size_t)snprintf(text + used, sizeof text - used,
                                         "\nstatic int f%d(int a) { ", i + 1);
                used += (size_t)snprintf(text + used, sizeof text - used, bodies[k], i, i);
                used += (size_t)snprintf(text + used, sizeof text - used, " }");
            }
            snprintf(text + used, sizeof text - used, "\nKERNEL { y = f%d(i); }", count);
            const qn_status status = qn__user_source_read(text, "k.c", &source, &err);
            assert_int_equal(status, count == 4 ? QN_OK : QN_INPUT);
            if (status != QN_OK && (!strstr(err.what, said[k]) || !strstr(err.where, "line 1")))
                fail_msg("%s at %s", err.what, err.where);
            qn__user_source_release(&source);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_written),  cmocka_unit_test(test_lines),
        cmocka_unit_test(test_depth),    cmocka_unit_test(test_loops),
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
