/* Outputs as files. The ending of the name chooses the format. NPY and raw numbers may be mapped:
 * the kernel then computes in the file itself, where outputs would take too much memory. */
#include "userkernel/execution/user_output.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "image/png_write.h"
#include <stdio.h>
#include <string.h>

typedef enum format { NPY, RAW, PNG } format;

static format format_of(const char *path) {
    const size_t size = strlen(path);
    const char *end = size > 4 ? path + size - 4 : "";
    return qn__same_word(".png", end, strlen(end))   ? PNG
           : qn__same_word(".raw", end, strlen(end)) ? RAW
                                                     : NPY;
}

/* ------------------------------------------------------------------ pictures */

/* A picture is one chunk of a PNG file. */
#define MOST_BYTES ((uint64_t)1 << 30)

static qn_status refuse(const char *name, const char *path, const char *what, const char *remedy,
                        qn_error *err) {
    qn__fail(err, QN_USAGE, "the output \"%s\" cannot be a picture: %s", name, what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

static uint64_t channels_of(const qn__user_array *a) {
    return a->dimensions == 3 ? a->shape[2] : 1;
}

qn_status qn__user_output_check(const qn__user_array *a, const char *name, const char *path,
                                qn_error *err) {
    char text[160];
    if (format_of(path) != PNG)
        return QN_OK;
    snprintf(text, sizeof text, "it is %s", qn__user_type_numpy(a->type));
    if (a->type != QN__USER_U8)
        return refuse(name, path, text,
                      "declare OUTPUT(uint8_t, ...) and assign 0 to 255; or write FILE.npy", err);
    if (a->dimensions < 2)
        return refuse(
            name, path, "it has one dimension",
            "declare INDEX(y, x), with OUTPUT(uint8_t, NAME, 3) for colours; or write FILE.npy",
            err);
    if (a->shape[0] == 0)
        return QN_OK;
    snprintf(text, sizeof text, "its last dimension has the length %llu",
             (unsigned long long)channels_of(a));
    if (a->dimensions == 3 && channels_of(a) != 3 && channels_of(a) != 4)
        return refuse(name, path, text,
                      "3 is red, green and blue, and 4 has opacity; or write FILE.npy", err);
    /* Each row has a byte before it. */
    if (a->shape[0] >= MOST_BYTES || a->shape[1] >= MOST_BYTES ||
        a->shape[0] > MOST_BYTES / (a->shape[1] * channels_of(a) + 1))
        return refuse(name, path, "it has more than 2^30 bytes", "write FILE.npy", err);
    return QN_OK;
}

static qn_status write_picture(const qn__user_array *a, qn__writer *writer, qn_error *err) {
    uint8_t *file = NULL;
    size_t size = 0;
    qn_status status = qn__png_encode(a->data, (uint32_t)a->shape[0], (uint32_t)a->shape[1],
                                      (uint32_t)channels_of(a), &file, &size, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, file, size, err);
    qn__free(file);
    return status;
}

int qn__user_output_is_picture(const char *path) { return format_of(path) == PNG; }

/* ------------------------------------------------------------------ numbers */

qn_status qn__user_output_map(qn__user_array *a, const char *path, qn__writer *writer, int *made,
                              qn_error *err) {
    char header[QN__NPY_HEADER];
    const size_t begin = format_of(path) == NPY ? sizeof header : 0;
    void *memory = NULL;
    *made = 0;
    /* Files are little-endian. */
    if (format_of(path) == PNG || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
        return QN_OK;
    const size_t bytes = qn__user_array_bytes(a) + begin;
    const qn_status status = qn__writer_map(writer, bytes, &memory, err);
    if (status != QN_OK || !memory)
        return status;
    if (begin > 0)
        memcpy(memory, qn__user_array_header(a, header), begin);
    a->map = memory;
    a->map_bytes = bytes;
    a->data = (uint8_t *)memory + begin;
    *made = 1;
    return QN_OK;
}

qn_status qn__user_output_write(const qn__user_array *a, const char *path, qn__writer *writer,
                                qn_error *err) {
    if (a->map)
        return QN_OK;
    switch (format_of(path)) {
    case PNG:
        return write_picture(a, writer, err);
    case RAW:
        return qn__user_array_write_numbers(a, writer, err);
    default:
        return qn__user_array_write(a, writer, err);
    }
}
