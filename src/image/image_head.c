#include "image/image_head.h"
#include <string.h>

static uint32_t big2(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

static uint32_t big4(const uint8_t *at) { return big2(at) << 16 | big2(at + 2); }

static qn_status refuse(qn_error *err, const char *what) {
    qn__fail(err, QN_INPUT, "%s", what);
    return qn__remedy(err, QN_INPUT,
                      "replace or remove the file; `data.skip_broken` leaves out all that cannot "
                      "be read");
}

/* Formats that people put beside JPEG and PNG, by their first bytes. */
static const char *other_format(const uint8_t *b, size_t size) {
    if (size >= 4 && memcmp(b, "GIF8", 4) == 0)
        return "GIF";
    if (size >= 12 && memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "WEBP", 4) == 0)
        return "WebP";
    if (size >= 4 && (memcmp(b, "II*\0", 4) == 0 || memcmp(b, "MM\0*", 4) == 0))
        return "TIFF";
    if (size >= 12 && memcmp(b + 4, "ftyp", 4) == 0)
        return "HEIC, AVIF or a video";
    return size >= 2 && memcmp(b, "BM", 2) == 0 ? "BMP" : NULL;
}

static qn_status refuse_format(const uint8_t *bytes, size_t size, qn_error *err) {
    const char *name = other_format(bytes, size);
    if (size == 0)
        return refuse(err, "the file is empty");
    if (!name)
        return refuse(err, "the file is neither JPEG nor PNG");
    qn__fail(err, QN_INPUT, "the file is %s, and only JPEG and PNG are read", name);
    return qn__remedy(err, QN_INPUT,
                      "convert it to PNG, or remove it; `data.skip_broken` leaves out all files "
                      "that cannot be read");
}

static qn_status check_size(const qn__image_head *head, qn_error *err) {
    if (head->width == 0 || head->height == 0)
        return refuse(err, "the image has no pixels: its width or height is 0");
    if (head->width <= QN__IMAGE_SIDE_MAX && head->height <= QN__IMAGE_SIDE_MAX &&
        (uint64_t)head->width * head->height <= QN__IMAGE_PIXELS_MAX)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the image claims a height of %u and a width of %u pixels",
             (unsigned)head->height, (unsigned)head->width);
    return qn__remedy(err, QN_INPUT,
                      "at most %d pixels a side and %d in all are read; make it smaller; "
                      "`data.skip_broken` leaves out all files that cannot be read",
                      QN__IMAGE_SIDE_MAX, QN__IMAGE_PIXELS_MAX);
}

/* ISO/IEC 15948, 11.2.2: the signature, then the chunk IHDR. Bit 1 of the colour type: colours. */
static qn_status read_png(const uint8_t *b, size_t size, qn__image_head *head, qn_error *err) {
    if (size < 29)
        return refuse(err, "the PNG file is cut off in its head");
    if (memcmp(b + 8, "\0\0\0\15IHDR", 8) != 0)
        return refuse(err, "the PNG file does not begin with its head");
    *head = (qn__image_head){.kind = QN__IMAGE_PNG,
                             .channels = b[25] & 2 ? 3 : 1,
                             .height = big4(b + 20),
                             .width = big4(b + 16)};
    return check_size(head, err);
}

/* Whether the marker begins a frame (ISO/IEC 10918-1, table B.1): SOF0 to SOF15 without DHT, JPG
 * and DAC, which lie among them. */
static int is_frame(uint8_t marker) {
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/* The frame header: length, precision, height, width, components. */
static qn_status read_frame(const uint8_t *at, size_t left, qn__image_head *head, qn_error *err) {
    if (left < 8)
        return refuse(err, "the JPEG file is cut off in its head");
    *head = (qn__image_head){.kind = QN__IMAGE_JPEG,
                             .channels = at[7] == 1 ? 1 : 3,
                             .height = big2(at + 3),
                             .width = big2(at + 5)};
    if (at[7] == 4) {
        qn__fail(err, QN_INPUT, "the JPEG file has the four colours of printing (CMYK)");
        return qn__remedy(err, QN_INPUT,
                          "convert it to RGB by its colour profile; `data.skip_broken` leaves out "
                          "all files that cannot be read");
    }
    if (at[7] != 1 && at[7] != 3)
        return refuse(err, "the JPEG file has neither one nor three components");
    return check_size(head, err);
}

/* Segments follow one another: 0xFF, perhaps again and again, a marker, a length that counts
 * itself.
 */
static qn_status read_jpeg(const uint8_t *b, size_t size, qn__image_head *head, qn_error *err) {
    size_t at = 2;
    while (at + 4 <= size) {
        if (b[at] != 0xFF)
            return refuse(err, "the JPEG file is broken before its pixels");
        const uint8_t marker = b[at + 1];
        if (marker == 0xFF) { /* filling */
            at++;
            continue;
        }
        at += 2;
        if (is_frame(marker))
            return read_frame(b + at, size - at, head, err);
        if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7))
            continue; /* without a length */
        if (marker == 0xD9 || marker == 0xDA || big2(b + at) < 2)
            return refuse(err, "the JPEG file is broken before its pixels");
        at += big2(b + at);
    }
    return refuse(err, "the JPEG file is cut off in its head");
}

qn_status qn__image_head_read(const uint8_t *bytes, size_t size, qn__image_head *head,
                              qn_error *err) {
    *head = (qn__image_head){0};
    if (size >= 3 && memcmp(bytes, "\xFF\xD8\xFF", 3) == 0)
        return read_jpeg(bytes, size, head, err);
    if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1A\n", 8) == 0)
        return read_png(bytes, size, head, err);
    return refuse_format(bytes, size, err);
}
