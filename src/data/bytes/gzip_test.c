/* Compressed files: several members, truncated and corrupt ones, and a build without zlib. */
#include "data/table/testing.h"

#ifdef QN_HAVE_ZLIB
#include <zlib.h>

/* Appends one gzip member; returns its size. */
static size_t pack(const void *bytes, size_t size, uint8_t *out, size_t capacity) {
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = out;
    stream.avail_out = (uInt)capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return capacity - stream.avail_out;
}

static const char text[] = "1,2\n3,4\n";

static void test_members(void **state) {
    (void)state;
    uint8_t packed[512];
    size_t size = 0;
    size += pack("1,2\n3", 5, packed + size, sizeof packed - size);
    size += pack("", 0, packed + size, sizeof packed - size);
    size += pack(",4\n", 3, packed + size, sizeof packed - size);
    memset(packed + size, 0, 20); /* padding, as tape drives leave it */
    qn_data *plain, *data;
    qn_error err;
    assert_int_equal(open_bytes("a.csv", text, sizeof text - 1, NULL, &plain, &err), QN_OK);
    assert_int_equal(open_bytes("a.gz", packed, size + 20, NULL, &data, &err), QN_OK);
    assert_string_equal(qn_data_digest(data), qn_data_digest(plain));
    assert_string_equal(qn_data_format(data), "csv.gz");
    qn_data_close(plain);
    qn_data_close(data);
}

/* Every truncation is refused, and so is every changed bit, except the unused bits in the last byte
 * of the compressed data. */
static void test_damage(void **state) {
    (void)state;
    uint8_t packed[512], broken[512];
    size_t size = pack(text, sizeof text - 1, packed, sizeof packed);
    qn_data *plain;
    int harmless = 0;
    assert_int_equal(open_bytes("a.csv", text, sizeof text - 1, NULL, &plain, NULL), QN_OK);
    for (size_t cut = 2; cut < size; cut++) {
        qn_data *data;
        qn_error err;
        qn_status status = open_bytes("cut.gz", packed, cut, NULL, &data, &err);
        check_refusal(status, data, &err);
        assert_int_equal(status, QN_INPUT);
        assert_non_null(strstr(err.where, "of the compressed file"));
    }
    for (size_t at = 10; at < size; at++) { /* the header's time and flags are not checked */
        memcpy(broken, packed, size);
        broken[at] ^= 0x10;
        qn_data *data;
        qn_error err;
        qn_status status = open_bytes("bad.gz", broken, size, NULL, &data, &err);
        if (status == QN_OK) {
            harmless++;
            assert_string_equal(qn_data_digest(data), qn_data_digest(plain));
            qn_data_close(data);
            continue;
        }
        check_refusal(status, data, &err);
        assert_int_equal(status, QN_INPUT);
    }
    assert_in_range(harmless, 0, 1);
    qn_data_close(plain);
    memcpy(packed + size, "more", 4);
    qn_data *data;
    qn_error err;
    qn_status status = open_bytes("more.gz", packed, size + 4, NULL, &data, &err);
    check_refusal(status, data, &err);
    assert_non_null(strstr(err.what, "followed by"));
}

/* 64 MiB of zeros after a header that claims 2^40: memory grows only with the data. */
static void test_claims(void **state) {
    (void)state;
    enum { SIZE = 1 << 26 };
    uint8_t *zeros = calloc(1, SIZE), *packed = malloc(SIZE / 100);
    memcpy(zeros, (uint8_t[]){0, 0, 8, 3, 255, 255, 255, 255, 0, 0, 1, 0, 0, 0, 1, 0}, 16);
    size_t size = pack(zeros, SIZE, packed, SIZE / 100);
    qn_data *data;
    qn_error err;
    qn_status status = open_bytes("claims.gz", packed, size, NULL, &data, &err);
    check_refusal(status, data, &err);
    assert_non_null(strstr(err.what, "only 67108848"));
    assert_non_null(strstr(err.where, "of the unpacked file"));
    memcpy(zeros, (uint8_t[]){0, 0, 8, 2, 0, 0, 255, 255, 0, 0, 1, 0}, 12);
    size = pack(zeros, 12 + 65535 * 256, packed, SIZE / 100);
    assert_int_equal(open_bytes("good.gz", packed, size, NULL, &data, &err), QN_OK);
    assert_int_equal(qn_data_items(data), 65535);
    assert_string_equal(qn_data_format(data), "idx.gz");
    qn_data_close(data);
    size = pack(zeros, 13 + 65535 * 256, packed, SIZE / 100);
    status = open_bytes("long.gz", packed, size, NULL, &data, &err);
    check_refusal(status, data, &err);
    assert_non_null(strstr(err.remedy, "nothing else"));
    size = pack("", 0, packed, SIZE / 100);
    status = open_bytes("empty.gz", packed, size, NULL, &data, &err);
    check_refusal(status, data, &err);
    free(zeros);
    free(packed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_claims),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

#else

static void test_absent(void **state) {
    (void)state;
    qn_data *data;
    qn_error err;
    qn_status status = open_bytes("a.gz", "\x1F\x8B\x08\x00", 4, NULL, &data, &err);
    check_refusal(status, data, &err);
    assert_int_equal(status, QN_UNSUPPORTED);
    assert_non_null(strstr(err.remedy, "gunzip"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_absent)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

#endif
