/* The first directory of a TIFF structure: of a TIFF file, and of the Exif data in other files. */
#ifndef QN_IMAGE_TIFF_TAGS_H
#define QN_IMAGE_TIFF_TAGS_H

#include <stddef.h>
#include <stdint.h>

/* TIFF 6.0, sections 2 and 8; `big`: BigTIFF, whose numbers have 8 bytes. */
typedef struct qn__tiff_tags {
    const uint8_t *bytes;
    size_t size;
    int big_endian, big;
    size_t entries; /* where the first one is */
    uint64_t count; /* of entries, which all lie in `bytes` */
    int cut;        /* a requested value is not inside `bytes` */
} qn__tiff_tags;

/* Tags in use. */
enum {
    QN__TIFF_SUBFILE = 254,
    QN__TIFF_WIDTH = 256,
    QN__TIFF_HEIGHT = 257,
    QN__TIFF_BITS = 258,
    QN__TIFF_COMPRESSION = 259,
    QN__TIFF_PHOTOMETRIC = 262,
    QN__TIFF_ORIENTATION = 274,
    QN__TIFF_SAMPLES = 277,
    QN__TIFF_ROWS_PER_STRIP = 278,
    QN__TIFF_PLANAR = 284,
    QN__TIFF_COLOURS = 320,
    QN__TIFF_TILE_WIDTH = 322,
    QN__TIFF_TILE_HEIGHT = 323,
    QN__TIFF_SAMPLE_FORMAT = 339,
    QN__TIFF_DNG = 50706
};

/* 1: `bytes` begin with a TIFF structure, and its first directory lies in them. 0: not so. */
int qn__tiff_tags_open(qn__tiff_tags *tags, const uint8_t *bytes, size_t size);

/* Whether the first bytes are those of a TIFF structure. */
int qn__tiff_is(const uint8_t *bytes, size_t size);

/* The first value of a tag of the type BYTE, SHORT, LONG or LONG8; `otherwise` where the directory
 * has none, and with tags->cut set where the value does not lie in the bytes. */
uint64_t qn__tiff_tag(qn__tiff_tags *tags, uint32_t tag, uint64_t otherwise);

/* The orientation of a directory: 1 to 8; 1 where it has none. */
uint32_t qn__tiff_orientation(const qn__tiff_tags *tags);

/* The same of Exif data, with "Exif\0\0" before it or not. Never fails: 1 where it is broken. */
uint32_t qn__exif_orientation(const uint8_t *bytes, size_t size);

#endif
