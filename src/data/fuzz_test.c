/* Mutated files, from fixed seeds: each is refused with a message or read as a whole data set. What
 * is really tested here is that the sanitizers have nothing to say. */
#include "data/testing.h"

#ifdef QN_HAVE_ZLIB
#include <zlib.h>
#endif

enum { ROUNDS = 3000, ROOM = 4096 };

static uint32_t draw(uint64_t *state) { /* xorshift64* of Vigna */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 2685821657736338717u >> 32);
}

/* One small change of the kind that finds faults: another byte, a byte of the format, a piece
 * moved, doubled or taken out, an end cut off. */
static size_t mutate(uint8_t *bytes, size_t size, uint64_t *state) {
    static const char telling[] = ",;\t\n\r\"0129.-+eE \xFF\x80nN\x08\x01";
    size_t at = draw(state) % size, length = draw(state) % 16 + 1;
    if (at + length > size)
        length = size - at;
    switch (draw(state) % 6) {
    case 0:
        bytes[at] = (uint8_t)draw(state);
        return size;
    case 1:
        bytes[at] = (uint8_t)telling[draw(state) % sizeof telling];
        return size;
    case 2:
        bytes[at] ^= (uint8_t)(1u << draw(state) % 8);
        return size;
    case 3:
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length > 0 ? size - length : 1;
    case 4:
        if (size + length > ROOM)
            return size;
        memmove(bytes + at + length, bytes + at, size - at);
        return size + length;
    default:
        return at > 0 ? at : 1;
    }
}

/* Reads what came of a good file after one to four changes, with labels and without. */
static void fuzz(const char *name, const uint8_t *good, size_t size, uint64_t seed) {
    print_message("%s: seed %llu, %d rounds\n", name, (unsigned long long)seed, ROUNDS);
    uint64_t state = seed;
    int taken = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t bytes[ROOM];
        memcpy(bytes, good, size);
        size_t length = size;
        for (uint32_t changes = draw(&state) % 4 + 1; changes > 0; changes--)
            length = mutate(bytes, length, &state);
        qn_data_options options;
        qn_data_options_init(&options);
        options.unlabelled = draw(&state) % 4 == 0;
        options.label_column = !options.unlabelled && draw(&state) % 4 == 0 ? "last" : NULL;
        qn_data *data;
        qn_error err;
        qn_status status = open_bytes("fuzzed", bytes, length, &options, &data, &err);
        if (status == QN_OK) {
            check_whole(data);
            taken++;
            qn_data_close(data);
        } else {
            check_refusal(status, data, &err);
            assert_true(status == QN_INPUT || status == QN_UNSUPPORTED);
        }
    }
    assert_in_range(taken, 1, ROUNDS - 1); /* the changes are neither harmless nor always deadly */
}

static const char table[] = "class,\"width, mm\",height\n1,2,3\n0,12.5,-1e3\n2,\"7\",0.001\n"
                            "3,255,1\r\n4,16777217,3.4e38\n";

static void test_csv(void **state) {
    (void)state;
    fuzz("csv", (const uint8_t *)table, sizeof table - 1, 11);
    static const char bytes[] = "1;2;3\n0;12;0\n2;7;255\n3;255;1\n";
    fuzz("csv of bytes", (const uint8_t *)bytes, sizeof bytes - 1, 12);
}

static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0,  0,
                                 0, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};

static void test_idx(void **state) {
    (void)state;
    fuzz("idx", images, sizeof images, 13);
}

static void test_gzip(void **state) {
    (void)state;
#ifdef QN_HAVE_ZLIB
    uint8_t packed[ROOM];
    const void *plain[] = {table, images};
    const size_t sizes[] = {sizeof table - 1, sizeof images};
    for (int i = 0; i < 2; i++) {
        z_stream stream = {0};
        assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                         Z_OK);
        stream.next_in = (Bytef *)(uintptr_t)plain[i];
        stream.avail_in = (uInt)sizes[i];
        stream.next_out = packed;
        stream.avail_out = ROOM;
        assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
        deflateEnd(&stream);
        fuzz(i ? "idx.gz" : "csv.gz", packed, ROOM - stream.avail_out, 14 + (uint64_t)i);
    }
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_idx),
        cmocka_unit_test(test_gzip),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
