/* Which arrays of an NPZ archive are the features and the labels. */
#ifndef QN_DATA_NUMPY_NPZ_H
#define QN_DATA_NUMPY_NPZ_H

#include "data/bytes/source.h"
#include "data/bytes/zip.h"
#include "data/numpy/npy.h"

typedef struct qn__npz qn__npz;

/* Opens the archive. `source` must outlive *out. Also fails with QN_INPUT when it holds no arrays.
 */
qn_status qn__npz_open(const qn__source *source, qn__npz **out, qn_error *err);
void qn__npz_close(qn__npz *npz); /* accepts NULL */

/* The name of the array of features: the source's part (source.h), else the first by the rule of
 * docs/formats.md. Fails with QN_INPUT when there is none. */
qn_status qn__npz_features(const qn__npz *npz, const char **name, qn_error *err);
/* The name of the labels that belong to the array `features`; NULL: the archive holds none. */
const char *qn__npz_labels_of(const qn__npz *npz, const char *features);
/* The name of the array of labels in an archive for other data, as qn__npz_features. */
qn_status qn__npz_labels(const qn__npz *npz, const char **name, qn_error *err);

/* Fails with QN_INPUT, listing the names, when the archive has no array of this name. */
qn_status qn__npz_find(const qn__npz *npz, const char *name, qn_error *err);

/* An array's bytes, from its header on; only one at a time. */
qn_status qn__npz_begin(qn__npz *npz, const char *name, qn__npy_bytes *bytes, qn_error *err);
void qn__npz_end(qn__npz *npz, qn__npy_bytes *bytes);

#endif
