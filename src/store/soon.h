/* Files that will be opened soon: stores are asked for them meanwhile, several at once.
 *
 * What came of a small file is kept until the set that it belongs to was read, so that a reader
 * that reads a set several times asks once. A larger file is held open until somebody opens it. Any
 * thread. */
#ifndef QN_STORE_SOON_H
#define QN_STORE_SOON_H

#include "store/object.h"

/* How a larger file is opened, and fetched as far as it is worth it; and closed. */
typedef struct qn__soon_way {
    int (*known)(const char *address, qn__remote_about *out); /* qn__cached_known */
    qn_status (*open)(const char *address, int *file);
    void (*close)(int file);
} qn__soon_way;

/* 0: so many wait that this one does not count; say it again later. `way` is used until the end of
 * the process. */
int qn__soon_add(const void *owner, const char *address, const qn__soon_way *way);
/* Forgets all that the owner added. */
void qn__soon_end(const void *owner);

/* Waits while the store is asked for the file. */
void qn__soon_wait(const char *address);
/* 1: the store was asked, with this *status. Where that is QN_OK, *out is the caller's, who frees
 * its bytes; else `err` says why. */
int qn__soon_find(const char *address, qn__object_first *out, qn_status *status, qn_error *err);
/* The file was opened: it need not be held open. */
void qn__soon_opened(const char *address);

#endif
