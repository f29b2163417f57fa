/* Writing LIBSVM text: an item a line, features from 1, zeros left out. */
#include "base/memory.h"
#include "base/text/text.h"
#include "data/write/formats.h"
#include <stdio.h>
#include <string.h>

typedef struct lines {
    qn__writer *writer;
    size_t size;
    char text[65536];
} lines;

/* Makes space for a cell of at most 96 bytes. */
static qn_status reserve(lines *out, qn_error *err) {
    if (out->size + 96 <= sizeof out->text)
        return QN_OK;
    const size_t size = out->size;
    out->size = 0;
    return qn__writer_add(out->writer, out->text, size, err);
}

static void add_float(lines *out, float value) {
    char *to = out->text + out->size;
    qn__float_plain(value, to);
    out->size += strlen(to);
}

static void add_label(const qn_data *data, uint64_t item, lines *out) {
    char *to = out->text + out->size;
    if (data->targets) {
        add_float(out, data->targets[item]);
        return;
    }
    const char *name = qn_data_class_name(data, (uint32_t)data->labels[item]);
    if (name) /* a number: checked before, and its text is short */
        out->size += (size_t)snprintf(to, 64, "%s", name);
    else
        out->size += (size_t)sprintf(to, "%d", (int)data->labels[item]);
}

/* The first item names the last feature, so that the file tells how many there are. `pointed`: its
 * first value is written with a point. */
static qn_status add_item(const qn_data *data, uint64_t item, int pointed, lines *out,
                          qn_error *err) {
    const uint8_t *bytes = qn__data_item(data, item);
    const float *floats = qn__data_item(data, item);
    add_label(data, item, out);
    qn_status status = reserve(out, err);
    for (uint32_t k = 0; k < data->features && status == QN_OK; k++) {
        uint32_t bits = 0;
        if (data->type == QN_U8)
            bits = bytes[k];
        else
            memcpy(&bits, &floats[k], sizeof bits); /* -0 is written, because +0 is not */
        if (bits == 0 && !(item == 0 && k + 1 == data->features))
            continue;
        out->size += (size_t)sprintf(out->text + out->size, " %u:", (unsigned)k + 1);
        char *to = out->text + out->size;
        if (data->type == QN_U8)
            out->size += (size_t)sprintf(to, "%u", (unsigned)bytes[k]);
        else if (pointed) /* whole, from 0 to 255 */
            out->size += (size_t)sprintf(to, "%d.0", (int)floats[k]);
        else if (floats[k] != floats[k])
            out->size += (size_t)sprintf(to, "nan");
        else
            add_float(out, floats[k]);
        pointed = 0;
        status = reserve(out, err);
    }
    out->text[out->size++] = '\n';
    return status == QN_OK ? reserve(out, err) : status;
}

static qn_status write_libsvm(const qn_data *data, const char *path, const char *labels_path,
                              qn__writer_batch *batch, qn_error *err) {
    (void)labels_path;
    lines *out = qn__alloc(1, sizeof *out, err);
    if (!out)
        return QN_MEMORY;
    qn_status status = qn__writer_create(path, &out->writer, err);
    const int pointed = qn__looks_like_bytes(data);
    for (uint64_t i = 0; i < data->items && status == QN_OK; i++)
        status = add_item(data, i, pointed && i == 0, out, err);
    if (status == QN_OK)
        status = qn__writer_add(out->writer, out->text, out->size, err);
    status = qn__writer_finish(out->writer, batch, status, err);
    qn__free(out);
    return status;
}

static qn_status check_libsvm(const qn_data *data, qn_error *err) {
    if (!data->labels && !data->targets) {
        qn__fail(err, QN_INPUT, "LIBSVM needs a label in each line, and there are no labels");
        return qn__remedy(err, QN_INPUT, "write it as CSV, NPY or NPZ");
    }
    for (uint32_t k = 0; qn_data_class_name(data, k); k++) {
        const char *name = qn_data_class_name(data, k);
        if (qn__text_content(name) == QN__CONTENT_NUMBER && strlen(name) < 40)
            continue;
        qn__fail(err, QN_INPUT, "labels in LIBSVM are numbers, and a class is called \"%.40s\"",
                 name);
        return qn__remedy(err, QN_INPUT, "write it as CSV or NPZ");
    }
    return QN_OK;
}

const qn__format qn__libsvm_format = {.name = "libsvm",
                                      .shown = "LIBSVM",
                                      .about = "numbers without zeros, and labels that are numbers",
                                      .endings = {".libsvm", ".svmlight", ".svm"},
                                      .texts = 1,
                                      .counts = 1,
                                      .check = check_libsvm,
                                      .write = write_libsvm};
