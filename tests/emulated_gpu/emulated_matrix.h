/* Matrix instructions of the emulated GPU; what they do is told in
 * kernels/training/products/matrix_words.cl. */
#ifndef QN_TESTS_EMULATED_MATRIX_H
#define QN_TESTS_EMULATED_MATRIX_H

#include "emulated_gpu.h"

/* The words of kernels/runtime/prelude_c.h that the emulator defines. */
int qn_quarters(void);
void qn_matrix_begin(const int32_t *a, const int32_t *b);
void qn_matrix_end(void);
void qn_matrix_whole(int32_t *d, const int32_t *a, const int32_t *b);
void qn_matrix_part(int32_t *d, const int32_t *a, const int32_t *b);
void qn_copy(int32_t *to, const int32_t *from, uint32_t inside);
void qn_copies_end(void);
void qn_copies_wait(uint32_t but);

/* What a group left on its way, before the next begins. */
void qn_emulated_forget_copies(uint32_t lanes);

#endif
