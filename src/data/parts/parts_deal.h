/* Which files a rank reads: a range of those that all ranks name, or all that it names itself. */
#ifndef QN_DATA_PARTS_PARTS_DEAL_H
#define QN_DATA_PARTS_PARTS_DEAL_H

#include "data/bytes/file_list.h"
#include "data/parts/parts.h"

typedef struct qn__parts_lot {
    qn__file_list list, labels; /* all that are named; `labels` may have none */
    size_t from, to;            /* those of this rank, also of the labels */
    int encloses;               /* 1: folders or archives of images */
    int shared;                 /* 1: of the only one each rank reads a share */
} qn__parts_lot;

/* Collective; sets parts->dealt. Settled ranks get no file. Release in any case. Fails as
 * qn__file_list_make does, on all ranks alike. */
qn_status qn__parts_deal(qn_parts *parts, const char *const *paths, size_t count,
                         const qn_data_options *options, qn__parts_lot *out, qn_error *err);
void qn__parts_lot_release(qn__parts_lot *lot);

/* What messages call the files from .. to-1: "b.csv and 3 more". `name`, of `size` bytes, stays as
 * it is where there are none. */
void qn__parts_name_files(const qn__file_list *list, size_t from, size_t to, char *name,
                          size_t size);

#endif
