/* The 32-bit numbers of files and digests, which are little-endian on every machine. On
 * little-endian machines they are copied and hashed without conversion. */
#ifndef QN_BASE_BINARY_LITTLE_ENDIAN_H
#define QN_BASE_BINARY_LITTLE_ENDIAN_H

#include "base/digest/sha256.h"
#include "base/error.h"
#include <stddef.h>

/* Copies `count` numbers between memory and the bytes of a file, in either direction. The two do
 * not overlap and need no alignment. */
void qn__copy_little(void *to, const void *from, size_t count);

/* The same for numbers of 16 and of 64 bits. */
void qn__copy_little_halves(void *to, const void *from, size_t count);
void qn__copy_little_reals(void *to, const void *from, size_t count);

/* Adds `count` numbers in memory to a digest. */
void qn__sha256_add_little(qn__sha256 *hash, const void *numbers, size_t count);

/* Passes the file's bytes for `count` numbers in memory, piece by piece, to `take`, until it
 * returns another status than QN_OK. */
typedef qn_status qn__take_bytes(void *user, const void *bytes, size_t size, qn_error *err);
qn_status qn__each_little(const void *numbers, size_t count, qn__take_bytes *take, void *user,
                          qn_error *err);

#endif
