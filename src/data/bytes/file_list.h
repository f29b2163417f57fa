/* The files that are read as one table: those that a caller names, one by one, by a folder, by a
 * pattern (glob.h) or by a list of paths (docs/exactness.md 2.12). */
#ifndef QN_DATA_BYTES_FILE_LIST_H
#define QN_DATA_BYTES_FILE_LIST_H

#include "base/error.h"
#include "data/bytes/folder_keys.h"
#include "data/bytes/name_blocks.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__listed_file {
    char *path;          /* in `names` of the list */
    qn__folder_key *key; /* as many as the list says */
    size_t below;        /* where in `path` the part below the folder begins that a caller named, or
                            below the first wildcard; SIZE_MAX: the file was named by itself */
    uint32_t share, shares; /* of a folder or an archive of images: the images that are read are
                               share `share` of `shares` equal ones; 0 of 0: all */
    uint32_t further;       /* shares after it that are read, too */
} qn__listed_file;

typedef struct qn__file_list {
    qn__listed_file *file; /* in the order of their rows, at least one */
    size_t count, capacity;
    size_t keys; /* of each file, with the same names */
    qn__name_blocks names;
} qn__file_list;

/* Finds the files. `images`: 1 if an option implies that the files of a folder are images. Some
 * inputs are always alone in their list: the standard input, the address of a server, a folder of
 * images. Fails with QN_INPUT (nothing is found, or what is found cannot be one table), QN_USAGE
 * (`count` is 0), QN_IO or QN_MEMORY. */
qn_status qn__file_list_make(const char *const *paths, size_t count, int images, qn__file_list *out,
                             qn_error *err);
void qn__file_list_release(qn__file_list *list);

#endif
