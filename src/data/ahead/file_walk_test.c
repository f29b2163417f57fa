/* The order in which a table in a file is read: every item once, what is in the file cache first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "base/files/mapped_file.h"
#include "data/ahead/file_walk.h"

enum { ROWS = 10000, FEATURES = 1000, CHUNKS = 10 }; /* of 1 MiB */

/* On the disk, because only then the file cache can drop a page. */
static qn_data open_table(void) {
    qn_data data = {.type = QN_U8, .items = ROWS, .features = FEATURES};
    qn__mapped_file *file;
    assert_int_equal(qn__mapped_file_create("/tmp", (size_t)ROWS * FEATURES + 64, &file, NULL),
                     QN_OK);
    memset(qn__mapped_file_bytes(file), 7, (size_t)ROWS * FEATURES);
    assert_int_equal(fsync(qn__mapped_file_descriptor(file)), 0);
    data.values = qn__mapped_file_bytes(file);
    data.in_file = file;
    return data;
}

static void close_table(const qn_data *data) {
    qn__mapped_file_close((void *)(uintptr_t)data->in_file);
}

static int is_cached(const qn_data *data, uint64_t item) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
                    at = (uintptr_t)qn__data_item(data, item) / page * page;
    unsigned char in_cache;
    assert_int_equal(mincore((void *)at, 1, &in_cache), 0);
    return in_cache & 1;
}

/* Reads all, and drops the chunks before an item; the first item of the walk. */
static uint64_t read_all(const qn_data *data, uint64_t drop) {
    uint8_t *seen = calloc(data->items, 1);
    uint64_t from, end, first = UINT64_MAX, chunks = 0;
    qn__file_walk walk;
    qn__file_walk_begin(&walk, data);
    for (; qn__file_walk_next(&walk, &from, &end); chunks++) {
        first = first == UINT64_MAX ? from : first;
        for (uint64_t i = from; i < end; i++) {
            assert_int_equal(*(const uint8_t *)qn__data_item(data, i), 7);
            seen[i]++;
        }
        if (from < drop)
            qn__file_walk_drop(&walk, from, end);
    }
    for (uint64_t i = 0; i < data->items; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(chunks, (data->items + walk.items - 1) / walk.items);
    free(seen);
    return first;
}

static void test_every_item_once(void **state) {
    (void)state;
    qn_data data = open_table();
    for (uint64_t items = ROWS; items > 0; items = items * 2 / 3) {
        data.items = items;
        read_all(&data, 0);
    }
    uint64_t index[ROWS / 3];
    for (uint64_t i = 0; i < ROWS / 3; i++)
        index[i] = 3 * i + 1;
    data.items = ROWS / 3;
    data.index = index;
    read_all(&data, ROWS);
    close_table(&data);
}

/* 0: the file system keeps all in memory. */
static int can_drop(const qn_data *data) {
    const int file = qn__mapped_file_descriptor(data->in_file);
    assert_int_equal(
        madvise((void *)(uintptr_t)data->values, (size_t)ROWS * FEATURES, MADV_DONTNEED), 0);
    assert_int_equal(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    return !is_cached(data, ROWS / 2);
}

static void test_what_is_cached_comes_first(void **state) {
    (void)state;
    qn_data data = open_table();
    if (!can_drop(&data))
        skip();
    assert_int_equal(read_all(&data, ROWS), 0);
    assert_false(is_cached(&data, ROWS / 2));
    read_all(&data, ROWS / 2);
    assert_false(is_cached(&data, ROWS / 4));
    const uint64_t first = read_all(&data, 0);
    assert_true(first >= ROWS / 2 && first < ROWS / 2 + ROWS / CHUNKS + 100);
    close_table(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),
        cmocka_unit_test(test_what_is_cached_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
