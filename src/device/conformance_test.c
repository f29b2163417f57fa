/* Conformance: every backend, every instruction set that this machine has, and several numbers of
 * threads give the reference's bytes, over random programs. conformance_settings_test.h has what
 * chooses other cases than the usual ones; a failure names its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/conformance_intgemm_test.h"
#include "device/conformance_picture_test.h"
#include "device/conformance_sequence_test.h"
#include "device/conformance_settings_test.h"
#include "device/conformance_subject_test.h"
#include "device/conformance_zeros_test.h"
#include "fake_device/fake_device.h"

static uint32_t checked_gpus; /* workers of devices other than the CPU and the fake one */

static int check(subject *s) { return s->c->brief ? check_briefly(s) : check_subject(s); }

/* A GPU's worker takes long to open, so it opens for the first case of each class and for one in
 * ten of the others. A device that the backend refuses is not tested. PoCL computes the longest
 * sums correctly: a test by hand took 13 s for the largest case, i21 with half a million weights in
 * a layer. But it uses 8 GB of memory, which CI machines may not have. tests/gpu_intgemm_test.c has
 * such sums in single kernels. */
static void check_gpus(subject *s, int first_of_class) {
    qn_device_info info = {.size = sizeof(qn_device_info)};
    if (!first_of_class && s->c->seed % 10 != 1 && !getenv("QN_TEST_DEVICE"))
        return;
    for (; s->index < s->device->count(); ++s->index) {
        assert_int_equal(s->device->describe(s->index, &info, NULL), QN_OK);
        if (!is_wanted(info.id))
            continue;
        if (info.refused) {
            print_message("  SKIPPED: %s is refused: %s\n", info.id, info.reason);
            continue;
        }
        if (s->c->brief && strcmp(info.type, "CPU") == 0) {
            print_message("  SKIPPED: %s would take up to 8 GB for this\n", info.id);
            continue;
        }
        checked_gpus += (uint32_t)check(s);
    }
}

/* Whether one number of threads is enough: the scalar set is slow, and sets with their own integer
 * instructions compute float32 like the set below them. */
static int is_once_enough(const subject *s) {
    static const char *const of_integers[] = {"vnni", "amx", "dotprod"};
    for (int i = 0; i < 3; ++i)
        if (strcmp(s->isa, of_integers[i]) == 0)
            return s->c->program.arith == QN__ARITH_F32;
    return strcmp(s->isa, "scalar") == 0;
}

/* Every instruction set, with two of these numbers of threads or with one of them. */
static void check_cpu(subject *s, const int *threads, uint32_t counts) {
    qn_device_info info = {.size = sizeof(qn_device_info)};
    assert_int_equal(s->device->describe(0, &info, NULL), QN_OK);
    for (const char *isa = info.isas; *isa; isa += strcspn(isa, " "), isa += strspn(isa, " ")) {
        snprintf(s->isa, sizeof s->isa, "%.*s", (int)strcspn(isa, " "), isa);
        if (s->c->brief && strcmp(s->isa, "scalar") == 0)
            continue; /* takes minutes, and sums of 64 bits never overflow here */
        const uint32_t first = below(s->c, counts);
        s->threads = threads[first];
        check(s);
        if (counts == 1 || is_once_enough(s))
            continue;
        s->threads = threads[(first + 1 + below(s->c, counts - 1)) % counts];
        check(s);
    }
}

/* Every device of a kind. */
static void check_device(const qn__device_table *device, test_case *c, const expected *e,
                         int first_of_class) {
    static const int threads[] = {1, 2, 3, 7};
    subject s = {.device = device, .threads = 1, .c = c, .e = e};
    if (strcmp(device->name, "fake") == 0) {
        if (is_wanted("fake:0"))
            check_subject(&s);
    } else if (strcmp(device->name, "cpu") == 0) {
        if (is_wanted("cpu"))
            check_cpu(&s, threads, sizeof threads / sizeof *threads);
    } else {
        check_gpus(&s, first_of_class);
    }
}

static void check_devices(test_case *c, const expected *e, int first_of_class) {
    for (int i = 0; qn__devices[i]; ++i)
        if (qn__devices[i]->count() > 0)
            check_device(qn__devices[i], c, e, first_of_class);
}

static void test_every_backend_gives_the_reference_bytes(void **state) {
    (void)state;
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 100);
    uint32_t steps = 0, failing = 0, kinds[FLAVOURS] = {0};
    const qn__fake_plan one_fake = {.count = 1};
    static test_case c;
    static expected e;
    qn__fake_set(&one_fake);
    time_begins();
    for (uint64_t seed = first; seed < first + cases && !time_is_over(); ++seed) {
        case_begin(&c, seed);
        augment_some(&c);
        fine_tune_some(&c);
        mix_some(&c);
        tokens_some(&c);
        answer_some(&c);
        freeze_some(&c);
        recompute_some(&c);
        slice_some(&c);
        assert_true(expect(&c, &e));
        ++kinds[c.kind];
        steps += e.steps;
        failing += e.step[e.steps - 1].fails != 0;
        check_devices(&c, &e, kinds[c.kind] == 1);
    }
    case_end(&c);
    qn__fake_set(NULL);
    print_message("seeds %llu..%llu: %u steps, %u cases that leave the range\n",
                  (unsigned long long)first, (unsigned long long)(first + cases - 1), steps,
                  failing);
    for (int k = 0; k < FLAVOURS; ++k)
        print_message("  %-9s %u cases\n", flavour_names[k], kinds[k]);
}

/* Only devices that compute these layers take part. */
static void check_pictures(picture_nets nets, int exact, uint64_t cases) {
    const uint64_t first = setting("QN_TEST_SEED", 1);
    uint32_t kinds[QN__LAYER_KINDS] = {0}, steps = 0, failing = 0;
    const qn__fake_plan one_fake = {.count = 1};
    static test_case c;
    static expected e;
    qn__fake_set(&one_fake);
    time_begins();
    for (uint64_t seed = first; seed < first + cases && !time_is_over(); ++seed) {
        pictures_begin(&c, seed, nets);
        if (exact)
            c.program.arith = (qn__arith)(QN__ARITH_I7 + seed % 3);
        attention_some(&c);
        augment_some(&c);
        fine_tune_some(&c);
        mix_some(&c);
        tokens_some(&c);
        answer_some(&c);
        freeze_some(&c);
        recompute_some(&c);
        slice_some(&c);
        assert_true(expect(&c, &e));
        steps += e.steps;
        failing += e.step[e.steps - 1].fails != 0;
        for (uint32_t l = 0; l < c.program.layers; ++l)
            ++kinds[c.layer[l].kind];
        for (int i = 0; qn__devices[i]; ++i)
            if (qn__devices[i]->supports(&c.program))
                check_device(qn__devices[i], &c, &e, 0);
    }
    case_end(&c);
    qn__fake_set(NULL);
    print_message("%u steps, %u cases that leave the range\n", steps, failing);
    for (int k = 0;
         nets == NETS_BLOCKS && cases >= 50 && !getenv("QN_TEST_SECONDS") && k < QN__LAYER_KINDS;
         ++k)
        assert_true(kinds[k] > cases / 30 || k >= QN__LAYER_EMBEDDING);
}

/* Layers of tokens, which test_pictures does not have. */
static void check_sequences(int exact, uint64_t cases) {
    const uint64_t first = setting("QN_TEST_SEED", 1);
    const qn__fake_plan one_fake = {.count = 1};
    static test_case c;
    static expected e;
    uint32_t failing = 0;
    qn__fake_set(&one_fake);
    time_begins();
    for (uint64_t seed = first; seed < first + cases && !time_is_over(); ++seed) {
        sequences_begin(&c, seed, exact);
        fine_tune_some(&c);
        if (!c.program.next)
            answer_some(&c);
        freeze_some(&c);
        recompute_some(&c);
        slice_some(&c);
        assert_true(expect(&c, &e));
        failing += e.step[e.steps - 1].fails != 0;
        for (int i = 0; qn__devices[i]; ++i)
            if (qn__devices[i]->supports(&c.program))
                check_device(qn__devices[i], &c, &e, 0);
    }
    case_end(&c);
    qn__fake_set(NULL);
    print_message("%u cases that leave the range\n", failing);
}

static void test_sequences_give_the_reference_bytes(void **state) {
    (void)state;
    check_sequences(0, setting("QN_TEST_CASES", 60));
}

static void test_sequences_of_integers_give_the_reference_bytes(void **state) {
    (void)state;
    check_sequences(1, setting("QN_TEST_CASES", 60));
}

static void test_pictures_give_the_reference_bytes(void **state) {
    (void)state;
    check_pictures(NETS_BLOCKS, 0, setting("QN_TEST_CASES", 150));
}

static void test_pictures_of_integers_give_the_reference_bytes(void **state) {
    (void)state;
    check_pictures(NETS_BLOCKS, 1, setting("QN_TEST_CASES", 90));
}

/* Errors of which most are zero, which CPUs leave out. */
static void test_pools_give_the_reference_bytes(void **state) {
    (void)state;
    check_pictures(NETS_POOLED, 0, setting("QN_TEST_CASES", 40));
}

/* Pictures of one pixel. The second layer has windows of 3x3: eight taps lie outside, and their
 * weights are not finite. A device that multiplies them by zero gets a NaN. The chain of the first
 * layer ends at -0, which becomes +0; the dense layer makes the sign visible. */
static void test_taps_outside_are_left_out(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    pictures_begin(&c, 1, NETS_PLAIN);
    c.kind = PLAIN;
    c.apply_items = 0;
    for (uint32_t l = 0; l < 2; ++l)
        c.layer[l] = (qn__layer){.kind = QN__LAYER_CONV,
                                 .from = {1, 1, 1, QN__PICTURE},
                                 .to = {1, 1, 1, QN__PICTURE},
                                 .window = {{1 + 2 * l, 1 + 2 * l}, {1, 1}, {l, l}, {1, 1}},
                                 .in = 1,
                                 .out = 1,
                                 .depth = l ? 9 : 1,
                                 .drop_keep = 1.0f,
                                 .weights = l ? 2 : 0,
                                 .biases = l ? 11 : 1};
    c.layer[2] = qn__layer_flat(1, 2, QN__ACT_NONE, 12);
    c.program.layers = 3;
    c.program.parameters = 16;
    c.program.loss = QN__LOSS_MSE;
    c.program.real = 0;
    c.program.optimizer = QN__OPT_SGD;
    c.program.weight_decay = 0.0f;
    draw_data(&c);
    c.feed.type = QN__ELEMENT_U8; /* inputs are not negative */
    c.feed.values = cut(&c, c.feed.items + 3, 1);
    memset((void *)(uintptr_t)c.feed.values, 200, c.feed.items + 3);
    c.program.scale = QN__SCALE_UNIT;
    draw_state(&c);
    for (int i = 2; i < 11; ++i)
        c.state.parameters[i] = i == 6 ? 0.0f : -INFINITY;
    c.state.parameters[0] = c.state.parameters[1] = c.state.parameters[11] = -0.0f;
    for (int i = 12; i < 16; ++i)
        c.state.parameters[i] = i < 14 ? -1.0f : -0.0f;
    draw_batches(&c);
    describe_case(&c);
    assert_true(expect(&c, &e));
    assert_int_equal(e.step[0].fails, 0);
    for (uint32_t i = 0; i < 2 * e.items; ++i)
        assert_true(e.outputs[i] == 0.0f && signbit(e.outputs[i]));
    for (int i = 0; qn__devices[i]; ++i)
        if (qn__devices[i]->count() > 0 && qn__devices[i]->supports(&c.program))
            check_device(qn__devices[i], &c, &e, 1);
    case_end(&c);
}

static int are_many(void) { return setting("QN_TEST_CASES", 90) >= 60; }

/* Slices of a grain whose integers have another scale than those after them. */
static void test_errors_that_grow(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    for (uint64_t seed = 1; seed <= 6; seed += are_many() ? 1 : 3) {
        growing_begin(&c, seed);
        assert_true(expect(&c, &e));
        assert_int_equal(e.step[0].fails, 0);
        for (int i = 0; qn__devices[i]; ++i)
            if (qn__devices[i]->supports(&c.program))
                check_device(qn__devices[i], &c, &e, seed == 1);
    }
    case_end(&c);
}

/* So many positions that queries and keys are computed in several stages (25.25, 25.26): heads that
 * share keys, of more channels than a panel, in a window. Only the CPU has stages. */
static void test_long_attention_of_integers(void **state) {
    (void)state;
    enum { WIDTH = 17 };
    const int many = are_many();
    const uint32_t positions = many ? 270 : 100; /* the reference takes ten times as long */
    const qn__layer_text conv = {.kind = QN__LAYER_CONV,
                                 .out = 4 * WIDTH,
                                 .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                                 .activation = QN__ACT_TANH};
    const qn__layer_text attention = {.kind = QN__LAYER_ATTENTION,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .causal = 1,
                                      .span = many ? 200 : 50};
    static test_case c;
    static expected e;
    pictures_begin(&c, 2, NETS_PLAIN);
    c.kind = PLAIN;
    c.apply_items = 0;
    qn__program *p = &c.program;
    p->arith = QN__ARITH_I14;
    p->attention_arith = QN__ATTENTION_INTEGERS;
    qn__conv.make(&conv, (qn__shape){1, 1, positions, QN__PICTURE}, 0, &c.layer[0], NULL);
    qn__attention.make(&attention, c.layer[0].to, qn__layer_end(&c.layer[0]), &c.layer[1], NULL);
    c.layer[2] = qn__layer_dense(c.layer[1].to, 2, QN__ACT_NONE, qn__layer_end(&c.layer[1]));
    p->layers = 3;
    p->parameters = qn__layer_end(&c.layer[2]);
    p->batch = p->grain = p->part = 1;
    p->loss = QN__LOSS_MSE;
    p->real = 0;
    p->optimizer = QN__OPT_SGD;
    p->weight_decay = 0.0f;
    draw_data(&c);
    draw_state(&c);
    draw_batches(&c);
    describe_case(&c);
    assert_true(expect(&c, &e));
    for (int i = 0; qn__devices[i]; ++i)
        if (strcmp(qn__devices[i]->name, "cpu") == 0)
            check_device(qn__devices[i], &c, &e, 1);
    case_end(&c);
}

/* Counts the reference's outputs of +0 and of -0, to show that cases about them have some. */
static void count_zeros(const test_case *c, const expected *e, uint32_t found[2]) {
    const size_t outputs = (size_t)e->items * c->layer[c->program.layers - 1].out;
    for (size_t i = 0; i < outputs; ++i)
        if (e->outputs[i] == 0.0f)
            ++found[signbit(e->outputs[i]) != 0];
}

/* Inputs that are zero may be skipped, but that may change the sign of a zero. */
static void test_zeros_change_nothing(void **state) {
    (void)state;
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 100);
    uint32_t kinds[ZEROS] = {0}, found[2] = {0, 0}, steps = 0, failing = 0;
    static test_case c;
    static expected e;
    time_begins();
    for (uint64_t seed = first; seed < first + cases && !time_is_over(); ++seed) {
        const zeros how = zeros_begin(&c, seed);
        assert_true(expect(&c, &e));
        ++kinds[how];
        steps += e.steps;
        failing += e.step[e.steps - 1].fails != 0;
        if (how == UNDERFLOW)
            count_zeros(&c, &e, found);
        check_devices(&c, &e, kinds[how] == 1);
    }
    case_end(&c);
    print_message("%u steps, %u cases that leave the range\n", steps, failing);
    for (int k = 0; k < ZEROS; ++k)
        print_message("  %-11s %u cases\n", zeros_names[k], kinds[k]);
    print_message("  outputs of underflow: %u times +0, %u times -0\n", found[0], found[1]);
    if (kinds[UNDERFLOW] >= 10)
        assert_true(found[0] && found[1]);
}

static void test_integers_give_the_reference_bytes(void **state) {
    (void)state;
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 90);
    uint32_t kinds[INTEGERS] = {0}, ariths[QN__ARITH_I21 + 1] = {0}, steps = 0, failing = 0;
    uint32_t pairs[INTEGERS][QN__ARITH_I21 + 1] = {{0}};
    const qn__fake_plan one_fake = {.count = 1};
    static test_case c;
    static expected e;
    qn__fake_set(&one_fake);
    time_begins();
    for (uint64_t seed = first; seed < first + cases && !time_is_over(); ++seed) {
        const integers how = integers_begin(&c, seed);
        augment_some(&c);
        fine_tune_some(&c);
        mix_some(&c);
        tokens_some(&c);
        answer_some(&c);
        freeze_some(&c);
        recompute_some(&c);
        slice_some(&c);
        assert_true(expect(&c, &e));
        ++kinds[how];
        ++ariths[c.program.arith];
        ++pairs[how][c.program.arith];
        steps += e.steps;
        failing += e.step[e.steps - 1].fails != 0;
        check_devices(&c, &e, pairs[how][c.program.arith] == 1);
    }
    case_end(&c);
    qn__fake_set(NULL);
    print_message("%u steps, %u cases that leave the range; i7 %u, i14 %u, i21 %u cases\n", steps,
                  failing, ariths[QN__ARITH_I7], ariths[QN__ARITH_I14], ariths[QN__ARITH_I21]);
    for (int k = 0; k < INTEGERS; ++k)
        print_message("  %-10s %u cases\n", integers_names[k], kinds[k]);
}

static void check_long(test_case *c) {
    static expected e;
    const int threads = 2;
    assert_true(expect(c, &e));
    assert_int_equal(e.step[e.steps - 1].fails, 0);
    for (int i = 0; qn__devices[i]; ++i) {
        subject s = {.device = qn__devices[i], .threads = threads, .c = c, .e = &e};
        if (strcmp(s.device->name, "cpu") == 0 && is_wanted("cpu"))
            check_cpu(&s, &threads, 1);
        else if (s.device->count() > 0)
            check_gpus(&s, 1);
    }
    case_end(c);
}

/* Accumulators of 32 bits must be flushed in time. */
static void test_the_longest_sums(void **state) {
    (void)state;
    static test_case c;
    if (setting("QN_TEST_CASES", 90) < 90)
        skip(); /* takes minutes with a sanitizer */
    for (int a = QN__ARITH_I7; a <= QN__ARITH_I21; ++a) {
        long_layers_begin(&c, (qn__arith)a);
        check_long(&c);
        long_grains_begin(&c, (qn__arith)a, LONG_SUM);
        check_long(&c);
    }
    long_grains_begin(&c, QN__ARITH_I14, 999); /* their integers may be added to one another */
    check_long(&c);
}

/* Exponents of grains far out of range are not mistaken for special values. */
static void test_far_out_of_range(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    for (int a = QN__ARITH_I7; a <= QN__ARITH_I21; ++a)
        for (int more = 0; more < 6; ++more) {
            far_out_begin(&c, (qn__arith)a, more);
            assert_true(expect(&c, &e));
            assert_int_equal(e.step[0].fails, 1);
            for (int i = 0; qn__devices[i]; ++i)
                if (strcmp(qn__devices[i]->name, "cpu") == 0)
                    check_device(qn__devices[i], &c, &e, 0);
            case_end(&c);
        }
}

/* Panels are padded to 16, and sigmoid gives 1/2 in the padding, which dropout makes 5. Here all
 * real partials of the last layer's weights are tiny and the errors of a grain cancel. So only
 * padding could reach the limit. */
static void test_padding_does_not_decide(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    case_begin(&c, 1);
    c.random = 1;
    c.kind = PLAIN;
    c.layer[0] = qn__layer_flat(4, 3, QN__ACT_SIGMOID, 0);
    c.layer[0].drop_threshold = 0xe6666666u;
    c.layer[0].drop_keep = 10.0f;
    c.layer[1] = qn__layer_flat(3, 2, QN__ACT_NONE, 15);
    c.program.layers = 2;
    c.program.parameters = 23;
    c.program.loss = QN__LOSS_MSE;
    c.program.real = 0;
    c.program.batch = 64;
    c.program.grain = 4;
    c.program.gradient_scale = 30;
    c.program.partial_limit = 0x1p29f;
    draw_data(&c);
    c.feed.weights = NULL; /* errors of two weights would not cancel */
    for (uint32_t i = 0; i < c.feed.items; ++i)
        ((int32_t *)(uintptr_t)c.feed.labels)[i] = (int32_t)(i % 2);
    draw_state(&c);
    memset(c.state.parameters, 0, 23 * sizeof(float));
    for (int i = 12; i < 15; ++i)
        c.state.parameters[i] = -40.0f;
    c.state.parameters[21] = c.state.parameters[22] = 0.5f;
    draw_batches(&c);
    for (int b = 0; b < CASE_BATCHES; ++b)
        c.batch[b].order = NULL;
    c.batch[2].items = 16; /* whole grains, in which the errors cancel */
    describe_case(&c);
    assert_true(expect(&c, &e));
    assert_int_equal(e.step[0].fails, 0);
    check_devices(&c, &e, 1);
    case_end(&c);
}

/* Items that are lists of their inputs: with one layer CPUs read the lists, and GPUs with any. */
static void test_lists_give_the_reference_bytes(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    const uint64_t cases = setting("QN_TEST_CASES", 90) / 9 + 2;
    uint32_t checked = 0;
    for (uint64_t seed = 70001; checked < cases; ++seed) {
        case_begin(&c, seed);
        if (c.kind == PLAIN && c.feed.type == QN__ELEMENT_F32) {
            list_values(&c);
            freeze_some(&c);
            if (expect(&c, &e)) {
                check_devices(&c, &e, checked % 3 == 0);
                checked++;
            }
        }
        case_end(&c);
    }
}

static int say_what_was_there(void **state) {
    (void)state;
    print_message("%u workers of OpenCL and CUDA devices were checked\n", checked_gpus);
    for (int i = 0; qn__devices[i]; ++i)
        if (qn__devices[i]->count() == 0 && qn__devices[i]->absence)
            print_message("SKIPPED: %s: %s\n", qn__devices[i]->name, qn__devices[i]->absence());
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding_does_not_decide),
        cmocka_unit_test(test_pictures_give_the_reference_bytes),
        cmocka_unit_test(test_sequences_give_the_reference_bytes),
        cmocka_unit_test(test_sequences_of_integers_give_the_reference_bytes),
        cmocka_unit_test(test_pools_give_the_reference_bytes),
        cmocka_unit_test(test_lists_give_the_reference_bytes),
        cmocka_unit_test(test_taps_outside_are_left_out),
        cmocka_unit_test(test_long_attention_of_integers),
        cmocka_unit_test(test_errors_that_grow),
        cmocka_unit_test(test_pictures_of_integers_give_the_reference_bytes),
        cmocka_unit_test(test_far_out_of_range),
        cmocka_unit_test(test_zeros_change_nothing),
        cmocka_unit_test(test_every_backend_gives_the_reference_bytes),
        cmocka_unit_test(test_the_longest_sums),
        cmocka_unit_test(test_integers_give_the_reference_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, say_what_was_there);
}
