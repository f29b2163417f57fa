#include "paths.h"
#include "message.h"
#include <sys/stat.h>
#include <unistd.h>

static void add(paths *p, qn_file_use use, const char *name, const char *path) {
    if (path && p->count < MOST_PATHS)
        p->file[p->count++] =
            (qn_file){.size = sizeof(qn_file), .path = path, .name = name, .use = use};
}

int paths_is_folder(const char *path) {
    struct stat about;
    return path && stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

void paths_add(paths *p, qn_file_use use, const char *name, const char *path) {
    if (use != QN_FILE_READ || !paths_is_folder(path)) /* the reader reports it */
        add(p, use, name, path);
}

static void add_data(paths *p, const char *name, const char *path, const file_list *more) {
    add(p, QN_FILES_READ, name, source_is_stream(path) ? NULL : path);
    for (uint32_t i = 0; i < more->count; i++)
        add(p, QN_FILES_READ, name, source_is_stream(more->at[i]) ? NULL : more->at[i]);
}

void paths_add_files(paths *p, const char *name, const char *labels_name, source_files files) {
    add_data(p, name, files.path, files.more);
    add_data(p, labels_name, files.labels, files.labels_more);
}

void paths_add_sources(paths *p, const source_flags *from, const ranks_flags *ranks) {
    float fraction;
    source_files valid = source_valid(from);
    if (valid.path && read_float(valid.path, &fraction))
        valid.path = NULL;
    paths_add_files(p, from->parts ? "--data-parts" : "--data", "--labels", source_data(from));
    add(p, QN_FILES_READ, "--masks", from->masks);
    paths_add_files(p, "--test", "--test-labels", source_test(from));
    paths_add_files(p, "--valid", "--valid-labels", valid);
    paths_add(p, QN_FILE_READ, "--key-file", ranks_key_path(ranks));
}

/* A terminal or a pipe cannot be overwritten. */
static void add_stream(paths *p, int file, const char *name, const char *path) {
    struct stat about;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode))
        paths_add(p, QN_FILE_STREAM, name, path);
}

int paths_check(paths *p, int writes) {
    qn_error err;
    add_stream(p, STDOUT_FILENO, "the standard output", "/dev/stdout");
    add_stream(p, STDERR_FILENO, "the standard error output", "/dev/stderr");
    const qn_status status = writes ? qn_files_check(p->file, p->count, &err)
                                    : qn_files_compare(p->file, p->count, &err);
    return status == QN_OK ? -1 : message_error(&err);
}
