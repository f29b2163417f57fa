/* The user's folder for what can be made again: compiled programs of GPUs, decoded images.
 *
 * It is $QUERN_CACHE, else $XDG_CACHE_HOME/quern, else ~/.cache/quern. Only what this user alone
 * may write is used. */
#ifndef QN_BASE_FILES_CACHE_FOLDER_H
#define QN_BASE_FILES_CACHE_FOLDER_H

#include "base/error.h"
#include <limits.h>
#include <sys/stat.h>

/* Bytes that the name of a file in the folder may have, with the slash before it. */
enum { QN__CACHE_NAME = 80 };

/* Writes the folder's path, which leaves space for such a name. With `make` the folder and its
 * parents are made, for this user only; else a folder that does not exist is not a failure, and
 * `path` is then "". Fails with QN_USAGE (the environment names none) or QN_IO (it cannot be made,
 * is not a folder, or qn__cache_trust refuses it); `path` is then "" too. */
qn_status qn__cache_folder(int make, char path[PATH_MAX], qn_error *err);

/* Refuses with QN_IO what belongs to another user, and what others may write to. */
qn_status qn__cache_trust(const struct stat *info, const char *path, qn_error *err);

#endif
