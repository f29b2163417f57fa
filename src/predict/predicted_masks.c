#include "predict/predicted_masks.h"

#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "image/mask.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Whether a part of a path is "..", or the path begins at the root: such a name may lead out of the
 * folder. */
static int leads_out(const char *name) {
    if (*name == '/')
        return 1;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return 1;
    }
    return 0;
}

/* The path of a mask below the folder: that of its image, with the ending ".png"; items without
 * names have their numbers. */
static char *name_of(const qn_data *data, uint64_t item, qn_error *err) {
    const char *name = qn_data_item_name(data, item);
    qn__text text = {0};
    if (!name) {
        qn__text_add(&text, "%06llu.png", (unsigned long long)item);
        return qn__text_take(&text, err);
    }
    const char *last = strrchr(name, '/');
    const char *file = last ? last + 1 : name, *point = strrchr(file, '.');
    name = leads_out(name) ? file : name;
    qn__text_add(&text, "%.*s.png", (int)(point ? point - name : (long)strlen(name)), name);
    return qn__text_take(&text, err);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two images such as "a.jpg" and "a.png" would have one mask. */
static qn_status check_names(char *const *name, uint64_t items, qn_error *err) {
    const char **sorted = qn__alloc(items, sizeof *sorted, err);
    qn_status status = sorted ? QN_OK : QN_MEMORY;
    for (uint64_t i = 0; sorted && i < items; ++i)
        sorted[i] = name[i];
    if (sorted)
        qsort(sorted, items, sizeof *sorted, by_text);
    for (uint64_t i = 1; status == QN_OK && i < items; ++i) {
        if (strcmp(sorted[i - 1], sorted[i]) != 0)
            continue;
        qn__fail(err, QN_INPUT, "two images would have the mask \"%.200s\"", sorted[i]);
        status = qn__remedy(err, QN_INPUT, "give images different names, endings not counted");
    }
    qn__free(sorted);
    return status;
}

/* The folders on the way to a file. */
static qn_status make_folders(char *path, size_t base, qn_error *err) {
    qn_status status = QN_OK;
    for (char *slash = strchr(path + base, '/'); status == QN_OK && slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = qn__folder_make(path, err);
        *slash = '/';
    }
    return status;
}

/* A mask on its way to a file. */
typedef struct picture {
    const uint8_t *pixels;
    uint8_t *own; /* the pixels, or NULL: they belong to someone else */
    uint32_t rows, columns;
} picture;

static qn_status find_picture(const qn__predicted_masks *m, uint64_t item, picture *p,
                              qn_error *err) {
    const uint8_t *pixels = m->answers + (size_t)item * m->rows * m->columns;
    *p = (picture){pixels, NULL, m->rows, m->columns};
    uint32_t rows = 0, columns = 0;
    if (!m->as_given)
        qn_data_original_size(m->data, item, &rows, &columns);
    if (rows == 0 || (rows == m->rows && columns == m->columns && !m->data->resize.shorter))
        return QN_OK;
    p->own = qn__alloc(rows, columns, err);
    if (!p->own)
        return QN_MEMORY;
    *p = (picture){p->own, p->own, rows, columns};
    return qn_data_original_mask(m->data, item, pixels, m->rows, m->columns, p->own, err);
}

static qn_status write_file(const qn__predicted_masks *m, const char *path, const picture *p,
                            qn_error *err) {
    qn__writer *writer = NULL;
    uint8_t *file = NULL;
    size_t size = 0;
    qn_status status = qn__mask_encode(p->pixels, p->rows, p->columns, &file, &size, err);
    if (status == QN_OK)
        status = qn__writer_create(path, &writer, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, file, size, err);
    if (writer) {
        qn__writer_ask(writer, m->may, m->user);
        status = qn__writer_finish(writer, NULL, status, err);
    }
    qn__free(file);
    return status;
}

static qn_status write_mask(const qn__predicted_masks *m, const char *folder, const char *name,
                            uint64_t item, qn_error *err) {
    picture p;
    char *path = NULL;
    if (m->answers[(size_t)item * m->rows * m->columns] == QN__NO_TARGET)
        return QN_OK;
    qn_status status = find_picture(m, item, &p, err);
    if (status == QN_OK)
        status = qn__folder_path(folder, name, &path, err);
    if (status == QN_OK)
        status = make_folders(path, strlen(path) - strlen(name), err);
    if (status == QN_OK)
        status = write_file(m, path, &p, err);
    qn__free(p.own);
    qn__free(path);
    return status;
}

static void free_names(char **name, uint64_t items) {
    for (uint64_t i = 0; name && i < items; ++i)
        qn__free(name[i]);
    qn__free(name);
}

/* On success *out is the caller's, for free_names. */
static qn_status find_names(const qn_data *data, char ***out, qn_error *err) {
    char **name = qn__alloc(data->items, sizeof *name, err);
    qn_status status = name ? QN_OK : QN_MEMORY;
    for (uint64_t i = 0; status == QN_OK && i < data->items; ++i)
        status = (name[i] = name_of(data, i, err)) ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        status = check_names(name, data->items, err);
    if (status == QN_OK)
        *out = name;
    else
        free_names(name, data->items);
    return status;
}

/* A file with the name of a mask may be one that someone drew, or corrected. */
static qn_status check_file(const char *path, qn_error *err) {
    struct stat about;
    qn__bytes file;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return QN_OK; /* the writer tells */
    qn_status status = qn__file_read(path, &file, err);
    if (status != QN_OK)
        return status;
    if (!qn__mask_is_made(file.data, file.size)) {
        qn__fail(err, QN_INPUT,
                 "a predicted mask would replace a file that Quern did not write, or that was "
                 "changed");
        qn__at(err, "%s", path);
        status = qn__remedy(err, QN_INPUT, "name another folder, or remove the file");
    }
    qn__bytes_release(&file);
    return status;
}

qn_status qn__predicted_mask_write(const qn__predicted_masks *m, uint64_t item, const char *folder,
                                   const char *name, qn_error *err) {
    char *path;
    qn_status status = qn__folder_path(folder, name, &path, err);
    if (status == QN_OK)
        status = check_file(path, err);
    qn__free(path);
    return status == QN_OK ? write_mask(m, folder, name, item, err) : status;
}

static qn_status check_files(char *const *name, uint64_t items, const char *folder, qn_error *err) {
    qn_status status = QN_OK;
    for (uint64_t i = 0; status == QN_OK && i < items; ++i) {
        char *path;
        status = qn__folder_path(folder, name[i], &path, err);
        if (status == QN_OK)
            status = check_file(path, err);
        qn__free(path);
    }
    return status;
}

qn_status qn__predicted_masks_check(const qn_data *data, const char *folder, qn_error *err) {
    char **name = NULL;
    qn_status status = find_names(data, &name, err);
    if (status == QN_OK)
        status = check_files(name, data->items, folder, err);
    free_names(name, data->items);
    return status;
}

qn_status qn__predicted_masks_write(const qn__predicted_masks *m, const char *folder,
                                    qn_error *err) {
    char **name = NULL;
    qn_status status = find_names(m->data, &name, err);
    if (status == QN_OK)
        status = check_files(name + m->first, m->end - m->first, folder, err);
    if (status == QN_OK)
        status = qn__folder_make(folder, err);
    for (uint64_t i = m->first; status == QN_OK && i < m->end; ++i)
        status = write_mask(m, folder, name[i], i, err);
    free_names(name, m->data->items);
    return status;
}
