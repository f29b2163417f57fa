#include "data/tokens/models/text_path.h"

#include "data/tokens/steps/pre_tokenizer.h"
#include "data/tokens/steps/stretches.h"
#include <string.h>

qn_status qn__text_path_read(qn__text_path *path, const qn__json_node *root,
                             qn__vocabulary *vocabulary, qn_error *err) {
    qn_status status =
        qn__normalizer_read(&path->normalizer, qn__json_get(root, "normalizer"), err);
    if (status == QN_OK)
        status = qn__added_tokens_read(&path->added, qn__json_get(root, "added_tokens"),
                                       &path->normalizer, vocabulary, err);
    return status == QN_OK
               ? qn__pre_tokenizer_read(qn__json_get(root, "pre_tokenizer"), &path->splitter,
                                        &path->byte_level, &path->prefix_space, err)
               : status;
}

void qn__text_path_write(const qn__text_path *path, const qn__token_frame *frame, qn__text *json) {
    qn__text_add(json, "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, "
                       "\"added_tokens\": ");
    qn__added_tokens_write(&path->added, json);
    qn__text_add(json, ", \"normalizer\": ");
    qn__normalizer_write(&path->normalizer, json);
    qn__text_add(json, ", \"pre_tokenizer\": ");
    qn__pre_tokenizer_write(&path->splitter, path->byte_level, path->prefix_space, json);
    qn__text_add(json, ", \"post_processor\": ");
    qn__token_frame_write(frame, json);
}

void qn__text_path_release(qn__text_path *path) {
    qn__added_tokens_release(&path->added);
    qn__normalizer_release(&path->normalizer);
    qn__splitter_release(&path->splitter);
}

const char *qn__text_path_mark(const qn__text_path *path, int *before) {
    for (size_t k = 0; k < path->splitter.count; k++)
        if (path->splitter.step[k].is_metaspace) {
            *before = path->splitter.step[k].prefix != QN__PREFIX_NEVER;
            return path->splitter.step[k].expression.pattern;
        }
    return qn__normalizer_mark(&path->normalizer, before);
}

size_t qn__text_path_cut(const qn__text_path *path, const uint8_t *text, size_t size, size_t at) {
    if (!path->added.cuttable || !qn__normalizer_is_local(&path->normalizer))
        return size;
    return path->spaces_cut && !path->splitter.count
               ? qn__scanner_cut(text, size, at)
               : qn__splitter_cut(&path->splitter, text, size, at);
}

qn_status qn__path_words_make(qn__path_words *words, const qn__text_path *path, qn_error *err) {
    words->path = path;
    const qn_status status = qn__normalizer_worker_make(&path->normalizer, &words->normal, err);
    return status == QN_OK ? qn__split_worker_make(&path->splitter, &words->split, err) : status;
}

void qn__path_words_release(qn__path_words *words) {
    qn__split_worker_release(&words->split);
    qn__normalizer_worker_release(&words->normal);
    qn__byte_buffer_release(&words->copy);
}

/* Well-formed text is cut to words; broken bytes that follow one another are a word. */
static qn_status each_stretch(qn__path_words *w, const uint8_t *text, size_t size, int first,
                              qn_error *err) {
    const qn__split_taker taker = {w->word, w->user};
    qn_status status = QN_OK;
    w->split.begin = first ? text : NULL;
    for (size_t at = 0; status == QN_OK && at < size;) {
        const size_t end = qn__well_formed_end(text, size, at);
        const size_t next = qn__broken_end(text, size, end);
        status = qn__split(&w->path->splitter, &w->split, text + at, end - at, &taker, err);
        if (status == QN_OK && next > end)
            status = w->word(w->user, text + end, next - end, err);
        at = next;
    }
    return status;
}

static qn_status with_space(qn__path_words *w, const uint8_t *text, size_t size, int first,
                            qn_error *err) {
    w->copy.size = 0;
    qn_status status = qn__byte_buffer_add(&w->copy, " ", 1, err);
    if (status == QN_OK)
        status = qn__byte_buffer_add(&w->copy, text, size, err);
    return status == QN_OK ? each_stretch(w, w->copy.bytes, w->copy.size, first, err) : status;
}

/* A part of the text between added tokens. `first`: the text begins with it. */
static qn_status each_part(qn__path_words *w, const uint8_t *text, size_t size, int first,
                           qn_error *err) {
    return w->path->prefix_space && text[0] != ' ' ? with_space(w, text, size, first, err)
                                                   : each_stretch(w, text, size, first, err);
}

typedef qn_status each_of(qn__path_words *w, const uint8_t *text, size_t size, int first,
                          qn_error *err);

/* Cuts at added tokens, those that are looked for after the normaliser or the others; what stands
 * between them goes to `each`. */
static qn_status between(qn__path_words *w, int normalized, const uint8_t *text, size_t size,
                         int first, each_of *each, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t at = 0; status == QN_OK && at < size;) {
        size_t begin = size, end = size;
        const qn__added_token *found =
            qn__added_tokens_find(&w->path->added, normalized, text, size, at, &begin, &end);
        if (begin > at)
            status = each(w, text + at, begin - at, first && at == 0, err);
        if (status == QN_OK && found)
            status = w->added(w->user, found->number, err);
        at = end;
    }
    return status;
}

static qn_status normal_section(qn__path_words *w, const uint8_t *text, size_t size, int goes_on,
                                int first, qn_error *err) {
    const qn_status status =
        qn__normalize(&w->path->normalizer, &w->normal, goes_on, &text, &size, err);
    return status == QN_OK ? between(w, 1, text, size, first, each_part, err) : status;
}

static qn_status each_section(qn__path_words *w, const uint8_t *text, size_t size, int first,
                              qn_error *err) {
    return normal_section(w, text, size, 0, first, err);
}

static qn_status later_section(qn__path_words *w, const uint8_t *text, size_t size, int first,
                               qn_error *err) {
    return normal_section(w, text, size, first, 0, err);
}

qn_status qn__path_words_each(qn__path_words *words, const uint8_t *text, size_t size, int goes_on,
                              qn_error *err) {
    return between(words, 0, text, size, 1, goes_on ? later_section : each_section, err);
}
