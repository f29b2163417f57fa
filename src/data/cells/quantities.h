/* Texts that are numbers with a currency, a percent sign, a unit or separators of thousands: read
 * as categories, where a quantity was meant. */
#ifndef QN_DATA_CELLS_QUANTITIES_H
#define QN_DATA_CELLS_QUANTITIES_H

#include "data/table/schema.h"

/* A text such as "$0.50", where all `count` texts are of this form, with the same signs around the
 * number, and there are two at least; NULL: they are not. */
const char *qn__quantity_example(char *const *texts, uint32_t count);

#endif
