#include "image/resize.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "image/mask.h"
#include "image/resample.h"
#include <stdio.h>
#include <string.h>

/* Of the longer side in proportion, so that the sums below fit their types. */
enum { LONGEST = 65535 };

/* ------------------------------------------------------------------ the text */

static qn_status refuse(const char *text, qn_error *err) {
    qn__fail(err, QN_USAGE, "\"%s\" does not say how to resize images", text);
    qn__at(err, "`data.resize`");
    return qn__remedy(err, QN_USAGE,
                      "`data.resize` is HEIGHTxWIDTH, as 32x32, or \"short 36 crop 32\", and then "
                      "bilinear or bicubic, if a filter is meant; sides are from 1 to %d, and the "
                      "crop is not above the shorter side",
                      QN__RESIZE_MAX);
}

static const char *const filters[QN__FILTERS] = {"", " bilinear", " bicubic"};

/* Reads a side up to `end`; 0 when there is none. */
static int read_side(const char *text, const char *end, uint32_t *out) {
    uint64_t value = 0;
    const int read = qn__parse_u64(text, (size_t)(end - text), &value);
    *out = (uint32_t)value;
    return read && value >= 1 && value <= QN__RESIZE_MAX;
}

static int read_sides(const char *text, const char *end, uint32_t *height, uint32_t *width) {
    const char *cross = strpbrk(text, "xX");
    return cross && cross < end && read_side(text, cross, height) &&
           read_side(cross + 1, end, width);
}

static int read_crop(const char *text, const char *end, qn__resize *out) {
    static const char crop[] = " crop ";
    const char *at = strstr(text, crop);
    uint32_t shorter = 0;
    if (!at || !read_side(text, at, &shorter))
        return 0;
    at += sizeof crop - 1;
    if (!read_sides(at, end, &out->height, &out->width)) {
        if (!read_side(at, end, &out->height))
            return 0;
        out->width = out->height;
    }
    out->shorter = (uint16_t)shorter;
    return out->height <= shorter && out->width <= shorter;
}

/* The end of the text before its filter. */
static const char *read_filter(const char *text, qn__resize *out) {
    const size_t size = strlen(text);
    for (int i = 1; i < QN__FILTERS; i++) {
        const size_t tail = strlen(filters[i]);
        if (size >= tail && strcmp(text + size - tail, filters[i]) == 0) {
            out->filter = (uint16_t)i;
            return text + size - tail;
        }
    }
    return text + size;
}

qn_status qn__resize_parse(const char *text, qn__resize *out, qn_error *err) {
    *out = (qn__resize){0};
    if (!text)
        return QN_OK;
    const char *end = read_filter(text, out);
    const int read = strncmp(text, "short ", 6) == 0
                         ? end >= text + 6 && read_crop(text + 6, end, out)
                         : read_sides(text, end, &out->height, &out->width);
    return read ? QN_OK : refuse(text, err);
}

void qn__resize_text(const qn__resize *r, char text[QN__RESIZE_TEXT]) {
    text[0] = '\0';
    if (r->shorter)
        snprintf(text, QN__RESIZE_TEXT, "short %u crop %ux%u%s", (unsigned)r->shorter,
                 (unsigned)r->height, (unsigned)r->width, filters[r->filter]);
    else if (r->height)
        snprintf(text, QN__RESIZE_TEXT, "%ux%u%s", (unsigned)r->height, (unsigned)r->width,
                 filters[r->filter]);
}

/* ------------------------------------------------------------------ the pixels */

/* Pixels of one axis of the result: each is a weighted sum of neighbours. */
typedef struct axis {
    uint32_t count, whole;  /* pixels; the sum of each one's weights */
    uint32_t *first, *taps; /* the first neighbour of each pixel, and how many it has */
    uint32_t *begin;        /* where its weights begin */
    uint32_t *weight;
} axis;

static void release(axis *a) {
    qn__free(a->first);
    qn__free(a->taps);
    qn__free(a->begin);
    qn__free(a->weight);
}

/* Pixel j of `to` covers [j * from, (j + 1) * from) where a pixel of the image is `to` wide. */
static uint32_t average(axis *a, uint32_t j, uint32_t at, uint32_t from, uint32_t to,
                        uint32_t used) {
    const uint64_t begin = (uint64_t)j * from, end = begin + from;
    a->first[at] = (uint32_t)(begin / to);
    a->taps[at] = (uint32_t)((end - 1) / to) - a->first[at] + 1;
    for (uint32_t t = 0; t < a->taps[at]; t++) {
        const uint64_t low = ((uint64_t)a->first[at] + t) * to, high = low + to;
        a->weight[used++] = (uint32_t)((high < end ? high : end) - (low > begin ? low : begin));
    }
    return used;
}

/* The middle of pixel j, in units of 1 / (2 * to) after the middle of the first pixel. */
static uint32_t interpolate(axis *a, uint32_t j, uint32_t at, uint32_t from, uint32_t to,
                            uint32_t used) {
    const int64_t unit = 2 * (int64_t)to, last = unit * ((int64_t)from - 1);
    int64_t place = (2 * (int64_t)j + 1) * from - to;
    place = place < 0 ? 0 : place > last ? last : place;
    a->first[at] = (uint32_t)(place / unit);
    a->taps[at] = a->first[at] + 1 < from ? 2 : 1;
    a->weight[used++] = (uint32_t)(unit - place % unit);
    if (a->taps[at] == 2)
        a->weight[used++] = (uint32_t)(place % unit);
    return used;
}

/* `count` pixels from `offset` on of an axis of `from` pixels that become `to`. */
static qn_status make_axis(uint32_t from, uint32_t to, uint32_t offset, uint32_t count, axis *a,
                           qn_error *err) {
    *a = (axis){.count = count, .whole = to < from ? from : 2 * to};
    a->first = qn__alloc(count, sizeof *a->first, err);
    a->taps = qn__alloc(count, sizeof *a->taps, err);
    a->begin = qn__alloc(count, sizeof *a->begin, err);
    /* Averages share at most the pixel between two of them. */
    a->weight =
        qn__alloc(to < from ? (uint64_t)from + count : 2 * (uint64_t)count, sizeof *a->weight, err);
    if (!a->first || !a->taps || !a->begin || !a->weight)
        return QN_MEMORY;
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        a->begin[i] = used;
        used = to < from ? average(a, offset + i, i, from, to, used)
                         : interpolate(a, offset + i, i, from, to, used);
    }
    return QN_OK;
}

/* An image being resized. Sums along a row of the last two rows that were needed are kept: the next
 * row of the result begins with the row or the two with which this one ends. */
typedef struct resizing {
    axis x, y;
    uint32_t channels;
    const uint8_t *pixels; /* of rows of `stride` bytes */
    size_t stride;
    uint32_t *row[2]; /* sums of [column][channel] */
    uint64_t kept[2]; /* 1 + the row whose sums they are; 0: none */
    uint64_t *sum;    /* of a row of the result */
} resizing;

static const uint32_t *sum_row(resizing *r, uint32_t y) {
    uint32_t *to = r->row[y % 2];
    if (r->kept[y % 2] == (uint64_t)y + 1)
        return to;
    r->kept[y % 2] = (uint64_t)y + 1;
    const uint8_t *from = r->pixels + y * r->stride;
    for (uint32_t i = 0; i < r->x.count; i++)
        for (uint32_t c = 0; c < r->channels; c++) {
            const uint32_t *weight = r->x.weight + r->x.begin[i];
            const uint8_t *at = from + (size_t)r->x.first[i] * r->channels + c;
            uint32_t sum = 0; /* at most 255 * 2 * 65535 */
            for (uint32_t t = 0; t < r->x.taps[i]; t++)
                sum += weight[t] * at[(size_t)t * r->channels];
            to[(size_t)i * r->channels + c] = sum;
        }
    return to;
}

static void make_row(resizing *r, uint32_t i, uint8_t *planes) {
    const size_t count = (size_t)r->x.count * r->channels;
    const uint64_t whole = (uint64_t)r->x.whole * r->y.whole;
    memset(r->sum, 0, count * sizeof *r->sum);
    for (uint32_t t = 0; t < r->y.taps[i]; t++) {
        const uint64_t weight = r->y.weight[r->y.begin[i] + t];
        const uint32_t *row = sum_row(r, r->y.first[i] + t);
        for (size_t k = 0; k < count; k++)
            r->sum[k] += weight * row[k];
    }
    const size_t plane = (size_t)r->x.count * r->y.count;
    const uint64_t *sum = r->sum;
    for (uint32_t x = 0; x < r->x.count; x++)
        for (uint32_t c = 0; c < r->channels; c++)
            planes[c * plane + (size_t)i * r->x.count + x] =
                (uint8_t)((2 * *sum++ + whole) / (2 * whole));
}

/* The longer side in proportion to the shorter one: to the nearest pixel, halves up, and with a
 * filter downwards. */
static uint32_t longer(const qn__resize *to, uint32_t long_side, uint32_t short_side) {
    const uint64_t half = to->filter ? 0 : short_side;
    return (uint32_t)((2 * (uint64_t)long_side * to->shorter + half) / (2 * (uint64_t)short_side));
}

/* The sides of the image that is made, before its middle is cut out. */
static qn_status find_sides(const qn__resize *to, uint32_t height, uint32_t width, uint32_t *rows,
                            uint32_t *columns, qn_error *err) {
    *rows = to->height, *columns = to->width;
    if (to->shorter) {
        *rows = height <= width ? to->shorter : longer(to, height, width);
        *columns = width <= height ? to->shorter : longer(to, width, height);
    }
    if (*rows <= LONGEST && *columns <= LONGEST)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the sides of the image differ too much: %u and %u pixels",
             (unsigned)height, (unsigned)width);
    qn__remedy(err, QN_INPUT, "leave it out, or give both sides with `data.resize`, as 32x32");
    return QN_INPUT;
}

static qn_status average_planes(const qn__resize *resize, const uint8_t *pixels, uint32_t height,
                                uint32_t width, uint32_t channels, uint32_t rows, uint32_t columns,
                                uint8_t *planes, qn_error *err) {
    resizing r = {.channels = channels, .pixels = pixels, .stride = (size_t)width * channels};
    const uint64_t count = (uint64_t)resize->width * channels;
    qn_status status =
        make_axis(height, rows, (rows - resize->height) / 2, resize->height, &r.y, err);
    if (status == QN_OK)
        status = make_axis(width, columns, (columns - resize->width) / 2, resize->width, &r.x, err);
    if (status == QN_OK) {
        r.row[0] = qn__alloc(count, sizeof *r.row[0], err);
        r.row[1] = qn__alloc(count, sizeof *r.row[1], err);
        r.sum = qn__alloc(count, sizeof *r.sum, err);
        status = r.row[0] && r.row[1] && r.sum ? QN_OK : QN_MEMORY;
    }
    for (uint32_t i = 0; status == QN_OK && i < resize->height; i++)
        make_row(&r, i, planes);
    qn__free(r.row[0]);
    qn__free(r.row[1]);
    qn__free(r.sum);
    release(&r.x);
    release(&r.y);
    return status;
}

/* Where a window of `count` begins in the middle of `made`: the even one of two. */
static uint32_t middle(uint32_t made, uint32_t count) {
    const uint32_t rest = made - count;
    return rest / 2 + (rest % 4 == 3);
}

qn_status qn__resize_planes(const qn__resize *resize, const uint8_t *pixels, uint32_t height,
                            uint32_t width, uint32_t channels, uint8_t *planes, qn_error *err) {
    uint32_t rows, columns;
    const qn_status status = find_sides(resize, height, width, &rows, &columns, err);
    if (status != QN_OK)
        return status;
    if (!resize->filter)
        return average_planes(resize, pixels, height, width, channels, rows, columns, planes, err);
    const qn__resampling how = {
        .filter = (qn__filter)resize->filter,
        .y = {height, rows, middle(rows, resize->height), resize->height},
        .x = {width, columns, middle(columns, resize->width), resize->width},
        .channels = channels};
    return qn__resample_planes(&how, pixels, planes, err);
}

/* The pixel of an axis of `from` in which the middle of pixel `i` of `to` lies. */
static uint32_t nearest(uint32_t i, uint32_t from, uint32_t to) {
    return (uint32_t)((2 * (uint64_t)i + 1) * from / (2 * (uint64_t)to));
}

/* Where the crop of an axis begins. */
static uint32_t begin_of(const qn__resize *resize, uint32_t made, uint32_t kept) {
    return resize->filter ? middle(made, kept) : (made - kept) / 2;
}

qn_status qn__resize_nearest(const qn__resize *resize, const uint8_t *pixels, uint32_t height,
                             uint32_t width, uint8_t *to, qn_error *err) {
    uint32_t rows, columns;
    const qn_status status = find_sides(resize, height, width, &rows, &columns, err);
    if (status != QN_OK)
        return status;
    const uint32_t above = begin_of(resize, rows, resize->height);
    const uint32_t before = begin_of(resize, columns, resize->width);
    for (uint32_t y = 0; y < resize->height; y++) {
        const uint8_t *row = pixels + (size_t)nearest(above + y, height, rows) * width;
        for (uint32_t x = 0; x < resize->width; x++)
            *to++ = row[nearest(before + x, width, columns)];
    }
    return QN_OK;
}

/* The pixels of an axis of a mask for those of the image; UINT32_MAX: the crop does not have it. */
typedef struct undoing {
    uint32_t from, made;   /* pixels of the image, and of what was made of it */
    uint32_t before, kept; /* the crop of it */
    uint32_t count;        /* pixels of the mask, over the crop */
} undoing;

static uint32_t undo(const undoing *u, uint32_t i) {
    const uint32_t at = nearest(i, u->made, u->from);
    return at < u->before || at - u->before >= u->kept ? UINT32_MAX
                                                       : nearest(at - u->before, u->count, u->kept);
}

qn_status qn__resize_undo(const qn__resize *resize, const uint8_t *mask, uint32_t rows,
                          uint32_t columns, uint32_t height, uint32_t width, uint8_t *to,
                          qn_error *err) {
    undoing y = {height, height, 0, height, rows}, x = {width, width, 0, width, columns};
    if (resize->height) {
        const qn_status status = find_sides(resize, height, width, &y.made, &x.made, err);
        if (status != QN_OK)
            return status;
        y.kept = resize->height;
        x.kept = resize->width;
        y.before = begin_of(resize, y.made, y.kept);
        x.before = begin_of(resize, x.made, x.kept);
    }
    for (uint32_t i = 0; i < height; i++) {
        const uint32_t row = undo(&y, i);
        for (uint32_t j = 0; j < width; j++) {
            const uint32_t column = undo(&x, j);
            *to++ = row == UINT32_MAX || column == UINT32_MAX
                        ? QN__OUTSIDE
                        : mask[(size_t)row * columns + column];
        }
    }
    return QN_OK;
}
