#include "data/tokens/corpus.h"

#include "base/memory.h"

struct qn__corpus_file {
    qn__source *source; /* open as long as its text is in a file, which may change; else NULL */
    qn__contents contents;
};

/* A text in memory needs its file no more: many small files would be too many open ones. */
static qn_status settle(struct qn__corpus_file *file, qn_status status, qn_error *err) {
    if (file->contents.file && status == QN_OK)
        return QN_OK;
    status = qn__source_end(file->source, status, err);
    qn__source_close(file->source);
    file->source = NULL;
    return status;
}

static qn_status take(qn__source *source, struct qn__corpus_file *file, qn__token_text *text,
                      qn_error *err) {
    file->source = source;
    qn_status status = qn__source_contents_of_any_size(source, 0, &file->contents, err);
    *text = (qn__token_text){(const uint8_t *)file->contents.data, file->contents.size};
    return settle(file, status, err);
}

static qn_status reserve(size_t count, qn__corpus *out, qn_error *err) {
    *out = (qn__corpus){.text = qn__alloc(count, sizeof *out->text, err)};
    out->file = out->text ? qn__alloc(count, sizeof *out->file, err) : NULL;
    return out->file ? QN_OK : QN_MEMORY;
}

qn_status qn__corpus_open(const char *const *paths, size_t count, qn__corpus *out, qn_error *err) {
    qn_status status = reserve(count, out, err);
    while (status == QN_OK && out->count < count) {
        const size_t k = out->count++;
        qn__source *source = NULL;
        status = qn__source_open(paths[k], &source, err);
        if (status == QN_OK)
            status = take(source, &out->file[k], &out->text[k], err);
    }
    if (status != QN_OK)
        qn__corpus_close(out);
    return status;
}

qn_status qn__corpus_of_source(qn__source *source, qn__corpus *out, qn_error *err) {
    qn_status status = reserve(1, out, err);
    if (status != QN_OK)
        qn__source_close(source);
    else
        status = take(source, &out->file[out->count++], out->text, err);
    if (status != QN_OK)
        qn__corpus_close(out);
    return status;
}

qn_status qn__corpus_end(const qn__corpus *corpus, qn_status status, qn_error *err) {
    for (size_t k = 0; corpus->file && status == QN_OK && k < corpus->count; k++)
        if (corpus->file[k].source)
            status = qn__source_end(corpus->file[k].source, status, err);
    return status;
}

void qn__corpus_close(qn__corpus *corpus) {
    for (size_t k = 0; corpus->file && k < corpus->count; k++) {
        qn__contents_release(&corpus->file[k].contents);
        qn__source_close(corpus->file[k].source);
    }
    qn__free(corpus->file);
    qn__free(corpus->text);
    *corpus = (qn__corpus){0};
}
