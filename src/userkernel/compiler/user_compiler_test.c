/* The stages that compile a user kernel, one by one: what is planned for lanes and what is not,
 * that the system's compiler accepts the C text, and what the key of the cache follows from.
 * tests/test_kernel.py and tests/test_kernel_lanes.py compare what such code computes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "userkernel/compiler/user_compile.h"
#include "userkernel/compiler/user_lanes.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static qn__user_source planned(const char *text, const char *name) {
    qn__user_source source;
    qn_error err = {0};
    if (qn__user_source_read(text, name, &source, &err) != QN_OK)
        fail_msg("%s: %s at %s", text, err.what, err.where);
    qn__user_lanes_plan(&source);
    return source;
}

/* ------------------------------------------------------------------ what becomes a vector */

#define HEAD                                                                                       \
    "INDEX(i); INPUT(float, x); INPUT(int32_t, n); WHOLE(float, w, 1); SCALAR(int, s, 9);\n"       \
    "OUTPUT(float, y); RANDOM; static int half(int a) { return a / 2; }\nKERNEL {\n"
#define LOOP(body) HEAD "float t = 0; for (int k = 0; k < s; k++) { " body " } y = t; }"

/* The names of the variables that differ between items: "i x n t". */
static void varying(const qn__user_source *s, char names[256]) {
    names[0] = '\0';
    for (uint32_t i = 0; i < s->tree.variables; i++) {
        const size_t used = strlen(names);
        if (s->tree.variable[i].varies)
            snprintf(names + used, 256 - used, "%s%s", used > 0 ? " " : "",
                     s->tree.variable[i].name);
    }
}

/* How items leave the loops, in the order of the text: T together, V at different times, S some
 * also go on before others; a small letter where a counter is found. */
static void loops(const qn__user_source *s, char kinds[32]) {
    size_t used = 0;
    for (uint32_t i = 1; i < s->tree.nodes; i++) {
        const qn__user_node *n = &s->tree.node[i];
        if (!qn__user_is_loop(n))
            continue;
        assert_true(used < 31);
        kinds[used++] = (n->what ? "tvvs" : "TVVS")[n->varies];
    }
    kinds[used] = '\0';
}

static void test_plan(void **state) {
    static const struct {
        const char *text;
        int lanes;
        uint32_t wide; /* bytes of a lane */
        const char *varying, *loops;
    } cases[] = {
        /* No loop: the compiler makes the vectors. */
        {HEAD "y = exp(x) * n; }", 0, 4, "i x n", ""},
        /* All items leave the loop together. */
        {LOOP("t += x;"), 1, 4, "i x n t", "T"},
        /* The number of rounds differs: a mask says who is left. */
        {HEAD "float t = 0; for (int k = 0; k < n; k++) t += x; y = t; }", 1, 4, "i x n t", "V"},
        {HEAD "float t = x; int k = 0; while (t < 9) { t *= 2; k++; } y = t + k; }", 1, 4,
         "i x n t k", "v"},
        {HEAD "float t = x; do { t *= 2; } while (t < s); y = t; }", 1, 4, "i x n t", "V"},
        {LOOP("if (x > k) break; t += 1;"), 1, 4, "i x n t", "V"},
        {LOOP("if (x > k) continue; t += 1;"), 1, 4, "i x n t", "S"},
        {LOOP("if (s > k) continue; t += 1;"), 1, 4, "i x n", "T"},
        {LOOP("if (x > k) return; t += 1;"), 1, 4, "i x n t", "V"},
        /* Nothing in it differs between items. */
        {LOOP("t += 1;"), 1, 4, "i x n", "T"},
        /* Doubles and integers of 64 bits have half as many lanes. */
        {HEAD "double t = 0; for (int k = 0; k < s; k++) t += x; y = t; }", 1, 8, "i x n t", "T"},
        {HEAD "float t = 0; for (int64_t k = 0; k < n; k++) t += x; y = t; }", 1, 8, "i x n t",
         "V"},
        /* An array is read at one place for all items. */
        {LOOP("t += x * w(k);"), 1, 4, "i x n t", "T"},
        {LOOP("t += x * (s / 2);"), 1, 4, "i x n t", "T"},
        {LOOP("t += exp(x) * uniformf(k);"), 1, 4, "i x n t", "T"},
        /* Lane by lane would take longer than item by item. */
        {LOOP("t += w(n);"), 0, 4, "i x n t", "T"},
        {LOOP("t += n / 3;"), 0, 4, "i x n t", "T"},
        {LOOP("t += half(n);"), 0, 4, "i x n t", "T"},
        {LOOP("t += uniformf(k);"), 0, 4, "i x n t", "T"},
        {LOOP("int a[2] = {n}; t += a[k & 1];"), 0, 4, "i x n t a", "T"},
        {"INDEX(i); HALO(float, h, 1, zero); OUTPUT(float, y);\nKERNEL { float t = 0; "
         "for (int k = 0; k < 3; k++) t += h(0); y = t; }",
         0, 4, "i t", "T"},
    };
    (void)state;
    unsetenv("QUERN_KERNEL_LANES");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char names[256], kinds[32];
        qn__user_source s = planned(cases[k].text, "k.c");
        varying(&s, names);
        loops(&s, kinds);
        if (s.tree.lanes != cases[k].lanes || s.tree.wide != cases[k].wide ||
            strcmp(names, cases[k].varying) != 0 || strcmp(kinds, cases[k].loops) != 0)
            fail_msg("%s\n  lanes %d of %u bytes, varying: %s, loops: %s\n", cases[k].text,
                     s.tree.lanes, (unsigned)s.tree.wide, names, kinds);
        qn__user_source_release(&s);
    }
}

/* ------------------------------------------------------------------ the C text */

/* One program for each kind of loop that is written; the system's compiler must accept them. */
static void test_accepted(void **state) {
    static const char *const texts[] = {
        HEAD "y = exp((double)x) * n; }",
        LOOP("if (x > k) { t += w(k); continue; } if (t > 9) break; if (n < 0) return; t *= "
             "exp(x);"),
        "INDEX(z, y, x); EXTENT(a, b, c); HALO(float, h, 2, wrap); INPUT(uint8_t, u); "
        "ITERATION(t);\n"
        "OUTPUT(float, o); NEXT(o, h); SUM(double, all, 3); MIN(int16_t, low); ARGMAX(float, at, "
        "2);\n"
        "static const int8_t W[3] = {1, -2, 1};\n"
        "KERNEL { o = h(0, -1, 2) * W[1] + t; all[u % 3] = t; if (u) low = u; at[0] = u / c; }",
        "INDEX(y, x); OUTPUT(uint8_t, rgb, 3); SCAN(int64_t, s, exclusive); COUNT(c); MAX(double, "
        "m);\n"
        "KERNEL { int a[4] = {1}; for (int k = 0; k < 4; k++) { a[k] = (int)(y + x); }\n"
        "rgb[x % 3] = (uint8_t)a[2]; s = a[3]; c = 1; m = a[0]; }"};
    (void)state;
    if (system("cc --version > /dev/null 2>&1") != 0)
        skip();
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        qn__text program = {0};
        qn__user_source s = planned(texts[k], "k.c");
        qn__user_program_write(&s, &program);
        assert_false(program.failed);
        FILE *cc = popen(
            "cc -std=c17 -w -Werror=implicit-function-declaration -fsyntax-only -x c -", "we");
        assert_non_null(cc);
        assert_int_equal(fwrite(program.data, 1, program.size, cc), program.size);
        if (pclose(cc) != 0)
            fail_msg("the compiler refuses the text of\n%s", texts[k]);
        qn__text_release(&program);
        qn__user_source_release(&s);
    }
}

/* ------------------------------------------------------------------ the cache */

/* A compiler that notes each call, and compiles only once. */
static const char script[] =
    "#!/bin/sh\n"
    "here=${0%/*}\n"
    "echo >> $here/calls\n"
    "while [ \"$1\" != -o ]; do shift; done\n"
    "[ -f $here/kept.so ] || cc -O0 -w -fPIC -shared -fwrapv -ffp-contract=off -x c - -o "
    "$here/kept.so -lm || exit 1\n"
    "cp $here/kept.so \"$2\"\n";

static char folder[] = "/tmp/quern-compiler-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static long calls(void) {
    struct stat info;
    return stat(in_folder("calls"), &info) == 0 ? (long)info.st_size : 0;
}

/* Whether the kernel is compiled, or found in the cache. */
static int is_compiled(const char *text, const char *name) {
    qn__user_code code;
    qn_error err = {0};
    const long before = calls();
    qn__user_source s = planned(text, name);
    if (qn__user_code_make(&s, &code, &err) != QN_OK)
        fail_msg("%s %s", err.what, err.remedy);
    assert_int_equal(code.cached, calls() == before);
    assert_non_null(code.grain);
    qn__user_code_release(&code);
    qn__user_source_release(&s);
    return calls() != before;
}

static void test_key(void **state) {
    static const char one[] = "INDEX(i); OUTPUT(int, y); KERNEL { y = 1; }";
    static const char two[] = "INDEX(i); OUTPUT(int, y); KERNEL { y = 2; }";
    static const char noted[] = "INDEX(i); OUTPUT(int, y); /* one */ KERNEL { y = 1; } // 1";
    const struct timespec earlier[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char compiler[128], with_option[160];
    (void)state;
    if (system("cc --version > /dev/null 2>&1") != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    snprintf(compiler, sizeof compiler, "%s", in_folder("cc"));
    snprintf(with_option, sizeof with_option, "%s -DA=1", compiler);
    FILE *file = fopen(compiler, "we");
    assert_non_null(file);
    fputs(script, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(compiler, 0700), 0);
    setenv("CC", compiler, 1);
    setenv("QUERN_CACHE", in_folder("cache"), 1);
    assert_true(is_compiled(one, "k.c"));
    assert_false(is_compiled(one, "k.c"));
    assert_false(is_compiled(noted, "k.c")); /* comments are not compiled */
    assert_true(is_compiled(two, "k.c"));
    assert_true(is_compiled(one, "other.c")); /* the compiler's messages have the name */
    assert_false(is_compiled(one, "k.c"));
    setenv("CC", with_option, 1);
    assert_true(is_compiled(one, "k.c"));
    assert_false(is_compiled(one, "k.c"));
    setenv("CC", compiler, 1);
    assert_false(is_compiled(one, "k.c"));
    assert_int_equal(utimensat(AT_FDCWD, compiler, earlier, 0), 0); /* as another version */
    assert_true(is_compiled(one, "k.c"));
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
