/* What the first bytes of an image file say about the image, without decoding it. */
#ifndef QN_IMAGE_IMAGE_HEAD_H
#define QN_IMAGE_IMAGE_HEAD_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* A decoder allocates by width and height, which a few bytes can claim: more is refused. */
enum { QN__IMAGE_SIDE_MAX = 65535, QN__IMAGE_PIXELS_MAX = 1 << 27 };

typedef enum qn__image_kind {
    QN__IMAGE_NONE,  /* the file begins like no image */
    QN__IMAGE_OTHER, /* one that is not read: image_other.h */
    QN__IMAGE_JPEG,
    QN__IMAGE_PNG,
    QN__IMAGE_GIF, /* from here on read since contract 7 */
    QN__IMAGE_WEBP,
    QN__IMAGE_TIFF,
    QN__IMAGE_BMP
} qn__image_kind;
enum { QN__IMAGE_KINDS = QN__IMAGE_BMP + 1 };

typedef struct qn__image_head {
    qn__image_kind kind;
    uint32_t channels;      /* 1: grey, with or without alpha; 3: colours, a palette included */
    uint32_t height, width; /* as stored */
    uint32_t orientation;   /* of Exif: 1 to 8; 1 where none is told */
    int ignored;            /* the caller's: 1 where the orientation is not followed */
    int partial;            /* more bytes of the file may have an orientation */
    uint32_t other;         /* which format it is, where that is not read: image_other.h */
} qn__image_head;

/* Whether width and height are exchanged when the orientation is applied. */
static inline int qn__image_lies(const qn__image_head *head) {
    return head->orientation >= 5 && !head->ignored;
}

/* Height and width of the image after the orientation is applied. */
static inline uint32_t qn__image_height(const qn__image_head *head) {
    return qn__image_lies(head) ? head->width : head->height;
}
static inline uint32_t qn__image_width(const qn__image_head *head) {
    return qn__image_lies(head) ? head->height : head->width;
}

/* Reads the head of a file of which `size` bytes are at `bytes`. Fails with QN_INPUT, without a
 * place: the file is empty, of another format, cut off in its head, too large, of no size, or of a
 * kind that is not read, such as CMYK. head->kind is set in any case, and head->other where that
 * is QN__IMAGE_OTHER. */
qn_status qn__image_head_read(const uint8_t *bytes, size_t size, qn__image_head *head,
                              qn_error *err);

/* 1 when a file with these first bytes, 160 where it has them, is an image, read or not. */
int qn__image_is(const uint8_t *bytes, size_t size);

#endif
