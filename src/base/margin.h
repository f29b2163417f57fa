#ifndef QN_BASE_MARGIN_H
#define QN_BASE_MARGIN_H

/* Readable bytes after the values of a table, and after what was read of a file, which may become
 * its values: vector loads need no special last case. */
#define QN__DATA_MARGIN 64

#endif
