/* The text of an augmentation, such as "pad 4; crop; flip; cutout 8" (docs/exactness.md 17.10). */
#ifndef QN_IMAGE_AUGMENT_TEXT_H
#define QN_IMAGE_AUGMENT_TEXT_H

#include "base/error.h"
#include "base/text/text.h"
#include "num/augment.h"

/* Pixels of a padding, and side of a square, at most. */
enum { QN__AUGMENT_MAX = 4096 };

/* Reads a text; NULL and blanks have no words. The shape of *out is all 0. Fails with QN_USAGE;
 * *out is then undefined. */
qn_status qn__augment_parse(const char *text, qn__augment *out, qn_error *err);

/* Checks that the words can act on items of augment->shape. Fails with QN_USAGE. */
qn_status qn__augment_check(const qn__augment *augment, qn_error *err);

/* Appends the words as qn__augment_parse reads them, in the one form that recipes have. */
void qn__augment_add_text(const qn__augment *augment, qn__text *text);

#endif
