#include "data/tokens/splitter.h"

#include "base/memory.h"
#include "base/system/pcre2_library.h"
#include "data/tokens/character_class.h"
#include <string.h>

static qn_status compile(qn__split_step *step, qn_error *err) {
    int error;
    size_t place;
    /* Verbs such as (*UTF) would change what the flags below say. */
    if (strncmp(step->pattern, "(*", 2) == 0) {
        qn__fail(err, QN_FORMAT, "an expression of the pre-tokeniser begins with (*");
        return QN_FORMAT;
    }
    const qn_status status = qn__optional_need(
        &qn__pcre2_library, "the expression of this tokenizer's pre-tokeniser needs PCRE2",
        "use a tokenizer with the expression of GPT-2, GPT-4, Llama 3 or Qwen", err);
    if (status != QN_OK)
        return status;
    step->code = qn__pcre2_functions.compile(
        (const uint8_t *)step->pattern, strlen(step->pattern),
        QN__PCRE2_UTF | QN__PCRE2_UCP | QN__PCRE2_NEVER_BACKSLASH_C, &error, &place, NULL);
    if (step->code) {
        (void)qn__pcre2_functions.jit_compile(step->code, QN__PCRE2_JIT_COMPLETE);
        return QN_OK;
    }
    char message[128] = "";
    qn__pcre2_functions.message(error, (uint8_t *)message, sizeof message);
    qn__fail(err, QN_FORMAT, "the expression of the pre-tokeniser is wrong at byte %zu: %s", place,
             message);
    return QN_FORMAT;
}

qn_status qn__splitter_add(qn__splitter *splitter, const char *pattern, int is_string,
                           qn__split_kept kept, qn_error *err) {
    if (splitter->count == QN__SPLIT_STEPS)
        return qn__fail(err, QN_FORMAT, "the pre-tokeniser has more than %d steps",
                        QN__SPLIT_STEPS);
    if (!*pattern)
        return qn__fail(err, QN_FORMAT, "an expression of the pre-tokeniser is empty");
    splitter->classes = qn__character_classes();
    qn__split_step *step = &splitter->step[splitter->count++];
    *step = (qn__split_step){.is_string = is_string, .kept = kept};
    step->pattern = qn__copy_text(pattern, err);
    if (!step->pattern)
        return QN_MEMORY;
    step->scanner = is_string ? NULL : qn__scanner_find(pattern);
    return step->scanner || is_string ? QN_OK : compile(step, err);
}

size_t qn__splitter_cut(const qn__splitter *splitter, const uint8_t *text, size_t size, size_t at) {
    if (splitter->count != 1 || !splitter->step[0].scanner)
        return size;
    return qn__scanner_cut(text, size, at);
}

void qn__splitter_release(qn__splitter *splitter) {
    for (size_t k = 0; k < splitter->count; k++) {
        qn__free(splitter->step[k].pattern);
        if (splitter->step[k].code)
            qn__pcre2_functions.code_free(splitter->step[k].code);
    }
    splitter->count = 0;
}

qn_status qn__split_worker_make(const qn__splitter *splitter, qn__split_worker *worker,
                                qn_error *err) {
    for (size_t k = 0; k < splitter->count; k++)
        if (splitter->step[k].code) {
            worker->match[k] = qn__pcre2_functions.match_create(splitter->step[k].code, NULL);
            if (!worker->match[k])
                return qn__fail_memory(err, 1, 1024);
        }
    return QN_OK;
}

void qn__split_worker_release(const qn__splitter *splitter, qn__split_worker *worker) {
    for (size_t k = 0; k < splitter->count; k++)
        if (worker->match[k])
            qn__pcre2_functions.match_free(worker->match[k]);
}

/* A match from `from` on, at place[0] to place[1]; *found: there is one. */
static qn_status match(const qn__split_step *step, void *match, const uint8_t *text, size_t size,
                       size_t from, size_t place[2], int *found, qn_error *err) {
    *found = 0;
    if (step->is_string) {
        const size_t length = strlen(step->pattern);
        const uint8_t *at =
            from < size ? memmem(text + from, size - from, step->pattern, length) : NULL;
        *found = at != NULL;
        place[0] = at ? (size_t)(at - text) : size;
        place[1] = place[0] + length;
        return QN_OK;
    }
    const int matched = qn__pcre2_functions.match(step->code, text, size, from,
                                                  QN__PCRE2_NO_UTF_CHECK, match, NULL);
    if (matched == QN__PCRE2_NO_MATCH)
        return QN_OK;
    if (matched < 0) {
        char message[128] = "";
        qn__pcre2_functions.message(matched, (uint8_t *)message, sizeof message);
        return qn__fail(err, QN_INPUT, "the pre-tokeniser cannot cut this text: %s", message);
    }
    const size_t *places = qn__pcre2_functions.places(match);
    *found = places[0] <= places[1] && places[0] >= from; /* not so with \K in a lookahead */
    place[0] = places[0];
    place[1] = places[1];
    return QN_OK;
}

static qn_status split_from(const qn__splitter *splitter, qn__split_worker *worker, size_t k,
                            const uint8_t *text, size_t size, const qn__split_taker *taker,
                            qn_error *err);

/* A part of the text that step `k` has cut goes to the next step. */
static qn_status hand_on(const qn__splitter *splitter, qn__split_worker *worker, size_t k,
                         int is_match, const uint8_t *text, size_t size,
                         const qn__split_taker *taker, qn_error *err) {
    const qn__split_kept kept = splitter->step[k].kept;
    if (!size || (is_match && kept == QN__SPLIT_BETWEEN) ||
        (!is_match && kept == QN__SPLIT_MATCHES))
        return QN_OK;
    return k + 1 < splitter->count ? split_from(splitter, worker, k + 1, text, size, taker, err)
                                   : taker->word(taker->user, text, size, err);
}

static size_t next_character(const uint8_t *text, size_t size, size_t at) {
    size_t length = 1;
    if (at < size)
        (void)qn__code_point(text + at, &length);
    return at + length;
}

/* By a pattern that may leave gaps. An empty match right after a match does not count; any other
 * one cuts where it stands. */
static qn_status split_by_pattern(const qn__splitter *splitter, qn__split_worker *worker, size_t k,
                                  const uint8_t *text, size_t size, const qn__split_taker *taker,
                                  qn_error *err) {
    size_t done = 0, from = 0, place[2];
    int found;
    qn_status status = QN_OK;
    while (status == QN_OK && from <= size) {
        status = match(&splitter->step[k], worker->match[k], text, size, from, place, &found, err);
        if (status != QN_OK || !found)
            break;
        from = place[0] == place[1] ? next_character(text, size, place[1]) : place[1];
        if (place[0] == place[1] && place[0] == done)
            continue;
        status = hand_on(splitter, worker, k, 0, text + done, place[0] - done, taker, err);
        if (status == QN_OK)
            status =
                hand_on(splitter, worker, k, 1, text + place[0], place[1] - place[0], taker, err);
        done = place[1];
    }
    return status == QN_OK ? hand_on(splitter, worker, k, 0, text + done, size - done, taker, err)
                           : status;
}

static qn_status split_from(const qn__splitter *splitter, qn__split_worker *worker, size_t k,
                            const uint8_t *text, size_t size, const qn__split_taker *taker,
                            qn_error *err) {
    const qn__scanner *scanner = splitter->step[k].scanner;
    if (!scanner)
        return split_by_pattern(splitter, worker, k, text, size, taker, err);
    qn_status status = QN_OK;
    for (size_t at = 0, end; status == QN_OK && at < size; at = end) {
        end = qn__scanner_end(scanner, splitter->classes, text, size, at);
        status = hand_on(splitter, worker, k, 1, text + at, end - at, taker, err);
    }
    return status;
}

qn_status qn__split(const qn__splitter *splitter, qn__split_worker *worker, const uint8_t *text,
                    size_t size, const qn__split_taker *taker, qn_error *err) {
    if (!size)
        return QN_OK;
    return splitter->count ? split_from(splitter, worker, 0, text, size, taker, err)
                           : taker->word(taker->user, text, size, err);
}
