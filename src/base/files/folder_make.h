/* Folders and paths of files that are written in another program's layout. */
#ifndef QN_BASE_FILES_FOLDER_MAKE_H
#define QN_BASE_FILES_FOLDER_MAKE_H

#include "base/error.h"

/* Makes the folder and those above it, where they are missing. Fails with QN_IO or QN_MEMORY. */
qn_status qn__folder_make(const char *path, qn_error *err);

/* What stands between a folder and a name in it: "/", or "" where the folder ends with one. In a
 * store "a//b" is another name than "a/b". */
const char *qn__folder_slash(const char *folder);

/* "FOLDER/NAME" with one slash between them, released with qn__free; *out is NULL after a failure.
 * Fails with QN_MEMORY. */
qn_status qn__folder_path(const char *folder, const char *name, char **out, qn_error *err);

/* Writes a text as the file NAME of the folder, by way of a temporary one. Fails with QN_IO or
 * QN_MEMORY; an old file is then as before. */
qn_status qn__folder_write(const char *folder, const char *name, const char *text, qn_error *err);

#endif
