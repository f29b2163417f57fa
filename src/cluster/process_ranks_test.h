/* The ranks of a run as processes of one test. Each runs its body and writes its result to memory
 * that the test reads afterwards. A rank may kill itself. */
#ifndef QN_CLUSTER_PROCESS_RANKS_TEST_H
#define QN_CLUSTER_PROCESS_RANKS_TEST_H

#include "cluster/free_port_test.h"
#include "cluster/rendezvous/rendezvous.h"
#include <quern/cluster.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESS_RANKS_MOST = 8, PROCESS_RANKS_SECONDS = 60 };

/* The result of a rank; the test defines the meaning of value and text. */
typedef struct process_ranks_result {
    int done; /* it ran to the end */
    qn_status joined, status;
    qn_error err;
    uint64_t value[4];
    char text[256];
} process_ranks_result;

typedef struct process_ranks {
    uint32_t count;
    const char *const *machine; /* the simulated machine of each; NULL: all on this one */
    void (*body)(qn_cluster *cluster, uint32_t rank, process_ranks_result *result);
    process_ranks_result *result; /* of each rank; shared with them */
} process_ranks;

static inline void process_ranks_rank(const process_ranks *c, uint32_t rank,
                                      const char *rendezvous) {
    process_ranks_result *result = &c->result[rank];
    qn_cluster_options options;
    qn_cluster *cluster = NULL;
    int code;
    qn_cluster_options_init(&options);
    options.rendezvous = rendezvous;
    options.ranks = c->count;
    options.rank = rank;
    options.rank_timeout = 10;
    if (c->machine)
        qn__rendezvous_simulate(c->machine[rank]);
    result->joined = qn_cluster_join(&options, &cluster, &result->err);
    if (result->joined == QN_OK)
        c->body(cluster, rank, result);
    while (cluster &&
           !qn_cluster_over(cluster, &code)) /* no rank leaves before all have finished */
        qn_cluster_finish(cluster, 0);
    qn_cluster_leave(cluster);
    result->done = 1;
}

/* Runs the body on all ranks and waits for them; after a minute they are killed. */
static inline void process_ranks_run(process_ranks *c) {
    char rendezvous[32];
    pid_t process[PROCESS_RANKS_MOST];
    const size_t size = sizeof(process_ranks_result) * PROCESS_RANKS_MOST;
    c->result = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->result == MAP_FAILED || c->count > PROCESS_RANKS_MOST)
        abort();
    snprintf(rendezvous, sizeof rendezvous, "127.0.0.1:%u", free_port());
    fflush(NULL);
    for (uint32_t r = 0; r < c->count; ++r) {
        process[r] = fork();
        if (process[r] == 0) {
            alarm(PROCESS_RANKS_SECONDS); /* ends it */
            process_ranks_rank(c, r, rendezvous);
            _exit(0);
        }
    }
    for (uint32_t r = 0; r < c->count; ++r)
        waitpid(process[r], NULL, 0);
}

static inline void process_ranks_end(process_ranks *c) {
    munmap(c->result, sizeof(process_ranks_result) * PROCESS_RANKS_MOST);
}

#endif
