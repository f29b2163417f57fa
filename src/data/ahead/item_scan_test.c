/* Items that are read in the order of their file: every copy has the bytes of its item, nearly all
 * are there when they are needed, and a file that cannot be read ends the scan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/mapped_file.h"
#include "data/ahead/item_scan.h"
#include "data/bytes/bytes_read_test.h"
#include "data/bytes/file_pieces.h"
#include "device/device.h"
#include "num/permutation.h"
#include "num/philox.h"

enum { ROWS = 20000, FEATURES = 100, BEFORE = 192, SEED = 5, EPOCHS = 3, STEP = 250 };
/* A scan of this table has so much beside its slots, which hold less than all items. */
enum { BESIDE = (2 << 20) + 4 * 5200 * 40, MEMORY = BESIDE + 500000 };

static const char *const folders[] = {"/tmp", "/dev/shm", "."}; /* a disk or not */

/* A table of bytes in a file of its own, of an odd place; every `left_out`-th row belongs to no
 * item (0: all do). */
static int open_table(const char *folder, uint64_t left_out, qn_data *data) {
    const size_t bytes = BEFORE + (size_t)ROWS * FEATURES + 64;
    qn__mapped_file *file;
    uint32_t word = 7;
    *data = (qn_data){.type = QN_U8, .items = ROWS, .features = FEATURES};
    if (access(folder, W_OK) != 0 || qn__mapped_file_create(folder, bytes, &file, NULL) != QN_OK)
        return 0;
    uint8_t *values = qn__mapped_file_bytes(file) + BEFORE;
    for (size_t i = 0; i < (size_t)ROWS * FEATURES; i++) {
        word = word * 1664525u + 1013904223u;
        values[i] = (uint8_t)(word >> 24);
    }
    data->values = values;
    data->in_file = file;
    data->memory = file;
    if (left_out > 0) {
        data->index = malloc(ROWS * sizeof *data->index);
        assert_non_null(data->index);
        data->items = 0;
        for (uint64_t row = 0; row < ROWS; row++)
            if (row % left_out != 1)
                data->index[data->items++] = row;
    }
    return 1;
}

static void close_table(qn_data *data) {
    free(data->index);
    qn__mapped_file_close(data->memory);
}

/* Goes through places of the run as a training does. Returns the number of items that are there
 * when they are needed. */
static uint64_t follow(const qn_data *data, qn__item_scan *scan, uint64_t from, uint64_t to) {
    const qn__item_buffer *buffer = qn__item_scan_buffer(scan);
    uint64_t found = 0;
    for (uint64_t place = from; place < to; place++) {
        const uint32_t epoch = (uint32_t)(place / data->items);
        qn__permutation order;
        if ((place - from) % STEP == 0)
            qn__item_scan_move(scan, place, place + 2 * STEP);
        qn__permutation_begin(&order, data->items, SEED, QN__PURPOSE_ORDER, epoch);
        const uint64_t position = place % data->items;
        const void *copy = qn__buffered_item(buffer, epoch, position);
        found += copy != NULL;
        if (copy &&
            memcmp(copy, qn__data_item(data, qn__permutation_at(&order, position)), FEATURES) != 0)
            fail_msg("place %llu has the bytes of another item", (unsigned long long)place);
    }
    return found;
}

static void test_a_run(void **state) {
    (void)state;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++)
        for (uint64_t left_out = 0; left_out <= 10; left_out += 5) {
            qn_data data;
            if (!open_table(folders[f], left_out, &data))
                continue;
            const uint64_t places = EPOCHS * data.items, from = left_out ? data.items / 3 : 0;
            qn__item_scan *scan = qn__item_scan_create(&data, SEED, places, MEMORY);
            assert_non_null(scan);
            assert_int_equal(qn__item_scan_reserved(), MEMORY);
            const uint64_t found = follow(&data, scan, from, places);
            assert_int_equal(qn__item_scan_at(scan), QN__SCAN_SERVES);
            /* Chance may make a piece give more than there is space for. */
            assert_true(found > (places - from) / 100 * 95);
            assert_null(qn__buffered_item(qn__item_scan_buffer(scan), 0, 0));
            assert_null(qn__buffered_item(qn__item_scan_buffer(scan), EPOCHS, 0));
            qn__item_scan_destroy(scan);
            assert_int_equal(qn__item_scan_reserved(), 0);
            close_table(&data);
        }
}

/* The file's bytes as numbers of tokens: the scan keeps whole items of them, and a worker finds the
 * copies. Those of a corpus share tokens. */
static void test_tokens(void **state) {
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const unsigned type = i ? QN__ELEMENT_TOKEN16 : QN__ELEMENT_TOKEN32;
        qn_data data;
        uint64_t copies = 0;
        qn__permutation order;
        assert_true(open_table("/tmp", 5, &data));
        data.type = (qn_data_type)type;
        data.features = type == QN__ELEMENT_TOKEN16 ? FEATURES / 2 : FEATURES / 4;
        data.context = i == 2 ? data.features - 1 : 0;
        qn__item_scan *scan = qn__item_scan_create(&data, SEED, data.items, MEMORY);
        assert_non_null(scan);
        assert_true(follow(&data, scan, 0, data.items - STEP) > data.items / 100 * 95);
        const qn__feed feed = {.type = (qn__element_type)data.type,
                               .features = data.features,
                               .step = data.context,
                               .items = data.items,
                               .values = data.values,
                               .rows = data.index,
                               .buffer = qn__item_scan_buffer(scan)};
        qn__permutation_begin(&order, data.items, SEED, QN__PURPOSE_ORDER, 0);
        const qn__batch batch = {
            .feed = &feed, .order = &order, .first = data.items - STEP, .items = STEP};
        for (uint32_t k = 0; k < STEP; k++) {
            const uint64_t item = qn__permutation_at(&order, batch.first + k);
            const void *values = qn__batch_values(&batch, k, item);
            assert_memory_equal(values, qn__data_item(&data, item), FEATURES);
            copies += values != qn__data_item(&data, item);
        }
        assert_true(copies > STEP / 2);
        qn__item_scan_destroy(scan);
        close_table(&data);
    }
}

/* Another reading of the file, in some order. */
static void take_all(const qn_data *data, qn__item_scan *scan) {
    enum { SOME = 777 };
    const uint64_t middle = data->items / 3;
    for (uint64_t at = middle; at < data->items; at += SOME)
        qn__item_scan_take(scan, at, at + SOME < data->items ? at + SOME : data->items);
    for (uint64_t at = 0; at < middle; at += SOME)
        qn__item_scan_take(scan, at, at + SOME < middle ? at + SOME : middle);
}

/* The first epoch has its items from the beginning, and a whole reading of the file is saved: its
 * first piece gives nothing, and three more are not read. */
static void test_another_reading_was_the_first(void **state) {
    (void)state;
    for (uint64_t left_out = 0; left_out <= 5; left_out += 5) {
        uint64_t read[2];
        qn_data data;
        assert_true(open_table("/tmp", left_out, &data));
        for (int other = 0; other < 2; other++) {
            qn__item_scan *scan = qn__item_scan_create(&data, SEED, data.items, MEMORY);
            assert_non_null(scan);
            if (other)
                take_all(&data, scan);
            const uint64_t before = bytes_read();
            assert_true(follow(&data, scan, 0, data.items) > data.items / 100 * 95);
            assert_int_equal(qn__item_scan_at(scan), QN__SCAN_SERVES);
            qn__item_scan_destroy(scan);
            read[other] = bytes_read() - before;
        }
        if (read[0] > 0)
            assert_true(read[1] + (uint64_t)ROWS * FEATURES / 10 * 7 < read[0]);
        close_table(&data);
    }
}

/* A training that goes on midway, or items that nobody read: the file is read at the beginning. */
static void test_another_reading_in_vain(void **state) {
    (void)state;
    qn_data data;
    assert_true(open_table("/tmp", 0, &data));
    for (uint64_t from = 0; from < ROWS; from += ROWS / 4) {
        qn__item_scan *scan = qn__item_scan_create(&data, SEED, 2 * ROWS, MEMORY);
        assert_non_null(scan);
        if (from > 0)
            take_all(&data, scan);
        else
            qn__item_scan_take(scan, 0, ROWS - 1);
        const uint64_t places = 2 * ROWS - from;
        assert_true(follow(&data, scan, from, 2 * ROWS) > places / 100 * 95);
        assert_int_equal(qn__item_scan_at(scan), QN__SCAN_SERVES);
        qn__item_scan_destroy(scan);
    }
    close_table(&data);
}

/* The bytes of a piece are others than those that another reading had. */
static void test_a_piece_that_changed(void **state) {
    (void)state;
    enum { PIECE = 5120 }; /* rows */
    qn_data data;
    assert_true(open_table("/tmp", 0, &data));
    qn__item_scan *scan = qn__item_scan_create(&data, SEED, ROWS, MEMORY);
    assert_non_null(scan);
    take_all(&data, scan);
    assert_int_equal(qn__item_scan_at(scan), QN__SCAN_SERVES);
    qn__mapped_file_bytes(data.in_file)[BEFORE + PIECE * FEATURES]++;
    for (uint64_t place = 0; place < ROWS; place += STEP)
        qn__item_scan_move(scan, place, place + STEP);
    assert_int_equal(qn__item_scan_at(scan), QN__SCAN_FAILED);
    qn__item_scan_destroy(scan);
    close_table(&data);
}

static void test_where_single_items_are_better(void **state) {
    (void)state;
    qn_data data;
    assert_true(open_table("/tmp", 0, &data));
    assert_null(qn__item_scan_create(&data, SEED, ROWS, BESIDE));       /* too little */
    assert_null(qn__item_scan_create(&data, SEED, ROWS, 100 + BESIDE)); /* few slots */
    assert_null(qn__item_scan_create(&data, SEED, ROWS, BESIDE + ROWS * FEATURES * 2)); /* all */
    const qn__mapped_file *file = data.in_file;
    data.in_file = NULL;
    assert_null(qn__item_scan_create(&data, SEED, ROWS, MEMORY));
    qn__item_scan_destroy(NULL);
    data.in_file = file;
    close_table(&data);
}

/* Without the second half of the file, and with a descriptor that cannot be read. */
static void test_a_file_that_cannot_be_read(void **state) {
    (void)state;
    for (int broken = 0; broken < 2; broken++) {
        qn_data data;
        assert_true(open_table("/tmp", 0, &data));
        const int file = qn__mapped_file_descriptor(data.in_file);
        qn__item_scan *scan = qn__item_scan_create(&data, SEED, ROWS, MEMORY);
        assert_non_null(scan);
        if (broken) {
            int pipes[2];
            assert_int_equal(pipe(pipes), 0);
            assert_int_equal(dup2(pipes[1], file), file);
            close(pipes[0]);
            close(pipes[1]);
        } else {
            assert_int_equal(ftruncate(file, BEFORE + ROWS / 2 * FEATURES), 0);
        }
        for (uint64_t place = 0; place < ROWS; place += STEP)
            qn__item_scan_move(scan, place, place + STEP);
        assert_int_equal(qn__item_scan_at(scan), QN__SCAN_FAILED);
        qn__item_scan_destroy(scan);
        close_table(&data);
    }
}

/* Pieces at all places of a sector, and beyond the end. */
static void test_pieces(void **state) {
    (void)state;
    qn_data data;
    assert_true(open_table("/tmp", 0, &data));
    const size_t size = BEFORE + (size_t)ROWS * FEATURES + 64;
    const uint8_t *all = qn__mapped_file_bytes(data.in_file);
    void *block;
    assert_int_equal(posix_memalign(&block, QN__FILE_SECTOR, 100000 + QN__FILE_PIECE_MARGIN), 0);
    qn__file_piece piece;
    assert_false(qn__file_piece_begin(&piece, -1, 0, block));
    assert_true(
        qn__file_piece_begin(&piece, qn__mapped_file_descriptor(data.in_file), BEFORE, block));
    for (uint64_t offset = 0; offset < size - BEFORE - 5000; offset += 35007) {
        const size_t bytes = 1 + (size_t)(offset * 7 + 4095) % 5000;
        const uint8_t *got = qn__file_piece_read(&piece, offset, bytes);
        assert_non_null(got);
        assert_memory_equal(got, all + BEFORE + offset, bytes);
    }
    const uint8_t *last = qn__file_piece_read(&piece, size - BEFORE - 77777, 77777);
    assert_non_null(last);
    assert_memory_equal(last, all + size - 77777, 77777);
    assert_null(qn__file_piece_read(&piece, size - BEFORE - 77777, 77778));
    assert_null(qn__file_piece_read(&piece, size + 1000000, 1));
    free(block);
    close_table(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_another_reading_was_the_first),
        cmocka_unit_test(test_another_reading_in_vain),
        cmocka_unit_test(test_a_piece_that_changed),
        cmocka_unit_test(test_where_single_items_are_better),
        cmocka_unit_test(test_a_file_that_cannot_be_read),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
