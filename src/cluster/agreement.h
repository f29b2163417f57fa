/* Agreements of ranks: all compare texts, and fail together where these differ. */
#ifndef QN_CLUSTER_AGREEMENT_H
#define QN_CLUSTER_AGREEMENT_H

#include "base/error.h"
#include <quern/cluster.h>

/* The maximum size of one rank's names, values and remedies together. */
enum { QN__AGREED_BYTES = 1 << 16 };

/* Says in `text` (`size` bytes) where two texts in JSON differ. */
typedef size_t qn__text_differences(const char *one, const char *other, char *text, size_t size);

/* qn_cluster_agree of <quern/cluster.h>. `differ` is called for texts that begin with a brace;
 * NULL: they are shown as they are. */
qn_status qn__cluster_agree(qn_cluster *cluster, const qn_error *own, const qn_agreement *item,
                            uint32_t count, qn__text_differences *differ, qn_error *err);

/* Compares what this rank has compared last with `other`, which rank 0 has. QN_MISMATCH, with the
 * message of qn_cluster_agree: they differ. */
qn_status qn__cluster_same_as(const qn_cluster *cluster, const char *other, uint64_t bytes,
                              qn_error *err);

#endif
