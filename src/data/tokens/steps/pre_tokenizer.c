#include "data/tokens/steps/pre_tokenizer.h"

#include "data/tokens/steps/bert_text.h"
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

/* What a behavior keeps; `inverted`: it takes what is between matches for them. */
static const struct behavior {
    const char *name;
    qn__split_kept kept, inverted;
} behaviors[] = {{"Isolated", QN__SPLIT_ALL, QN__SPLIT_ALL},
                 {"Removed", QN__SPLIT_BETWEEN, QN__SPLIT_MATCHES},
                 {"MergedWithPrevious", QN__SPLIT_PREVIOUS, QN__SPLIT_NEXT},
                 {"MergedWithNext", QN__SPLIT_NEXT, QN__SPLIT_PREVIOUS},
                 {"Contiguous", QN__SPLIT_TOGETHER, QN__SPLIT_TOGETHER}};

static const struct behavior *behavior_of(qn__split_kept kept) {
    for (size_t k = 0; k < sizeof behaviors / sizeof *behaviors; k++)
        if (behaviors[k].kept == kept)
            return &behaviors[k];
    return &behaviors[1]; /* Removed, inverted */
}

static qn_status read_behavior(const qn__json_node *node, int invert, qn__split_kept *kept,
                               qn_error *err) {
    const char *name = qn__json_string(node);
    for (size_t k = 0; name && k < sizeof behaviors / sizeof *behaviors; k++)
        if (strcmp(name, behaviors[k].name) == 0) {
            *kept = invert ? behaviors[k].inverted : behaviors[k].kept;
            return QN_OK;
        }
    return wrong(err, "a step has no \"behavior\" that is known");
}

static qn_status read_split(reader *r, const qn__json_node *node, qn_error *err) {
    const qn__json_node *pattern = qn__json_get(node, "pattern");
    const char *expression = qn__json_string(qn__json_get(pattern, "Regex"));
    const char *string = qn__json_string(qn__json_get(pattern, "String"));
    qn__split_kept kept = QN__SPLIT_ALL;
    if (!expression && !string)
        return wrong(err, "Split has no \"pattern\"");
    const qn_status status =
        read_behavior(qn__json_get(node, "behavior"), flag(node, "invert", 0), &kept, err);
    return status == QN_OK ? qn__splitter_add(r->splitter, expression ? expression : string,
                                              !expression, kept, err)
                           : status;
}

static qn_status read_white_space(reader *r, const qn__json_node *node, qn_error *err) {
    (void)node;
    return qn__splitter_add_class(r->splitter, qn__character_is_space, QN__SPLIT_BETWEEN, err);
}

static qn_status read_punctuation(reader *r, const qn__json_node *node, qn_error *err) {
    const qn__json_node *behavior = qn__json_get(node, "behavior");
    qn__split_kept kept = QN__SPLIT_ALL;
    const qn_status status = behavior ? read_behavior(behavior, 0, &kept, err) : QN_OK;
    return status == QN_OK ? qn__splitter_add_class(r->splitter, qn__bert_is_punctuation, kept, err)
                           : status;
}

static qn_status read_bert(reader *r, const qn__json_node *node, qn_error *err) {
    const qn_status status = read_white_space(r, node, err);
    return status == QN_OK
               ? qn__splitter_add_class(r->splitter, qn__bert_is_punctuation, QN__SPLIT_ALL, err)
               : status;
}

/* Words and what is between them, without white space. */
static qn_status read_words(reader *r, const qn__json_node *node, qn_error *err) {
    (void)node;
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}"
    return qn__splitter_add(r->splitter, "[" WORD "]+|[^\\s" WORD "]+", 0, QN__SPLIT_MATCHES, err);
#undef WORD
}

static const char *const prefixes[] = {"always", "first", "never"}; /* by qn__split_prefix */

static qn_status read_metaspace(reader *r, const qn__json_node *node, qn_error *err) {
    const char *mark = qn__json_string(qn__json_get(node, "replacement"));
    const char *scheme = qn__json_string(qn__json_get(node, "prepend_scheme"));
    size_t prefix = QN__PREFIX_ALWAYS;
    if (!mark || !*mark)
        return wrong(err, "Metaspace has no \"replacement\"");
    while (scheme && prefix < 3 && strcmp(scheme, prefixes[prefix]) != 0)
        prefix++;
    if (prefix == 3)
        return wrong(err, "Metaspace has a \"prepend_scheme\" that is not known");
    if (!flag(node, "add_prefix_space", 1))
        prefix = QN__PREFIX_NEVER;
    return qn__splitter_add_metaspace(r->splitter, mark, (qn__split_prefix)prefix,
                                      flag(node, "split", 1), err);
}

static qn_status read_digits(reader *r, const qn__json_node *node, qn_error *err) {
    return qn__splitter_add(r->splitter, flag(node, "individual_digits", 0) ? "\\p{N}" : "\\p{N}+",
                            0, QN__SPLIT_ALL, err);
}

static const struct step {
    const char *type;
    qn_status (*read)(reader *r, const qn__json_node *node, qn_error *err);
} steps[] = {{"ByteLevel", read_byte_level},
             {"Split", read_split},
             {"Digits", read_digits},
             {"Metaspace", read_metaspace},
             {"WhitespaceSplit", read_white_space},
             {"Whitespace", read_words},
             {"Punctuation", read_punctuation},
             {"BertPreTokenizer", read_bert}};

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
    return qn__fail(err, QN_UNSUPPORTED, "the pre-tokeniser %s is not supported", type);
}

qn_status qn__pre_tokenizer_read(const qn__json_node *node, qn__splitter *splitter, int *byte_level,
                                 int *prefix_space, qn_error *err) {
    reader r = {splitter, prefix_space, 0, 0};
    const char *type = qn__json_string(qn__json_get(node, "type"));
    const int one = !type || strcmp(type, "Sequence") != 0;
    const qn__json_node *list = one ? NULL : qn__json_get(node, "pretokenizers");
    if (!node || qn__json_is_null(node))
        return QN_OK;
    qn_status status = one ? read_step(&r, node, err) : QN_OK;
    for (size_t k = 0; status == QN_OK && k < qn__json_count(list); k++)
        status = read_step(&r, qn__json_at(list, k), err);
    *byte_level = r.byte_level;
    return status;
}

static void write_step(const qn__split_step *step, qn__text *json) {
    const char *behavior = behavior_of(step->kept)->name;
    if (step->is_metaspace) {
        qn__text_add(json, "{\"type\": \"Metaspace\", \"replacement\": ");
        qn__text_add_json(json, step->expression.pattern);
        qn__text_add(json, ", \"prepend_scheme\": \"%s\", \"split\": %s}", prefixes[step->prefix],
                     step->cuts ? "true" : "false");
    } else if (step->matches == qn__bert_is_punctuation) {
        qn__text_add(json, "{\"type\": \"Punctuation\", \"behavior\": \"%s\"}", behavior);
    } else if (step->matches) {
        qn__text_add(json, "{\"type\": \"WhitespaceSplit\"}");
    } else {
        qn__text_add(json, "{\"type\": \"Split\", \"pattern\": ");
        qn__expression_write(&step->expression, json);
        qn__text_add(json, ", \"behavior\": \"%s\", \"invert\": %s}", behavior,
                     step->kept == QN__SPLIT_MATCHES ? "true" : "false");
    }
}

static void write_byte_level(int prefix_space, int own, qn__text *json) {
    qn__text_add(json,
                 "{\"type\": \"ByteLevel\", \"add_prefix_space\": %s, \"trim_offsets\": true, "
                 "\"use_regex\": %s}",
                 prefix_space ? "true" : "false", own ? "true" : "false");
}

/* The two steps from `k` on are those of BertPreTokenizer. */
static int is_bert(const qn__splitter *splitter, size_t k) {
    const qn__split_step *s = &splitter->step[k];
    return k + 1 < splitter->count && s[0].matches == qn__character_is_space &&
           s[1].matches == qn__bert_is_punctuation && s[1].kept == QN__SPLIT_ALL;
}

/* Returns how many steps it has written. */
static size_t write_steps(const qn__splitter *splitter, size_t k, qn__text *json) {
    if (is_bert(splitter, k)) {
        qn__text_add(json, "{\"type\": \"BertPreTokenizer\"}");
        return 2;
    }
    write_step(&splitter->step[k], json);
    return 1;
}

void qn__pre_tokenizer_write(const qn__splitter *splitter, int byte_level, int prefix_space,
                             qn__text *json) {
    const qn__split_step *first = splitter->step;
    const int own = byte_level && splitter->count == 1 && first->scanner == &qn__scanner_gpt2 &&
                    first->kept == QN__SPLIT_ALL;
    const size_t single = splitter->count && is_bert(splitter, 0) ? 2 : 1;
    const int list = !own && (byte_level || splitter->count > single);
    if (list)
        qn__text_add(json, "{\"type\": \"Sequence\", \"pretokenizers\": [");
    for (size_t k = 0; !own && k < splitter->count;) {
        qn__text_add(json, "%s", k ? ", " : "");
        k += write_steps(splitter, k, json);
    }
    if (list && byte_level && splitter->count)
        qn__text_add(json, ", ");
    if (byte_level)
        write_byte_level(prefix_space, own, json);
    else if (!splitter->count)
        qn__text_add(json, "null");
    if (list)
        qn__text_add(json, "]}");
}
