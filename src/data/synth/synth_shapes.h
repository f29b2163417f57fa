/* The skeletons of the synthetic digits. */
#ifndef QN_DATA_SYNTH_SYNTH_SHAPES_H
#define QN_DATA_SYNTH_SYNTH_SHAPES_H

#include <stdint.h>

#define QN__STROKES_MAX 3
#define QN__STROKE_POINTS 14

/* One form of a digit, on a sheet from -50 (top) to 50 (bottom) and about from -30 to 30 across. A
 * stroke is a smooth line through its points; the same point twice makes a corner. */
typedef struct qn__shape {
    uint8_t weight; /* relative frequency among the shapes of its digit; they sum to 16 */
    uint8_t count[QN__STROKES_MAX]; /* points of each stroke, 0 if there is none */
    int8_t points[QN__STROKES_MAX][QN__STROKE_POINTS][2];
} qn__shape;

#define QN__SHAPES_OF_A_DIGIT 4
extern const qn__shape qn__shapes[10][QN__SHAPES_OF_A_DIGIT];

#endif
