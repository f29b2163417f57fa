#include "data/tokens/corpus.h"

#include "base/memory.h"
#include "data/bytes/enclosed_texts.h"
#include <string.h>

struct qn__corpus_file {
    qn__source *source; /* open as long as its text is in a file, which may change; else NULL */
    qn__contents contents;
    qn__enclosed_texts in; /* of an archive */
};

/* A text in memory needs its file no more: many small files would be too many open ones. */
static qn_status settle(struct qn__corpus_file *file, qn_status status, qn_error *err) {
    if (file->in.text || (file->contents.file && status == QN_OK))
        return status;
    status = qn__source_end(file->source, status, err);
    qn__source_close(file->source);
    file->source = NULL;
    return status;
}

static qn_status reserve(size_t more, qn__corpus *c, qn_error *err) {
    const size_t wanted = c->count + more;
    if (wanted <= c->capacity)
        return QN_OK;
    const size_t capacity = wanted > 2 * c->capacity ? wanted : 2 * c->capacity;
    qn__token_text *text = qn__alloc(capacity, sizeof *text, err);
    if (!text)
        return QN_MEMORY;
    if (c->count > 0)
        memcpy(text, c->text, c->count * sizeof *text);
    qn__free(c->text);
    c->text = text;
    c->capacity = capacity;
    return QN_OK;
}

static qn_status take_archive(struct qn__corpus_file *file, qn__corpus *c, qn_error *err) {
    qn_status status = qn__enclosed_texts_open(file->source, &file->in, err);
    const size_t count = status == QN_OK ? (size_t)file->in.files.count : 0;
    if (status == QN_OK)
        status = reserve(count, c, err);
    for (size_t i = 0; status == QN_OK && i < count; i++)
        c->text[c->count++] =
            (qn__token_text){file->in.text[i], (size_t)file->in.files.file[i].size};
    return status;
}

static qn_status take_text(struct qn__corpus_file *file, qn__corpus *c, qn_error *err) {
    qn_status status = qn__source_contents_of_any_size(file->source, 0, &file->contents, err);
    if (status == QN_OK)
        status = reserve(1, c, err);
    if (status == QN_OK)
        c->text[c->count++] =
            (qn__token_text){(const uint8_t *)file->contents.data, file->contents.size};
    return status;
}

static qn_status take(qn__source *source, qn__corpus *c, qn_error *err) {
    struct qn__corpus_file *file = &c->file[c->files++];
    int archive = 0;
    file->source = source;
    qn_status status = qn__is_archive(source, &archive, err);
    if (status == QN_OK)
        status = (archive ? take_archive : take_text)(file, c, err);
    return settle(file, status, err);
}

static qn_status begin(size_t count, qn__corpus *out, qn_error *err) {
    *out = (qn__corpus){.file = qn__alloc(count, sizeof *out->file, err)};
    return out->file ? reserve(count, out, err) : QN_MEMORY;
}

qn_status qn__corpus_open(const char *const *paths, size_t count, qn__corpus *out, qn_error *err) {
    qn_status status = begin(count, out, err);
    for (size_t k = 0; status == QN_OK && k < count; k++) {
        qn__source *source = NULL;
        status = qn__source_open(paths[k], &source, err);
        if (status == QN_OK)
            status = take(source, out, err);
    }
    if (status != QN_OK)
        qn__corpus_close(out);
    return status;
}

qn_status qn__corpus_of_source(qn__source *source, qn__corpus *out, qn_error *err) {
    qn_status status = begin(1, out, err);
    if (status != QN_OK)
        qn__source_close(source);
    else
        status = take(source, out, err);
    if (status != QN_OK)
        qn__corpus_close(out);
    return status;
}

qn_status qn__corpus_end(const qn__corpus *corpus, qn_status status, qn_error *err) {
    for (size_t k = 0; status == QN_OK && k < corpus->files; k++)
        if (corpus->file[k].source)
            status = qn__source_end(corpus->file[k].source, status, err);
    return status;
}

void qn__corpus_close(qn__corpus *corpus) {
    for (size_t k = 0; k < corpus->files; k++) {
        qn__enclosed_texts_release(&corpus->file[k].in);
        qn__contents_release(&corpus->file[k].contents);
        qn__source_close(corpus->file[k].source);
    }
    qn__free(corpus->file);
    qn__free(corpus->text);
    *corpus = (qn__corpus){0};
}
