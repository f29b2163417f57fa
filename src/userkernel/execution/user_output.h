/* Outputs of user kernels as files: NPY, raw numbers, pictures; and files that are larger than
 * memory. */
#ifndef QN_USERKERNEL_EXECUTION_USER_OUTPUT_H
#define QN_USERKERNEL_EXECUTION_USER_OUTPUT_H

#include "base/files/file.h"
#include "userkernel/execution/user_array.h"

/* Checks that an output can be written in the format of its path. ".png" needs the type uint8 and
 * two or three dimensions. While the shape of `a` is unknown its lengths are 0, and are not
 * checked. Fails with QN_USAGE. */
qn_status qn__user_output_check(const qn__user_array *a, const char *name, const char *path,
                                qn_error *err);

/* Makes an output of zeros in the file of a writer, so that it may be larger than memory: with its
 * space on the disk. *made is 0 where that is not possible: the array then needs memory, and
 * qn__user_output_write. Fails with QN_IO (a full disk). Release the array after the commit. */
qn_status qn__user_output_map(qn__user_array *a, const char *path, qn__writer *writer, int *made,
                              qn_error *err);

/* 1: the ending of the path is that of a picture, which has at least one row. */
int qn__user_output_is_picture(const char *path);

/* Writes an output in the format of its path: ".png", ".raw" (little-endian numbers) or NPY. One
 * that was mapped is already there. */
qn_status qn__user_output_write(const qn__user_array *a, const char *path, qn__writer *writer,
                                qn_error *err);

#endif
