/* A contact sheet: what a person looks at to see whether images and classes are what they should
 * be.
 */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/images/drawn.h"
#include "image/augment_text.h"
#include "image/png_write.h"
#include "image/resize.h"
#include <string.h>

/* Images in a row, rows, pixels of the longer side at most, and between two images. */
enum { ACROSS = 16, DOWN = 40, SIDE = 96, GAP = 2, WHITE = 255 };
/* Of the augmentation: the default of trainings. */
enum { SEED = 1 };

typedef struct sheet {
    const qn_data *data;
    qn__augment augment; /* without words: each image stands there once */
    uint32_t channels;
    uint32_t side[2];    /* height and width of an image on the sheet */
    uint32_t rows;       /* of images */
    uint32_t size[2];    /* height and width in pixels */
    uint8_t *pixels;     /* of the sheet */
    uint8_t *changed;    /* values of an augmented item */
    void *space;         /* for the augmentation */
    uint8_t *image;      /* an item, [row][column][channel] */
    uint8_t *planes;     /* the same in the size of the sheet */
    uint32_t used[DOWN]; /* images in each row */
} sheet;

/* A channel that is no smaller than 1 and no larger than it was. */
static uint32_t fit(uint32_t side, uint32_t longest) {
    const uint64_t made = longest > SIDE ? (uint64_t)side * SIDE / longest : side;
    return made ? (uint32_t)made : 1;
}

static qn_status reserve(sheet *s, qn_error *err) {
    const qn_data *data = s->data;
    const uint32_t longest = data->rows > data->columns ? data->rows : data->columns;
    const uint64_t across = s->augment.words ? 1 : ACROSS; /* items in a row */
    const uint64_t lines = data->labels ? data->classes : (data->items + across - 1) / across;
    s->channels = data->channels;
    s->rows = lines < DOWN ? (uint32_t)lines : DOWN;
    s->side[0] = fit(data->rows, longest);
    s->side[1] = fit(data->columns, longest);
    s->size[0] = GAP + s->rows * (s->side[0] + GAP);
    s->size[1] = GAP + ACROSS * (s->side[1] + GAP);
    const uint64_t pixels = (uint64_t)s->size[0] * s->size[1];
    s->pixels = qn__alloc(pixels, s->channels, err);
    s->changed = qn__alloc(data->features, 1, err);
    s->image = qn__alloc(data->features, 1, err);
    s->planes = qn__alloc((uint64_t)s->side[0] * s->side[1], s->channels, err);
    s->space = qn__alloc(qn__augment_space(&s->augment) + 1, 1, err);
    if (!s->pixels || !s->changed || !s->space || !s->image || !s->planes)
        return QN_MEMORY;
    memset(s->pixels, WHITE, (size_t)pixels * s->channels);
    return QN_OK;
}

/* Draws the values of an item as the next image of a row. */
static qn_status draw(sheet *s, const uint8_t *values, uint32_t row, qn_error *err) {
    const qn_data *data = s->data;
    const size_t drawn = (size_t)s->side[0] * s->side[1];
    const qn__resize to = {.height = s->side[0], .width = s->side[1]};
    const uint32_t column = s->used[row]++;
    qn__drawn_pixels(data, values, s->image);
    const qn_status status =
        qn__resize_planes(&to, s->image, data->rows, data->columns, s->channels, s->planes, err);
    if (status != QN_OK)
        return status;
    for (uint32_t y = 0; y < s->side[0]; y++)
        for (uint32_t x = 0; x < s->side[1]; x++) {
            const size_t top = GAP + (size_t)row * (s->side[0] + GAP) + y;
            const size_t left = GAP + (size_t)column * (s->side[1] + GAP) + x;
            for (uint32_t c = 0; c < s->channels; c++)
                s->pixels[(top * s->size[1] + left) * s->channels + c] =
                    s->planes[c * drawn + (size_t)y * s->side[1] + x];
        }
    return QN_OK;
}

/* The first items of each class in a row of its own; without labels the first items. */
static qn_status draw_all(sheet *s, qn_error *err) {
    const qn_data *data = s->data;
    uint64_t left = (uint64_t)s->rows * ACROSS;
    qn_status status = QN_OK;
    for (uint64_t i = 0; status == QN_OK && left > 0 && i < data->items; i++) {
        const uint64_t row = data->labels ? (uint64_t)data->labels[i] : i / ACROSS;
        if (row >= s->rows || s->used[row] == ACROSS)
            continue;
        status = draw(s, qn__data_item(data, i), (uint32_t)row, err);
        left--;
    }
    return status;
}

/* An item, and what training sees of it. */
static qn_status draw_versions(sheet *s, uint64_t item, uint32_t row, qn_error *err) {
    const uint8_t *values = qn__data_item(s->data, item);
    qn_status status = draw(s, values, row, err);
    for (uint32_t epoch = 0; status == QN_OK && epoch < ACROSS - 1; epoch++) {
        qn__augment_item(&s->augment, SEED, epoch, item, 1, values, s->changed, s->space);
        status = draw(s, s->changed, row, err);
    }
    return status;
}

static qn_status draw_augmented(sheet *s, qn_error *err) {
    const qn_data *data = s->data;
    uint32_t left = s->rows;
    qn_status status = QN_OK;
    for (uint64_t i = 0; status == QN_OK && left > 0 && i < data->items; i++) {
        const uint64_t row = data->labels ? (uint64_t)data->labels[i] : i;
        if (row >= s->rows || s->used[row] > 0)
            continue;
        status = draw_versions(s, i, (uint32_t)row, err);
        left--;
    }
    return status;
}

qn_status qn_data_write_sheet(const qn_data *data, const char *augment, const char *path,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(path, err);
    sheet s = {.data = data};
    qn_status status = qn__drawn_check(data, err);
    if (status == QN_OK)
        status = qn__augment_parse(augment, &s.augment, err);
    s.augment.shape = (qn__shape){data->channels, data->rows, data->columns, QN__PICTURE};
    if (status == QN_OK)
        status = qn__augment_check(&s.augment, err);
    if (status == QN_OK)
        status = reserve(&s, err);
    if (status == QN_OK)
        status = s.augment.words ? draw_augmented(&s, err) : draw_all(&s, err);
    if (status == QN_OK)
        status = qn__png_write(path, s.pixels, s.size[0], s.size[1], s.channels, err);
    qn__free(s.pixels);
    qn__free(s.changed);
    qn__free(s.space);
    qn__free(s.image);
    qn__free(s.planes);
    return status;
}
