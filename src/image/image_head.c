#include "image/image_head.h"
#include "base/digest/crc32.h"
#include "image/image_formats.h"
#include "image/image_faults.h"
#include "image/image_other.h"
#include "image/tiff_tags.h"
#include <string.h>

static uint32_t big2(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

static uint32_t big4(const uint8_t *at) { return big2(at) << 16 | big2(at + 2); }

static qn_status check_size(const qn__image_head *head, qn_error *err) {
    if (head->width == 0 || head->height == 0)
        return qn__image_broken(err, "the image has no pixels: its width or height is 0");
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

/* ------------------------------------------------------------------ PNG */

/* The orientation of the first chunk eXIf whose check sum is right: that of others is unknown. */
static void read_exif(const uint8_t *b, size_t size, qn__image_head *head) {
    size_t at = 8;
    while (size - at >= 12) {
        const uint64_t length = big4(b + at);
        if (length + 12 > size - at)
            break;
        const uint8_t *content = b + at + 8;
        if (memcmp(b + at + 4, "IEND", 4) == 0)
            return;
        if (memcmp(b + at + 4, "eXIf", 4) == 0 &&
            qn__crc32(0, b + at + 4, (size_t)length + 4) == big4(content + length)) {
            head->orientation = qn__exif_orientation(content, (size_t)length);
            return;
        }
        at += (size_t)length + 12;
    }
    head->partial = 1;
}

enum { SIGNATURE = 8 };

/* ISO/IEC 15948, 11.2.2: the signature, then the chunk IHDR. Bit 1 of the colour type: colours. */
static qn_status read_png(const uint8_t *b, size_t size, qn__image_head *head, qn_error *err) {
    if (size < SIGNATURE)
        return qn__image_broken(err, "the PNG file is cut off in its first 8 bytes");
    if (size < 29)
        return qn__image_broken(err, "the PNG file is cut off in its head");
    if (memcmp(b + 8, "\0\0\0\15IHDR", 8) != 0)
        return qn__image_broken(err, "the PNG file does not begin with its head");
    head->channels = b[25] & 2 ? 3 : 1;
    head->height = big4(b + 20);
    head->width = big4(b + 16);
    read_exif(b, size, head);
    return QN_OK;
}

/* ------------------------------------------------------------------ JPEG */

/* Whether the marker begins a frame (ISO/IEC 10918-1, table B.1): SOF0 to SOF15 without DHT, JPG
 * and DAC, which lie among them. */
static int is_frame(uint8_t marker) {
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/* The frame header: length, precision, height, width, components. */
static qn_status read_frame(const uint8_t *at, size_t left, qn__image_head *head, qn_error *err) {
    if (left < 8)
        return qn__image_broken(err, "the JPEG file is cut off in its head");
    head->channels = at[7] == 1 ? 1 : 3;
    head->height = big2(at + 3);
    head->width = big2(at + 5);
    if (at[7] == 4)
        return qn__image_unread(err, "convert it to RGB by its colour profile",
                                "the JPEG file has the four colours of printing (CMYK)");
    if (at[7] != 1 && at[7] != 3)
        return qn__image_broken(err, "the JPEG file has neither one nor three components");
    return QN_OK;
}

/* The orientation of the first segment APP1 with Exif data; `at`: its length, then its content. */
static void read_app1(const uint8_t *at, size_t left, qn__image_head *head, int *known) {
    const size_t length = big2(at) < left ? big2(at) : left;
    if (*known || length < 8 || memcmp(at + 2, "Exif\0\0", 6) != 0)
        return;
    *known = 1;
    head->orientation = qn__exif_orientation(at + 8, length - 8);
}

/* Segments follow one another: 0xFF, perhaps again and again, a marker, a length that counts
 * itself. */
static qn_status read_jpeg(const uint8_t *b, size_t size, qn__image_head *head, qn_error *err) {
    size_t at = 2;
    int known = 0;
    while (at + 4 <= size) {
        if (b[at] != 0xFF)
            return qn__image_broken(err, "the JPEG file is broken before its pixels");
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
        if (marker == 0xF7)
            return qn__image_unread(err, "convert it to PNG", "the file is JPEG-LS");
        if (marker == 0xD9 || marker == 0xDA || big2(b + at) < 2)
            return qn__image_broken(err, "the JPEG file is broken before its pixels");
        if (marker == 0xE1)
            read_app1(b + at, size - at, head, &known);
        at += big2(b + at);
    }
    return qn__image_broken(err, "the JPEG file is cut off in its head");
}

/* ------------------------------------------------------------------ all */

static int is_jpeg(const uint8_t *b, size_t size) {
    return size >= 3 && memcmp(b, "\xFF\xD8\xFF", 3) == 0;
}

/* Also the begin of a signature alone: no other format begins with its first byte. */
static int is_png(const uint8_t *b, size_t size) {
    return size > 0 && memcmp(b, "\x89PNG\r\n\x1A\n", size < SIGNATURE ? size : SIGNATURE) == 0;
}

static const struct {
    qn__image_is_one *is;
    qn__image_read_head *read;
} kinds[QN__IMAGE_KINDS] = {
    [QN__IMAGE_JPEG] = {is_jpeg, read_jpeg},
    [QN__IMAGE_PNG] = {is_png, read_png},
    [QN__IMAGE_GIF] = {qn__gif_is, qn__gif_head},
    [QN__IMAGE_WEBP] = {qn__webp_is, qn__webp_head},
    [QN__IMAGE_TIFF] = {qn__tiff_is, qn__tiff_head},
    [QN__IMAGE_BMP] = {qn__bmp_is, qn__bmp_head},
};

static qn_status refuse_other(qn__image_head *head, qn_error *err) {
    head->kind = QN__IMAGE_OTHER;
    return qn__image_unread(err, qn__image_other_remedy(head->other),
                            "the file is %s, which is not read",
                            qn__image_other_name(head->other, 0));
}

static qn_status refuse_format(const uint8_t *bytes, size_t size, qn__image_head *head,
                               qn_error *err) {
    head->other = qn__image_other(bytes, size);
    if (head->other != QN__OTHER_NONE)
        return refuse_other(head, err);
    return qn__image_broken(err, size == 0 ? "the file is empty"
                                           : "the file is not an image: it begins like none of "
                                             "JPEG, PNG, WebP, GIF, TIFF and BMP");
}

int qn__image_is(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < QN__IMAGE_KINDS; i++)
        if (kinds[i].is && kinds[i].is(bytes, size))
            return 1;
    const uint32_t other = qn__image_other(bytes, size);
    return other != QN__OTHER_NONE && qn__image_other_is_picture(other);
}

qn_status qn__image_head_read(const uint8_t *bytes, size_t size, qn__image_head *head,
                              qn_error *err) {
    *head = (qn__image_head){.orientation = 1, .other = QN__OTHER_NONE};
    for (int kind = QN__IMAGE_JPEG; kind < QN__IMAGE_KINDS; kind++) {
        if (!kinds[kind].is(bytes, size))
            continue;
        head->kind = (qn__image_kind)kind;
        const qn_status status = kinds[kind].read(bytes, size, head, err);
        if (head->other != QN__OTHER_NONE)
            return refuse_other(head, err);
        return status == QN_OK ? check_size(head, err) : status;
    }
    return refuse_format(bytes, size, head, err);
}
