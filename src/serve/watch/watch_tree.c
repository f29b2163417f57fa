#include "serve/watch/watch_tree.h"

#include "base/digest/siphash.h"
#include "base/files/folder_make.h"
#include "base/files/other_hosts.h"
#include "base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { DEEPEST = 32, EVENTS = 1 << 16 };

static const qn__siphash_key key = {{0x7175657277617463, 0x6e616d6573303032}};

int qn__watch_is_temporary(const char *name) {
    static const char *const endings[] = {".tmp",       ".part",    ".partial", ".crdownload", "~",
                                          "._COPYING_", "-journal", "-wal",     "-shm"};
    const size_t size = strlen(name);
    for (size_t k = 0; k < sizeof endings / sizeof *endings; ++k) {
        const size_t end = strlen(endings[k]);
        if (size >= end && strcmp(name + size - end, endings[k]) == 0)
            return 1;
    }
    return name[0] == '.';
}

/* Each folder once. */
static void note(qn__watch_tree *tree, const char *what, const char *path) {
    const uint64_t name = qn__siphash(&key, path, strlen(path));
    for (int k = 0; k < tree->notes; ++k)
        if (tree->noted[k] == name)
            return;
    if (tree->notes == QN__WATCH_NOTES)
        return;
    tree->noted[tree->notes++] = name;
    if (tree->note)
        tree->note(tree->note_user, what, *path ? path : tree->root);
}

/* ---------------------------------------------------------------------------- folders that tell */

/* The first branch with this number or a greater one. */
static size_t place_of(const qn__watch_tree *tree, int number) {
    size_t low = 0, high = tree->branches;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (tree->branch[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static qn_status add_branch(qn__watch_tree *tree, int number, const char *path, qn_error *err) {
    size_t at = place_of(tree, number);
    for (; at < tree->branches && tree->branch[at].number == number; ++at)
        if (strcmp(tree->branch[at].path, path) == 0)
            return QN_OK;
    if (tree->branches == tree->capacity) {
        const size_t capacity = 2 * tree->capacity + 16;
        qn__watch_branch *more = qn__alloc(capacity, sizeof *more, err);
        if (!more)
            return QN_MEMORY;
        if (tree->branches)
            memcpy(more, tree->branch, tree->branches * sizeof *more);
        qn__free(tree->branch);
        tree->branch = more;
        tree->capacity = capacity;
    }
    char *own = qn__copy_text(path, err);
    if (!own)
        return QN_MEMORY;
    memmove(tree->branch + at + 1, tree->branch + at, (tree->branches - at) * sizeof *tree->branch);
    tree->branch[at] = (qn__watch_branch){number, own};
    ++tree->branches;
    return QN_OK;
}

static void remove_branch(qn__watch_tree *tree, size_t at) {
    qn__free(tree->branch[at].path);
    --tree->branches;
    memmove(tree->branch + at, tree->branch + at + 1, (tree->branches - at) * sizeof *tree->branch);
}

/* The folder has another name now. */
static void remove_below(qn__watch_tree *tree, const char *path) {
    const size_t size = strlen(path);
    for (size_t at = tree->branches; at-- > 0;) {
        const qn__watch_branch *b = &tree->branch[at];
        if (strncmp(b->path, path, size) != 0 || b->path[size] != '/')
            continue;
        const int number = b->number;
        remove_branch(tree, at);
        const size_t rest = place_of(tree, number);
        if (rest >= tree->branches || tree->branch[rest].number != number)
            (void)inotify_rm_watch(tree->inotify, number);
    }
}

static void tell_silence(qn__watch_tree *tree, const char *path, int why) {
    char text[400];
    if (!tree->silent && why == ENOSPC)
        snprintf(text, sizeof text,
                 "the system does not tell what changes in so many folders, so the rest is looked "
                 "at again and again: raise fs.inotify.max_user_watches with sysctl");
    else
        snprintf(text, sizeof text,
                 "the system does not tell what changes in the folder (%s), which is looked at "
                 "again and again",
                 strerror(why));
    if (!tree->silent)
        note(tree, text, path);
    tree->silent = 1;
}

static void tell_closed(qn__watch_tree *tree, const char *path, int why) {
    char text[200];
    snprintf(text, sizeof text, "the folder cannot be read: %s", strerror(why));
    note(tree, text, path);
}

/* From now on the folder tells what changes. It begins before the folder is listed, so that nothing
 * is missed. */
static qn_status listen(qn__watch_tree *tree, const char *full, const char *path, qn_error *err) {
    if (tree->inotify < 0)
        return QN_OK;
    const int number = inotify_add_watch(tree->inotify, full,
                                         IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE |
                                             IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    if (number >= 0)
        return add_branch(tree, number, path, err);
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
        tell_silence(tree, path, errno);
    return QN_OK;
}

/* ------------------------------------------------------------------------------------- the walk */

typedef struct walk {
    qn__watch_tree *tree;
    qn__watch_found *found;
    void *user;
    qn__watch_left_out above[DEEPEST + 1]; /* the folders on the way */
    size_t below;                          /* where the path below the watched folder begins */
    char path[PATH_MAX];                   /* what is looked at, with the watched folder */
} walk;

static qn_status walk_folder(walk *w, size_t length, int depth, qn_error *err);

static int is_among(const qn__watch_left_out *list, int count, const struct stat *info) {
    for (int k = 0; k < count; ++k)
        if (list[k].device == info->st_dev && list[k].inode == info->st_ino)
            return 1;
    return 0;
}

/* A link may lead to a folder in which it lies. */
static qn_status enter(walk *w, size_t length, int depth, const struct stat *info, qn_error *err) {
    if (w->tree->flat || is_among(w->tree->left_out, w->tree->left_out_count, info) ||
        is_among(w->above, depth, info))
        return QN_OK;
    if (depth > DEEPEST) {
        note(w->tree, "the folder is nested too deeply, and not looked at", w->path + w->below);
        return QN_OK;
    }
    if (length + 2 > sizeof w->path)
        return QN_OK;
    w->above[depth] = (qn__watch_left_out){info->st_dev, info->st_ino};
    memcpy(w->path + length, "/", 2);
    const qn_status status = walk_folder(w, length + 1, depth + 1, err);
    w->path[length] = '\0';
    return status;
}

static qn_status take_entry(walk *w, size_t length, int depth, unsigned type, qn_error *err) {
    struct stat info;
    const char *path = w->path + w->below;
    if (type == DT_REG)
        return w->found(w->user, path, 1, QN__WATCH_SEEN, err);
    if (type != DT_DIR && type != DT_LNK && type != DT_UNKNOWN)
        return QN_OK;
    if (fstatat(w->tree->place, path, &info, 0) != 0)
        return QN_OK;
    return S_ISDIR(info.st_mode) ? enter(w, length, depth, &info, err)
                                 : w->found(w->user, path, 0, QN__WATCH_SEEN, err);
}

/* `length` is that of the folder's path, with a slash, in w->path. */
static qn_status walk_folder(walk *w, size_t length, int depth, qn_error *err) {
    qn__watch_tree *tree = w->tree;
    qn_status status = listen(tree, w->path, w->path + w->below, err);
    const char *path = length > w->below ? w->path + w->below : ".";
    const int place = openat(tree->place, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = place < 0 ? NULL : fdopendir(place);
    if (!list) {
        if (errno != ENOENT && errno != ENOTDIR)
            tell_closed(tree, w->path + w->below, errno);
        if (place >= 0)
            close(place);
        return length > w->below ? status : qn__fail_errno(err, "read", tree->root);
    }
    /* Folders of other hosts may be mounted inside. */
    if (tree->inotify >= 0 && !tree->silent && qn__folder_is_shared(place))
        tree->silent = 1;
    for (const struct dirent *each; status == QN_OK && (each = readdir(list));) {
        const size_t size = strlen(each->d_name);
        if (qn__watch_is_temporary(each->d_name) || length + size + 2 > sizeof w->path)
            continue;
        memcpy(w->path + length, each->d_name, size + 1);
        status = take_entry(w, length + size, depth, each->d_type, err);
    }
    w->path[length] = '\0';
    closedir(list);
    return status;
}

/* The folders on the way to `path`; -1: it is not there any more. */
static int find_above(const qn__watch_tree *tree, const char *path,
                      qn__watch_left_out above[DEEPEST + 1]) {
    char folder[PATH_MAX] = ".";
    struct stat info;
    int depth = 0;
    for (const char *end = path; end; end = strchr(end + 1, '/')) {
        if (end > path)
            snprintf(folder, sizeof folder, "%.*s", (int)(end - path), path);
        if (depth > DEEPEST || fstatat(tree->place, folder, &info, 0) != 0)
            return -1;
        above[depth++] = (qn__watch_left_out){info.st_dev, info.st_ino};
    }
    return depth;
}

/* Walks over a folder inside the watched one; "": over all. */
static qn_status walk_below(qn__watch_tree *tree, const char *path, qn__watch_found *found,
                            void *user, qn_error *err) {
    walk w = {.tree = tree, .found = found, .user = user};
    struct stat info;
    const size_t root = strlen(tree->root);
    const char *slash = qn__folder_slash(tree->root);
    const int length = snprintf(w.path, sizeof w.path, "%s%s%s", tree->root, slash, path),
              depth = find_above(tree, path, w.above);
    w.below = root + strlen(slash);
    if (length < 0 || (size_t)length >= sizeof w.path || depth < 0)
        return QN_OK;
    if (!*path)
        return walk_folder(&w, (size_t)length, depth, err);
    return fstatat(tree->place, path, &info, 0) == 0 && S_ISDIR(info.st_mode)
               ? enter(&w, (size_t)length, depth, &info, err)
               : QN_OK;
}

qn_status qn__watch_tree_walk(qn__watch_tree *tree, qn__watch_found *found, void *user,
                              qn_error *err) {
    return walk_below(tree, "", found, user, err);
}

/* ---------------------------------------------------------------------------------- what is told
 */

static qn_status refuse_root(const qn__watch_tree *tree, qn_error *err) {
    qn__fail(err, QN_INPUT, "the folder was removed or renamed");
    qn__at(err, "%.400s", tree->root);
    return QN_INPUT;
}

/* Something has this name now. A link may be to a folder. */
static qn_status take_name(qn__watch_tree *tree, const char *path, qn__watch_why why,
                           qn__watch_found *found, void *user, qn_error *err) {
    struct stat info;
    if (fstatat(tree->place, path, &info, 0) != 0)
        return QN_OK;
    return S_ISDIR(info.st_mode) ? walk_below(tree, path, found, user, err)
                                 : found(user, path, 0, why, err);
}

/* An event of a folder, whose path is `folder`. */
static qn_status take_event(qn__watch_tree *tree, const struct inotify_event *event,
                            const char *folder, qn__watch_found *found, void *user, qn_error *err) {
    char path[PATH_MAX];
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
        return *folder ? QN_OK : refuse_root(tree, err);
    const int size = event->len ? snprintf(path, sizeof path, "%s%s", folder, event->name) : -1;
    if (size < 0 || (size_t)size >= sizeof path || qn__watch_is_temporary(event->name))
        return QN_OK;
    if (event->mask & IN_MOVED_FROM) {
        remove_below(tree, path);
        return QN_OK;
    }
    return take_name(tree, path, event->mask & IN_CREATE ? QN__WATCH_MADE : QN__WATCH_WRITTEN,
                     found, user, err);
}

/* The folder may have several paths, and the list of them may change meanwhile. */
static qn_status take_of_all(qn__watch_tree *tree, const struct inotify_event *event,
                             qn__watch_found *found, void *user, qn_error *err) {
    char folder[PATH_MAX];
    qn_status status = QN_OK;
    for (size_t k = 0; status == QN_OK; ++k) {
        const size_t at = place_of(tree, event->wd) + k;
        if (at >= tree->branches || tree->branch[at].number != event->wd)
            break;
        snprintf(folder, sizeof folder, "%s", tree->branch[at].path);
        status = take_event(tree, event, folder, found, user, err);
    }
    return status;
}

static void forget(qn__watch_tree *tree, int number) {
    const size_t at = place_of(tree, number);
    while (at < tree->branches && tree->branch[at].number == number)
        remove_branch(tree, at);
}

qn_status qn__watch_tree_told(qn__watch_tree *tree, qn__watch_found *found, void *user,
                              qn_error *err) {
    static _Thread_local _Alignas(struct inotify_event) char events[EVENTS];
    qn_status status = QN_OK;
    for (ssize_t size; status == QN_OK && tree->inotify >= 0 &&
                       (size = read(tree->inotify, events, sizeof events)) > 0;)
        for (ssize_t at = 0; status == QN_OK && at < size;) {
            const struct inotify_event *event = (const void *)(events + at);
            at += (ssize_t)(sizeof *event + event->len);
            tree->is_lost |= (event->mask & IN_Q_OVERFLOW) != 0;
            if (event->mask & IN_IGNORED)
                forget(tree, event->wd);
            else
                status = take_of_all(tree, event, found, user, err);
        }
    return status;
}

/* -------------------------------------------------------------------------------------- its life
 */

qn_status qn__watch_tree_open(qn__watch_tree *tree, const char *root, int poll, qn_error *err) {
    tree->root = root;
    tree->inotify = -1;
    tree->place = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree->place < 0)
        return qn__fail_errno(err, "read", root);
    /* The system does not tell what other hosts do. */
    if (!poll && !qn__folder_is_shared(tree->place)) {
        tree->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (tree->inotify < 0)
            tell_silence(tree, "", errno);
    }
    tree->silent |= tree->inotify < 0;
    return QN_OK;
}

void qn__watch_tree_leave_out(qn__watch_tree *tree, const char *path) {
    struct stat info;
    if (stat(path, &info) == 0 && tree->left_out_count < QN__WATCH_LEFT_OUT)
        tree->left_out[tree->left_out_count++] = (qn__watch_left_out){info.st_dev, info.st_ino};
}

void qn__watch_tree_release(qn__watch_tree *tree) {
    while (tree->branches > 0)
        qn__free(tree->branch[--tree->branches].path);
    qn__free(tree->branch);
    if (tree->inotify >= 0)
        close(tree->inotify);
    if (tree->place >= 0)
        close(tree->place);
}
