/* Which file a path names: one that exists, or one that will exist when it is written. Two paths
 * can name one file by symbolic links, hard links, "." and "..", or mounts. */
#ifndef QN_BASE_PLACE_H
#define QN_BASE_PLACE_H

#include <sys/types.h>

enum { QN__PLACE_REST = 512 };

typedef struct qn__place {
    int known;                 /* 0: it could not be found out; such a place equals no other */
    dev_t device;              /* the nearest folder above it that exists, */
    ino_t inode;               /* by its numbers, */
    char rest[QN__PLACE_REST]; /* and the names below that folder: "model", "new-folder/model" */
    mode_t mode;               /* what is there: as in struct stat; 0: nothing */
    dev_t own_device;          /* its own numbers, where something is there */
    ino_t own_inode;
} qn__place;

/* Finds out where `path` leads. Symbolic links are followed, also one that points at nothing. */
void qn__place_of(const char *path, qn__place *out);

/* 1 when both paths name one file or folder. */
int qn__place_same(const qn__place *a, const qn__place *b);

/* The name of `file` within `folder` when it is directly in it; else NULL. Neither has to exist.
 * The text belongs to `file`. */
const char *qn__place_within(const qn__place *folder, const qn__place *file);

#endif
