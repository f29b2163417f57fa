/* The names of formats, for lists. */
#ifndef QN_DATA_OPEN_FORMAT_NAMES_H
#define QN_DATA_OPEN_FORMAT_NAMES_H

#include <stdint.h>

typedef struct qn__format_word {
    const char *name, *about;
} qn__format_word;

/* Format number `index` of those that are read, or written. Its name is NULL after the last. */
qn__format_word qn__format_read(uint32_t index);
qn__format_word qn__format_written(uint32_t index);

#endif
