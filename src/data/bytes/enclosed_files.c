#include "data/bytes/enclosed_files.h"
#include "base/files/file_stamp.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "data/bytes/folder.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one file, before memory is taken: an archive can claim any size. */
static const uint64_t FILE_MAX = (uint64_t)1 << 30;

/* A name in an archive without what means nothing: "./", "/" before it, and "//". */
static void tidy_name(char *name) {
    const char *from = name;
    char *to = name;
    while (*from) {
        if (*from == '/')
            from++;
        else if (from[0] == '.' && from[1] == '/')
            from += 2;
        else {
            const size_t size = strcspn(from, "/");
            memmove(to, from, size);
            to += size;
            from += size;
            if (*from == '/')
                *to++ = '/';
        }
    }
    *to = '\0';
}

/* Whether a part of the name begins with a dot, "." itself apart. */
static int is_hidden(const char *name) {
    while (*name) {
        if (name[0] == '.' && name[1] != '/' && name[1] != '\0')
            return 1;
        name += strcspn(name, "/");
        name += *name == '/';
    }
    return 0;
}

static qn_status add(void *user, const char *name, uint64_t begin, uint64_t size, qn_error *err) {
    qn__enclosed_files *f = user;
    if (f->count == f->capacity) {
        const uint64_t capacity = f->capacity ? 2 * f->capacity : 1024;
        qn__enclosed_file *more = qn__alloc(capacity, sizeof *more, err);
        if (!more)
            return QN_MEMORY;
        if (f->count)
            memcpy(more, f->file, (size_t)f->count * sizeof *more);
        qn__free(f->file);
        f->file = more;
        f->capacity = capacity;
    }
    char *own = qn__name_blocks_add(&f->names, name, err);
    if (!own)
        return QN_MEMORY;
    if (!f->named && !f->several)
        tidy_name(own);
    f->file[f->count++] = (qn__enclosed_file){own, begin, size, 0, 0};
    return QN_OK;
}

static qn_status add_listed(void *user, const char *name, const struct stat *info, qn_error *err) {
    qn__enclosed_files *f = user;
    return add(f, name, qn__files_stamp_of(info, &f->stamp), (uint64_t)info->st_size, err);
}

static qn_status check_size(const qn__enclosed_files *f, uint64_t i, qn_error *err) {
    if (f->file[i].size <= FILE_MAX)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the file has %llu bytes, which is too much for one of many",
             (unsigned long long)f->file[i].size);
    qn__enclosed_files_at(f, i, err);
    return qn__remedy(err, QN_INPUT, "at most 1 GiB is read; make it smaller");
}

static qn_status list_zip(qn__source *source, qn__enclosed_files *f, qn_error *err) {
    qn_status status = qn__zip_open(qn__source_descriptor(source), f->path,
                                    qn__source_file_size(source), &f->zip, err);
    for (uint64_t i = 0; status == QN_OK && i < f->zip->count; i++) {
        const char *name = f->zip->entry[i].name;
        const size_t size = strlen(name);
        if (size > 0 && name[size - 1] != '/' && !is_hidden(name))
            status = add(f, name, i, f->zip->entry[i].size, err);
    }
    return status;
}

static qn_status list_tar(qn__source *source, qn__enclosed_files *f, qn_error *err) {
    f->tar = (qn__tar_bytes){.file = qn__source_descriptor(source),
                             .size = qn__source_file_size(source),
                             .path = f->path};
    if (qn__source_packing(source)) {
        const qn_status status = qn__source_contents_of_any_size(source, 0, &f->unpacked, err);
        if (status != QN_OK)
            return status;
        f->tar.memory = (const uint8_t *)f->unpacked.data;
        f->tar.size = f->unpacked.size;
    }
    return qn__tar_list(&f->tar, is_hidden, add, f, err);
}

static int compare(const void *a, const void *b) {
    return strcmp(((const qn__enclosed_file *)a)->name, ((const qn__enclosed_file *)b)->name);
}

static qn_status sort(qn__enclosed_files *f, qn_error *err) {
    if (f->count == 0) {
        qn__fail(err, QN_INPUT,
                 f->folder ? "there is no file in the folder" : "there is no file in the archive");
        qn__at(err, "%s", f->path);
        return qn__remedy(
            err, QN_INPUT,
            f->folder ? "put the files of a table in it, or images in a folder for each class"
                      : "put images in it, in a folder for each class");
    }
    qsort(f->file, (size_t)f->count, sizeof *f->file, compare);
    for (uint64_t i = 1; i < f->count; i++)
        if (strcmp(f->file[i - 1].name, f->file[i].name) == 0) {
            qn__fail(err, QN_INPUT, "the archive holds one file twice");
            qn__enclosed_files_at(f, i, err);
            return qn__remedy(err, QN_INPUT, "make the archive again");
        }
    return QN_OK;
}

qn_status qn__enclosed_files_open(qn__source *source, qn__enclosed_files *out, qn_error *err) {
    uint8_t first[4] = {0};
    size_t got = 0;
    *out = (qn__enclosed_files){.path = qn__source_path(source),
                                .folder = qn__source_is_folder(source)};
    qn_status status = QN_OK;
    if (out->folder) {
        out->ahead = qn__files_ahead_begin();
        status = qn__folder_list(out->path, add_listed, out, err);
    } else {
        status = qn__source_peek(source, first, sizeof first, &got, err);
        if (status == QN_OK)
            status = memcmp(first, "PK\3\4", 4) == 0 ? list_zip(source, out, err)
                                                     : list_tar(source, out, err);
    }
    if (status == QN_OK)
        status = sort(out, err);
    if (out->folder)
        qn__file_stamp_wait(&out->stamp.newest);
    for (uint64_t i = 0; status == QN_OK && out->folder && i < out->count; i++)
        qn__files_stamp_add(&out->stamp, out->file[i].name, out->file[i].begin);
    return status;
}

/* The bytes of the only file are kept: it may be the standard input, which is read once. */
qn_status qn__enclosed_files_open_named(qn__part_files *named, qn__enclosed_files *out,
                                        qn_error *err) {
    const qn__file_list *list = named->list;
    *out = (qn__enclosed_files){.path = named->name, .named = named};
    qn_status status = QN_OK;
    for (size_t i = 0; status == QN_OK && i < list->count; i++)
        status = add(out, i == 0 ? qn__source_path(named->first) : list->file[i].path, 0,
                     (uint64_t)named->seen[i].st_size, err);
    if (status == QN_OK && list->count == 1)
        status = check_size(out, 0, err);
    if (status == QN_OK && list->count == 1)
        status = qn__source_contents(named->first, &out->unpacked, err);
    return status;
}

qn_status qn__enclosed_files_of_bytes(const void *bytes, size_t size, const char *name,
                                      qn__enclosed_files *out, qn_error *err) {
    *out =
        (qn__enclosed_files){.path = name, .given = 1, .unpacked = {.data = bytes, .size = size}};
    return add(out, name, 0, size, err);
}

qn_status qn__enclosed_files_known(const qn__source *source, const char *text, size_t size,
                                   uint64_t count, qn__enclosed_files *out, qn_error *err) {
    qn_status status = QN_OK;
    *out = (qn__enclosed_files){.path = qn__source_path(source),
                                .folder = qn__source_is_folder(source)};
    while (status == QN_OK && size > 0 && out->count < count) {
        const size_t length = strnlen(text, size);
        if (length == size)
            break;
        status = add(out, text, 0, 0, err);
        text += length + 1;
        size -= length + 1;
    }
    if (status == QN_OK && (size > 0 || out->count != count))
        status = qn__fail(err, QN_FORMAT, "the names are not as many as the files");
    if (status != QN_OK)
        qn__enclosed_files_release(out);
    return status;
}

/* ------------------------------------------------------------------ several */

static qn_status add_all(qn__enclosed_files *f, uint32_t of, qn_error *err) {
    const qn__enclosed_files *each = &f->each[of];
    char name[2 * PATH_MAX];
    for (uint64_t i = 0; i < each->count; i++) {
        const int top =
            snprintf(name, sizeof name, "%s%s", each->path, qn__folder_slash(each->path));
        snprintf(name + top, sizeof name - (size_t)top, "%s", each->file[i].name);
        if (add(f, name, i, each->file[i].size, err) != QN_OK)
            return QN_MEMORY;
        f->file[f->count - 1].of = of;
        f->file[f->count - 1].top = (uint32_t)top;
    }
    return QN_OK;
}

qn_status qn__enclosed_files_open_several(qn__part_files *several, qn__enclosed_files *out,
                                          qn_error *err) {
    const size_t count = several->list->count;
    *out = (qn__enclosed_files){.path = several->name, .several = (uint32_t)count};
    out->each = qn__alloc(count, sizeof *out->each, err);
    out->source = (qn__source **)qn__alloc(count, sizeof *out->source, err);
    qn_status status = out->each && out->source ? QN_OK : QN_MEMORY;
    for (uint32_t i = 0; status == QN_OK && i < count; i++) {
        status = qn__part_files_open(several, i, &out->source[i], err);
        if (status == QN_OK)
            status = qn__enclosed_files_open(out->source[i], &out->each[i], err);
        if (status == QN_OK)
            status = add_all(out, i, err);
    }
    return status;
}

qn_status qn__enclosed_files_end(const qn__enclosed_files *files, qn_status status, qn_error *err) {
    for (uint32_t i = 0; i < files->several && status == QN_OK; i++)
        status = qn__source_end(files->source[i], status, err);
    return status;
}

static void release_several(qn__enclosed_files *files) {
    for (uint32_t i = 0; files->each && files->source && i < files->several; i++) {
        qn__enclosed_files_release(&files->each[i]);
        qn__source_close(files->source[i]);
    }
    qn__free(files->each);
    qn__free((void *)files->source);
}

void qn__enclosed_files_release(qn__enclosed_files *files) {
    release_several(files);
    qn__name_blocks_release(&files->names);
    qn__free(files->file);
    qn__zip_close(files->zip);
    qn__files_ahead_end(files->ahead);
    qn__contents_release(&files->unpacked);
    *files = (qn__enclosed_files){0};
}

void qn__enclosed_files_at(const qn__enclosed_files *files, uint64_t i, qn_error *err) {
    if (files->named || files->given)
        qn__at(err, "%s", files->file[i].name);
    else if (files->several)
        qn__enclosed_files_at(&files->each[files->file[i].of], files->file[i].begin, err);
    else
        qn__at(err, files->folder ? "%s/%s" : "%s, %s", files->path, files->file[i].name);
}

qn_status qn__enclosed_bytes_space(qn__enclosed_bytes *bytes, size_t size, qn_error *err) {
    if (size <= bytes->capacity)
        return QN_OK;
    qn__free(bytes->data);
    bytes->capacity = 0;
    bytes->data = qn__alloc(size + size / 2, 1, err);
    if (!bytes->data)
        return QN_MEMORY;
    bytes->capacity = size + size / 2;
    return QN_OK;
}

static qn_status read_zip(const qn__enclosed_files *f, uint64_t i, qn__enclosed_bytes *bytes,
                          qn_error *err) {
    qn__zip_stream *stream;
    qn_status status = qn__zip_begin(f->zip, &f->zip->entry[f->file[i].begin], &stream, err);
    if (status != QN_OK)
        return status;
    size_t got = 0, more = 0;
    uint8_t after;
    status = qn__zip_read(stream, bytes->data, bytes->size, &got, err);
    if (status == QN_OK && bytes->size == f->file[i].size) /* checks the sum */
        status = qn__zip_read(stream, &after, 1, &more, err);
    bytes->size = got;
    qn__zip_end(stream);
    return status;
}

static void path_of(const void *files, size_t i, char path[PATH_MAX]) {
    const qn__enclosed_files *f = files;
    snprintf(path, PATH_MAX, "%s/%s", f->path, f->file[i].name);
}

/* A file of a folder, which must be as it was when the folder was listed. A change is not a fault
 * of the image, so it is not QN_INPUT: that may be left out. */
static qn_status read_listed(const qn__enclosed_files *f, const qn__enclosed_file *file,
                             qn__enclosed_bytes *bytes, qn_error *err) {
    struct stat after = {0};
    char path[PATH_MAX];
    qn__files_stamp none = {0};
    const qn_status status =
        qn__folder_read(f->path, file->name, bytes->data, bytes->size, &after, err);
    if ((status != QN_OK && status != QN_INPUT) || qn__files_stamp_of(&after, &none) == file->begin)
        return status;
    snprintf(path, sizeof path, "%s/%s", f->path, file->name);
    return qn__file_stamp_refuse(path, QN_IO, err);
}

static qn_status read_named(const qn__enclosed_files *f, uint64_t i, qn__enclosed_bytes *bytes,
                            qn_error *err) {
    qn__source *source;
    if (f->unpacked.data) {
        bytes->size = bytes->size < f->unpacked.size ? bytes->size : f->unpacked.size;
        memcpy(bytes->data, f->unpacked.data, bytes->size);
        return QN_OK;
    }
    qn_status status = qn__part_files_open(f->named, (size_t)i, &source, err);
    if (status != QN_OK)
        return status;
    status = qn__source_read(source, bytes->data, bytes->size, &bytes->size, err);
    return qn__part_files_close(source, status, err);
}

qn_status qn__enclosed_files_read(const qn__enclosed_files *files, uint64_t i, size_t most,
                                  qn__enclosed_bytes *bytes, qn_error *err) {
    const qn__enclosed_file *file = &files->file[i];
    if (files->several)
        return qn__enclosed_files_read(&files->each[file->of], file->begin, most, bytes, err);
    const uint64_t size = file->size < most ? file->size : most;
    if (size > FILE_MAX)
        return check_size(files, i, err);
    if (qn__enclosed_bytes_space(bytes, (size_t)size + 1, err) != QN_OK)
        return QN_MEMORY;
    bytes->size = (size_t)size;
    if (files->named || files->given)
        return read_named(files, i, bytes, err);
    if (files->folder) {
        qn__files_ahead_at(files->ahead, (size_t)i, (size_t)files->count, path_of, files);
        return read_listed(files, file, bytes, err);
    }
    if (files->zip)
        return read_zip(files, i, bytes, err);
    return qn__tar_read(&files->tar, file->begin, bytes->data, bytes->size, err);
}

void qn__enclosed_bytes_release(qn__enclosed_bytes *bytes) {
    qn__free(bytes->data);
    *bytes = (qn__enclosed_bytes){0};
}
