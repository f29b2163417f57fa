/* Tensor files: written bytes against a literal, and malicious files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest/sha256.h"
#include "base/files/file.h"
#include "model/formats/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -------------------------------------------------------------------------------------- writing */

static const float one[6] = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f};
static const float two[3] = {-1, 0.5f, 0x1.16c2p-133f}; /* the last is subnormal: 0x000116c2 */

static const qn__tensor_note notes[2] = {{"format", "quern-test-00001"},
                                         {"said", "a \"b\" \\ c\n"}};
static const qn__tensor tensors[2] = {{.name = "one", .rows = 2, .columns = 3, .data = one},
                                      {.name = "two", .rows = 3, .columns = 0, .data = two}};
static const qn__tensor_list list = {2, notes, 2, tensors, NULL, NULL};

#define HEADER                                                                                     \
    "{\"__metadata__\":{\"format\":\"quern-test-00001\",\"said\":\"a \\\"b\\\" \\\\ c\\n\"},"      \
    "\"one\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"                         \
    "\"two\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]}}"
#define DATA                                                                                       \
    "\0\0\0\0\0\0\x80\x3e\0\0\0\x3f\0\0\x40\x3f\0\0\x80\x3f\0\0\xa0\x3f"                           \
    "\0\0\x80\xbf\0\0\0\x3f\xc2\x16\x01\0"

/* The expected bytes of the list; returns their number. */
static size_t expected_file(uint8_t *out) {
    const size_t header = (strlen(HEADER) + 7) / 8 * 8;
    memset(out, 0, 8);
    out[0] = (uint8_t)header;
    memset(out + 8, ' ', header);
    memcpy(out + 8, HEADER, strlen(HEADER));
    memcpy(out + 8 + header, DATA, sizeof DATA - 1);
    return 8 + header + sizeof DATA - 1;
}

static void test_written_bytes(void **state) {
    (void)state;
    const char *path = "safetensors_test.tmp";
    uint8_t expected[512], digest[32], again[32], hash[32];
    char hex[65];
    qn__bytes bytes;
    const size_t size = expected_file(expected);
    assert_true(strlen(HEADER) < 256 && strlen(HEADER) % 8 != 0);
    assert_int_equal(qn__tensors_write(path, &list, digest, NULL), QN_OK);
    assert_int_equal(qn__file_read(path, &bytes, NULL), QN_OK);
    assert_int_equal(bytes.size, size);
    assert_memory_equal(bytes.data, expected, size);
    qn__sha256_of(expected, size, hash);
    assert_memory_equal(digest, hash, 32);
    assert_int_equal(qn__tensors_digest(&list, again, NULL), QN_OK);
    assert_memory_equal(again, hash, 32);
    /* Python's json and hashlib made the same file. */
    qn__hex(hash, hex);
    assert_string_equal(hex, "19bea8a25976b0848ab542bdc90e08e1030f65e0ccc8026827472444d2c005c3");
    qn__bytes_release(&bytes);
    unlink(path);
}

static void test_write_failure(void **state) {
    (void)state;
    qn_error err = {0};
    assert_int_equal(qn__tensors_write("no-such-folder/x", &list, NULL, &err), QN_IO);
    assert_int_equal(err.status, QN_IO);
    assert_true(err.what[0] != '\0');
}

static void test_read_back(void **state) {
    (void)state;
    uint8_t file[512], digest[32], hash[32];
    const size_t size = expected_file(file);
    qn__tensors *t;
    assert_int_equal(qn__tensors_from_bytes(file, size, "file", &t, NULL), QN_OK);
    assert_int_equal(qn__tensors_count(t), 2);
    assert_string_equal(qn__tensors_note(t, "said"), "a \"b\" \\ c\n");
    assert_null(qn__tensors_note(t, "one"));
    const qn__tensor_view *view = qn__tensors_find(t, "one");
    assert_non_null(view);
    assert_true(view->rows == 2 && view->columns == 3 && view->count == 6);
    assert_memory_equal(view->bytes, one, sizeof one);
    view = qn__tensors_at(t, 1);
    assert_string_equal(view->name, "two");
    assert_true(view->rows == 3 && view->columns == 0 && view->count == 3);
    assert_memory_equal(view->bytes, two, sizeof two);
    assert_null(qn__tensors_at(t, 2));
    assert_null(qn__tensors_find(t, "three"));
    qn__tensors_file_digest(t, digest);
    qn__sha256_of(file, size, hash);
    assert_memory_equal(digest, hash, 32);
    qn__tensors_free(t);
    qn__tensors_free(NULL);
}

/* ------------------------------------------------------------------------------ malicious files */

/* A file of a header and `data` zero bytes, in a block of exactly its size, so that the address
 * sanitizer detects every read beyond it. */
static qn_status read_made(uint64_t length, const char *header, size_t data, qn_error *err) {
    const size_t text = strlen(header), size = 8 + text + data;
    uint8_t *file = calloc(1, size);
    qn__tensors *t = (qn__tensors *)1;
    for (int i = 0; i < 8; ++i)
        file[i] = (uint8_t)(length >> (8 * i));
    memcpy(file + 8, header, text);
    const qn_status status = qn__tensors_from_bytes(file, size, "bad.file", &t, err);
    if (status == QN_OK)
        qn__tensors_free(t);
    else
        assert_null(t);
    free(file);
    return status;
}

static void check_bad(const char *header, size_t data, const char *what, const char *where) {
    qn_error err = {0};
    if (read_made(strlen(header), header, data, &err) != QN_FORMAT)
        fail_msg("accepted: %s", header);
    assert_int_equal(err.status, QN_FORMAT);
    if (strstr(err.what, what) == NULL || strstr(err.where, where) == NULL)
        fail_msg("%s: \"%s\" at \"%s\"", header, err.what, err.where);
    assert_true(err.remedy[0] != '\0');
    assert_int_equal(read_made(strlen(header), header, data, NULL), QN_FORMAT);
}

#define T(shape, offsets) "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_lengths(void **state) {
    (void)state;
    static const uint64_t lengths[] = {3,          9,          1u << 20,   (1u << 20) + 1,
                                       UINT32_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};
    qn_error err;
    qn__tensors *t;
    assert_int_equal(read_made(2, "{}", 0, NULL), QN_OK);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; ++i) {
        assert_int_equal(read_made(lengths[i], "{}", 0, &err), QN_FORMAT);
        assert_string_equal(err.what, "the header would be longer than the file");
    }
    assert_int_equal(read_made(0, "{}", 0, &err), QN_FORMAT);
    assert_string_equal(err.what, "the header does not begin with {");
    for (size_t size = 0; size < 8; ++size) {
        assert_int_equal(
            qn__tensors_from_bytes((const uint8_t *)"\2\0\0\0\0\0\0\0", size, "f", &t, &err),
            QN_FORMAT);
        assert_string_equal(err.what, "the file is too short for a header");
    }
    assert_int_equal(qn__tensors_from_bytes((const uint8_t *)"label,a\n1,2\n", 12, "f", &t, &err),
                     QN_FORMAT);
    assert_string_equal(err.what, "this is not a model: the file is text, such as a CSV table");
    assert_int_equal(
        qn__tensors_from_bytes((const uint8_t *)"\0\0\x08\x01\0\0\0\1\7", 9, "f", &t, &err),
        QN_FORMAT);
    assert_string_equal(err.what, "this is not a model: the file is an IDX file");
    assert_int_equal(qn__tensors_from_bytes((const uint8_t *)"\x1f\x8b\x08", 3, "f", &t, &err),
                     QN_FORMAT);
    assert_string_equal(err.what, "this is not a model: the file is a gzip file");
    uint8_t tar[512] = "photos/7.png";
    memcpy(tar + 257, "ustar", 5);
    assert_int_equal(qn__tensors_from_bytes(tar, sizeof tar, "f", &t, &err), QN_FORMAT);
    assert_string_equal(err.what, "this is not a model: the file is a tar archive");
    assert_int_equal(qn__tensors_from_bytes((const uint8_t *)"PK\3\4\24", 5, "f", &t, &err),
                     QN_FORMAT);
    assert_string_equal(err.what,
                        "this is not a model: the file is a ZIP archive, such as torch.save "
                        "and numpy.savez write");
    /* A header that is there but longer than any of ours. */
    char *longest = malloc((1 << 25) + 9);
    memset(longest, ' ', (1 << 25) + 8);
    memcpy(longest, "{}", 2);
    longest[(1 << 25) + 8] = '\0';
    assert_int_equal(read_made(1 << 25, longest, 0, &err), QN_FORMAT);
    assert_string_equal(err.what, "there are bytes after the last tensor");
    assert_int_equal(read_made((1 << 25) + 8, longest, 0, &err), QN_FORMAT);
    assert_string_equal(err.what, "the header is longer than 32 MiB");
    free(longest);
}

static void test_bad_headers(void **state) {
    (void)state;
    check_bad("[]", 0, "does not begin with {", "bad.file");
    check_bad(" {}", 0, "does not begin with {", "bad.file");
    check_bad("{\"a\":", 0, "not valid JSON", "bad.file");
    check_bad("{\"a\":1}", 0, "dtype, shape and data_offsets", "tensor \"a\"");
    check_bad("{\"a\":[]}", 0, "dtype, shape and data_offsets", "tensor \"a\"");
    check_bad("{\"__metadata__\":7}", 0, "__metadata__ is not an object", "bad.file");
    check_bad("{\"__metadata__\":{\"a\":1}}", 0, "not a string", "bad.file");
    check_bad("{\"__metadata__\":{\"a\":{}}}", 0, "not a string", "bad.file");
    check_bad("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "dtype, shape and", "tensor \"a\"");
    check_bad("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4,
              "no others", "tensor \"a\"");
    check_bad("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "type F32",
              "tensor \"a\"");
    check_bad("{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[0,4]") ",\"a\":" T("[1]", "[4,8]") "}", 8, "not valid JSON", "");
}

static void test_bad_shapes(void **state) {
    (void)state;
    check_bad("{\"a\":" T("[]", "[0,0]") "}", 0, "one, two or four dimensions", "\"a\"");
    check_bad("{\"a\":" T("[1,1,1]", "[0,4]") "}", 4, "one, two or four dimensions", "\"a\"");
    check_bad("{\"a\":" T("[1,1,1,1,1]", "[0,4]") "}", 4, "one, two or four dimensions", "\"a\"");
    check_bad("{\"a\":" T("[1,1,1,0]", "[0,0]") "}", 0, "not a whole number from 1", "\"a\"");
    check_bad("{\"a\":" T("[65536,65536,65536,65536]", "[0,4]") "}", 4, "larger than any file",
              "\"a\"");
    check_bad("{\"a\":" T("7", "[0,4]") "}", 4, "one, two or four dimensions", "\"a\"");
    check_bad("{\"a\":" T("[0]", "[0,0]") "}", 0, "whole number from 1", "\"a\"");
    check_bad("{\"a\":" T("[-1]", "[0,4]") "}", 4, "whole number from 1", "\"a\"");
    check_bad("{\"a\":" T("[1.0]", "[0,4]") "}", 4, "whole number from 1", "\"a\"");
    check_bad("{\"a\":" T("[\"1\"]", "[0,4]") "}", 4, "whole number from 1", "\"a\"");
    check_bad("{\"a\":" T("[1,0]", "[0,4]") "}", 4, "whole number from 1", "\"a\"");
    check_bad("{\"a\":" T("[18446744073709551616]", "[0,4]") "}", 4, "whole number", "\"a\"");
    check_bad("{\"a\":" T("[18446744073709551615]", "[0,4]") "}", 4, "larger than the file",
              "\"a\"");
    check_bad("{\"a\":" T("[4294967296,4294967296]", "[0,4]") "}", 4, "than any file", "\"a\"");
    /* 2^62 + 1 floats are 4 bytes modulo 2^64. */
    check_bad("{\"a\":" T("[4611686018427387905]", "[0,4]") "}", 4, "than the file", "\"a\"");
    check_bad("{\"a\":" T("[2]", "[0,4]") "}", 4, "larger than the file", "\"a\"");
    check_bad("{\"a\":" T("[2]", "[0,4]") "}", 8, "offsets do not fit the shape", "\"a\"");
}

static void test_bad_offsets(void **state) {
    (void)state;
    check_bad("{\"a\":" T("[1]", "7") "}", 4, "not two whole numbers", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[0]") "}", 4, "not two whole numbers", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[0,4,4]") "}", 4, "not two whole numbers", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[0,-4]") "}", 4, "not two whole numbers", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[4,0]") "}", 4, "outside the file", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[4,8]") "}", 4, "outside the file", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[18446744073709551612,18446744073709551615]") "}", 4,
              "outside the file", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[4,8]") "}", 8, "gap before", "\"a\"");
    check_bad("{\"a\":" T("[1]", "[0,4]") "}", 5, "after the last tensor", "bad.file");
    check_bad("{}", 1, "after the last tensor", "bad.file");
    check_bad("{\"a\":" T("[2]", "[0,8]") ",\"b\":" T("[2]", "[4,12]") "}", 12, "overlaps",
              "\"b\"");
    check_bad("{\"a\":" T("[1]", "[0,4]") ",\"b\":" T("[1]", "[0,4]") "}", 4, "overlaps", "");
    check_bad("{\"a\":" T("[1]", "[0,4]") ",\"b\":" T("[1]", "[8,12]") "}", 12, "gap before",
              "\"b\"");
}

/* Tensors may be listed in any order; their bytes decide. */
static void test_order_is_free(void **state) {
    (void)state;
    assert_int_equal(read_made(strlen("{\"b\":" T("[1]", "[4,8]") ",\"a\":" T("[1]", "[0,4]") "}"),
                               "{\"b\":" T("[1]", "[4,8]") ",\"a\":" T("[1]", "[0,4]") "}", 8,
                               NULL),
                     QN_OK);
}

/* Bytes changed, removed and added at random: an accepted file must have all views inside it. */
static void test_mutations(void **state) {
    (void)state;
    uint8_t good[512];
    const size_t size = expected_file(good);
    uint64_t seed = 20261121, accepted = 0, refused = 0;
    for (int round = 0; round < 60000; ++round) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const size_t cut = (seed >> 40) % 5 == 0 ? (size_t)(seed >> 33) % (size + 1) : size;
        uint8_t *file = malloc(cut > 0 ? cut : 1);
        memcpy(file, good, cut);
        for (int i = 0; i < round % 4 && cut > 0; ++i) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const uint8_t byte = (uint8_t)(seed >> 20);
            file[(seed >> 33) % cut] =
                round % 2 ? byte : (uint8_t) "0123456789,:\"{}[]aF \\"[byte % 21];
        }
        qn__tensors *t;
        qn_error err = {0};
        if (qn__tensors_from_bytes(file, cut, "fuzz", &t, &err) == QN_OK) {
            for (size_t i = 0; i < qn__tensors_count(t); ++i) {
                const qn__tensor_view *v = qn__tensors_at(t, i);
                assert_true(v->bytes >= file && v->bytes + 4 * v->count <= file + cut);
            }
            qn__tensors_free(t);
            ++accepted;
        } else {
            assert_int_equal(err.status, QN_FORMAT);
            ++refused;
        }
        free(file);
    }
    assert_true(accepted > 1000 && refused > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_bytes), cmocka_unit_test(test_write_failure),
        cmocka_unit_test(test_read_back),     cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_bad_headers),   cmocka_unit_test(test_bad_shapes),
        cmocka_unit_test(test_bad_offsets),   cmocka_unit_test(test_order_is_free),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
