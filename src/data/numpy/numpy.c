/* The readers of NumPy's files, NPY and NPZ. Labels are in a second array: of the same archive, or
 * of a file of either format. */
#include "base/files/file_stamp.h"
#include "base/memory.h"
#include "data/cells/readers.h"
#include "data/numpy/npy_arrays.h"
#include "data/numpy/npz.h"
#include "data/table/token_row.h"
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
                           .plain = packed || qn__source_part(source) ? NULL : source,
                           .path = qn__source_path(source)};
    snprintf(bytes.of, sizeof bytes.of, "%s", packed ? " of the unpacked file" : "");
    return bytes;
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

/* ------------------------------------------------------------------ arrays of files */

typedef enum purpose {
    VALUES,
    OWN_LABELS, /* of the values, in the same archive */
    LABELS,     /* in files of their own */
    WEIGHTS
} purpose;

/* The arrays of files, one file after the other. A single file stays open between its arrays: it
 * may be the standard input. */
typedef struct reading {
    qn__part_files *files;
    const char *weight; /* name of the arrays of weights */
    purpose wanted;
    qn__source *source; /* the open file; NULL: none */
    qn__npz *npz;       /* NULL: the file is NPY */
} reading;

static qn_status close_file(reading *r, qn_status status, qn_error *err) {
    if (!r->source)
        return status;
    qn__npz_close(r->npz);
    r->npz = NULL;
    status = qn__part_files_close(r->source, status, err);
    r->source = NULL;
    return status;
}

static qn_status refuse_labels(const qn__source *source, qn_error *err) {
    qn__fail(err, QN_INPUT, "the file of labels is neither NPY nor NPZ");
    qn__at(err, "%s, byte 0", qn__source_path(source));
    return qn__remedy(err, QN_INPUT,
                      "`data.labels_path` takes an array written with "
                      "numpy.save, for data that is such an array");
}

static qn_status open_file(reading *r, size_t i, qn_error *err) {
    uint8_t first[QN__PROBE_BYTES];
    size_t got = 0;
    qn_status status = r->source ? QN_OK : qn__part_files_open(r->files, i, &r->source, err);
    if (status != QN_OK || r->npz)
        return status;
    status = qn__source_peek(r->source, first, sizeof first, &got, err);
    if (status != QN_OK || probe_npy(first, got, ""))
        return status;
    if (!probe_npz(first, got, "") || qn__source_packing(r->source))
        return refuse_labels(r->source, err);
    return qn__npz_open(r->source, &r->npz, err);
}

/* The name of the array in an archive. */
static qn_status find_array(const reading *r, const char **name, qn_error *err) {
    *name = r->weight;
    if (r->wanted == WEIGHTS)
        return qn__npz_find(r->npz, r->weight, err);
    if (r->wanted == LABELS)
        return qn__npz_labels(r->npz, name, err);
    qn_status status = qn__npz_features(r->npz, name, err);
    if (status != QN_OK || r->wanted == VALUES)
        return status;
    *name = qn__npz_labels_of(r->npz, *name);
    return *name ? QN_OK : qn__file_stamp_refuse(qn__source_path(r->source), QN_INPUT, err);
}

static qn_status begin_array(void *self, size_t i, qn__npy_bytes *bytes, qn_error *err) {
    reading *r = self;
    const char *name;
    qn_status status = open_file(r, i, err);
    if (status == QN_OK && r->npz)
        status = find_array(r, &name, err);
    if (status == QN_OK && r->npz)
        status = qn__npz_begin(r->npz, name, bytes, err);
    else if (status == QN_OK)
        *bytes = bytes_of(r->source);
    return status == QN_OK ? QN_OK : close_file(r, status, err);
}

static qn_status end_array(void *self, qn__npy_bytes *bytes, qn_status status, qn_error *err) {
    reading *r = self;
    if (r->npz)
        qn__npz_end(r->npz, bytes);
    return qn__part_files_are_one(r->files) ? status : close_file(r, status, err);
}

static qn__npy_arrays arrays_of(reading *r, purpose wanted, qn__part_files *files) {
    r->wanted = wanted;
    return (qn__npy_arrays){.begin = begin_array,
                            .end = end_array,
                            .self = r,
                            .list = r->files->list,
                            .files = files,
                            .values = wanted == VALUES};
}

static qn_status read_values(reading *r, const qn_data_options *options, qn_data *data,
                             qn_error *err) {
    const qn__npy_arrays arrays = arrays_of(r, VALUES, r->files);
    return qn__npy_read_values(&arrays, options, data, err);
}

static qn_status read_npy(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    reading r = {.files = files};
    (void)pool;
    const qn_status status = read_values(&r, options, data, err);
    return close_file(&r, status, err);
}

/* Whether the archive of file `i` has labels. */
static qn_status look_for_labels(reading *r, size_t i, int *has, qn_error *err) {
    const char *name;
    qn_status status = open_file(r, i, err);
    if (status == QN_OK)
        status = qn__npz_features(r->npz, &name, err);
    if (status == QN_OK)
        *has = qn__npz_labels_of(r->npz, name) != NULL;
    return qn__part_files_are_one(r->files) ? status : close_file(r, status, err);
}

/* All archives have labels, or none has. */
static qn_status has_labels(reading *r, int *has, qn_error *err) {
    qn_status status = look_for_labels(r, 0, has, err);
    for (size_t i = 1; status == QN_OK && i < r->files->list->count; i++) {
        int own = 0;
        status = look_for_labels(r, i, &own, err);
        if (status != QN_OK || own == *has)
            continue;
        qn__fail(err, QN_INPUT, "the archive has %s labels, and %.200s has %s", own ? "its" : "no",
                 r->files->list->file[0].path, own ? "none" : "some");
        qn__at(err, "%s", r->files->list->file[i].path);
        status = qn__remedy(err, QN_INPUT,
                            "add them to all archives with numpy.savez, or set `data.unlabelled`");
    }
    return status;
}

static qn_status read_weights(reading *r, const char *name, qn_data *data, qn_error *err) {
    const qn__npy_arrays arrays = arrays_of(r, WEIGHTS, r->files);
    r->weight = name;
    const qn_status status = qn__npy_read_weights(&arrays, data, err);
    if (status == QN_OK && !(data->weight_name = qn__copy_text(name, err)))
        return QN_MEMORY;
    return status;
}

static qn_status read_npz(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    reading r = {.files = files};
    int labels = 0;
    (void)pool;
    qn_status status = read_values(&r, options, data, err);
    if (status == QN_OK && !options->unlabelled && !options->labels_path)
        status = has_labels(&r, &labels, err);
    const qn__npy_arrays arrays = arrays_of(&r, OWN_LABELS, files);
    if (status == QN_OK && labels && data->context)
        status = qn__token_row_refuse_labels(files->list->file[0].path, err);
    if (status == QN_OK && labels)
        status = qn__npy_read_labels(&arrays, options->task, data, err);
    if (status == QN_OK && options->weight)
        status = read_weights(&r, options->weight, data, err);
    return close_file(&r, status, err);
}

static qn_status read_labels(qn__part_files *labels, qn__part_files *files,
                             const qn_data_options *options, qn_data *data, qn_error *err) {
    reading r = {.files = labels};
    const qn__npy_arrays arrays = arrays_of(&r, LABELS, files);
    const qn_status status = qn__npy_read_labels(&arrays, options->task, data, err);
    return close_file(&r, status, err);
}

const qn__reader qn__npy_reader = {
    .name = QN__PACKED_NAMES("npy"),
    .about = "an array of NumPy",
    .quantities = 1,
    .tokens = 1,
    .labels_remedy = "give the array of labels with `data.labels_path`",
    .probe = probe_npy,
    .read_parts = read_npy,
    .read_labels = read_labels,
};

const qn__reader qn__npz_reader = {
    .name = QN__PLAIN_NAME("npz"),
    .about = "arrays of NumPy in one file: x, y, weight",
    .quantities = 1,
    .tokens = 1,
    .weights = 1,
    .labels_remedy = "name the arrays as docs/formats.md says, or give the labels with "
                     "`data.labels_path`",
    .probe = probe_npz,
    .read_parts = read_npz,
    .read_labels = read_labels,
};
