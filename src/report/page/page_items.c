/* The worst mistakes, each with its image or its first columns. */
#include "base/markup.h"
#include "base/memory.h"
#include "data/images/drawn.h"
#include "image/png_write.h"
#include "image/resize.h"
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Pixels of the longer side of an image at most, and columns of a table. */
enum { SIDE = 96, COLUMNS = 8 };

static int is_image(const qn_data *data) { return qn__drawn_check(data, NULL) == QN_OK; }

static void add_label(qn__text *text, const char *before, const qn_model *model, int32_t class,
                      const char *after) {
    char buffer[16];
    qn__markup_put(text, before, qn__judged_class(model, class, buffer), 40, after);
}

static void add_caption(qn__page *page, const qn__mistake *m) {
    qn__text *text = &page->html;
    const qn__judged *j = page->judged;
    const char *file = qn_data_item_name(j->data, m->item);
    qn__text_add(text, "<figcaption>");
    if (j->real) {
        qn__text_add(text, "<b>%.6g</b>, predicted <b>%.6g</b>", (double)m->target,
                     (double)m->prediction);
    } else {
        add_label(text, "<b>", j->model, m->label, "</b>");
        if (m->label >= 0)
            qn__text_add(text, " (%.3g)", (double)m->own);
        qn__text_add(text, ", predicted <b>");
        add_label(text, "", j->model, m->class, "</b>");
        qn__text_add(text, " (%.3g)", (double)m->prediction);
    }
    qn__text_add(text, "<br/><span class=\"dim\">item %" PRIu64, m->item);
    if (file)
        qn__markup_put(text, ", ", file, 120, "");
    qn__text_add(text, "</span></figcaption>\n");
}

static void add_alt(qn__page *page, const qn__mistake *m, const char *what) {
    qn__text_add(&page->html, "\" alt=\"%s of item %" PRIu64 ": ", what, m->item);
    if (page->judged->real) {
        qn__text_add(&page->html, "%.6g", (double)m->target);
    } else {
        add_label(&page->html, "", page->judged->model, m->label, " taken for ");
        add_label(&page->html, "", page->judged->model, m->class, "");
    }
    qn__text_add(&page->html, "\"/>\n");
}

static uint32_t fit(uint32_t side, uint32_t longest) {
    const uint64_t made = longest > SIDE ? (uint64_t)side * SIDE / longest : side;
    return made ? (uint32_t)made : 1;
}

/* The size in which images are shown. */
static qn__resize shown_size(const qn_data *data) {
    const uint32_t longest = data->rows > data->columns ? data->rows : data->columns;
    return (qn__resize){.height = fit(data->rows, longest), .width = fit(data->columns, longest)};
}

/* Blue, green and red for 0, 128 and 255, with their mixtures between them. */
static uint8_t colour_of(uint8_t value, int channel) {
    const int from = 4 * value - 255 * (3 - channel), part = 382 - (from < 0 ? -from : from);
    return (uint8_t)(part < 0 ? 0 : part > 255 ? 255 : part);
}

/* Half of each pixel is its own colour, and half that of the map. */
static void lay_over(const uint8_t *image, uint32_t channels, const uint8_t *map, size_t pixels,
                     uint8_t *out) {
    for (size_t p = 0; p < pixels; ++p)
        for (int c = 0; c < 3; ++c) {
            const uint32_t own = image[p * channels + (channels == 3 ? (size_t)c : 0)];
            out[3 * p + (size_t)c] = (uint8_t)((own + colour_of(map[p], c) + 1) / 2);
        }
}

/* The item's pixels, made smaller where it is large: [row][column][channel]. */
static qn_status draw_item(const qn_data *data, uint64_t item, const qn__resize *to, uint8_t *out,
                           qn_error *err) {
    const size_t pixels = (size_t)to->height * to->width, channels = data->channels;
    uint8_t *image = qn__alloc(data->features, 1, err);
    uint8_t *planes = image ? qn__alloc(pixels, channels, err) : NULL;
    qn_status status = planes ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        qn__drawn_pixels(data, qn__data_item(data, item), image);
        status =
            qn__resize_planes(to, image, data->rows, data->columns, data->channels, planes, err);
    }
    for (size_t i = 0; status == QN_OK && i < pixels * channels; ++i)
        out[i] = planes[i % channels * pixels + i / channels];
    qn__free(image);
    qn__free(planes);
    return status;
}

/* Replaces the drawn item by one with its map. */
static qn_status draw_map(const qn__class_maps *maps, uint32_t mistake, uint32_t channels,
                          const qn__resize *to, uint8_t *image, qn_error *err) {
    const size_t pixels = (size_t)to->height * to->width;
    uint8_t *small = qn__alloc(maps->rows, maps->columns, err);
    uint8_t *map = small ? qn__alloc(pixels, 1, err) : NULL;
    uint8_t *out = map ? qn__alloc(pixels, 3, err) : NULL;
    qn_status status = out ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        qn__class_map_bytes(maps, mistake, small);
        status = qn__resize_planes(to, small, maps->rows, maps->columns, 1, map, err);
    }
    if (status == QN_OK) {
        lay_over(image, channels, map, pixels, out);
        memcpy(image, out, 3 * pixels);
    }
    qn__free(small);
    qn__free(map);
    qn__free(out);
    return status;
}

static void add_picture(qn__page *page, const qn__mistake *m, const char *what,
                        const qn__resize *size, const uint8_t *image, uint32_t channels) {
    uint8_t *file;
    size_t bytes;
    const qn_status status =
        qn__png_encode(image, size->height, size->width, channels, &file, &bytes, page->err);
    if (status != QN_OK) {
        page->status = page->status == QN_OK ? status : page->status;
        return;
    }
    qn__text_add(&page->html, "<img src=\"data:image/png;base64,");
    qn__markup_add_base64(&page->html, file, bytes);
    add_alt(page, m, what);
    qn__free(file);
}

static void add_images(qn__page *page, uint32_t mistake) {
    const qn_data *data = page->judged->data;
    const qn__mistake *m = &page->judged->worst[mistake];
    const qn__resize size = shown_size(data);
    uint8_t *image = qn__alloc((uint64_t)size.height * size.width, 3, page->err);
    qn_status status = image ? draw_item(data, m->item, &size, image, page->err) : QN_MEMORY;
    if (status == QN_OK)
        add_picture(page, m, "Image", &size, image, data->channels);
    if (status == QN_OK && page->maps && page->maps->value) {
        status = draw_map(page->maps, mistake, data->channels, &size, image, page->err);
        if (status == QN_OK)
            add_picture(page, m, "Class activation map", &size, image, 3);
    }
    if (page->status == QN_OK)
        page->status = status;
    qn__free(image);
}

static void add_value(qn__page *page, const qn_data *data, uint64_t item, uint32_t k) {
    const float value = (float)qn__data_number(data, item, k);
    const qn__feature *f = data->schema ? &data->schema->feature[k] : NULL;
    char number[40];
    if (isnan(value)) {
        qn__text_add(&page->html, "missing");
    } else if (f && f->categories > 0 && value >= 0 && value < (float)f->categories) {
        qn__markup_add(&page->html, f->category[(uint32_t)value], 60);
    } else {
        qn__float_plain(value, number);
        qn__text_add(&page->html, "%s", number);
    }
}

static void add_columns(qn__page *page, const qn__mistake *m) {
    const qn_data *data = page->judged->data;
    qn__text_add(&page->html, "<table>\n<tbody>\n");
    for (uint32_t k = 0; k < data->features && k < COLUMNS; ++k) {
        const char *name = data->schema ? data->schema->feature[k].name : NULL;
        qn__text_add(&page->html, "<tr><th scope=\"row\">");
        if (name)
            qn__markup_add(&page->html, name, 40);
        else
            qn__text_add(&page->html, "column %" PRIu32, k + 1);
        qn__text_add(&page->html, "</th><td class=\"o\">");
        add_value(page, data, m->item, k);
        qn__text_add(&page->html, "</td></tr>\n");
    }
    qn__text_add(&page->html, "</tbody>\n</table>\n");
    if (data->features > COLUMNS)
        qn__text_add(&page->html, "<p class=\"dim\">and %" PRIu32 " more columns</p>\n",
                     data->features - COLUMNS);
}

/* What the maps are, or why there are none. */
static void add_about_maps(qn__page *page) {
    if (!page->maps || page->judged->mistakes == 0)
        return;
    if (page->maps->value)
        qn__text_add(
            &page->html,
            "<p class=\"dim\">The second image has the class activation map of the "
            "predicted class, %" PRIu32 " x %" PRIu32 " pixels: red where the last feature "
            "maps, weighted for this class, have the greatest sum, blue where they have the "
            "least.</p>\n",
            page->maps->rows, page->maps->columns);
    else
        qn__text_add(&page->html, "<p class=\"dim\">There are no class activation maps: %s.</p>\n",
                     page->maps->why);
}

void qn__page_mistakes(qn__page *page) {
    const qn__judged *j = page->judged;
    if (!j)
        return;
    const int images = is_image(j->data);
    qn__page_section(page, "mistakes", j->real ? "Largest errors" : "Worst mistakes");
    qn__text_add(&page->html, "<p>");
    if (!j->real) {
        qn__markup_add_count(&page->html, j->items - j->correct);
        qn__text_add(&page->html, " of ");
    }
    qn__markup_add_count(&page->html, j->items);
    qn__text_add(&page->html, j->real ? " predictions of " : " predictions are wrong, of ");
    qn__markup_add(&page->html, page->judged_name, 0);
    if (j->mistakes > 0)
        qn__text_add(&page->html, j->real ? "; those farthest from their labels come first"
                                          : "; those whose label has the lowest output come first");
    qn__text_add(&page->html, ".</p>\n");
    add_about_maps(page);
    qn__text_add(&page->html, "<div class=\"cards%s\">\n", images ? "" : " tables");
    for (uint32_t i = 0; i < j->mistakes; ++i) {
        qn__text_add(&page->html, "<figure>\n");
        if (images)
            add_images(page, i);
        else
            add_columns(page, &j->worst[i]);
        add_caption(page, &j->worst[i]);
        qn__text_add(&page->html, "</figure>\n");
    }
    qn__text_add(&page->html, "</div>\n");
    qn__page_end_section(page);
}
