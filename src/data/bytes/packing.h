/* How files are compressed, and what unpacks each kind. source.c reads through this table. */
#ifndef QN_DATA_BYTES_PACKING_H
#define QN_DATA_BYTES_PACKING_H

#include "base/error.h"
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

typedef struct qn__unpacker {
    const char *name, *by_hand; /* for messages: "gzip", "gunzip" */
    int (*is)(const uint8_t *first, size_t size);
    /* Reads from `fd`, which stays the caller's, as does `path` (for messages); both must outlive
     * *out. Fails with QN_MEMORY, or QN_UNSUPPORTED where its library is missing. */
    qn_status (*create)(int fd, const char *path, uint64_t file_size, void **out, qn_error *err);
    /* Unpacks the next `size` bytes; *got is the number of bytes: fewer only at the end. Fails with
     * QN_INPUT if the file is not of this kind, is truncated, or unpacks to too much. */
    qn_status (*read)(void *self, void *bytes, size_t size, size_t *got, qn_error *err);
    void (*destroy)(void *self); /* accepts NULL */
} qn__unpacker;

extern const qn__unpacker qn__gzip_unpacker, qn__zstd_unpacker, qn__bzip2_unpacker, qn__xz_unpacker;

/* What unpacks a file that begins with these bytes, and its kind; NULL and QN__PLAIN: nothing. */
const qn__unpacker *qn__unpacker_for(const uint8_t *first, size_t size, qn__packing *packing);

/* Its name, and the command that unpacks it; of ZIP too. */
const char *qn__packing_name(qn__packing packing);
const char *qn__packing_by_hand(qn__packing packing);

#endif
