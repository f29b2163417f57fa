/* Digests against Python's hashlib, and refused arrays. */
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "data/table/data.h"
#include "data/table/testing.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "data/table/digest_vectors.h"

/* As in tests/data_vectors.py. */
static uint8_t pattern(uint32_t i) { return (uint8_t)(i * 2654435761u >> 13); }

static void test_vectors(void **state) {
    (void)state;
    for (size_t v = 0; v < sizeof digest_vectors / sizeof *digest_vectors; v++) {
        size_t count = (size_t)(digest_vectors[v].items * digest_vectors[v].features);
        qn_data_type type = digest_vectors[v].type == 1 ? QN_U8 : QN_F32;
        uint8_t *bytes = qn__alloc(count, 1, NULL);
        float *floats = qn__alloc(count, sizeof *floats, NULL);
        int32_t *labels = qn__alloc(digest_vectors[v].items, sizeof *labels, NULL);
        for (uint32_t i = 0; i < count; i++) {
            bytes[i] = pattern(i);
            floats[i] = (float)(pattern(i) - 100) / 8;
        }
        for (uint32_t i = 0; i < digest_vectors[v].items; i++)
            labels[i] = pattern(i) % 10;
        qn_data *data;
        assert_int_equal(
            qn_data_from_arrays(type, digest_vectors[v].items, digest_vectors[v].features,
                                type == QN_U8 ? (const void *)bytes : floats,
                                digest_vectors[v].labelled ? labels : NULL, &data, NULL),
            QN_OK);
        assert_string_equal(qn_data_digest(data), digest_vectors[v].digest);
        qn__pool *pool;
        char text[65];
        assert_int_equal(qn__pool_create(3, 0, &pool, NULL), QN_OK);
        qn__data_digest(data, pool, text);
        assert_string_equal(text, digest_vectors[v].digest);
        qn__pool_destroy(pool);
        qn_data_close(data);
        qn__free(bytes);
        qn__free(floats);
        qn__free(labels);
    }
}

/* Digests of blocks are kept for so many at once. All are of the same zeros, but the last. */
static void test_many_blocks(void **state) {
    (void)state;
    enum { BLOCK = 1 << 20, BLOCKS = 257, LAST = 5 };
    const size_t size = (size_t)BLOCK * (BLOCKS - 1) + LAST;
    uint8_t *zeros = calloc(size + QN__DATA_MARGIN, 1), block[32], last[32], values[32], found[32];
    const qn_data table = {.type = QN_U8, .items = size, .features = 1, .values = zeros};
    qn__pool *pool;
    qn__sha256 wanted;
    assert_non_null(zeros);
    qn__sha256_of(zeros, BLOCK, block);
    qn__sha256_of(zeros, LAST, last);
    qn__sha256_begin(&wanted);
    for (int i = 0; i < BLOCKS; i++)
        qn__sha256_add(&wanted, i < BLOCKS - 1 ? block : last, 32);
    qn__sha256_end(&wanted, values);
    assert_int_equal(qn__pool_create(2, 0, &pool, NULL), QN_OK);
    qn__data_values_digest(&table, pool, found);
    qn__pool_destroy(pool);
    assert_memory_equal(found, values, 32);
    free(zeros);
}

static void *ask(void *data) { return (void *)(uintptr_t)qn_data_digest(data); }

/* Views have the digest of their table, whoever asks first; two threads ask at once. */
static void test_late(void **state) {
    (void)state;
    enum { ITEMS = 3000, FEATURES = 600 };
    uint8_t *values = qn__alloc(ITEMS, FEATURES, NULL);
    const uint64_t marks[ITEMS / 64 + 1] = {5};
    char wanted[65];
    qn_data *data;
    pthread_t thread;
    void *other;
    for (uint32_t i = 0; i < ITEMS * FEATURES; i++)
        values[i] = pattern(i);
    assert_int_equal(qn_data_from_arrays(QN_U8, ITEMS, FEATURES, values, NULL, &data, NULL), QN_OK);
    qn_data *view = qn__data_view(data, marks, 1, 2, NULL);
    assert_non_null(view);
    assert_int_equal(pthread_create(&thread, NULL, ask, data), 0);
    const char *digest = qn_data_digest(view);
    assert_int_equal(pthread_join(thread, &other), 0);
    qn__data_digest(data, NULL, wanted);
    assert_string_equal(digest, wanted);
    assert_ptr_equal(other, digest);
    qn_data_close(view);
    qn_data_close(data);
    qn__free(values);
}

static void test_refusals(void **state) {
    (void)state;
    const float values[4] = {0, 1, 2, 3}, odd[4] = {0, 1, NAN, 3}, endless[2] = {0, -INFINITY};
    const int32_t labels[2] = {0, 1}, negative[2] = {0, -1};
    qn_data *data;
    qn_error err;
    assert_int_equal(qn_data_from_arrays(QN_F32, 2, 2, values, labels, &data, &err), QN_OK);
    assert_int_equal(qn_data_classes(data), 2);
    qn_data_close(data);
    assert_int_equal(qn_data_from_arrays(QN_F32, 2, 2, odd, labels, &data, &err), QN_INPUT);
    assert_null(data);
    assert_string_equal(err.where, "item 1, feature 0");
    assert_int_equal(qn_data_from_arrays(QN_F32, 1, 2, endless, NULL, &data, &err), QN_INPUT);
    assert_int_equal(qn_data_from_arrays(QN_F32, 2, 2, values, negative, &data, &err), QN_INPUT);
    assert_string_equal(err.where, "item 1");
    assert_int_equal(qn_data_from_arrays(QN_F32, 0, 2, values, NULL, &data, &err), QN_INPUT);
    assert_int_equal(qn_data_from_arrays(QN_F32, 2, 0, values, NULL, &data, &err), QN_INPUT);
    assert_int_equal(
        qn_data_from_arrays(QN_U8, UINT64_MAX / 2, UINT32_MAX, values, NULL, &data, &err),
        QN_INPUT);
    assert_int_equal(qn_data_from_arrays((qn_data_type)9, 2, 2, values, NULL, &data, &err),
                     QN_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
