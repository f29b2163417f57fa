/* What the lengths of a shape mean: a row for each kind of axes. */
#ifndef QN_LAYER_AXES_H
#define QN_LAYER_AXES_H

#include "num/program.h"

typedef struct qn__axes_row {
    const char *name;    /* of the values, in messages */
    const char *lengths; /* what the lengths are, in the order in which texts write them */
    uint32_t count;      /* of the lengths */
    uint32_t at[3];      /* which of channels (0), height (1) and width (2) each of them is */
} qn__axes_row;

/* Features are the picture of one pixel. */
const qn__axes_row *qn__axes_of(qn__shape shape);

enum { QN__SHAPE_TEXT = 40 };

/* The lengths as recipes, options and messages write them: "3x32x32", of features "784x1x1", of a
 * sequence positions and channels, "128x64". Returns `text`. */
const char *qn__shape_text(qn__shape shape, char text[QN__SHAPE_TEXT]);

#endif
