/* The scheme of an address that stands in the place of a path: "s3" of "s3://bucket/key". */
#ifndef QN_BASE_FILES_SCHEME_H
#define QN_BASE_FILES_SCHEME_H

#include "base/error.h"
#include <stddef.h>

/* Length of the word before the first ':', 0 where the path is that of a file. A scheme begins with
 * a letter and has at least two letters or digits. "12:30.csv" and "./a:b.csv" have none. */
size_t qn__scheme_length(const char *path);

/* QN_OK for a path of a file, and for an address (base/files/remote.h). QN_USAGE for a path with a
 * scheme, which nobody took before: a file of that name is never meant. */
qn_status qn__scheme_refuse(const char *path, qn_error *err);

#endif
