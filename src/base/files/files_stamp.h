/* A stamp that tells, without reading the content, whether a folder or an archive has changed. It
 * covers of each file the device and inode, the size, and the times of the last change of its bytes
 * and of its inode.
 *
 * A write to a file sets the second time to the clock's, and no system call can set it to another
 * value. So an equal stamp means equal bytes. The exception is a change so soon before the stamp
 * that a later write could get the same time: then the stamp is not settled, and proves nothing. */
#ifndef QN_BASE_FILES_FILES_STAMP_H
#define QN_BASE_FILES_FILES_STAMP_H

#include "base/digest/sha256.h"
#include <sys/stat.h>

typedef struct qn__files_stamp {
    int begun;
    qn__sha256 hash;
    struct timespec newest; /* when an inode changed last */
} qn__files_stamp;

/* 64 bits of what the stamp has of one file; also raises stamp->newest. */
uint64_t qn__files_stamp_of(const struct stat *info, qn__files_stamp *stamp);

/* Adds a file by its name and those bits; the order counts. A stamp begins as {0}. */
void qn__files_stamp_add(qn__files_stamp *stamp, const char *name, uint64_t bits);

/* The stamp as 64 hexadecimal digits. 0: it is not settled. */
int qn__files_stamp_end(const qn__files_stamp *stamp, char text[65]);

#endif
