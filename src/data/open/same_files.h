/* Whether ranks of one machine name the same files. One of them reads for all, so that other names
 * would have no effect. */
#ifndef QN_DATA_OPEN_SAME_FILES_H
#define QN_DATA_OPEN_SAME_FILES_H

#include "cluster/cluster.h"
#include <stddef.h>

/* Collective; `cluster` is not NULL. Files are the same by device, inode and size, whatever they
 * are called. Fails on all ranks alike: with QN_MISMATCH, whose message has the names of two ranks
 * that differ, or as a gather of the cluster does. */
qn_status qn__same_files(qn_cluster *cluster, const char *const *paths, size_t count,
                         qn_error *err);

#endif
