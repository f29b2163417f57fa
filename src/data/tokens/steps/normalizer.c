#include "data/tokens/steps/normalizer.h"

#include "base/memory.h"
#include "base/text/character.h"
#include "data/tokens/steps/stretches.h"
#include "data/tokens/unicode/unicode_forms.h"
#include <string.h>

/* A step's text on its way. */
typedef struct rewriting {
    const qn__normalizer_step *step;
    void *match;
    int goes_on;
    const uint8_t *text;
    size_t size;
    qn__byte_buffer *out;
    qn_error *err;
} rewriting;

typedef struct qn__normalizer_kind {
    const char *type;
    qn_status (*read)(qn__normalizer_step *step, const qn__json_node *node, qn_error *err);
    void (*write)(const qn__normalizer_step *step, qn__text *json);
    qn_status (*apply)(const rewriting *r);
    int is_local; /* a cut before a space between letters changes nothing */
} kind;

static qn_status wrong(qn_error *err, const char *what) {
    return qn__fail(err, QN_FORMAT, "the normaliser is wrong: %s", what);
}

static qn_status read_nothing(qn__normalizer_step *step, const qn__json_node *node, qn_error *err) {
    (void)step, (void)node, (void)err;
    return QN_OK;
}

static void write_nothing(const qn__normalizer_step *step, qn__text *json) {
    (void)step, (void)json;
}

/* ---- forms of Unicode, small letters, accents ---- */

static qn_status apply_nfc(const rewriting *r) {
    return qn__unicode_normalize(QN__NFC, r->text, r->size, r->out, r->err);
}

static qn_status apply_nfd(const rewriting *r) {
    return qn__unicode_normalize(QN__NFD, r->text, r->size, r->out, r->err);
}

static qn_status apply_nfkc(const rewriting *r) {
    return qn__unicode_normalize(QN__NFKC, r->text, r->size, r->out, r->err);
}

static qn_status apply_nfkd(const rewriting *r) {
    return qn__unicode_normalize(QN__NFKD, r->text, r->size, r->out, r->err);
}

/* Each character becomes the few that `change` gives. */
static qn_status map_each(const rewriting *r, size_t (*change)(uint32_t c, uint32_t to[2])) {
    qn_status status = QN_OK;
    for (size_t at = 0, length; status == QN_OK && at < r->size; at += length) {
        uint32_t to[2];
        const size_t count = change(qn__character(r->text + at, r->size - at, &length), to);
        for (size_t k = 0; status == QN_OK && k < count; k++)
            status = qn__byte_buffer_character(r->out, to[k], r->err);
    }
    return status;
}

static qn_status apply_lowercase(const rewriting *r) { return map_each(r, qn__bert_lower); }

static size_t without_mark(uint32_t c, uint32_t to[2]) {
    to[0] = c;
    return c >= 0x300 && qn__unicode_is_mark(c) ? 0 : 1;
}

static qn_status apply_accents(const rewriting *r) { return map_each(r, without_mark); }

/* Controls are dropped, and what looks like white space becomes a space. */
static size_t nmt(uint32_t c, uint32_t to[2]) {
    static const qn__character_range dropped[] = {
        {0x1, 0x8}, {0xB, 0xB}, {0xE, 0x1F}, {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}, {0, 0}};
    static const qn__character_range spaces[] = {
        {0x9, 0xA},       {0xC, 0xD},       {0x1680, 0x1680},
        {0x200B, 0x200F}, {0x2028, 0x2029}, {0x2581, 0x2581},
        {0xFEFF, 0xFEFF}, {0xFFFD, 0xFFFD}, {0, 0}};
    to[0] = qn__character_is_in(spaces, c) ? ' ' : c;
    return qn__character_is_in(dropped, c) ? 0 : 1;
}

static qn_status apply_nmt(const rewriting *r) { return map_each(r, nmt); }

/* ---- BertNormalizer ---- */

/* `strip_accents` is as `lowercase` where it is absent or null. */
static qn_status read_bert(qn__normalizer_step *step, const qn__json_node *node, qn_error *err) {
    (void)err;
    const qn__json_node *accents = qn__json_get(node, "strip_accents");
    const int lower = qn__json_is_true(qn__json_get(node, "lowercase"));
    step->bert = (qn__bert_normalizer){
        .clean = qn__json_is_true(qn__json_get(node, "clean_text")),
        .ideographs = qn__json_is_true(qn__json_get(node, "handle_chinese_chars")),
        .accents = accents && !qn__json_is_null(accents) ? qn__json_is_true(accents) : lower,
        .lower = lower};
    return QN_OK;
}

static void write_bert(const qn__normalizer_step *step, qn__text *json) {
    const qn__bert_normalizer *n = &step->bert;
    qn__text_add(json,
                 ", \"clean_text\": %s, \"handle_chinese_chars\": %s, \"strip_accents\": %s, "
                 "\"lowercase\": %s",
                 qn__truth_json(n->clean), qn__truth_json(n->ideographs),
                 qn__truth_json(n->accents), qn__truth_json(n->lower));
}

static qn_status apply_bert(const rewriting *r) {
    return qn__bert_normalize(&r->step->bert, r->text, r->size, r->out, r->err);
}

/* ---- Replace, Prepend, Strip ---- */

static qn_status read_replace(qn__normalizer_step *step, const qn__json_node *node, qn_error *err) {
    const qn__json_node *pattern = qn__json_get(node, "pattern");
    const char *expression = qn__json_string(qn__json_get(pattern, "Regex"));
    const char *string = qn__json_string(qn__json_get(pattern, "String"));
    const char *content = qn__json_string(qn__json_get(node, "content"));
    if ((!expression && !string) || !content)
        return wrong(err, "Replace has no \"pattern\" or no \"content\"");
    step->content = qn__copy_text(content, err);
    return step->content ? qn__expression_make(&step->expression, expression ? expression : string,
                                               !expression, 0, "the normaliser", err)
                         : QN_MEMORY;
}

static void write_replace(const qn__normalizer_step *step, qn__text *json) {
    qn__text_add(json, ", \"pattern\": ");
    qn__expression_write(&step->expression, json);
    qn__text_add(json, ", \"content\": ");
    qn__text_add_json(json, step->content);
}

/* An empty match right after a match does not count. */
static qn_status replace_in(const rewriting *r, const uint8_t *text, size_t size) {
    size_t done = 0, from = 0, place[2], length = 1;
    int found;
    qn_status status = QN_OK;
    while (status == QN_OK && from <= size) {
        status = qn__expression_match(&r->step->expression, r->match, text, size, from, place,
                                      &found, r->err);
        if (status != QN_OK || !found)
            break;
        from = place[1];
        if (place[0] == place[1]) {
            if (from < size)
                (void)qn__character(text + from, size - from, &length);
            from += length;
            if (place[0] == done && done)
                continue;
        }
        status = qn__byte_buffer_add(r->out, text + done, place[0] - done, r->err);
        if (status == QN_OK)
            status =
                qn__byte_buffer_add(r->out, r->step->content, strlen(r->step->content), r->err);
        done = place[1];
    }
    return status == QN_OK ? qn__byte_buffer_add(r->out, text + done, size - done, r->err) : status;
}

/* Expressions take well-formed text only. */
static qn_status apply_replace(const rewriting *r) {
    qn_status status = QN_OK;
    if (r->step->expression.is_string)
        return replace_in(r, r->text, r->size);
    for (size_t at = 0; status == QN_OK && at < r->size;) {
        const size_t end = qn__well_formed_end(r->text, r->size, at);
        const size_t next = qn__broken_end(r->text, r->size, end);
        status = end > at ? replace_in(r, r->text + at, end - at) : QN_OK;
        if (status == QN_OK)
            status = qn__byte_buffer_add(r->out, r->text + end, next - end, r->err);
        at = next;
    }
    return status;
}

static qn_status read_prepend(qn__normalizer_step *step, const qn__json_node *node, qn_error *err) {
    const char *content = qn__json_string(qn__json_get(node, "prepend"));
    if (!content)
        return wrong(err, "Prepend has no \"prepend\"");
    step->content = qn__copy_text(content, err);
    return step->content ? QN_OK : QN_MEMORY;
}

static void write_prepend(const qn__normalizer_step *step, qn__text *json) {
    qn__text_add(json, ", \"prepend\": ");
    qn__text_add_json(json, step->content);
}

static qn_status apply_prepend(const rewriting *r) {
    qn_status status = QN_OK;
    if (r->size && !r->goes_on)
        status = qn__byte_buffer_add(r->out, r->step->content, strlen(r->step->content), r->err);
    return status == QN_OK ? qn__byte_buffer_add(r->out, r->text, r->size, r->err) : status;
}

static qn_status read_strip(qn__normalizer_step *step, const qn__json_node *node, qn_error *err) {
    (void)err;
    step->left = qn__json_is_true(qn__json_get(node, "strip_left"));
    step->right = qn__json_is_true(qn__json_get(node, "strip_right"));
    return QN_OK;
}

static void write_strip(const qn__normalizer_step *step, qn__text *json) {
    qn__text_add(json, ", \"strip_left\": %s, \"strip_right\": %s", qn__truth_json(step->left),
                 qn__truth_json(step->right));
}

static qn_status apply_strip(const rewriting *r) {
    size_t begin = r->size, end = 0;
    for (size_t at = 0, length; at < r->size; at += length) {
        const uint32_t c = qn__character(r->text + at, r->size - at, &length);
        if (qn__character_is_space(c))
            continue;
        begin = at < begin ? at : begin;
        end = at + length;
    }
    begin = r->step->left ? begin : 0;
    end = r->step->right ? end : r->size;
    return end > begin ? qn__byte_buffer_add(r->out, r->text + begin, end - begin, r->err) : QN_OK;
}

/* ---- Precompiled ---- */

static qn_status read_map(qn__normalizer_step *step, const qn__json_node *node, qn_error *err) {
    const char *text = qn__json_string(qn__json_get(node, "precompiled_charsmap"));
    if (!text)
        return wrong(err, "Precompiled has no \"precompiled_charsmap\"");
    return qn__charsmap_read(&step->map, text, err);
}

static void write_map(const qn__normalizer_step *step, qn__text *json) {
    qn__text_add(json, ", \"precompiled_charsmap\": ");
    qn__text_add_json(json, step->map.base64);
}

static qn_status apply_map(const rewriting *r) {
    return qn__charsmap_apply(&r->step->map, r->text, r->size, r->out, r->err);
}

static const kind kinds[] = {
    {"NFC", read_nothing, write_nothing, apply_nfc, 1},
    {"NFD", read_nothing, write_nothing, apply_nfd, 1},
    {"NFKC", read_nothing, write_nothing, apply_nfkc, 1},
    {"NFKD", read_nothing, write_nothing, apply_nfkd, 1},
    {"Lowercase", read_nothing, write_nothing, apply_lowercase, 1},
    {"StripAccents", read_nothing, write_nothing, apply_accents, 1},
    {"Nmt", read_nothing, write_nothing, apply_nmt, 1},
    {"BertNormalizer", read_bert, write_bert, apply_bert, 1},
    {"Replace", read_replace, write_replace, apply_replace, 0},
    {"Prepend", read_prepend, write_prepend, apply_prepend, 1},
    {"Strip", read_strip, write_strip, apply_strip, 0},
    {"Precompiled", read_map, write_map, apply_map, 1},
};

/* ---- all of them ---- */

static qn_status read_step(qn__normalizer *n, const qn__json_node *node, qn_error *err) {
    const char *type = qn__json_string(qn__json_get(node, "type"));
    if (!type)
        return wrong(err, "a step has no \"type\"");
    if (n->count == QN__NORMALIZER_STEPS)
        return qn__fail(err, QN_FORMAT, "the normaliser has more than %d steps",
                        QN__NORMALIZER_STEPS);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(type, kinds[k].type) == 0) {
            n->step[n->count].kind = &kinds[k];
            return kinds[k].read(&n->step[n->count++], node, err);
        }
    return qn__fail(err, QN_UNSUPPORTED, "the normaliser %s is not supported", type);
}

qn_status qn__normalizer_read(qn__normalizer *normalizer, const qn__json_node *node,
                              qn_error *err) {
    const char *type = qn__json_string(qn__json_get(node, "type"));
    const qn__json_node *list = qn__json_get(node, "normalizers");
    qn_status status = QN_OK;
    if (!node || qn__json_is_null(node))
        return QN_OK;
    if (!type || strcmp(type, "Sequence") != 0)
        return read_step(normalizer, node, err);
    for (size_t k = 0; status == QN_OK && k < qn__json_count(list); k++)
        status = read_step(normalizer, qn__json_at(list, k), err);
    return status;
}

void qn__normalizer_write(const qn__normalizer *normalizer, qn__text *json) {
    if (!normalizer->count)
        qn__text_add(json, "null");
    if (normalizer->count > 1)
        qn__text_add(json, "{\"type\": \"Sequence\", \"normalizers\": [");
    for (size_t k = 0; k < normalizer->count; k++) {
        const qn__normalizer_step *step = &normalizer->step[k];
        qn__text_add(json, "%s{\"type\": \"%s\"", k ? ", " : "", step->kind->type);
        step->kind->write(step, json);
        qn__text_add(json, "}");
    }
    if (normalizer->count > 1)
        qn__text_add(json, "]}");
}

void qn__normalizer_release(qn__normalizer *normalizer) {
    for (size_t k = 0; k < normalizer->count; k++) {
        qn__expression_release(&normalizer->step[k].expression);
        qn__charsmap_release(&normalizer->step[k].map);
        qn__free(normalizer->step[k].content);
    }
    normalizer->count = 0;
}

/* A text that is replaced may not reach over the cut: one character, or an expression of T5. */
static int is_local(const qn__normalizer_step *step) {
    const qn__expression *e = &step->expression;
    if (step->kind->is_local)
        return 1;
    if (!e->pattern)
        return 0;
    const size_t size = strlen(e->pattern);
    return e->is_string ? qn__utf8_length(e->pattern, size) == size
                        : strcmp(e->pattern, " {2,}") == 0;
}

int qn__normalizer_is_local(const qn__normalizer *normalizer) {
    for (size_t k = 0; k < normalizer->count; k++)
        if (!is_local(&normalizer->step[k]))
            return 0;
    return 1;
}

const char *qn__normalizer_mark(const qn__normalizer *normalizer, int *before) {
    const char *mark = "";
    *before = 0;
    for (size_t k = 0; k < normalizer->count; k++) {
        const qn__normalizer_step *step = &normalizer->step[k];
        if (step->expression.is_string && strcmp(step->expression.pattern, " ") == 0)
            mark = step->content;
    }
    for (size_t k = 0; k < normalizer->count; k++)
        if (normalizer->step[k].kind->apply == apply_prepend)
            *before |= strcmp(normalizer->step[k].content, mark) == 0;
    return mark;
}

qn_status qn__normalizer_worker_make(const qn__normalizer *normalizer,
                                     qn__normalizer_worker *worker, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t k = 0; status == QN_OK && k < normalizer->count; k++)
        status = qn__expression_worker(&normalizer->step[k].expression, &worker->match[k], err);
    return status;
}

void qn__normalizer_worker_release(qn__normalizer_worker *worker) {
    for (size_t k = 0; k < QN__NORMALIZER_STEPS; k++)
        qn__expression_worker_release(worker->match[k]);
    for (size_t k = 0; k < 2; k++)
        qn__byte_buffer_release(&worker->text[k]);
}

qn_status qn__normalize(const qn__normalizer *normalizer, qn__normalizer_worker *worker,
                        int goes_on, const uint8_t **text, size_t *size, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t k = 0; status == QN_OK && k < normalizer->count; k++) {
        qn__byte_buffer *out = &worker->text[k & 1];
        const qn__normalizer_step *step = &normalizer->step[k];
        const rewriting r = {step, worker->match[k], goes_on, *text, *size, out, err};
        out->size = 0;
        status = step->kind->apply(&r);
        *text = out->bytes;
        *size = out->size;
    }
    return status;
}
