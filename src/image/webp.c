#include "image/image_formats.h"
#include "image/image_faults.h"
#include "image/tiff_tags.h"
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ the chunks */

enum { RIFF_END = 12, CHUNK = 8, FRAME = 16, HAS_ANIMATION = 2, HAS_EXIF = 8 };

static uint32_t little2(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }
static uint32_t little3(const uint8_t *at) { return little2(at) | (uint32_t)at[2] << 16; }
static uint32_t little4(const uint8_t *at) { return little2(at) | little2(at + 2) << 16; }

int qn__webp_is(const uint8_t *b, size_t size) {
    return size >= RIFF_END && memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "WEBP", 4) == 0;
}

/* A chunk with what of its content lies in the bytes. */
typedef struct chunk {
    const uint8_t *name, *content;
    size_t size;
    int whole;
} chunk;

/* The chunk at *at, which moves to the next one. 0: none begins there. */
static int next_chunk(const uint8_t *b, size_t size, size_t *at, chunk *out) {
    if (size - *at < CHUNK)
        return 0;
    const uint32_t length = little4(b + *at + 4);
    const size_t left = size - *at - CHUNK;
    *out = (chunk){b + *at, b + *at + CHUNK, length < left ? length : left, length <= left};
    *at += CHUNK + out->size;
    *at += (length & 1) && *at < size;
    return 1;
}

static int is(const chunk *c, const char *name) { return memcmp(c->name, name, 4) == 0; }

/* The first chunk of that name after the RIFF header. 0: there is none. */
static int find_chunk(const uint8_t *b, size_t size, const char *name, chunk *out) {
    size_t at = RIFF_END;
    while (next_chunk(b, size, &at, out))
        if (is(out, name))
            return 1;
    return 0;
}

static qn_status cut_off(qn_error *err) {
    return qn__image_broken(err, "the WebP file is cut off in its head");
}

/* RFC 6386, 9.1: a frame tag, a start code, the sides in 14 bits. */
static qn_status read_lossy(const chunk *c, qn__image_head *head, qn_error *err) {
    if (c->size < 10)
        return cut_off(err);
    if (memcmp(c->content + 3, "\x9D\x01\x2A", 3) != 0)
        return qn__image_broken(err, "the WebP file does not begin with a whole picture");
    head->width = little2(c->content + 6) & 0x3FFF;
    head->height = little2(c->content + 8) & 0x3FFF;
    return QN_OK;
}

/* RFC 9649, 3.4: a mark, and the sides in 14 bits, less 1. */
static qn_status read_lossless(const chunk *c, qn__image_head *head, qn_error *err) {
    if (c->size < 5)
        return cut_off(err);
    const uint32_t bits = little4(c->content + 1);
    head->width = (bits & 0x3FFF) + 1;
    head->height = (bits >> 14 & 0x3FFF) + 1;
    return QN_OK;
}

static void read_exif(const uint8_t *b, size_t size, qn__image_head *head) {
    chunk c;
    if (find_chunk(b, size, "EXIF", &c) && c.whole)
        head->orientation = qn__exif_orientation(c.content, c.size);
    else
        head->partial = 1;
}

/* RFC 9649, 2.7: flags, and the sides of the canvas in 24 bits, less 1. */
static qn_status read_extended(const uint8_t *b, size_t size, const chunk *c, qn__image_head *head,
                               qn_error *err) {
    if (c->size < 10)
        return cut_off(err);
    head->width = little3(c->content + 4) + 1;
    head->height = little3(c->content + 7) + 1;
    if (c->content[0] & HAS_EXIF)
        read_exif(b, size, head);
    return QN_OK;
}

qn_status qn__webp_head(const uint8_t *bytes, size_t size, qn__image_head *head, qn_error *err) {
    size_t at = RIFF_END;
    chunk c;
    head->channels = 3;
    if (!next_chunk(bytes, size, &at, &c))
        return cut_off(err);
    if (is(&c, "VP8 "))
        return read_lossy(&c, head, err);
    if (is(&c, "VP8L"))
        return read_lossless(&c, head, err);
    if (is(&c, "VP8X"))
        return read_extended(bytes, size, &c, head, err);
    return qn__image_broken(err, "the WebP file does not begin with a picture");
}

/* ------------------------------------------------------------------ the library */

/* Own declarations of the parts of libwebp.so.7 in use (webp/decode.h). */
static struct {
    int (*version)(void);
    int (*sides)(const uint8_t *bytes, size_t size, int *width, int *height);
    uint8_t *(*decode)(const uint8_t *bytes, size_t size, uint8_t *out, size_t out_size,
                       int stride);
} the;

static const qn__library_symbol symbols[] = {{"WebPGetDecoderVersion", &the.version},
                                             {"WebPGetInfo", &the.sides},
                                             {"WebPDecodeRGBInto", &the.decode},
                                             {NULL, NULL}};

static void version(char text[32]) {
    const int v = the.version();
    snprintf(text, 32, "%d.%d.%d", v >> 16 & 255, v >> 8 & 255, v & 255);
}

qn__optional_library qn__libwebp = {.name = "libwebp",
                                    .file = "libwebp.so.7",
                                    .debian = "libwebp7",
                                    .fedora = "libwebp",
                                    .symbol = symbols,
                                    .version = version};

/* ------------------------------------------------------------------ the pixels */

/* A picture and its place on the canvas. */
typedef struct frame {
    const uint8_t *bytes;
    size_t size;
    uint32_t left, top, width, height;
} frame;

static int is_animated(const uint8_t *b, size_t size) {
    chunk c;
    size_t at = RIFF_END;
    return next_chunk(b, size, &at, &c) && is(&c, "VP8X") && c.size >= 1 &&
           (c.content[0] & HAS_ANIMATION);
}

/* RFC 9649, 2.7.1.1: the first chunk ANMF, whose content goes on as a file without a header. */
static qn_status first_frame(const uint8_t *b, size_t size, frame *f, qn_error *err) {
    chunk c;
    if (!find_chunk(b, size, "ANMF", &c) || !c.whole || c.size < FRAME)
        return qn__image_broken(err, "the WebP file is broken: its first picture is cut off");
    f->left = 2 * little3(c.content);
    f->top = 2 * little3(c.content + 3);
    f->width = little3(c.content + 6) + 1;
    f->height = little3(c.content + 9) + 1;
    f->bytes = c.content + FRAME;
    f->size = c.size - FRAME;
    return QN_OK;
}

/* Whether the picture lies on the canvas, and is as large as the library says. */
static int fits(const frame *f, const qn__image_head *head) {
    int width = 0, height = 0;
    return f->left <= head->width && f->width <= head->width - f->left && f->top <= head->height &&
           f->height <= head->height - f->top && the.sides(f->bytes, f->size, &width, &height) &&
           width == (int)f->width && height == (int)f->height;
}

qn_status qn__webp_decode(void **kept, const uint8_t *bytes, size_t size,
                          const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                          qn_error *err) {
    (void)kept;
    qn__image_head now = {.orientation = 1};
    frame f = {.bytes = bytes, .size = size, .width = head->width, .height = head->height};
    if (qn__image_need(&qn__libwebp, "WebP", err) != QN_OK)
        return QN_UNSUPPORTED;
    if (!qn__webp_is(bytes, size) || qn__webp_head(bytes, size, &now, NULL) != QN_OK ||
        now.width != head->width || now.height != head->height || channels != 3)
        return qn__image_changed(err);
    const qn_status status = is_animated(bytes, size) ? first_frame(bytes, size, &f, err) : QN_OK;
    if (status != QN_OK)
        return status;
    const size_t stride = (size_t)3 * head->width;
    uint8_t *to = pixels + f.top * stride + (size_t)3 * f.left;
    if (f.width != head->width || f.height != head->height)
        memset(pixels, 0, stride * head->height); /* around the picture */
    if (fits(&f, head) &&
        the.decode(f.bytes, f.size, to, stride * (f.height - 1) + (size_t)3 * f.width, (int)stride))
        return QN_OK;
    return qn__image_broken(err, "the WebP file is broken: libwebp cannot decode its picture");
}
