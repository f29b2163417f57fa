/* siphash's lanes without instructions of their own. */
#include "base/digest/siphash_lanes.h"

void qn__siphash_blocks_portable(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    qn__lanes_blocks(v, bytes, blocks);
}
