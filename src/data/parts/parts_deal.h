/* Which files a rank reads: a range of those that all ranks name, or all that it names itself. */
#ifndef QN_DATA_PARTS_PARTS_DEAL_H
#define QN_DATA_PARTS_PARTS_DEAL_H

#include "data/bytes/file_list.h"
#include "data/parts/parts.h"

typedef struct qn__parts_lot {
    qn__file_list list, labels; /* all that are named; `labels` may have none */
    size_t from, to;            /* those of this rank, also of the labels */
    int same;                   /* 1: all ranks name the same files */
    int encloses;               /* 1: folders or archives of images */
    int shared;                 /* 1: of the only one each rank reads a share */
} qn__parts_lot;

/* Collective; sets parts->dealt. Settled ranks get no file. Release in any case. Fails as
 * qn__file_list_make does, on all ranks alike. */
qn_status qn__parts_deal(qn_parts *parts, const char *const *paths, size_t count,
                         const qn_data_options *options, qn__parts_lot *out, qn_error *err);
void qn__parts_lot_release(qn__parts_lot *lot);

#endif
