/* Ranks that are killed at any moment, the first among them: those that are left have the bytes
 * that a process alone has, and one of them says so. Prints its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ranks_case_test.h"
#include "base/clock.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <math.h>
#include <time.h>

enum { RANKS = 4, SECONDS = 60 };

/* What the processes of a run share with the test. */
typedef struct stage {
    atomic_uint met;      /* ranks that have begun */
    atomic_ulong steps;   /* the most that a rank has done */
    atomic_uint finished; /* 1 + the rank that had the last word */
    hand hands[RANKS];
} stage;

static stage *make_stage(void) {
    void *memory =
        mmap(NULL, sizeof(stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static stage *here; /* of a rank's own process */

static void note_step(void *user, const qn_step_event *e) {
    hear_step(user, e);
    unsigned long most = atomic_load(&here->steps);
    while (e->step > most && !atomic_compare_exchange_weak(&here->steps, &most, e->step))
        ;
}

/* A rank in a process of its own, whose worker takes its time. */
static void live(stage *s, uint32_t rank) {
    hand *h = &s->hands[rank];
    const qn__fake_plan plan = {.count = 1, .device = {{.rate = 500}}};
    const qn__member member = {.device = &qn__fake_device};
    here = s;
    qn__fake_set(&plan);
    h->run.members = &member;
    h->run.count = 1;
    h->run.on_step = note_step;
    h->data = tiny_data();
    h->status = hand_joins(h);
    atomic_fetch_add(&s->met, 1);
    if (h->status == QN_OK)
        h->status = tiny_run(&h->run, h->data);
    while (h->status == QN_OK && !qn_cluster_over(h->run.cluster, &h->code)) {
        atomic_store(&s->finished, 1 + rank);
        qn_cluster_finish(h->run.cluster, 7);
    }
    qn_cluster_leave(h->run.cluster);
    _exit(0);
}

static void start(stage *s, pid_t *process, char place[32]) {
    free_place(place);
    for (uint32_t r = 0; r < RANKS; ++r) {
        hand *h = &s->hands[r];
        h->rank = r;
        h->ranks = RANKS;
        h->meet = place;
        h->code = -1;
        h->status = QN_INTERRUPTED;
        process[r] = fork();
        assert_true(process[r] >= 0);
        if (process[r] == 0)
            live(s, r);
    }
}

static void nap(double seconds) {
    const struct timespec t = {.tv_sec = (time_t)seconds,
                               .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

/* Waits for the processes; 0 when one of them hangs, which is ended then. */
static int all_ended(pid_t *process) {
    const double until = qn__now() + SECONDS;
    int left = RANKS;
    while (left > 0 && qn__now() < until) {
        for (uint32_t r = 0; r < RANKS; ++r)
            if (process[r] > 0 && waitpid(process[r], NULL, WNOHANG) == process[r]) {
                process[r] = 0;
                --left;
            }
        nap(0.002);
    }
    for (uint32_t r = 0; r < RANKS; ++r)
        if (process[r] > 0) {
            kill(process[r], SIGKILL);
            waitpid(process[r], NULL, 0);
        }
    return left == 0;
}

static uint32_t cases(uint32_t usual) {
    const char *given = getenv("QN_TEST_CASES");
    return given ? (uint32_t)strtoul(given, NULL, 10) : usual;
}

/* One, two or three of four, at once or one after another. */
static void test_any_rank_at_any_moment(void **state) {
    (void)state;
    tiny alone = {0};
    qn_data *data = tiny_data();
    assert_int_equal(tiny_run(&alone, data), QN_OK);
    qn_data_close(data);
    const uint32_t seed = (uint32_t)time(NULL);
    print_message("seed %u\n", seed);
    random_state = seed;
    for (uint32_t trial = 0; trial < cases(40); ++trial) {
        char place[32];
        pid_t process[RANKS];
        stage *s = make_stage();
        const uint64_t mine = random_state; /* data is drawn from the same numbers */
        start(s, process, place);
        random_state = mine;
        const double until = qn__now() + SECONDS;
        while (atomic_load(&s->met) < RANKS && qn__now() < until)
            nap(0.0005);
        const uint32_t deaths = 1 + below(3), first = below(RANKS);
        uint32_t dead = 0;
        for (uint32_t d = 0; d < deaths; ++d) {
            const uint32_t who = trial % 3 ? (first + d) % RANKS : d; /* often the first ranks */
            nap(below(d ? 4 : 140) * 1e-3);
            kill(process[who], SIGKILL);
            dead |= 1u << who;
        }
        if (!all_ended(process))
            fail_msg("trial %u: the ranks hang (dead: %x, steps %lu)", trial, dead,
                     atomic_load(&s->steps));
        uint32_t alive = 0;
        for (uint32_t r = 0; r < RANKS; ++r) {
            const hand *h = &s->hands[r];
            if (dead >> r & 1)
                continue;
            ++alive;
            if (h->status != QN_OK || strcmp(h->run.digest, alone.digest) != 0 ||
                strcmp(h->run.epochs, alone.epochs) != 0 || h->code != 7)
                fail_msg("trial %u, dead %x, rank %u: %s, %s, code %d, %s", trial, dead, r,
                         qn_status_name(h->status), h->run.err.what, h->code, h->run.epochs);
        }
        assert_true(alive > 0 && atomic_load(&s->finished) > 0);
        munmap(s, sizeof *s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_rank_at_any_moment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
