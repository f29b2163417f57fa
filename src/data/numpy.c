/* The readers of NumPy's files, NPY and NPZ. Labels are in a second array: of the same archive, or
 * of a file of either format. */
#include "base/memory.h"
#include "data/labels.h"
#include "data/npy.h"
#include "data/npz.h"
#include "data/readers.h"
#include <stdio.h>
#include <string.h>

static qn_status read_source(void *self, void *bytes, size_t size, size_t *got, qn_error *err) {
    return qn__source_read(self, bytes, size, got, err);
}

static qn__npy_bytes bytes_of(qn__source *source) {
    const int packed = qn__source_packing(source) != QN__PLAIN;
    qn__npy_bytes bytes = {.read = read_source,
                           .self = source,
                           .size = qn__source_unpacked_most(source),
                           .exact = !packed,
                           .path = qn__source_path(source)};
    snprintf(bytes.of, sizeof bytes.of, "%s", packed ? " of the unpacked file" : "");
    return bytes;
}

static qn_status read_npy(qn__source *source, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    (void)pool;
    const qn__npy_bytes bytes = bytes_of(source);
    return qn__npy_read_values(&bytes, options->expected_rules, data, err);
}

/* Reads one array of the archive: labels with `labels` 1, else values. */
static qn_status read_array(qn__npz *npz, const char *name, int labels,
                            const qn_data_options *options, qn_data *data, qn_error *err) {
    qn__npy_bytes bytes;
    qn_status status = qn__npz_begin(npz, name, &bytes, err);
    if (status != QN_OK)
        return status;
    status = labels ? qn__npy_read_labels(&bytes, options->task, data, err)
                    : qn__npy_read_values(&bytes, options->expected_rules, data, err);
    qn__npz_end(npz, &bytes);
    return status;
}

static qn_status read_weights(qn__npz *npz, const char *name, qn_data *data, qn_error *err) {
    qn__npy_bytes bytes;
    qn_status status = qn__npz_find(npz, name, err);
    if (status == QN_OK)
        status = qn__npz_begin(npz, name, &bytes, err);
    if (status != QN_OK)
        return status;
    status = qn__npy_read_weights(&bytes, data, err);
    qn__npz_end(npz, &bytes);
    if (status == QN_OK && !(data->weight_name = qn__copy_text(name, err)))
        status = QN_MEMORY;
    return status;
}

static qn_status read_npz(qn__source *source, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    (void)pool;
    qn__npz *npz;
    const char *name;
    qn_status status = qn__npz_open(source, &npz, err);
    if (status != QN_OK)
        return status;
    status = qn__npz_features(npz, &name, err);
    if (status == QN_OK)
        status = read_array(npz, name, 0, options, data, err);
    const int own = status == QN_OK && !options->unlabelled && !options->labels_path;
    const char *labels = own ? qn__npz_labels_of(npz, name) : NULL;
    if (labels)
        status = read_array(npz, labels, 1, options, data, err);
    if (status == QN_OK && options->weight)
        status = read_weights(npz, options->weight, data, err);
    qn__npz_close(npz);
    return status;
}

static int probe_npy(const uint8_t *first, size_t size, const char *path) {
    (void)path;
    return size >= 6 && memcmp(first, "\x93NUMPY", 6) == 0 ? QN__PROBE_MAGIC : QN__PROBE_NO;
}

static int probe_npz(const uint8_t *first, size_t size, const char *path) {
    (void)path;
    const int zip =
        size >= 4 && (memcmp(first, "PK\3\4", 4) == 0 || memcmp(first, "PK\5\6", 4) == 0);
    return zip ? QN__PROBE_MAGIC : QN__PROBE_NO;
}

/* ------------------------------------------------------------------ a file of labels */

static qn_status take_labels(qn__source *source, const qn_data_options *options, qn_data *data,
                             qn_error *err) {
    uint8_t first[QN__PROBE_BYTES];
    size_t got = 0;
    qn_status status = qn__source_peek(source, first, sizeof first, &got, err);
    if (status != QN_OK)
        return status;
    if (probe_npy(first, got, "")) {
        const qn__npy_bytes bytes = bytes_of(source);
        return qn__npy_read_labels(&bytes, options->task, data, err);
    }
    if (!probe_npz(first, got, "") || qn__source_packing(source)) {
        qn__fail(err, QN_INPUT, "the file of labels is neither NPY nor NPZ");
        qn__at(err, "%s, byte 0", qn__source_path(source));
        return qn__remedy(err, QN_INPUT,
                          "`data.labels_path` takes an array written with "
                          "numpy.save, for data that is such an array");
    }
    qn__npz *npz;
    const char *name;
    status = qn__npz_open(source, &npz, err);
    if (status != QN_OK)
        return status;
    status = qn__npz_labels(npz, &name, err);
    if (status == QN_OK)
        status = read_array(npz, name, 1, options, data, err);
    qn__npz_close(npz);
    return status;
}

static qn_status read_labels(const char *path, const qn_data_options *options, qn_data *data,
                             qn_error *err) {
    qn__source *source;
    qn_status status = qn__source_open(path, &source, err);
    if (status != QN_OK)
        return status;
    status = qn__source_end(source, take_labels(source, options, data, err), err);
    qn__source_close(source);
    return status;
}

const qn__reader qn__npy_reader = {
    .name = QN__PACKED_NAMES("npy"),
    .quantities = 1,
    .labels_remedy = "give the array of labels with `data.labels_path`",
    .probe = probe_npy,
    .read = read_npy,
    .read_labels = read_labels,
};

const qn__reader qn__npz_reader = {
    .name = QN__PLAIN_NAME("npz"),
    .quantities = 1,
    .weights = 1,
    .labels_remedy = "name the arrays as docs/formats.md says, or give the labels with "
                     "`data.labels_path`",
    .probe = probe_npz,
    .read = read_npz,
    .read_labels = read_labels,
};
