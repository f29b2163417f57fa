/* A user kernel as machine code: compiled by the system's C compiler, and kept in the user's cache
 * folder. */
#ifndef QN_USERKERNEL_COMPILER_USER_COMPILE_H
#define QN_USERKERNEL_COMPILER_USER_COMPILE_H

#include "base/system/library.h"
#include "userkernel/compiler/user_program.h"

typedef struct qn__user_code {
    qn__library library;
    qn__user_grain *grain;
    int file;           /* the descriptor that it was loaded from, or -1 */
    char compiler[256]; /* its path */
    int cached;         /* 1: it was compiled before */
    char note[256];     /* why it could not be kept, for a person; "" */
} qn__user_code;

/* Compiles a kernel, or finds what was compiled before from the same text by the same compiler for
 * the same processor. The compiler is that of CC, else cc, gcc or clang in PATH. It is tested with
 * known answers: one whose results deviate from C's rules is refused.
 *
 * On success qn__user_code_release unloads it. Fails with QN_UNSUPPORTED (no compiler, one that
 * refuses the program or computes wrongly), QN_IO or QN_MEMORY. */
qn_status qn__user_code_make(const qn__user_source *source, qn__user_code *out, qn_error *err);
/* Also of one that failed, and again. Not of zeros. */
void qn__user_code_release(qn__user_code *code);

#endif
