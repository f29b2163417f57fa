/* The regular files in a folder and in the folders inside it. */
#ifndef QN_DATA_FOLDER_H
#define QN_DATA_FOLDER_H

#include "data/tar.h"

/* Calls `each` for every file whose path has no part that begins with a dot, in any order: with its
 * path below the folder, 0 and its size. Links are followed. Fails with QN_INPUT (a link to
 * nothing, a device or a pipe, folders nested too deeply) or QN_IO. */
qn_status qn__folder_list(const char *path, qn__tar_file each, void *user, qn_error *err);

/* Reads the first `size` bytes of the file `name` below the folder. Fails with QN_IO, and with
 * QN_INPUT when it has become shorter. */
qn_status qn__folder_read(const char *path, const char *name, void *bytes, size_t size,
                          qn_error *err);

#endif
