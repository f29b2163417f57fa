/* Several processes that run one job together: the ranks of a cluster.
 *
 * Every rank makes the same calls in the same order on the same recipe and the same data, with
 * `compute.cluster` set. Each gets the whole result: the bytes that a single process would have
 * computed. A rank may die or stop answering at any moment; the others continue without it.
 *
 *     qn_cluster_options o;
 *     qn_cluster *c;
 *     int code = 0;
 *     qn_cluster_options_init(&o);
 *     if (qn_cluster_join(&o, &c, &err) != QN_OK) ...     c is NULL when this process is alone
 *     options.compute.cluster = c;
 *     ... qn_train_open, qn_train_run, qn_train_report_get: all ranks ...
 *     if (!c)
 *         code = write_the_files();
 *     while (c && !qn_cluster_over(c, &code))             returns 0 on one living rank at a time
 *         code = write_the_files(), qn_cluster_finish(c, code);
 *     qn_cluster_leave(c);
 *
 * One thread at a time uses a qn_cluster; only qn_cluster_stop may be called from others. All
 * functions but qn_cluster_join accept NULL, which means a run of one process: rank 0 of 1, which
 * is the writer.
 *
 * Threads and connections do not survive fork(). In a child of the process that joined, all
 * functions that return a status fail with QN_USAGE, qn_cluster_is_writer returns 0,
 * qn_cluster_alive 1, qn_cluster_over 2 with the code 1, and the others have no effect or return
 * what they returned before. The parent still owns the cluster. */
#ifndef QUERN_CLUSTER_H
#define QUERN_CLUSTER_H

#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_cluster qn_cluster;

/* How the ranks find each other. Fill with qn_cluster_options_init, then change members. Texts are
 * copied; each may be NULL, and so may the callback. */
typedef struct qn_cluster_options {
    size_t size; /* sizeof(qn_cluster_options) */
    /* Where the ranks connect for the first time.
     *   NULL, "auto"  by what the launcher left in the environment: the MPI library under mpirun,
     *                 the list of nodes under srun, MASTER_ADDR and the port after MASTER_PORT
     *                 under torchrun, or a later port if that one is in use. Without a
     *                 launcher: alone
     *   "none"        alone; the environment is ignored
     *   "HOST:PORT"   at this address, where rank 0 listens; set `ranks` and `rank` too */
    const char *rendezvous;
    uint32_t ranks; /* with "HOST:PORT": number of ranks, 1..1024 */
    uint32_t rank;  /* with "HOST:PORT": number of this rank, from 0 */
    /* A secret that all ranks know. "HOST:PORT" and torchrun: NULL means no secret, which is
     * allowed only where HOST is a loopback address. srun: NULL means MUNGE. mpirun needs none. */
    const char *key;
    const char *interface;     /* network interface or address to listen on; NULL: all */
    double rendezvous_timeout; /* seconds to wait for all ranks, at most 1e6; 0: 60 */
    double rank_timeout; /* seconds without an answer after which a rank counts as dead, 0.1..1e6;
                            0: 20 */
    void *user;          /* passed to on_note */
    qn_note_fn on_note;  /* reports lost ranks, and during qn_cluster_join the ranks that this one
                            waits for; runs on the thread that called a function here */
    uint32_t min_ranks; /* with "HOST:PORT", on rank 0: the run begins when so many ranks are there,
                           this one included. Others may join a training later. 0: all */
    /* What carries sums between machines; the same on all ranks.
     *   NULL, "auto"  MPI where the launcher started it and trials of the ranks say that it is at
     *                 least 1.3 times as fast as sockets; otherwise sockets
     *   "sockets"     TCP
     *   "mpi"         MPI; QN_USAGE without its launcher */
    const char *transport;
} qn_cluster_options;

/* Sets `size`, and every other member to 0 or NULL, its default. */
QN_API void qn_cluster_options_init(qn_cluster_options *options);

/* Connects this rank with the others and waits for them, at most options->rendezvous_timeout.
 *
 * On success *out is owned by the caller, for qn_cluster_leave; it is NULL, with QN_OK, when this
 * process is alone. After a failure it is NULL and all connections are closed. Fails with QN_USAGE
 * (options), QN_UNSUPPORTED (the launcher's library cannot be used; the message says which one),
 * QN_CLUSTER (ranks that did not come, or that have another version of Quern or of the contract;
 * the message names them), QN_IO or QN_MEMORY. */
QN_API qn_status qn_cluster_join(const qn_cluster_options *options, qn_cluster **out,
                                 qn_error *err);

/* Tells the other ranks that this one leaves, and frees the cluster and the memory that its ranks
 * share. It waits for no rank. Data sets from qn_data_share must be closed before. */
QN_API void qn_cluster_leave(qn_cluster *cluster);

/* Number of this rank, from 0. */
QN_API uint32_t qn_cluster_rank(const qn_cluster *cluster);
/* Number of ranks at the start, dead ones included; at least 1. */
QN_API uint32_t qn_cluster_ranks(const qn_cluster *cluster);
/* Number of ranks that are alive, as far as this one knows. */
QN_API uint32_t qn_cluster_alive(const qn_cluster *cluster);

/* *index: which of the ranks of its machine this one is, from 0; *count: number of ranks of that
 * machine at the start. Either may be NULL. */
QN_API void qn_cluster_local(const qn_cluster *cluster, uint32_t *index, uint32_t *count);

/* Number and host of a rank, for messages: "rank 2 on host-b". "rank 0" when there is no such rank.
 * The text is owned by the cluster. */
QN_API const char *qn_cluster_name(const qn_cluster *cluster, uint32_t rank);

/* 1 when this rank is the writer: it writes files and reports to the user. The writer is the living
 * rank with the lowest number, so the answer can change. 0 on a rank that has to leave. */
QN_API int qn_cluster_is_writer(const qn_cluster *cluster);

/* A value that must be the same on all ranks. */
typedef struct qn_agreement {
    size_t size;        /* sizeof(qn_agreement), in each element */
    const char *name;   /* for messages: "the training data", "--batch" */
    const char *value;  /* what this rank has, one line of readable text, which is compared. For
                           recipes (qn_model_recipe) the message names the keys that differ */
    const char *remedy; /* for the message where ranks differ; NULL: none */
} qn_agreement;

/* Compares values between all ranks, and shares failures. All ranks call this together before they
 * work, with the same items in the same order; names, values and remedies are at most 65,536 bytes
 * together. `own` is this rank's failure so far; NULL, or status QN_OK: none. `item` may be NULL
 * when `count` is 0. `cluster` may be NULL: the failure in `own` is returned, if any.
 *
 * When a rank has a failure, all ranks return it; the message names the rank unless all have the
 * same. When values differ, all return QN_MISMATCH for the first such item; the message names the
 * ranks and hosts in the minority and what differs. Of several ranks that fail or differ, each gets
 * a message about itself, and all others get that of the lowest; the status is the same on all
 * ranks. In both cases the cluster can still be used. QN_CLUSTER: this rank has to leave.
 * QN_MEMORY: all ranks fail. qn_train_open and qn_predict compare recipes and data themselves. */
QN_API qn_status qn_cluster_agree(qn_cluster *cluster, const qn_error *own,
                                  const qn_agreement *item, uint32_t count, qn_error *err);

/* The writer calls this when all files are written. `code` is the exit code of the run, on all
 * ranks. Does nothing on a rank that has to leave. */
QN_API void qn_cluster_finish(qn_cluster *cluster, int code);

/* Waits until this rank has something to do, or the run is over. Returns
 *   0  the run is not over and this rank is the writer: write the files, call qn_cluster_finish and
 *      then this again
 *   1  the run is over: *code is the code of qn_cluster_finish, or 1 after a failure of all ranks
 *   2  this rank has to leave (QN_CLUSTER): *code is 0 when the others continue without it, 1 when
 *      it could not reach enough of them
 * `code` may be NULL. For a NULL cluster it returns 0 at once, every time. */
QN_API int qn_cluster_over(qn_cluster *cluster, int *code);

/* Asks all ranks to stop at the end of a step, the same step on all. Does not wait. Safe in a
 * signal handler and in another thread. */
QN_API void qn_cluster_stop(qn_cluster *cluster);

/* The MPI library that mpirun would use here. Texts that do not apply are empty. */
typedef struct qn_cluster_library {
    size_t size;       /* sizeof(qn_cluster_library) */
    char name[128];    /* "Open MPI 5.0.11"; empty: none was found */
    char path[256];    /* its file */
    char launcher[64]; /* the launcher of this process: "mpirun (Open MPI)", "srun" */
    char deaths[256];  /* the command of its launcher that lets the other ranks continue when one
                          dies; empty: there is none, start again from the checkpoint */
    char reason[512];  /* why none was found, and what to do */
} qn_cluster_library;

/* Looks for the MPI library without starting it, and fills *library. When there is none it returns
 * QN_OK too, and `reason` says why. Fails with QN_USAGE only (an invalid size). */
QN_API qn_status qn_cluster_library_get(qn_cluster_library *library, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
