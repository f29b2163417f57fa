/* The map of characters of SentencePiece, `precompiled_charsmap` of the normaliser Precompiled
 * (docs/exactness.md 25.58). Start with {0}. */
#ifndef QN_DATA_TOKENS_STEPS_CHARSMAP_H
#define QN_DATA_TOKENS_STEPS_CHARSMAP_H

#include "data/tokens/unicode/byte_buffer.h"

typedef struct qn__charsmap {
    char *base64;   /* as in the file */
    uint8_t *bytes; /* decoded: `units` of 4 bytes, then the texts, each with a NUL after it */
    size_t units, size;
} qn__charsmap;

/* Fails with QN_FORMAT or QN_MEMORY. */
qn_status qn__charsmap_read(qn__charsmap *map, const char *base64, qn_error *err);
/* Appends what the map makes of a text; broken bytes stay as they are. Fails with QN_MEMORY. */
qn_status qn__charsmap_apply(const qn__charsmap *map, const uint8_t *text, size_t size,
                             qn__byte_buffer *out, qn_error *err);
void qn__charsmap_release(qn__charsmap *map);

#endif
