/* Reductions: integer sums over all ranks, which stay correct when ranks die.
 *
 * Ranks exchange one kind of data: an array of int64. Each rank adds the parts of some *chunks*
 * (grains of a step, pieces of a validation). Each chunk counts exactly once, and every rank gets
 * the total. Results that are not sums, such as classes of items, have an element each: one rank
 * writes it, the others add zero.
 *
 * All ranks make the same reductions in the same order:
 *
 *       qn__reduction_begin(c, &reduction)
 *       while (qn__reduction_chunks(c, &range))
 *           compute the range; add to qn__reduction_part(c)
 *       qn__reduction_finish(c, chunks, &more, &total)
 *
 * `more` is 1 if a rank died and this rank has further chunks: the loop runs again.
 *
 * Each word of a complete total is checked: its parts must come from all live ranks and hold all
 * chunks of the reduction. If not, all ranks fail.
 *
 * The total stays valid until the second next qn__reduction_begin of this rank. When a rank dies,
 * ranks that have finished a reduction help those that have not. So at most the chunks of one
 * reduction are computed again, and no state is rolled back.
 *
 * When a rank fails in another way than by its own death (qn__cluster_fail), the next call on every
 * rank returns that failure. All calls come from one thread, always the same. */
#ifndef QN_CLUSTER_CLUSTER_H
#define QN_CLUSTER_CLUSTER_H

#include "base/error.h"
#include "cluster/reduction/reduction.h"
#include "cluster/reduction/shares.h"
#include "cluster/transport/ranks.h"
#include "cluster/transport/transport.h"
#include <quern/cluster.h>

/* Reserves memory for parts and totals, so that no reduction allocates. Collective. */
qn_status qn__cluster_reserve(qn_cluster *c, uint64_t words, qn_error *err);

/* QN_CLUSTER: this rank has to leave, because the others continue without it or too few of them can
 * be reached. It must not write any file afterwards. Every call below may return it. */
qn_status qn__reduction_begin(qn_cluster *c, const qn__reduction *reduction, qn_error *err);
/* The next range of this rank: 1, or 0 if there is none at present. */
int qn__reduction_chunks(qn_cluster *c, qn__chunk_range *range);
/* The words of this rank, not cleared: the caller fills them. */
int64_t *qn__reduction_part(qn_cluster *c);
/* Optional: words first .. first+count-1 of the part are complete, so they may be sent while others
 * are computed. `chunks`: the number of chunks that they hold. They are sent only if these are all
 * chunks that this rank has. Words are announced from the end of the part to its beginning, each
 * once. The caller does not change them again unless qn__reduction_finish returns further
 * chunks. */
void qn__reduction_final(qn_cluster *c, uint64_t first, uint64_t count, uint32_t chunks);
/* `chunks`: the number of chunks in the part; it must equal the number that qn__reduction_chunks
 * returned. *more: 1 if a rank died in this reduction and this rank has further chunks. */
qn_status qn__reduction_finish(qn_cluster *c, uint32_t chunks, int *more, const int64_t **total,
                               qn_error *err);

/* Tells the other ranks the measured cost of this rank's chunks; it is sent with the next
 * reduction. */
void qn__cluster_cost(qn_cluster *c, qn__reduction_kind kind, qn__cost cost);

/* 1 if a rank requested a stop (qn_cluster_stop). After a reduction all ranks get the same
 * answer. */
int qn__cluster_stopping(const qn_cluster *c);
/* Collective, after the same reduction: the request to stop was handled; ranks may continue. */
void qn__cluster_go_on(qn_cluster *c);

/* Requests that all ranks save after the next reduction. */
void qn__cluster_request_save(qn_cluster *c);
/* 1 if a rank requested a save. After a reduction all ranks get the same answer. */
int qn__cluster_saving(const qn_cluster *c);
/* Collective, after the same reduction: all ranks have saved. */
void qn__cluster_saved(qn_cluster *c);

/* ------------------------------------------------------------------------------- ranks that join
 *
 * While rank 0 holds the door open, a rank may come to the address at which the ranks have met: one
 * that died and was started again. qn_cluster_join returns it a cluster in which it is alone and
 * not the writer, with which it makes all calls up to qn__cluster_enter. The others let it in
 * between two reductions: they and it connect anew. */

/* Not collective. From now on, until qn__cluster_close_door or the end, ranks may come; only on
 * rank 0, and only where the ranks have met at an address. Elsewhere nothing happens. A rank that
 * comes must agree with what the ranks have compared last (qn_cluster_agree). */
void qn__cluster_open_door(qn_cluster *c);
void qn__cluster_close_door(qn_cluster *c);
/* Not collective: if a rank is ready, requests that it is let in after the next reduction. */
void qn__cluster_ask_door(qn_cluster *c);
/* 1 if that was requested. After a reduction all ranks get the same answer. */
int qn__cluster_letting_in(const qn_cluster *c);
/* Collective, after the same reduction and with none begun: lets the rank in. *joined: its number
 * where that succeeded; qn_cluster_ranks(c) otherwise, and the run continues as before. Totals and
 * parts from before are not valid any more. */
qn_status qn__cluster_let_in(qn_cluster *c, uint32_t *joined, qn_error *err);

/* 1 on a rank that has come to a run and is not let in yet. */
int qn__cluster_is_joining(const qn_cluster *c);
/* On such a rank: waits until it is let in. The next collective calls are those that the others
 * make after qn__cluster_let_in. QN_MISMATCH: what it compared last differs. QN_CLUSTER: the
 * run has ended, or qn_cluster_stop was called. */
qn_status qn__cluster_enter(qn_cluster *c, qn_error *err);

/* Collective, before ranks exchange what a rank that joins could not find out by itself, such as
 * the parts of a table. From here to qn__cluster_open_door rank 0 keeps the total of each
 * reduction, and a rank that joins takes these instead of its own. So it makes the same calls. If
 * the door was open before, or the totals are too many, nobody can join. */
qn_status qn__cluster_remember(qn_cluster *c, qn_error *err);
/* 1 on a rank that joins and takes such totals. A failure of its own is not in them. */
int qn__cluster_takes_history(const qn_cluster *c);
/* On a rank that is not let in yet: bytes of a table of the run (qn__cluster_listener.whole), from
 * rank 0; any thread. *asked: 0 on other ranks, and where it was let in meanwhile. */
qn_status qn__cluster_ask_run(qn_cluster *c, uint64_t table, uint64_t first, uint64_t count,
                              void *to, int *asked, qn_error *err);

/* This rank cannot continue: all other ranks fail with a message that names rank and host. *why
 * becomes that message too, or that of another rank that failed earlier. */
void qn__cluster_fail(qn_cluster *c, qn_error *why);

/* This rank alone cannot continue, because its devices are lost. The others are notified and
 * continue without it. From now on every call here fails with QN_CLUSTER, and qn_cluster_over
 * returns at once. Returns 1 if other ranks are left. All may lose their devices in the same step,
 * so the call waits up to a second for their messages. 0, also for NULL: no rank continues. */
int qn__cluster_withdraw(qn_cluster *c);

/* A random number, not 0, that the ranks of this run share and other runs do not have. */
uint64_t qn__cluster_id(const qn_cluster *c);

/* For qn__writer_ask, with a qn_cluster or NULL: whether a temporary file of this rank may be
 * renamed to its final name. 1: this rank is the writer and all others have just confirmed it, for
 * which the call waits; also after a failure, when no other rank would write. 0: another rank has
 * become the writer meanwhile. */
int qn__cluster_may_write(void *cluster);
/* 1 if this rank begins what one rank does for all: the writer, and a rank that is not let in yet.
 */
int qn__cluster_is_first(const qn_cluster *c);
/* The error of a file that may not be renamed: QN_CLUSTER, with the reason. */
qn_status qn__cluster_refuse(qn_cluster *c, qn_error *err);

/* -------------------------------------------------------------------------- built on reductions */

/* All-gather: the bytes of rank r go to all + r * bytes, zeros for a dead rank. All ranks pass the
 * same number. */
qn_status qn__cluster_gather(qn_cluster *c, const void *own, uint64_t bytes, void *all,
                             qn_error *err);

/* Memory that the ranks of this machine share, initially zero. *first is 1 on the one rank of each
 * machine that has to fill it. qn_cluster_leave unmaps it. A reduction must follow before another
 * rank reads it. If ranks of a machine cannot share memory, *first is 1 on each of them. */
qn_status qn__cluster_common(qn_cluster *c, uint64_t bytes, void **memory, int *first,
                             qn_error *err);

/* Broadcast from the lowest live rank; the memory of the others is overwritten. */
qn_status qn__cluster_from_first(qn_cluster *c, void *memory, uint64_t bytes, qn_error *err);

/* ---------------------------------------------------------------------------- other messages */

/* Messages beside reductions, such as items of tables that are spread over ranks (items.h). They
 * use the connections, the authentication and the liveness of the transport. */
enum { QN__MESSAGE_ASK = 64, QN__MESSAGE_ANSWER, QN__LISTENED_FIRST = QN__MESSAGE_ASK };

/* Both are called by the transport's thread, one at a time, and must not block. */
typedef struct qn__cluster_listener {
    uint64_t table; /* it gets the messages that have this as their second number */
    void *user;
    /* Takes over the reference to `body`, which is NULL for an empty message. */
    void (*message)(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body);
    /* No further message comes from that rank. */
    void (*gone)(void *user, uint32_t rank);
    /* A rank has joined, and all have connected anew: what was sent and not answered is lost, and
     * ranks that are gone are told again. Until it returns, nothing comes from the new connections,
     * and buffers of the old ones are valid. May be NULL. */
    void (*renewed)(void *user);
    /* For a rank that joins: bytes of the whole table; may wait. 0: it does not have them. May be
     * NULL; called by another thread. */
    int (*whole)(void *user, uint64_t first, uint64_t count, void *to);
    qn__ranks told; /* the cluster's: it knows that these are gone */
    struct qn__cluster_listener *next;
} qn__cluster_listener;

/* The number of a table, which is the same on all ranks: all call this in the same order. */
uint64_t qn__cluster_table(qn_cluster *c);
/* Adds who gets such messages, until qn__cluster_unlisten. Those of no listener are discarded, and
 * an ASK gets an ANSWER without a body, with `extra` 1 and the numbers of the ASK. `gone` is called
 * at once for each rank that is gone already. */
void qn__cluster_listen(qn_cluster *c, qn__cluster_listener *listener);
/* Returns when the listener is not being called. */
void qn__cluster_unlisten(qn_cluster *c, qn__cluster_listener *listener);
/* Around the making of a buffer and its sending, for any thread but the transport's: a rank that
 * joins waits so long. */
void qn__cluster_hold(qn_cluster *c);
void qn__cluster_let_go(qn_cluster *c);
/* Sends such a message without waiting; takes over the reference to `body`. To a rank that is gone
 * it is discarded. */
void qn__cluster_send(qn_cluster *c, uint32_t to, const qn__head *head, qn__message_buffer *body);
/* A body for it, with one reference; NULL if out of memory. */
qn__message_buffer *qn__cluster_buffer(qn_cluster *c, uint64_t bytes);

/* ---------------------------------------------------------------------------------- for reports */

void qn__cluster_traffic(const qn_cluster *c, qn__rank_traffic *traffic);

const char *qn__cluster_host(const qn_cluster *c, uint32_t rank);

/* 1 if two ranks are on one machine and share memory. */
int qn__cluster_together(const qn_cluster *c, uint32_t one, uint32_t other);

/* The offset of the clock of `rank`: a time of this rank's clock plus the offset is a time of that
 * clock. In seconds. */
double qn__cluster_clock(const qn_cluster *c, uint32_t rank);

/* Bytes that a reduction of so many words would send and receive over the network on this rank at 8
 * bytes a word, calculated. Less travels (cluster/reduction/packed_words.h). */
void qn__cluster_count(const qn_cluster *c, uint64_t words, uint64_t *out, uint64_t *in);

#endif
