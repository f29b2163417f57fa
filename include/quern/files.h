/* The files of a run: whether they can be written, and whether one would overwrite another. */
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
    QN_FILE_READ = 1,      /* a file that is read */
    QN_FILE_WRITE,         /* a file that is written or replaced as a whole */
    QN_FILE_STREAM,        /* a file that is open for writing, such as the standard output */
    QN_FOLDER_RUN,         /* qn_train_options.run_dir */
    QN_FOLDER_CHECKPOINTS, /* qn_train_options.checkpoint_dir */
    QN_FILES_READ,         /* what is read as qn_data_open_files has it: a file, a folder, a pattern
                              or a list of files */
    QN_FOLDER_WRITE        /* a folder for files with the names of items, as of
                              qn_predictions_write for masks, or for predictions after each stage
                              of a training (stage1-test.csv): PNG files of QN_FILES_READ and
                              files with such names must not lie in it */
} qn_file_use;

/* One path of a run. The texts are read during the call only. */
typedef struct qn_file {
    size_t size;      /* sizeof(qn_file), in each element */
    const char *path; /* NULL: this element is skipped */
    const char *name; /* for messages: "--data", "the model"; NULL only where `path` is */
    qn_file_use use;
} qn_file;

/* Fails when writing one file of the `count` elements would destroy another one, or when two
 * outputs name the same file. The files that a run keeps in its folders count too, all files in a
 * folder that is read, those of patterns and lists, and a list itself. Paths are compared as files:
 * symbolic links, "." and ".." make no difference, and a file that does not exist yet is compared
 * by the place it would have. Several streams may name one file. `files` may be NULL when `count`
 * is 0.
 *
 * Changes nothing. Fails with QN_USAGE (the message names both files) or QN_MEMORY. */
QN_API qn_status qn_files_compare(const qn_file *files, uint32_t count, qn_error *err);

/* Does the same, and checks that the files can be written. For a program that computes for hours
 * before it writes.
 *
 * Also fails with QN_IO, for the first element that cannot be written. Its folder is missing or
 * takes no new file, or the path of a file names a folder. Or an existing file is protected or not
 * a regular file. For a folder of a run, the folder above it must exist. The check creates a
 * temporary file in each folder and removes it. It also removes temporary files that processes
 * which no longer run left there. No other file changes. */
QN_API qn_status qn_files_check(const qn_file *files, uint32_t count, qn_error *err);

/* Removes the temporary files that the library has open in this process. For a signal handler that
 * ends the process with _exit afterwards: it is safe in a signal handler. Writes in progress fail
 * after it. Complete files are not touched. */
QN_API void qn_files_abandon(void);

/* The bytes of a file at a path or an address, with a zero byte after the last one. *bytes is the
 * caller's, for qn_file_bytes_free. A file of more than `most` bytes fails with QN_INPUT. Fails
 * also with QN_IO, QN_INPUT (the store has none), QN_UNSUPPORTED (addresses need libcurl) or
 * QN_MEMORY. */
QN_API qn_status qn_file_read(const char *path, uint64_t most, char **bytes, size_t *size,
                              qn_error *err);
QN_API void qn_file_bytes_free(char *bytes); /* NULL: nothing happens */

/* 1: the path is a folder of this machine, or the address of a folder: it ends in a slash, or a
 * store has no file there, and others below it. 0 for NULL. */
QN_API int qn_path_is_folder(const char *path);

#ifdef __cplusplus
}
#endif
#endif
