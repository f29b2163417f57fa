/* What the first bytes of a JPEG or PNG file say about the image, without decoding it. */
#ifndef QN_IMAGE_IMAGE_HEAD_H
#define QN_IMAGE_IMAGE_HEAD_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* A decoder allocates by width and height, which a few bytes can claim: more is refused. */
enum { QN__IMAGE_SIDE_MAX = 65535, QN__IMAGE_PIXELS_MAX = 1 << 27 };

typedef enum qn__image_kind { QN__IMAGE_JPEG, QN__IMAGE_PNG } qn__image_kind;

typedef struct qn__image_head {
    qn__image_kind kind;
    uint32_t channels; /* 1: grey, with or without alpha; 3: colours, a palette included */
    uint32_t height, width;
} qn__image_head;

/* Reads the head of a file of which `size` bytes are at `bytes`. Fails with QN_INPUT, without a
 * place: the file is empty, of another format, cut off in its head, too large, of no size, or CMYK.
 */
qn_status qn__image_head_read(const uint8_t *bytes, size_t size, qn__image_head *head,
                              qn_error *err);

#endif
