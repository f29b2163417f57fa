/* Tokenizers are made, asked and freed. */
#include "data/tokens/tokenizer.h"

#include "base/argument.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "data/tokens/corpus.h"
#include <string.h>

qn_status qn__token_threads(uint32_t threads, uint32_t *out, qn_error *err) {
    *out = threads ? threads : (uint32_t)qn__cores();
    if (threads <= 4096)
        return QN_OK;
    qn__fail(err, QN_USAGE, "`threads` is %u", (unsigned)threads);
    return qn__remedy(err, QN_USAGE, "use 1 to 4096, or 0: one for each core");
}

static qn_status unknown_kind(const char *which, const char *const *names, qn_error *err) {
    const char *near = qn__nearest(which, names);
    qn__fail(err, QN_USAGE, "\"%s\" is not a tokenizer", which);
    if (near)
        return qn__remedy(err, QN_USAGE, "did you mean %s?", near);
    return qn__remedy(err, QN_USAGE, "write bytes, chars, words or words:20000");
}

/* The kind that a text names, and what stands after its colon. */
static qn_status find_kind(const char *which, const qn__token_kind **kind, const char **after,
                           qn_error *err) {
    const char *names[16] = {0};
    const size_t size = strcspn(which, ":");
    *after = which[size] ? which + size + 1 : NULL;
    for (size_t k = 0; qn__token_kinds[k]; k++) {
        *kind = qn__token_kinds[k];
        names[k] = (*kind)->name;
        if (!qn__same_word((*kind)->name, which, size))
            continue;
        if (!*after || (*kind)->takes)
            return QN_OK;
        qn__fail(err, QN_USAGE, "\"%s\": %s takes nothing after a colon", which, (*kind)->name);
        return qn__remedy(err, QN_USAGE, "write %s alone", (*kind)->name);
    }
    return unknown_kind(which, names, err);
}

/* A tokenizer that has its state gets its text and digest. Frees it after a failure. */
static qn_status complete(qn_tokenizer *t, qn_status status, qn_tokenizer **out, qn_error *err) {
    qn__text json = {0};
    if (status == QN_OK) {
        t->kind->write(t->state, &json);
        t->json_size = json.size;
        t->json = qn__text_take(&json, err);
        status = t->json ? QN_OK : QN_MEMORY;
    }
    if (status != QN_OK) {
        qn_tokenizer_free(t);
        return status;
    }
    uint8_t digest[32];
    qn__sha256_of(t->json, t->json_size, digest);
    qn__hex(digest, t->digest);
    *out = t;
    return QN_OK;
}

static qn_status learn(const qn__token_kind *kind, const char *after, const qn__corpus *corpus,
                       uint32_t threads, qn_tokenizer **out, qn_error *err) {
    qn_tokenizer *t = qn__alloc(1, sizeof *t, err);
    if (!t)
        return QN_MEMORY;
    t->kind = kind;
    const qn_status status =
        kind->learn(after, corpus->text, corpus->count, threads, &t->state, err);
    return complete(t, status, out, err);
}

static qn_status need_corpus(const char *which, int given, const qn__token_kind *kind,
                             qn_error *err) {
    if (given || !kind->learns)
        return QN_OK;
    qn__fail(err, QN_INPUT, "\"%s\" learns its vocabulary from a corpus, and none was given",
             which);
    return qn__remedy(err, QN_INPUT, "name the files of the corpus");
}

qn_status qn_tokenizer_open(const char *which, const char *const *paths, uint32_t count,
                            uint32_t threads, qn_tokenizer **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(which, err);
    const qn__token_kind *kind;
    const char *after;
    qn_status status = find_kind(which, &kind, &after, err);
    if (status == QN_OK)
        status = qn__token_threads(threads, &threads, err);
    if (status == QN_OK)
        status = need_corpus(which, paths && count, kind, err);
    qn__corpus corpus = {0};
    if (status == QN_OK && kind->learns)
        status = qn__corpus_open(paths, count, &corpus, err);
    if (status == QN_OK)
        status = learn(kind, after, &corpus, threads, out, err);
    status = qn__corpus_end(&corpus, status, err);
    if (status != QN_OK) {
        qn_tokenizer_free(*out);
        *out = NULL;
    }
    qn__corpus_close(&corpus);
    return status;
}

qn_status qn_tokenizer_learn(const char *which, const void *corpus, size_t size, uint32_t threads,
                             qn_tokenizer **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(which, err);
    const qn__token_kind *kind;
    const char *after;
    qn__token_text text = {corpus, size};
    const qn__corpus one = {.text = &text, .count = size != 0};
    qn_status status = find_kind(which, &kind, &after, err);
    if (status == QN_OK && kind->learns && size)
        QN__NEED(corpus, err);
    if (status == QN_OK)
        status = qn__token_threads(threads, &threads, err);
    if (status == QN_OK)
        status = need_corpus(which, size != 0, kind, err);
    return status == QN_OK ? learn(kind, after, &one, threads, out, err) : status;
}

static const qn__token_kind *kind_of_json(const qn__json_node *root) {
    const char *name = qn__json_string(qn__json_get(root, "kind"));
    for (size_t k = 0; name && qn__token_kinds[k]; k++)
        if (strcmp(qn__token_kinds[k]->name, name) == 0)
            return qn__token_kinds[k];
    return NULL;
}

qn_status qn_tokenizer_from_json(const char *json, size_t size, qn_tokenizer **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(json, err);
    qn__json *document = NULL;
    qn_status status = qn__json_parse(json, size, &document, err);
    qn_tokenizer *t = status == QN_OK ? qn__alloc(1, sizeof *t, err) : NULL;
    if (t) {
        const qn__json_node *root = qn__json_root(document);
        t->kind = kind_of_json(root);
        status = t->kind ? t->kind->read(root, &t->state, err)
                         : qn__token_json_wrong(err, "\"kind\" is not that of a tokenizer");
        status = complete(t, status, out, err);
    } else if (status == QN_OK)
        status = QN_MEMORY;
    qn__json_free(document);
    return status;
}

void qn_tokenizer_free(qn_tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    if (tokenizer->kind && tokenizer->kind->release)
        tokenizer->kind->release(tokenizer->state);
    qn__free(tokenizer->json);
    qn__free(tokenizer);
}

const char *qn_tokenizer_kind(const qn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->kind->name : "";
}

uint32_t qn_tokenizer_size(const qn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->kind->size(tokenizer->state) : 0;
}

uint32_t qn_tokenizer_unknown(const qn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->kind->unknown(tokenizer->state) : 0;
}

const char *qn_tokenizer_json(const qn_tokenizer *tokenizer, size_t *size) {
    if (size)
        *size = tokenizer ? tokenizer->json_size : 0;
    return tokenizer ? tokenizer->json : "";
}

const char *qn_tokenizer_digest(const qn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->digest : "";
}
