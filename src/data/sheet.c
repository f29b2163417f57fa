/* A contact sheet: what a person looks at to see whether images and classes are what they should
 * be.
 */
#include "base/argument.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "data/drawn.h"
#include "image/png_write.h"
#include "image/resize.h"
#include <string.h>

/* Images in a row, rows, pixels of the longer side at most, and between two images. */
enum { ACROSS = 16, DOWN = 40, SIDE = 96, GAP = 2, WHITE = 255 };

typedef struct sheet {
    const qn_data *data;
    uint32_t channels;
    uint32_t side[2];    /* height and width of an image on the sheet */
    uint32_t rows;       /* of images */
    uint32_t size[2];    /* height and width in pixels */
    uint8_t *pixels;     /* of the sheet */
    uint8_t *image;      /* an item, [row][column][channel] */
    uint8_t *planes;     /* the same in the size of the sheet */
    uint32_t used[DOWN]; /* images in each row */
} sheet;

/* A channel that is no smaller than 1 and no larger than it was. */
static uint32_t fit(uint32_t side, uint32_t longest) {
    const uint64_t made = longest > SIDE ? (uint64_t)side * SIDE / longest : side;
    return made ? (uint32_t)made : 1;
}

static qn_status make_room(sheet *s, qn_error *err) {
    const qn_data *data = s->data;
    const uint32_t longest = data->rows > data->columns ? data->rows : data->columns;
    const uint64_t lines = data->labels ? data->classes : (data->items + ACROSS - 1) / ACROSS;
    s->channels = data->channels;
    s->rows = lines < DOWN ? (uint32_t)lines : DOWN;
    s->side[0] = fit(data->rows, longest);
    s->side[1] = fit(data->columns, longest);
    s->size[0] = GAP + s->rows * (s->side[0] + GAP);
    s->size[1] = GAP + ACROSS * (s->side[1] + GAP);
    const uint64_t pixels = (uint64_t)s->size[0] * s->size[1];
    s->pixels = qn__alloc(pixels, s->channels, err);
    s->image = qn__alloc(data->features, 1, err);
    s->planes = qn__alloc((uint64_t)s->side[0] * s->side[1], s->channels, err);
    if (!s->pixels || !s->image || !s->planes)
        return QN_MEMORY;
    memset(s->pixels, WHITE, (size_t)pixels * s->channels);
    return QN_OK;
}

/* Draws an item as image `column` of a row. */
static qn_status draw(sheet *s, uint64_t item, uint32_t row, uint32_t column, qn_error *err) {
    const qn_data *data = s->data;
    const size_t drawn = (size_t)s->side[0] * s->side[1];
    const qn__resize to = {.height = s->side[0], .width = s->side[1]};
    qn__drawn_pixels(data, item, s->image);
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
        status = draw(s, i, (uint32_t)row, s->used[row]++, err);
        left--;
    }
    return status;
}

qn_status qn_data_write_sheet(const qn_data *data, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(path, err);
    sheet s = {.data = data};
    qn_status status = qn__drawn_check(data, err);
    if (status == QN_OK)
        status = make_room(&s, err);
    if (status == QN_OK)
        status = draw_all(&s, err);
    if (status == QN_OK)
        status = qn__png_write(path, s.pixels, s.size[0], s.size[1], s.channels, err);
    qn__free(s.pixels);
    qn__free(s.image);
    qn__free(s.planes);
    return status;
}
