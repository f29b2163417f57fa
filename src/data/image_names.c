#include "data/image_names.h"
#include "base/memory.h"
#include "base/text.h"
#include <string.h>

/* Broken files that a note names. */
enum { NAMED = 5 };

static void add_broken(const qn__image_files *files, const uint8_t *broken, qn__text *note) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < files->count; i++)
        count += broken[i];
    if (count == 0)
        return;
    qn__text_add(note,
                 "%llu of %llu files cannot be read and are left out: ", (unsigned long long)count,
                 (unsigned long long)files->count);
    uint64_t named = 0;
    for (uint64_t i = 0; named < NAMED && i < files->count; i++)
        if (broken[i])
            qn__text_add(note, "%s%s", named++ ? ", " : "", files->file[i].name);
    if (count > named)
        qn__text_add(note, " and %llu more", (unsigned long long)(count - named));
}

qn_status qn__image_note(const qn__image_files *files, const uint8_t *broken, const char *cache,
                         qn_data *data, qn_error *err) {
    qn__text note = {0};
    add_broken(files, broken, &note);
    if (*cache)
        qn__text_add(&note, "%s%s", note.data ? "\n" : "", cache);
    if (note.data)
        data->note = qn__copy_text(note.data, err);
    const int failed = note.failed || (note.data && !data->note);
    qn__text_release(&note);
    return failed ? QN_MEMORY : QN_OK;
}

qn_status qn__image_names(const qn__image_files *files, const uint8_t *broken, qn_data *data,
                          qn_error *err) {
    uint64_t size = 0;
    for (uint64_t i = 0; i < files->count; i++)
        size += broken[i] ? 0 : strlen(files->file[i].name) + 1;
    char *text = qn__alloc(size, 1, err), *to = text;
    if (!text)
        return QN_MEMORY;
    for (uint64_t i = 0; i < files->count; i++)
        if (!broken[i]) {
            const size_t bytes = strlen(files->file[i].name) + 1;
            memcpy(to, files->file[i].name, bytes);
            to += bytes;
        }
    const qn_status status = qn__item_names_take(text, size, data->items, &data->names, err);
    qn__free(text);
    return status;
}
