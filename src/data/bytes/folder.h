/* The regular files in a folder and in the folders inside it. */
#ifndef QN_DATA_BYTES_FOLDER_H
#define QN_DATA_BYTES_FOLDER_H

#include "base/error.h"
#include <stddef.h>
#include <sys/stat.h>

/* Called for a file with its path below the folder. A status other than QN_OK ends the listing. */
typedef qn_status (*qn__folder_file)(void *user, const char *name, const struct stat *info,
                                     qn_error *err);

/* Calls `each` for every file whose path has no part that begins with a dot, in any order. Links
 * are followed, and `info` is that of the file itself. Fails with QN_INPUT (a link to
 * nothing, a device or a pipe, folders nested too deeply) or QN_IO. */
qn_status qn__folder_list(const char *path, qn__folder_file each, void *user, qn_error *err);

/* Reads the first `size` bytes of the file `name` below the folder, and sets *after to the state of
 * the file after that. Fails with QN_IO, and with QN_INPUT when it has become shorter. */
qn_status qn__folder_read(const char *path, const char *name, void *bytes, size_t size,
                          struct stat *after, qn_error *err);

#endif
