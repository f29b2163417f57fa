/* The worst mistakes, each with its image or its first columns. */
#include "base/markup.h"
#include "base/memory.h"
#include "data/images/drawn.h"
#include "image/png_write.h"
#include "image/resize.h"
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>

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
        add_label(text, "<b>", j->model, m->label, "</b>, predicted <b>");
        add_label(text, "", j->model, m->class, "</b>");
        qn__text_add(text, " (%.3g)", (double)m->prediction);
    }
    qn__text_add(text, "<br/><span class=\"dim\">item %" PRIu64, m->item);
    if (file)
        qn__markup_put(text, ", ", file, 120, "");
    qn__text_add(text, "</span></figcaption>\n");
}

static void add_alt(qn__page *page, const qn__mistake *m) {
    qn__text_add(&page->html, "\" alt=\"Image of item %" PRIu64 ": ", m->item);
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

/* The bytes of a PNG file of the item, made smaller where it is large. */
static qn_status encode_item(const qn_data *data, uint64_t item, uint8_t **file, size_t *size,
                             qn_error *err) {
    const uint32_t longest = data->rows > data->columns ? data->rows : data->columns;
    const qn__resize to = {.height = fit(data->rows, longest),
                           .width = fit(data->columns, longest)};
    const size_t pixels = (size_t)to.height * to.width, channels = data->channels;
    uint8_t *image = qn__alloc(data->features, 1, err);
    uint8_t *planes = image ? qn__alloc(pixels, channels, err) : NULL;
    uint8_t *mixed = planes ? qn__alloc(pixels, channels, err) : NULL;
    qn_status status = mixed ? QN_OK : QN_MEMORY;
    *file = NULL;
    if (status == QN_OK) {
        qn__drawn_pixels(data, qn__data_item(data, item), image);
        status =
            qn__resize_planes(&to, image, data->rows, data->columns, data->channels, planes, err);
    }
    for (size_t i = 0; status == QN_OK && i < pixels * channels; ++i)
        mixed[i] = planes[i % channels * pixels + i / channels];
    if (status == QN_OK)
        status = qn__png_encode(mixed, to.height, to.width, data->channels, file, size, err);
    qn__free(image);
    qn__free(planes);
    qn__free(mixed);
    return status;
}

static void add_image(qn__page *page, const qn__mistake *m) {
    uint8_t *file;
    size_t size;
    const qn_status status = encode_item(page->judged->data, m->item, &file, &size, page->err);
    if (status != QN_OK) {
        page->status = page->status == QN_OK ? status : page->status;
        return;
    }
    qn__text_add(&page->html, "<img src=\"data:image/png;base64,");
    qn__markup_add_base64(&page->html, file, size);
    add_alt(page, m);
    qn__free(file);
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
                                          : "; those with the highest score come first");
    qn__text_add(&page->html, ".</p>\n<div class=\"cards%s\">\n", images ? "" : " tables");
    for (uint32_t i = 0; i < j->mistakes; ++i) {
        qn__text_add(&page->html, "<figure>\n");
        if (images)
            add_image(page, &j->worst[i]);
        else
            add_columns(page, &j->worst[i]);
        add_caption(page, &j->worst[i]);
        qn__text_add(&page->html, "</figure>\n");
    }
    qn__text_add(&page->html, "</div>\n");
    qn__page_end_section(page);
}
