#include "image/image_formats.h"
#include "image/image_faults.h"
#include <string.h>

/* Sizes of the second header: OS/2 1, Windows 3, with masks, 4 and 5; OS/2 2 has 16 to 64. */
enum {
    FILE_HEADER = 14,
    CORE = 12,
    SHORTEST_2 = 16,
    INFO = 40,
    V2 = 52,
    V3 = 56,
    OS2 = 64,
    V4 = 108,
    V5 = 124
};
enum { PLAIN = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, MASKS_ALPHA = 6 };

typedef struct bmp {
    const uint8_t *bytes;
    size_t size;
    uint32_t header, height, width, bits, compression;
    int down;             /* 1: the first row is the top one */
    uint32_t colours;     /* in the colour table */
    const uint8_t *table; /* each of `entry` bytes: blue, green, red */
    uint32_t entry;
    size_t at;        /* where the pixels begin */
    uint32_t mask[3]; /* red, green, blue */
} bmp;

static uint32_t little2(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }

static uint32_t little4(const uint8_t *at) { return little2(at) | little2(at + 2) << 16; }

static int is_header(uint32_t size) {
    return size == CORE || (size >= SHORTEST_2 && size <= OS2) || size == V4 || size == V5;
}

int qn__bmp_is(const uint8_t *b, size_t size) {
    return size >= FILE_HEADER + 4 && memcmp(b, "BM", 2) == 0 &&
           is_header(little4(b + FILE_HEADER));
}

static qn_status cut_off(qn_error *err) {
    return qn__image_broken(err, "the BMP file is cut off in its head");
}

/* ------------------------------------------------------------------ the head */

static int64_t signed4(const uint8_t *at) { return (int32_t)little4(at); }

static void take_sides(bmp *f, const uint8_t *h, int64_t *width, int64_t *height) {
    *width = f->header == CORE ? (int64_t)little2(h + 4) : signed4(h + 4);
    *height = f->header == CORE ? (int64_t)little2(h + 6) : signed4(h + 8);
    f->bits = little2(h + (f->header == CORE ? 10 : 14));
    f->compression = f->header >= 20 ? little4(h + 16) : PLAIN;
    f->down = *height < 0;
    *height = f->down ? -*height : *height;
}

static int has_masks(uint32_t header) {
    return header == INFO || header == V2 || header == V3 || header == V4 || header == V5;
}

/* With OS/2's header the numbers from 3 on mean other things. */
static int is_read(const bmp *f) {
    switch (f->compression) {
    case PLAIN:
        return f->bits == 1 || f->bits == 2 || f->bits == 4 || f->bits == 8 || f->bits == 16 ||
               f->bits == 24 || f->bits == 32;
    case RLE8:
        return f->bits == 8 && !f->down;
    case RLE4:
        return f->bits == 4 && !f->down;
    case MASKS:
    case MASKS_ALPHA:
        return has_masks(f->header) && (f->bits == 16 || f->bits == 32);
    default:
        return 0;
    }
}

static int is_contiguous(uint32_t mask) {
    const uint32_t low = mask & (~mask + 1);
    return mask != 0 && (mask & (mask + low)) == 0;
}

/* Bytes of masks between the second header and the colour table. */
static uint32_t mask_bytes(const bmp *f) {
    if (f->header != INFO || f->bits <= 8)
        return 0;
    return f->compression == MASKS ? 12 : f->compression == MASKS_ALPHA ? 16 : 0;
}

/* The masks stand after the first 40 bytes of the header, whether they are part of it or not. */
static qn_status take_masks(bmp *f, qn_error *err) {
    static const uint32_t usual[2][3] = {{0x7C00, 0x3E0, 0x1F}, {0xFF0000, 0xFF00, 0xFF}};
    for (int c = 0; c < 3; c++)
        f->mask[c] = usual[f->bits == 32][c];
    if (f->compression != MASKS && f->compression != MASKS_ALPHA)
        return QN_OK;
    for (int c = 0; c < 3; c++) {
        f->mask[c] = little4(f->bytes + FILE_HEADER + INFO + 4 * c);
        if (!is_contiguous(f->mask[c]) || (f->bits == 16 && f->mask[c] > 0xFFFF))
            return qn__image_broken(err, "the BMP file has bit masks that do not tell its colours");
    }
    return QN_OK;
}

/* As many colours as it says, as pixels can name, and as stand before the pixels. */
static void take_table(bmp *f, const uint8_t *h) {
    const size_t begin = FILE_HEADER + f->header + mask_bytes(f);
    f->entry = f->header == CORE ? 3 : 4;
    f->table = f->bytes + begin;
    if (f->bits > 8)
        return;
    const uint32_t said = f->header >= 36 ? little4(h + 32) : 0, all = (uint32_t)1 << f->bits;
    const size_t fit = f->at > begin ? (f->at - begin) / f->entry : 0;
    f->colours = said > 0 && said < all ? said : all;
    f->colours = fit < f->colours ? (uint32_t)fit : f->colours;
}

/* The header and what stands before the pixels; the sides are checked by the caller. */
static qn_status parse(bmp *f, int64_t *width, int64_t *height, qn_error *err) {
    const uint8_t *h = f->bytes + FILE_HEADER;
    f->header = little4(h);
    if (f->size < (size_t)FILE_HEADER + f->header)
        return cut_off(err);
    take_sides(f, h, width, height);
    if (*width < 0)
        return qn__image_broken(err, "the BMP file has a negative width");
    if (!is_read(f))
        return qn__image_unread(err, "convert it to PNG",
                                "the BMP file has %u bits a pixel and compression %u, and such "
                                "files are not read",
                                (unsigned)f->bits, (unsigned)f->compression);
    if (f->size < (size_t)FILE_HEADER + f->header + mask_bytes(f))
        return cut_off(err);
    f->at = little4(f->bytes + 10);
    take_table(f, h);
    if (f->size < FILE_HEADER + f->header + mask_bytes(f) + (size_t)f->colours * f->entry)
        return cut_off(err);
    if (f->bits <= 8 && f->colours == 0)
        return qn__image_broken(err, "the BMP file has no colour table");
    return take_masks(f, err);
}

static int is_grey(const bmp *f) {
    for (uint32_t i = 0; i < f->colours; i++) {
        const uint8_t *colour = f->table + (size_t)i * f->entry;
        if (colour[0] != colour[1] || colour[1] != colour[2])
            return 0;
    }
    return f->bits <= 8;
}

qn_status qn__bmp_head(const uint8_t *bytes, size_t size, qn__image_head *head, qn_error *err) {
    bmp f = {.bytes = bytes, .size = size};
    int64_t width = 0, height = 0;
    const qn_status status = parse(&f, &width, &height, err);
    if (status != QN_OK)
        return status;
    head->width = (uint32_t)width;
    head->height = (uint32_t)height;
    head->channels = is_grey(&f) ? 1 : 3;
    return QN_OK;
}

/* ------------------------------------------------------------------ the pixels */

typedef struct drawing {
    const bmp *f;
    uint32_t channels;
    uint8_t *pixels;
} drawing;

/* Row y of the file, from 0. */
static uint8_t *place_of(const drawing *d, uint32_t x, uint32_t y) {
    const uint32_t row = d->f->down ? y : d->f->height - 1 - y;
    return d->pixels + ((size_t)row * d->f->width + x) * d->channels;
}

/* 0: the table has no such colour. */
static int put_index(const drawing *d, uint8_t *to, uint32_t index) {
    if (index >= d->f->colours)
        return 0;
    const uint8_t *colour = d->f->table + (size_t)index * d->f->entry;
    for (uint32_t c = 0; c < d->channels; c++)
        to[c] = colour[2 - c];
    return 1;
}

/* The part of a pixel under a mask, as a byte: the nearest to v * 255 / greatest; of more than
 * eight bits the high ones. */
static uint8_t part(uint32_t pixel, uint32_t mask) {
    while (mask > 255 || (mask > 0 && (mask & 1) == 0)) {
        pixel >>= 1;
        mask >>= 1;
    }
    return mask == 0 ? 0 : (uint8_t)((2 * (pixel & mask) * 255 + mask) / (2 * mask));
}

static uint32_t index_at(const uint8_t *row, uint32_t x, uint32_t bits) {
    const uint32_t each = 8 / bits, shift = bits * (each - 1 - x % each);
    return (uint32_t)(row[x / each] >> shift) & (((uint32_t)1 << bits) - 1);
}

/* Files of grey colours have a table; so there are three channels here. */
static void put_colours(const drawing *d, const uint8_t *row, uint32_t y) {
    const uint32_t size = d->f->bits / 8;
    uint8_t *to = place_of(d, 0, y);
    for (uint32_t x = 0; x < d->f->width; x++, row += size, to += 3) {
        if (size == 3) {
            to[0] = row[2], to[1] = row[1], to[2] = row[0];
            continue;
        }
        const uint32_t pixel = size == 2 ? little2(row) : little4(row);
        for (int c = 0; c < 3; c++)
            to[c] = part(pixel, d->f->mask[c]);
    }
}

static int put_indices(const drawing *d, const uint8_t *row, uint32_t y) {
    uint8_t *to = place_of(d, 0, y);
    for (uint32_t x = 0; x < d->f->width; x++, to += d->channels)
        if (!put_index(d, to, index_at(row, x, d->f->bits)))
            return 0;
    return 1;
}

static qn_status no_colour(qn_error *err) {
    return qn__image_broken(err, "the BMP file is broken: a pixel has a colour that is not in its "
                                 "table");
}

static qn_status pixels_cut(qn_error *err) {
    return qn__image_broken(err, "the BMP file is broken: it is cut off");
}

/* Rows have a multiple of four bytes; the filling of the last one may be missing. */
static qn_status draw_rows(const drawing *d, qn_error *err) {
    const bmp *f = d->f;
    const uint64_t bytes = ((uint64_t)f->width * f->bits + 7) / 8, stride = (bytes + 3) / 4 * 4;
    if (f->at > f->size || f->size - f->at < stride * (f->height - 1) + bytes)
        return pixels_cut(err);
    for (uint32_t y = 0; y < f->height; y++) {
        const uint8_t *row = f->bytes + f->at + stride * y;
        if (f->bits > 8)
            put_colours(d, row, y);
        else if (!put_indices(d, row, y))
            return no_colour(err);
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ run lengths */

typedef struct runs {
    const drawing *d;
    size_t at;
    uint32_t x, y;
} runs;

/* Where the runs of a row or of the image go on too long. */
static qn_status too_long(qn_error *err) {
    return qn__image_broken(err, "the BMP file is broken: a run of pixels leaves the image");
}

/* `count` pixels, whose indices stand at `from`: in turn, or again and again those of one byte. */
static qn_status put_run(runs *r, const uint8_t *from, uint32_t count, int same, qn_error *err) {
    const drawing *d = r->d;
    const uint32_t bits = d->f->bits, each = 8 / bits;
    if (r->y >= d->f->height || count > d->f->width - r->x)
        return too_long(err);
    uint8_t *to = place_of(d, r->x, r->y);
    for (uint32_t i = 0; i < count; i++, to += d->channels)
        if (!put_index(d, to, index_at(from, same ? i % each : i, bits)))
            return no_colour(err);
    r->x += count;
    return QN_OK;
}

static qn_status move(runs *r, uint32_t right, uint32_t up, qn_error *err) {
    if (right > r->d->f->width - r->x || up > r->d->f->height - r->y)
        return too_long(err);
    r->x += right;
    r->y += up;
    return QN_OK;
}

/* Indices that stand one by one, filled up to two bytes. */
static qn_status put_plain(runs *r, uint32_t count, qn_error *err) {
    const bmp *f = r->d->f;
    const size_t bytes = (count * f->bits + 7) / 8;
    if (f->size - r->at < bytes)
        return pixels_cut(err);
    const qn_status status = put_run(r, f->bytes + r->at, count, 0, err);
    const size_t filled = (bytes + 1) / 2 * 2;
    r->at += filled < f->size - r->at ? filled : f->size - r->at;
    return status;
}

/* The end of the image is left out by some programs; nothing is missing once all rows ended. */
static qn_status draw_runs(const drawing *d, qn_error *err) {
    const bmp *f = d->f;
    runs r = {.d = d, .at = f->at < f->size ? f->at : f->size};
    qn_status status = QN_OK;
    while (status == QN_OK && r.y < f->height) {
        if (f->size - r.at < 2)
            return r.x == f->width && r.y + 1 == f->height ? QN_OK : pixels_cut(err);
        const uint8_t *code = f->bytes + r.at;
        r.at += 2;
        if (code[0] > 0) {
            status = put_run(&r, code + 1, code[0], 1, err);
        } else if (code[1] == 0) {
            r.x = 0;
            r.y++;
        } else if (code[1] == 1) {
            return QN_OK;
        } else if (code[1] > 2) {
            status = put_plain(&r, code[1], err);
        } else if (f->size - r.at < 2) {
            return pixels_cut(err);
        } else {
            status = move(&r, f->bytes[r.at], f->bytes[r.at + 1], err);
            r.at += 2;
        }
    }
    return status;
}

qn_status qn__bmp_decode(void **kept, const uint8_t *bytes, size_t size, const qn__image_head *head,
                         uint32_t channels, uint8_t *pixels, qn_error *err) {
    (void)kept;
    bmp f = {.bytes = bytes, .size = size};
    int64_t width = 0, height = 0;
    if (!qn__bmp_is(bytes, size))
        return qn__image_changed(err);
    const qn_status status = parse(&f, &width, &height, err);
    if (status != QN_OK)
        return status;
    if (width != head->width || height != head->height || channels < (is_grey(&f) ? 1 : 3))
        return qn__image_changed(err);
    f.width = head->width;
    f.height = head->height;
    const drawing d = {.f = &f, .channels = channels, .pixels = pixels};
    if (f.compression != RLE8 && f.compression != RLE4)
        return draw_rows(&d, err);
    /* Pixels that no run covers have the first colour. */
    for (size_t i = 0; i < (size_t)f.width * f.height; i++)
        put_index(&d, pixels + i * channels, 0);
    return draw_runs(&d, err);
}
