#include "base/files/cache_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A folder of the environment: "" when the variable is not set. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

/* The first folder that the environment names; 0 when it names none, or one whose name is too long.
 * XDG_CACHE_HOME must be absolute, as its specification requires. */
static int folder_name(char folder[PATH_MAX]) {
    const char *const own = variable("QUERN_CACHE"), *const xdg = variable("XDG_CACHE_HOME"),
                      *const home = variable("HOME");
    int length = 0;
    if (own[0])
        length = snprintf(folder, PATH_MAX, "%s", own);
    else if (xdg[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/quern", xdg);
    else if (home[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/.cache/quern", home);
    return length > 0 && length < PATH_MAX - QN__CACHE_NAME;
}

/* Makes the folder and its parents, for this user only. */
static qn_status make_folder(char *folder, qn_error *err) {
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const int failed = mkdir(folder, 0700) != 0 && errno != EEXIST;
        if (failed)
            qn__fail_errno(err, "create the folder", folder);
        *slash = '/';
        if (failed)
            return QN_IO;
    }
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return qn__fail_errno(err, "create the folder", folder);
    return QN_OK;
}

qn_status qn__cache_trust(const struct stat *info, const char *path, qn_error *err) {
    if (info->st_uid != geteuid())
        return qn__fail(err, QN_IO, "%s belongs to another user", path);
    if (info->st_mode & (S_IWGRP | S_IWOTH))
        return qn__fail(err, QN_IO, "others may write to %s (chmod go-w fixes it)", path);
    return QN_OK;
}

/* The folder that the environment names; *exists becomes 0 when it merely does not exist. */
static qn_status find_folder(int make, char path[PATH_MAX], int *exists, qn_error *err) {
    struct stat info;
    *exists = 1;
    if (!folder_name(path))
        return qn__fail(err, QN_USAGE, "no folder is named by QUERN_CACHE, XDG_CACHE_HOME or HOME");
    if (make && make_folder(path, err) != QN_OK)
        return QN_IO;
    if (stat(path, &info) != 0) {
        *exists = errno != ENOENT;
        return *exists ? qn__fail_errno(err, "use the folder", path) : QN_OK;
    }
    if (!S_ISDIR(info.st_mode))
        return qn__fail(err, QN_IO, "%s is not a folder", path);
    return qn__cache_trust(&info, path, err);
}

qn_status qn__cache_folder(int make, char path[PATH_MAX], qn_error *err) {
    int exists = 0;
    const qn_status status = find_folder(make, path, &exists, err);
    if (status != QN_OK || !exists)
        path[0] = '\0';
    return status;
}
