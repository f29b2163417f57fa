#include "data/bytes/folder.h"
#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "data/bytes/descriptor.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 32 };

typedef struct walk {
    const char *root;
    qn__folder_file each;
    void *user;
    struct stat above[DEEPEST + 1]; /* of the folders on the way to it */
    size_t below;                   /* where the path below the folder begins in `path` */
    char path[PATH_MAX];            /* of the entry that is looked at */
} walk;

static qn_status walk_folder(walk *w, size_t length, int depth, qn_error *err);

/* Whether the folder holds itself, by a link: then it would be read without end. */
static int holds_itself(const walk *w, const struct stat *info, int depth) {
    for (int i = 0; i <= depth; i++)
        if (w->above[i].st_dev == info->st_dev && w->above[i].st_ino == info->st_ino)
            return 1;
    return 0;
}

static qn_status refuse(const walk *w, const char *what, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s", w->path);
    return qn__remedy(err, QN_INPUT, "remove it from the folder");
}

static qn_status take_entry(walk *w, size_t length, int depth, qn_error *err) {
    struct stat info, link;
    if (stat(w->path, &info) != 0) {
        const int why = errno;
        if (why == ENOENT && lstat(w->path, &link) == 0 && S_ISLNK(link.st_mode))
            return refuse(w, "a link leads to nothing", err);
        errno = why;
        return qn__fail_errno(err, "read", w->path);
    }
    const int circle = S_ISDIR(info.st_mode) && holds_itself(w, &info, depth);
    if (S_ISDIR(info.st_mode) && depth < DEEPEST && !circle) {
        w->above[depth + 1] = info;
        return walk_folder(w, length, depth + 1, err);
    }
    if (S_ISREG(info.st_mode))
        return w->each(w->user, w->path + w->below, &info, err);
    return refuse(w,
                  circle                  ? "a link leads to a folder in which it lies"
                  : S_ISDIR(info.st_mode) ? "folders are nested too deeply"
                                          : "this is not a regular file",
                  err);
}

/* `length` is that of the folder's path, which stands in w->path. */
static qn_status walk_folder(walk *w, size_t length, int depth, qn_error *err) {
    DIR *folder = opendir(w->path);
    if (!folder)
        return qn__fail_errno(err, "open", w->path);
    qn_status status = QN_OK;
    const struct dirent *entry;
    for (errno = 0; status == QN_OK && (entry = readdir(folder)); errno = 0) {
        if (entry->d_name[0] == '.')
            continue;
        const size_t size = strlen(entry->d_name);
        if (length + size + 2 > sizeof w->path) {
            qn__fail(err, QN_INPUT, "the path of a file is too long");
            qn__at(err, "%s", w->root);
            status = qn__remedy(err, QN_INPUT, "move the folder to a shorter path");
            break;
        }
        w->path[length] = '/';
        memcpy(w->path + length + 1, entry->d_name, size + 1);
        status = take_entry(w, length + 1 + size, depth, err);
    }
    w->path[length] = '\0';
    if (status == QN_OK && errno != 0)
        status = qn__fail_errno(err, "read", w->path);
    closedir(folder);
    return status;
}

/* A list of the files at addresses below that of a folder. */
typedef struct far_walk {
    size_t below;
    qn__folder_file each;
    void *user;
} far_walk;

static int holds_hidden(const char *name) { return name[0] == '.' || strstr(name, "/.") != NULL; }

static qn_status take_far(void *user, const char *address, const qn__remote_about *about,
                          qn_error *err) {
    const far_walk *w = user;
    struct stat info = {0};
    if (holds_hidden(address + w->below))
        return QN_OK;
    qn__remote_listed_stat(address, about, &info);
    return w->each(w->user, address + w->below, &info, err);
}

static qn_status list_far(const char *path, qn__folder_file each, void *user, qn_error *err) {
    char prefix[PATH_MAX];
    const int size = snprintf(prefix, sizeof prefix, "%s%s", path, qn__folder_slash(path));
    if (size < 0 || size >= PATH_MAX)
        return qn__fail(err, QN_INPUT, "the path of the folder is too long");
    return qn__remote_list(prefix, 0, take_far,
                           &(far_walk){.below = (size_t)size, .each = each, .user = user}, err);
}

static qn_status read_far(const char *address, void *bytes, size_t size, struct stat *after,
                          qn_error *err) {
    int file;
    qn_status status = qn__remote_open(address, &file, err);
    if (status == QN_OK)
        status = qn__descriptor_read_at(file, address, 0, bytes, size, err);
    if (file >= 0 && qn__remote_stat(file, after) != 0)
        status = qn__fail_errno(err, "look at", address);
    qn__remote_close(file);
    return status;
}

qn_status qn__folder_list(const char *path, qn__folder_file each, void *user, qn_error *err) {
    if (qn__remote_is(path))
        return list_far(path, each, user, err);
    walk *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return QN_MEMORY;
    const int length = snprintf(w->path, sizeof w->path, "%s", path);
    *w = (walk){.root = path, .each = each, .user = user};
    qn_status status = QN_INPUT;
    if (length > 0 && (size_t)length < sizeof w->path) {
        memcpy(w->path, path, (size_t)length + 1);
        w->below = (size_t)length + 1;
        status = stat(path, &w->above[0]) == 0 ? walk_folder(w, (size_t)length, 0, err)
                                               : qn__fail_errno(err, "read", path);
    } else {
        qn__fail(err, QN_INPUT, "the path of the folder is too long");
    }
    qn__free(w);
    return status;
}

qn_status qn__folder_read(const char *path, const char *name, void *bytes, size_t size,
                          struct stat *after, qn_error *err) {
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", path, name); /* the list has checked its length */
    if (qn__remote_is(path))
        return read_far(whole, bytes, size, after, err);
    const int file = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return qn__fail_errno(err, "open", whole);
    qn_status status = qn__descriptor_read_at(file, whole, 0, bytes, size, err);
    if (fstat(file, after) != 0)
        status = qn__fail_errno(err, "look at", whole);
    close(file);
    return status;
}
