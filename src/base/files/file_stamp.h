/* Whether a file stayed as it was while it was read.
 *
 * Each write sets the times of an inode to the kernel's clock, which moves in ticks of some
 * milliseconds. A write in the tick of an earlier one leaves the same times. So a stamp is taken
 * when the tick of the last change is over: every later write then gives another time.
 *
 * Two changes stay hidden: those on file systems whose times have whole seconds, within that
 * second; and stores to a mapping that was written to before, until the kernel writes the page. */
#ifndef QN_BASE_FILES_FILE_STAMP_H
#define QN_BASE_FILES_FILE_STAMP_H

#include "base/error.h"
#include <sys/stat.h>

/* The stamp of an open file. Waits for the end of a tick, at most 20 ms, unless
 * the file is sealed. Fails with QN_IO. */
qn_status qn__file_stamp_take(int file, const char *path, struct stat *out, qn_error *err);

/* The same wait for an inode that changed at `changed`. */
void qn__file_stamp_wait(const struct timespec *changed);

/* 1 when the bytes are the same. A file that only got other names, owners or permissions, or that
 * `path` does not name any more, is the same: its bytes were not written to. */
int qn__file_stamp_same(const struct stat *before, const struct stat *after, const char *path);

/* The message about a file that is not the same; returns `status`. */
qn_status qn__file_stamp_refuse(const char *path, qn_status status, qn_error *err);

#endif
