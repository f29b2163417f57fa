/* The files of a run (quern/files.h): whether they can be written, and which are the same file. */
#include "base/argument.h"
#include "base/encoding.h"
#include "base/error.h"
#include "base/files/leftovers.h"
#include "base/files/place.h"
#include "base/files/remote.h"
#include "base/files/remote_write.h"
#include "base/files/scheme.h"
#include "base/files/unfinished.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/bytes/file_list.h"
#include "data/bytes/server_address.h"
#include "data/bytes/source.h"
#include "data/bytes/standard_input.h"
#include "report/record/record.h"
#include "train/checkpoint.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <quern/files.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_folder(const qn_file *f) {
    return f->use == QN_FOLDER_RUN || f->use == QN_FOLDER_CHECKPOINTS || f->use == QN_FOLDER_WRITE;
}

/* ------------------------------------------------------------------------------ identical files */

/* Predictions after a stage of a training: stage1-test.csv, stage2-valid.csv and so on. */
static int is_of_stage(const char *name) {
    if (strncmp(name, "stage", 5) != 0 || name[5] < '0' || name[5] > '9')
        return 0;
    name += 5 + strspn(name + 5, "0123456789");
    return strcmp(name, "-test.csv") == 0 || strcmp(name, "-valid.csv") == 0;
}

/* Whether the other file is one that the run itself keeps in its folder. Their names are fixed by
 * the run; links in the folder may lead outside. */
static const char *kept_name(const qn_file *folder, const qn__place *folder_place,
                             const qn__place *other) {
    char path[PATH_MAX];
    qn__place kept;
    const char *name = qn__place_within(folder_place, other);
    if (folder->use == QN_FOLDER_WRITE)
        return name && is_of_stage(name) ? name : NULL;
    if (folder->use == QN_FOLDER_CHECKPOINTS)
        return name && qn__checkpoints_own(name) ? name : NULL;
    for (const char *const *own = qn__record_files; *own; own++) {
        if (name && strcmp(name, *own) == 0)
            return name;
        if (snprintf(path, sizeof path, "%s/%s", folder->path, *own) >= (int)sizeof path)
            continue;
        qn__place_of(path, &kept);
        if (qn__place_same(&kept, other))
            return *own;
    }
    return NULL;
}

/* The end of a message about `f`: what to change. */
static qn_status other_file(const qn_file *f, const char *more, const char *name, qn_error *err) {
    return qn__remedy(err, QN_USAGE, "%s %s%s%s",
                      f->use == QN_FILE_STREAM ? "write to another file than"
                                               : "name another file with",
                      f->name, more, name);
}

static qn_status compare_folder(const qn_file *folder, const qn__place *folder_place,
                                const qn_file *other, const qn__place *other_place, qn_error *err) {
    const char *name = kept_name(folder, folder_place, other_place);
    if (name) {
        qn__fail(err, QN_USAGE, "%s is %s in the folder of %s, which the run writes itself",
                 other->name, name, folder->name);
        qn__at(err, "%s", other->path);
        return other_file(other, ", or another folder with ", folder->name, err);
    }
    if (is_folder(other) || !qn__place_same(folder_place, other_place))
        return QN_OK;
    qn__fail(err, QN_USAGE, "%s and %s name the same path", other->name, folder->name);
    qn__at(err, "%s", other->path);
    return qn__remedy(err, QN_USAGE, "name a file with %s and a folder with %s", other->name,
                      folder->name);
}

/* `out` would be overwritten or would overwrite `other`. */
static qn_status refuse_same(const qn_file *out, const qn_file *other, qn_error *err) {
    if (other->use == QN_FILE_READ)
        qn__fail(err, QN_USAGE, "%s would overwrite the file of %s", out->name, other->name);
    else
        qn__fail(err, QN_USAGE, "%s and %s name the same file", out->name, other->name);
    qn__at(err, "%s", out->path);
    if (out->use == QN_FILE_WRITE && other->use == QN_FILE_WRITE)
        return qn__remedy(err, QN_USAGE, "name two files with %s and %s", other->name, out->name);
    return other_file(other->use == QN_FILE_STREAM ? other : out, "", "", err);
}

/* The part of a path before its last component, including the '/'. */
static int folder_above(const char *path, char *folder) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    return snprintf(folder, PATH_MAX, "%.*s", (int)length, path) < PATH_MAX;
}

/* Whether a path lies in an existing folder, at any depth. */
static int lies_in(const char *folder, const char *path) {
    char top[PATH_MAX], above[PATH_MAX], real[PATH_MAX];
    if (!realpath(folder, top) || snprintf(above, sizeof above, "%s", path) >= (int)sizeof above)
        return 0;
    while (!realpath(*above ? above : ".", real)) {
        size_t length = strlen(above);
        while (length > 0 && above[length - 1] == '/')
            length--;
        while (length > 0 && above[length - 1] != '/')
            length--;
        if (*above == '\0' || length == 1) /* the folder "." is lost; a name in "/" */
            return 0;
        above[length] = '\0';
    }
    const size_t length = strlen(top);
    return strncmp(real, top, length) == 0 && (real[length] == '/' || real[length] == '\0');
}

/* All files of a folder of images are data: one would be overwritten, or be one more. */
static qn_status compare_images(const qn_file *data, const qn__place *place, const qn_file *out,
                                qn_error *err) {
    if (data->use != QN_FILE_READ || !S_ISDIR(place->mode) || out->use == QN_FILE_READ ||
        out->use == QN_FILE_STREAM || qn__remote_is(out->path) || !lies_in(data->path, out->path))
        return QN_OK;
    qn__fail(err, QN_USAGE, "%s is in the folder of %s, whose files are all data", out->name,
             data->name);
    qn__at(err, "%s", out->path);
    return other_file(out, ", in another folder than ", data->name, err);
}

/* Masks are PNG files with the names of their images: in a folder around these they could take
 * their place. A link counts by its own place, too: writing to it changes the file it leads to. */
static qn_status compare_pictures(const qn_file *data, const qn_file *out, qn_error *err) {
    char folder[PATH_MAX];
    const char *point = strrchr(data->path, '.');
    if (data->use != QN_FILE_READ || out->use != QN_FOLDER_WRITE || !point ||
        strcmp(point, ".png") != 0 || !folder_above(data->path, folder) ||
        (!lies_in(out->path, data->path) && !lies_in(out->path, *folder ? folder : ".")))
        return QN_OK;
    qn__fail(err, QN_USAGE, "a file in the folder of %s could overwrite one of %s", out->name,
             data->name);
    qn__at(err, "%s", data->path);
    return qn__remedy(err, QN_USAGE, "name another folder with %s", out->name);
}

static qn_status compare_two(const qn_file *a, const qn__place *at_a, const qn_file *b,
                             const qn__place *at_b, qn_error *err) {
    qn_status status = compare_images(a, at_a, b, err);
    if (status == QN_OK)
        status = compare_images(b, at_b, a, err);
    if (status == QN_OK && is_folder(a))
        status = compare_folder(a, at_a, b, at_b, err);
    if (status == QN_OK && is_folder(b))
        status = compare_folder(b, at_b, a, at_a, err);
    if (status != QN_OK || is_folder(a) || is_folder(b) || !qn__place_same(at_a, at_b))
        return status;
    if (a->use == b->use && a->use != QN_FILE_WRITE)
        return QN_OK;
    return b->use == QN_FILE_READ ? refuse_same(a, b, err) : refuse_same(b, a, err);
}

static qn_status check_arguments(const char *function, const qn_file *files, uint32_t count,
                                 qn_error *err) {
    if (count > 0 && !files)
        return qn__fail_null(err, function, "files");
    for (uint32_t i = 0; i < count; i++)
        if (files[i].path && !files[i].name)
            return qn__fail_null_at(err, function, "files", i, ".name");
    return QN_OK;
}

/* The elements of a call, with their places. */
typedef struct elements {
    const qn_file *file;
    qn__place *place;
    uint32_t count;
} elements;

static int is_output(const qn_file *f) {
    return f->path && f->use != QN_FILE_READ && f->use != QN_FILES_READ;
}

/* Compares a file of `data` with all outputs. Names of items begin in a folder that was named. */
static qn_status compare_read(const elements *all, const qn_file *data, const char *path,
                              int in_folder, qn_error *err) {
    char whole[PATH_MAX];
    qn__place place;
    const char *part = qn__source_part_in(path);
    const size_t size = part ? (size_t)(part - path) - 1 : strlen(path);
    qn_status status = QN_OK;
    if (size >= sizeof whole)
        return QN_OK; /* it cannot be opened */
    snprintf(whole, sizeof whole, "%.*s", (int)size, path);
    const qn_file read = {
        .size = sizeof read, .path = whole, .name = data->name, .use = QN_FILE_READ};
    qn__place_of(whole, &place);
    for (uint32_t k = 0; k < all->count && status == QN_OK; k++)
        if (is_output(&all->file[k])) {
            if (!in_folder)
                status = compare_pictures(&read, &all->file[k], err);
            if (status == QN_OK)
                status = compare_two(&read, &place, &all->file[k], &all->place[k], err);
        }
    return status;
}

/* Compares all files that are read by one path, where there is an output. Whoever reads them says
 * what is wrong with it. */
static qn_status compare_listed(const elements *all, const qn_file *data, qn_error *err) {
    qn__file_list list;
    uint32_t outputs = 0;
    for (uint32_t k = 0; k < all->count; k++)
        outputs += is_output(&all->file[k]) ? 1u : 0u;
    if (outputs == 0 || strcmp(data->path, QN__STANDARD_INPUT) == 0 || qn__is_server(data->path))
        return QN_OK;
    struct stat there;
    const int in_folder = stat(data->path, &there) == 0 && S_ISDIR(there.st_mode);
    qn_status status = compare_read(all, data, data->path + (*data->path == '@'), in_folder, err);
    if (status != QN_OK || qn__file_list_make(&data->path, 1, 0, &list, NULL) != QN_OK)
        return status;
    for (size_t i = 0; i < list.count && status == QN_OK; i++)
        status = compare_read(all, data, list.file[i].path, in_folder, err);
    qn__file_list_release(&list);
    return status;
}

static qn_status compare_all(const elements *all, qn_error *err) {
    const qn_file *file = all->file;
    const qn__place *place = all->place;
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < all->count && status == QN_OK; i++)
        for (uint32_t k = 0; k < i && file[i].path && status == QN_OK; k++)
            if (file[k].path && file[i].use != QN_FILES_READ && file[k].use != QN_FILES_READ)
                status = compare_two(&file[k], &place[k], &file[i], &place[i], err);
    for (uint32_t i = 0; i < all->count && status == QN_OK; i++)
        if (file[i].path && file[i].use == QN_FILES_READ)
            status = compare_listed(all, &file[i], err);
    return status;
}

static qn_status compare(const qn_file *files, uint32_t count, qn_error *err) {
    if (count == 0)
        return QN_OK;
    const elements all = {files, qn__alloc(count, sizeof *all.place, err), count};
    if (!all.place)
        return QN_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        if (files[i].path)
            qn__place_of(files[i].path, &all.place[i]);
    const qn_status status = compare_all(&all, err);
    qn__free(all.place);
    return status;
}

/* ------------------------------------------------------------------------------- writable files */

/* `remedy` ends where the name of the file is inserted. */
static qn_status refuse(const qn_file *f, const char *reason, const char *remedy, qn_error *err) {
    qn__fail(err, QN_IO, "cannot write \"%.400s\": %s", f->path, reason);
    qn__at(err, "%s", f->path);
    return qn__remedy(err, QN_IO, "%s %s", remedy, f->name);
}

static qn_status refuse_errno(const qn_file *f, int why, qn_error *err) {
    if (why == ENOENT)
        return refuse(f, "the folder around it does not exist",
                      "make that folder first, or name another path with", err);
    return refuse(f, strerror_l(why, qn__c_locale()),
                  "name a path in a folder that can be written, with", err);
}

/* Creates a temporary file in the folder, whose path ends with '/' or is empty: only that combines
 * permissions, mount options and quota. */
static qn_status try_folder(const qn_file *f, const char *folder, qn_error *err) {
    char name[QN__TEMPORARY_NAME], path[PATH_MAX];
    qn__temporary_name(name);
    if (snprintf(path, sizeof path, "%s%s", folder, name) >= (int)sizeof path)
        return refuse_errno(f, ENAMETOOLONG, err);
    const int entry = qn__unfinished_add(AT_FDCWD, path);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    const int why = errno;
    if (file >= 0) {
        unlink(path);
        close(file);
    }
    qn__unfinished_remove(entry);
    if (file < 0)
        return refuse_errno(f, why, err);
    qn__leftovers_remove(*folder ? folder : ".");
    return QN_OK;
}

/* Asks the store, which combines permissions of the key, the bucket and the user. */
static qn_status check_address(const qn_file *f, qn_error *err) {
    char path[PATH_MAX];
    size_t length = strlen(f->path);
    if (!is_folder(f) && f->path[length - 1] == '/')
        return refuse(f, "this names a folder", "name a file with", err);
    while (is_folder(f) && length > 0 && f->path[length - 1] == '/')
        length--;
    const int size =
        snprintf(path, sizeof path, "%.*s%s", (int)length, f->path, is_folder(f) ? "/.quern" : "");
    return size < (int)sizeof path ? qn__remote_may_write(path, err)
                                   : refuse_errno(f, ENAMETOOLONG, err);
}

static qn_status check_folder(const qn_file *f, qn_error *err) {
    struct stat there;
    char folder[PATH_MAX];
    int fits = 1;
    if (stat(f->path, &there) != 0)
        fits = errno != ENAMETOOLONG && folder_above(f->path, folder);
    else if (!S_ISDIR(there.st_mode))
        return refuse(f, "this is not a folder", "name a folder with", err);
    else
        fits = snprintf(folder, sizeof folder, "%s/", f->path) < (int)sizeof folder;
    return fits ? try_folder(f, folder, err) : refuse_errno(f, ENAMETOOLONG, err);
}

/* A link is followed: a new file is created next to its target. */
static qn_status check_file(const qn_file *f, qn_error *err) {
    struct stat there;
    char folder[PATH_MAX], real[PATH_MAX];
    const char *path = f->path;
    if (strcmp(f->path, "-") == 0) /* a file of this name is never intended */
        return refuse(f, "this cannot go to the standard output", "name a file with", err);
    if (*f->path == '\0' || f->path[strlen(f->path) - 1] == '/')
        return refuse(f, "this names a folder", "name a file with", err);
    if (stat(f->path, &there) == 0) {
        if (S_ISDIR(there.st_mode))
            return refuse(f, "this is a folder", "name a file in it with", err);
        if (!S_ISREG(there.st_mode))
            return refuse(f, "this is not a regular file", "name another file with", err);
        if (access(f->path, W_OK) != 0)
            return refuse(f, "this file is protected", "make it writable, or name another with",
                          err);
        path = realpath(f->path, real) ? real : f->path;
    } else if (errno == ENAMETOOLONG) {
        return refuse_errno(f, ENAMETOOLONG, err);
    } else if (lstat(f->path, &there) == 0) {
        return refuse(f, "this is a symbolic link to nothing",
                      "remove the link, or name another file with", err);
    }
    return folder_above(path, folder) ? try_folder(f, folder, err)
                                      : refuse_errno(f, ENAMETOOLONG, err);
}

static qn_status check(const qn_file *files, uint32_t count, qn_error *err) {
    for (uint32_t i = 0; i < count; i++) {
        const int is_written = files[i].use == QN_FILE_WRITE || is_folder(&files[i]);
        qn_status status = is_output(&files[i]) ? qn__scheme_refuse(files[i].path, err) : QN_OK;
        if (status == QN_OK && files[i].path && is_written && qn__remote_is(files[i].path))
            status = check_address(&files[i], err);
        else if (status == QN_OK && files[i].path && files[i].use == QN_FILE_WRITE)
            status = check_file(&files[i], err);
        else if (status == QN_OK && files[i].path && is_folder(&files[i]))
            status = check_folder(&files[i], err);
        if (status != QN_OK)
            return status;
    }
    return compare(files, count, err);
}

/* Calls `work` with the caller's files, in this version of the struct. */
static qn_status with_files(const char *function, const qn_file *files, uint32_t count,
                            qn_status (*work)(const qn_file *, uint32_t, qn_error *),
                            qn_error *err) {
    const qn__sized what = {function, "files", "qn_file", sizeof *files};
    if (count > 0 && !files)
        return qn__fail_null(err, function, "files");
    qn_status status;
    qn_file *own = qn__sized_take_all(&what, files, count, &status, err);
    if (status == QN_OK)
        status = check_arguments(function, own, count, err);
    if (status == QN_OK)
        status = work(own, count, err);
    qn__free(own);
    return status;
}

qn_status qn_files_compare(const qn_file *files, uint32_t count, qn_error *err) {
    QN__OWN_FLOATS;
    return with_files(__func__, files, count, compare, err);
}

qn_status qn_files_check(const qn_file *files, uint32_t count, qn_error *err) {
    QN__OWN_FLOATS;
    return with_files(__func__, files, count, check, err);
}
