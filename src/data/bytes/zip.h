/* ZIP archives, as far as NPZ needs them: the list of entries, and the bytes of one, stored or
 * deflated, with sizes beyond 4 GiB (ZIP64). Neither encrypted nor in several parts. The format is
 * PKWARE's APPNOTE. */
#ifndef QN_DATA_BYTES_ZIP_H
#define QN_DATA_BYTES_ZIP_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__zip_entry {
    char *name;
    uint64_t packed, size; /* bytes in the archive, and unpacked */
    uint64_t begin;        /* of its local header */
    uint32_t crc;
    uint16_t method, flags;
} qn__zip_entry;

typedef struct qn__zip {
    int file;
    const char *path; /* the caller's */
    uint64_t size;    /* of the archive */
    uint64_t count;
    qn__zip_entry *entry;
    uint64_t directory; /* where the list of entries begins */
} qn__zip;

/* Reads the list of entries. `file` and `path` must outlive *out. Fails with QN_INPUT, QN_IO or
 * QN_MEMORY. */
qn_status qn__zip_open(int file, const char *path, uint64_t size, qn__zip **out, qn_error *err);
void qn__zip_close(qn__zip *zip); /* accepts NULL */

typedef struct qn__zip_stream qn__zip_stream;

/* Begins to read an entry. Fails with QN_INPUT, QN_IO, QN_MEMORY or QN_UNSUPPORTED (built without
 * zlib, or the entry is packed in another way). */
qn_status qn__zip_begin(const qn__zip *zip, const qn__zip_entry *entry, qn__zip_stream **out,
                        qn_error *err);
/* The next `size` bytes of the qn__zip_stream `self`; *got is fewer only at the end. The read that
 * finds the end compares size and check sum. */
qn_status qn__zip_read(void *self, void *bytes, size_t size, size_t *got, qn_error *err);
void qn__zip_end(qn__zip_stream *stream); /* accepts NULL */

#endif
