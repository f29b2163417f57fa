#include "base/files/folder_make.h"

#include "base/files/file.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static qn_status make(const char *path, qn_error *err) {
    struct stat about;
    if (mkdir(path, 0777) == 0)
        return QN_OK;
    if (errno == EEXIST && stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return QN_OK;
    return qn__fail_errno(err, "make the folder", path);
}

qn_status qn__folder_make(const char *path, qn_error *err) {
    if (qn__remote_is(path)) /* a store has no folders: they are the beginnings of its names */
        return QN_OK;
    char *part = qn__copy_text(path, err);
    qn_status status = part ? QN_OK : QN_MEMORY;
    for (char *at = part; status == QN_OK && at && *at; at++) {
        if (*at != '/' || at == part)
            continue;
        *at = '\0';
        status = make(part, err);
        *at = '/';
    }
    if (status == QN_OK)
        status = make(path, err);
    qn__free(part);
    return status;
}

const char *qn__folder_slash(const char *folder) {
    const size_t size = strlen(folder);
    return size > 0 && folder[size - 1] == '/' ? "" : "/";
}

qn_status qn__folder_path(const char *folder, const char *name, char **out, qn_error *err) {
    size_t length = strlen(folder);
    while (length > 0 && folder[length - 1] == '/')
        length--;
    const size_t size = length + strlen(name) + 2;
    *out = qn__alloc(size, 1, err);
    if (!*out)
        return QN_MEMORY;
    snprintf(*out, size, "%.*s/%s", (int)length, folder, name);
    return QN_OK;
}

qn_status qn__folder_write(const char *folder, const char *name, const char *text, qn_error *err) {
    char *path;
    qn__writer *writer;
    qn_status status = qn__folder_path(folder, name, &path, err);
    if (status != QN_OK)
        return status;
    status = qn__writer_create(path, &writer, err);
    qn__free(path);
    if (status != QN_OK)
        return status;
    (void)qn__writer_add(writer, text, strlen(text), err);
    return qn__writer_commit(writer, err);
}
