/* Whether ranks say the same about their data. Where one rank reads for others, what these say has
 * no effect; parts that are read in different ways are not one table. */
#ifndef QN_DATA_OPEN_SAME_OPTIONS_H
#define QN_DATA_OPEN_SAME_OPTIONS_H

#include "cluster/cluster.h"
#include <quern/data.h>

/* Collective: takes the options of a caller as qn__data_options_take, on all ranks, and compares
 * them. Paths are not compared. With `parts` a rank may have files of its own kind: queries and
 * headers may differ. `cluster` may be NULL. Fails on all ranks alike: as qn__data_options_take on
 * one of them, or as qn_cluster_agree. */
qn_status qn__same_options(qn_cluster *cluster, const char *function, const qn_data_options *given,
                           int parts, qn_data_options *out, qn_error *err);

#endif
