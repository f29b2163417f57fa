/* Class activation maps of mistakes (Zhou et al. 2016): which parts of an image spoke for the class
 * that was predicted. docs/exactness.md 24.90. */
#ifndef QN_PREDICT_CLASS_MAPS_H
#define QN_PREDICT_CLASS_MAPS_H

#include "predict/judge.h"

typedef struct qn__class_maps {
    uint32_t rows, columns; /* of each */
    float *value;           /* of each mistake, row after row; NULL: there are none */
    const char *why;        /* why there are none, as a clause for people */
} qn__class_maps;

/* The maps of judged->worst, by a forward pass of these items. Fails as qn_predict does; a network
 * of which there are none, or whose maps are not finite, is not a failure. The caller releases
 * *out in any case. */
qn_status qn__class_maps_make(const qn__judged *judged, const qn_compute *compute,
                              qn__class_maps *out, qn_error *err);
void qn__class_maps_release(qn__class_maps *maps);

/* A map as bytes: 0 where it is least, 255 where it is greatest. */
void qn__class_map_bytes(const qn__class_maps *maps, uint32_t mistake, uint8_t *bytes);

#endif
