#include "data/tokens/pre_tokenizer.h"

#include <string.h>

/* The state while the list is read. */
typedef struct reader {
    qn__splitter *splitter;
    int *prefix_space;
    int steps;      /* how many were read */
    int byte_level; /* the last one was ByteLevel, after which nothing may come */
} reader;

static qn_status wrong(qn_error *err, const char *what) {
    return qn__fail(err, QN_FORMAT, "the pre-tokeniser is wrong: %s", what);
}

/* Absent: as `fallback`. */
static int flag(const qn__json_node *node, const char *key, int fallback) {
    const qn__json_node *value = qn__json_get(node, key);
    return value && !qn__json_is_null(value) ? qn__json_is_true(value) : fallback;
}

static qn_status read_byte_level(reader *r, const qn__json_node *node, qn_error *err) {
    const int prefix = flag(node, "add_prefix_space", 1);
    r->byte_level = 1;
    if (prefix && r->steps)
        return qn__fail(err, QN_UNSUPPORTED,
                        "the pre-tokeniser ByteLevel has \"add_prefix_space\" after other steps");
    *r->prefix_space = prefix;
    return flag(node, "use_regex", 1)
               ? qn__splitter_add(r->splitter, qn__scanner_gpt2.pattern, 0, QN__SPLIT_ALL, err)
               : QN_OK;
}

static qn_status read_split(reader *r, const qn__json_node *node, qn_error *err) {
    const qn__json_node *pattern = qn__json_get(node, "pattern");
    const char *expression = qn__json_string(qn__json_get(pattern, "Regex"));
    const char *string = qn__json_string(qn__json_get(pattern, "String"));
    const char *behavior = qn__json_string(qn__json_get(node, "behavior"));
    const int invert = flag(node, "invert", 0);
    if (!behavior || (!expression && !string))
        return wrong(err, "Split has no \"behavior\", or no \"pattern\"");
    qn__split_kept kept = QN__SPLIT_ALL;
    if (strcmp(behavior, "Removed") == 0)
        kept = invert ? QN__SPLIT_MATCHES : QN__SPLIT_BETWEEN;
    else if (strcmp(behavior, "Isolated") != 0)
        return qn__fail(err, QN_UNSUPPORTED,
                        "the pre-tokeniser Split has the behavior \"%s\"; Isolated and Removed are "
                        "supported",
                        behavior);
    return qn__splitter_add(r->splitter, expression ? expression : string, !expression, kept, err);
}

static qn_status read_digits(reader *r, const qn__json_node *node, qn_error *err) {
    return qn__splitter_add(r->splitter, flag(node, "individual_digits", 0) ? "\\p{N}" : "\\p{N}+",
                            0, QN__SPLIT_ALL, err);
}

static const struct step {
    const char *type;
    qn_status (*read)(reader *r, const qn__json_node *node, qn_error *err);
} steps[] = {{"ByteLevel", read_byte_level}, {"Split", read_split}, {"Digits", read_digits}};

static qn_status read_step(reader *r, const qn__json_node *node, qn_error *err) {
    const char *type = qn__json_string(qn__json_get(node, "type"));
    if (!type)
        return wrong(err, "a step has no \"type\"");
    if (r->byte_level)
        return qn__fail(err, QN_UNSUPPORTED, "the pre-tokeniser has %s after ByteLevel", type);
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        if (strcmp(type, steps[k].type) == 0) {
            const qn_status status = steps[k].read(r, node, err);
            r->steps++;
            return status;
        }
    return qn__fail(err, QN_UNSUPPORTED,
                    "the pre-tokeniser %s is not supported; ByteLevel, Split and Digits are", type);
}

qn_status qn__pre_tokenizer_read(const qn__json_node *node, qn__splitter *splitter,
                                 int *prefix_space, qn_error *err) {
    reader r = {splitter, prefix_space, 0, 0};
    const char *type = qn__json_string(qn__json_get(node, "type"));
    const int one = !type || strcmp(type, "Sequence") != 0;
    const qn__json_node *list = one ? NULL : qn__json_get(node, "pretokenizers");
    qn_status status = one ? read_step(&r, node, err) : QN_OK;
    for (size_t k = 0; status == QN_OK && k < qn__json_count(list); k++)
        status = read_step(&r, qn__json_at(list, k), err);
    if (status == QN_OK && !r.byte_level)
        return qn__fail(err, QN_UNSUPPORTED,
                        "the pre-tokeniser does not end with ByteLevel; only byte-level BPE is "
                        "supported");
    return status;
}

static void write_split(const qn__split_step *step, qn__text *json) {
    qn__text_add(
        json, "{\"type\": \"Split\", \"pattern\": {\"%s\": ", step->is_string ? "String" : "Regex");
    qn__text_add_json(json, step->pattern);
    qn__text_add(json, "}, \"behavior\": \"%s\", \"invert\": %s}, ",
                 step->kept == QN__SPLIT_ALL ? "Isolated" : "Removed",
                 step->kept == QN__SPLIT_MATCHES ? "true" : "false");
}

void qn__pre_tokenizer_write(const qn__splitter *splitter, int prefix_space, qn__text *json) {
    const qn__split_step *first = splitter->step;
    const int own =
        splitter->count == 1 && first->scanner == &qn__scanner_gpt2 && first->kept == QN__SPLIT_ALL;
    if (!own)
        qn__text_add(json, "{\"type\": \"Sequence\", \"pretokenizers\": [");
    for (size_t k = 0; !own && k < splitter->count; k++)
        write_split(&splitter->step[k], json);
    qn__text_add(json,
                 "{\"type\": \"ByteLevel\", \"add_prefix_space\": %s, \"trim_offsets\": true, "
                 "\"use_regex\": %s}",
                 prefix_space ? "true" : "false", own ? "true" : "false");
    if (!own)
        qn__text_add(json, "]}");
}
