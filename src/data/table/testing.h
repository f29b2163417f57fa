/* Helpers of the data tests: files in a folder of their own, opened and compared. */
#ifndef QN_DATA_TABLE_TESTING_H
#define QN_DATA_TABLE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <quern/data.h>

static char test_folder[32];
static char test_path[64];

static inline int make_folder(void **state) {
    (void)state;
    strcpy(test_folder, "quern-data-XXXXXX");
    return mkdtemp(test_folder) ? 0 : -1;
}

static inline int remove_folder(void **state) {
    (void)state;
    return rmdir(test_folder); /* fails if a test left a file */
}

/* The path of a file in the test's folder; valid until the next call. */
static inline const char *in_folder(const char *name) {
    snprintf(test_path, sizeof test_path, "%s/%s", test_folder, name);
    return test_path;
}

static inline void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Opens `bytes` as a file named `name` and removes it again. */
static inline qn_status open_bytes(const char *name, const void *bytes, size_t size,
                                   const qn_data_options *options, qn_data **out, qn_error *err) {
    char path[sizeof test_path];
    strcpy(path, in_folder(name));
    write_file(path, bytes, size);
    qn_status status = qn_data_open(path, options, out, err);
    assert_int_equal(unlink(path), 0);
    return status;
}

/* Checks that a data set has items, features, a digest and labels below its classes. */
static inline void check_whole(const qn_data *data) {
    assert_true(qn_data_items(data) > 0);
    assert_true(qn_data_features(data) > 0);
    assert_int_equal(strlen(qn_data_digest(data)), 64);
    assert_non_null(qn_data_format(data));
    const int32_t *labels = qn_data_labels(data);
    for (uint64_t i = 0; labels && i < qn_data_items(data); i++)
        assert_true(labels[i] >= 0 && (uint32_t)labels[i] < qn_data_classes(data));
    size_t count = (size_t)qn_data_items(data) * qn_data_features(data);
    const float *floats = qn_data_values(data);
    for (size_t i = 0; qn_data_type_of(data) == QN_F32 && i < count; i++)
        assert_true(floats[i] - floats[i] == 0 || memcmp(&floats[i], "\0\0\xC0\x7F", 4) == 0);
    const uint8_t *bytes = qn_data_values(data);
    volatile uint8_t last = bytes[count - 1]; /* so that a sanitizer checks it */
    (void)last;
}

/* A failure must have a message, and leave nothing to release. */
static inline void check_refusal(qn_status status, const qn_data *data, const qn_error *err) {
    assert_int_equal(err->status, status);
    assert_null(data);
    assert_true(strlen(err->what) > 0);
    assert_true(strlen(err->where) > 0);
    assert_true(strlen(err->remedy) > 0);
}

#endif
