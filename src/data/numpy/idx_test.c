/* The IDX reader: images, labels, and false headers. */
#include "data/table/testing.h"

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__})

typedef struct bad {
    const uint8_t *bytes;
    size_t size;
    const char *what, *where, *remedy;
} bad;

/* 2 images of 2x3, then their elements 0..11. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0,  0,
                                 0, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 200};

static void test_images(void **state) {
    (void)state;
    qn_data *data;
    qn_error err;
    assert_int_equal(open_bytes("images", images, sizeof images, NULL, &data, &err), QN_OK);
    assert_int_equal(qn_data_items(data), 2);
    assert_int_equal(qn_data_features(data), 6);
    assert_int_equal(qn_data_type_of(data), QN_U8);
    assert_memory_equal(qn_data_values(data), images + 16, 12);
    assert_null(qn_data_labels(data));
    assert_int_equal(qn_data_classes(data), 0);
    assert_string_equal(qn_data_format(data), "idx");
    uint32_t rows, columns;
    qn_data_image_size(data, &rows, &columns);
    assert_int_equal(rows, 2);
    assert_int_equal(columns, 3);
    check_whole(data);
    qn_data_close(data);
}

/* One dimension is a table of one feature; four are flattened, without an image size. */
static void test_dimensions(void **state) {
    (void)state;
    qn_data *data;
    assert_int_equal(open_bytes("d1", labels, sizeof labels, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn_data_features(data), 1);
    assert_int_equal(((const uint8_t *)qn_data_values(data))[1], 200);
    qn_data_close(data);
    const uint8_t *four =
        BYTES(0, 0, 8, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 9, 8, 7, 6);
    assert_int_equal(open_bytes("d4", four, 24, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn_data_features(data), 4);
    uint32_t rows, columns;
    qn_data_image_size(data, &rows, &columns);
    assert_int_equal(rows + columns, 0);
    qn_data_close(data);
}

static qn_status open_pair(const uint8_t *bytes, size_t size, qn_data **data, qn_error *err) {
    char path[64];
    strcpy(path, in_folder("labels"));
    write_file(path, bytes, size);
    qn_data_options options;
    qn_data_options_init(&options);
    options.labels_path = path;
    qn_status status = open_bytes("images", images, sizeof images, &options, data, err);
    unlink(path);
    return status;
}

static void test_labels(void **state) {
    (void)state;
    qn_data *data;
    qn_error err;
    assert_int_equal(open_pair(labels, sizeof labels, &data, &err), QN_OK);
    assert_int_equal(qn_data_labels(data)[0], 7);
    assert_int_equal(qn_data_labels(data)[1], 200);
    assert_int_equal(qn_data_classes(data), 201);
    qn_data_close(data);
}

static void check_bad(const bad *b, size_t i, qn_status status, const qn_data *data,
                      const qn_error *err) {
    if (status != QN_INPUT)
        fail_msg("case %zu was taken", i);
    check_refusal(status, data, err);
    if (!strstr(err->what, b->what) || !strstr(err->where, b->where) ||
        !strstr(err->remedy, b->remedy))
        fail_msg("case %zu: %s / %s / %s", i, err->what, err->where, err->remedy);
}

static void test_bad_labels(void **state) {
    (void)state;
    const bad bads[] = {
        {BYTES(0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3), 11, "3 labels for 2 items", "byte 4",
         "`data.labels_path`"},
        {BYTES(0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 1, 2), 14, "one dimension", "byte 3",
         "`data.labels_path`"},
        {BYTES('1', '\n', '2', '\n'), 4, "not IDX", "byte 0", "`data.label_column`"},
        {BYTES(0), 1, "not IDX", "byte 0", "`data.label_column`"},
        {BYTES(0, 0, 8, 1, 0, 0, 0, 2, 1), 9, "only 1", "byte 9", "cut off"},
    };
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        qn_data *data;
        qn_error err;
        qn_status status = open_pair(bads[i].bytes, bads[i].size, &data, &err);
        check_bad(&bads[i], i, status, data, &err);
        assert_non_null(strstr(err.where, "labels"));
    }
}

static void test_bad(void **state) {
    (void)state;
    const bad bads[] = {
        {BYTES(0, 0), 2, "ends inside", "byte 2", "again"},
        {BYTES(0, 0, 8), 3, "ends inside", "byte 3", "again"},
        {BYTES(0, 0, 8, 3, 0, 0, 0, 2, 0), 9, "ends inside", "byte 9", "again"},
        {BYTES(0, 0, 8, 0, 1, 2), 6, "no dimensions", "byte 3", ""},
        {BYTES(0, 0, 0x0D, 1, 0, 0, 0, 1, 0, 0, 0, 0), 12, "32-bit floats", "byte 2", "CSV"},
        {BYTES(0, 0, 9, 1, 0, 0, 0, 1, 0), 9, "signed bytes", "byte 2", "CSV"},
        {BYTES(0, 0, 7, 1, 0, 0, 0, 1, 0), 9, "not a type", "byte 2", "IDX"},
        {BYTES(0, 0, 8, 1, 0, 0, 0, 0), 8, "no items", "byte 4", "at least one"},
        {BYTES(0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 0), 12, "dimension 1", "byte 8", ""},
        {BYTES(0, 0, 8, 1, 0, 0, 0, 5, 1, 2), 10, "only 2", "byte 10", "cut off"},
        {BYTES(0, 0, 8, 1, 0, 0, 0, 1, 1, 2), 10, "at least 2", "byte 9", "nothing else"},
        /* 2^32 - 1 items of 2^32 - 1 bytes; 2^40 items in two dimensions; items of 2^64 bytes */
        {BYTES(0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255, 1), 13, "only 1", "byte 13", ""},
        {BYTES(0, 0, 8, 3, 255, 255, 255, 255, 0, 1, 0, 0, 0, 0, 1, 0, 1), 17, "only 1", "", ""},
        {BYTES(0, 0, 8, 3, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 1), 17,
         "items of more than", "byte 12", ""},
    };
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        qn_data *data;
        qn_error err;
        qn_status status = open_bytes("bad", bads[i].bytes, bads[i].size, NULL, &data, &err);
        check_bad(&bads[i], i, status, data, &err);
    }
    qn_data *data;
    qn_error err;
    qn_data_options options;
    qn_data_options_init(&options);
    options.label_column = "last";
    qn_status status = open_bytes("images", images, sizeof images, &options, &data, &err);
    check_refusal(status, data, &err);
    assert_non_null(strstr(err.remedy, "`data.labels_path`"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images), cmocka_unit_test(test_dimensions),
        cmocka_unit_test(test_labels), cmocka_unit_test(test_bad_labels),
        cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
