/* The one table in a ZIP archive, as web pages offer data. Archives of images, of arrays (NPZ) and
 * of several texts are left to their readers. */
#ifndef QN_DATA_BYTES_ZIP_FILE_H
#define QN_DATA_BYTES_ZIP_FILE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__zip_file qn__zip_file;

/* 1 when a file that begins with these bytes is a ZIP archive. */
int qn__is_zip(const uint8_t *first, size_t size);

/* 1 when a file in an archive has a name as tables have: "a.csv". */
int qn__names_table(const char *name);
/* 1 when it has a name as texts have, too: "a.txt" and "a.txt.gz". */
int qn__names_text(const char *name);
/* Whether what follows the last dot of a name is one of these, in any case; NULL ends the list. */
int qn__ends_with_one_of(const char *name, const char *const *endings);

/* Opens the file `part` of the archive; NULL: its only file. *out is NULL, with QN_OK, where the
 * archive is one of images, arrays or several texts. `file` and `path` must outlive *out. Fails
 * with QN_INPUT (the file is missing; there are several tables; it is a document), QN_IO,
 * QN_MEMORY or QN_UNSUPPORTED (a build without zlib). */
qn_status qn__zip_file_open(int file, const char *path, uint64_t size, const char *part,
                            qn__zip_file **out, qn_error *err);
/* As read of qn__unpacker (packing.h). */
qn_status qn__zip_file_read(qn__zip_file *zipped, void *bytes, size_t size, size_t *got,
                            qn_error *err);
void qn__zip_file_close(qn__zip_file *zipped); /* accepts NULL */

#endif
