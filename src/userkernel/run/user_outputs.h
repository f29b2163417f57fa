/* Where the outputs of a user's kernel are computed: in memory, or in the files that they become.
 */
#ifndef QN_USERKERNEL_RUN_USER_OUTPUTS_H
#define QN_USERKERNEL_RUN_USER_OUTPUTS_H

#include "base/files/mapped_file.h"
#include "userkernel/run/user_kernel.h"

/* Makes the outputs that are not memory of the caller, all zeros. Where they would take a large
 * part of the memory, those with a writer are made in their files. Fails with QN_USAGE (a picture
 * of another shape), QN_IO or QN_MEMORY. */
qn_status qn__user_outputs_make(qn_kernel *kernel, const uint64_t shape[QN_KERNEL_DIMENSIONS],
                                qn_error *err);

/* A second place for the output `part`, to be released with qn__user_array_release and, if *file is
 * not NULL, qn__mapped_file_close instead. */
qn_status qn__user_spare_make(const qn_kernel *kernel, uint32_t part, qn__user_array *spare,
                              qn__mapped_file **file, qn_error *err);

/* Releases the outputs that are in files. Called after the files were committed or dropped. */
void qn__user_outputs_close(qn_kernel *kernel);

#endif
