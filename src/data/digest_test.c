/* Digests against Python's hashlib, and refused arrays. */
#include "data/data.h"
#include "base/memory.h"
#include "data/testing.h"
#include <math.h>

#include "data/digest_vectors.h"

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
        assert_int_equal(qn__data_digest(data, pool, text, NULL), QN_OK);
        assert_string_equal(text, digest_vectors[v].digest);
        qn__pool_destroy(pool);
        qn_data_close(data);
        qn__free(bytes);
        qn__free(floats);
        qn__free(labels);
    }
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
    assert_int_equal(qn_data_from_arrays((qn_data_type)3, 2, 2, values, NULL, &data, &err),
                     QN_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
