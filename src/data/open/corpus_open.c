/* A corpus of the caller: files, or a column of a table. */
#include <quern/tokenizer.h>

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/bytes/file_list.h"
#include "data/open/documents.h"
#include "data/tokens/tokenizer.h"

struct qn_corpus {
    qn__documents_of of;
    qn_data *table; /* that owns the texts; NULL: files do */
};

/* Files that are texts themselves. */
static qn_status open_texts(const char *const *paths, size_t count, qn_corpus *c, qn_error *err) {
    qn__file_list list;
    qn_status status = qn__file_list_make(paths, count, 0, &list, err);
    if (status != QN_OK)
        return status;
    const char **all = (const char **)qn__alloc(list.count, sizeof *all, err);
    for (size_t i = 0; all && i < list.count; i++)
        all[i] = list.file[i].path;
    status = all ? qn__corpus_open(all, list.count, &c->of.texts, err) : QN_MEMORY;
    qn__free((void *)all);
    qn__file_list_release(&list);
    return status;
}

static qn_status open_table(const char *const *paths, size_t count, const char *text, int threads,
                            qn_corpus *c, qn_error *err) {
    qn_data_options options;
    qn_data_options_init(&options);
    options.text = text;
    options.threads = threads;
    options = qn__documents_table(&options);
    const qn_status status = qn__documents_open(paths, count, &options, &c->table, err);
    return status == QN_OK ? qn__documents_list(c->table, text, paths[0], &c->of, err) : status;
}

qn_status qn_corpus_open(const char *const *paths, size_t count, const char *text, uint32_t threads,
                         qn_corpus **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(paths, err);
    uint32_t used;
    qn_status status = qn__token_threads(threads, &used, err);
    qn_corpus *c = status == QN_OK ? qn__alloc(1, sizeof *c, err) : NULL;
    if (status == QN_OK)
        status = !c     ? QN_MEMORY
                 : text ? open_table(paths, count, text, (int)used, c, err)
                        : open_texts(paths, count, c, err);
    if (status == QN_OK)
        *out = c;
    else
        qn_corpus_close(c);
    return status;
}

void qn_corpus_close(qn_corpus *corpus) {
    QN__OWN_FLOATS;
    if (!corpus)
        return;
    if (corpus->of.texts.file)
        qn__corpus_close(&corpus->of.texts);
    qn_data_close(corpus->table);
    qn__free(corpus);
}

uint64_t qn_corpus_documents(const qn_corpus *corpus) {
    QN__OWN_FLOATS;
    return corpus ? corpus->of.texts.count : 0;
}

qn_status qn_tokenizer_from_corpus(const char *which, const qn_corpus *corpus, uint32_t threads,
                                   qn_tokenizer **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(which, err);
    QN__NEED(corpus, err);
    const qn__corpus *texts = &corpus->of.texts;
    qn_status status =
        qn__tokenizer_learn(which, texts->text, texts->count, threads, NULL, out, err);
    status = qn__corpus_end(texts, status, err);
    if (status != QN_OK) {
        qn_tokenizer_free(*out);
        *out = NULL;
    }
    return status;
}

qn_status qn_tokenizer_write_corpus(const qn_tokenizer *tokenizer, const qn_corpus *corpus,
                                    uint32_t threads, const char *path, uint64_t *tokens,
                                    qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(tokenizer, err);
    QN__NEED(corpus, err);
    QN__NEED(path, err);
    QN__NEED(tokens, err);
    return qn__corpus_write(tokenizer, &corpus->of.texts, threads, path, tokens, err);
}
