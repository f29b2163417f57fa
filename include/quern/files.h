/* The files of a run as a whole: whether they can be written, and whether one would overwrite
 * another. */
#ifndef QUERN_FILES_H
#define QUERN_FILES_H

#include <quern/export.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a run does with a path. */
typedef enum qn_file_use {
    QN_FILE_READ = 1,     /* a file that is read */
    QN_FILE_WRITE,        /* a file that is written, or replaced, as a whole */
    QN_FILE_STREAM,       /* a file that is open for writing, such as the standard output */
    QN_FOLDER_RUN,        /* qn_train_options.run_dir */
    QN_FOLDER_CHECKPOINTS /* qn_train_options.checkpoint_dir */
} qn_file_use;

typedef struct qn_file {
    size_t size;      /* sizeof(qn_file) */
    const char *path; /* NULL: the entry is passed over */
    const char *name; /* for messages: "--data", "the model" */
    qn_file_use use;
} qn_file;

/* Fails when two of the files are one, and writing the one would destroy the other or lose its own
 * bytes. The files that a run keeps in its folders count too. Paths are compared as files, so
 * links, "." and ".." make no difference, and files that do not exist yet are compared as they will
 * be. Streams may be one file. Nothing is changed. QN_USAGE names both files. */
QN_API qn_status qn_files_compare(const qn_file *files, uint32_t count, qn_error *err);

/* The same, and fails with QN_IO when a file cannot be written: its folder is missing or takes no
 * new file, the path names a folder, or what is there is protected or not a regular file. Of a
 * folder, the folder above it has to exist. For that, a temporary file is made and removed where
 * files will be written; temporary files that dead processes left there are removed too. A program
 * that writes files hours later calls this before it starts. */
QN_API qn_status qn_files_check(const qn_file *files, uint32_t count, qn_error *err);

/* Removes the temporary files that the library has open in this process. For a signal handler that
 * ends the process with _exit straight afterwards: it may be called in a signal handler. Writes
 * under way fail after it. Files that are complete are not touched. */
QN_API void qn_files_abandon(void);

#ifdef __cplusplus
}
#endif
#endif
