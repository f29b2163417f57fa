/* Reductions: integer sums over all ranks, which stay correct when ranks die.
 *
 * Ranks exchange one kind of data: an array of int64. Every rank adds the parts of some *chunks*
 * (grains of a step, pieces of a validation). Each chunk counts exactly once, and every rank gets
 * the total. Results that are not sums, such as classes of items, have places of their own: one
 * rank writes a place, the others add zero to it.
 *
 * All ranks make the same reductions in the same order:
 *
 *     qn__reduction_begin(c, &reduction)          how many words, how many chunks
 *     while (qn__reduction_chunks(c, &range))     this rank's share of the chunks
 *         compute them; add to qn__reduction_part(c)
 *     qn__reduction_finish(c, chunks, &more, &total)
 *                                                 waits for the others; more: a rank died, and
 *                                                 there are further chunks for this one: continue
 * above
 *
 * Every word of a total is checked when it is complete: its parts must come from all ranks that are
 * alive and hold all chunks of the reduction. A total that does not is an error of all ranks.
 *
 * The total stays valid until this rank's second next qn__reduction_begin. A rank that has finished
 * a reduction helps those that had not when a rank died. So at most the chunks of one reduction are
 * computed again, and no state goes back.
 *
 * When a rank fails with anything but its own death (qn__cluster_fail), every rank gets that
 * failure from its next call here: all stop alike. All calls come from one thread, always the same.
 */
#ifndef QN_CLUSTER_CLUSTER_H
#define QN_CLUSTER_CLUSTER_H

#include "base/error.h"
#include "cluster/reduction/reduction.h"
#include "cluster/reduction/shares.h"
#include "cluster/transport/ranks.h"
#include <quern/cluster.h>

/* Room for words of parts and totals, so that no reduction has to make it; all ranks alike. */
qn_status qn__cluster_reserve(qn_cluster *c, uint64_t words, qn_error *err);

/* QN_CLUSTER: this rank has to leave: the others continue without it, or cannot be reached by
 * enough of them. It must write nothing any more. Every call below may return it. */
qn_status qn__reduction_begin(qn_cluster *c, const qn__reduction *reduction, qn_error *err);
/* The next of this rank's ranges: 1, or 0 when there is none (any more). */
int qn__reduction_chunks(qn_cluster *c, qn__chunk_range *range);
/* This rank's words, not cleared: the caller fills them by its add_up. */
int64_t *qn__reduction_part(qn_cluster *c);
/* Optional: words first .. first+count-1 of the part are complete, so they may travel while others
 * are computed. `chunks`: how many chunks they hold. Nothing is sent unless these are all chunks of
 * this rank, as far as it knows. Words are announced from the end of the part to its beginning,
 * each once; the caller does not change them again unless add_up brings further chunks. */
void qn__reduction_final(qn_cluster *c, uint64_t first, uint64_t count, uint32_t chunks);
/* `chunks`: how many chunks the part holds; they must be all that qn__reduction_chunks handed out.
 * *more: 1 when a rank died in this reduction and there are further chunks for this one. */
qn_status qn__reduction_finish(qn_cluster *c, uint32_t chunks, int *more, const int64_t **total,
                               qn_error *err);

/* Told with the next reduction. */
void qn__cluster_cost(qn_cluster *c, qn__reduction_kind kind, qn__cost cost);

/* 1 when some rank asked to stop (qn_cluster_stop): the same answer on all ranks after a reduction.
 */
int qn__cluster_stopping(const qn_cluster *c);
/* For all ranks after the same reduction: they have stopped, and may begin anew. */
void qn__cluster_go_on(qn_cluster *c);

/* This rank would like all to save after the reduction that follows. */
void qn__cluster_wish_save(qn_cluster *c);
/* 1 when some rank wished it: the same answer on all ranks after a reduction. */
int qn__cluster_saving(const qn_cluster *c);
/* For all ranks after the same reduction: they have saved. */
void qn__cluster_saved(qn_cluster *c);

/* This rank cannot continue: all others fail alike, with a message that names rank and host, and
 * that *why becomes too; if some rank has failed before, with that one's. */
void qn__cluster_fail(qn_cluster *c, qn_error *why);

/* This rank alone cannot continue (its devices are lost): the others are told at once and continue
 * without it; every call here fails with QN_CLUSTER from now on, and qn_cluster_over returns at
 * once. 1 when some others are left. All may lose their devices in the same step, so it looks for a
 * second whether someone is: 0, also of NULL, when nobody continues. */
int qn__cluster_withdraw(qn_cluster *c);

/* For qn__writer_ask, of a qn_cluster or NULL: whether a file that this rank has written may take
 * its place. 1 when it speaks and all others have just said that they count on it, for which it
 * waits; where some rank has failed there is nobody left who would write instead. 0: it was held up
 * meanwhile, and the place is the others'. */
int qn__cluster_may_write(void *cluster);
/* What a file that may not take its place fails with: QN_CLUSTER, and why. */
qn_status qn__cluster_refuse(qn_cluster *c, qn_error *err);

/* --------------------------------------------------------------------------- built on reductions
 */

/* Every rank's `bytes` bytes, those of rank r at all + r * bytes, zeros where a rank is dead; all
 * ranks give the same number. */
qn_status qn__cluster_gather(qn_cluster *c, const void *own, uint64_t bytes, void *all,
                             qn_error *err);

/* Memory that the ranks of this machine share, zeros at first; *first is 1 for the one rank of each
 * machine that is to fill it. Unmapped by qn_cluster_leave. Followed by a reduction before anybody
 * else reads it. Where ranks of one machine cannot share, each is `first` of its own. */
qn_status qn__cluster_common(qn_cluster *c, uint64_t bytes, void **memory, int *first,
                             qn_error *err);

/* Copies the bytes of the lowest rank alive to all; the others' memory is overwritten. */
qn_status qn__cluster_from_first(qn_cluster *c, void *memory, uint64_t bytes, qn_error *err);

/* ------------------------------------------------------------------------------- for reports */

void qn__cluster_traffic(const qn_cluster *c, qn__rank_traffic *traffic);

const char *qn__cluster_host(const qn_cluster *c, uint32_t rank);

/* What to add to a moment of this rank's clock to have the same moment on `rank`'s. */
double qn__cluster_clock(const qn_cluster *c, uint32_t rank);

/* What a reduction of these words sends and receives over the network on this rank, by count. */
void qn__cluster_count(const qn_cluster *c, uint64_t words, uint64_t *out, uint64_t *in);

#endif
