/* A contact sheet: what a person looks at to see whether images and classes are what they should
 * be.
 */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/images/drawn.h"
#include "data/images/sheet_shown.h"
#include "data/table/shape.h"
#include "image/glyphs.h"
#include "image/mask.h"
#include "image/png_write.h"
#include "image/resize.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Images in a row, rows, pixels of the longer side at most, and between two images. */
enum { ACROSS = 16, DOWN = 40, SIDE = 96, GAP = 2, WHITE = 255, RGB = 3 };
/* Characters in a line below an image, those of a share, and lines. */
enum { LETTERS = SIDE / QN__GLYPH_WIDTH, SHARE = 4, LINES = 2 };

typedef struct sheet {
    const qn_data *data;
    qn__sheet_shown shown;
    uint32_t channels;   /* of the sheet */
    uint32_t across;     /* images in a row; each may have its mask beside it */
    uint32_t side[2];    /* height and width of an image on the sheet, before it is enlarged */
    uint32_t zoom;       /* how often a pixel is drawn, across and down */
    uint32_t cell[2];    /* height and width of an image with its text */
    uint32_t rows;       /* of images */
    uint32_t size[2];    /* height and width in pixels */
    uint8_t *pixels;     /* of the sheet */
    uint8_t *image;      /* an item, [row][column][channel] */
    uint8_t *planes;     /* the same in the size of the sheet */
    uint32_t used[DOWN]; /* images in each row */
} sheet;

/* A side that is not smaller than 1 and not larger than it was. */
static uint32_t fit(uint32_t side, uint32_t longest) {
    const uint64_t made = longest > SIDE ? (uint64_t)side * SIDE / longest : side;
    return made ? (uint32_t)made : 1;
}

/* Whether the labels of a mixture are written below it. A mask shows its own. */
static int is_labelled(const sheet *s) { return s->shown.mix.alpha > 0.0f && !s->shown.masked; }

static void find_sizes(sheet *s) {
    const qn_data *data = s->data;
    const uint32_t longest = data->rows > data->columns ? data->rows : data->columns;
    const int labelled = is_labelled(s);
    s->across = s->shown.masked ? ACROSS / 2 : ACROSS;
    s->channels = s->shown.masked ? RGB : data->channels;
    s->side[0] = fit(data->rows, longest);
    s->side[1] = fit(data->columns, longest);
    s->zoom = labelled && longest < SIDE ? SIDE / longest : 1;
    s->cell[0] = s->side[0] * s->zoom + (labelled ? LINES * QN__GLYPH_HEIGHT + GAP : 0);
    s->cell[1] = labelled ? SIDE : s->side[1];
    const uint64_t across = qn__sheet_shown_changes(&s->shown) ? 1 : s->across; /* items in a row */
    const uint64_t lines = data->labels ? data->classes : (data->items + across - 1) / across;
    s->rows = lines < DOWN ? (uint32_t)lines : DOWN;
    s->size[0] = GAP + s->rows * (s->cell[0] + GAP);
    s->size[1] = GAP + ACROSS * (s->cell[1] + GAP);
}

static qn_status reserve(sheet *s, qn_error *err) {
    const uint64_t pixels = (uint64_t)s->size[0] * s->size[1];
    s->pixels = qn__alloc(pixels, s->channels, err);
    s->image = qn__alloc(s->data->features, 1, err);
    s->planes = qn__alloc((uint64_t)s->side[0] * s->side[1], s->data->channels, err);
    if (!s->pixels || !s->image || !s->planes)
        return QN_MEMORY;
    memset(s->pixels, WHITE, (size_t)pixels * s->channels);
    return QN_OK;
}

/* The first pixel of a cell. */
static uint8_t *cell_at(const sheet *s, uint32_t row, uint32_t column) {
    const size_t top = GAP + (size_t)row * (s->cell[0] + GAP);
    const size_t left = GAP + (size_t)column * (s->cell[1] + GAP);
    return s->pixels + (top * s->size[1] + left) * s->channels;
}

/* Pixel (y, x) of a cell; `value` has the channels of an image, or those of the sheet. */
static void put(const sheet *s, uint8_t *cell, uint32_t y, uint32_t x, const uint8_t *value,
                uint32_t channels) {
    for (uint32_t c = 0; c < s->channels; c++)
        cell[((size_t)y * s->size[1] + x) * s->channels + c] = value[channels == 1 ? 0 : c];
}

static qn_status draw_picture(sheet *s, uint8_t *cell, qn_error *err) {
    const qn_data *data = s->data;
    const size_t drawn = (size_t)s->side[0] * s->side[1];
    const qn__resize to = {.height = s->side[0], .width = s->side[1]};
    qn__drawn_pixels(data, s->shown.values, s->image);
    const qn_status status =
        qn__resize_planes(&to, s->image, data->rows, data->columns, data->channels, s->planes, err);
    for (uint32_t y = 0; status == QN_OK && y < s->side[0] * s->zoom; y++)
        for (uint32_t x = 0; x < s->side[1] * s->zoom; x++) {
            const uint8_t *plane = s->planes + (size_t)(y / s->zoom) * s->side[1] + x / s->zoom;
            uint8_t value[RGB] = {0};
            for (uint32_t c = 0; c < data->channels; c++)
                value[c] = plane[c * drawn];
            put(s, cell, y, x, value, data->channels);
        }
    return status;
}

/* The pixel of the mask that is nearest to each of the image's. */
static void draw_mask(const sheet *s, uint8_t *cell) {
    const qn__several *several = s->data->several;
    for (uint32_t y = 0; y < s->side[0]; y++)
        for (uint32_t x = 0; x < s->side[1]; x++) {
            const uint64_t from_y = (2 * (uint64_t)y + 1) * several->height / (2 * s->side[0]);
            const uint64_t from_x = (2 * (uint64_t)x + 1) * several->width / (2 * s->side[1]);
            uint8_t colour[RGB];
            qn__mask_colour(s->shown.mask[from_y * several->width + from_x], colour);
            put(s, cell, y, x, colour, RGB);
        }
}

/* " 73% cat": the name of an item's class, or the number of the class. */
static void draw_label(const sheet *s, uint8_t *cell, uint32_t line, uint64_t item, float share) {
    const int32_t *labels = s->data->labels;
    const char *name = labels ? qn_data_class_name(s->data, (uint32_t)labels[item]) : NULL;
    const size_t below = (size_t)s->side[0] * s->zoom + GAP + (size_t)line * QN__GLYPH_HEIGHT;
    char number[32], percent[16];
    if (labels)
        snprintf(number, sizeof number, "%" PRId32, labels[item]);
    else
        snprintf(number, sizeof number, "item %" PRIu64, item);
    snprintf(percent, sizeof percent, "%3.0f%%", 100.0 * (double)share);
    uint8_t *at = cell + below * s->size[1] * s->channels;
    qn__glyphs_draw(percent, SHARE, at, s->size[1], s->channels);
    at += (SHARE + 1) * QN__GLYPH_WIDTH * s->channels;
    qn__glyphs_draw(name ? name : number, LETTERS - SHARE - 2, at, s->size[1], s->channels);
}

/* The item that is shown, as the next one of a row. */
static qn_status draw(sheet *s, uint64_t item, uint32_t row, qn_error *err) {
    const uint32_t column = s->used[row]++ * (s->shown.masked ? 2 : 1);
    uint8_t *cell = cell_at(s, row, column);
    const int mixed = s->shown.partner != item;
    const qn_status status = draw_picture(s, cell, err);
    if (status == QN_OK && s->shown.masked)
        draw_mask(s, cell_at(s, row, column + 1));
    if (status == QN_OK && is_labelled(s))
        draw_label(s, cell, 0, item, mixed ? s->shown.mixing.own : 1.0f);
    if (status == QN_OK && is_labelled(s) && mixed)
        draw_label(s, cell, 1, s->shown.partner, s->shown.mixing.other);
    return status;
}

/* An item, and where a training changes items, what it sees of it. */
static qn_status draw_versions(sheet *s, uint64_t item, uint32_t row, qn_error *err) {
    const uint32_t epochs = qn__sheet_shown_changes(&s->shown) ? s->across - 1 : 0;
    qn__sheet_shown_plain(&s->shown, item);
    qn_status status = draw(s, item, row, err);
    for (uint32_t epoch = 0; status == QN_OK && epoch < epochs; epoch++) {
        qn__sheet_shown_at(&s->shown, item, epoch);
        status = draw(s, item, row, err);
    }
    return status;
}

/* The first items of each class in a row of its own; without labels the first items. */
static qn_status draw_all(sheet *s, qn_error *err) {
    const qn_data *data = s->data;
    const uint32_t across = qn__sheet_shown_changes(&s->shown) ? 1 : s->across;
    uint64_t left = (uint64_t)s->rows * across;
    qn_status status = QN_OK;
    for (uint64_t i = 0; status == QN_OK && left > 0 && i < data->items; i++) {
        const uint64_t row = data->labels ? (uint64_t)data->labels[i] : i / across;
        if (row >= s->rows || s->used[row] >= across)
            continue;
        status = draw_versions(s, i, (uint32_t)row, err);
        left--;
    }
    return status;
}

void qn_sheet_options_init(qn_sheet_options *options) {
    QN__OWN_FLOATS;
    if (options)
        *options = (qn_sheet_options){.size = sizeof *options};
}

qn_status qn_data_write_sheet(const qn_data *data, const qn_sheet_options *options,
                              const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(path, err);
    qn_sheet_options own = {.size = sizeof own};
    qn_data shaped = *data;
    qn_status status = QN_OK;
    if (options)
        status = qn__sized_take(QN__SIZED("options", qn_sheet_options), options, &own, err);
    if (status == QN_OK && own.shape)
        status = qn__shape_set(&shaped, own.shape, "the items of the sheet", err);
    if (status == QN_OK)
        status = qn__drawn_check(&shaped, err);
    if (status != QN_OK)
        return status;
    sheet s = {.data = &shaped};
    status = qn__sheet_shown_begin(&s.shown, &shaped, &own, err);
    if (status == QN_OK) {
        find_sizes(&s);
        status = reserve(&s, err);
    }
    if (status == QN_OK)
        status = draw_all(&s, err);
    if (status == QN_OK)
        status = qn__png_write(path, s.pixels, s.size[0], s.size[1], s.channels, err);
    qn__sheet_shown_end(&s.shown);
    qn__free(s.pixels);
    qn__free(s.image);
    qn__free(s.planes);
    return status;
}
