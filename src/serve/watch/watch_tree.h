/* A folder with the folders in it: a walk over its files, and what the system tells of them. */
#ifndef QN_SERVE_WATCH_TREE_H
#define QN_SERVE_WATCH_TREE_H

#include "base/error.h"
#include <stdint.h>
#include <sys/stat.h>

/* A folder that the system tells of. */
typedef struct qn__watch_branch {
    int number;
    char *path; /* below the watched folder, with a slash at its end; "": that folder */
} qn__watch_branch;

typedef struct qn__watch_left_out {
    dev_t device;
    ino_t inode;
} qn__watch_left_out;

enum { QN__WATCH_LEFT_OUT = 2, QN__WATCH_NOTES = 5 };

typedef struct qn__watch_tree {
    const char *root;
    int place;   /* a descriptor of it */
    int inotify; /* -1: nothing is told */
    int flat;    /* 1: without the folders in it */
    int silent;  /* 1: of some folders nothing is told */
    int is_lost; /* 1: something was told that was not received, or may have been; for the owner to
                    set back */
    qn__watch_branch *branch; /* by their numbers; one may have several paths */
    size_t branches, capacity;
    qn__watch_left_out left_out[QN__WATCH_LEFT_OUT]; /* folders that are not part of it */
    int left_out_count;
    int notes; /* that were given, and about which folders */
    uint64_t noted[QN__WATCH_NOTES];
    void (*note)(void *user, const char *what, const char *path); /* for a person, or NULL */
    void *note_user;
} qn__watch_tree;

/* Whether a name is one of a file that is not finished, as programs write them. */
int qn__watch_is_temporary(const char *name);

/* Opens the folder; `poll`: nothing is to be told. `note`, `flat` are set before. Release *tree
 * also after a failure. */
qn_status qn__watch_tree_open(qn__watch_tree *tree, const char *root, int poll, qn_error *err);
void qn__watch_tree_release(qn__watch_tree *tree);
/* Leaves out a folder, or nothing where it is not there. */
void qn__watch_tree_leave_out(qn__watch_tree *tree, const char *path);

/* Why a file is shown. */
typedef enum qn__watch_why {
    QN__WATCH_SEEN,    /* by a walk */
    QN__WATCH_MADE,    /* it was made, and may be incomplete */
    QN__WATCH_WRITTEN, /* somebody closed it after writing, or gave it this name */
} qn__watch_why;

/* A file, by its path below the folder. `is_plain`: 1 is a regular file, as far as its folder says;
 * 0: it may be a link or something else. */
typedef qn_status qn__watch_found(void *user, const char *path, int is_plain, qn__watch_why why,
                                  qn_error *err);

/* Walks over all files. What is made meanwhile is seen by the walk, or told, or both. Folders that
 * cannot be read are left out with a note. */
qn_status qn__watch_tree_walk(qn__watch_tree *tree, qn__watch_found *found, void *user,
                              qn_error *err);
/* Takes what was told until now. Fails with QN_INPUT where the folder is gone, or as `found`. */
qn_status qn__watch_tree_told(qn__watch_tree *tree, qn__watch_found *found, void *user,
                              qn_error *err);

#endif
