/* Writing to addresses (base/files/remote.h): each object is seen whole or not at all. `store`
 * implements it.
 *
 * Bytes are sent in parts while more are added. What was sent is not visible before the object is
 * published. A process that is killed leaves at most parts that nobody sees. */
#ifndef QN_BASE_FILES_REMOTE_WRITE_H
#define QN_BASE_FILES_REMOTE_WRITE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__remote_writer qn__remote_writer;

/* Begins an object. Only credentials and the address are looked at; nothing is sent. Fails with
 * QN_UNSUPPORTED (addresses of this kind cannot be written to), QN_INPUT, QN_IO or QN_MEMORY. */
qn_status qn__remote_writer_create(const char *address, qn__remote_writer **out, qn_error *err);
/* The functions below fail with QN_IO or QN_MEMORY; after a failure only drop is allowed. */
qn_status qn__remote_writer_add(qn__remote_writer *writer, const void *bytes, size_t size,
                                qn_error *err);
/* 1: bytes that were added can be replaced; 0: they are sent in order. */
int qn__remote_writer_replaces(const qn__remote_writer *writer);
/* Replaces the first `size` bytes of those that were added. They are in the first part, which is
 * sent last: at most 8 MiB. */
qn_status qn__remote_writer_replace(qn__remote_writer *writer, const void *bytes, size_t size,
                                    qn_error *err);
/* Sends what is left. Then only the publication is missing. */
qn_status qn__remote_writer_complete(qn__remote_writer *writer, qn_error *err);
/* Makes the object visible, in place of an older one. */
qn_status qn__remote_writer_publish(qn__remote_writer *writer, qn_error *err);
/* Frees the writer; what was sent and not published is removed. Accepts NULL. */
void qn__remote_writer_drop(qn__remote_writer *writer);

/* Whether this process may write an object there, found by asking the store: an upload is begun and
 * ended. Fails with QN_IO, QN_INPUT, QN_UNSUPPORTED or QN_MEMORY. */
qn_status qn__remote_may_write(const char *address, qn_error *err);

/* Removes an object, if it is there. Fails as above. */
qn_status qn__remote_remove(const char *address, qn_error *err);

/* A lease: an object by which one process at a time owns a place in a store, such as a folder of
 * checkpoints. Its holder writes it anew every 20 seconds. One that is a minute old is nobody's.
 * Ages are by the store's clock. */
typedef struct qn__lease qn__lease;

/* Who holds a lease, for messages; and whether a rank of the same owner held it before. */
typedef struct qn__lease_holder {
    char process[24], host[256];
    int inherited;
} qn__lease_holder;

/* Takes the lease `address`. `owner` is 0, or the number of a run whose rank this is: the lease of
 * another rank of it is taken if `may`, which may be NULL, returns 1. A holder that may have ended
 * without removing it is waited for, at most a minute. QN_BUSY: *holder has it, which is alive, or
 * `may` returned 0; `process` is empty then. Otherwise fails as qn__remote_writer_create. */
qn_status qn__lease_take(const char *address, uint64_t owner, int (*may)(void *user), void *user,
                         qn__lease_holder *holder, qn__lease **out, qn_error *err);
/* Asks the store whether the lease is still this process's. 0: it is not, or the store does not
 * answer. */
int qn__lease_held(qn__lease *lease);
/* Removes the lease, if it is this process's. Accepts NULL. */
void qn__lease_release(qn__lease *lease);

#endif
