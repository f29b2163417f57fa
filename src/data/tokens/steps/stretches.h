/* Well-formed UTF-8 in texts of any bytes. */
#ifndef QN_DATA_TOKENS_STEPS_STRETCHES_H
#define QN_DATA_TOKENS_STEPS_STRETCHES_H

#include <stddef.h>
#include <stdint.h>

/* The end of the well-formed UTF-8 that begins at `at`, and of the broken bytes there. */
size_t qn__well_formed_end(const uint8_t *text, size_t size, size_t at);
size_t qn__broken_end(const uint8_t *text, size_t size, size_t at);

#endif
