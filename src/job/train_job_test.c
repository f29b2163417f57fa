/* The training job below the public functions: its steps against the reference, saving and loading
 * its state, sets that do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files/mapped_file.h"
#include "base/memory.h"
#include "data/bytes/bytes_read_test.h"
#include "job/train_job.h"
#include "layer/reference.h"
#include "model/formats/recipe_options.h"
#include "num/permutation.h"
#include "num/philox.h"

enum { ITEMS = 53, FEATURES = 7, CLASSES = 3 };

/* Bytes that depend on the label, so that training has an effect. */
static qn_data *draw_data(uint32_t items, uint32_t features, int labelled) {
    uint8_t *values = malloc((size_t)items * features);
    int32_t *labels = malloc(items * sizeof *labels);
    qn_data *data;
    uint32_t word = 12345;
    for (uint32_t i = 0; i < items; ++i) {
        labels[i] = (int32_t)(i % CLASSES);
        for (uint32_t f = 0; f < features; ++f) {
            word = word * 1664525u + 1013904223u;
            values[i * features + f] =
                (uint8_t)((word >> 26) + (f % CLASSES == i % CLASSES ? 150u : 0u));
        }
    }
    assert_int_equal(
        qn_data_from_arrays(QN_U8, items, features, values, labelled ? labels : NULL, &data, NULL),
        QN_OK);
    free(values);
    free(labels);
    return data;
}

static qn_train_options small_options(void) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 5 tanh dropout 0.25; dense 3 softmax";
    o.batch = 10;
    o.grain = 4;
    o.epochs = 3;
    o.seed = 77;
    o.momentum = 0.5f;
    return o;
}

static void make_job(qn__train_job *job, const qn_train_options *o, const qn_data *data,
                     int threads, uint64_t later) {
    const qn_compute compute = {.size = sizeof(qn_compute), .threads = threads};
    const qn__encoding_notes notes = {.what = "the training data"};
    qn__recipe recipe;
    qn_error err;
    assert_int_equal(qn__recipe_from_options(o, data, &recipe, &err), QN_OK);
    assert_int_equal(
        qn__train_job_create(job, &recipe, data, NULL, &notes, &compute, NULL, 0, later, &err),
        QN_OK);
}

/* One step by docs/exactness.md, item by item, with the reference. Order, batches and grains follow
 * their definitions, without the job's own code. */
static void reference_step(const qn__train_job *job, const qn_data *data, uint64_t step,
                           qn__state *state, qn__adam_powers *powers, qn__tally *tally) {
    const qn__program *p = &job->program;
    const uint64_t per_epoch = (ITEMS + 9) / 10, first = step % per_epoch * 10;
    const uint32_t batch = ITEMS - first < 10 ? (uint32_t)(ITEMS - first) : 10;
    const uint32_t epoch = (uint32_t)(step / per_epoch);
    int64_t *sums = calloc(p->parameters, sizeof *sums);
    qn__permutation order;
    qn__reference *r;
    qn__update update;
    assert_int_equal(qn__reference_create(p, &r, NULL), QN_OK);
    qn__permutation_begin(&order, ITEMS, 77, QN__PURPOSE_ORDER, epoch);
    for (uint32_t g = 0; g < batch; g += 4) {
        qn__reference_grain_begin(r);
        for (uint32_t i = g; i < g + 4 && i < batch; ++i) {
            const uint64_t item = qn__permutation_at(&order, first + i);
            const qn__reference_item one = {.type = QN__ELEMENT_U8,
                                            .values = (const uint8_t *)qn_data_values(data) +
                                                      item * FEATURES,
                                            .number = item,
                                            .label = (uint32_t)qn_data_labels(data)[item]};
            qn__reference_grain_item(r, state->parameters, &one, epoch);
        }
        assert_int_equal(qn__reference_grain_end(r, sums, tally), QN__GRAIN_FINE);
    }
    qn__update_begin(p, 0.1f, batch, powers, &update);
    for (uint32_t l = 0; l < p->layers; ++l)
        for (uint64_t k = p->layer[l].weights; k < p->layer[l].biases + p->layer[l].out; ++k)
            qn__update_one(p, &update, k < p->layer[l].biases, sums[k], &state->parameters[k],
                           &state->slot[0][k], NULL);
    qn__reference_destroy(r);
    free(sums);
}

/* A model is that of the newest step, although the host's copy of the state is older. */
static void check_model(qn__train_job *job, const qn__state *want) {
    const size_t bytes = job->program.parameters * sizeof(float);
    const uint64_t kept = job->kept.step;
    qn_model *model;
    assert_int_equal(qn__train_job_model(job, &model, NULL), QN_OK);
    assert_memory_equal(qn__model_parameters(model), want->parameters, bytes);
    assert_int_equal(job->kept.step, kept);
    qn_model_free(model);
}

static void test_steps_are_those_of_the_contract(void **unused) {
    (void)unused;
    qn_data *data = draw_data(ITEMS, FEATURES, 1);
    const qn_train_options o = small_options();
    qn__train_job job;
    qn__adam_powers powers = {1.0f, 1.0f};
    qn__tally tally = {0};
    make_job(&job, &o, data, 2, 0);
    assert_int_equal(job.steps, 18);
    const size_t bytes = job.program.parameters * sizeof(float);
    qn__state want = {.parameters = malloc(bytes), .slot = {calloc(1, bytes), NULL}};
    memcpy(want.parameters, job.state.parameters, bytes);
    for (uint64_t step = 0; step < job.steps; ++step) {
        if (step % 6 == 0)
            tally = (qn__tally){0};
        reference_step(&job, data, step, &want, &powers, &tally);
        assert_int_equal(qn__train_job_step(&job, NULL), QN_OK);
        check_model(&job, &want);
        assert_int_equal(qn__train_job_pull(&job, NULL), QN_OK);
        check_model(&job, &want);
        assert_memory_equal(job.state.parameters, want.parameters, bytes);
        assert_memory_equal(job.state.slot[0], want.slot[0], bytes);
        assert_true(job.running.loss == tally.loss);
        assert_int_equal(job.running.correct, tally.correct);
        assert_int_equal(job.running.items, tally.items);
    }
    qn__train_job_destroy(&job);
    free(want.parameters);
    free(want.slot[0]);
    qn_data_close(data);
}

/* A state saved in the middle of an epoch and loaded into a new job continues as if
 * uninterrupted. */
static void test_state_travels(void **unused) {
    (void)unused;
    qn_data *data = draw_data(ITEMS, FEATURES, 1);
    qn_train_options o = small_options();
    o.optimizer = "adam";
    o.learning_rate = 0.01f;
    qn__train_job whole, half, other;
    make_job(&whole, &o, data, 1, 0);
    while (whole.step < whole.steps)
        assert_int_equal(qn__train_job_step(&whole, NULL), QN_OK);
    assert_int_equal(qn__train_job_pull(&whole, NULL), QN_OK);
    const size_t bytes = whole.program.parameters * sizeof(float);
    for (uint64_t at = 0; at <= whole.steps; at += 3) {
        make_job(&half, &o, data, 2, 0);
        make_job(&other, &o, data, 3, 0);
        while (half.step < at)
            assert_int_equal(qn__train_job_step(&half, NULL), QN_OK);
        assert_int_equal(qn__train_job_pull(&half, NULL), QN_OK);
        memcpy(other.state.parameters, half.state.parameters, bytes);
        for (int s = 0; s < 2; ++s)
            memcpy(other.state.slot[s], half.state.slot[s], bytes);
        other.step = half.step;
        other.running = half.running;
        other.powers = half.powers;
        assert_int_equal(qn__train_job_push(&other, NULL), QN_OK);
        while (other.step < other.steps)
            assert_int_equal(qn__train_job_step(&other, NULL), QN_OK);
        assert_int_equal(qn__train_job_pull(&other, NULL), QN_OK);
        assert_memory_equal(other.state.parameters, whole.state.parameters, bytes);
        assert_true(other.running.loss == whole.running.loss);
        assert_int_equal(other.running.correct, whole.running.correct);
        qn__train_job_destroy(&half);
        qn__train_job_destroy(&other);
    }
    qn__train_job_destroy(&whole);
    qn_data_close(data);
}

/* Sizes at the limits of a recipe: larger than the training set, and grains of one item. */
static void test_sizes_at_the_border(void **unused) {
    (void)unused;
    static const struct {
        uint32_t batch, grain, want_batch, want_grain;
        uint64_t steps;
    } cases[] = {{1u << 24, UINT32_MAX, ITEMS, ITEMS, 1},
                 {ITEMS, ITEMS, ITEMS, ITEMS, 1},
                 {ITEMS - 1, 1, ITEMS - 1, 1, 2},
                 {1, UINT32_MAX, 1, 1, ITEMS},
                 {ITEMS + 1, 50, ITEMS, 50, 1}};
    qn_data *data = draw_data(ITEMS, FEATURES, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        qn_train_options o = small_options();
        qn__train_job job;
        qn__tally tally = {0};
        o.batch = cases[i].batch;
        o.grain = cases[i].grain;
        o.epochs = 2;
        make_job(&job, &o, data, 2, 0);
        assert_int_equal(job.program.batch, cases[i].want_batch);
        assert_int_equal(job.program.grain, cases[i].want_grain);
        assert_int_equal(job.steps, 2 * cases[i].steps);
        for (uint64_t s = 0; s < job.steps; ++s)
            assert_int_equal(qn__train_job_step(&job, NULL), QN_OK);
        assert_int_equal(job.running.items, ITEMS);
        assert_int_equal(qn__train_job_evaluate(&job, data, &tally, NULL, NULL, NULL), QN_OK);
        assert_int_equal(tally.items, ITEMS);
        qn__train_job_destroy(&job);
    }
    qn_data_close(data);
}

/* Labels that become 1 and -1: their mean is 2^17 + 1/2, their deviation 3/4. */
static float real_label(uint32_t i) { return 0x1p17f + 0.5f + (i * 7 % 40 < 20 ? 0.75f : -0.75f); }

static qn_data *draw_real(uint32_t items) {
    qn_data *data = draw_data(items, FEATURES, 0);
    data->targets = qn__alloc(items, sizeof *data->targets, NULL);
    for (uint32_t i = 0; i < items; ++i)
        data->targets[i] = real_label(i);
    return data;
}

static qn_train_options real_options(const char *loss) {
    qn_train_options o = small_options();
    o.model = "dense 5 tanh; dense 1";
    o.loss = loss;
    o.delta = 0.75f;
    o.batch = 40;
    o.grain = 7;
    o.momentum = 0.0f;
    o.optimizer = "sgd";
    return o;
}

/* The first step and the loss of the set before it, with the reference and labels of +-1. */
static void check_real(const char *loss) {
    qn_data *data = draw_real(40);
    const qn_train_options o = real_options(loss);
    qn__train_job job;
    qn__target_errors errors;
    qn__comparison with;
    qn__tally tally = {0}, want = {0};
    make_job(&job, &o, data, 2, 0);
    assert_true(job.target_mean == 0x1p17f + 0.5f && job.target_deviation == 0.75f);
    const uint64_t n = job.program.parameters;
    int64_t *sums = calloc(n, sizeof *sums);
    double absolute = 0;
    qn__reference *r;
    assert_int_equal(qn__reference_create(&job.program, &r, NULL), QN_OK);
    for (uint32_t g = 0; g < 40; g += 7) {
        qn__reference_grain_begin(r);
        for (uint32_t i = g; i < g + 7 && i < 40; ++i) {
            const float label = real_label(i) > 0x1p17f + 0.5f ? 1.0f : -1.0f;
            qn__reference_item one = {.type = QN__ELEMENT_U8,
                                      .values = (const uint8_t *)qn_data_values(data) +
                                                (size_t)i * FEATURES,
                                      .number = i};
            memcpy(&one.label, &label, sizeof label);
            qn__reference_grain_item(r, job.state.parameters, &one, 0);
            const float y = fmaf(qn__reference_score(r), 0.75f, 0x1p17f + 0.5f);
            absolute += fabs((double)y - (double)real_label(i));
        }
        assert_int_equal(qn__reference_grain_end(r, sums, &want), QN__GRAIN_FINE);
    }
    assert_int_equal(qn__train_job_comparison(&job, data, "the set", &with, NULL), QN_OK);
    assert_int_equal(qn__train_job_compare(&job, &with, &tally, &errors, NULL), QN_OK);
    qn__comparison_release(&with);
    assert_true(tally.loss == want.loss && tally.correct == 0 && tally.items == 40);
    assert_true(fabs(errors.mae - absolute / 40) < 1e-9);
    qn__reference_destroy(r);
    free(sums);
    qn__train_job_destroy(&job);
    qn_data_close(data);
}

static void test_real_labels(void **unused) {
    (void)unused;
    check_real("mse");
    check_real("mae");
    check_real("huber");
}

/* What the metrics are, by hand; a set without spread has no R2. */
static void test_errors_of_real_labels(void **unused) {
    (void)unused;
    const float targets[] = {1, 2, 3, 6}, predictions[] = {1, 3, 3, 3};
    const qn__target_errors e = qn__targets_compare(targets, predictions, NULL, 4);
    assert_true(e.mae == 1 && e.rmse == sqrt(2.5) && fabs(e.r2 - (1 - 10.0 / 14)) < 1e-15);
    assert_true(isnan(qn__targets_compare(targets, predictions, NULL, 1).r2));
}

/* All labels alike: their deviation is 0, and the prediction is the label whatever the network. */
static void test_equal_real_labels(void **unused) {
    (void)unused;
    qn_data *data = draw_real(40);
    const qn_train_options o = real_options("mse");
    qn__train_job job;
    qn__target_errors errors;
    qn__comparison with;
    qn__tally tally = {0};
    qn_model *model;
    for (uint32_t i = 0; i < 40; ++i)
        data->targets[i] = 0.1f;
    make_job(&job, &o, data, 1, 0);
    assert_int_equal(qn__train_job_step(&job, NULL), QN_OK);
    assert_int_equal(qn__train_job_comparison(&job, data, "the set", &with, NULL), QN_OK);
    assert_int_equal(qn__train_job_compare(&job, &with, &tally, &errors, NULL), QN_OK);
    qn__comparison_release(&with);
    assert_true(errors.mae == 0 && errors.rmse == 0);
    assert_int_equal(qn__train_job_model(&job, &model, NULL), QN_OK);
    assert_true(*qn_model_tensor(model, "target.mean", NULL, NULL) == 0.1f);
    assert_true(*qn_model_tensor(model, "target.deviation", NULL, NULL) == 0.0f);
    assert_int_equal(qn_model_classes(model), 0);
    qn_model_free(model);
    qn__train_job_destroy(&job);
    qn_data_close(data);
}

static void test_labels_too_far_apart(void **unused) {
    (void)unused;
    qn_data *data = draw_real(40);
    int32_t *scaled;
    qn_error err;
    data->targets[3] = 3.4e38f;
    assert_int_equal(qn__targets_scale(data, -1e38f, 1.0f, &scaled, &err), QN_INPUT);
    assert_null(scaled);
    assert_string_equal(err.what, "the label of item 3 is too far from the others");
    qn_data_close(data);
}

static void test_sets_that_do_not_fit(void **unused) {
    (void)unused;
    qn_data *data = draw_data(ITEMS, FEATURES, 1), *wider = draw_data(5, FEATURES + 1, 1);
    qn_data *bare = draw_data(5, FEATURES, 0), *real = draw_real(5), *high, *floats;
    const int32_t labels[] = {0, 3};
    const uint8_t bytes[2 * FEATURES] = {0};
    const float numbers[2 * FEATURES] = {0.5f};
    qn_train_options o = small_options();
    o.scale = "fraction";
    qn_error err;
    qn__train_job job;
    make_job(&job, &o, data, 1, 0);
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, FEATURES, bytes, labels, &high, NULL), QN_OK);
    assert_int_equal(qn_data_from_arrays(QN_F32, 1, FEATURES, numbers, labels, &floats, NULL),
                     QN_OK);
    assert_int_equal(qn__train_job_fits(&job, data, "the set", &err), QN_OK);
    assert_int_equal(qn__train_job_fits(&job, wider, "the set", &err), QN_MISMATCH);
    assert_string_equal(err.what, "the set has 8 features, the training data has 7");
    assert_int_equal(qn__train_job_fits(&job, bare, "the set", &err), QN_INPUT);
    assert_string_equal(err.what, "the set has no labels");
    assert_int_equal(qn__train_job_fits(&job, high, "the set", &err), QN_MISMATCH);
    assert_string_equal(err.what, "the set has labels up to 3, the network has 3 outputs");
    assert_int_equal(qn__train_job_fits(&job, real, "the set", &err), QN_MISMATCH);
    assert_string_equal(err.what, "the labels of the set are real numbers, those of the training "
                                  "data are classes");
    assert_int_equal(qn__train_job_fits(&job, floats, "the set", &err), QN_MISMATCH);
    assert_string_equal(err.what,
                        "the set holds numbers that are not bytes, but `train.scale` is fraction");
    qn__train_job_destroy(&job);
    qn_data *const all[] = {data, wider, bare, high, floats, real};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        qn_data_close(all[i]);
}

/* Trains two epochs; the state belongs to the caller. `later` as in qn__train_job_create; *read:
 * bytes that the steps read from files. */
static float *trained(const qn_data *data, const char *scale, uint64_t later, uint64_t *read) {
    const qn_compute compute = {.size = sizeof(qn_compute), .threads = 2};
    qn_train_options o = small_options();
    o.model = "dense 3 softmax";
    o.batch = 500;
    o.epochs = 2;
    o.scale = scale;
    qn__train_job job;
    qn_error err;
    make_job(&job, &o, data, 2, later);
    qn__train_job_fill(&job, &compute);
    const uint64_t before = bytes_read();
    for (uint64_t step = 0; job.step < job.steps; step++) {
        assert_int_equal(qn__train_job_step(&job, &err), QN_OK);
        if (data->in_file && later < UINT64_MAX)
            assert_non_null(job.feed.buffer);
    }
    *read = bytes_read() - before;
    assert_int_equal(job.feed.buffer != NULL, data->in_file != NULL);
    assert_int_equal(qn__train_job_pull(&job, &err), QN_OK);
    float *state = malloc(job.program.parameters * sizeof *state);
    memcpy(state, job.state.parameters, job.program.parameters * sizeof *state);
    qn__train_job_destroy(&job);
    return state;
}

enum { MANY = 20000, WIDE = 100, BEFORE = 64 };

/* The same bytes as from memory. With a scaling that reads all items, and with one that reads none,
 * there is a reading before the first step: two of four pieces fewer are read later. (Otherwise the
 * reading begins after three steps, and its first piece gives nothing.) */
static void check_items_from(const qn_data *in_file, const qn_data *data, const char *scale) {
    uint64_t none, read[2];
    float *from_memory = trained(data, scale, 0, &none);
    for (int known = 0; known < 2; known++) {
        float *from_file = trained(in_file, scale, known ? 0 : UINT64_MAX, &read[known]);
        assert_memory_equal(from_file, from_memory, (WIDE + 1) * 3 * sizeof *from_memory);
        free(from_file);
    }
    assert_true(none == 0 || read[1] + (size_t)MANY * WIDE / 10 * 4 < read[0]);
    free(from_memory);
}

/* A table in a file of which a quarter fits the memory. */
static void test_items_from_a_file(void **state) {
    (void)state;
    qn_data *data = draw_data(MANY, WIDE, 1), in_file = *data;
    qn__mapped_file *file;
    assert_int_equal(qn__mapped_file_create("/tmp", BEFORE + (size_t)MANY * WIDE + 64, &file, NULL),
                     QN_OK);
    in_file.values =
        memcpy(qn__mapped_file_bytes(file) + BEFORE, data->values, (size_t)MANY * WIDE);
    in_file.in_file = file;
    qn__read_ahead_memory = (2 << 20) + 4 * 5200 * 40 + 500000;
    check_items_from(&in_file, data, "standard");
    check_items_from(&in_file, data, "fraction");
    check_items_from(&in_file, data, "minmax");
    qn__read_ahead_memory = 0;
    qn__mapped_file_close(file);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_real_labels),
                                       cmocka_unit_test(test_items_from_a_file),
                                       cmocka_unit_test(test_errors_of_real_labels),
                                       cmocka_unit_test(test_equal_real_labels),
                                       cmocka_unit_test(test_labels_too_far_apart),
                                       cmocka_unit_test(test_steps_are_those_of_the_contract),
                                       cmocka_unit_test(test_state_travels),
                                       cmocka_unit_test(test_sizes_at_the_border),
                                       cmocka_unit_test(test_sets_that_do_not_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
