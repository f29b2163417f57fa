/* The files of a tar archive: ustar (POSIX.1-1988), pax (POSIX.1-2001) and GNU's long names.
 * Nothing is ever extracted, so names that lead elsewhere do no harm. */
#ifndef QN_DATA_BYTES_TAR_H
#define QN_DATA_BYTES_TAR_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* Where the archive's bytes come from. */
typedef struct qn__tar_bytes {
    int file;              /* a descriptor, where `memory` is NULL */
    const uint8_t *memory; /* the unpacked archive */
    uint64_t size;
    const char *path; /* for messages */
} qn__tar_bytes;

/* Reads bytes [from, from + size), which lie inside the archive. */
qn_status qn__tar_read(const qn__tar_bytes *in, uint64_t from, void *bytes, size_t size,
                       qn_error *err);

/* Called for each regular file, in the order of the archive: its name as it is written there, and
 * where its bytes are. A status other than QN_OK ends the reading. */
typedef qn_status (*qn__tar_file)(void *user, const char *name, uint64_t begin, uint64_t size,
                                  qn_error *err);

/* Fails with QN_INPUT, with place and remedy: the archive is malformed or cut off; it has a link, a
 * sparse file or a device. These are ignored where `hidden` says so of their name. */
qn_status qn__tar_list(const qn__tar_bytes *in, int (*hidden)(const char *name), qn__tar_file each,
                       void *user, qn_error *err);

/* 1 when the first bytes of a file are those of an archive with the mark "ustar". */
enum { QN__TAR_MARK = 262 };
int qn__tar_is(const uint8_t *first, size_t size);

#endif
