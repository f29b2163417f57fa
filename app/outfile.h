/* A file that will be written at the end of a long run is looked at before the run starts. */
#ifndef APP_OUTFILE_H
#define APP_OUTFILE_H

#include <stddef.h>

/* Finds out whether `path` can be written: its folder takes a new file, and what stands there now
 * is a plain writable file, or nothing, and none of the `inputs` (entries may be NULL). Nothing at
 * `path` is touched, but temporary files that dead processes left beside it are removed. `flag` is
 * the option that named it, "-o". Returns -1, or an exit code after a message. */
int outfile_check(const char *path, const char *flag, const char *const *inputs, size_t count);

/* The same for two outputs, which must not be one file. */
int outfile_apart(const char *path, const char *flag, const char *other, const char *other_flag);

#endif
