/* Bodies of requests as items, and answers as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/table/data.h"
#include "serve/batch/answer_json.h"
#include "serve/batch/bodies.h"
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static qn_model *train_on(const char *csv, const char *model, const char *tokens) {
    char path[] = "/tmp/quern-bodies-XXXXXX.csv";
    const int file = mkstemps(path, 4);
    qn_data_options options;
    qn_train_options o;
    qn_train *t = NULL;
    qn_data *data = NULL;
    qn_model *made = NULL;
    qn_error err;
    assert_true(file >= 0);
    assert_int_equal(write(file, csv, strlen(csv)), strlen(csv));
    close(file);
    qn_data_options_init(&options);
    options.no_cache = 1;
    options.tokens = tokens;
    options.task = "classify";
    options.context = tokens ? 4 : 0;
    if (qn_data_open(path, &options, &data, &err) != QN_OK)
        fail_msg("%s %s", err.what, err.remedy);
    unlink(path);
    qn_train_options_init(&o);
    o.model = model;
    o.epochs = 1;
    if (qn_train_open(&o, data, NULL, NULL, &t, &err) != QN_OK)
        fail_msg("%s %s", err.what, err.remedy);
    assert_int_equal(qn_train_run(t, NULL), QN_OK);
    assert_int_equal(qn_train_model(t, &made, NULL), QN_OK);
    qn_train_close(t);
    qn_data_close(data);
    return made;
}

static const char people[] = "label,age,city,when\n"
                             "yes,1.5,Bern,2026-01-01\nno,2.5,Basel,2026-01-02\n"
                             "yes,1.25,Bern,2026-01-03\nno,3,Basel,2026-01-04\n";

/* The first output for each item of a body. */
static void outputs_of(const qn_model *model, const qn_data *data, float *first) {
    const uint32_t outputs = qn_model_outputs(model);
    float all[64];
    qn_error err;
    assert_true(qn_data_items(data) * outputs <= 64);
    if (qn_predict(model, data, NULL, NULL, NULL, all, &err) != QN_OK)
        fail_msg("%s %s", err.what, err.remedy);
    for (uint64_t i = 0; i < qn_data_items(data); ++i)
        first[i] = all[i * outputs];
}

static qn_status read_body(const qn__body_reader *r, const char *body, qn_data **out,
                           qn_error *err) {
    qn__body_kind kind = QN__BODY_IMAGE;
    qn_status status = qn__body_kind_of(NULL, body, strlen(body), &kind, err);
    return status == QN_OK ? qn__body_read(r, kind, body, strlen(body), out, err) : status;
}

/* The same rows in each form; columns in any order, and others beside them. */
static void test_rows(void **unused) {
    static const char *const bodies[] = {
        "[{\"age\":1.5,\"city\":\"Bern\",\"when\":\"2026-01-01\"},"
        "{\"age\":3,\"city\":\"Basel\",\"when\":\"2026-01-04\"}]",
        "{\"when\":\"2026-01-01\",\"city\":\"Bern\",\"x\":null,\"age\":1.5}\n"
        "{\"when\":\"2026-01-04\",\"city\":\"Basel\",\"x\":\"y\",\"age\":3.0}\n",
        "age,city,when\n1.5,Bern,2026-01-01\n3,Basel,2026-01-04\n",
        "when,label,city,age\n2026-01-01,,Bern,1.5\n2026-01-04,who,Basel,3\n"};
    qn_model *model = train_on(people, "dense 4 tanh; dense 2 softmax", NULL);
    qn__body_reader *r = NULL;
    float want[2] = {0}, got[2];
    qn_error err;
    (void)unused;
    assert_int_equal(qn__body_reader_make(model, &r, &err), QN_OK);
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; ++k) {
        qn_data *data;
        if (read_body(r, bodies[k], &data, &err) != QN_OK)
            fail_msg("%zu: %s %s", k, err.what, err.remedy);
        outputs_of(model, data, k ? got : want);
        if (k)
            assert_memory_equal(got, want, sizeof want);
        qn_data_close(data);
    }
    assert_true(want[0] != want[1]);
    qn__body_reader_free(r);
    qn_model_free(model);
}

/* What is wrong, where, in words that do not speak of files. */
static void test_bad_rows(void **unused) {
    static const struct {
        const char *body, *says;
    } bad[] = {{"[{\"age\":1.5,", "line 1"},  {"[{\"age\":1.5,\"city\":[1]}]", "city"},
               {"", "is not read"},           {"age,city,when\n1,\"Bern,2026-01-01\n", "line 2"},
               {"BZh91AY&SY", "is not read"}, {"PK\003\004", "is not read"}};
    qn_model *model = train_on(people, "dense 2 softmax", NULL);
    qn__body_reader *r = NULL;
    qn_error err;
    (void)unused;
    assert_int_equal(qn__body_reader_make(model, &r, &err), QN_OK);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        qn_data *data;
        char all[sizeof err];
        assert_true(read_body(r, bad[k].body, &data, &err) != QN_OK);
        assert_null(data);
        snprintf(all, sizeof all, "%s\n%s\n%s", err.where, err.what, err.remedy);
        if (!strstr(all, bad[k].says) || strstr(all, "/proc"))
            fail_msg("%s: %s", bad[k].body, all);
    }
    qn_data *data;
    qn__body_kind kind;
    assert_int_equal(qn__body_kind_of("text/html", "<", 1, &kind, &err), QN_UNSUPPORTED);
    assert_int_equal(qn__body_kind_of("Text/CSV; charset=utf-8", "", 0, &kind, &err), QN_OK);
    assert_int_equal(kind, QN__BODY_CSV);
    assert_int_equal(qn__body_read(r, QN__BODY_IMAGE, "age\n1\n", 6, &data, &err), QN_INPUT);
    assert_int_equal(qn__body_read(r, QN__BODY_CSV, "0 1:0.5\n1 2:3\n", 14, &data, &err), QN_INPUT);
    qn__body_reader_free(r);
    qn_model_free(model);
}

/* Images of a network without their file: a BMP file of 2 x 2 colours, and tensors. */
static void test_images(void **unused) {
    enum { ITEMS = 8, EACH = 12 };
    static const uint8_t bmp[70] = {'B', 'M', 70, 0, 0, 0, 0, 0,  0,  0,        54, 0, 0,
                                    0,   40,  0,  0, 0, 2, 0, 0,  0,  2,        0,  0, 0,
                                    1,   0,   24, 0, 0, 0, 0, 0,  16, [54] = 3, 2,  1, 6,
                                    5,   4,   0,  0, 9, 8, 7, 12, 11, 10,       0,  0};
    /* channel, row, column; the lowest row of a BMP file comes first, as blue, green, red */
    static const uint8_t planes[EACH] = {7, 10, 1, 4, 8, 11, 2, 5, 9, 12, 3, 6};
    float floats[EACH], want, got;
    uint8_t values[ITEMS * EACH];
    int32_t labels[ITEMS];
    qn_data_arrays arrays;
    qn_data *data;
    qn_model *model = NULL;
    qn_train_options o;
    qn_train *t = NULL;
    qn__body_reader *r = NULL;
    qn_error err;
    (void)unused;
    for (int k = 0; k < ITEMS * EACH; ++k)
        values[k] = (uint8_t)(k * 53);
    for (int k = 0; k < ITEMS; ++k)
        labels[k] = k % 2;
    for (int k = 0; k < EACH; ++k)
        floats[k] = planes[k];
    qn_data_arrays_init(&arrays);
    arrays.type = QN_U8;
    arrays.items = ITEMS;
    arrays.features = EACH;
    arrays.values = values;
    arrays.labels = labels;
    assert_int_equal(qn_data_lend(&arrays, &data, &err), QN_OK);
    data->channels = 3; /* as a reader of images says it */
    data->rows = data->columns = 2;
    qn_train_options_init(&o);
    o.model = "conv 2 1x1 relu; dense 2 softmax";
    o.epochs = 1;
    if (qn_train_open(&o, data, NULL, NULL, &t, &err) != QN_OK)
        fail_msg("%s %s", err.what, err.remedy);
    assert_int_equal(qn_train_run(t, NULL), QN_OK);
    assert_int_equal(qn_train_model(t, &model, NULL), QN_OK);
    qn_train_close(t);
    qn_data_close(data);
    assert_int_equal(qn__body_reader_make(model, &r, &err), QN_OK);

    qn__body_kind kind;
    static const struct {
        const char *line;
        int is_header;
    } first[] = {{"x,y\n", 1},    {"\xef\xbb\xbf\"x\";y2\r\n", 1},
                 {"1,2\n", 0},    {"1,5;2,5\n", 0},
                 {"-1,5;2,5", 0}, {"2026-01-02\n", 0},
                 {"NA,NA\n", 0},  {"x,3\n", 0},
                 {"\n", 0}};
    for (size_t k = 0; k < sizeof first / sizeof *first; ++k)
        if (qn__body_is_header(r, first[k].line, strlen(first[k].line)) != first[k].is_header)
            fail_msg("%s", first[k].line);
    assert_int_equal(qn__body_kind_of(NULL, bmp, sizeof bmp, &kind, &err), QN_OK);
    assert_int_equal(kind, QN__BODY_IMAGE);
    if (qn__body_read(r, kind, bmp, sizeof bmp, &data, &err) != QN_OK)
        fail_msg("%s %s %s", err.where, err.what, err.remedy);
    assert_memory_equal(qn_data_values(data), planes, EACH);
    outputs_of(model, data, &want);
    qn_data_close(data);

    const struct {
        qn__body_tensor tensor;
        uint64_t shape[4];
        qn_status status;
    } sent[] = {{{"UINT8", NULL, 2, planes, EACH}, {1, EACH}, QN_OK},
                {{"UINT8", NULL, 4, planes, EACH}, {1, 3, 2, 2}, QN_OK},
                {{"FP32", NULL, 4, floats, sizeof floats}, {1, 3, 2, 2}, QN_OK},
                {{"UINT8", NULL, 4, planes, EACH}, {1, 2, 2, 3}, QN_MISMATCH},
                {{"UINT8", NULL, 1, planes, EACH}, {EACH}, QN_MISMATCH},
                {{"UINT8", NULL, 2, planes, EACH - 1}, {1, EACH}, QN_INPUT},
                {{"UINT8", NULL, 2, planes, EACH}, {1ull << 63, EACH}, QN_INPUT},
                {{"BYTES", NULL, 2, planes, EACH}, {1, EACH}, QN_UNSUPPORTED}};
    for (size_t k = 0; k < sizeof sent / sizeof *sent; ++k) {
        qn__body_tensor tensor = sent[k].tensor;
        tensor.shape = sent[k].shape;
        assert_int_equal(qn__body_of_tensor(r, &tensor, &data, &err), sent[k].status);
        if (sent[k].status != QN_OK)
            continue;
        outputs_of(model, data, &got);
        assert_memory_equal(&got, &want, sizeof want);
        qn_data_close(data);
    }
    qn__body_reader_free(r);
    qn_model_free(model);
}

/* A text alone, and tokens of unequal numbers. */
static void test_texts(void **unused) {
    static const char reviews[] = "label,text\n"
                                  "good,a fine film of \"\"joy\"\"\nbad,a dull long film\n"
                                  "good,joy and light\nbad,long and dull\n";
    static const qn__body_text texts[2] = {{"fine \"joy\"", 10}, {"a 7", 3}};
    static const char rows[] = "[{\"text\":\"fine \\\"joy\\\"\"},{\"text\":\"a 7\"}]";
    qn_model *model = train_on(reviews, "embedding 60 8; pool mean; dense 2 softmax", "words:50");
    qn__body_reader *r = NULL;
    float want[2] = {0}, got[2] = {1, 1};
    qn_data *data;
    qn_error err;
    (void)unused;
    assert_int_equal(qn__body_reader_make(model, &r, &err), QN_OK);
    if (qn__body_of_texts(r, texts, 2, &data, &err) != QN_OK)
        fail_msg("%s %s %s", err.where, err.what, err.remedy);
    assert_int_equal(qn_data_items(data), 2);
    outputs_of(model, data, want);
    qn_data_close(data);
    if (read_body(r, rows, &data, &err) != QN_OK)
        fail_msg("%s %s %s", err.where, err.what, err.remedy);
    outputs_of(model, data, got);
    assert_memory_equal(got, want, sizeof want);
    qn_data_close(data);
    if (read_body(r, "text\n\"fine \"\"joy\"\"\"\na 7\n", &data, &err) != QN_OK)
        fail_msg("%s %s %s", err.where, err.what, err.remedy);
    outputs_of(model, data, got);
    assert_memory_equal(got, want, sizeof want);
    qn_data_close(data);

    const int64_t tokens[2] = {3, 1}, wrong[2] = {3, 1 << 20};
    const uint64_t shape[2] = {1, 2};
    const qn__body_tensor good = {"INT64", shape, 2, tokens, sizeof tokens};
    const qn__body_tensor bad = {"INT64", shape, 2, wrong, sizeof wrong};
    if (qn__body_of_tensor(r, &good, &data, &err) != QN_OK)
        fail_msg("%s %s %s", err.where, err.what, err.remedy);
    outputs_of(model, data, got);
    qn_data_close(data);
    assert_int_equal(qn__body_of_tensor(r, &bad, &data, &err), QN_INPUT);
    assert_string_equal(err.where, "item 0, value 1 (from 0)");
    qn__body_reader_free(r);
    qn_model_free(model);
}

static void test_json(void **unused) {
    static const int32_t classes[2] = {1, -1};
    static const float scores[2] = {0.75f, -0.0f}, outputs[4] = {0.25f, 0.75f, -0.0f, 1e-9f};
    const qn__batch_answer a = {
        .items = 2, .classes = classes, .scores = scores, .outputs = outputs};
    qn_model *model = train_on(people, "dense 2 softmax", NULL);
    qn__text text = {0};
    (void)unused;
    qn__answer_add_json(&text, model, NULL, &a, 0, 1);
    assert_string_equal(text.data,
                        "{\"prediction\":\"yes\",\"score\":0.75,\"outputs\":[0.25,0.75]}");
    text.size = 0;
    qn__answer_add_json(&text, model, NULL, &a, 1, 0);
    assert_string_equal(text.data, "{\"prediction\":null,\"score\":0}");
    qn__text_release(&text);
    qn_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_images), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
