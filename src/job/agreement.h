/* Agreements of ranks: qn_cluster_agree of <quern/cluster.h> is in agreement.c. */
#ifndef QN_JOB_AGREEMENT_H
#define QN_JOB_AGREEMENT_H

/* The maximum size of one rank's names, values and remedies together. */
enum { QN__AGREED_BYTES = 1 << 16 };

#endif
