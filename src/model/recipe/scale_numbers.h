/* The scaling of images by given means and deviations of channels: docs/exactness.md 24.51. */
#ifndef QN_MODEL_RECIPE_SCALE_NUMBERS_H
#define QN_MODEL_RECIPE_SCALE_NUMBERS_H

#include "base/error.h"
#include <stdint.h>

enum { QN__SCALE_CHANNELS = 16, QN__SCALE_NUMBERS_TEXT = 2 * QN__SCALE_CHANNELS * 32 };

/* Of values from 0 to 1. */
typedef struct qn__scale_numbers {
    uint32_t channels;
    float mean[QN__SCALE_CHANNELS], deviation[QN__SCALE_CHANNELS];
} qn__scale_numbers;

/* Whether a text is meant as such numbers: "imagenet", or one with a "/". */
int qn__scale_numbers_meant(const char *text);

/* Reads "imagenet" or "0.5,0.5,0.5/0.25,0.25,0.25", means before deviations. Blanks may stand
 * around each number. Fails with QN_USAGE. */
qn_status qn__scale_numbers_parse(const char *text, qn__scale_numbers *out, qn_error *err);

/* The one way to write them that recipes have: numbers, without blanks. */
void qn__scale_numbers_text(const qn__scale_numbers *numbers, char text[QN__SCALE_NUMBERS_TEXT]);

/* The mean and the deviation of each channel of the items. `bytes`: 1: 255 stands for 1. */
void qn__scale_numbers_of_items(const qn__scale_numbers *numbers, int bytes, float *mean,
                                float *deviation);

#endif
