/*
 * rounds: the time of a reduction between ranks of this machine.
 *
 *     rounds [WORDS] [COUNT] [PLACES]
 *     mpirun -n RANKS rounds WORDS COUNT PLACES mpi|sockets|auto
 *
 * Two ranks (processes) add WORDS 64-bit integers (397,510 for MNIST's network of 500 hidden units;
 * 3.2 MB), COUNT times (500), with nothing between two reductions: in shared memory, and over
 * loopback TCP as if each were a machine of its own. The floor is the same addition by two threads
 * in private memory. Verifies the totals, then prints median, minimum and 90th percentile of one
 * reduction in ms. Also four ranks, on two machines of two. PLACES has a letter for the machine of
 * each rank, such as AABB: then only these ranks are timed. Under mpirun this process is one of
 * them, and the sums between machines travel by the transport that is named. */
#include "base/system/clock.h"
#include "base/memory.h"
#include "cluster/free_port_test.h"
#include "cluster/cluster_state.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ROUNDS = 100000 };

typedef struct results {
    int failed;
    double second[MOST_ROUNDS];
    qn__rank_traffic traffic;
    uint64_t out;
} results;

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print(const char *name, double *second, uint32_t reductions) {
    qsort(second, reductions, sizeof *second, by_size);
    printf("%-34s median %7.3f ms   least %7.3f   90 %% %7.3f\n", name,
           1e3 * second[reductions / 2], 1e3 * second[0], 1e3 * second[reductions * 9 / 10]);
}

/* A rounded float of up to 38 bits, as most sums of gradients are. */
static int64_t word_of(uint64_t w) {
    return (int64_t)(float)((w * UINT64_C(0x9e3779b97f4a7c15)) >> 26);
}

static int one_reduction(qn_cluster *c, uint64_t words, double *seconds, qn_error *err) {
    const qn__reduction reduction = {.kind = QN__REDUCTION_STEP, .words = words};
    const int64_t *total;
    int more;
    const double begun = qn__now();
    if (qn__reduction_begin(c, &reduction, err) != QN_OK)
        return 0;
    int64_t *part = qn__reduction_part(c);
    if (!seconds)
        for (uint64_t w = 0; w < words; ++w)
            part[w] = word_of(w) * (int64_t)(qn_cluster_rank(c) + 1);
    if (qn__reduction_finish(c, 0, &more, &total, err) != QN_OK)
        return 0;
    if (seconds)
        *seconds = qn__now() - begun;
    const uint64_t n = qn_cluster_ranks(c);
    for (uint64_t w = 0; w < words && !seconds; ++w)
        if (total[w] != word_of(w) * (int64_t)(n * (n + 1) / 2))
            return 0;
    return 1;
}

static void print_note(void *user, const char *text) {
    (void)user;
    fprintf(stderr, "%s\n", text);
}

/* `place` NULL: the launcher has started all ranks. */
static void be_rank(const char *place, const char *transport, const char *machines, uint32_t rank,
                    uint64_t words, uint32_t reductions, results *t) {
    const char name[2] = {machines[rank], 0};
    qn_cluster_options o;
    qn_cluster *c;
    qn_error err = {0};
    int code;
    qn_cluster_options_init(&o);
    o.rendezvous = place;
    o.transport = transport;
    o.ranks = (uint32_t)strlen(machines);
    o.rank = rank;
    o.on_note = print_note;
    qn__rendezvous_simulate(name);
    if (qn_cluster_join(&o, &c, &err) != QN_OK || !one_reduction(c, words, NULL, &err))
        goto failed;
    for (uint32_t k = 0; k < reductions; ++k)
        if (!one_reduction(c, words, rank == 0 ? &t->second[k] : &(double){0}, &err))
            goto failed;
    if (rank == 0) {
        qn__cluster_traffic(c, &t->traffic);
        qn__cluster_count(c, words, &t->out, &(uint64_t){0});
    }
    while (!qn_cluster_over(c, &code))
        qn_cluster_finish(c, 0);
    qn_cluster_leave(c);
    if (place)
        _exit(0);
    return;
failed:
    fprintf(stderr, "reductions: rank %u: %s\n", rank, err.what);
    t->failed = 1;
    _exit(1);
}

static void print_results(const char *what, results *t, uint32_t reductions) {
    print(what, t->second, reductions);
    printf("    a reduction sends %.0f bytes on rank 0, at 8 bytes a word %.0f\n",
           (double)t->traffic.bytes_out / (double)t->traffic.reductions, (double)t->out);
}

/* This process is one of the ranks that mpirun has started. */
static int be_launched(const char *machines, const char *transport, uint64_t words,
                       uint32_t reductions) {
    const char *text = getenv("OMPI_COMM_WORLD_RANK");
    text = text ? text : getenv("PMI_RANK");
    const unsigned long rank = text ? strtoul(text, NULL, 10) : strlen(machines);
    results *t = qn__alloc(1, sizeof *t, NULL);
    if (!t || rank >= strlen(machines))
        return 2;
    be_rank(NULL, transport, machines, (uint32_t)rank, words, reductions, t);
    if (rank == 0)
        print_results(transport, t, reductions);
    qn__free(t);
    return 0;
}

static int time_ranks(const char *what, const char *machines, uint64_t words, uint32_t reductions) {
    results *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char place[32];
    if (t == MAP_FAILED)
        return 0;
    snprintf(place, sizeof place, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < strlen(machines); ++r)
        if (fork() == 0)
            be_rank(place, NULL, machines, r, words, reductions, t);
    while (wait(NULL) > 0)
        ;
    if (!t->failed)
        print_results(what, t, reductions);
    const int fine = !t->failed;
    munmap(t, sizeof *t);
    return fine;
}

/* ------------------------------------------------------------------------------------ the floor */

typedef struct lane {
    pthread_t thread;
    pthread_barrier_t *gate;
    int64_t *into, *a, *b;
    uint64_t words;
    uint32_t reductions;
    double *second;
} lane;

static void *add(void *user) {
    const lane *l = user;
    for (uint32_t k = 0; k < l->reductions; ++k) {
        pthread_barrier_wait(l->gate);
        const double begun = qn__now();
        for (uint64_t w = 0; w < l->words; ++w)
            l->into[w] = l->a[w] + l->b[w];
        __asm__ volatile("" ::: "memory");
        l->second[k] = qn__now() - begun;
    }
    return NULL;
}

static void time_floor(uint64_t words, uint32_t reductions) {
    pthread_barrier_t gate;
    lane l[2];
    double *second = qn__alloc(2 * (size_t)reductions, sizeof *second, NULL);
    pthread_barrier_init(&gate, NULL, 2);
    for (int i = 0; i < 2; ++i) {
        l[i] = (lane){.gate = &gate, .words = words / 2, .reductions = reductions};
        l[i].second = second + (size_t)i * reductions;
        l[i].into = qn__alloc(words, 8, NULL);
        l[i].a = qn__alloc(words, 8, NULL);
        l[i].b = qn__alloc(words, 8, NULL);
        memset(l[i].a, 1, words * 8);
        memset(l[i].b, 1, words * 8);
        pthread_create(&l[i].thread, NULL, add, &l[i]);
    }
    for (int i = 0; i < 2; ++i)
        pthread_join(l[i].thread, NULL);
    print("floor: half each, two threads", second, reductions);
    for (int i = 0; i < 2; ++i) {
        qn__free(l[i].into);
        qn__free(l[i].a);
        qn__free(l[i].b);
    }
    qn__free(second);
    pthread_barrier_destroy(&gate);
}

int main(int count, char **argument) {
    const uint64_t words = count > 1 ? strtoull(argument[1], NULL, 10) : 397510;
    const uint32_t reductions = count > 2 ? (uint32_t)strtoul(argument[2], NULL, 10) : 500;
    if (words < 1 || reductions < 1 || reductions > MOST_ROUNDS)
        return 2;
    if (count > 4)
        return be_launched(argument[3], argument[4], words, reductions);
    printf("%llu words, %.2f MB, %u reductions\n", (unsigned long long)words, (double)words * 8e-6,
           reductions);
    fflush(stdout);
    if (count > 3)
        return !time_ranks(argument[3], argument[3], words, reductions);
    time_floor(words, reductions);
    fflush(stdout);
    return !(time_ranks("2 ranks, shared memory", "AA", words, reductions) &&
             time_ranks("2 ranks, loopback TCP", "AB", words, reductions) &&
             time_ranks("4 ranks on 2 machines", "AABB", words, reductions));
}
