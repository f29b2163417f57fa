/* Reading Thrift's compact protocol, in which Parquet describes its files. Every access is checked
 * against the size. What lies outside reads as 0 and sets `broken`, so that a caller checks once,
 * at the end; loops end there too. */
#ifndef QN_DATA_COLUMNAR_THRIFT_H
#define QN_DATA_COLUMNAR_THRIFT_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__thrift {
    const uint8_t *bytes;
    size_t size, at;
    int broken;
} qn__thrift;

enum { QN__THRIFT_TRUE = 1, QN__THRIFT_LIST = 9, QN__THRIFT_STRUCT = 12 };

/* A field of a struct. Begin with {0} for each struct. */
typedef struct qn__thrift_field {
    int id, type;
} qn__thrift_field;

/* Goes on to the next field of a struct. Returns 0 after the last one. The caller reads the value
 * of each field or skips it. */
int qn__thrift_next(qn__thrift *t, qn__thrift_field *field);
/* Skips a value. */
void qn__thrift_skip(qn__thrift *t, int type);
/* An integer of 16 to 64 bits, or an enum. */
int64_t qn__thrift_int(qn__thrift *t);
/* An integer without a sign, as lengths are. */
uint64_t qn__thrift_length(qn__thrift *t);
/* A text: *size bytes inside bytes. */
const uint8_t *qn__thrift_text(qn__thrift *t, size_t *size);
/* The number of elements of a list, and their type. At most as many as there are bytes left. */
size_t qn__thrift_list(qn__thrift *t, int *type);

#endif
