#include "data/images/image_names.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "image/image_other.h"
#include <string.h>

/* Broken files that a note names. */
enum { NAMED = 5 };

static int is_clutter(uint8_t mark) { return mark == QN__FILE_CLUTTER; }
static int is_later(uint8_t mark) { return mark == QN__FILE_LATER; }
static int is_unreadable(uint8_t mark) { return mark == QN__FILE_BROKEN || mark >= QN__FILE_OTHER; }

static uint64_t count_of(const uint8_t *marks, uint64_t files, int (*counts)(uint8_t)) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < files; i++)
        count += counts(marks[i]) != 0;
    return count;
}

/* The first ones by name. */
static void add_names(const qn__enclosed_files *files, const uint8_t *marks, int (*counts)(uint8_t),
                      qn__text *note) {
    const uint64_t count = count_of(marks, files->count, counts);
    uint64_t named = 0;
    for (uint64_t i = 0; named < NAMED && i < files->count; i++)
        if (counts(marks[i]))
            qn__text_add(note, "%s%s", named++ ? ", " : "", files->file[i].name);
    if (count > named)
        qn__text_add(note, " and %llu more", (unsigned long long)(count - named));
}

uint64_t qn__image_others_add(const uint8_t *marks, uint64_t files, qn__text *text) {
    uint64_t of_each[UINT8_MAX + 1] = {0}, all = 0;
    for (uint64_t i = 0; i < files; i++)
        of_each[marks[i]]++;
    for (uint32_t k = 0; k < qn__image_others(); k++) {
        const uint64_t count = of_each[QN__FILE_OTHER + k];
        const char *name = qn__image_other_name(k, count > 1);
        if (count == 1) /* in place of "a" and "an" */
            name = strchr(name, ' ') + 1;
        if (count > 0)
            qn__text_add(text, "%s%llu %s", all ? ", " : "", (unsigned long long)count, name);
        all += count;
    }
    return all;
}

static void add_broken(const qn__enclosed_files *files, const uint8_t *marks, qn__text *note) {
    const uint64_t count = count_of(marks, files->count, is_unreadable);
    qn__text others = {0};
    if (count == 0)
        return;
    qn__text_add(note,
                 "%llu of %llu files cannot be read and are left out: ", (unsigned long long)count,
                 (unsigned long long)files->count);
    add_names(files, marks, is_unreadable, note);
    if (qn__image_others_add(marks, files->count, &others) > 0 && others.data)
        qn__text_add(note, "; among them: %s", others.data);
    note->failed |= others.failed;
    qn__text_release(&others);
}

static void begin_line(qn__text *note) {
    if (note->size > 0)
        qn__text_add(note, "\n");
}

static void add_clutter(const qn__enclosed_files *files, const uint8_t *marks, qn__text *note) {
    const uint64_t count = count_of(marks, files->count, is_clutter);
    if (count == 0)
        return;
    begin_line(note);
    qn__text_add(note, "%llu %s left out: ", (unsigned long long)count,
                 count == 1 ? "file that is not an image is" : "files that are not images are");
    add_names(files, marks, is_clutter, note);
}

static void add_later(const qn__enclosed_files *files, const uint8_t *marks, qn__text *note) {
    const uint64_t count = count_of(marks, files->count, is_later);
    if (count == 0)
        return;
    begin_line(note);
    qn__text_add(note,
                 "%llu files of GIF, WebP, TIFF or BMP are left out, as they were when the model "
                 "was trained; without `data.skip_broken` they are read: ",
                 (unsigned long long)count);
    add_names(files, marks, is_later, note);
}

static void add_turned(uint64_t turned, qn__text *note) {
    if (turned == 0)
        return;
    begin_line(note);
    qn__text_add(note,
                 "%llu images have an orientation in Exif that is not applied, because the images "
                 "of the training had none that was; turn the pixels themselves where that is "
                 "wrong",
                 (unsigned long long)turned);
}

qn_status qn__image_note(const qn__enclosed_files *files, const uint8_t *marks, uint64_t turned,
                         const char *cache, qn_data *data, qn_error *err) {
    qn__text note = {0};
    add_broken(files, marks, &note);
    add_later(files, marks, &note);
    add_clutter(files, marks, &note);
    add_turned(turned, &note);
    if (*cache) {
        begin_line(&note);
        qn__text_add(&note, "%s", cache);
    }
    if (!note.data && !note.failed)
        return QN_OK;
    data->note = qn__text_take(&note, err);
    return data->note ? QN_OK : QN_MEMORY;
}

static qn_status keep_sizes(const qn__enclosed_files *files, const uint8_t *marks,
                            const qn__item_size *seen, qn_data *data, qn_error *err) {
    qn__item_size *to = data->names->seen = qn__alloc(data->items, sizeof *to, err);
    for (uint64_t i = 0; to && i < files->count; i++)
        if (!marks[i])
            *to++ = seen[i];
    return data->names->seen ? QN_OK : QN_MEMORY;
}

qn_status qn__image_names(const qn__enclosed_files *files, const uint8_t *marks,
                          const qn__item_size *seen, qn_data *data, qn_error *err) {
    uint64_t size = 0;
    for (uint64_t i = 0; i < files->count; i++)
        size += marks[i] ? 0 : strlen(files->file[i].name) + 1;
    char *text = qn__alloc(size, 1, err), *to = text;
    if (!text)
        return QN_MEMORY;
    for (uint64_t i = 0; i < files->count; i++)
        if (!marks[i]) {
            const size_t bytes = strlen(files->file[i].name) + 1;
            memcpy(to, files->file[i].name, bytes);
            to += bytes;
        }
    const qn_status status = qn__item_names_take(text, size, data->items, &data->names, err);
    qn__free(text);
    return status == QN_OK && seen ? keep_sizes(files, marks, seen, data, err) : status;
}
