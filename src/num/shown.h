/* Classes of pixels as a training sees them: moved with the picture of their item, and cut as it is
 * (docs/exactness.md 24.22, 24.23). */
#ifndef QN_NUM_SHOWN_H
#define QN_NUM_SHOWN_H

#include "num/program.h"
#include <stddef.h>

/* An item and its classes, program->answers of them. */
typedef struct qn__masked {
    uint64_t item; /* < 2^48 */
    const uint8_t *classes;
} qn__masked;

/* Bytes of working memory of qn__shown, aligned as those of qn__alloc; 0: where no program's
 * answers move. */
size_t qn__shown_space(const qn__program *program);

/* to = the classes of `own`, program->answers of them. `partner` is read where program->mix.
 * Returns how many of them count. Of a program with moves_answers. */
uint64_t qn__shown(const qn__program *program, uint32_t epoch, qn__masked own, qn__masked partner,
                   uint8_t *to, void *space);

#endif
