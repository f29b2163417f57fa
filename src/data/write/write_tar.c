/* Writing images as an archive: ustar (POSIX.1-1988) with a folder for each class. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/images/drawn.h"
#include "data/write/formats.h"
#include "image/png_write.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 512, NAME_BYTES = 100 };

/* The fields of a header that are not zero. Numbers are octal digits with a NUL after them. */
static void make_head(const char *name, size_t size, char head[BLOCK]) {
    memset(head, 0, BLOCK);
    memcpy(head, name, strnlen(name, NAME_BYTES));
    memcpy(head + 100, "0000644", 8);
    memcpy(head + 108, "0000000", 8); /* user */
    memcpy(head + 116, "0000000", 8); /* group */
    snprintf(head + 124, 12, "%011" PRIo64, (uint64_t)size);
    memcpy(head + 136, "00000000000", 12); /* time: the archive's bytes depend on the items alone */
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257, "ustar", sizeof "ustar");
    memset(head + 263, '0', 2); /* version */
    unsigned sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
}

/* A class as a folder: its name, or its number. */
static qn_status name_folder(const qn_data *data, uint64_t item, char folder[NAME_BYTES],
                             qn_error *err) {
    folder[0] = '\0';
    if (!qn_data_labels(data))
        return QN_OK;
    const uint32_t class = (uint32_t)data->labels[item];
    const char *const name = qn_data_class_name(data, class);
    if (!name) {
        snprintf(folder, NAME_BYTES, "%" PRIu32 "/", class);
        return QN_OK;
    }
    /* Space for the number of an item and ".png". */
    if (name[0] != '\0' && name[0] != '.' && !strchr(name, '/') && strlen(name) < NAME_BYTES - 26) {
        snprintf(folder, NAME_BYTES, "%s/", name);
        return QN_OK;
    }
    qn__fail(err, QN_INPUT, "the class \"%.60s\" cannot be the name of a folder", name);
    return qn__remedy(err, QN_INPUT, "give it a name of 1 to 73 bytes without / and dots at first");
}

static qn_status add_item(const qn_data *data, uint64_t item, uint8_t *pixels, qn__writer *writer,
                          qn_error *err) {
    char name[NAME_BYTES + 26], folder[NAME_BYTES], head[BLOCK];
    const char zeros[BLOCK] = {0};
    uint8_t *file = NULL;
    size_t size = 0;
    qn_status status = name_folder(data, item, folder, err);
    if (status != QN_OK)
        return status;
    /* Numbers of equal length have the order of the items. */
    const int digits = snprintf(NULL, 0, "%" PRIu64, data->items - 1);
    snprintf(name, sizeof name, "%s%0*" PRIu64 ".png", folder, digits, item);
    qn__drawn_pixels(data, qn__data_item(data, item), pixels);
    status = qn__png_encode(pixels, data->rows, data->columns, data->channels, &file, &size, err);
    if (status == QN_OK) {
        make_head(name, size, head);
        status = qn__writer_add(writer, head, BLOCK, err);
    }
    if (status == QN_OK)
        status = qn__writer_add(writer, file, size, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, zeros, (BLOCK - size % BLOCK) % BLOCK, err);
    qn__free(file);
    return status;
}

static qn_status write_tar(const qn_data *data, const char *path, const char *labels_path,
                           qn__writer_batch *batch, qn_error *err) {
    (void)labels_path;
    const char zeros[2 * BLOCK] = {0};
    qn__writer *writer = NULL;
    qn_status status = qn__drawn_check(data, err);
    if (status != QN_OK)
        return status;
    uint8_t *const pixels = qn__alloc(data->features, 1, err);
    if (!pixels)
        return QN_MEMORY;
    status = qn__writer_create(path, &writer, err);
    for (uint64_t i = 0; status == QN_OK && i < data->items; i++)
        status = add_item(data, i, pixels, writer, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, zeros, sizeof zeros, err);
    qn__free(pixels);
    return qn__writer_finish(writer, batch, status, err);
}

const qn__format qn__tar_format = {.name = "tar",
                                   .shown = "an archive of images",
                                   .about = "images as PNG, in a folder for each class",
                                   .endings = {".tar"},
                                   .counts = 0,
                                   .write = write_tar};

qn_status qn_data_write_tar(const qn_data *data, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(path, err);
    if (qn__written_labels_check(&qn__tar_format, data, err) != QN_OK)
        return QN_UNSUPPORTED;
    return write_tar(data, path, NULL, NULL, err);
}
