/* Written data reads back as the same data; what cannot be written is refused before the first
 * byte. */
#include "data/data.h"
#include "data/testing.h"

/* Writes as CSV or IDX, reads again, compares the digests, removes the files. */
static void check_csv(const qn_data *data) {
    char path[64];
    strcpy(path, in_folder("out.csv"));
    qn_error err;
    assert_int_equal(qn_data_write_csv(data, path, &err), QN_OK);
    qn_data_options options;
    qn_data_options_init(&options);
    options.unlabelled = qn_data_labels(data) == NULL;
    qn_data *back;
    assert_int_equal(qn_data_open(path, &options, &back, &err), QN_OK);
    assert_string_equal(qn_data_digest(back), qn_data_digest(data));
    qn_data_close(back);
    assert_int_equal(unlink(path), 0);
}

static void check_idx(const qn_data *data, int with_labels) {
    char images[64], labels[64];
    strcpy(images, in_folder("out.idx"));
    strcpy(labels, in_folder("out.labels"));
    qn_error err;
    assert_int_equal(qn_data_write_idx(data, images, with_labels ? labels : NULL, &err), QN_OK);
    if (with_labels) {
        assert_int_equal(qn_data_write_idx(data, images, images, &err), QN_USAGE);
        assert_non_null(strstr(err.what, "one file"));
    }
    qn_data_options options;
    qn_data_options_init(&options);
    options.labels_path = with_labels ? labels : NULL;
    qn_data *back;
    assert_int_equal(qn_data_open(images, &options, &back, &err), QN_OK);
    assert_memory_equal(qn_data_values(back), qn_data_values(data),
                        (size_t)qn_data_items(data) * qn_data_features(data));
    assert_int_equal(back->rows, data->rows);
    if (with_labels) {
        assert_string_equal(qn_data_digest(back), qn_data_digest(data));
        assert_int_equal(unlink(labels), 0);
    }
    qn_data_close(back);
    assert_int_equal(unlink(images), 0);
}

static void test_digits(void **state) {
    (void)state;
    qn_data *data;
    assert_int_equal(qn_data_synth_digits(3, 0, 300, &data, NULL), QN_OK);
    check_csv(data);
    check_idx(data, 0);
    check_idx(data, 1);
    qn_data_close(data);
}

/* All classes of floats keep their bits. */
static void test_floats(void **state) {
    (void)state;
    static const float values[] = {0.1f,  -0.0f,    0x1p-149f, 0x1.fffffep127f,
                                   1e20f, 16777218, -3.25f,    0x1.000002p0f,
                                   255,   1.0f / 3, 1e-10f,    12345.678f};
    static const int32_t labels[] = {3, 0, 2};
    qn_data *data;
    assert_int_equal(qn_data_from_arrays(QN_F32, 3, 4, values, labels, &data, NULL), QN_OK);
    check_csv(data);
    qn_error err;
    assert_int_equal(qn_data_write_idx(data, in_folder("no.idx"), NULL, &err), QN_INPUT);
    assert_non_null(strstr(err.remedy, "CSV"));
    qn_data_close(data);
    assert_int_equal(qn_data_from_arrays(QN_F32, 3, 4, values, NULL, &data, NULL), QN_OK);
    check_csv(data);
    qn_data_close(data);
}

/* Names, categories, classes, missing values and targets read back as they were. */
static void test_typed(void **state) {
    (void)state;
    static const char *const texts[] = {
        "kind,\"a,b\",city,size\ncat,1,\"B\"\"ern\"\"\",\ndog,,\"x;y\",-0.5\ncat,3,,2\n",
        "price,city\n1.5,\" Bern\"\n-2.25,Basel\n1e10,\n",
        "y,x\n-1,2\n900,4\n-1,5\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        qn_data *data;
        qn__text before = {0}, after = {0};
        assert_int_equal(open_bytes("t.csv", texts[i], strlen(texts[i]), NULL, &data, NULL), QN_OK);
        assert_int_equal(qn_data_write_csv(data, in_folder("w.csv"), NULL), QN_OK);
        qn_data *again;
        assert_int_equal(qn_data_open(in_folder("w.csv"), NULL, &again, NULL), QN_OK);
        qn__schema_add_json(data->schema, &before);
        qn__schema_add_json(again->schema, &after);
        assert_string_equal(before.data, after.data);
        assert_string_equal(qn_data_digest(data), qn_data_digest(again));
        qn__text_release(&before);
        qn__text_release(&after);
        qn_data_close(data);
        qn_data_close(again);
        assert_int_equal(unlink(in_folder("w.csv")), 0);
    }
}

static void test_header(void **state) {
    (void)state;
    static const uint8_t values[] = {1, 2, 3, 4};
    static const int32_t labels[] = {5, 300};
    qn_data *data;
    qn_error err;
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 2, values, labels, &data, NULL), QN_OK);
    assert_int_equal(qn_data_write_csv(data, in_folder("head.csv"), &err), QN_OK);
    char text[64] = "";
    FILE *file = fopen(in_folder("head.csv"), "rb");
    assert_non_null(file);
    fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_int_equal(unlink(in_folder("head.csv")), 0);
    assert_string_equal(text, "label,f0,f1\n5,1,2\n300,3,4\n");
    assert_int_equal(qn_data_write_idx(data, in_folder("a"), "b", &err), QN_INPUT); /* label 300 */
    assert_non_null(strstr(err.remedy, "CSV"));
    qn_data_close(data);
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 2, values, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn_data_write_idx(data, in_folder("a"), "b", &err), QN_INPUT); /* no labels */
    assert_non_null(strstr(err.remedy, "`data.labels_path`"));
    assert_int_not_equal(qn_data_write_csv(data, "no/such/folder/x.csv", &err), QN_OK);
    assert_true(strlen(err.what) > 0);
    qn_data_close(data);
}

/* A view is written with its own items. */
static void test_view(void **state) {
    (void)state;
    static const uint8_t values[] = {1, 2, 3, 4, 5, 6};
    qn_data *data, *train, *valid;
    assert_int_equal(qn_data_from_arrays(QN_U8, 6, 1, values, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn__data_split(data, 0.34f, 1, &train, &valid, NULL), QN_OK);
    assert_int_equal(qn_data_write_idx(train, in_folder("view"), NULL, NULL), QN_OK);
    qn_data *back;
    assert_int_equal(qn_data_open(in_folder("view"), NULL, &back, NULL), QN_OK);
    assert_int_equal(qn_data_items(back), 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(*(const uint8_t *)qn__data_item(back, i),
                         *(const uint8_t *)qn__data_item(train, i));
    assert_int_equal(unlink(in_folder("view")), 0);
    qn_data_close(back);
    qn_data_close(train);
    qn_data_close(valid);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits), cmocka_unit_test(test_floats), cmocka_unit_test(test_typed),
        cmocka_unit_test(test_header), cmocka_unit_test(test_view),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
