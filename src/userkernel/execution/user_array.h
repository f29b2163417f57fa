/* The arrays of user kernels: NPY files that are mapped, and files that are written. */
#ifndef QN_USERKERNEL_EXECUTION_USER_ARRAY_H
#define QN_USERKERNEL_EXECUTION_USER_ARRAY_H

#include "base/system/threads.h"
#include "userkernel/language/user_source.h"

/* All zeros: no array. The numbers are in C order: the last index runs fastest. */
typedef struct qn__user_array {
    qn__user_type type;
    uint32_t dimensions; /* 1 to 3 */
    uint64_t shape[QN__USER_DIMENSIONS];
    void *data;       /* of a mapped one: only to read */
    void *map;        /* of a file, with its bytes */
    size_t map_bytes; /* 0: `data` is of qn__alloc_pages where `own_bytes` is not 0 */
    size_t own_bytes;
} qn__user_array;

uint64_t qn__user_array_items(const qn__user_array *a);
size_t qn__user_array_bytes(const qn__user_array *a);

/* Maps the array of an NPY file, which must be regular. `name` is that of the kernel. `in_parts`:
 * it may have no rows. Fails with QN_INPUT (also for a type that kernels lack, Fortran's order,
 * more than three dimensions), QN_IO or QN_MEMORY. Release it with qn__user_array_release. */
qn_status qn__user_array_open(const char *path, const char *name, int in_parts, qn__user_array *out,
                              qn_error *err);

/* Makes an array of zeros; type, dimensions and shape are set. */
qn_status qn__user_array_make(qn__user_array *a, qn_error *err);
/* The same for one of which only some rows are used: the others take no memory. */
qn_status qn__user_array_reserve(qn__user_array *a, qn_error *err);
void qn__user_array_release(qn__user_array *a);

/* Writes an NPY file; or only its numbers, little-endian in C order. */
struct qn__writer;
qn_status qn__user_array_write(const qn__user_array *a, struct qn__writer *writer, qn_error *err);
qn_status qn__user_array_write_numbers(const qn__user_array *a, struct qn__writer *writer,
                                       qn_error *err);

/* The first bytes of that NPY file, written to `header`, which is returned. */
enum { QN__NPY_HEADER = 128 };
const char *qn__user_array_header(const qn__user_array *a, char header[QN__NPY_HEADER]);

/* `size` bytes from byte `at` on, a range of whole elements, little-endian as in files. Points into
 * the array itself, or to a converted copy in `block`. */
const void *qn__user_array_little(const qn__user_array *a, size_t at, size_t size, void *block);

/* Turns little-endian numbers, as files have them, into those of this machine. */
void qn__user_array_from_little(qn__user_array *a);

/* The blocks of which the digest is made: their bytes, and their number. */
enum { QN__ARRAY_BLOCK = 1 << 20 };
uint64_t qn__user_array_blocks(const qn__user_array *a);
/* SHA-256 of so many bytes of such a block. */
void qn__user_array_hash(const qn__user_array *a, const void *bytes, size_t size,
                         uint8_t digest[32]);
/* The digest of the array from those of all its blocks. */
void qn__user_array_digest_of(const qn__user_array *a, const void *digests, char hex[65]);

/* SHA-256 of type, shape and numbers, as docs/exactness.md has it. `pool` may be NULL. */
qn_status qn__user_array_digest(const qn__user_array *a, qn__pool *pool, char hex[65],
                                qn_error *err);

/* "3x4"; at least 72 bytes. */
void qn__user_shape_text(uint32_t dimensions, const uint64_t *shape, char text[72]);

#endif
