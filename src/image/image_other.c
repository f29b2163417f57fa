#include "image/image_other.h"
#include <string.h>

typedef enum remedy { CONVERT, POINTER, PAGE, UNPACK, MOVE } remedy;

typedef struct row {
    const char *name;  /* of one file */
    const char *names; /* of several */
    const char *mark;
    uint8_t at, size; /* where the mark is, and its bytes */
    remedy remedy;
} row;

static const char *const remedies[] = {
    [CONVERT] = "convert them to PNG or JPEG",
    [POINTER] = "fetch the images with \"git lfs pull\"",
    [PAGE] = "download the images again: a server sent this page in place of one",
    [UNPACK] = "unpack them into the folder, or give the archive alone as the data",
    [MOVE] = "move them out of the folder, or extract their pictures as PNG or JPEG",
};

/* The first row that fits counts. The cache of images has their numbers, so rows keep their places.
 * Brands of ISO media files (ISO/IEC 14496-12) stand at byte 8. */
static const row rows[] = {
    {"an HEIC image", "HEIC images", "ftypheic", 4, 8, CONVERT},
    {"an HEIC image", "HEIC images", "ftypheix", 4, 8, CONVERT},
    {"an HEIC image", "HEIC images", "ftyphevc", 4, 8, CONVERT},
    {"an HEIC image", "HEIC images", "ftyphevx", 4, 8, CONVERT},
    {"an HEIC image", "HEIC images", "ftypheim", 4, 8, CONVERT},
    {"an HEIC image", "HEIC images", "ftypheis", 4, 8, CONVERT},
    {"an AVIF image", "AVIF images", "ftypavif", 4, 8, CONVERT},
    {"an AVIF image", "AVIF images", "ftypavis", 4, 8, CONVERT},
    {"an HEIF image", "HEIF images", "ftypmif1", 4, 8, CONVERT},
    {"an HEIF image", "HEIF images", "ftypmsf1", 4, 8, CONVERT},
    {"a camera's RAW file (Canon CR3)", "cameras' RAW files (Canon CR3)", "ftypcrx ", 4, 8,
     CONVERT},
    {"a video (MP4 or MOV)", "videos (MP4 or MOV)", "ftyp", 4, 4, MOVE},
    {"a JPEG XL image", "JPEG XL images", "\xFF\x0A", 0, 2, CONVERT},
    {"a JPEG XL image", "JPEG XL images", "\0\0\0\14JXL \r\n\x87\n", 0, 12, CONVERT},
    {"a JPEG 2000 image", "JPEG 2000 images", "\0\0\0\14jP  \r\n\x87\n", 0, 12, CONVERT},
    {"a JPEG 2000 image", "JPEG 2000 images", "\xFF\x4F\xFF\x51", 0, 4, CONVERT},
    {"a camera's RAW file (Canon CR2)", "cameras' RAW files (Canon CR2)", "CR\2", 8, 3, CONVERT},
    {"a camera's RAW file (Olympus)", "cameras' RAW files (Olympus)", "IIRO", 0, 4, CONVERT},
    {"a camera's RAW file (Olympus)", "cameras' RAW files (Olympus)", "IIRS", 0, 4, CONVERT},
    {"a camera's RAW file (Panasonic)", "cameras' RAW files (Panasonic)", "IIU\0", 0, 4, CONVERT},
    {"a camera's RAW file (Fujifilm)", "cameras' RAW files (Fujifilm)", "FUJIFILM", 0, 8, CONVERT},
    {"a Photoshop document", "Photoshop documents", "8BPS", 0, 4, CONVERT},
    {"a GIMP image (XCF)", "GIMP images (XCF)", "gimp xcf", 0, 8, CONVERT},
    {"an icon (ICO)", "icons (ICO)", "\0\0\1\0", 0, 4, CONVERT},
    {"an icon (ICNS)", "icons (ICNS)", "icns", 0, 4, CONVERT},
    {"a DDS texture", "DDS textures", "DDS ", 0, 4, CONVERT},
    {"an OpenEXR image", "OpenEXR images", "\x76\x2F\x31\x01", 0, 4, CONVERT},
    {"a Radiance image (HDR)", "Radiance images (HDR)", "#?RADIANCE", 0, 10, CONVERT},
    {"a QOI image", "QOI images", "qoif", 0, 4, CONVERT},
    {"a FITS image", "FITS images", "SIMPLE  =", 0, 9, CONVERT},
    {"a DICOM image", "DICOM images", "DICM", 128, 4, CONVERT},
    {"an MNG animation", "MNG animations", "\x8AMNG", 0, 4, CONVERT},
    {"a DjVu document", "DjVu documents", "AT&TFORM", 0, 8, CONVERT},
    {"an SGI image", "SGI images", "\x01\xDA", 0, 2, CONVERT},
    {"a PDF document", "PDF documents", "%PDF-", 0, 5, MOVE},
    {"a PostScript document", "PostScript documents", "%!PS", 0, 4, MOVE},
    {"a PostScript document", "PostScript documents", "\xC5\xD0\xD3\xC6", 0, 4, MOVE},
    {"a PostScript document", "PostScript documents", "\xC5\xD0\xD3\xC6", 0, 4, MOVE},
    {"a video (Matroska or WebM)", "videos (Matroska or WebM)", "\x1A\x45\xDF\xA3", 0, 4, MOVE},
    {"a pointer of Git LFS", "pointers of Git LFS", "version https://git", 0, 19, POINTER},
    {"an HDF5 file", "HDF5 files", "\x89HDF\r\n\x1A\n", 0, 8, MOVE},
    {"a NumPy file", "NumPy files", "\x93NUMPY", 0, 6, MOVE},
    {"a ZIP archive", "ZIP archives", "PK\3\4", 0, 4, UNPACK},
    {"a gzip file", "gzip files", "\x1F\x8B\x08", 0, 3, UNPACK},
    {"a 7-Zip archive", "7-Zip archives", "7z\xBC\xAF\x27\x1C", 0, 6, UNPACK},
    {"a RAR archive", "RAR archives", "Rar!", 0, 4, UNPACK},
    {"an XZ file", "XZ files",
     "\xFD"
     "7zXZ\0",
     0, 6, UNPACK},
    /* Formats that take more than a mark: `special` returns these by their place from the end. */
    {"an image of PNM (PBM, PGM, PPM or PAM)", "images of PNM (PBM, PGM, PPM or PAM)", NULL, 0, 0,
     CONVERT},
    {"a video (AVI)", "videos (AVI)", NULL, 0, 0, MOVE},
    {"an SVG drawing", "SVG drawings", NULL, 0, 0, CONVERT},
    {"an HTML page", "HTML pages", NULL, 0, 0, PAGE},
    {"a camera's RAW file (DNG, NEF, ARW or PEF)", "cameras' RAW files (DNG, NEF, ARW or PEF)",
     NULL, 0, 0, CONVERT},
};

enum { ROWS = sizeof rows / sizeof rows[0], PNM = ROWS - 5, AVI, SVG, HTML, RAW };
enum { TEXT_BYTES = 4096 };

/* Whether the text begins with the word, in any case of its letters. */
static int begins(const uint8_t *b, size_t size, const char *word) {
    size_t i = 0;
    for (; i < size && word[i]; i++)
        if ((b[i] >= 'A' && b[i] <= 'Z' ? b[i] + 32 : b[i]) != word[i])
            return 0;
    return word[i] == '\0';
}

/* Markup begins with "<", after white space and a byte order mark. Its root says what it is. */
static uint32_t markup(const uint8_t *b, size_t size) {
    size_t at = size >= 3 && memcmp(b, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (at < size && (b[at] == ' ' || (b[at] >= '\t' && b[at] <= '\r')))
        at++;
    if (at == size || b[at] != '<')
        return QN__OTHER_NONE;
    const int is_prolog = at + 1 < size && (b[at + 1] == '?' || b[at + 1] == '!');
    if (!is_prolog && !begins(b + at, size - at, "<svg") && !begins(b + at, size - at, "<html"))
        return QN__OTHER_NONE; /* such as the first name of a CSV file */
    for (; at < size && at < TEXT_BYTES; at++) {
        if (begins(b + at, size - at, "<svg") || begins(b + at, size - at, "<!doctype svg"))
            return SVG;
        if (begins(b + at, size - at, "<html") || begins(b + at, size - at, "<!doctype html"))
            return HTML;
    }
    return QN__OTHER_NONE;
}

static uint32_t special(const uint8_t *b, size_t size) {
    if (size >= 3 && b[0] == 'P' && b[1] >= '1' && b[1] <= '7' &&
        (b[2] == '\n' || b[2] == ' ' || b[2] == '\r' || b[2] == '\t'))
        return PNM;
    if (size >= 12 && memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "AVI ", 4) == 0)
        return AVI;
    return markup(b, size);
}

/* The brand "mif1" is that of both formats: a second brand tells which. The table of brands ends
 * where its box does, at most 256 bytes on. */
static int has_brand(const uint8_t *b, size_t size, const char *brand) {
    const size_t end = b[2] == 0 || b[2] == 1 ? (size_t)b[2] << 8 | b[3] : 0;
    for (size_t at = 16; at + 4 <= end && at + 4 <= size; at += 4)
        if (memcmp(b + at, brand, 4) == 0)
            return 1;
    return 0;
}

static uint32_t row_named(const char *name) {
    uint32_t i = 0;
    while (i < ROWS && strcmp(rows[i].name, name) != 0)
        i++;
    return i;
}

static uint32_t refine(uint32_t i, const uint8_t *b, size_t size) {
    if (i != row_named("an HEIF image"))
        return row_named(rows[i].name);
    if (has_brand(b, size, "avif"))
        return row_named("an AVIF image");
    return has_brand(b, size, "heic") ? row_named("an HEIC image") : i;
}

uint32_t qn__image_other(const uint8_t *bytes, size_t size) {
    for (uint32_t i = 0; i < ROWS; i++)
        if (rows[i].mark && size >= (size_t)rows[i].at + rows[i].size &&
            memcmp(bytes + rows[i].at, rows[i].mark, rows[i].size) == 0)
            return refine(i, bytes, size);
    return special(bytes, size);
}

uint32_t qn__image_raw(void) { return RAW; }

uint32_t qn__image_others(void) { return ROWS; }

const char *qn__image_other_name(uint32_t other, int several) {
    return several ? rows[other].names : rows[other].name;
}

int qn__image_other_is_picture(uint32_t other) {
    return rows[other].mark && rows[other].remedy == CONVERT;
}

const char *qn__image_other_remedy(uint32_t other) { return remedies[rows[other].remedy]; }
