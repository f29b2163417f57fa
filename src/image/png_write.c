/* PNG (ISO/IEC 15948) around a zlib stream (RFC 1950) of stored blocks (RFC 1951): no compression
 * needs no library, and the bytes are the same everywhere. */
#include "image/png_write.h"
#include "base/digest/crc32.h"
#include "base/files/file.h"
#include "base/memory.h"
#include "image/mask.h"
#include <string.h>

enum { STORED_MAX = 65535, HEAD_BYTES = 13, ADLER = 65521 };
/* Bytes of the mark's chunk, and of the chunk after it, which is the last one. */
enum { MARK_BYTES = 16, END_BYTES = 12 };

/* A file as it grows; the check sum is that of the chunk being written. */
typedef struct output {
    uint8_t *at;
    uint32_t crc;
} output;

static void put(output *o, const void *bytes, size_t size) {
    memcpy(o->at, bytes, size);
    o->at += size;
    o->crc = qn__crc32(o->crc, bytes, size);
}

static void put_word(output *o, uint32_t value) {
    const uint8_t bytes[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                             (uint8_t)value};
    put(o, bytes, sizeof bytes);
}

static void begin_chunk(output *o, size_t size, const char name[5]) {
    put_word(o, (uint32_t)size);
    o->crc = 0;
    put(o, name, 4);
}

static void end_chunk(output *o) { put_word(o, o->crc); }

static uint32_t adler(const uint8_t *bytes, size_t size) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < size; i++) {
        a = (a + bytes[i]) % ADLER;
        b = (b + a) % ADLER;
    }
    return b << 16 | a;
}

static void put_stored(output *o, const uint8_t *bytes, size_t size) {
    put(o, "\x78\x01", 2);
    for (size_t at = 0; at < size;) {
        const size_t now = size - at < STORED_MAX ? size - at : STORED_MAX;
        const uint8_t block[] = {at + now == size, (uint8_t)now, (uint8_t)(now >> 8), (uint8_t)~now,
                                 (uint8_t)(~now >> 8)};
        put(o, block, sizeof block);
        put(o, bytes + at, now);
        at += now;
    }
    put_word(o, adler(bytes, size));
}

/* Colours that tell the numbers from 0 apart: the bits of a number are those of its channels, the
 * lowest three the highest of red, green and blue. */
void qn__mask_colour(uint32_t number, uint8_t colour[3]) {
    memset(colour, 0, 3);
    for (uint32_t bit = 0; bit < 8; bit++)
        colour[bit % 3] |= (uint8_t)((number >> bit & 1) << (7 - bit / 3));
}

static void put_palette(output *o) {
    begin_chunk(o, 3 * 256, "PLTE");
    for (uint32_t i = 0; i < 256; i++) {
        uint8_t colour[3];
        qn__mask_colour(i, colour);
        put(o, colour, sizeof colour);
    }
    end_chunk(o);
}

/* The check sum of all bytes before it. Upper and lower case of the name say: private, and to be
 * dropped by programs that change the pixels. */
static void put_mark(output *o, uint32_t sum) {
    begin_chunk(o, 4, "quRN");
    put_word(o, sum);
    end_chunk(o);
}

static void put_file(output *o, const uint8_t *rows, size_t size, uint32_t height, uint32_t width,
                     uint32_t channels, int palette) {
    const size_t packed = 2 + size + (size + STORED_MAX - 1) / STORED_MAX * 5 + 4;
    const uint8_t kind[] = {8, palette ? 3 : channels == 1 ? 0 : channels == 3 ? 2 : 6, 0, 0, 0};
    const uint8_t *first = o->at;
    put(o, "\x89PNG\r\n\x1a\n", 8);
    begin_chunk(o, HEAD_BYTES, "IHDR");
    put_word(o, width);
    put_word(o, height);
    put(o, kind, sizeof kind);
    end_chunk(o);
    if (palette)
        put_palette(o);
    begin_chunk(o, packed, "IDAT");
    put_stored(o, rows, size);
    end_chunk(o);
    if (palette)
        put_mark(o, qn__crc32(0, first, (size_t)(o->at - first)));
    begin_chunk(o, 0, "IEND");
    end_chunk(o);
}

static qn_status write_file(const char *path, const uint8_t *bytes, size_t size, qn_error *err) {
    qn__writer *writer = NULL;
    qn_status status = qn__writer_create(path, &writer, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, bytes, size, err);
    return qn__writer_finish(writer, NULL, status, err);
}

static qn_status encode(const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                        int palette, uint8_t **file, size_t *size, qn_error *err) {
    const size_t row = (size_t)width * channels, all = height * (row + 1);
    uint8_t *rows = qn__alloc(height, row + 1, err);
    *file = rows ? qn__alloc(all + all / STORED_MAX * 5 + 1024, 1, err) : NULL;
    if (*file) {
        for (uint32_t y = 0; y < height; y++) /* each after a byte 0: it has no filter */
            memcpy(rows + y * (row + 1) + 1, pixels + y * row, row);
        output o = {.at = *file};
        put_file(&o, rows, all, height, width, channels, palette);
        *size = (size_t)(o.at - *file);
    }
    qn__free(rows);
    return *file ? QN_OK : QN_MEMORY;
}

qn_status qn__png_encode(const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                         uint8_t **file, size_t *size, qn_error *err) {
    return encode(pixels, height, width, channels, 0, file, size, err);
}

qn_status qn__mask_encode(const uint8_t *pixels, uint32_t height, uint32_t width, uint8_t **file,
                          size_t *size, qn_error *err) {
    return encode(pixels, height, width, 1, 1, file, size, err);
}

int qn__mask_is_made(const uint8_t *bytes, size_t size) {
    uint8_t mark[MARK_BYTES];
    output o = {.at = mark};
    if (size < sizeof mark + END_BYTES)
        return 0;
    const size_t before = size - sizeof mark - END_BYTES;
    put_mark(&o, qn__crc32(0, bytes, before));
    return memcmp(bytes + before, mark, sizeof mark) == 0;
}

qn_status qn__png_write(const char *path, const uint8_t *pixels, uint32_t height, uint32_t width,
                        uint32_t channels, qn_error *err) {
    uint8_t *file = NULL;
    size_t size = 0;
    qn_status status = qn__png_encode(pixels, height, width, channels, &file, &size, err);
    if (status == QN_OK)
        status = write_file(path, file, size, err);
    qn__free(file);
    return status;
}
