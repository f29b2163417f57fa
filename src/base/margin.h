/* The number of readable bytes after the values of a table, and after bytes read from a file, which
 * may become such values. So a vector load at the end needs no special case. */
#ifndef QN_BASE_MARGIN_H
#define QN_BASE_MARGIN_H

#define QN__DATA_MARGIN 64

#endif
