/* The standard input as a file that can be read twice. */
#ifndef QN_DATA_BYTES_STANDARD_INPUT_H
#define QN_DATA_BYTES_STANDARD_INPUT_H

#include "base/error.h"

/* The path that means it, and what messages call it. */
#define QN__STANDARD_INPUT "-"
#define QN__STANDARD_INPUT_SHOWN "the standard input"

/* Opens it from its beginning; *file is the caller's. A regular file is opened anew. Of a pipe all
 * is copied, into a file without a name in TMPDIR (or /tmp), which takes the pipe's place: it can
 * be opened again. Fails with QN_INPUT (a terminal, or it is empty or closed) or QN_IO (a full
 * disk).
 */
qn_status qn__standard_input_open(int *file, qn_error *err);

#endif
