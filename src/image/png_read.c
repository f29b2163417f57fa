/* libpng's own interface and not the short one that it also has: the latter converts by the gamma
 * of the file, in arithmetic that may change, and takes 16 bits for linear light. Here a byte of
 * the file is a byte of the image. */
#include "image/image_formats.h"
#include "base/memory.h"
#include "image/image_faults.h"
#include "image/mask.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* Own declarations of the parts of libpng16.so.16 in use; png and info are opaque there too. */
typedef void (*report_fn)(void *png, const char *text);
typedef void (*read_fn)(void *png, unsigned char *to, size_t size);

static struct {
    const char *(*version)(const void *png);
    void *(*create)(const char *version, void *user, report_fn error, report_fn warning);
    void *(*create_info)(void *png);
    void (*destroy)(void **png, void **info, void **end);
    void *(*user)(const void *png);    /* of create */
    void *(*io_user)(const void *png); /* of set_read */
    void (*set_read)(void *png, void *user, read_fn read);
    void (*set_limits)(void *png, uint32_t width, uint32_t height);
    void (*read_info)(void *png, void *info);
    void (*palette_to_rgb)(void *png);
    void (*packing)(void *png);
    void (*expand_grey)(void *png);
    void (*strip_16)(void *png);
    void (*strip_alpha)(void *png);
    void (*grey_to_rgb)(void *png);
    int (*interlacing)(void *png);
    void (*update)(void *png, void *info);
    size_t (*row_bytes)(const void *png, const void *info);
    void (*read_image)(void *png, unsigned char **rows);
    void (*read_end)(void *png, void *info);
} the;

static const qn__library_symbol symbols[] = {
    {"png_get_libpng_ver", &the.version},
    {"png_create_read_struct", &the.create},
    {"png_create_info_struct", &the.create_info},
    {"png_destroy_read_struct", &the.destroy},
    {"png_get_error_ptr", &the.user},
    {"png_get_io_ptr", &the.io_user},
    {"png_set_read_fn", &the.set_read},
    {"png_set_user_limits", &the.set_limits},
    {"png_read_info", &the.read_info},
    {"png_set_palette_to_rgb", &the.palette_to_rgb},
    {"png_set_packing", &the.packing},
    {"png_set_expand_gray_1_2_4_to_8", &the.expand_grey},
    {"png_set_strip_16", &the.strip_16},
    {"png_set_strip_alpha", &the.strip_alpha},
    {"png_set_gray_to_rgb", &the.grey_to_rgb},
    {"png_set_interlace_handling", &the.interlacing},
    {"png_read_update_info", &the.update},
    {"png_get_rowbytes", &the.row_bytes},
    {"png_read_image", &the.read_image},
    {"png_read_end", &the.read_end},
    {NULL, NULL},
};

static void version(char text[32]) { snprintf(text, 32, "%.20s", the.version(NULL)); }

qn__optional_library qn__libpng = {.name = "libpng",
                                   .file = "libpng16.so.16",
                                   .debian = "libpng16-16",
                                   .fedora = "libpng",
                                   .symbol = symbols,
                                   .version = version};

/* A file being decoded. libpng reports errors through a function that must not return. */
typedef struct decoding {
    jmp_buf failed;
    char text[96];
    const uint8_t *bytes;
    size_t size, at;
    void *png, *info;
    unsigned char **rows;
    int mask; /* 1: numbers of classes, not colours */
} decoding;

_Noreturn static void fail(void *png, const char *text) {
    decoding *d = the.user(png);
    snprintf(d->text, sizeof d->text, "%s", text);
    longjmp(d->failed, 1);
}

static void ignore(void *png, const char *text) { (void)png, (void)text; }

static void give_bytes(void *png, unsigned char *to, size_t size) {
    decoding *d = the.io_user(png);
    if (size > d->size - d->at)
        fail(png, "it is cut off");
    memcpy(to, d->bytes + d->at, size);
    d->at += size;
}

/* Of a mask: a byte for each pixel, which is the number in the file. */
static void set_mask(const decoding *d) {
    the.packing(d->png);
    (void)the.interlacing(d->png);
}

/* Bytes for every channel: a palette's colours, the high byte of 16 bits, no alpha. */
static void set_transforms(const decoding *d, uint32_t channels) {
    the.palette_to_rgb(d->png);
    the.expand_grey(d->png);
    the.strip_16(d->png);
    the.strip_alpha(d->png);
    if (channels == 3)
        the.grey_to_rgb(d->png);
    (void)the.interlacing(d->png);
}

/* Nothing that this function changes after setjmp lies in its own variables. 0: it failed. */
static int run(decoding *d, const qn__image_head *head, uint32_t channels) {
    if (setjmp(d->failed))
        return 0;
    d->png = the.create(the.version(NULL), d, fail, ignore);
    d->info = d->png ? the.create_info(d->png) : NULL;
    if (!d->info) {
        snprintf(d->text, sizeof d->text, "out of memory");
        return 0;
    }
    the.set_read(d->png, d, give_bytes);
    the.set_limits(d->png, head->width, head->height);
    the.read_info(d->png, d->info);
    if (d->mask)
        set_mask(d);
    else
        set_transforms(d, channels);
    the.update(d->png, d->info);
    if (the.row_bytes(d->png, d->info) != (size_t)head->width * channels)
        fail(d->png, "its pixels do not fit its head");
    the.read_image(d->png, d->rows);
    the.read_end(d->png, NULL);
    return 1;
}

static qn_status decode(decoding *d, const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                        qn_error *err) {
    if (qn__image_need(&qn__libpng, "PNG", err) != QN_OK)
        return QN_UNSUPPORTED;
    d->rows = qn__alloc(head->height, sizeof *d->rows, err);
    if (!d->rows)
        return QN_MEMORY;
    for (uint32_t y = 0; y < head->height; y++)
        d->rows[y] = pixels + (size_t)y * head->width * channels;
    const int done = run(d, head, channels);
    if (d->png)
        the.destroy(&d->png, &d->info, NULL);
    qn__free(d->rows);
    if (done)
        return QN_OK;
    return qn__image_broken(err, "the PNG file is broken: %s", d->text);
}

qn_status qn__png_decode(void **kept, const uint8_t *bytes, size_t size, const qn__image_head *head,
                         uint32_t channels, uint8_t *pixels, qn_error *err) {
    decoding d = {.bytes = bytes, .size = size};
    (void)kept;
    return decode(&d, head, channels, pixels, err);
}

/* The head of the first chunk: depth and colours. */
enum { DEPTH = 24, COLOURS = 25, GREY = 0, PALETTE = 3 };

qn_status qn__mask_check(const uint8_t *bytes, size_t size, const qn__image_head *head,
                         qn_error *err) {
    if (head->kind != QN__IMAGE_PNG || size <= COLOURS) {
        qn__fail(err, QN_INPUT, "the mask is not a PNG file");
        return qn__remedy(err, QN_INPUT, "write masks as PNG, whose pixels keep their numbers");
    }
    if ((bytes[COLOURS] == GREY || bytes[COLOURS] == PALETTE) && bytes[DEPTH] <= 8)
        return QN_OK;
    qn__fail(err, QN_INPUT, "a pixel of the mask is not a number of 8 bits: it has %s",
             bytes[DEPTH] > 8 ? "16 bits" : "colours or opacity");
    return qn__remedy(err, QN_INPUT,
                      "write masks in grey, or with a palette: the number of a pixel is its class");
}

qn_status qn__mask_decode(const uint8_t *bytes, size_t size, const qn__image_head *head,
                          uint8_t *pixels, qn_error *err) {
    decoding d = {.bytes = bytes, .size = size, .mask = 1};
    return decode(&d, head, 1, pixels, err);
}
