/* Arrays of kernels: NPY files that are mapped for reading, memory for results, and their digest.
 * The digest is a tree: threads hash blocks of 1 MiB, and the digests of blocks are hashed in
 * order. So it does not depend on the number of threads. */
#include "userkernel/execution/user_array.h"

#include "base/digest/sha256.h"
#include "base/files/file.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "data/numpy/npy.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NPY_HEADER = QN__NPY_HEADER };
#define BLOCK ((size_t)QN__ARRAY_BLOCK)

/* Files and digests have little-endian numbers. */
enum { BIG_ENDIAN_HOST = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ };

static void swap(uint8_t *bytes, size_t count, uint32_t size) {
    for (size_t i = 0; i < count; i += size)
        for (uint32_t k = 0; k < size / 2; k++) {
            const uint8_t kept = bytes[i + k];
            bytes[i + k] = bytes[i + size - 1 - k];
            bytes[i + size - 1 - k] = kept;
        }
}

uint64_t qn__user_array_items(const qn__user_array *a) {
    uint64_t items = 1;
    for (uint32_t d = 0; d < a->dimensions; d++)
        items *= a->shape[d];
    return items;
}

size_t qn__user_array_bytes(const qn__user_array *a) {
    return (size_t)qn__user_array_items(a) * qn__user_type_size(a->type);
}

void qn__user_shape_text(uint32_t dimensions, const uint64_t *shape, char text[72]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t d = 0; d < dimensions && used < 72; d++)
        used += (size_t)snprintf(text + used, 72 - used, "%s%" PRIu64, d > 0 ? "x" : "", shape[d]);
}

void qn__user_array_release(qn__user_array *a) {
    if (a->map)
        munmap(a->map, a->map_bytes);
    else if (a->own_bytes > 0)
        qn__free_pages(a->data, a->own_bytes);
    *a = (qn__user_array){.data = NULL};
}

qn_status qn__user_array_make(qn__user_array *a, qn_error *err) {
    const size_t bytes = qn__user_array_bytes(a);
    a->data = qn__alloc_pages(bytes, err);
    a->own_bytes = a->data ? bytes : 0;
    return a->data ? QN_OK : QN_MEMORY;
}

qn_status qn__user_array_reserve(qn__user_array *a, qn_error *err) {
    const size_t bytes = qn__user_array_bytes(a);
    a->data = qn__reserve_pages(bytes, err);
    a->own_bytes = a->data ? bytes : 0;
    return a->data ? QN_OK : QN_MEMORY;
}

/* ------------------------------------------------------------------ reading */

/* Bytes of a mapped file, for the reader of headers. */
typedef struct mapped {
    const uint8_t *bytes;
    size_t size, at;
} mapped;

static qn_status take(void *self, void *bytes, size_t size, size_t *got, qn_error *err) {
    mapped *m = self;
    (void)err;
    *got = size < m->size - m->at ? size : m->size - m->at;
    memcpy(bytes, m->bytes + m->at, *got);
    m->at += *got;
    return QN_OK;
}

static qn__user_type type_of(const qn__npy *npy) {
    const int place = npy->size == 1 ? 0 : npy->size == 2 ? 1 : npy->size == 4 ? 2 : 3;
    switch (npy->kind) {
    case QN__NPY_INT:
        return (qn__user_type)(QN__USER_I8 + place);
    case QN__NPY_UINT:
        return (qn__user_type)(QN__USER_U8 + place);
    case QN__NPY_FLOAT:
        return npy->size == 4 ? QN__USER_F32 : npy->size == 8 ? QN__USER_F64 : QN__USER_TYPES;
    default:
        return QN__USER_TYPES;
    }
}

static qn_status refuse(const char *path, const char *name, const char *what, const char *remedy,
                        qn_error *err) {
    qn__fail(err, QN_INPUT, "the array for \"%s\" %s", name, what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* Checks what a header says, and finds the numbers. */
static qn_status accept(const qn__npy *npy, const char *path, const char *name, int in_parts,
                        qn__user_array *out, qn_error *err) {
    const qn__user_type type = type_of(npy);
    if (type == QN__USER_TYPES)
        return refuse(path, name, "has a type that kernels do not support",
                      "convert it before numpy.save, as array.astype('float32')", err);
    if (npy->fortran && npy->dimensions > 1)
        return refuse(path, name, "is in Fortran order", "save numpy.ascontiguousarray(array)",
                      err);
    if (npy->dimensions > QN__USER_DIMENSIONS)
        return refuse(path, name, "has more than three dimensions", "reshape it before numpy.save",
                      err);
    if (npy->items == 0 && !in_parts)
        return refuse(path, name, "holds no items", "give an array with at least one number", err);
    out->type = type;
    out->dimensions = npy->dimensions;
    memcpy(out->shape, npy->shape, out->dimensions * sizeof *out->shape);
    out->data = (uint8_t *)out->map + npy->begin;
    return QN_OK;
}

/* Numbers of the other byte order are copied, and so are those that are not aligned to their size:
 * NumPy aligns them to 64 bytes, but other programs may not. */
static qn_status settle(qn__user_array *a, int big, qn_error *err) {
    qn__user_array copy = *a;
    const uint32_t size = qn__user_type_size(a->type);
    const int swapped = size > 1 && big != BIG_ENDIAN_HOST;
    if (a->shape[0] == 0 || ((uintptr_t)a->data % size == 0 && !swapped))
        return QN_OK;
    copy.map = NULL;
    copy.map_bytes = 0;
    const qn_status status = qn__user_array_make(&copy, err);
    if (status != QN_OK)
        return status;
    memcpy(copy.data, a->data, copy.own_bytes);
    if (swapped)
        swap(copy.data, copy.own_bytes, size);
    qn__user_array_release(a);
    *a = copy;
    return QN_OK;
}

/* In parts a folder is the files in it, so this one has none. */
static qn_status refuse_folder(const char *path, const char *name, int in_parts, qn_error *err) {
    if (in_parts)
        return refuse(path, name, "has no file in the folder", "put NPY files in it", err);
    return refuse(path, name, "is a folder",
                  "give a file written by numpy.save, or bind the files of the folder in parts",
                  err);
}

static qn_status map(int file, const char *path, const char *name, int in_parts,
                     qn__user_array *out, qn_error *err) {
    struct stat info;
    if (fstat(file, &info) != 0)
        return qn__fail_errno(err, "look at", path);
    if (S_ISDIR(info.st_mode))
        return refuse_folder(path, name, in_parts, err);
    if (!S_ISREG(info.st_mode) || info.st_size <= 0 || (uintmax_t)info.st_size > SIZE_MAX / 2)
        return refuse(path, name, "is not in a regular file, or the file is empty",
                      "give a file written by numpy.save", err);
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED)
        return qn__fail_errno(err, "map", path);
    out->map = bytes;
    out->map_bytes = (size_t)info.st_size;
    return QN_OK;
}

qn_status qn__user_array_open(const char *path, const char *name, int in_parts, qn__user_array *out,
                              qn_error *err) {
    *out = (qn__user_array){.data = NULL};
    int file = -1;
    qn_status status = QN_OK;
    if (qn__remote_is(path))
        status = qn__remote_open(path, &file, err);
    else if ((file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0)
        status = qn__fail_errno(err, "open", path);
    if (status == QN_OK)
        status = qn__remote_ensure(file, 0, UINT64_MAX, err);
    if (status == QN_OK)
        status = map(file, path, name, in_parts, out, err);
    qn__remote_close(file);
    if (status != QN_OK)
        return status;
    mapped bytes = {.bytes = out->map, .size = out->map_bytes};
    const qn__npy_bytes in = {
        .read = take, .self = &bytes, .size = bytes.size, .exact = 1, .path = path};
    qn__npy npy;
    status = qn__npy_read_header(&in, &npy, err);
    if (status == QN_OK)
        status = accept(&npy, path, name, in_parts, out, err);
    if (status == QN_OK)
        status = settle(out, npy.big, err);
    if (status != QN_OK)
        qn__user_array_release(out);
    return status;
}

void qn__user_array_from_little(qn__user_array *a) {
    if (BIG_ENDIAN_HOST)
        swap(a->data, qn__user_array_bytes(a), qn__user_type_size(a->type));
}

/* ------------------------------------------------------------------ writing */

const void *qn__user_array_little(const qn__user_array *a, size_t at, size_t size, void *block) {
    const uint8_t *bytes = (const uint8_t *)a->data + at;
    if (!BIG_ENDIAN_HOST)
        return bytes;
    swap(memcpy(block, bytes, size), size, qn__user_type_size(a->type));
    return block;
}

static const char *descriptor(qn__user_type type) {
    static const char *const texts[QN__USER_TYPES] = {"|i1", "<i2", "<i4", "<i8", "|u1",
                                                      "<u2", "<u4", "<u8", "<f4", "<f8"};
    return texts[type];
}

const char *qn__user_array_header(const qn__user_array *a, char header[QN__NPY_HEADER]) {
    /* Version 1, and the length of the rest of the header. */
    static const uint8_t magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, NPY_HEADER - 10, 0};
    char shape[80] = "";
    size_t used = 0;
    for (uint32_t d = 0; d < a->dimensions; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRIu64, d > 0 ? ", " : "",
                                 a->shape[d]);
    memset(header, ' ', NPY_HEADER);
    memcpy(header, magic, sizeof magic);
    const int size = snprintf(header + 10, NPY_HEADER - 10,
                              "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
                              descriptor(a->type), shape, a->dimensions == 1 ? "," : "");
    header[10 + size] = ' ';
    header[NPY_HEADER - 1] = '\n';
    return header;
}

qn_status qn__user_array_write_numbers(const qn__user_array *a, struct qn__writer *writer,
                                       qn_error *err) {
    qn_status status = QN_OK;
    const size_t all = qn__user_array_bytes(a);
    uint8_t block[4096];
    for (size_t at = 0, some; at < all && status == QN_OK; at += some) {
        some = BIG_ENDIAN_HOST && all - at > sizeof block ? sizeof block : all - at;
        status = qn__writer_add(writer, qn__user_array_little(a, at, some, block), some, err);
    }
    return status;
}

qn_status qn__user_array_write(const qn__user_array *a, struct qn__writer *writer, qn_error *err) {
    char header[NPY_HEADER];
    const qn_status status =
        qn__writer_add(writer, qn__user_array_header(a, header), sizeof header, err);
    return status == QN_OK ? qn__user_array_write_numbers(a, writer, err) : status;
}

/* ------------------------------------------------------------------ digests */

typedef struct blocks {
    const uint8_t *bytes;
    size_t size, count;
    uint32_t number; /* bytes of one */
    uint8_t (*digest)[32];
    atomic_size_t next;
} blocks;

static void hash_block(const blocks *b, const uint8_t *bytes, size_t size, uint8_t digest[32]) {
    uint8_t some[4096];
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    for (size_t at = 0, n; at < size; at += n) {
        n = BIG_ENDIAN_HOST && size - at > sizeof some ? sizeof some : size - at;
        if (BIG_ENDIAN_HOST)
            swap(memcpy(some, bytes + at, n), n, b->number);
        qn__sha256_add(&hash, BIG_ENDIAN_HOST ? some : bytes + at, n);
    }
    qn__sha256_end(&hash, digest);
}

static void hash_blocks(void *context, int thread) {
    blocks *b = context;
    size_t i;
    (void)thread;
    while ((i = atomic_fetch_add(&b->next, 1)) < b->count) {
        const size_t left = b->size - i * BLOCK;
        hash_block(b, b->bytes + i * BLOCK, left < BLOCK ? left : BLOCK, b->digest[i]);
    }
}

uint64_t qn__user_array_blocks(const qn__user_array *a) {
    const size_t bytes = qn__user_array_bytes(a);
    return bytes / BLOCK + (bytes % BLOCK != 0);
}

void qn__user_array_hash(const qn__user_array *a, const void *bytes, size_t size,
                         uint8_t digest[32]) {
    const blocks b = {.number = qn__user_type_size(a->type)};
    hash_block(&b, bytes, size, digest);
}

void qn__user_array_digest_of(const qn__user_array *a, const void *digests, char hex[65]) {
    char head[160], shape[72];
    uint8_t digest[32];
    qn__sha256 hash;
    qn__user_shape_text(a->dimensions, a->shape, shape);
    const int size =
        snprintf(head, sizeof head, "array %s %s\n", qn__user_type_numpy(a->type), shape);
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, head, (size_t)size);
    qn__sha256_add(&hash, digests, qn__user_array_blocks(a) * sizeof digest);
    qn__sha256_end(&hash, digest);
    qn__hex(digest, hex);
}

qn_status qn__user_array_digest(const qn__user_array *a, qn__pool *pool, char hex[65],
                                qn_error *err) {
    blocks b = {.bytes = a->data,
                .size = qn__user_array_bytes(a),
                .count = qn__user_array_blocks(a),
                .number = qn__user_type_size(a->type)};
    b.digest = qn__alloc(b.count, sizeof *b.digest, err);
    if (!b.digest)
        return QN_MEMORY;
    if (pool && b.count > 1)
        qn__pool_run(pool, hash_blocks, &b);
    else
        hash_blocks(&b, 0);
    qn__user_array_digest_of(a, b.digest, hex);
    qn__free(b.digest);
    return QN_OK;
}
