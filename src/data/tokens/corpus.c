#include "data/tokens/corpus.h"

#include "base/memory.h"

struct qn__corpus_file {
    qn__source *source;
    qn__contents contents;
};

static qn_status open_file(const char *path, struct qn__corpus_file *file, qn__token_text *text,
                           qn_error *err) {
    qn_status status = qn__source_open(path, &file->source, err);
    if (status == QN_OK)
        status = qn__source_contents(file->source, &file->contents, err);
    if (status == QN_OK)
        *text = (qn__token_text){(const uint8_t *)file->contents.data, file->contents.size};
    return status;
}

qn_status qn__corpus_open(const char *const *paths, size_t count, qn__corpus *out, qn_error *err) {
    *out = (qn__corpus){.text = qn__alloc(count, sizeof *out->text, err)};
    out->file = out->text ? qn__alloc(count, sizeof *out->file, err) : NULL;
    qn_status status = out->file ? QN_OK : QN_MEMORY;
    while (status == QN_OK && out->count < count) {
        const size_t k = out->count++;
        status = open_file(paths[k], &out->file[k], &out->text[k], err);
    }
    if (status != QN_OK)
        qn__corpus_close(out);
    return status;
}

qn_status qn__corpus_end(const qn__corpus *corpus, qn_status status, qn_error *err) {
    for (size_t k = 0; corpus->file && status == QN_OK && k < corpus->count; k++)
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
