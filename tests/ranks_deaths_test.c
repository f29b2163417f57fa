/* Ranks that are killed at any moment, the first among them: those that are left have the bytes
 * that a process alone has, and one of them says so. Prints its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host_job_case_test.h"
#include "base/system/clock.h"
#include "cluster/rendezvous/rendezvous.h"
#include "device/cpu/worker/cpu_table.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <math.h>
#include <time.h>

enum { RANKS = 4, SECONDS = 60 };

/* What the processes of a run share with the test. */
typedef struct stage {
    atomic_uint met;      /* ranks that have begun */
    atomic_uint there;    /* ranks that are where they are to die, a bit each */
    atomic_uint dying;    /* ranks that ended themselves, a bit each */
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

/* ------------------------------------------------------------------- a death in a certain call */

/* What a rank is at when it dies: computing grains of a step, fetching their sums, updating,
 * computing a part of a validation, fetching the state for a checkpoint, telling that the files are
 * written, or anything at all once another rank is dead. */
typedef enum place {
    NOWHERE,
    IN_GRAINS,
    IN_COLLECT,
    IN_UPDATE,
    IN_APPLY,
    IN_SAVE,
    AT_THE_END,
    IN_RECOVERY,
    PLACES
} place;

typedef struct doom {
    place where;
    uint32_t call; /* from 1 */
    uint32_t rank;
    uint32_t with; /* ranks that die with it, a bit each: none of them dies before all are there */
} doom;

static doom own;      /* of a rank's own process */
static uint32_t told; /* calls so far at that place */

static void nap(double seconds) {
    const struct timespec t = {.tv_sec = (time_t)seconds,
                               .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

static void maybe_die(place at) {
    const int now = own.where == IN_RECOVERY ? atomic_load(&here->dying) != 0 : own.where == at;
    if (!now || ++told != own.call)
        return;
    atomic_fetch_or(&here->there, 1u << own.rank);
    while (own.with & ~atomic_load(&here->there))
        nap(0.0005);
    atomic_fetch_or(&here->dying, 1u << own.rank);
    raise(SIGKILL);
}

static qn_status run(qn__worker *w, const qn__job *job, uint32_t first, uint32_t count,
                     const qn__outlet *sums, qn_error *err) {
    maybe_die(job->kind == QN__JOB_APPLY ? IN_APPLY : IN_GRAINS);
    return qn__fake_device.run(w, job, first, count, sums, err);
}

static qn_status collect(qn__worker *w, int64_t *sums, qn__tally *tally, qn_error *err) {
    maybe_die(IN_COLLECT);
    return qn__fake_device.collect(w, sums, tally, err);
}

static qn_status update(qn__worker *w, const qn__update *numbers, const int64_t *sums,
                        qn_error *err) {
    maybe_die(IN_UPDATE);
    return qn__fake_device.update(w, numbers, sums, err);
}

static qn_status save(qn__worker *w, qn__state *state, qn_error *err) {
    maybe_die(IN_SAVE);
    return qn__fake_device.save(w, state, err);
}

/* ------------------------------------------------------------------------------- ranks as
 * processes
 */

static void finish(stage *s, uint32_t rank) {
    hand *h = &s->hands[rank];
    while (h->status == QN_OK && !qn_cluster_over(h->run.cluster, &h->code)) {
        atomic_store(&s->finished, 1 + rank);
        maybe_die(AT_THE_END);
        qn_cluster_finish(h->run.cluster, 7);
    }
    qn_cluster_leave(h->run.cluster);
    _exit(0);
}

/* A rank in a process of its own, whose worker takes its time; it dies as `doomed` says. */
static void live(stage *s, uint32_t rank, doom doomed) {
    hand *h = &s->hands[rank];
    const qn__fake_plan plan = {.count = 1, .device = {{.rate = 500}}};
    qn__device_table mortal = qn__fake_device;
    const qn__member member = {.device = &mortal};
    mortal.run = run;
    mortal.collect = collect;
    mortal.update = update;
    mortal.save = save;
    here = s;
    own = doomed;
    own.rank = rank;
    qn__fake_set(&plan);
    h->run.members = &member;
    h->run.count = 1;
    h->run.on_step = note_step;
    h->data = tiny_data();
    h->status = hand_joins(h);
    atomic_fetch_add(&s->met, 1);
    if (h->status == QN_OK)
        h->status = tiny_run(&h->run, h->data);
    finish(s, rank);
}

/* `doomed`: of each rank; NULL: nobody. `life` NULL: live. */
static void start_as(stage *s, pid_t *process, char rendezvous[32], const doom *doomed,
                     void (*life)(stage *, uint32_t, doom)) {
    snprintf(rendezvous, 32, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < RANKS; ++r) {
        hand *h = &s->hands[r];
        h->rank = r;
        h->ranks = RANKS;
        h->rendezvous = rendezvous;
        h->code = -1;
        h->status = QN_INTERRUPTED;
        process[r] = fork();
        assert_true(process[r] >= 0);
        if (process[r] == 0)
            life(s, r, doomed ? doomed[r] : (doom){0});
    }
}

static void start(stage *s, pid_t *process, char rendezvous[32], const doom *doomed) {
    start_as(s, process, rendezvous, doomed, live);
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

/* Those that are left have what a process alone has. */
static void check_left(const stage *s, uint32_t dead, const tiny *alone, uint32_t trial) {
    uint32_t alive = 0;
    for (uint32_t r = 0; r < RANKS; ++r) {
        const hand *h = &s->hands[r];
        if (dead >> r & 1)
            continue;
        ++alive;
        if (h->status != QN_OK || strcmp(h->run.digest, alone->digest) != 0 ||
            strcmp(h->run.epochs, alone->epochs) != 0 || h->code != 7)
            fail_msg("trial %u, dead %x, rank %u: %s, %s, code %d, %s", trial, dead, r,
                     qn_status_name(h->status), h->run.err.what, h->code, h->run.epochs);
    }
    assert_true(alive > 0 && atomic_load(&s->finished) > 0);
}

/* One, two or three of four, at once or one after another. */
static void test_any_rank_at_any_moment(void **state) {
    (void)state;
    tiny alone = {0};
    alone_is(&alone);
    const uint32_t seed = (uint32_t)time(NULL);
    print_message("seed %u\n", seed);
    random_state = seed;
    for (uint32_t trial = 0; trial < cases(24); ++trial) {
        char rendezvous[32];
        pid_t process[RANKS];
        stage *s = make_stage();
        const uint64_t mine = random_state; /* data is drawn from the same numbers */
        start(s, process, rendezvous, NULL);
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
        check_left(s, dead, &alone, trial);
        munmap(s, sizeof *s);
    }
}

/* Rank `who` dies at its call of that number at that place; with k = 2 the next rank at the same
 * one, with k = 3 while the others recover. All shares are equal, so that each rank comes to its
 * place however slow it is. */
static void dies_there(const tiny *alone, place where, uint32_t k, uint32_t call) {
    char rendezvous[32], dir[] = "/tmp/quern-deaths-XXXXXX";
    pid_t process[RANKS];
    /* The last places are those of the first rank that is left: all of the validation is one piece.
     */
    const uint32_t who = where >= IN_APPLY ? 0 : k, next = (who + 1) % RANKS;
    const uint32_t all = 1u << who | (k >= 2 ? 1u << next : 0);
    doom doomed[RANKS] = {0};
    stage *s = make_stage();
    doomed[who] = (doom){where, call, who, k == 2 && where < IN_APPLY ? all : 0};
    if (k == 2)
        doomed[next] = doomed[who];
    if (k == 3)
        doomed[next] = (doom){.where = IN_RECOVERY, .call = 1};
    assert_non_null(mkdtemp(dir));
    for (uint32_t r = 0; r < RANKS; ++r) {
        s->hands[r].run.alike = 1;
        s->hands[r].run.checkpoints = where == IN_SAVE ? dir : NULL;
    }
    start(s, process, rendezvous, doomed);
    if (!all_ended(process))
        fail_msg("place %d, case %u: the ranks hang", where, k);
    assert_int_equal(atomic_load(&s->dying), all);
    check_left(s, all, alone, 10 * where + k);
    munmap(s, sizeof *s);
    remove_folder(dir);
}

/* Every place in which a rank can be, the first rank and others; then with another rank that dies
 * when it is at the same place, and with one that dies while the others recover. */
static void test_every_place(void **state) {
    (void)state;
    static const uint32_t calls[PLACES][2] = {
        [IN_GRAINS] = {1, 3}, [IN_COLLECT] = {1, 3}, [IN_UPDATE] = {1, 9},
        [IN_APPLY] = {1, 1},  [IN_SAVE] = {1, 1},    [AT_THE_END] = {1, 1}};
    tiny alone = {0};
    alone_is(&alone);
    for (place where = IN_GRAINS; where < IN_RECOVERY; ++where)
        for (uint32_t k = 0; k < 4; ++k)
            dies_there(&alone, where, k, calls[where][k & 1]);
}

/* ------------------------------------------------- ranks of several machines, on the CPU itself */

/* After the step that the test is about, rank 0 is held up until the last rank has died and the
 * others know it. The plan then gives rank 0 two ranges before it has begun the next step: its own
 * share, and a part of the dead rank's. */
static void held_up_or_dead(void *user, const qn_step_event *e) {
    hear_step(user, e);
    if (e->step == own.call && own.rank == RANKS - 1)
        raise(SIGKILL);
    while (e->step == own.call && own.rank == 0 &&
           qn_cluster_alive(((tiny *)user)->cluster) == RANKS)
        nap(0.001);
}

/* Each rank pretends to be on a machine of its own: sums go over TCP, and words that are final
 * leave while others are computed. */
static void live_apart(stage *s, uint32_t rank, doom doomed) {
    static const char *const machines[RANKS] = {"a", "b", "c", "d"};
    hand *h = &s->hands[rank];
    const qn__member member = {.device = &qn__cpu_device};
    own = doomed;
    own.rank = rank;
    qn__rendezvous_simulate(machines[rank]);
    h->run.members = &member;
    h->run.count = 1;
    h->run.on_step = held_up_or_dead;
    h->data = tiny_data();
    h->status = hand_joins(h);
    if (h->status == QN_OK)
        h->status = tiny_run(&h->run, h->data);
    finish(s, rank);
}

static void test_two_ranges_at_once(void **state) {
    (void)state;
    tiny alone = {0};
    alone_is(&alone);
    for (uint32_t step = 1; step < 6; step += 2) {
        char rendezvous[32];
        pid_t process[RANKS];
        stage *s = make_stage();
        doom doomed[RANKS];
        for (uint32_t r = 0; r < RANKS; ++r)
            doomed[r] = (doom){.call = step};
        start_as(s, process, rendezvous, doomed, live_apart);
        if (!all_ended(process))
            fail_msg("step %u: the ranks hang", step);
        check_left(s, 1u << (RANKS - 1), &alone, step);
        munmap(s, sizeof *s);
    }
}

/* --------------------------------------------------------------- a host job in which ranks die */

static void die_at_grain(uint32_t grain) {
    if (own.call == 1 + grain)
        maybe_die(IN_GRAINS);
}

static void live_counting(stage *s, uint32_t rank, doom doomed) {
    static counting c = {.at_grain = die_at_grain};
    hand *h = &s->hands[rank];
    own = doomed;
    own.rank = rank;
    told = own.call ? own.call - 1 : 0;
    here = s;
    c.apart = (int)(s->hands[0].run.seed & 1);
    h->user = &c;
    h->status = hand_joins(h);
    const qn_compute compute = {
        .size = sizeof compute, .threads = 1 + (int)(rank % 2), .cluster = h->run.cluster};
    if (h->status == QN_OK)
        h->status = counting_on_rank(h, &compute);
    finish(s, rank);
}

/* Nobody has a speed before the first run, so the ranks share its grains equally: 60 each. Two that
 * die wait for each other, because the first death changes the shares of a rank that has not begun.
 */
static void test_a_host_job(void **state) {
    (void)state;
    for (uint32_t trial = 0; trial < 8; ++trial) {
        char rendezvous[32];
        pid_t process[RANKS];
        stage *s = make_stage();
        doom doomed[RANKS] = {0};
        const uint32_t who = trial % RANKS, other = (who + 1 + trial / 4) % RANKS;
        const uint32_t all = 1u << who | (trial > 3 ? 1u << other : 0);
        s->hands[0].run.seed = trial;
        doomed[who] = (doom){IN_GRAINS, 1 + 60 * who + 7 * trial, who, all};
        if (trial > 3)
            doomed[other] = (doom){IN_GRAINS, 1 + 60 * other + 30, other, all};
        start_as(s, process, rendezvous, doomed, live_counting);
        if (!all_ended(process))
            fail_msg("trial %u: the ranks hang", trial);
        assert_int_equal(atomic_load(&s->dying), all);
        for (uint32_t r = 0; r < RANKS; ++r)
            if (!(all >> r & 1) && (s->hands[r].status != QN_OK || s->hands[r].code != 7))
                fail_msg("trial %u, rank %u: %s", trial, r, s->hands[r].run.err.what);
        munmap(s, sizeof *s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_host_job), cmocka_unit_test(test_two_ranges_at_once),
        cmocka_unit_test(test_every_place), cmocka_unit_test(test_any_rank_at_any_moment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
