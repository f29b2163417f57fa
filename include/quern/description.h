/* What data files say about themselves, read without their rows: the columns and the number of
 * items. Parquet files have such a description at their end. */
#ifndef QUERN_DESCRIPTION_H
#define QUERN_DESCRIPTION_H

#include <quern/export.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_description qn_description;

/* Reads the descriptions of files, folders, patterns and lists, as qn_data_open_files takes them,
 * which must have the same columns. Nothing else is read: a digest is not computed, and damaged
 * rows are not found. Fails with QN_INPUT (a missing file, one without a description, other
 * columns), QN_IO, QN_UNSUPPORTED or QN_MEMORY; *out is then NULL. */
QN_API qn_status qn_description_read(const char *const *paths, size_t count, qn_description **out,
                                     qn_error *err);
QN_API void qn_description_free(qn_description *description); /* accepts NULL */

/* "parquet". Texts are valid until the description is freed. */
QN_API const char *qn_description_format(const qn_description *description);
QN_API uint64_t qn_description_files(const qn_description *description);
QN_API uint64_t qn_description_items(const qn_description *description);
QN_API uint32_t qn_description_columns(const qn_description *description);
/* The name of a column, "" for one that does not exist. The last columns are keys of folders
 * (year=2026). */
QN_API const char *qn_description_name(const qn_description *description, uint32_t column);
/* Its type: "int32", "double", "text", "date", "timestamp", "list", "key of a folder" and others.
 */
QN_API const char *qn_description_type(const qn_description *description, uint32_t column);
/* 1: its values may be missing. */
QN_API int qn_description_may_miss(const qn_description *description, uint32_t column);

#ifdef __cplusplus
}
#endif

#endif
