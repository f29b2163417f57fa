/* Files of the cache folder that have what memory may not hold. */
#ifndef QN_BASE_FILES_CACHE_FILE_H
#define QN_BASE_FILES_CACHE_FILE_H

#include "base/files/mapped_file.h"

/* Makes a file of `bytes` zeros, as qn__mapped_file_create, after other entries but `entry` left
 * the folder where they take its space ("": any may). Fails with QN_IO or QN_MEMORY. */
qn_status qn__cache_file_make(const char *entry, uint64_t bytes, qn__mapped_file **out,
                              qn_error *err);

#endif
