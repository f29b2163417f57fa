/* Many processes that do one job together: the ranks of a cluster.
 *
 * Every rank makes the same calls in the same order on the same recipe and the same data, with
 * `compute.cluster` set; each gets the whole result, the one that a single process would have
 * got, byte for byte. Ranks may die or fall silent at any moment: those that are left continue.
 *
 *     qn_cluster_options o;
 *     qn_cluster *c;
 *     int code = 0;
 *     qn_cluster_options_init(&o);
 *     if (qn_cluster_join(&o, &c, &err) != QN_OK) ...     c is NULL where nobody else was started
 *     options.compute.cluster = c;
 *     ... qn_train_open, qn_train_run, qn_train_report_get: all ranks ...
 *     while (!qn_cluster_over(c, &code))                  of those alive, one at a time gets here
 *         code = write_the_files(), qn_cluster_finish(c, code);
 *     qn_cluster_leave(c);
 *
 * A qn_cluster is used by one thread at a time, but for qn_cluster_stop. All functions but
 * qn_cluster_join take NULL for a run of one process: rank 0 of 1, which is the writer. */
#ifndef QUERN_CLUSTER_H
#define QUERN_CLUSTER_H

#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_cluster qn_cluster;

typedef struct qn_cluster_options {
    size_t size; /* sizeof(qn_cluster_options) */
    /* How the ranks find one another.
     *   NULL, "auto"  by what the launcher left in the environment: MPI's own library under mpirun,
     *                 the list of nodes under srun; nobody where there is no launcher
     *   "none"        alone, whatever the environment says
     *   "HOST:PORT"   at this address, where rank 0 listens; `ranks` and `rank` say who there is */
    const char *rendezvous;
    uint32_t ranks, rank;  /* with "HOST:PORT" */
    const char *key;       /* with "HOST:PORT": a secret that all ranks know; NULL: none, and then
                              HOST has to be an address of this machine alone */
    const char *interface; /* network interface or address to listen on; NULL: all */
    double rendezvous_timeout; /* seconds in which all have to be there; 0: 60 */
    double rank_timeout;       /* seconds of silence after which a rank counts as dead; 0: 20 */
    void *user;                /* handed to on_note */
    qn_note_fn on_note;        /* told of lost ranks; on the thread that called */
} qn_cluster_options;

QN_API void qn_cluster_options_init(qn_cluster_options *options);

/* Meets the others. *out is NULL, with QN_OK, where there are none. QN_USAGE for options that make
 * no sense, QN_UNSUPPORTED when a launcher's library cannot be used (the message says which and
 * what to do), QN_CLUSTER when the others did not come or are of another version of Quern or of
 * the contract; the message names who. */
QN_API qn_status qn_cluster_join(const qn_cluster_options *options, qn_cluster **out,
                                 qn_error *err);

/* Tells the other ranks that this one leaves, and frees; no rank waits for another. Accepts NULL.
 */
QN_API void qn_cluster_leave(qn_cluster *cluster);

QN_API uint32_t qn_cluster_rank(const qn_cluster *cluster);  /* this one's number, from 0 */
QN_API uint32_t qn_cluster_ranks(const qn_cluster *cluster); /* that the run was started with */
QN_API uint32_t qn_cluster_alive(const qn_cluster *cluster); /* of them that are left */

/* This rank's number among those of its machine, from 0, and how many these are. `index` and
 * `count` may be NULL. */
QN_API void qn_cluster_local(const qn_cluster *cluster, uint32_t *index, uint32_t *count);

/* Who a rank is, for messages: "rank 2 on host-b". Belongs to the cluster. */
QN_API const char *qn_cluster_name(const qn_cluster *cluster, uint32_t rank);

/* 1 when this rank is the writer: it writes files and reports to the user. The writer is the rank
 * with the lowest number of those alive, so a rank may become it at any moment. */
QN_API int qn_cluster_is_writer(const qn_cluster *cluster);

/* Something that all ranks have to hold alike. */
typedef struct qn_agreement {
    size_t size;        /* sizeof(qn_agreement) */
    const char *name;   /* for messages: "the training data", "--batch" */
    const char *value;  /* what this rank holds, in a line that a person can read: texts are what is
                           compared. Of recipes (qn_model_recipe) the keys that differ are told */
    const char *remedy; /* where ranks differ; NULL: none */
} qn_agreement;

/* For all ranks together, before they work: whether each is ready and all hold the same. `own` is
 * this rank's failure so far (NULL, or QN_OK in it: none); where some rank has one, all get it.
 * Where values differ all get QN_MISMATCH, which names the ranks and hosts that are in the minority
 * and how they differ, for the first such item. All ranks give the same items in the same order.
 * With `cluster` NULL the answer is `own`. qn_train_open and qn_predict agree on recipes and data
 * themselves. */
QN_API qn_status qn_cluster_agree(qn_cluster *cluster, const qn_error *own,
                                  const qn_agreement *item, uint32_t count, qn_error *err);

/* For the writer rank: all that had to be written is written, with this exit code. */
QN_API void qn_cluster_finish(qn_cluster *cluster, int code);

/* Waits until the run is finished: 1, with the exit code. 0: it is not, and this rank is the
 * writer. On a rank that had to leave (QN_CLUSTER), 2 at once: with 0 where the others continue
 * without it, with 1 where it could not reach enough of them. `code` may be NULL. */
QN_API int qn_cluster_over(qn_cluster *cluster, int *code);

/* Asks all ranks to stop at the end of a step, the same for all. Safe in a signal handler. */
QN_API void qn_cluster_stop(qn_cluster *cluster);

/* What could carry a run over several processes here. */
typedef struct qn_cluster_library {
    size_t size;       /* sizeof(qn_cluster_library) */
    char name[128];    /* "Open MPI 5.0.11"; empty when none was found */
    char path[256];    /* the file */
    char launcher[64]; /* what it was started by: "mpirun (Open MPI)", "srun"; empty: nothing */
    char deaths[256];  /* the option of its launcher that lets the other ranks continue when one
                          fails; empty: it cannot, start again from the checkpoint */
    char reason[512];  /* why there is none, with a remedy */
} qn_cluster_library;

/* Looks for the MPI library; starts nothing. Where there is none, `reason` says so, and the answer
 * is QN_OK too. */
QN_API qn_status qn_cluster_library_get(qn_cluster_library *library, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
