#include "data/bytes/enclosed_texts.h"

#include "base/memory.h"
#include "data/bytes/named_formats.h"
#include "data/bytes/zip_file.h"
#include "image/image_head.h"
#include <string.h>

/* Files of a compressed archive whose names are looked at. */
enum { LOOKED_AT = 1000, BLOCK = 512 };

/* ------------------------------------------------------------------ names */

static qn_status peek(qn__source *source, uint8_t first[BLOCK], size_t *got, qn_error *err) {
    *got = 0;
    return qn__source_is_folder(source) || qn__source_address(source)
               ? QN_OK
               : qn__source_peek(source, first, BLOCK, got, err);
}

qn_status qn__is_archive(qn__source *source, int *archive, qn_error *err) {
    uint8_t first[BLOCK];
    size_t got;
    *archive = 0;
    const qn_status status = peek(source, first, &got, err);
    if (status == QN_OK)
        *archive = qn__tar_is(first, got) || (qn__source_packing(source) == QN__PLAIN &&
                                              !qn__source_part(source) && qn__is_zip(first, got));
    return status;
}

static int is_hidden_name(const char *name) {
    const char *own = strrchr(name, '/');
    return *(own ? own + 1 : name) == '.';
}

/* How many files are texts, and how many are not. */
typedef struct counts {
    uint64_t texts, others;
} counts;

static void count(counts *c, const char *name) {
    if (is_hidden_name(name))
        return;
    c->texts += (uint64_t)qn__names_text(name);
    c->others += (uint64_t)!qn__names_text(name);
}

static qn_status count_file(void *user, const char *name, uint64_t begin, uint64_t size,
                            qn_error *err) {
    (void)begin, (void)size, (void)err;
    count(user, name);
    return QN_OK;
}

static qn_status skip(qn__source *source, uint64_t size, qn_error *err) {
    uint8_t piece[1 << 14];
    qn_status status = QN_OK;
    for (size_t got = 1; status == QN_OK && size > 0 && got > 0; size -= got)
        status = qn__source_read(source, piece, size < sizeof piece ? (size_t)size : sizeof piece,
                                 &got, err);
    return status;
}

/* The size in a header: octal digits. Larger ones are not looked into. */
static uint64_t size_in(const uint8_t *header) {
    uint64_t size = 0;
    for (int i = 124; i < 136 && header[i] >= '0' && header[i] <= '7'; i++)
        size = size * 8 + (uint64_t)(header[i] - '0');
    return size;
}

/* Reads the headers of a compressed archive as far as is needed. A long name stands in a record of
 * its own, and is cut in the header: such a file does not count. */
static qn_status count_packed(qn__source *source, counts *c, qn_error *err) {
    uint8_t header[BLOCK];
    char name[101] = "";
    int cut = 0;
    for (int i = 0; i < LOOKED_AT && c->others == 0; i++) {
        size_t got = 0;
        qn_status status = qn__source_read(source, header, BLOCK, &got, err);
        if (status != QN_OK || got < BLOCK || header[0] == 0)
            return status;
        const char type = (char)header[156];
        const uint64_t size = size_in(header);
        memcpy(name, header, 100);
        if ((type == '0' || type == 0) && !cut)
            count(c, name);
        cut = type == 'L' || type == 'x';
        status = skip(source, (size + BLOCK - 1) / BLOCK * BLOCK, err);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

static qn_status count_zip(qn__source *source, counts *c, qn_error *err) {
    qn__zip *zip = NULL;
    const qn_status status = qn__zip_open(qn__source_descriptor(source), qn__source_path(source),
                                          qn__source_file_size(source), &zip, err);
    for (uint64_t i = 0; status == QN_OK && i < zip->count; i++) {
        const char *name = zip->entry[i].name;
        if (*name && name[strlen(name) - 1] != '/' && strncmp(name, "__MACOSX/", 9) != 0)
            count(c, name);
    }
    qn__zip_close(zip);
    return status;
}

static qn_status count_all(qn__source *source, const uint8_t *first, size_t got, counts *c,
                           qn_error *err) {
    if (qn__is_zip(first, got))
        return count_zip(source, c, err);
    const qn__tar_bytes tar = {.file = qn__source_descriptor(source),
                               .size = qn__source_file_size(source),
                               .path = qn__source_path(source)};
    if (qn__source_packing(source) == QN__PLAIN)
        return qn__tar_list(&tar, is_hidden_name, count_file, c, err);
    qn__source *again;
    qn_status status = qn__source_beside(source, &again, err);
    if (status == QN_OK)
        status = count_packed(again, c, err);
    qn__source_close(again);
    return status;
}

/* What is wrong with an archive, its reader says. */
qn_status qn__enclosed_texts_are(qn__source *source, int *texts, qn_error *err) {
    uint8_t first[BLOCK];
    size_t got = 0;
    int archive = 0;
    counts c = {0};
    *texts = 0;
    qn_status status = qn__is_archive(source, &archive, err);
    if (status != QN_OK || !archive)
        return status;
    status = peek(source, first, &got, err);
    if (status == QN_OK)
        *texts = count_all(source, first, got, &c, NULL) == QN_OK && c.texts > 0 && c.others == 0;
    return status;
}

/* ------------------------------------------------------------------ bytes */

/* All files of a ZIP archive, one after the other. */
static qn_status unpack_all(qn__enclosed_texts *t, qn_error *err) {
    qn__enclosed_bytes own = {0};
    uint64_t total = 0, at = 0;
    qn_status status = QN_OK;
    for (uint64_t i = 0; status == QN_OK && i < t->files.count; i++)
        if (__builtin_add_overflow(total, t->files.file[i].size, &total))
            status = qn__fail_memory(err, UINT64_MAX, 1);
    if (status == QN_OK)
        status = qn__contents_make(total, t->files.path, &t->contents, err);
    uint8_t *to = (uint8_t *)(uintptr_t)t->contents.data;
    for (uint64_t i = 0; status == QN_OK && i < t->files.count; i++) {
        status = qn__enclosed_files_read(&t->files, i, SIZE_MAX, &own, err);
        if (status != QN_OK)
            break;
        t->text[i] = to + at;
        t->files.file[i].size = own.size;
        if (own.size > 0)
            memcpy(to + at, own.data, own.size);
        at += own.size;
        qn__contents_wrote(&t->contents, (size_t)at);
    }
    qn__enclosed_bytes_release(&own);
    return status;
}

/* The files of a tar archive lie in it as they are. */
static qn_status find_all(qn__source *source, qn__enclosed_texts *t, qn_error *err) {
    const char *bytes = t->files.unpacked.data;
    qn_status status = QN_OK;
    if (!bytes) {
        status = qn__source_contents_of_any_size(source, 0, &t->contents, err);
        bytes = t->contents.data;
    }
    for (uint64_t i = 0; status == QN_OK && i < t->files.count; i++)
        t->text[i] = (const uint8_t *)bytes + t->files.file[i].begin;
    return status;
}

static qn_status check_text(const qn__enclosed_texts *t, uint64_t i, qn_error *err) {
    const size_t size = (size_t)t->files.file[i].size;
    const uint8_t *first = t->text[i];
    qn__packing packing;
    qn_status status;
    if (size == 0)
        status = qn__fail(err, QN_INPUT, "a file of the archive is empty");
    else if (qn__unpacker_for(first, size, &packing))
        status = qn__fail(err, QN_INPUT, "a file of the archive is compressed with %s",
                          qn__packing_name(packing));
    else if (qn__image_is(first, size))
        status = qn__fail(err, QN_INPUT, "a file of an archive of texts is an image");
    else
        status = qn__named_format_check((const char *)first, size, t->files.file[i].name, err);
    if (status == QN_OK)
        return QN_OK;
    qn__enclosed_files_at(&t->files, i, err);
    return qn__remedy(
        err, QN_INPUT,
        "give texts alone; unpack those that are compressed, and leave empty ones out");
}

qn_status qn__enclosed_texts_open(qn__source *source, qn__enclosed_texts *out, qn_error *err) {
    *out = (qn__enclosed_texts){.text = NULL};
    qn_status status = qn__enclosed_files_open(source, &out->files, err);
    if (status == QN_OK &&
        !(out->text = (const uint8_t **)qn__alloc(out->files.count, sizeof *out->text, err)))
        status = QN_MEMORY;
    if (status == QN_OK)
        status = out->files.zip ? unpack_all(out, err) : find_all(source, out, err);
    for (uint64_t i = 0; status == QN_OK && i < out->files.count; i++)
        status = check_text(out, i, err);
    return status;
}

void qn__enclosed_texts_release(qn__enclosed_texts *texts) {
    qn__free((void *)texts->text);
    qn__contents_release(&texts->contents);
    qn__enclosed_files_release(&texts->files);
    *texts = (qn__enclosed_texts){.text = NULL};
}
