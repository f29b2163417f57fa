/* Blobs: made once per machine or once for all, whichever rank dies. */
#include "base/memory.h"
#include "cluster/blob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/process_ranks_test.h"
#include <sys/time.h>

/* What the makers of a test do; set before the ranks are started. */
static struct {
    uint64_t bytes;
    int from_first;
    uint32_t fails,
        dies,     /* ranks that fail to make, or die while they make; PROCESS_RANKS_MOST: none */
        short_of; /* a rank without shared memory */
    int dies_writing; /* the rank dies while it writes, */
    long dies_later;  /* or so many microseconds afterwards */
} plan;

/* The bytes are 64-bit words, because sanitizers check each access; each holds a function of its
 * index. */
static uint64_t word_at(uint64_t i) { return i * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du; }

typedef struct hand {
    uint32_t rank, made, written;
} hand;

static qn_status make(void *user, uint64_t *bytes, qn_error *err) {
    hand *h = user;
    h->made++;
    if (h->rank == plan.dies && !plan.dies_writing)
        raise(SIGKILL);
    if (h->rank == plan.fails) {
        qn__fail(err, QN_INPUT, "there is no such file");
        qn__at(err, "a/b/c");
        return qn__remedy(err, QN_INPUT, "copy it there");
    }
    *bytes = plan.bytes;
    return QN_OK;
}

static void write_bytes(void *user, void *memory) {
    hand *h = user;
    uint64_t *to = memory;
    const uint64_t words = plan.bytes / sizeof *to, last = word_at(words);
    for (uint64_t i = 0; i < words; ++i) {
        to[i] = word_at(i);
        if (i == words / 2 && h->rank == plan.dies && !plan.dies_later)
            raise(SIGKILL);
    }
    memcpy(to + words, &last, plan.bytes % sizeof last);
    /* The first write is for the digest. SIGALRM ends the process. */
    if (h->rank == plan.dies && h->written++ > 0)
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = plan.dies_later}, NULL);
}

static int is_right(const uint64_t *memory, uint64_t bytes) {
    const uint64_t words = bytes / sizeof *memory, last = word_at(words);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < words; ++i)
        wrong |= memory[i] ^ word_at(i);
    return wrong == 0 && memcmp(memory + words, &last, bytes % sizeof last) == 0;
}

/* value: how often it made the bytes, how many it received, and whether these were right. */
static void body(qn_cluster *c, uint32_t rank, process_ranks_result *result) {
    hand h = {.rank = rank};
    const qn__blob_maker maker = {.user = &h, .make = make, .write = write_bytes};
    const void *memory;
    /* Neighbours that differ in their protection stay apart, so these use up the maps of a process.
     */
    for (int i = 0;
         rank == plan.short_of && mmap(NULL, 1, i & 1 ? PROT_READ : PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;)
        i++;
    result->status =
        qn__cluster_blob(c, plan.from_first, &maker, &memory, &result->value[1], &result->err);
    result->value[0] = h.made;
    result->value[2] = result->status == QN_OK && is_right(memory, result->value[1]);
}

static const char *const one_each[] = {"a", "b", "c"}, *const two_and_one[] = {"a", "a", "b"};

/* Returns how often the bytes were made; checks that every live rank has them. */
static uint64_t run(uint32_t count, const char *const *machine) {
    process_ranks c = {.count = count, .machine = machine, .body = body};
    uint64_t made = 0;
    process_ranks_run(&c);
    for (uint32_t r = 0; r < count; ++r) {
        if (r == plan.dies) {
            assert_false(c.result[r].done);
            continue;
        }
        if (c.result[r].joined != QN_OK || c.result[r].status != QN_OK)
            fail_msg("rank %u: %s", r, c.result[r].err.what);
        assert_true(c.result[r].done);
        assert_int_equal(c.result[r].value[1], plan.bytes);
        assert_int_equal(c.result[r].value[2], 1);
        made += c.result[r].value[0];
    }
    process_ranks_end(&c);
    return made;
}

static void set(uint64_t bytes, int from_first) {
    memset(&plan, 0, sizeof plan);
    plan.bytes = bytes;
    plan.from_first = from_first;
    plan.fails = plan.dies = plan.short_of = PROCESS_RANKS_MOST;
}

static void test_once_a_machine(void **state) {
    (void)state;
    set(1, 0);
    assert_int_equal(run(3, NULL), 1);
    set((5 << 20) + 3, 0);
    assert_int_equal(run(3, two_and_one), 2);
    assert_int_equal(run(3, one_each), 3);
}

static void test_once_for_all(void **state) {
    (void)state;
    set(1, 1);
    assert_int_equal(run(3, NULL), 1);
    set((9 << 20) + 5, 1); /* more than two pieces */
    assert_int_equal(run(3, two_and_one), 1);
    assert_int_equal(run(3, one_each), 1);
}

static void test_failure_is_everybodys(void **state) {
    (void)state;
    for (int from_first = 0; from_first < 2; ++from_first) {
        set(1000, from_first);
        plan.fails = from_first ? 0 : 2;
        process_ranks c = {.count = 3, .machine = two_and_one, .body = body};
        process_ranks_run(&c);
        for (uint32_t r = 0; r < 3; ++r) {
            const process_ranks_result *k = &c.result[r];
            assert_int_equal(k->status, QN_INPUT);
            assert_non_null(strstr(k->err.what, from_first ? "rank 0 on " : "rank 2 on "));
            assert_non_null(strstr(k->err.what, ": there is no such file"));
            assert_string_equal(k->err.where, "a/b/c");
            assert_string_equal(k->err.remedy, "copy it there");
        }
        process_ranks_end(&c);
    }
}

/* A rank that cannot map the shared memory tells the others, who would wait for it. */
static void test_memory_of_one_rank(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the sanitizer needs maps itself, and this takes all */
#endif
    for (int from_first = 0; from_first < 2; ++from_first) {
        set(1000, from_first);
        plan.short_of = 1;
        process_ranks c = {.count = 3, .machine = two_and_one, .body = body};
        process_ranks_run(&c);
        for (uint32_t r = 0; r < 3; ++r) {
            assert_true(c.result[r].done);
            assert_int_equal(c.result[r].status, QN_MEMORY);
        }
        process_ranks_end(&c);
    }
}

/* The maker dies before it has the bytes, or when half of them are in shared memory. */
static void test_death_of_the_maker(void **state) {
    (void)state;
    for (int how = 0; how < 4; ++how) {
        set((5 << 20) + 3, how & 1);
        plan.dies = 0;
        plan.dies_writing = how >> 1;
        assert_true(run(3, two_and_one) >= 1);
        assert_true(run(3, NULL) >= 1);
    }
}

/* The sender dies before it has sent all: the next rank becomes the sender, which has no bytes. */
static void test_death_while_sending(void **state) {
    (void)state;
    for (int turn = 0; turn < 2; ++turn) {
        set(UINT64_C(24) << 20, 1);
        plan.dies = 0;
        plan.dies_writing = 1;
        plan.dies_later = 500 + 3000 * turn;
        assert_int_equal(run(3, one_each), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_a_machine),        cmocka_unit_test(test_once_for_all),
        cmocka_unit_test(test_failure_is_everybodys), cmocka_unit_test(test_death_of_the_maker),
        cmocka_unit_test(test_memory_of_one_rank),    cmocka_unit_test(test_death_while_sending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
