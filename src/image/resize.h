/* Resizing and cropping: docs/exactness.md 2.9, and 24.50 for the filters of Pillow.
 *
 * Without a filter, a pixel of the result is one exact quotient, rounded once, so that the bytes do
 * not depend on how it is computed: the average over an area where an image becomes smaller, linear
 * interpolation where it becomes larger, each axis by itself. */
#ifndef QN_IMAGE_RESIZE_H
#define QN_IMAGE_RESIZE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* Sides of what is made, at most. */
enum { QN__RESIZE_MAX = 4096 };

typedef enum qn__filter {
    QN__FILTER_NONE, /* the rule of 2.9 */
    QN__FILTER_BILINEAR,
    QN__FILTER_BICUBIC,
    QN__FILTERS
} qn__filter;

typedef struct qn__resize {
    uint16_t shorter;       /* 0: both sides are made those below; else: the shorter side becomes
                               this, the other in proportion, and the middle is cut out */
    uint16_t filter;        /* a qn__filter */
    uint32_t height, width; /* of the result; 0: images stay as they are */
} qn__resize;

/* Reads "32x48" (height x width), "short 36 crop 32" or "short 36 crop 32x32", each with a filter
 * after it or without: "32x48 bicubic". NULL leaves images as they are. Fails with QN_USAGE. */
qn_status qn__resize_parse(const char *text, qn__resize *out, qn_error *err);

/* The one way to write it that recipes have: "32x48", "short 36 crop 32x32 bilinear"; "" where
 * images stay as they are. */
enum { QN__RESIZE_TEXT = 40 };
void qn__resize_text(const qn__resize *resize, char text[QN__RESIZE_TEXT]);

/* Makes resize->height x resize->width pixels as planes, [channel][row][column], of `height` x
 * `width` pixels, [row][column][channel]; 1 or 3 channels, sides from 1 to 65,535. Fails with
 * QN_INPUT (sides of the image differ too much) or QN_MEMORY. */
qn_status qn__resize_planes(const qn__resize *resize, const uint8_t *pixels, uint32_t height,
                            uint32_t width, uint32_t channels, uint8_t *planes, qn_error *err);

#endif
