/* A file of the user's cache folder (cache_folder.h) as mapped memory: filled under a temporary
 * name and renamed, or opened for reading.
 *
 * Its pages belong to the kernel's file cache, so it may be larger than memory. Nothing is synced:
 * after a power failure a file may hold other bytes, so its user must store a checksum in it. */
#ifndef QN_BASE_FILES_MAPPED_FILE_H
#define QN_BASE_FILES_MAPPED_FILE_H

#include "base/error.h"
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct qn__mapped_file qn__mapped_file;

/* Makes a file of `bytes` zeros in a folder, with its space on the disk, to be written through
 * qn__mapped_file_bytes. Fails with QN_IO (a full disk, a file system that is read-only) or
 * QN_MEMORY. */
qn_status qn__mapped_file_create(const char *folder, size_t bytes, qn__mapped_file **out,
                                 qn_error *err);

/* Makes a file that was made larger, to `bytes`; what is added is zeros. Its bytes may move. On
 * failure (as create) it is as before. */
qn_status qn__mapped_file_grow(qn__mapped_file *file, size_t bytes, qn_error *err);

/* Renames a file that was made to `path`, in its folder, with its first `bytes` bytes, which can no
 * longer be written to. The bytes stay mapped, also when this fails (QN_IO). */
qn_status qn__mapped_file_publish(qn__mapped_file *file, const char *path, size_t bytes,
                                  qn_error *err);

/* Opens a regular file for reading. *out is NULL where there is none, which is not a failure. Fails
 * with QN_IO (also when others may write to it) or QN_MEMORY. Its time of change becomes now:
 * the oldest file is the one that was not used for longest. */
qn_status qn__mapped_file_open(const char *path, qn__mapped_file **out, qn_error *err);

/* Maps the first `bytes` bytes of a user's file, which the caller has open as `file` and saw as
 * `seen`, for reading. QN__DATA_MARGIN bytes after them can be read, too. Other programs may write
 * to it: qn__mapped_file_changed tells. Fails with QN_IO or QN_MEMORY. */
qn_status qn__mapped_file_borrow(int file, const struct stat *seen, const char *path, size_t bytes,
                                 qn__mapped_file **out, qn_error *err);

/* 1: it is such a file. */
int qn__mapped_file_is_borrowed(const qn__mapped_file *file);

/* Makes an open file `bytes` long, with its space on the disk. Without that, a page for which there
 * is none would end the program when it is written to; beyond the limit of a file's size a signal
 * would. Returns 0 with errno on failure. */
int qn__file_reserve(int file, size_t bytes);

uint8_t *qn__mapped_file_bytes(const qn__mapped_file *file); /* of an open one: only to read */
size_t qn__mapped_file_size(const qn__mapped_file *file);

/* The file descriptor, for reading at an offset; owned by `file`. Its flags, such as O_DIRECT, may
 * be changed. -1: no descriptor. */
int qn__mapped_file_descriptor(const qn__mapped_file *file);

/* Tells that this process, which made the file, has finished writing to it: only later writes count
 * as changes. Of a borrowed file nothing changes. */
void qn__mapped_file_written(qn__mapped_file *file);

/* 1: the file may have been written to since it was opened or published, or since the last call of
 * qn__mapped_file_written; `path` is then where it lies, or "". Its time, links or name may have
 * changed instead: another process used it. */
int qn__mapped_file_changed(const qn__mapped_file *file, char path[PATH_MAX]);

/* Tells while a file is filled from its beginning to its end: the first `bytes` bytes are written.
 * What was written some time ago goes to the disk and leaves memory, so that a file larger than
 * memory is never all in memory that has to be written first. */
void qn__mapped_file_wrote(qn__mapped_file *file, size_t bytes);

/* Removes a file that was not published. A qn__mapped_file; accepts NULL. */
void qn__mapped_file_close(void *file);

#endif
