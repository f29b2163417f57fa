#include "data/images/masks.h"

#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/system/first_failure.h"
#include "base/text/text.h"
#include "data/table/item_names.h"
#include "image/decode.h"
#include "image/mask.h"
#include <stdatomic.h>
#include <string.h>

/* What all threads share. */
typedef struct reading {
    const char *folder;
    const qn_data *data;
    uint32_t ignored;
    _Atomic uint64_t next;
    qn__first_failure failed;
} reading;

qn_status qn__masks_ignored(const char *ignore, uint32_t *out, qn_error *err) {
    uint64_t value = QN__NO_TARGET;
    const int read = !ignore || qn__parse_u64(ignore, strlen(ignore), &value);
    *out = (uint32_t)value;
    if (read && value <= UINT8_MAX)
        return QN_OK;
    qn__fail(err, QN_USAGE, "\"%s\" is not a value of a mask", ignore);
    qn__at(err, "`data.ignore`");
    return qn__remedy(err, QN_USAGE, "give the value of pixels that do not count, 0 to 255");
}

/* The name of the image with the ending ".png" in place of its own. */
static char *path_of(const reading *r, uint64_t item, qn_error *err) {
    const char *name = qn_data_item_name(r->data, item), *slash = strrchr(name, '/');
    const char *point = strrchr(slash ? slash : name, '.');
    const size_t size = point ? (size_t)(point - name) : strlen(name);
    qn__text path = {0};
    qn__text_add(&path, "%s%s%.*s.png", r->folder, qn__folder_slash(r->folder), (int)size, name);
    return qn__text_take(&path, err);
}

static qn_status refuse_size(const qn_data *data, const qn__image_head *head, qn_error *err) {
    qn__fail(err, QN_INPUT, "the mask has %ux%u pixels, and its image %ux%u", head->height,
             head->width, data->rows, data->columns);
    return qn__remedy(err, QN_INPUT,
                      "give each image a mask of its size, or bring both to one with "
                      "`data.resize`");
}

/* Classes of the mask to its place in the data; `pixels` has those of the file. */
static qn_status place(const reading *r, uint64_t item, const qn__image_head *head, uint8_t *pixels,
                       qn_error *err) {
    const qn__resize *resize = &r->data->resize;
    const qn__several *several = r->data->several;
    uint8_t *to = several->target + (size_t)item * several->each;
    qn_status status = QN_OK;
    if (resize->height)
        status = qn__resize_nearest(resize, pixels, head->height, head->width, to, err);
    else if (head->height != r->data->rows || head->width != r->data->columns)
        status = refuse_size(r->data, head, err);
    else
        memcpy(to, pixels, several->each);
    for (uint32_t k = 0; status == QN_OK && k < several->each; k++)
        to[k] = to[k] == r->ignored ? QN__NO_TARGET : to[k];
    return status;
}

/* The remedy of a broken image would leave it out. */
static qn_status refuse_broken(qn_status status, qn_error *err) {
    return status != QN_INPUT ? status
                              : qn__remedy(err, QN_INPUT,
                                           "write the mask again, or remove its image too; "
                                           "`data.skip_broken` is for images");
}

static qn_status take_file(const reading *r, uint64_t item, const qn__bytes *file, qn_error *err) {
    qn__image_head head;
    qn_status status = refuse_broken(qn__image_head_read(file->data, file->size, &head, err), err);
    if (status == QN_OK)
        status = qn__mask_check(file->data, file->size, &head, err);
    if (status != QN_OK)
        return status;
    uint8_t *pixels = qn__alloc(head.height, head.width, err);
    status = pixels ? qn__mask_decode(file->data, file->size, &head, pixels, err) : QN_MEMORY;
    status = refuse_broken(status, err);
    if (status == QN_OK)
        status = place(r, item, &head, pixels, err);
    qn__free(pixels);
    return status;
}

static qn_status read_mask(const reading *r, uint64_t item, qn_error *err) {
    qn__bytes file = {0};
    char *path = path_of(r, item, err);
    if (!path)
        return QN_MEMORY;
    qn_status status = qn__file_read(path, &file, err);
    if (status == QN_IO)
        qn__remedy(err, QN_IO, "a mask is a PNG file with the name of its image, in `data.masks`");
    if (status == QN_OK)
        status = take_file(r, item, &file, err);
    if (status == QN_INPUT)
        qn__at(err, "%s", path);
    qn__bytes_release(&file);
    qn__free(path);
    return status;
}

static void work(void *context, int thread) {
    reading *r = context;
    qn_error err = {0};
    for (uint64_t i; (i = atomic_fetch_add(&r->next, 1)) < r->data->items;) {
        if (qn__first_failure_before(&r->failed, i))
            return;
        const qn_status status = read_mask(r, i, &err);
        if (status == QN_OK)
            continue;
        qn__first_failure_note(&r->failed, thread, i, status, &err);
        return;
    }
}

static qn_status read_all(reading *r, qn__pool *pool, qn_error *err) {
    const qn_status status = qn__first_failure_begin(&r->failed, qn__pool_threads(pool), err);
    if (status != QN_OK)
        return status;
    atomic_store(&r->next, 0);
    qn__pool_run(pool, work, r);
    return qn__first_failure_end(&r->failed, err);
}

qn_status qn__masks_read(const qn_data_options *options, qn__pool *pool, qn_data *data,
                         qn_error *err) {
    reading r = {.folder = options->masks, .data = data};
    const qn_status status = qn__masks_ignored(options->ignore, &r.ignored, err);
    if (status != QN_OK)
        return status;
    data->several =
        qn__several_create(data->items, data->rows * data->columns, data->rows, data->columns, err);
    return data->several ? read_all(&r, pool, err) : QN_MEMORY;
}
