/* libtiff decodes strips and tiles to samples; what samples mean is decided here. Its own
 * conversion to RGBA would multiply colours by the opacity and round samples of 16 bits. */
#include "image/image_formats.h"
#include "base/memory.h"
#include "image/image_faults.h"
#include "image/image_other.h"
#include "image/tiff_tags.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    WHITE_IS_0 = 0,
    BLACK_IS_0 = 1,
    RGB = 2,
    PALETTE = 3,
    INKS = 5,
    YCC = 6,
    CFA = 32803,
    LINEAR_RAW = 34892
};
enum { BY_JPEG = 7, SEPARATE = 2, UNSIGNED = 1, NO_VALUE = -1 };

/* ------------------------------------------------------------------ the head */

/* What of the first directory decides about the pixels. */
typedef struct layout {
    uint64_t width, height, bits, samples, photometric, compression, format;
} layout;

static void take_layout(qn__tiff_tags *tags, layout *l) {
    l->width = qn__tiff_tag(tags, QN__TIFF_WIDTH, 0);
    l->height = qn__tiff_tag(tags, QN__TIFF_HEIGHT, 0);
    l->bits = qn__tiff_tag(tags, QN__TIFF_BITS, 1);
    l->samples = qn__tiff_tag(tags, QN__TIFF_SAMPLES, 1);
    l->photometric = qn__tiff_tag(tags, QN__TIFF_PHOTOMETRIC, UINT64_MAX);
    l->compression = qn__tiff_tag(tags, QN__TIFF_COMPRESSION, 1);
    l->format = qn__tiff_tag(tags, QN__TIFF_SAMPLE_FORMAT, UNSIGNED);
}

/* A camera's file begins with a thumbnail, or has the raw values of its sensor. */
static int is_raw(qn__tiff_tags *tags, const layout *l) {
    return l->photometric == CFA || l->photometric == LINEAR_RAW ||
           qn__tiff_tag(tags, QN__TIFF_DNG, UINT64_MAX) != UINT64_MAX ||
           (qn__tiff_tag(tags, QN__TIFF_SUBFILE, 0) & 1);
}

static uint64_t colours_of(uint64_t photometric) {
    return photometric == RGB || photometric == YCC ? 3 : 1;
}

/* None, CCITT (2, 3, 4), LZW, JPEG, Deflate (two numbers), PackBits, Zstandard. */
static int is_compression(uint64_t number) {
    static const uint16_t known[] = {1, 2, 3, 4, 5, BY_JPEG, 8, 32946, 32773, 50000};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (number == known[i])
            return 1;
    return 0;
}

static const char *photometric_fault(const layout *l) {
    if (l->photometric == INKS)
        return "it has the colours of printing (CMYK)";
    if (l->photometric > PALETTE && l->photometric != YCC)
        return l->photometric == UINT64_MAX ? "it does not tell what its samples mean"
                                            : "its colours are neither grey, RGB nor a palette";
    if (l->photometric == YCC && l->compression != BY_JPEG)
        return "its colours are YCbCr without JPEG";
    return NULL;
}

/* Why such a file is not read; NULL: it is. */
static const char *layout_fault(const layout *l) {
    const char *fault = photometric_fault(l);
    if (fault)
        return fault;
    if (l->format != UNSIGNED)
        return "its samples are signed or floating-point numbers";
    if (l->bits != 1 && l->bits != 2 && l->bits != 4 && l->bits != 8 && l->bits != 16)
        return "its samples have neither 1, 2, 4, 8 nor 16 bits";
    if (l->photometric == PALETTE && l->bits == 16)
        return "its palette has 65,536 colours";
    if (l->samples < colours_of(l->photometric) || l->samples > colours_of(l->photometric) + 1)
        return "its pixels have other samples than a colour and an opacity";
    return is_compression(l->compression) ? NULL : "its compression is not a usual one";
}

qn_status qn__tiff_head(const uint8_t *bytes, size_t size, qn__image_head *head, qn_error *err) {
    qn__tiff_tags tags;
    layout l;
    head->other = qn__image_other(bytes, size); /* cameras have marks of their own */
    const int found = qn__tiff_tags_open(&tags, bytes, size);
    if (found)
        take_layout(&tags, &l);
    if (!found || tags.cut)
        return qn__image_broken(err, "the TIFF file is cut off in its head, or has none");
    if (head->other == QN__OTHER_NONE && is_raw(&tags, &l))
        head->other = qn__image_raw();
    if (head->other != QN__OTHER_NONE)
        return QN_INPUT; /* the caller says what it is */
    const char *fault = layout_fault(&l);
    if (fault)
        return qn__image_unread(err,
                                "convert it to PNG, or to a TIFF file of 8 or 16 bits, grey "
                                "or RGB",
                                "the TIFF file is not read: %s", fault);
    head->width = l.width > UINT32_MAX ? UINT32_MAX : (uint32_t)l.width;
    head->height = l.height > UINT32_MAX ? UINT32_MAX : (uint32_t)l.height;
    head->channels = l.photometric == WHITE_IS_0 || l.photometric == BLACK_IS_0 ? 1 : 3;
    head->orientation = qn__tiff_orientation(&tags);
    return QN_OK;
}

/* ------------------------------------------------------------------ the library */

/* Own declarations of the parts of libtiff.so.6 in use (tiffio.h of version 4.5 and later). Its
 * handlers belong to one file, so that those of the process stay as they are. */
typedef ptrdiff_t tiff_size;
typedef int (*report_fn)(void *tiff, void *user, const char *module, const char *format,
                         va_list values);
typedef tiff_size (*move_fn)(void *user, void *bytes, tiff_size size);

static struct {
    const char *(*version)(void);
    void *(*options)(void);
    void (*options_free)(void *options);
    void (*set_error)(void *options, report_fn report, void *user);
    void (*set_warning)(void *options, report_fn report, void *user);
    void (*set_most)(void *options, tiff_size most);
    void *(*open)(const char *name, const char *mode, void *user, move_fn read, move_fn write,
                  uint64_t (*seek)(void *, uint64_t, int), int (*close)(void *),
                  uint64_t (*size)(void *), int (*map)(void *, void **, uint64_t *),
                  void (*unmap)(void *, void *, uint64_t), void *options);
    void (*close)(void *tiff);
    int (*get)(void *tiff, uint32_t tag, ...);
    int (*set)(void *tiff, uint32_t tag, ...);
    int (*is_tiled)(void *tiff);
    uint64_t (*strip_size)(void *tiff);
    uint64_t (*tile_size)(void *tiff);
    tiff_size (*strip)(void *tiff, uint32_t number, void *to, tiff_size size);
    tiff_size (*tile)(void *tiff, uint32_t number, void *to, tiff_size size);
} the;

static const qn__library_symbol symbols[] = {
    {"TIFFGetVersion", &the.version},
    {"TIFFOpenOptionsAlloc", &the.options},
    {"TIFFOpenOptionsFree", &the.options_free},
    {"TIFFOpenOptionsSetErrorHandlerExtR", &the.set_error},
    {"TIFFOpenOptionsSetWarningHandlerExtR", &the.set_warning},
    {"TIFFOpenOptionsSetMaxSingleMemAlloc", &the.set_most},
    {"TIFFClientOpenExt", &the.open},
    {"TIFFClose", &the.close},
    {"TIFFGetFieldDefaulted", &the.get},
    {"TIFFSetField", &the.set},
    {"TIFFIsTiled", &the.is_tiled},
    {"TIFFStripSize64", &the.strip_size},
    {"TIFFTileSize64", &the.tile_size},
    {"TIFFReadEncodedStrip", &the.strip},
    {"TIFFReadEncodedTile", &the.tile},
    {NULL, NULL},
};

/* The version is the third word of the first line, "LIBTIFF, Version 4.5.0". */
static void version(char text[32]) {
    const char *all = strstr(the.version(), "Version ");
    const char *number = all ? all + strlen("Version ") : "";
    snprintf(text, 32, "%.*s", (int)strspn(number, "0123456789."), number);
}

qn__optional_library qn__libtiff = {.name = "libtiff",
                                    .file = "libtiff.so.6",
                                    .debian = "libtiff6",
                                    .fedora = "libtiff",
                                    .symbol = symbols,
                                    .version = version};

/* ------------------------------------------------------------------ a file in memory */

typedef struct decoding {
    const uint8_t *bytes;
    uint64_t size, at;
    int strict;     /* a warning means that pixels were guessed */
    char fault[96]; /* the first one that was reported */
    const qn__image_head *head;
    uint32_t channels;
    uint8_t *pixels;
    uint8_t *part; /* a strip or a tile of samples */
    uint64_t part_size;
    uint16_t bits, samples, photometric, planar, compression;
    uint32_t wide, high;        /* of a tile, or of a strip */
    const uint16_t *palette[3]; /* each of 2^bits colours */
} decoding;

static int report_error(void *tiff, void *user, const char *module, const char *format,
                        va_list values) {
    decoding *d = user;
    (void)tiff, (void)module;
    if (!d->fault[0])
        vsnprintf(d->fault, sizeof d->fault, format, values);
    return 1; /* it goes no further */
}

/* LZW as very old programs wrote it is told by a warning, and nothing is guessed. */
static int report_warning(void *tiff, void *user, const char *module, const char *format,
                          va_list values) {
    decoding *d = user;
    if (d->strict && !(module && strcmp(module, "LZWPreDecode") == 0))
        return report_error(tiff, user, module, format, values);
    return 1;
}

static tiff_size read_bytes(void *user, void *to, tiff_size size) {
    decoding *d = user;
    const uint64_t left = d->at < d->size ? d->size - d->at : 0;
    const uint64_t got = size < 0 ? 0 : (uint64_t)size < left ? (uint64_t)size : left;
    memcpy(to, d->bytes + (d->at < d->size ? d->at : 0), (size_t)got);
    d->at += got;
    return (tiff_size)got;
}

static tiff_size write_bytes(void *user, void *from, tiff_size size) {
    (void)user, (void)from, (void)size;
    return -1;
}

static uint64_t seek(void *user, uint64_t to, int from) {
    decoding *d = user;
    d->at = from == SEEK_END ? d->size + to : from == SEEK_CUR ? d->at + to : to;
    return d->at;
}

static int close_nothing(void *user) {
    (void)user;
    return 0;
}

static uint64_t size_of(void *user) { return ((decoding *)user)->size; }

static int map(void *user, void **bytes, uint64_t *size) {
    decoding *d = user;
    *bytes = (void *)(uintptr_t)d->bytes; /* the library reads it only */
    *size = d->size;
    return 1;
}

static void unmap(void *user, void *bytes, uint64_t size) { (void)user, (void)bytes, (void)size; }

/* What the library asks for in one piece: of the pixels, and of tables in the file. */
static tiff_size most_memory(const decoding *d) {
    const uint64_t pixels = (uint64_t)d->head->width * d->head->height;
    const uint64_t most = ((uint64_t)64 << 20) + 16 * pixels + 8 * d->size;
    return most < PTRDIFF_MAX ? (tiff_size)most : PTRDIFF_MAX;
}

static void *open_file(decoding *d) {
    void *options = the.options();
    if (!options)
        return NULL;
    the.set_error(options, report_error, d);
    the.set_warning(options, report_warning, d);
    the.set_most(options, most_memory(d));
    void *tiff = the.open("image", "r", d, read_bytes, write_bytes, seek, close_nothing, size_of,
                          map, unmap, options);
    the.options_free(options);
    return tiff;
}

/* ------------------------------------------------------------------ samples to pixels */

static uint8_t sample_at(const decoding *d, const uint8_t *row, size_t i) {
    uint16_t wide;
    if (d->bits == 8)
        return row[i];
    if (d->bits == 16) { /* in the byte order of the machine */
        memcpy(&wide, row + 2 * i, sizeof wide);
        return (uint8_t)(wide >> 8);
    }
    const size_t each = 8 / d->bits;
    return (uint8_t)(row[i / each] >> (d->bits * (each - 1 - i % each))) &
           (uint8_t)((1 << d->bits) - 1);
}

/* Of one sample, as bytes; `to` has the pixel's channels. */
static void put_single(const decoding *d, uint8_t sample, uint8_t *to) {
    const uint8_t grey = d->bits < 8 ? (uint8_t)(sample * 255 / ((1 << d->bits) - 1)) : sample;
    for (uint32_t c = 0; c < d->channels; c++)
        to[c] = d->photometric == PALETTE      ? (uint8_t)(d->palette[c][sample] >> 8)
                : d->photometric == WHITE_IS_0 ? (uint8_t)(255 - grey)
                                               : grey;
}

static uint8_t scaled(const decoding *d, uint8_t sample) {
    return d->bits < 8 ? (uint8_t)(sample * 255 / ((1 << d->bits) - 1)) : sample;
}

/* `count` pixels of a row of samples; plane: which samples these are, where they are separate. */
static void put_row(const decoding *d, const uint8_t *row, uint32_t plane, uint32_t count,
                    uint8_t *to) {
    const uint32_t step = d->planar == SEPARATE ? 1 : d->samples;
    const int colours = d->photometric == RGB || d->photometric == YCC;
    for (uint32_t x = 0; x < count; x++, to += d->channels) {
        const size_t first = (size_t)x * step;
        if (!colours)
            put_single(d, sample_at(d, row, first), to);
        else if (d->planar == SEPARATE)
            to[plane] = scaled(d, sample_at(d, row, first));
        else
            for (uint32_t c = 0; c < 3; c++)
                to[c] = scaled(d, sample_at(d, row, first + c));
    }
}

/* The part whose first pixel is (x, y), which may leave the image on the right and below. */
static void put_part(const decoding *d, uint32_t plane, uint32_t x, uint32_t y) {
    const uint64_t step = d->planar == SEPARATE ? 1 : d->samples;
    const size_t stride = (size_t)((d->wide * step * d->bits + 7) / 8);
    const uint32_t count = d->head->width - x < d->wide ? d->head->width - x : d->wide;
    const uint32_t rows = d->head->height - y < d->high ? d->head->height - y : d->high;
    for (uint32_t r = 0; r < rows; r++)
        put_row(d, d->part + r * stride, plane, count,
                d->pixels + ((size_t)(y + r) * d->head->width + x) * d->channels);
}

/* ------------------------------------------------------------------ the pixels */

static qn_status refuse(const decoding *d, qn_error *err) {
    return qn__image_broken(err, "the TIFF file is broken: %s",
                            d->fault[0] ? d->fault : "its pixels do not fit its head");
}

/* The fields as the library has them, which must be those of the head. */
static int take_fields(decoding *d, void *tiff) {
    uint32_t width = 0, height = 0;
    uint16_t format = 0;
    uint16_t *red = NULL, *green = NULL, *blue = NULL;
    if (!the.get(tiff, QN__TIFF_WIDTH, &width) || !the.get(tiff, QN__TIFF_HEIGHT, &height) ||
        !the.get(tiff, QN__TIFF_BITS, &d->bits) || !the.get(tiff, QN__TIFF_SAMPLES, &d->samples) ||
        !the.get(tiff, QN__TIFF_PHOTOMETRIC, &d->photometric) ||
        !the.get(tiff, QN__TIFF_PLANAR, &d->planar) ||
        !the.get(tiff, QN__TIFF_COMPRESSION, &d->compression) ||
        !the.get(tiff, QN__TIFF_SAMPLE_FORMAT, &format))
        return 0;
    const layout l = {width, height, d->bits, d->samples, d->photometric, d->compression, format};
    const uint32_t channels = d->photometric == WHITE_IS_0 || d->photometric == BLACK_IS_0 ? 1 : 3;
    if (layout_fault(&l) || width != d->head->width || height != d->head->height ||
        d->channels < channels)
        return 0;
    if (d->photometric != PALETTE)
        return 1;
    const int found = the.get(tiff, QN__TIFF_COLOURS, &red, &green, &blue);
    d->palette[0] = red, d->palette[1] = green, d->palette[2] = blue;
    return found && red && green && blue;
}

/* Colours by JPEG come as RGB, and not as they are stored. */
static int set_colours(const decoding *d, void *tiff) {
    enum { JPEG_COLOUR_MODE = 65538, TO_RGB = 1 };
    return d->photometric != YCC || the.set(tiff, JPEG_COLOUR_MODE, TO_RGB);
}

/* The sides of a part, and memory for it: as much as the image has, and a usual tile. */
static qn_status take_part(decoding *d, void *tiff, int tiled, qn_error *err) {
    const uint64_t most = 16 * (uint64_t)d->head->width * d->head->height + ((uint64_t)64 << 20);
    d->wide = d->head->width;
    const int found = tiled ? the.get(tiff, QN__TIFF_TILE_WIDTH, &d->wide) &&
                                  the.get(tiff, QN__TIFF_TILE_HEIGHT, &d->high)
                            : the.get(tiff, QN__TIFF_ROWS_PER_STRIP, &d->high);
    if (!tiled && d->high > d->head->height)
        d->high = d->head->height;
    d->part_size = tiled ? the.tile_size(tiff) : the.strip_size(tiff);
    const uint64_t step = d->planar == SEPARATE ? 1 : d->samples;
    const uint64_t row = ((uint64_t)d->wide * step * d->bits + 7) / 8;
    if (!found || d->wide == 0 || d->high == 0 || d->part_size > most ||
        d->part_size / row < d->high)
        return refuse(d, err);
    d->part = qn__alloc(d->part_size, 1, err);
    return d->part ? QN_OK : QN_MEMORY;
}

/* A part at the bottom of the image may have fewer rows than others. */
static int read_part(decoding *d, void *tiff, int tiled, uint32_t number, uint32_t y) {
    const uint64_t step = d->planar == SEPARATE ? 1 : d->samples;
    const uint64_t row = ((uint64_t)d->wide * step * d->bits + 7) / 8;
    const uint32_t left = d->head->height - y;
    const uint64_t needs = row * (tiled || left > d->high ? d->high : left);
    const tiff_size got = tiled ? the.tile(tiff, number, d->part, (tiff_size)d->part_size)
                                : the.strip(tiff, number, d->part, (tiff_size)d->part_size);
    return got >= 0 && (uint64_t)got >= needs && !d->fault[0];
}

static qn_status read_parts(decoding *d, void *tiff, int tiled, qn_error *err) {
    const int colours = d->photometric == RGB || d->photometric == YCC;
    const uint32_t planes = d->planar == SEPARATE && colours ? 3 : 1;
    const uint32_t across = (d->head->width - 1) / d->wide + 1;
    const uint32_t down = (d->head->height - 1) / d->high + 1;
    for (uint32_t plane = 0; plane < planes; plane++)
        for (uint32_t j = 0; j < down; j++)
            for (uint32_t i = 0; i < across; i++) {
                const uint64_t number = ((uint64_t)plane * down + j) * across + i;
                if (number > UINT32_MAX ||
                    !read_part(d, tiff, tiled, (uint32_t)number, j * d->high))
                    return refuse(d, err);
                put_part(d, plane, i * d->wide, j * d->high);
            }
    return QN_OK;
}

static qn_status run(decoding *d, void *tiff, qn_error *err) {
    const int tiled = the.is_tiled(tiff) != 0;
    if (!take_fields(d, tiff) || !set_colours(d, tiff))
        return refuse(d, err);
    qn_status status = take_part(d, tiff, tiled, err);
    d->strict = 1;
    d->fault[0] = '\0';
    if (status == QN_OK)
        status = read_parts(d, tiff, tiled, err);
    qn__free(d->part);
    return status;
}

qn_status qn__tiff_decode(void **kept, const uint8_t *bytes, size_t size,
                          const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                          qn_error *err) {
    (void)kept;
    decoding d = {
        .bytes = bytes, .size = size, .head = head, .channels = channels, .pixels = pixels};
    if (qn__image_need(&qn__libtiff, "TIFF", err) != QN_OK)
        return QN_UNSUPPORTED;
    void *tiff = open_file(&d);
    if (!tiff)
        return refuse(&d, err);
    const qn_status status = run(&d, tiff, err);
    the.close(tiff);
    return status;
}
