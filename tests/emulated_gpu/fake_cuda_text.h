/* Programs of user kernels, for the fake CUDA driver. */
#ifndef QN_TESTS_FAKE_CUDA_TEXT_H
#define QN_TESTS_FAKE_CUDA_TEXT_H

#include "fake_cuda.h"

typedef struct text_program text_program;

/* Compiles a text whose kernel is qn_user_items or qn_user_trials. NULL: it does not compile. */
text_program *text_program_make(const char *text);
/* Its kernel, or NULL if that has another name. */
const qn_emulated_kernel *text_program_kernel(const text_program *program, const char *name);
/* Accepts NULL. */
void text_program_free(text_program *program);

#endif
