/* Ranks that end while parts are opened: others take their files, in the same order. The first two
 * functions are collective, as qn__parts_mend (parts.h), and return what it does. */
#ifndef QN_DATA_PARTS_PARTS_MEND_H
#define QN_DATA_PARTS_PARTS_MEND_H

#include "data/parts/parts_deal.h"

/* Before all know the files of each rank. The files are dealt again. */
int qn__parts_deal_again(qn_parts *parts, qn_status *status);

/* Before there is one table: `lot` becomes the files that this rank has now. */
int qn__parts_take_files(qn_parts *parts, qn__parts_lot *lot, qn_status *status, qn_error *err);

/* After this rank has read files of `lost` beside its own: says so in a failure. */
qn_status qn__parts_name_lost(const qn_parts *parts, uint32_t lost, qn_status status,
                              qn_error *err);

#endif
