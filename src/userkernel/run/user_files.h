/* The files that a run of a user kernel writes: outputs, series, the recipe. */
#ifndef QN_USERKERNEL_RUN_USER_FILES_H
#define QN_USERKERNEL_RUN_USER_FILES_H

#include "base/files/file.h"
#include "userkernel/run/user_kernel.h"

/* One file for each part, which is an output's or a series'; the last one is the recipe. */
enum { QN__USER_FILES = QN__USER_PARTS + 1 };

typedef struct qn__user_files {
    qn_kernel *kernel;
    const char *recipe; /* its path; NULL: none */
    int open;           /* 1: the files are open; 0 on ranks that are not the writer */
    qn__writer *writer[QN__USER_FILES];
    qn__writer *own[QN__USER_PARTS]; /* of outputs in parts: the rows of this rank */
} qn__user_files;

/* Opens the files for the rows of this rank; where no array is in parts, none. */
qn_status qn__user_files_open_own(qn__user_files *files, qn_error *err);

/* Opens all files before the work, so that a missing folder is found at once. */
qn_status qn__user_files_open(qn__user_files *files, qn_error *err);

/* Writes all, after the work. Collective: one rank writes. `err` is not NULL. */
qn_status qn__user_files_write(qn__user_files *files, qn_error *err);

/* Drops what was not written, and releases outputs that are in files. */
void qn__user_files_close(qn__user_files *files);

#endif
