/* Generation: logits that are those of a whole pass, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>
#include <quern/quern.h>

#include "base/digest/sha256.h"
#include "base/memory.h"
#include "cluster/process_ranks_test.h"
#include "layer/reference.h"
#include "predict/generate/next_model_test.h"
#include "predict/generate/shared_answers.h"

enum { CONTEXT = 37, LONG = 150, TOKENS = 256, SEQUENCES = 3, LAYERS = 32 };

static const char text[] = "embedding 256 20; position learned; "
                           "residual { layernorm channels; conv 40 1x1; attention 4 causal kv "
                           "2 window 21; conv 20 1x1 }; "
                           "residual { layernorm channels; conv 60 1x1; attention 1 causal; "
                           "conv 20 1x1 }; conv 30 1x1 gelu; conv 256 1x1 softmax";

static qn_model *model;

static int set_up(void **unused) {
    (void)unused;
    model = train(text, CONTEXT, "f32", NULL);
    return model ? 0 : -1;
}

static int tear_down(void **unused) {
    (void)unused;
    qn_model_free(model);
    return 0;
}

static uint32_t token_at(uint32_t sequence, uint32_t position) {
    return (position * position * 7 + sequence * 31 + position) % TOKENS;
}

/* The logits of all positions of a sequence, by the reference and one pass. */
static void whole_pass(uint32_t sequence, float *logits) {
    static qn__layer layer[LAYERS];
    qn__program program;
    uint32_t values[LONG + 1];
    qn__reference *reference = NULL;
    const uint32_t context = qn__reader_context(model);
    qn__model_program(model, &program);
    memcpy(layer, program.layer, program.layers * sizeof *layer);
    layer[program.layers - 1].activation = QN__ACT_NONE;
    program.layer = layer;
    program.answers = 0;
    program.loss = QN__LOSS_MSE;
    for (uint32_t t = 0; t <= context; ++t)
        values[t] = token_at(sequence, t);
    const qn__reference_item item = {.type = QN__ELEMENT_TOKEN32, .values = values};
    assert_int_equal(qn__reference_watch(&program, &reference, NULL), QN_OK);
    memcpy(logits, qn__reference_apply(reference, qn__model_parameters(model), &item),
           (size_t)context * TOKENS * sizeof *logits);
    qn__reference_destroy(reference);
}

/* Reads the sequences in stretches that `seed` decides, and compares all logits. */
static void read_in_pieces(const qn_compute *compute, uint32_t seed, float *const *whole) {
    static float logits[SEQUENCES * LONG * TOKENS];
    const uint32_t context = qn__reader_context(model);
    uint32_t row[3][SEQUENCES * LONG], at[SEQUENCES] = {0}, bad;
    qn__reader *reader = NULL;
    qn_error err;
    assert_int_equal(qn__reader_open(model, compute, NULL, 0, SEQUENCES, context, &reader, &err),
                     QN_OK);
    while (at[0] + at[1] + at[2] < SEQUENCES * context) {
        uint32_t rows = 0;
        for (uint32_t s = 0; s < SEQUENCES; ++s) {
            seed = seed * 1664525 + 1013904223;
            for (uint32_t n = seed >> 24 & (seed & 0x10000 ? 31 : 1); n > 0 && at[s] < context;
                 --n) {
                row[0][rows] = token_at(s, at[s]);
                row[1][rows] = s;
                row[2][rows++] = at[s]++;
            }
        }
        const qn__extension e = {rows, row[0], row[1], row[2], logits};
        assert_int_equal(rows ? qn__reader_extend(reader, &e, &bad, &err) : QN_OK, QN_OK);
        for (uint32_t i = 0; i < rows; ++i)
            assert_memory_equal(logits + (size_t)i * TOKENS,
                                whole[row[1][i]] + (size_t)row[2][i] * TOKENS,
                                TOKENS * sizeof(float));
    }
    qn__reader_close(reader);
}

/* On each GPU that is here, and with `together` on all of them and the CPU. */
static void compare_gpus(uint32_t seed, int together, float *const *whole) {
    char all[160] = "cpu";
    for (int k = 0; qn__devices[k]; ++k)
        for (uint32_t i = 0; !qn__devices[k]->host && i < qn__devices[k]->count(); ++i) {
            qn_device_info info = {.size = sizeof(qn_device_info)};
            assert_int_equal(qn__devices[k]->describe(i, &info, NULL), QN_OK);
            if (info.refused)
                continue;
            read_in_pieces(&(qn_compute){.size = sizeof(qn_compute), .devices = info.id}, seed++,
                           whole);
            snprintf(all + strlen(all), sizeof all - strlen(all), ",%s", info.id);
        }
    if (strlen(all) > 3 && together)
        read_in_pieces(&(qn_compute){.size = sizeof(qn_compute), .devices = all}, seed, whole);
    else if (together)
        print_message("  SKIPPED: no GPU\n");
}

static void compare_all(uint32_t first, uint32_t end, int together) {
    static float logits[SEQUENCES][LONG * TOKENS];
    float *whole[SEQUENCES];
    for (uint32_t s = 0; s < SEQUENCES; ++s)
        whole_pass(s, whole[s] = logits[s]);
    for (uint32_t seed = first; seed < end; ++seed)
        read_in_pieces(&(qn_compute){.size = sizeof(qn_compute),
                                     .devices = "cpu",
                                     .isa = seed % 2 ? NULL : "scalar",
                                     .threads = 1 + (int)(seed % 3)},
                       seed, whole);
    compare_gpus(end, together, whole);
}

/* Scores above 2^100, which no kernel takes. */
static void enlarge_scores(void) {
    qn__program program;
    qn__model_program(model, &program);
    float *parameters = (float *)(uintptr_t)qn__model_parameters(model);
    for (uint32_t l = 1; l < program.layers; ++l)
        for (uint64_t p = program.layer[l - 1].weights;
             program.layer[l].kind == QN__LAYER_ATTENTION && p < program.layer[l - 1].biases; ++p)
            parameters[p] *= 0x1p54f;
}

static void test_logits_are_those_of_a_whole_pass(void **unused) {
    static const char *const networks[] = {
        "embedding 256 24; position sinusoid; residual { rmsnorm; conv 72 1x1; attention 2 causal; "
        "conv 24 1x1 }; rmsnorm; conv 256 1x1 softmax",
        "embedding 256 40; residual { rmsnorm; conv 60 1x1 nobias; position rotary 4 kv 1; "
        "attention 4 causal kv 1; conv 40 1x1 }; product { conv 40 1x1 silu | conv 40 1x1 }; "
        "layernorm channels; conv 256 1x1 tied softmax",
        "embedding 256 20; residual { lstm 20 }; gru 32 relu; lstm 37; concat { gru 5 | lstm 6 }; "
        "conv 256 1x1 softmax",
        text,
        "embedding 256 9; conv 396 1x1; attention 1 causal window 140; conv 9 1x1; "
        "conv 256 1x1 softmax"};
    static const struct {
        int network;
        const char *arith, *attention;
        int large;
    } runs[] = {{0, "f32", NULL, 0},       {1, "f32", NULL, 0},       {2, "f32", NULL, 0},
                {0, "i14", NULL, 0},       {1, "i7", "integers", 0},  {3, "i14", "integers", 0},
                {1, "i21", "integers", 0}, {3, "i21", "integers", 1}, {3, "f32", NULL, 1},
                {4, "f32", NULL, 0}};
    qn_model *const first = model;
    (void)unused;
    compare_all(1, 5, 1);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) {
        model = train(networks[runs[i].network], runs[i].network == 4 ? LONG : CONTEXT,
                      runs[i].arith, runs[i].attention);
        assert_non_null(model);
        if (runs[i].large)
            enlarge_scores();
        compare_all(1, 3, runs[i].network == 2);
        qn_model_free(model);
    }
    model = first;
}

/* Where rank 1 dies. */
enum { NOWHERE, BETWEEN_ROUNDS, IN_A_SHARE };

static int death;

static qn_status die(qn_generator *g, uint32_t from, uint32_t to, qn_error *err) {
    (void)g;
    (void)from;
    (void)to;
    (void)err;
    raise(SIGKILL);
    return QN_OK;
}

/* The digest of the file of 40 answers. */
static void answer_all(qn_cluster *cluster, uint32_t rank, process_ranks_result *to) {
    static const char *const prompts[] = {"ab", "c", "abcabc", "x y", "q"};
    const qn_compute compute = {.size = sizeof compute, .cluster = cluster, .threads = 1};
    qn_generate_options o;
    qn_generator *g = NULL;
    char *json = NULL;
    size_t size = 0;
    uint8_t digest[32] = {0};
    qn_generate_options_init(&o);
    o.tokens = 40; /* some slide */
    o.answers = 8;
    o.batch = 3;
    o.log_probabilities = 1;
    o.compute = &compute;
    to->status = qn_generator_open(model, prompts, 5, &o, &g, &to->err);
    for (int more = 1; more && to->status == QN_OK; ++to->value[0]) {
        if (rank == 1 && to->value[0] > 0 && death == BETWEEN_ROUNDS)
            raise(SIGKILL);
        if (rank == 1 && to->value[0] > 0 && death == IN_A_SHARE)
            g->shared->complete = die;
        to->status = qn_generator_step(g, &more, &to->err);
    }
    if (to->status == QN_OK)
        to->status = qn__answers_json(g, &json, &size, &to->err);
    if (to->status == QN_OK)
        qn__sha256_of(json, size, digest);
    qn__hex(digest, to->text);
    qn__free(json);
    qn_generator_close(g);
}

static void test_ranks_share_answers(void **unused) {
    static const uint32_t counts[] = {2, 3, 3};
    process_ranks_result alone = {0};
    (void)unused;
    answer_all(NULL, 0, &alone);
    assert_int_equal(alone.status, QN_OK);
    for (death = NOWHERE; death <= IN_A_SHARE; ++death) {
        process_ranks all = {.count = counts[death], .body = answer_all};
        process_ranks_run(&all);
        for (uint32_t r = 0; r < all.count; ++r) {
            const process_ranks_result *own = &all.result[r];
            if (r == 1 && death != NOWHERE) {
                assert_false(own->done);
                continue;
            }
            assert_int_equal(own->status, QN_OK);
            assert_string_equal(own->text, alone.text);
            assert_in_range(own->value[0], 2, 3); /* rounds */
        }
        process_ranks_end(&all);
    }
}

/* An answer that cannot go on is reported with its place. */
static void test_numbers_that_are_not_finite_are_reported(void **unused) {
    const char *const prompt[] = {"ab", "c"};
    qn_generator *g = NULL;
    qn_error err;
    int more;
    (void)unused;
    qn__program program;
    qn__model_program(model, &program);
    float *bias =
        (float *)(uintptr_t)qn__model_parameters(model) + program.layer[program.layers - 1].biases;
    const float before = bias[7];
    bias[7] = INFINITY;
    assert_int_equal(qn_generator_open(model, prompt, 2, NULL, &g, &err), QN_OK);
    assert_int_equal(qn_generator_step(g, &more, &err), QN_NUMERIC);
    assert_string_equal(err.where, "prompt 0, token 0 of the answer");
    qn_generator_close(g);
    bias[7] = before;
}

static qn_status try_options(const qn_generate_options *o, qn_error *err) {
    const char *const prompt = "ab";
    qn_generator *g = NULL;
    const qn_status status = qn_generator_open(model, &prompt, 1, o, &g, err);
    assert_true((status == QN_OK) == (g != NULL));
    qn_generator_close(g);
    return status;
}

#define REFUSED(member, value, text)                                                               \
    do {                                                                                           \
        qn_generate_options_init(&o);                                                              \
        o.member = (value);                                                                        \
        assert_int_equal(try_options(&o, &err), QN_USAGE);                                         \
        assert_non_null(strstr(err.what, text));                                                   \
        assert_true(err.remedy[0]);                                                                \
    } while (0)

static void test_options_that_are_wrong_are_refused(void **unused) {
    const char *const long_text[] = {"a", ""};
    qn_generate_options o;
    qn_error err;
    (void)unused;
    REFUSED(tokens, 0, "generate.tokens");
    REFUSED(answers, 0, "generate.answers");
    REFUSED(batch, 5000, "generate.batch");
    REFUSED(temperature, -1.0f, "`generate.temperature` is -1");
    REFUSED(temperature, 0.0f / 0.0f, "not finite");
    REFUSED(top_p, 0.0f, "generate.top_p");
    REFUSED(repetition, 0.0f, "generate.repetition");
    REFUSED(chat, "irc", "irc");
    REFUSED(system, "be kind", "generate.system");
    qn_generate_options_init(&o);
    o.stop = long_text;
    o.stops = 2;
    assert_int_equal(try_options(&o, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "text 1"));
    o.stops = 1;
    assert_int_equal(try_options(&o, &err), QN_OK);
    const qn_compute gpu = {.size = sizeof gpu, .devices = "opencl:77"};
    qn_generate_options_init(&o);
    o.compute = &gpu;
    assert_int_equal(try_options(&o, &err), QN_UNSUPPORTED);
}

static void test_an_answer_grows_and_ends(void **unused) {
    const char *const prompts[] = {"ab", "\xC3\xA9"};
    qn_generate_options o;
    qn_generator *g = NULL;
    qn_answer a = {.size = sizeof a};
    size_t before = 0;
    int more = 1;
    (void)unused;
    qn_generate_options_init(&o);
    o.tokens = 60;
    o.answers = 2;
    assert_int_equal(qn_generator_open(model, prompts, 2, &o, &g, NULL), QN_OK);
    assert_int_equal(qn_generator_answers(g), 4);
    assert_int_equal(qn_generator_write(g, "never.json", NULL), QN_USAGE);
    assert_int_equal(qn_generator_answer(g, 4, &a, NULL), QN_USAGE);
    assert_int_equal(qn_generator_step(g, NULL, NULL), QN_USAGE);
    assert_int_equal(qn_generator_answer(g, 0, NULL, NULL), QN_USAGE);
    assert_int_equal(qn_generator_write(g, NULL, NULL), QN_USAGE);
    for (uint32_t steps = 1; more; ++steps) {
        assert_int_equal(qn_generator_step(g, &more, NULL), QN_OK);
        assert_int_equal(qn_generator_answer(g, 3, &a, NULL), QN_OK);
        assert_true(a.count == steps && a.bytes >= before && a.bytes <= steps);
        before = a.bytes;
    }
    assert_true(a.prompt == 1 && a.number == 1 && a.count == 60 && a.end == QN_ANSWER_LENGTH);
    assert_true(a.slid && a.bytes == 60 && strlen(a.text) == 60 && !a.log_probabilities);
    qn_generator_close(g);
}

static void test_a_layer_that_needs_later_tokens_is_refused(void **unused) {
    static const char *const networks[] = {
        "embedding 256 8; conv 8 1x3 pad same; conv 256 1x1 softmax",
        "embedding 256 8; layernorm; conv 256 1x1 softmax",
        "embedding 256 9; attention 1; conv 256 1x1 softmax",
        "embedding 256 8; recurrent lstm reverse; conv 256 1x1 softmax"};
    const char *const prompt = "ab";
    (void)unused;
    for (int i = 0; i < 4; ++i) {
        qn_model *other = train(networks[i], 8, "f32", NULL);
        qn_generator *g = NULL;
        qn_error err;
        assert_non_null(other);
        assert_int_equal(qn_generator_open(other, &prompt, 1, NULL, &g, &err), QN_UNSUPPORTED);
        assert_non_null(strstr(err.what, "layer 1"));
        assert_true((strstr(err.remedy, "without \"reverse\"") != NULL) == (i == 3));
        qn_model_free(other);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_are_those_of_a_whole_pass),
        cmocka_unit_test(test_ranks_share_answers),
        cmocka_unit_test(test_an_answer_grows_and_ends),
        cmocka_unit_test(test_options_that_are_wrong_are_refused),
        cmocka_unit_test(test_a_layer_that_needs_later_tokens_is_refused),
        cmocka_unit_test(test_numbers_that_are_not_finite_are_reported),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
