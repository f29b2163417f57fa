#include "data/tokens/models/token_frame.h"

#include "base/memory.h"
#include "data/tokens/models/vocabulary.h"
#include <string.h>

/* A frame on its way: tokens are put around those that are there. */
typedef struct reader {
    qn__token_frame *frame;
    uint32_t size;          /* of the vocabulary */
    uint32_t before, after; /* how many this processor has added */
} reader;

static qn_status wrong(qn_error *err, const char *what) {
    return qn__fail(err, QN_FORMAT, "\"post_processor\" is wrong: %s", what);
}

/* Adds a token: before the text and what stands there, or after all. */
static qn_status add(reader *r, int after, const char *text, uint64_t number, qn_error *err) {
    qn__token_frame *f = r->frame;
    const uint32_t count = f->before + f->after;
    if (!text || number >= r->size)
        return wrong(err, "a token has no name, or a number that is not in the vocabulary");
    if (count == QN__FRAME_MOST)
        return qn__fail(err, QN_UNSUPPORTED, "\"post_processor\" adds more than %d tokens",
                        QN__FRAME_MOST);
    const uint32_t at = after ? count : r->before++;
    char *copy = qn__copy_text(text, err);
    if (!copy)
        return QN_MEMORY;
    memmove(f->number + at + 1, f->number + at, (count - at) * sizeof *f->number);
    memmove(f->text + at + 1, f->text + at, (count - at) * sizeof *f->text);
    f->number[at] = (uint32_t)number;
    f->text[at] = copy;
    f->before += !after;
    f->after += after ? 1 : 0;
    return QN_OK;
}

/* ["[CLS]", 101] */
static qn_status add_pair(reader *r, int after, const qn__json_node *pair, qn_error *err) {
    uint64_t number = UINT64_MAX;
    (void)qn__json_u64(qn__json_at(pair, 1), &number);
    return add(r, after, qn__json_string(qn__json_at(pair, 0)), number, err);
}

static qn_status read_bert(reader *r, const qn__json_node *node, qn_error *err) {
    const qn__json_node *begin = qn__json_get(node, "cls"), *end = qn__json_get(node, "sep");
    if (qn__json_count(begin) != 2 || qn__json_count(end) != 2)
        return wrong(err, "it has no \"cls\" or no \"sep\"");
    const qn_status status = add_pair(r, 0, begin, err);
    return status == QN_OK ? add_pair(r, 1, end, err) : status;
}

/* A name of the template may stand for several tokens. */
static qn_status add_special(reader *r, int after, const qn__json_node *special, qn_error *err) {
    const qn__json_node *numbers = qn__json_get(special, "ids");
    const qn__json_node *texts = qn__json_get(special, "tokens");
    qn_status status = QN_OK;
    if (!qn__json_is_array(numbers) || qn__json_count(texts) != qn__json_count(numbers))
        return wrong(err, "a token of \"single\" is not in \"special_tokens\"");
    for (size_t k = 0; status == QN_OK && k < qn__json_count(numbers); k++) {
        uint64_t number = UINT64_MAX;
        (void)qn__json_u64(qn__json_at(numbers, k), &number);
        status = add(r, after, qn__json_string(qn__json_at(texts, k)), number, err);
    }
    return status;
}

static qn_status read_template(reader *r, const qn__json_node *node, qn_error *err) {
    const qn__json_node *single = qn__json_get(node, "single");
    const qn__json_node *specials = qn__json_get(node, "special_tokens");
    int texts = 0;
    qn_status status = QN_OK;
    if (!qn__json_is_array(single))
        return wrong(err, "TemplateProcessing has no list \"single\"");
    for (size_t k = 0; status == QN_OK && k < qn__json_count(single); k++) {
        const qn__json_node *piece = qn__json_at(single, k);
        const qn__json_node *special = qn__json_get(piece, "SpecialToken");
        const char *name = qn__json_string(qn__json_get(special, "id"));
        if (special)
            status = add_special(r, texts, name ? qn__json_get(specials, name) : NULL, err);
        else
            texts++;
    }
    return status == QN_OK && texts != 1 ? wrong(err, "\"single\" has not one text") : status;
}

static qn_status read_nothing(reader *r, const qn__json_node *node, qn_error *err) {
    (void)r, (void)node, (void)err;
    return QN_OK;
}

static const struct processor {
    const char *type;
    qn_status (*read)(reader *r, const qn__json_node *node, qn_error *err);
} processors[] = {{"ByteLevel", read_nothing},
                  {"TemplateProcessing", read_template},
                  {"BertProcessing", read_bert},
                  {"RobertaProcessing", read_bert}};

static qn_status read_processor(qn__token_frame *frame, const qn__json_node *node, uint32_t size,
                                qn_error *err) {
    const char *type = qn__json_string(qn__json_get(node, "type"));
    reader r = {.frame = frame, .size = size};
    for (size_t k = 0; type && k < sizeof processors / sizeof *processors; k++)
        if (strcmp(type, processors[k].type) == 0)
            return processors[k].read(&r, node, err);
    return qn__fail(err, QN_UNSUPPORTED, "the post-processor %s is not supported",
                    type ? type : "?");
}

qn_status qn__token_frame_read(qn__token_frame *frame, const qn__json_node *node, uint32_t size,
                               qn_error *err) {
    const char *type = qn__json_string(qn__json_get(node, "type"));
    const qn__json_node *list = qn__json_get(node, "processors");
    qn_status status = QN_OK;
    if (!node || qn__json_is_null(node))
        return QN_OK;
    if (!type || strcmp(type, "Sequence") != 0)
        return read_processor(frame, node, size, err);
    for (size_t k = 0; status == QN_OK && k < qn__json_count(list); k++)
        status = read_processor(frame, qn__json_at(list, k), size, err);
    return status;
}

/* A list that is written: `between` stands before its next member. */
typedef struct list {
    qn__text *json;
    const char *between;
} list;

static void write_names(const qn__token_frame *f, uint32_t from, uint32_t to, int type, list *l) {
    for (uint32_t k = from; k < to; k++) {
        qn__text_add(l->json, "%s{\"SpecialToken\": {\"id\": ", l->between);
        qn__text_add_json(l->json, f->text[k]);
        qn__text_add(l->json, ", \"type_id\": %d}}", type);
        l->between = ", ";
    }
}

static void write_text(const char *name, int type, list *l) {
    qn__text_add(l->json, "%s{\"Sequence\": {\"id\": \"%s\", \"type_id\": %d}}", l->between, name,
                 type);
    l->between = ", ";
}

static void write_template(const qn__token_frame *f, int pair, qn__text *json) {
    const uint32_t all = f->before + f->after;
    list l = {json, ""};
    qn__text_add(json, "[");
    write_names(f, 0, f->before, 0, &l);
    write_text("A", 0, &l);
    write_names(f, f->before, all, 0, &l);
    if (pair) {
        write_text("B", 1, &l);
        write_names(f, f->before, all, 1, &l);
    }
    qn__text_add(json, "]");
}

static int came_before(const qn__token_frame *f, uint32_t k) {
    for (uint32_t i = 0; i < k; i++)
        if (f->number[i] == f->number[k])
            return 1;
    return 0;
}

void qn__token_frame_write(const qn__token_frame *frame, qn__text *json) {
    const uint32_t all = frame->before + frame->after;
    if (!all) {
        qn__text_add(json, "null");
        return;
    }
    qn__text_add(json, "{\"type\": \"TemplateProcessing\", \"single\": ");
    write_template(frame, 0, json);
    qn__text_add(json, ", \"pair\": ");
    write_template(frame, 1, json);
    qn__text_add(json, ", \"special_tokens\": {");
    for (uint32_t k = 0; k < all; k++) {
        if (came_before(frame, k))
            continue;
        qn__text_add(json, "%s", k ? ", " : "");
        qn__text_add_json(json, frame->text[k]);
        qn__text_add(json, ": {\"id\": ");
        qn__text_add_json(json, frame->text[k]);
        qn__text_add(json, ", \"ids\": [%u], \"tokens\": [", (unsigned)frame->number[k]);
        qn__text_add_json(json, frame->text[k]);
        qn__text_add(json, "]}");
    }
    qn__text_add(json, "}}");
}

qn_status qn__token_frame_add(const qn__token_frame *frame, int after, qn__token_ids *ids,
                              qn_error *err) {
    const qn_status status = qn__token_ids_reserve(ids, QN__FRAME_MOST, err);
    const uint32_t from = after ? frame->before : 0;
    const uint32_t to = after ? frame->before + frame->after : frame->before;
    for (uint32_t k = from; status == QN_OK && k < to; k++)
        qn__token_ids_add(ids, frame->number[k]);
    return status;
}

void qn__token_frame_release(qn__token_frame *frame) {
    for (uint32_t k = 0; k < frame->before + frame->after; k++)
        qn__free(frame->text[k]);
    *frame = (qn__token_frame){0};
}
