/* Messages about types of Arrow columns that are not read: the name of the type, and a remedy. */
#ifndef QN_DATA_ARROW_ARROW_TYPES_H
#define QN_DATA_ARROW_ARROW_TYPES_H

#include "data/arrow/arrow_table.h"

/* Copies the name of the extension type that the column has ("arrow.uuid"), and returns 1; 0: it
 * has none. A longer name is cut. */
enum { QN__EXTENSION_CAPACITY = 64 };
int qn__arrow_extension(const struct ArrowSchema *type, char name[QN__EXTENSION_CAPACITY]);

/* Fails with QN_INPUT, with the type and the name of the column. */
qn_status qn__arrow_refuse_type(const qn__arrow_table *table, uint64_t column, qn_error *err);

#endif
