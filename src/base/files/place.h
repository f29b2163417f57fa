/* Which file a path names: one that exists, or one that will exist when it is written. Two paths
 * can name one file by symbolic links, hard links, "." and "..", or mounts. */
#ifndef QN_BASE_FILES_PLACE_H
#define QN_BASE_FILES_PLACE_H

#include <sys/types.h>

enum { QN__PLACE_REST = 512 };

typedef struct qn__place {
    int known;                 /* 0: not determined; such a place equals no other */
    dev_t device;              /* the nearest existing folder above it, */
    ino_t inode;               /* by its numbers, */
    char rest[QN__PLACE_REST]; /* and the names below that folder: "model", "new-folder/model" */
    mode_t mode;               /* of the existing file, as in struct stat; 0: there is none */
    dev_t own_device;          /* of the existing file itself */
    ino_t own_inode;
} qn__place;

/* Determines the file of `path`. Symbolic links are followed, also one whose target does not
 * exist. */
void qn__place_of(const char *path, qn__place *out);

/* 1 when both paths name one file or folder. */
int qn__place_same(const qn__place *a, const qn__place *b);

/* The name of `file` within `folder` if it is directly in it, otherwise NULL. Neither must exist.
 * The text belongs to `file`. */
const char *qn__place_within(const qn__place *folder, const qn__place *file);

#endif
