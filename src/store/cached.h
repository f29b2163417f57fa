/* A file of a store that is open in this process: a sparse file of the cache folder, and a second
 * one that says which blocks of it are there. Processes share both.
 *
 * The second file, a map, begins with a head: whose it is, its size and tag. Then come a bit and a
 * digest for each block. A bit is set after its block was written. After a restart of the machine
 * the bits may be true of bytes that never reached the disk, so the digests are compared then. */
#ifndef QN_STORE_CACHED_H
#define QN_STORE_CACHED_H

#include "base/files/remote.h"
#include "store/object.h"
#include <pthread.h>

enum { QN__CACHED_BLOCK = 1 << 16, QN__CACHED_STREAMS = 8 };

/* A reader that goes forward through the file. */
typedef struct qn__cached_stream {
    uint64_t begin, next; /* the bytes that it has read one after the other */
} qn__cached_stream;

typedef struct qn__cached {
    struct qn__cached *following;
    char *address;
    qn__remote_about about;
    int users;     /* open descriptors in this process */
    int data, map; /* descriptors; map: -1 where all bytes are there from the beginning */
    dev_t device;  /* of `data` */
    ino_t inode;
    int ranges;      /* 0: the server sends all or nothing */
    uint8_t *mapped; /* the map's bytes, or NULL */
    size_t mapped_size;
    pthread_mutex_t guard;  /* of what follows */
    pthread_cond_t changed; /* blocks came, a request ended */
    int active;             /* requests that run or wait */
    int planned;            /* its reader tells what it will read */
    atomic_int stop;        /* the file is being closed */
    qn_status failed;       /* of a request, until a reader has been told */
    qn_error error;
    qn__cached_stream stream[QN__CACHED_STREAMS];
    unsigned streams; /* that have begun */
} qn__cached;

/* Opens it: asks the store, finds or makes the files of the cache. *out has one user. */
qn_status qn__cached_open(const char *address, qn__cached **out, qn_error *err);
/* 1: an earlier reading left parts of the file in the cache, which was *out then. */
int qn__cached_known(const char *address, qn__remote_about *out);
/* Frees it. Nothing uses it any more. */
void qn__cached_free(qn__cached *file);

/* The number of blocks. */
uint64_t qn__cached_blocks(const qn__cached *file);
/* 1: the block is there. */
int qn__cached_has(const qn__cached *file, uint64_t block);
/* Writes a block, which has `size` bytes. Fails with QN_IO. */
qn_status qn__cached_write(qn__cached *file, uint64_t block, const void *bytes, size_t size,
                           qn_error *err);

#endif
