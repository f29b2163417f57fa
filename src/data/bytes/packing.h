/* How files are compressed, and what unpacks each kind: a row of a table, whose functions work as
 * zlib does. packed_stream.h reads files through it. */
#ifndef QN_DATA_BYTES_PACKING_H
#define QN_DATA_BYTES_PACKING_H

#include "base/system/library.h"
#include <stddef.h>
#include <stdint.h>

/* QN__ZIPPED: a ZIP archive, of which one file is read. */
typedef enum qn__packing {
    QN__PLAIN,
    QN__GZIP,
    QN__ZSTD,
    QN__BZIP2,
    QN__XZ,
    QN__ZIPPED,
    QN__PACKINGS
} qn__packing;

/* The name of a format in each packing, for qn_data_format: the format's own first. */
#define QN__PACKED_NAMES(name)                                                                     \
    { name, name ".gz", name ".zst", name ".bz2", name ".xz", name ".zip" }
/* The same of a format that is read from plain files only. */
#define QN__PLAIN_NAME(name)                                                                       \
    { name }

/* A file of `size` bytes may unpack to QN__UNPACKED_TIMES as many and QN__UNPACKED_ALWAYS: gzip
 * cannot exceed that, and what does is meant to fill the memory. */
#define QN__UNPACKED_ALWAYS ((uint64_t)64 << 20)
enum { QN__UNPACKED_TIMES = 1032 };
static inline uint64_t qn__unpacked_bound(uint64_t size) {
    return size < (UINT64_MAX - QN__UNPACKED_ALWAYS) / QN__UNPACKED_TIMES
               ? size * QN__UNPACKED_TIMES + QN__UNPACKED_ALWAYS
               : UINT64_MAX;
}

typedef enum qn__packed_step {
    QN__PACKED_MORE, /* more can follow */
    QN__PACKED_END,  /* the compressed data ended; input may be left */
    QN__PACKED_CORRUPT,
    QN__PACKED_MEMORY
} qn__packed_step;

/* What follows an end. */
typedef enum qn__packed_next {
    QN__PACKED_OTHER, /* something else, which is refused */
    QN__PACKED_AGAIN, /* compressed data again, and the state is ready for it */
    QN__PACKED_FILLER /* a byte that is left out */
} qn__packed_next;

/* What is left of the input and of the space for output. */
typedef struct qn__packed_space {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_size;
    const char *why; /* of QN__PACKED_CORRUPT, static; NULL: the library gives no reason */
} qn__packed_space;

typedef struct qn__unpacker {
    const char *name, *by_hand, *test; /* for messages: "gzip", "gunzip", "gzip -t" */
    int (*is)(const uint8_t *first, size_t size);
    qn__optional_library *library; /* NULL: none is opened at run time */
    /* QN_UNSUPPORTED, with a remedy, where its library is missing. */
    qn_status (*need)(qn_error *err);
    size_t state_size; /* of what the following functions get, which begins as zeros */
    /* Begins; 0: memory is short. */
    int (*begin)(void *state);
    /* One call. `last`: no input follows. */
    qn__packed_step (*step)(void *state, qn__packed_space *buffer, int last);
    /* What follows an end; size > 0. */
    qn__packed_next (*next)(void *state, const uint8_t *first, size_t size);
    void (*end)(void *state);
} qn__unpacker;

extern const qn__unpacker qn__gzip_unpacker, qn__zstd_unpacker, qn__bzip2_unpacker, qn__xz_unpacker;
/* RFC 1950, which HTTP calls deflate. No file is of this kind. */
extern const qn__unpacker qn__zlib_unpacker;

/* Packs bytes fast. The result is for free(). NULL: it would not be smaller, memory is short, or
 * the build is without zlib. */
typedef enum qn__pack_kind { QN__PACK_GZIP, QN__PACK_ZLIB } qn__pack_kind;
void *qn__pack(qn__pack_kind kind, const void *bytes, size_t size, size_t *packed);

/* What unpacks a file that begins with these bytes, and its kind; NULL and QN__PLAIN: nothing. */
const qn__unpacker *qn__unpacker_for(const uint8_t *first, size_t size, qn__packing *packing);

/* Its name, and the command that unpacks it; of ZIP too. */
const char *qn__packing_name(qn__packing packing);
const char *qn__packing_by_hand(qn__packing packing);
/* The library that is opened for it; NULL: none is. */
qn__optional_library *qn__packing_library(qn__packing packing);

#endif
