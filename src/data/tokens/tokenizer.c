/* Tokenizers are made, asked and freed. */
#include "data/tokens/tokenizer.h"

#include "base/argument.h"
#include "base/digest/sha256.h"
#include "base/files/file.h"
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
    return qn__remedy(err, QN_USAGE,
                      "write bytes, chars, words:20000, bpe:8000, bpe:FILE, "
                      "wordpiece:FILE, unigram:FILE or file:FILE");
}

/* The kind that a text names, and what stands after its colon. NULL: file:FILE, of any kind. */
static qn_status find_kind(const char *which, const qn__token_kind **kind, const char **after,
                           qn_error *err) {
    const char *names[16] = {0};
    const size_t size = strcspn(which, ":");
    *after = which[size] ? which + size + 1 : NULL;
    *kind = NULL;
    if (*after && qn__same_word("file", which, size))
        return QN_OK;
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
        t->kind->write(t->state, &t->frame, &json);
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

static qn_tokenizer *make(const qn__token_kind *kind, qn_error *err) {
    qn_tokenizer *t = qn__alloc(1, sizeof *t, err);
    if (t) {
        t->self = t;
        t->kind = kind;
        pthread_mutex_init(&t->lock, NULL);
    }
    return t;
}

/* `part`: other ranks count other texts; NULL: there are none. */
static qn_status count_words(const qn__token_kind *kind, const char *after,
                             const qn__token_text *texts, size_t count, uint32_t threads,
                             const qn__part_reading *part, qn__word_table *words, qn_error *err) {
    qn_status status = kind->count ? kind->count(after, texts, count, threads, words, err) : QN_OK;
    return kind->count && part ? part->join(part->user, words, status, err) : status;
}

static qn_status learn(const qn__token_kind *kind, const char *after, const qn__token_text *texts,
                       size_t count, uint32_t threads, const qn__part_reading *part,
                       qn_tokenizer **out, qn_error *err) {
    qn__word_table words = {0};
    qn_tokenizer *t = NULL;
    qn_status status = count_words(kind, after, texts, count, threads, part, &words, err);
    if (status == QN_OK)
        status = (t = make(kind, err)) ? QN_OK : QN_MEMORY;
    if (status == QN_OK && kind->learn)
        status = kind->learn(after, &words, &t->state, err);
    qn__word_table_release(&words);
    return t ? complete(t, status, out, err) : status;
}

/* The kind that a text is of; NULL: of none. */
static const qn__token_kind *kind_of_json(const qn__json_node *root) {
    const char *name = qn__json_string(qn__json_get(root, "kind"));
    const char *model = qn__json_string(qn__json_get(qn__json_get(root, "model"), "type"));
    for (size_t k = 0; qn__token_kinds[k]; k++) {
        const qn__token_kind *kind = qn__token_kinds[k];
        if (kind->model ? model && strcmp(kind->model, model) == 0
                        : name && strcmp(kind->name, name) == 0)
            return kind;
    }
    return NULL;
}

static qn_status refuse_kind(const qn__json_node *root, qn_error *err) {
    const char *model = qn__json_string(qn__json_get(qn__json_get(root, "model"), "type"));
    if (!model)
        return qn__fail(err, QN_FORMAT, "this is not the text of a tokenizer");
    return qn__fail(err, QN_UNSUPPORTED, "the tokenizer has a model of the type %s", model);
}

/* A tokenizer of a text; `wanted`: of this kind, NULL: of any. */
static qn_status read_text(const char *json, size_t size, const qn__token_kind *wanted,
                           qn_tokenizer **out, qn_error *err) {
    qn__json *document = NULL;
    qn_status status = qn__json_parse(json, size, &document, err);
    if (status != QN_OK)
        return qn__remedy(err, status, "the file is damaged or cut: copy or save it again");
    const qn__json_node *root = qn__json_root(document);
    const qn__token_kind *kind = kind_of_json(root);
    qn_tokenizer *t = NULL;
    if (!kind)
        status = refuse_kind(root, err);
    else if (wanted && kind != wanted)
        status = qn__fail(err, QN_FORMAT, "this is a tokenizer of %s, not of %s", kind->name,
                          wanted->name);
    else {
        t = make(kind, err);
        status = t ? kind->read(root, &t->state, err) : QN_MEMORY;
        if (status == QN_OK && kind->model)
            status = qn__token_frame_read(&t->frame, qn__json_get(root, "post_processor"),
                                          kind->size(t->state), err);
    }
    qn__json_free(document);
    if (t)
        status = complete(t, status, out, err);
    if (status == QN_FORMAT && err && !*err->remedy)
        qn__remedy(err, status, "use a tokenizer.json as the package tokenizers saves it");
    if (status == QN_UNSUPPORTED && err && !*err->remedy)
        qn__remedy(err, status, "docs/tokens.md lists what is supported");
    return status;
}

static qn_status read_file(const char *path, const qn__token_kind *kind, qn_tokenizer **out,
                           qn_error *err) {
    if (!path || !*path) {
        const char *name = kind ? kind->name : "file";
        qn__fail(err, QN_USAGE, "%s needs a file", name);
        return qn__remedy(err, QN_USAGE, "write %s:tokenizer.json%s", name,
                          kind && kind->count ? ", or bpe:8000 to learn 8000 tokens" : "");
    }
    qn__bytes bytes = {0};
    qn_status status = qn__file_read(path, &bytes, err);
    if (status == QN_OK) {
        status = read_text((const char *)bytes.data, bytes.size, kind, out, err);
        if (status != QN_OK && status != QN_MEMORY)
            qn__at(err, "%s", path);
    }
    qn__bytes_release(&bytes);
    return status;
}

/* Whether a text asks for a vocabulary that is learned: not where it names a file. */
static int is_learned(const qn__token_kind *kind, const char *after) {
    return kind && kind->count &&
           (!kind->is_file || (after && *after && !after[strspn(after, "0123456789")]));
}

/* Whether it names a file with a tokenizer. */
static int is_read(const qn__token_kind *kind, const char *after) {
    return !kind || (kind->is_file && !is_learned(kind, after));
}

static qn_status need_corpus(const char *which, int given, int learned, qn_error *err) {
    if (given || !learned)
        return QN_OK;
    qn__fail(err, QN_INPUT, "\"%s\" learns its vocabulary from a corpus, and none was given",
             which);
    return qn__remedy(err, QN_INPUT, "name the files of the corpus");
}

int qn__tokenizer_learns(const char *which) {
    const qn__token_kind *kind;
    const char *after;
    return find_kind(which, &kind, &after, NULL) == QN_OK && is_learned(kind, after);
}

qn_status qn__tokenizer_open(const char *which, const char *const *paths, uint32_t count,
                             uint32_t threads, const qn__part_reading *part, qn_tokenizer **out,
                             qn_error *err) {
    const qn__token_kind *kind;
    const char *after;
    qn_status status = find_kind(which, &kind, &after, err);
    if (status == QN_OK)
        status = qn__token_threads(threads, &threads, err);
    if (status == QN_OK)
        status = need_corpus(which, paths && count, is_learned(kind, after), err);
    qn__corpus corpus = {0};
    if (status == QN_OK && is_learned(kind, after))
        status = qn__corpus_open(paths, count, &corpus, err);
    if (status == QN_OK)
        status = is_read(kind, after)
                     ? read_file(after, kind, out, err)
                     : learn(kind, after, corpus.text, corpus.count, threads, part, out, err);
    status = qn__corpus_end(&corpus, status, err);
    if (status != QN_OK) {
        qn_tokenizer_free(*out);
        *out = NULL;
    }
    qn__corpus_close(&corpus);
    return status;
}

qn_status qn_tokenizer_open(const char *which, const char *const *paths, uint32_t count,
                            uint32_t threads, qn_tokenizer **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(which, err);
    return qn__tokenizer_open(which, paths, count, threads, NULL, out, err);
}

qn_status qn__tokenizer_learn(const char *which, const qn__token_text *texts, size_t count,
                              uint32_t threads, const qn__part_reading *part, qn_tokenizer **out,
                              qn_error *err) {
    const qn__token_kind *kind;
    const char *after;
    qn_status status = find_kind(which, &kind, &after, err);
    if (status == QN_OK)
        status = qn__token_threads(threads, &threads, err);
    if (status == QN_OK)
        status = need_corpus(which, count > 0 || part, is_learned(kind, after), err);
    if (status != QN_OK)
        return status;
    return is_read(kind, after) ? read_file(after, kind, out, err)
                                : learn(kind, after, texts, count, threads, part, out, err);
}

qn_status qn_tokenizer_learn(const char *which, const void *corpus, size_t size, uint32_t threads,
                             qn_tokenizer **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(which, err);
    if (size)
        QN__NEED(corpus, err);
    const qn__token_text text = {corpus, size};
    return qn__tokenizer_learn(which, &text, size != 0, threads, NULL, out, err);
}

qn_status qn_tokenizer_from_json(const char *json, size_t size, qn_tokenizer **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(json, err);
    return read_text(json, size, NULL, out, err);
}

void qn_tokenizer_free(qn_tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    for (uint32_t k = 0; k < tokenizer->idle_count; k++)
        tokenizer->kind->worker_free(tokenizer->state, tokenizer->idle[k]);
    pthread_mutex_destroy(&tokenizer->lock);
    if (tokenizer->kind->release)
        tokenizer->kind->release(tokenizer->state);
    qn__token_frame_release(&tokenizer->frame);
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

const uint32_t *qn_tokenizer_frame(const qn_tokenizer *tokenizer, uint32_t *before,
                                   uint32_t *after) {
    if (before)
        *before = tokenizer ? tokenizer->frame.before : 0;
    if (after)
        *after = tokenizer ? tokenizer->frame.after : 0;
    return tokenizer ? tokenizer->frame.number : NULL;
}

const char *qn_tokenizer_json(const qn_tokenizer *tokenizer, size_t *size) {
    if (size)
        *size = tokenizer ? tokenizer->json_size : 0;
    return tokenizer ? tokenizer->json : "";
}

const char *qn_tokenizer_digest(const qn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->digest : "";
}
