#include "base/files/place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 40 };

/* A path on its way to the nearest existing folder. The names that were removed from its end are in
 * the place's `rest`; `up` counts ".." components that cancel the name before them. */
typedef struct walk {
    char path[PATH_MAX];
    int up;
    int crossed; /* a ".." cancelled a name that does not exist: the rest may exist */
} walk;

/* Inserts a name before the rest. Returns 0 when it does not fit. */
static int put_before(qn__place *place, const char *name) {
    const size_t length = strlen(name), rest = strlen(place->rest), gap = rest > 0;
    if (length + gap + rest >= sizeof place->rest)
        return 0;
    memmove(place->rest + length + gap, place->rest, rest + 1);
    memcpy(place->rest, name, length);
    if (gap)
        place->rest[length] = '/';
    return 1;
}

/* Removes the last name of the path: "a/b" becomes "a", "a" becomes ".", "/a" becomes "/". */
static void cut_name(char *path, char **name) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
}

/* Replaces a symbolic link by its target. Returns 0 when the path is not a link. */
static int follow_link(walk *w) {
    char target[PATH_MAX], whole[PATH_MAX], *name;
    const ssize_t size = readlink(w->path, target, sizeof target - 1);
    if (size <= 0)
        return 0;
    target[size] = '\0';
    cut_name(w->path, &name);
    const int before = target[0] == '/' ? 0 : (int)(name - w->path);
    if (snprintf(whole, sizeof whole, "%.*s%s", before, w->path, target) >= (int)sizeof whole)
        return 0;
    strcpy(w->path, whole);
    return 1;
}

/* Moves the last name of the path into the rest. Returns 0 when that cannot be done. */
static int step_up(walk *w, qn__place *place) {
    char *name, copy[NAME_MAX + 1];
    cut_name(w->path, &name);
    if (snprintf(copy, sizeof copy, "%s", name) >= (int)sizeof copy)
        return 0;
    if (name == w->path)
        strcpy(w->path, ".");
    else if (name == w->path + 1)
        strcpy(w->path, "/");
    else
        name[-1] = '\0';
    if (strcmp(copy, ".") == 0 || *copy == '\0')
        return 1;
    if (strcmp(copy, "..") == 0) {
        w->up++;
        return 1;
    }
    if (w->up > 0) {
        w->up--;
        w->crossed = 1;
        return 1;
    }
    return put_before(place, copy);
}

/* Goes up until a folder exists. */
static int find_folder(walk *w, qn__place *place) {
    char real[PATH_MAX];
    for (int links = 0, steps = 0; steps < PATH_MAX; steps++) {
        const int there = realpath(w->path, real) != NULL;
        if (there && place->rest[0] && w->up == 0)
            break;
        if (there)
            strcpy(w->path, real);
        else if (links < MOST_LINKS && follow_link(w) && ++links)
            continue;
        if (strcmp(w->path, "/") == 0)
            break;
        if (!step_up(w, place))
            return 0;
    }
    return 1;
}

/* The same; the path that ".." gave is checked again. */
static int find_place(walk *w, qn__place *place) {
    for (int i = 0; i < MOST_LINKS; i++) {
        w->crossed = 0;
        if (!find_folder(w, place))
            return 0;
        if (!w->crossed)
            return 1;
        const size_t size = strlen(w->path);
        const int length = snprintf(w->path + size, sizeof w->path - size, "/%s", place->rest);
        if (length >= (int)(sizeof w->path - size))
            return 0;
        place->rest[0] = '\0';
    }
    return 0;
}

void qn__place_of(const char *path, qn__place *out) {
    struct stat info;
    walk w = {.up = 0};
    *out = (qn__place){0};
    if (*path == '\0' || snprintf(w.path, sizeof w.path, "%s", path) >= (int)sizeof w.path)
        return;
    if (stat(path, &info) == 0) {
        out->mode = info.st_mode;
        out->own_device = info.st_dev;
        out->own_inode = info.st_ino;
    }
    if (!find_place(&w, out) || stat(w.path, &info) != 0)
        return;
    out->device = info.st_dev;
    out->inode = info.st_ino;
    out->known = 1;
}

int qn__place_same(const qn__place *a, const qn__place *b) {
    if (a->mode && b->mode && a->own_device == b->own_device && a->own_inode == b->own_inode)
        return 1;
    return a->known && b->known && a->device == b->device && a->inode == b->inode &&
           strcmp(a->rest, b->rest) == 0;
}

const char *qn__place_within(const qn__place *folder, const qn__place *file) {
    const char *name = file->rest;
    if (!folder->known || !file->known)
        return NULL;
    if (S_ISDIR(folder->mode)) {
        if (file->device != folder->own_device || file->inode != folder->own_inode)
            return NULL;
    } else {
        const size_t length = strlen(folder->rest);
        if (file->device != folder->device || file->inode != folder->inode ||
            strncmp(name, folder->rest, length) != 0 || name[length] != '/')
            return NULL;
        name += length + 1;
    }
    return *name && !strchr(name, '/') ? name : NULL;
}
