/* Built programs in the user's cache folder (cache_folder.h): those of GPUs, and user kernels. An
 * entry holds its key and a digest, so a damaged or foreign one is never used. Two processes may
 * read and write one entry at once: files are renamed when they are complete. */
#ifndef QN_BASE_FILES_PROGRAM_CACHE_H
#define QN_BASE_FILES_PROGRAM_CACHE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a note: why something is not cached, for a person; "" without a reason. */
enum { QN__PROGRAM_NOTE = 256 };

/* Finds the program of a key. `ending` is that of the file's name, such as ".kernel" or "". Without
 * an entry *program is NULL; otherwise it is the caller's, for qn__free. */
void qn__program_cache_load(const char *key, const char *ending, void **program, size_t *bytes,
                            char *note);

/* Stores a program, in place of an older one. */
void qn__program_cache_store(const char *key, const char *ending, const void *program, size_t bytes,
                             char *note);

/* Removes the oldest entries of an ending until at most `most` are left. */
void qn__program_cache_trim(const char *ending, uint32_t most);

#endif
