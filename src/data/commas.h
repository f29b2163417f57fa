/* Categories that may be numbers with a decimal comma. */
#ifndef QN_DATA_COMMAS_H
#define QN_DATA_COMMAS_H

#include "data/schema.h"

/* A text such as "1,5" of a column whose texts may all be numbers; NULL: it has none. */
const char *qn__comma_example(const qn__feature *feature);

/* 1 + the first column that has such a text; 0: none has. `schema` may be NULL. */
uint32_t qn__comma_column(const qn__schema *schema);

#endif
