/* Memory that is filled when it is touched: by several threads, after drops, and after a failure.
 */
#include "base/system/fault_space.h"

#include "base/system/threads.h"
#include <stdarg.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 24 << 20, KEPT = 4 << 20, DROPPABLE = 20 << 20 };

typedef struct source {
    atomic_uint calls;
    uint64_t fails_from; /* bytes from here on cannot be filled */
} source;

static uint8_t byte_at(uint64_t i) { return (uint8_t)(i * 2654435761u >> 13); }

static qn_status fill(void *user, uint64_t first, uint64_t count, uint8_t *to, qn_error *err) {
    source *s = user;
    ++s->calls;
    assert_true(count <= QN__FAULT_RUN);
    if (first + count > s->fails_from)
        return qn__fail(err, QN_IO, "rank 3 is gone");
    for (uint64_t i = 0; i < count; ++i)
        to[i] = byte_at(first + i);
    return QN_OK;
}

/* Skips the test where the system refuses it. */
static qn__fault_space *open_space(source *s) {
    const qn__fault_filler filler = {s, fill};
    qn__fault_space *space;
    qn_error err;
    const qn_status status = qn__fault_space_create(BYTES, DROPPABLE, KEPT, &filler, &space, &err);
    if (status == QN_UNSUPPORTED) {
        assert_non_null(strstr(err.remedy, "Linux 5.11"));
        skip();
    }
    assert_int_equal(status, QN_OK);
    return space;
}

typedef struct reading {
    const uint8_t *memory;
    atomic_uint wrong;
} reading;

/* Some read in order, others at random places. */
static void read_all(void *context, int thread) {
    reading *r = context;
    unsigned wrong = 0;
    uint64_t at = (uint64_t)thread * 7919;
    for (uint64_t i = 0; i < BYTES / 2048; ++i) {
        at = thread % 2 ? i * 2048 : (at * 6364136223846793005u + 1442695040888963407u) % BYTES;
        wrong += r->memory[at] != byte_at(at);
    }
    r->wrong += wrong;
}

static void test_threads_read_what_was_filled(void **state) {
    source s = {.fails_from = UINT64_MAX};
    qn__fault_space *space = open_space(&s);
    reading r = {.memory = qn__fault_space_memory(space)};
    qn__pool *pool;
    (void)state;
    assert_int_equal(qn__pool_create(4, 0, &pool, NULL), QN_OK);
    qn__pool_run(pool, read_all, &r);
    qn__pool_destroy(pool);
    assert_int_equal(r.wrong, 0);
    assert_true(qn__fault_space_filled(space) > BYTES); /* some were dropped and filled again */
    assert_int_equal(qn__fault_space_check(space, NULL), QN_OK);
    qn__fault_space_destroy(space);
}

static void test_what_follows_is_filled_in_large_runs(void **state) {
    source s = {.fails_from = UINT64_MAX};
    qn__fault_space *space = open_space(&s);
    const uint8_t *memory = qn__fault_space_memory(space);
    unsigned sum = 0;
    (void)state;
    for (uint64_t i = 0; i < BYTES; i += 4096)
        sum += memory[i];
    assert_true(sum > 0);
    assert_true(s.calls < 2 * BYTES / QN__FAULT_RUN);
    qn__fault_space_destroy(space);
}

/* What cannot be dropped is filled once. */
static void test_the_rest_stays(void **state) {
    source s = {.fails_from = UINT64_MAX};
    qn__fault_space *space = open_space(&s);
    const uint8_t *memory = qn__fault_space_memory(space);
    unsigned sum = 0;
    (void)state;
    for (int turn = 0; turn < 2; ++turn) {
        const unsigned before = s.calls;
        for (uint64_t i = DROPPABLE; i < BYTES; i += 4096)
            sum += memory[i];
        assert_true((s.calls == before) == (turn > 0));
        for (uint64_t i = 0; i < DROPPABLE; i += 4096)
            sum += memory[i];
    }
    assert_true(sum > 0);
    qn__fault_space_destroy(space);
}

static void test_a_failure_is_kept_and_reads_as_zeros(void **state) {
    source s = {.fails_from = 1 << 20};
    qn__fault_space *space = open_space(&s);
    const uint8_t *memory = qn__fault_space_memory(space);
    qn_error err = {.what = ""};
    (void)state;
    assert_int_equal(memory[4097], byte_at(4097));
    assert_int_equal(qn__fault_space_check(space, &err), QN_OK);
    assert_int_equal(memory[5 << 20 | 1], 0);
    assert_int_equal(memory[9 << 20 | 1], 0);
    assert_int_equal(qn__fault_space_check(space, &err), QN_IO);
    assert_string_equal(err.what, "rank 3 is gone");
    qn__fault_space_destroy(space);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_read_what_was_filled),
        cmocka_unit_test(test_what_follows_is_filled_in_large_runs),
        cmocka_unit_test(test_the_rest_stays),
        cmocka_unit_test(test_a_failure_is_kept_and_reads_as_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
