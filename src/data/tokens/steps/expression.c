#include "data/tokens/steps/expression.h"

#include "base/memory.h"
#include "base/system/pcre2_library.h"
#include <stdio.h>
#include <string.h>

static qn_status compile(qn__expression *e, const char *whose, qn_error *err) {
    int error;
    size_t place;
    /* Verbs such as (*UTF) would change what the flags below say. */
    if (strncmp(e->pattern, "(*", 2) == 0)
        return qn__fail(err, QN_FORMAT, "an expression of %s begins with (*", whose);
    char needs[128];
    snprintf(needs, sizeof needs, "the expression of this tokenizer's %s needs PCRE2", whose + 4);
    const qn_status status = qn__optional_need(
        &qn__pcre2_library, needs,
        "use a tokenizer with the expression of GPT-2, GPT-4, Llama 3 or Qwen", err);
    if (status != QN_OK)
        return status;
    e->code = qn__pcre2_functions.compile(
        (const uint8_t *)e->pattern, strlen(e->pattern),
        QN__PCRE2_UTF | QN__PCRE2_UCP | QN__PCRE2_NEVER_BACKSLASH_C, &error, &place, NULL);
    if (e->code) {
        (void)qn__pcre2_functions.jit_compile(e->code, QN__PCRE2_JIT_COMPLETE);
        return QN_OK;
    }
    char message[128] = "";
    qn__pcre2_functions.message(error, (uint8_t *)message, sizeof message);
    return qn__fail(err, QN_FORMAT, "the expression of %s is wrong at byte %zu: %s", whose, place,
                    message);
}

qn_status qn__expression_make(qn__expression *expression, const char *pattern, int is_string,
                              int known, const char *whose, qn_error *err) {
    if (!*pattern)
        return qn__fail(err, QN_FORMAT, "an expression of %s is empty", whose);
    expression->is_string = is_string;
    expression->pattern = qn__copy_text(pattern, err);
    if (!expression->pattern)
        return QN_MEMORY;
    return is_string || known ? QN_OK : compile(expression, whose, err);
}

void qn__expression_write(const qn__expression *expression, qn__text *json) {
    qn__text_add(json, "{\"%s\": ", expression->is_string ? "String" : "Regex");
    qn__text_add_json(json, expression->pattern);
    qn__text_add(json, "}");
}

void qn__expression_release(qn__expression *expression) {
    qn__free(expression->pattern);
    if (expression->code)
        qn__pcre2_functions.code_free(expression->code);
    *expression = (qn__expression){0};
}

qn_status qn__expression_worker(const qn__expression *expression, void **worker, qn_error *err) {
    *worker = NULL;
    if (!expression->code)
        return QN_OK;
    *worker = qn__pcre2_functions.match_create(expression->code, NULL);
    return *worker ? QN_OK : qn__fail_memory(err, 1, 1024);
}

void qn__expression_worker_release(void *worker) {
    if (worker)
        qn__pcre2_functions.match_free(worker);
}

qn_status qn__expression_match(const qn__expression *expression, void *worker, const uint8_t *text,
                               size_t size, size_t from, size_t place[2], int *found,
                               qn_error *err) {
    *found = 0;
    if (expression->is_string) {
        const size_t length = strlen(expression->pattern);
        const uint8_t *at =
            from < size ? memmem(text + from, size - from, expression->pattern, length) : NULL;
        *found = at != NULL;
        place[0] = at ? (size_t)(at - text) : size;
        place[1] = place[0] + length;
        return QN_OK;
    }
    const int matched = qn__pcre2_functions.match(expression->code, text, size, from,
                                                  QN__PCRE2_NO_UTF_CHECK, worker, NULL);
    if (matched == QN__PCRE2_NO_MATCH)
        return QN_OK;
    if (matched < 0) {
        char message[128] = "";
        qn__pcre2_functions.message(matched, (uint8_t *)message, sizeof message);
        return qn__fail(err, QN_INPUT, "the tokenizer cannot cut this text: %s", message);
    }
    const size_t *places = qn__pcre2_functions.places(worker);
    *found = places[0] <= places[1] && places[0] >= from; /* not so with \K in a lookahead */
    place[0] = places[0];
    place[1] = places[1];
    return QN_OK;
}
