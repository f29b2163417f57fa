/* Arrays of NumPy: the NPY format, alone in a file or as an entry of an NPZ archive.
 *
 *   "\x93NUMPY", major and minor version    8 bytes
 *   length of the header, little-endian     2 bytes (version 1) or 4 bytes (2 and 3)
 *   the header                              such as {'descr': '<f4', 'shape': (3, 4), ...}
 *   the elements
 *
 * The format is described in NumPy's documentation, numpy.lib.format. */
#ifndef QN_DATA_NUMPY_NPY_H
#define QN_DATA_NUMPY_NPY_H

#include "data/bytes/source.h"
#include "data/table/data.h"

enum { QN__NPY_DIMENSIONS = 32 };

/* The bytes of an array, header included. */
typedef struct qn__npy_bytes {
    /* As qn__source_read: fewer bytes than asked for only at the end. */
    qn_status (*read)(void *self, void *bytes, size_t size, size_t *got, qn_error *err);
    void *self;
    uint64_t size;           /* how many bytes there are */
    int exact;               /* 0: only at most `size` */
    const qn__source *plain; /* the file that they are; NULL: they are packed */
    /* For messages: "PATH, byte N", then what the byte is counted in, as " of the unpacked file".
     */
    const char *path;
    char of[80];
} qn__npy_bytes;

typedef enum qn__npy_kind {
    QN__NPY_BOOL,
    QN__NPY_INT,
    QN__NPY_UINT,
    QN__NPY_FLOAT,
    QN__NPY_UNICODE, /* texts of 32-bit characters, NULs after them */
    QN__NPY_ASCII    /* texts of bytes, NULs after them */
} qn__npy_kind;

/* What a header says. */
typedef struct qn__npy {
    qn__npy_kind kind;
    uint32_t size;       /* of an element, in bytes; 1 to 8 for numbers */
    int big;             /* numbers are big-endian */
    int fortran;         /* the first index runs fastest, not the last */
    uint32_t dimensions; /* 1 to QN__NPY_DIMENSIONS */
    uint64_t shape[QN__NPY_DIMENSIONS];
    uint64_t items;    /* the first dimension, at most QN__ITEMS_MAX */
    uint64_t features; /* the product of the others, 1 to UINT32_MAX */
    uint64_t begin;    /* of the elements, in bytes */
} qn__npy;

/* Sets place and remedy of an error at a byte of the array; returns QN_INPUT. */
qn_status qn__npy_refuse(const qn__npy_bytes *in, uint64_t byte, const char *remedy, qn_error *err);

/* Reads and checks the header; the elements follow. Their number fits the size of the file. Fails
 * with QN_INPUT, also for what has no meaning here (objects, records, complex numbers, dates), or
 * as in->read. */
qn_status qn__npy_read_header(const qn__npy_bytes *in, qn__npy *array, qn_error *err);

/* Takes elements in the order of the file: `number` is int64_t for BOOL, INT and UINT (of UINT of 8
 * bytes, the bits), double for FLOAT; for texts it is the bytes, little-endian. */
typedef qn_status qn__npy_take(void *user, uint64_t first, size_t count, const void *numbers,
                               qn_error *err);
/* Reads all elements, and checks that the file ends after them. */
qn_status qn__npy_each(const qn__npy_bytes *in, const qn__npy *array, qn__npy_take *take,
                       void *user, qn_error *err);

#endif
