/* Data sets: tables of items, read from files or given as arrays.
 *
 * A data set is a matrix of items x features, stored item after item, either as bytes (QN_U8) or as
 * float32 (QN_F32), and optionally one label for each item, a whole number from 0. It never changes
 * after it was made; any number of threads may read it. */
#ifndef QUERN_DATA_H
#define QUERN_DATA_H

#include <quern/cluster.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_data qn_data;

typedef enum qn_data_type { QN_U8 = 1, QN_F32 = 2 } qn_data_type;

/* How to read a file. Fill with qn_data_options_init, then change what is to differ. */
typedef struct qn_data_options {
    size_t size;             /* sizeof(qn_data_options) */
    const char *labels_path; /* IDX: the file of labels; NULL: none */
    const char
        *label_column; /* CSV: a header's name, a number from 1, or "last"; NULL: the first */
    int unlabelled;    /* CSV: 1 when there is no label column at all */
    int threads;       /* for reading and digests; 0: every core the process may use */
} qn_data_options;

QN_API void qn_data_options_init(qn_data_options *options);

/* Reads `path`: CSV, IDX, or either gzipped, with the defaults where `options` is NULL; the content
 * decides, not the name. The type is QN_U8 when every feature is written as a plain whole number
 * from 0 to 255 (docs/exactness.md 2.1). On success *out is owned by the caller. Fails with
 * QN_INPUT (what is wrong, at which line and column or byte), QN_IO, QN_MEMORY or QN_UNSUPPORTED
 * (gzip without zlib built in). */
QN_API qn_status qn_data_open(const char *path, const qn_data_options *options, qn_data **out,
                              qn_error *err);

/* Makes a data set from arrays, which are copied. `values`: items x features, bytes or floats by
 * `type`, finite; `labels`: one for each item, not negative, or NULL. */
QN_API qn_status qn_data_from_arrays(qn_data_type type, uint64_t items, uint32_t features,
                                     const void *values, const int32_t *labels, qn_data **out,
                                     qn_error *err);

/* Draws `items` handwriting-like digits of 28x28 bytes with labels 0..9. The item number `first +
 * i` of a seed is the same wherever and however often it is drawn. */
QN_API qn_status qn_data_synth_digits(uint64_t seed, uint64_t first, uint64_t items, qn_data **out,
                                      qn_error *err);

/* How a rank opens a data set; `user` is what qn_data_share was given, and may be NULL. */
typedef qn_status (*qn_data_opener)(void *user, qn_data **out, qn_error *err);

/* One data set for all ranks of a cluster, which call this together. On each machine one rank calls
 * `open`, and the others map what it got; with `from_first` the rank with the lowest number alone
 * calls it and sends it to the other machines. Each rank owns its *out, and closes it before
 * qn_cluster_leave. Where one rank cannot open it, all fail alike with that rank's message, its
 * name before it. Whether all machines read the same is not compared here: qn_train_open and
 * qn_predict do that. With `cluster` NULL it is a call of `open`. Fails as `open` does, or with
 * QN_CLUSTER or QN_MEMORY. */
QN_API qn_status qn_data_share(qn_cluster *cluster, int from_first, qn_data_opener open, void *user,
                               qn_data **out, qn_error *err);

QN_API void qn_data_close(qn_data *data);

QN_API uint64_t qn_data_items(const qn_data *data);
QN_API uint32_t qn_data_features(const qn_data *data);
QN_API qn_data_type qn_data_type_of(const qn_data *data);
/* items x features, item after item; owned by the data set. */
QN_API const void *qn_data_values(const qn_data *data);
/* One label for each item, or NULL when there are none; owned by the data set. */
QN_API const int32_t *qn_data_labels(const qn_data *data);
/* One more than the greatest label; 0 without labels. */
QN_API uint32_t qn_data_classes(const qn_data *data);
/* The digest of docs/exactness.md 2.2: 64 hexadecimal digits, owned by the data set. */
QN_API const char *qn_data_digest(const qn_data *data);
/* Height and width of an image where the file told (IDX), else 0 and 0. Either place may be NULL.
 */
QN_API void qn_data_image_size(const qn_data *data, uint32_t *rows, uint32_t *columns);
/* What the data was read as: "csv", "idx", "csv.gz", "idx.gz", "array", "synth". */
QN_API const char *qn_data_format(const qn_data *data);

/* The name of feature k < features in the header of its CSV file; owned by the data set. NULL where
 * there was none, and on a rank that was handed the data by another (qn_data_share). */
QN_API const char *qn_data_feature_name(const qn_data *data, uint32_t k);

/* Writes the data set as IDX (values QN_U8 only; labels_path may be NULL) or as CSV (label first,
 * header "label,f0,f1,..." or "label,r0c0,..."). The file is written beside its place, synced and
 * renamed. */
QN_API qn_status qn_data_write_idx(const qn_data *data, const char *images_path,
                                   const char *labels_path, qn_error *err);
QN_API qn_status qn_data_write_csv(const qn_data *data, const char *path, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
