/* Image files to pixels, by libraries that are opened when they are needed.
 *
 * Pixels are bytes, row after row from the top, one byte a pixel (grey) or three (red, green,
 * blue). docs/images.md says what becomes of palettes, alpha, 16 bits and colour profiles. */
#ifndef QN_IMAGE_DECODE_H
#define QN_IMAGE_DECODE_H

#include "base/system/library.h"
#include "base/text/text.h"
#include "image/image_head.h"

/* What one thread needs to decode; begins as {0}. */
typedef struct qn__decoder {
    void *jpeg; /* of libjpeg-turbo; made at the first JPEG file */
} qn__decoder;
void qn__decoder_release(qn__decoder *decoder);

/* Decodes a whole file, whose head was read before, into height x width x channels bytes.
 * `channels` may be 3 for a grey image: its three are then equal. Fails with QN_INPUT without a
 * place (the file is broken or cut off), QN_MEMORY, or QN_UNSUPPORTED (the library is not
 * installed). */
qn_status qn__image_decode(qn__decoder *decoder, const uint8_t *bytes, size_t size,
                           const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                           qn_error *err);

/* Appends for each library its file, with size and time of change. A cache of decoded pixels is
 * valid while this text is the same. */
void qn__image_libraries_add(qn__text *to);

/* The name of a kind, such as "jpeg", and the library that decodes it; NULL: none is needed. */
const char *qn__image_kind_name(qn__image_kind kind);
qn__optional_library *qn__image_library(qn__image_kind kind);

#endif
