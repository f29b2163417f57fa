/* The digest of a whole whose rows are with several ranks: docs/exactness.md 2.2. */
#ifndef QN_DATA_PARTS_PARTS_DIGEST_H
#define QN_DATA_PARTS_PARTS_DIGEST_H

#include "data/parts/parts.h"

/* Collective: fills parts->digest. Each rank hashes the blocks of 1 MiB that begin in its rows, and
 * gets the rest of the last one from the ranks after it. Fails with QN_MEMORY, or as a gather. */
qn_status qn__parts_digest(qn_parts *parts, qn_error *err);

#endif
