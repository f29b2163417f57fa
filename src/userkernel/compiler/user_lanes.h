/* User kernels on a processor that compute several items in the lanes of vectors, also where these
 * have loops of unequal length. Each lane does the operations of its item in their order, so the
 * results have the same bits as one item after the other. */
#ifndef QN_USERKERNEL_COMPILER_USER_LANES_H
#define QN_USERKERNEL_COMPILER_USER_LANES_H

#include "userkernel/language/user_source.h"

/* Fills in the plan of the kernel's tree: which values and loops differ between items, and whether
 * lanes are used. */
void qn__user_lanes_plan(qn__user_source *source);

/* Writes the words that the text below needs, and the function qn_lanes: the kernel's body for
 * QV_W items. */
void qn__user_lanes_write_body(const qn__user_source *source, qn__text *out);

/* Writes a loop over the items `from` to `to` of a row, counted from i2, which calls qn_lanes.
 * `inner`: see qn__user_write_call. */
void qn__user_lanes_write_items(const qn__user_source *source, const char *from, const char *to,
                                const char *inner, qn__text *out);

#endif
