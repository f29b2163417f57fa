/* Files and addresses that Quern does not read, but knows by name, and what helps. */
#ifndef QN_DATA_BYTES_NAMED_FORMATS_H
#define QN_DATA_BYTES_NAMED_FORMATS_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* A file that begins with these bytes, which no reader took. QN_INPUT, with the name of its format,
 * where it is certainly no table as text; QN_OK: it may be one. */
qn_status qn__named_format_check(const char *first, size_t size, const char *path, qn_error *err);

/* QN_INPUT where the path is an address of the network, such as "s3://bucket/file". */
qn_status qn__named_address_check(const char *path, qn_error *err);

#endif
