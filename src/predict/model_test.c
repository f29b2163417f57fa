/* Models: the file's digest against the independent program of tests/oracle, accessors, and invalid
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest/sha256.h"
#include "base/files/file.h"
#include "model/formats/model.h"
#include "model/formats/safetensors.h"
#include "predict/model_kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "model_test.tmp"
#define DIGEST "73934b7a26592e9882e3b5119366d0acdff4eef889a5a86fe45902a2fdb213b7"

static const float mean[3] = {1, -2, 0.5f}, deviation[3] = {2, 0, 0.25f};

static qn__recipe example(void) {
    qn__recipe r = {.contract = 1,
                    .data = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                    .items = 100,
                    .features = 3,
                    .scale = QN__SCALE_STANDARD,
                    .init = QN__INIT_GLOROT,
                    .loss = QN__LOSS_MSE,
                    .optimizer = QN__OPT_MOMENTUM,
                    .momentum = 0.9f,
                    .learning_rate = 0.1f,
                    .batch = 16,
                    .grain = 8,
                    .epochs = 2,
                    .seed = 7,
                    .gradient_scale = 44};
    assert_int_equal(qn__network_parse("dense 2 tanh dropout 0.2; dense 1", &r.network, NULL),
                     QN_OK);
    return r;
}

static void fill(float parameter[11]) {
    for (int i = 0; i < 11; ++i)
        parameter[i] = (float)i / 4 - 1;
}

static qn_model *make(void) {
    const qn__recipe r = example();
    float parameter[11];
    const qn__fitted fitted = {.parameter = parameter, .mean = mean, .deviation = deviation};
    qn_model *m;
    fill(parameter);
    assert_int_equal(qn__model_create(&r, &fitted, &m, NULL), QN_OK);
    return m;
}

static void test_digest_is_that_of_the_file(void **state) {
    (void)state;
    qn_model *m = make();
    qn__bytes bytes;
    uint8_t hash[32];
    char hex[65];
    assert_string_equal(qn_model_digest(m), DIGEST);
    assert_int_equal(qn_model_save(m, PATH, NULL), QN_OK);
    assert_int_equal(qn__file_read(PATH, &bytes, NULL), QN_OK);
    qn__sha256_of(bytes.data, bytes.size, hash);
    qn__hex(hash, hex);
    assert_string_equal(hex, DIGEST);
    qn__bytes_release(&bytes);
    qn_model_free(m);
    qn_model_free(NULL);
    unlink(PATH);
}

/* 25.45: the text of a tokenizer stands in the file, and the recipe has its digest. */
static void test_tokenizer(void **state) {
    (void)state;
    static char text[] = "{\"kind\": \"chars\", \"vocabulary\": [10, 97]}";
    qn__recipe r = example();
    float parameter[11];
    const qn__fitted fitted = {.parameter = parameter};
    uint8_t hash[32];
    char hex[65], tokens[96];
    qn_model *m, *back;
    qn__bytes bytes;
    qn_error err = {0};
    qn__sha256_of(text, sizeof text - 1, hash);
    qn__hex(hash, hex);
    snprintf(tokens, sizeof tokens, "chars %s", hex);
    r.contract = 9;
    r.scale = QN__SCALE_NONE;
    r.tokens = tokens;
    r.tokenizer = text;
    r.context = 2;
    fill(parameter);
    assert_int_equal(qn__model_create(&r, &fitted, &m, NULL), QN_OK);
    assert_int_equal(qn_model_save(m, PATH, NULL), QN_OK);
    assert_int_equal(qn_model_load(PATH, &back, &err), QN_OK);
    assert_string_equal(qn_model_tokenizer(back), text);
    assert_string_equal(qn_model_tokens(back), tokens);
    assert_int_equal(qn_model_context(back), 2);
    assert_string_equal(qn_model_digest(back), qn_model_digest(m));
    qn_model_free(back);
    assert_int_equal(qn__file_read(PATH, &bytes, NULL), QN_OK);
    for (size_t i = 0; i + 2 < bytes.size; i++) /* another vocabulary */
        if (memcmp(bytes.data + i, "97]", 3) == 0)
            ((uint8_t *)(uintptr_t)bytes.data)[i] = '8';
    FILE *file = fopen(PATH, "wb");
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    fclose(file);
    assert_int_equal(qn_model_load(PATH, &back, &err), QN_FORMAT);
    assert_non_null(strstr(err.what, "the tokenizer is not that of the recipe"));
    qn__bytes_release(&bytes);
    qn_model_free(m);
    unlink(PATH);
}

static void check_answers(const qn_model *m) {
    char text[64];
    uint64_t rows, columns;
    assert_int_equal(qn_model_inputs(m), 3);
    assert_int_equal(qn_model_outputs(m), 1);
    assert_int_equal(qn_model_layers(m), 2);
    assert_int_equal(qn_model_parameters(m), 11);
    assert_string_equal(qn__model_text(m), "dense 2 tanh dropout 0.2; dense 1 none");
    qn_model_layer_text(m, 0, text, sizeof text);
    assert_string_equal(text, "dense 2 tanh dropout 0.2");
    qn_model_layer_text(m, 1, text, 8);
    assert_string_equal(text, "dense 1");
    qn_model_layer_text(m, 2, text, sizeof text);
    assert_string_equal(text, "");
    const float *weight = qn_model_tensor(m, "layer1.weight", &rows, &columns);
    assert_true(weight[0] == 1.0f && weight[1] == 1.25f && rows == 1 && columns == 2);
    const float *bias = qn_model_tensor(m, "layer0.bias", &rows, &columns);
    assert_true(bias[0] == 0.5f && rows == 2 && columns == 0);
    assert_memory_equal(qn_model_tensor(m, "scale.mean", NULL, NULL), mean, sizeof mean);
    assert_null(qn_model_tensor(m, "layer2.weight", &rows, &columns));

    qn__program program;
    qn__model_program(m, &program);
    assert_int_equal(program.layers, 2);
    assert_int_equal(program.parameters, 11);
    assert_int_equal(program.layer[1].weights, 8);
    assert_int_equal(program.layer[0].drop_threshold, 858993472);
    assert_true(program.mean[1] == -2 && program.inverse[0] == 0.5f && program.inverse[1] == 0 &&
                program.inverse[2] == 4);
    assert_int_equal(program.optimizer, QN__OPT_MOMENTUM);
    float parameter[11];
    fill(parameter);
    assert_memory_equal(qn__model_parameters(m), parameter, sizeof parameter);
}

static void test_saved_and_loaded(void **state) {
    (void)state;
    qn_model *m = make(), *back;
    qn_error err = {0};
    check_answers(m);
    assert_int_equal(qn_model_save(m, PATH, NULL), QN_OK);
    if (qn_model_load(PATH, &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    check_answers(back);
    assert_string_equal(qn_model_digest(back), DIGEST);
    assert_string_equal(qn_model_recipe(back), qn_model_recipe(m));
    qn_model_free(back);
    qn_model_free(m);
    unlink(PATH);
}

/* A model of real labels keeps their scaling; in a file it is checked like any other. */
/* In the file the taps of a window are the innermost, as PyTorch has them; in memory the channels
 * are. A dense layer after pixels has channel after channel, too. */
static void test_windows_have_the_order_of_the_file(void **state) {
    (void)state;
    enum { CONV = 2 * 2 * 2 * 3 + 2, ALL = CONV + 2 * 8 + 2 };
    qn__recipe r = example();
    r.features = 2 * 4 * 5;
    r.shape = (qn__shape){2, 4, 5, QN__PICTURE};
    r.scale = QN__SCALE_NONE;
    assert_int_equal(
        qn__network_parse("conv 2 2x3 tanh; avgpool 2x2 stride 1; dense 2", &r.network, NULL),
        QN_OK);
    qn__recipe_tidy(&r);
    float parameter[ALL];
    const qn__fitted fitted = {.parameter = parameter};
    qn_model *m, *back;
    uint64_t rows, columns;
    for (int i = 0; i < ALL; ++i)
        parameter[i] = (float)i;
    qn_error err = {0};
    if (qn__model_create(&r, &fitted, &m, &err) != QN_OK)
        fail_msg("%s", err.what);
    assert_int_equal(qn_model_save(m, PATH, NULL), QN_OK);
    if (qn_model_load(PATH, &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    const float *w = qn_model_tensor(back, "layer0.weight", &rows, &columns);
    assert_int_equal(rows, 2);
    assert_int_equal(columns, 12);
    for (uint32_t o = 0; o < 2; ++o)
        for (uint32_t c = 0; c < 2; ++c)
            for (uint32_t ky = 0; ky < 2; ++ky)
                for (uint32_t kx = 0; kx < 3; ++kx)
                    assert_true(w[((o * 2 + c) * 2 + ky) * 3 + kx] ==
                                (float)(((o * 2 + ky) * 3 + kx) * 2 + c));
    assert_null(qn_model_tensor(back, "layer1.weight", NULL, NULL));
    w = qn_model_tensor(back, "layer2.weight", &rows, &columns);
    assert_int_equal(columns, 2 * 2 * 2);
    for (uint32_t k = 0; k < 8; ++k) /* 2 channels of 2x2 pixels */
        assert_true(w[k % 2 * 4 + k / 2] == (float)(CONV + k));
    assert_memory_equal(qn__model_parameters(back), parameter, sizeof parameter);
    assert_string_equal(qn_model_digest(m), qn_model_digest(back));
    qn_model_free(m);
    qn_model_free(back);
    unlink(PATH);
}

static void test_real_labels(void **state) {
    (void)state;
    qn__recipe r = example();
    float parameter[11], m, d;
    qn__fitted fitted = {.parameter = parameter,
                         .mean = mean,
                         .deviation = deviation,
                         .target_mean = 200000.5f,
                         .target_deviation = 75000};
    qn_model *made, *back;
    qn_error err = {0};
    fill(parameter);
    r.task = QN__TASK_REGRESS;
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 2);
    assert_int_equal(qn__model_create(&r, &fitted, &made, NULL), QN_OK);
    assert_int_equal(qn_model_save(made, PATH, NULL), QN_OK);
    if (qn_model_load(PATH, &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    qn__model_target_scale(back, &m, &d);
    assert_true(m == 200000.5f && d == 75000);
    assert_int_equal(qn_model_classes(back), 0);
    assert_string_equal(qn_model_digest(back), qn_model_digest(made));
    qn_model_free(back);
    qn_model_free(made);
    fitted.target_deviation = -1;
    assert_int_equal(qn__model_create(&r, &fitted, &made, NULL), QN_OK);
    assert_int_equal(qn_model_save(made, PATH, NULL), QN_OK);
    assert_int_equal(qn_model_load(PATH, &back, &err), QN_FORMAT);
    assert_non_null(strstr(err.where, "target.deviation"));
    qn_model_free(made);
    fitted.target_mean = INFINITY;
    assert_int_equal(qn__model_create(&r, &fitted, &made, &err), QN_NUMERIC);
    assert_string_equal(err.where, "tensor \"target.mean\", element 0");
    unlink(PATH);
}

static void test_numbers_must_be_finite(void **state) {
    (void)state;
    const qn__recipe r = example();
    float parameter[11];
    const qn__fitted fitted = {.parameter = parameter, .mean = mean, .deviation = deviation};
    qn_error err;
    qn_model *m = (qn_model *)1;
    fill(parameter);
    parameter[9] = NAN;
    assert_int_equal(qn__model_create(&r, &fitted, &m, &err), QN_NUMERIC);
    assert_null(m);
    assert_string_equal(err.what, "a number of the model is NaN");
    assert_string_equal(err.where, "tensor \"layer1.weight\", element 1");
    parameter[9] = -INFINITY;
    assert_int_equal(qn__model_create(&r, &fitted, &m, &err), QN_NUMERIC);
    assert_string_equal(err.what, "a number of the model is infinite");
}

static void test_inverse(void **state) {
    (void)state;
    assert_true(qn__scale_inverse(0.0f) == 0.0f);
    assert_true(qn__scale_inverse(0x1.fffffcp-127f) == 0.0f);
    assert_true(qn__scale_inverse(0x1p-126f) == 0x1p126f);
    assert_true(qn__scale_inverse(3.0f) == 1.0f / 3.0f);
}

/* -------------------------------------------------------------------------------- invalid files */

/* A model file of the example, whose parts can be replaced before it is written. */
typedef struct forged {
    float number[17];
    qn__tensor tensor[8];
    qn__tensor_note note[2];
    qn__tensor_list list;
} forged;

static void forge(forged *f, const qn_model *m) {
    static const struct {
        const char *name;
        int rows, columns, at;
    } parts[6] = {{"layer0.weight", 2, 3, 0}, {"layer0.bias", 2, 0, 6},
                  {"layer1.weight", 1, 2, 8}, {"layer1.bias", 1, 0, 10},
                  {"scale.mean", 3, 0, 11},   {"scale.deviation", 3, 0, 14}};
    fill(f->number);
    memcpy(f->number + 11, mean, sizeof mean);
    memcpy(f->number + 14, deviation, sizeof deviation);
    for (int i = 0; i < 6; ++i)
        f->tensor[i] = (qn__tensor){.name = parts[i].name,
                                    .rows = (uint64_t)parts[i].rows,
                                    .columns = (uint64_t)parts[i].columns,
                                    .data = f->number + parts[i].at};
    f->note[0] = (qn__tensor_note){"format", "quern-model-1"};
    f->note[1] = (qn__tensor_note){"recipe", qn_model_recipe(m)};
    f->list = (qn__tensor_list){2, f->note, 6, f->tensor, NULL, NULL};
}

static void check_load(const forged *f, const char *what, const char *where) {
    qn_error err = {0};
    qn_model *m = (qn_model *)1;
    assert_int_equal(qn__tensors_write(PATH, &f->list, NULL, NULL), QN_OK);
    assert_int_equal(qn_model_load(PATH, &m, &err), QN_FORMAT);
    assert_null(m);
    if (strstr(err.what, what) == NULL || strstr(err.where, where) == NULL)
        fail_msg("\"%s\" at \"%s\", not \"%s\" at \"%s\"", err.what, err.where, what, where);
    assert_memory_equal(err.where, PATH, strlen(PATH));
    assert_int_equal(qn_model_load(PATH, &m, NULL), QN_FORMAT);
}

static void test_forged_notes(void **state) {
    (void)state;
    qn_model *m = make();
    forged f;
    forge(&f, m);
    assert_int_equal(qn__tensors_write(PATH, &f.list, NULL, NULL), QN_OK);
    qn_model *back;
    assert_int_equal(qn_model_load(PATH, &back, NULL), QN_OK);
    assert_string_equal(qn_model_digest(back), DIGEST); /* the unchanged file is the model itself */
    qn_model_free(back);

    f.note[0].value = "quern-model-2";
    check_load(&f, "newer version", "");
    f.note[0].value = "quern-checkpoint-1";
    check_load(&f, "a checkpoint, not a model", "");
    f.note[0].value = "pt";
    check_load(&f, "not a Quern model", "");
    f.list.notes = 0;
    check_load(&f, "not a Quern model", "");
    forge(&f, m);
    f.list.notes = 1;
    check_load(&f, "no recipe", "");
    forge(&f, m);
    f.note[1].value = "{}";
    check_load(&f, "which version", "recipe, key \"contract\"");
    qn_model_free(m);
    unlink(PATH);
}

static void test_forged_tensors(void **state) {
    (void)state;
    qn_model *m = make();
    forged f;
    forge(&f, m);
    f.list.tensors = 5;
    check_load(&f, "not those of the recipe's model", "");
    forge(&f, m);
    f.tensor[6] = (qn__tensor){.name = "extra", .rows = 1, .data = f.number};
    f.list.tensors = 7;
    check_load(&f, "not those of the recipe's model", "");
    forge(&f, m);
    f.tensor[1].name = "layer0.bios";
    check_load(&f, "is missing", "tensor \"layer0.bias\"");
    forge(&f, m);
    f.tensor[0].rows = 3;
    f.tensor[0].columns = 2;
    check_load(&f, "another shape", "tensor \"layer0.weight\"");
    forge(&f, m);
    f.tensor[0].rows = 6; /* a vector of the same size */
    f.tensor[0].columns = 0;
    check_load(&f, "another shape", "tensor \"layer0.weight\"");
    forge(&f, m);
    f.tensor[1].rows = 1; /* the same number of elements, in the same order */
    f.tensor[3].rows = 2;
    f.tensor[3].data = f.number + 9;
    check_load(&f, "another shape", "tensor \"layer0.bias\"");
    forge(&f, m);
    f.tensor[3].rows = 2;
    check_load(&f, "not those of the recipe's model", "");
    qn_model_free(m);
    unlink(PATH);
}

static void test_forged_numbers(void **state) {
    (void)state;
    qn_model *m = make();
    forged f;
    forge(&f, m);
    f.number[10] = NAN;
    check_load(&f, "is NaN", "tensor \"layer1.bias\", element 0");
    forge(&f, m);
    f.number[12] = INFINITY;
    check_load(&f, "is infinite", "tensor \"scale.mean\", element 1");
    const float wrong[] = {-1.0f, -0.0f, 0x1p-127f};
    for (int i = 0; i < 3; ++i) {
        forge(&f, m);
        f.number[16] = wrong[i];
        check_load(&f, "neither 0 nor a normal", "tensor \"scale.deviation\", element 2");
    }
    qn_model_free(m);
    unlink(PATH);
}

/* A recipe of an enormous network with tiny tensors: refused before any allocation. */
static void test_enormous_recipe(void **state) {
    (void)state;
    qn_model *m = make();
    forged f;
    forge(&f, m);
    char recipe[2048];
    const char *json = qn_model_recipe(m), *at = strstr(json, "dense 2 tanh");
    snprintf(recipe, sizeof recipe, "%.*sdense 16777216 tanh%s", (int)(at - json), json,
             at + strlen("dense 2 tanh"));
    f.note[1].value = recipe;
    check_load(&f, "not those of the recipe's model", "");
    qn_model_free(m);
    unlink(PATH);
}

static void test_missing_file(void **state) {
    (void)state;
    qn_model *m = (qn_model *)1;
    qn_error err;
    assert_int_equal(qn_model_load("no-such-model", &m, &err), QN_IO);
    assert_null(m);
    assert_non_null(strstr(err.what, "no-such-model"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_digest_is_that_of_the_file),
        cmocka_unit_test(test_saved_and_loaded),
        cmocka_unit_test(test_windows_have_the_order_of_the_file),
        cmocka_unit_test(test_real_labels),
        cmocka_unit_test(test_numbers_must_be_finite),
        cmocka_unit_test(test_inverse),
        cmocka_unit_test(test_forged_notes),
        cmocka_unit_test(test_forged_tensors),
        cmocka_unit_test(test_forged_numbers),
        cmocka_unit_test(test_enormous_recipe),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
