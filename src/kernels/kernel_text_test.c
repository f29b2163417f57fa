/* The kernel text agrees with what the host assumes of it. */
#include "kernels/kernels.h"
#include "kernels/step.h"
#include "num/elementary.h"
#include "num/elementary_scalar.h"
#include "num/program.h"

#define V_FN static inline
#define V_NAME(f) qn__##f
#include "kernels/training/losses.inc"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void test_numbers(void **state) {
    (void)state;
    assert_int_equal(QN_WITH_F32, qn__kernel_products(QN__ARITH_F32));
    assert_int_equal(QN_WITH_I7, qn__kernel_products(QN__ARITH_I7));
    assert_int_equal(QN_WITH_I14, qn__kernel_products(QN__ARITH_I14));
    assert_int_equal(QN_WITH_I21, qn__kernel_products(QN__ARITH_I21));
#define SAME(NAME, name)                                                                           \
    assert_int_equal(QN_ACT_##NAME, QN__ACT_##NAME);                                               \
    assert_int_equal(QN_ACT_##NAME, qn__kernel_activation(QN__ACT_##NAME));
    QN_ACTIVATIONS(SAME)
#undef SAME
#define SAME(NAME, name, slots)                                                                    \
    assert_int_equal(QN_OPT_##NAME, QN__OPT_##NAME);                                               \
    assert_int_equal(QN_OPT_##NAME, qn__kernel_optimizer(QN__OPT_##NAME));                         \
    assert_int_equal(slots, qn__optimizer_slots(QN__OPT_##NAME));
    QN_OPTIMIZERS(SAME)
#undef SAME
#define SAME(NAME, name)                                                                           \
    assert_int_equal(QN_SCALE_##NAME, QN__SCALE_##NAME);                                           \
    assert_int_equal(QN_SCALE_##NAME, qn__kernel_scale(QN__SCALE_##NAME));
    QN_SCALES(SAME)
#undef SAME
#define SAME(NAME, name)                                                                           \
    assert_int_equal(QN_LOSS_##NAME, QN__LOSS_##NAME);                                             \
    assert_int_equal(QN_LOSS_##NAME, qn__kernel_loss(QN__LOSS_##NAME));
    QN_LOSSES(SAME, SAME)
#undef SAME
}

/* The structs have no padding, so that host and kernel compilers lay them out alike. */
static void test_structs(void **state) {
    (void)state;
    assert_int_equal(offsetof(qn_step, keys), 16);
    assert_int_equal(offsetof(qn_step, left), 48);
    assert_int_equal(offsetof(qn_step, running), 84);
    assert_int_equal(offsetof(qn_step, average), 88);
    assert_int_equal(sizeof(qn_step), 96);
    assert_int_equal(offsetof(qn_status_words, bad_item), 32);
    assert_int_equal(offsetof(qn_status_words, bad_input), 44);
    assert_int_equal(sizeof(qn_status_words), 48);
}

static void test_text(void **state) {
    (void)state;
    for (int language = 0; language < 2; ++language) {
        const char *text = qn__kernel_text((qn__language)language);
        assert_true(strlen(text) > 10000);
        assert_null(strstr(text, "#include"));
        for (const char *c = text; *c != '\0'; ++c)
            assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
        assert_non_null(strstr(text, "qn_step;"));
        assert_int_equal(strlen(qn__kernel_digest((qn__language)language)), 64);
        assert_true(strlen(qn__kernel_options((qn__language)language)) > 0);
        if (language == QN__OPENCL_C) /* no counts of warnings on stderr */
            assert_non_null(strstr(qn__kernel_options(QN__OPENCL_C), " -w"));
        const char *functions = qn__math_text((qn__language)language);
        assert_null(strstr(functions, "#include"));
        assert_null(strstr(functions, "qn_step"));
        assert_non_null(strstr(functions, language == QN__CUDA_C ? "__fmaf_rn" : "as_ulong"));
        for (const char *c = functions; *c != '\0'; ++c)
            assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
    }
    assert_string_not_equal(qn__kernel_digest(QN__OPENCL_C), qn__kernel_digest(QN__CUDA_C));
}

/* The number of arguments of a kernel in the text: commas between the parentheses, plus one. */
static size_t arguments_in_text(const char *text, const char *name) {
    char begin[64];
    snprintf(begin, sizeof begin, "%s(", name);
    const char *at = strstr(text, begin);
    while (at && !strstr(at, "QN_GLOBAL"))
        at = NULL;
    if (!at)
        return 0;
    size_t n = 1;
    for (; *at != ')'; ++at)
        n += *at == ',';
    return n;
}

static void test_shapes(void **state) {
    (void)state;
    const char *text = qn__kernel_text(QN__OPENCL_C);
    for (int k = 0; k < QN__KERNELS; ++k) {
        const qn__kernel_shape *s = qn__kernel_shape_of((qn__kernel)k);
        assert_non_null(s->name);
        assert_true(strlen(s->arguments) >= 4);
        assert_int_equal(strspn(s->arguments, "MuUfi"), strlen(s->arguments));
        const uint32_t lanes = s->lanes[0] * s->lanes[1];
        assert_true(lanes >= 1 && lanes <= 256);
        assert_int_equal(s->opencl_only, strstr(s->name, "_vector") ? 1 : 0);
        if (s->opencl_only)
            assert_int_equal(lanes, 1);
        assert_int_equal((s->tile_rows == 0), (s->tile_columns == 0));
        assert_true(s->tile_rows == 0 || s->share == 0);
        const char *variant = strrchr(s->name, '_');
        if (s->tile_rows == 0 || s->opencl_only)
            assert_int_equal(arguments_in_text(text, s->name), strlen(s->arguments));
        if (s->tile_rows == 0 || k == QN__K_LEARN_VECTOR)
            continue;
        /* Variants of one kernel are consecutive, and only the ends of their names differ. */
        assert_true(s->tile_columns % QN_LD == 0);
        const int alone = strstr(s->name, "gradient") && strstr(s->name, "_matrix_");
        if (strcmp(variant, "_large") != 0 && !alone)
            assert_string_equal(s->arguments, qn__kernel_shape_of((qn__kernel)(k - 1))->arguments);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_structs),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
