/* The blocks and the colour tables are read here, as the head needs them. giflib decodes the
 * pixels' codes; its interface is a struct, of which what is used is compared with what was read
 * here. */
#include "image/image_formats.h"
#include "base/memory.h"
#include "image/image_faults.h"
#include <stdbool.h>
#include <string.h>

/* ------------------------------------------------------------------ the blocks */

enum { SCREEN_END = 13, DESCRIPTOR = 10, CONTROL = 0xF9, NO_INDEX = 256 };

typedef struct picture {
    uint32_t screen_width, screen_height; /* of the whole image, with the picture in it */
    uint32_t left, top, width, height;    /* of the picture */
    int interlaced;
    uint32_t colours;     /* in its table: its own, or that of the file */
    const uint8_t *table; /* red, green, blue */
    uint32_t transparent; /* its index; NO_INDEX: none */
} picture;

static uint32_t little2(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }

int qn__gif_is(const uint8_t *b, size_t size) {
    return size >= 6 && (memcmp(b, "GIF87a", 6) == 0 || memcmp(b, "GIF89a", 6) == 0);
}

static qn_status cut_off(qn_error *err) {
    return qn__image_broken(err, "the GIF file is cut off in its head");
}

/* A table that the flags announce. *at moves to its end. 0: it is cut off. */
static int take_table(const uint8_t *b, size_t size, uint8_t flags, size_t *at, picture *p) {
    const uint32_t colours = (uint32_t)2 << (flags & 7);
    if (!(flags & 0x80))
        return 1;
    if (size - *at < (size_t)3 * colours)
        return 0;
    p->table = b + *at;
    p->colours = colours;
    *at += (size_t)3 * colours;
    return 1;
}

/* An extension: its blocks end with an empty one. 0: it is cut off. */
static int skip_extension(const uint8_t *b, size_t size, size_t *at, picture *p) {
    if (size - *at < 3)
        return 0;
    const uint8_t *content = b + *at + 2;
    if (b[*at + 1] == CONTROL && content[0] >= 4 && size - *at >= 7)
        p->transparent = content[1] & 1 ? content[4] : NO_INDEX;
    *at += 2;
    while (size - *at > b[*at] && b[*at] > 0) {
        *at += (size_t)b[*at] + 1;
        if (*at >= size)
            return 0;
    }
    if (b[*at] > 0)
        return 0;
    ++*at;
    return 1;
}

/* `d`: the image's descriptor. The image is as large as the screen and the picture together. */
static void take_descriptor(const uint8_t *d, picture *p) {
    p->left = little2(d + 1);
    p->top = little2(d + 3);
    p->width = little2(d + 5);
    p->height = little2(d + 7);
    p->interlaced = (d[9] & 0x40) != 0;
    if (p->left + p->width > p->screen_width)
        p->screen_width = p->left + p->width;
    if (p->top + p->height > p->screen_height)
        p->screen_height = p->top + p->height;
}

static qn_status parse(const uint8_t *b, size_t size, picture *p, qn_error *err) {
    *p = (picture){.transparent = NO_INDEX};
    if (size < SCREEN_END)
        return cut_off(err);
    p->screen_width = little2(b + 6);
    p->screen_height = little2(b + 8);
    size_t at = SCREEN_END;
    if (!take_table(b, size, b[10], &at, p))
        return cut_off(err);
    while (at < size && b[at] == '!')
        if (!skip_extension(b, size, &at, p))
            return cut_off(err);
    if (at < size && b[at] != ',')
        return qn__image_broken(err, "the GIF file has no picture");
    if (size - at < DESCRIPTOR)
        return cut_off(err);
    take_descriptor(b + at, p);
    const uint8_t flags = b[at + 9];
    at += DESCRIPTOR;
    if (!take_table(b, size, flags, &at, p))
        return cut_off(err);
    if (p->width == 0 || p->height == 0)
        return qn__image_broken(err, "the GIF file's picture has no pixels");
    return p->table ? QN_OK : qn__image_broken(err, "the GIF file has no colour table");
}

static int is_grey(const picture *p) {
    for (uint32_t i = 0; i < p->colours; i++) {
        const uint8_t *colour = p->table + (size_t)3 * i;
        if (colour[0] != colour[1] || colour[1] != colour[2])
            return 0;
    }
    return 1;
}

qn_status qn__gif_head(const uint8_t *bytes, size_t size, qn__image_head *head, qn_error *err) {
    picture p;
    const qn_status status = parse(bytes, size, &p, err);
    if (status != QN_OK)
        return status;
    head->width = p.screen_width;
    head->height = p.screen_height;
    head->channels = is_grey(&p) ? 1 : 3;
    return QN_OK;
}

/* ------------------------------------------------------------------ the library */

/* Own declarations of the parts of libgif.so.7 in use (gif_lib.h of version 5). */
enum { IS_IMAGE = 2, IS_EXTENSION = 3 };

typedef struct gif_image {
    int left, top, width, height;
    bool interlaced;
    void *colours;
} gif_image;

typedef struct gif_file {
    int width, height, resolution, background;
    unsigned char aspect;
    void *colours;
    int images;
    gif_image image;
    void *saved;
    int extensions;
    void *extension;
    int error;
    void *user;
    void *own;
} gif_file;

static struct {
    gif_file *(*open)(void *user, int (*read)(gif_file *, unsigned char *, int), int *error);
    int (*record)(gif_file *file, int *kind);
    int (*image)(gif_file *file);
    int (*extension)(gif_file *file, int *code, unsigned char **block);
    int (*extension_next)(gif_file *file, unsigned char **block);
    int (*line)(gif_file *file, unsigned char *line, int count);
    const char *(*text)(int error);
    int (*close)(gif_file *file, int *error);
} the;

static const qn__library_symbol symbols[] = {{"DGifOpen", &the.open},
                                             {"DGifGetRecordType", &the.record},
                                             {"DGifGetImageDesc", &the.image},
                                             {"DGifGetExtension", &the.extension},
                                             {"DGifGetExtensionNext", &the.extension_next},
                                             {"DGifGetLine", &the.line},
                                             {"GifErrorString", &the.text},
                                             {"DGifCloseFile", &the.close},
                                             {NULL, NULL}};

qn__optional_library qn__giflib = {.name = "giflib",
                                   .file = "libgif.so.7",
                                   .debian = "libgif7",
                                   .fedora = "giflib",
                                   .symbol = symbols};

/* ------------------------------------------------------------------ the pixels */

typedef struct decoding {
    const uint8_t *bytes;
    size_t size, at;
    picture picture;
    uint32_t channels;
    uint8_t *pixels;
    uint8_t *line; /* of indices */
} decoding;

static int give_bytes(gif_file *file, unsigned char *to, int count) {
    decoding *d = file->user;
    size_t got = d->size - d->at;
    if (count < 0)
        return 0;
    if (got > (size_t)count)
        got = (size_t)count;
    memcpy(to, d->bytes + d->at, got);
    d->at += got;
    return (int)got;
}

static int skip_all(gif_file *file) {
    int code;
    unsigned char *block = NULL;
    int done = the.extension(file, &code, &block);
    while (done && block)
        done = the.extension_next(file, &block);
    return done;
}

/* Goes to the first picture. 0: the library reports an error, or reads another file than this one.
 */
static int find_picture(gif_file *file, const picture *p) {
    int kind = 0, done = the.record(file, &kind);
    while (done && kind == IS_EXTENSION)
        done = skip_all(file) && the.record(file, &kind);
    if (!done || kind != IS_IMAGE || !the.image(file))
        return 0;
    const gif_image *i = &file->image;
    return i->left == (int)p->left && i->top == (int)p->top && i->width == (int)p->width &&
           i->height == (int)p->height && i->interlaced == (p->interlaced != 0);
}

static int put_line(const decoding *d, uint32_t y) {
    const picture *p = &d->picture;
    uint8_t *to = d->pixels + ((size_t)(p->top + y) * p->screen_width + p->left) * d->channels;
    for (uint32_t x = 0; x < p->width; x++, to += d->channels) {
        if (d->line[x] >= p->colours)
            return 0;
        memcpy(to, p->table + (size_t)3 * d->line[x], d->channels);
    }
    return 1;
}

typedef enum result { DONE, FAILED, NO_COLOUR } result;

static result put_lines(gif_file *file, const decoding *d, uint32_t first, uint32_t step) {
    for (uint32_t y = first; y < d->picture.height; y += step) {
        if (!the.line(file, d->line, (int)d->picture.width))
            return FAILED;
        if (!put_line(d, y))
            return NO_COLOUR;
    }
    return DONE;
}

static result draw(gif_file *file, const decoding *d) {
    static const uint8_t passes[4][2] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
    if (!find_picture(file, &d->picture))
        return FAILED;
    if (!d->picture.interlaced)
        return put_lines(file, d, 0, 1);
    result now = DONE;
    for (int i = 0; i < 4 && now == DONE; i++)
        now = put_lines(file, d, passes[i][0], passes[i][1]);
    return now;
}

/* The pixels around the picture: the transparent colour, else the first one of its table. */
static void fill(const decoding *d) {
    const picture *p = &d->picture;
    const uint32_t index = p->transparent < p->colours ? p->transparent : 0;
    const size_t count = (size_t)p->screen_width * p->screen_height;
    if (p->width == p->screen_width && p->height == p->screen_height)
        return;
    for (size_t i = 0; i < count; i++)
        memcpy(d->pixels + i * d->channels, p->table + (size_t)3 * index, d->channels);
}

static qn_status run(decoding *d, qn_error *err) {
    int error = 0;
    gif_file *file = the.open(d, give_bytes, &error);
    if (!file)
        return qn__image_broken(err, "the GIF file is broken: giflib reports error %d", error);
    fill(d);
    const result got = draw(file, d);
    error = file->error;
    the.close(file, NULL);
    if (got == NO_COLOUR)
        return qn__image_broken(err, "the GIF file is broken: a pixel has a colour that is not in "
                                     "its table");
    const char *text = got == FAILED ? the.text(error) : NULL;
    return got == DONE ? QN_OK
                       : qn__image_broken(err, "the GIF file is broken: %.100s",
                                          text ? text : "its pixels cannot be read");
}

qn_status qn__gif_decode(void **kept, const uint8_t *bytes, size_t size, const qn__image_head *head,
                         uint32_t channels, uint8_t *pixels, qn_error *err) {
    (void)kept;
    decoding d = {.bytes = bytes, .size = size, .channels = channels, .pixels = pixels};
    if (qn__image_need(&qn__giflib, "GIF", err) != QN_OK)
        return QN_UNSUPPORTED;
    if (!qn__gif_is(bytes, size))
        return qn__image_changed(err);
    qn_status status = parse(bytes, size, &d.picture, err);
    if (status != QN_OK)
        return status;
    if (d.picture.screen_width != head->width || d.picture.screen_height != head->height ||
        channels < (is_grey(&d.picture) ? 1 : 3))
        return qn__image_changed(err);
    d.line = qn__alloc(d.picture.width, 1, err);
    if (!d.line)
        return QN_MEMORY;
    status = run(&d, err);
    qn__free(d.line);
    return status;
}
