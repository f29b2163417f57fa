/* What a kind of store does with objects that are written. The order of parts, the threads that
 * send them and the memory of parts are in upload.c, leases in lease.c. */
#ifndef QN_STORE_WRITE_WRITE_KIND_H
#define QN_STORE_WRITE_WRITE_KIND_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { QN__UPLOAD_PARTS = 10000, QN__OBJECT_TAG = 136 };

/* Which state of an object this is: its ETag, as the store wrote it. "": it is not there. */
typedef struct qn__object_tag {
    char text[QN__OBJECT_TAG];
} qn__object_tag;

typedef struct qn__write_kind {
    const char *scheme; /* the beginning of its addresses */
    int at_once;        /* parts that may be sent at the same time, by different threads, in any
                           order; 1: one after the other */
    /* Begins to write at an address. Fails as qn__remote_writer_create. */
    qn_status (*open)(const char *address, void **out, qn_error *err);
    void (*close)(void *object);

    /* The whole object in one request. NULL: such an object is one part. */
    qn_status (*put)(void *object, const void *bytes, size_t size, qn_error *err);
    /* Begins something that only who may write there can begin, and that abort ends. */
    qn_status (*probe)(void *object, qn_error *err);
    /* Several parts: begin, send each, then finish, which makes the object visible, or abort. Parts
     * count from 1. With `at_once` 1, `offset` is the sum of the sizes of the parts before.
     * `begin` may be NULL. */
    qn_status (*begin)(void *object, qn_error *err);
    qn_status (*send)(void *object, uint32_t number, uint64_t offset, const void *bytes,
                      size_t size, qn__object_tag *tag, qn_error *err);
    qn_status (*finish)(void *object, const qn__object_tag *tag, uint32_t parts, qn_error *err);
    void (*abort)(void *object);

    /* Small objects that several processes write. `look` reads one: at most `capacity` - 1 bytes
     * and a NUL, and the seconds since it was written, by the store's clock. */
    qn_status (*look)(void *object, char *text, size_t capacity, qn__object_tag *tag,
                      int64_t *seconds, qn_error *err);
    /* Writes it if it is still in the state `tag`, which then is the new state; *done is 0 if it is
     * in another one. */
    qn_status (*swap)(void *object, const char *text, qn__object_tag *tag, int *done,
                      qn_error *err);
    /* Removes an object, if it is there. */
    qn_status (*remove)(void *object, qn_error *err);
} qn__write_kind;

/* The kind of an address. NULL and QN_UNSUPPORTED: such addresses can only be read. */
const qn__write_kind *qn__write_kind_of(const char *address, qn_error *err);

extern const qn__write_kind qn__write_s3, qn__write_s3a, qn__write_gs, qn__write_hdfs,
    qn__write_webhdfs, qn__write_swebhdfs;

#endif
