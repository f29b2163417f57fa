/* Bytes that go to an open file by write(2). */
#ifndef QN_BASE_FILES_WRITE_WHOLE_H
#define QN_BASE_FILES_WRITE_WHOLE_H

#include <stddef.h>

/* Writes all bytes to `file`, from its position on. Returns 0, or why it failed as errno has it; a
 * part may be written then. */
int qn__write_whole(int file, const void *bytes, size_t size);

#endif
