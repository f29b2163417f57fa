#include "base/text/json.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

typedef enum kind { NOTHING, TRUTH, FALSEHOOD, NUMBER, STRING, ARRAY, OBJECT } kind;

struct qn__json_node {
    kind kind;
    size_t key_position;         /* of the key's first quote in the text, for messages */
    const char *key;             /* NULL for an array's elements and the root */
    const char *text;            /* of a number or a string, NUL-terminated */
    const qn__json_node *inside; /* the members or elements of a container, `count` of them */
    size_t count;
};

/* All nodes are in one array. While a container is read, its members are on a stack that grows up
 * from the start of the array. When it ends they move to a region that grows down from the end of
 * the array, where they stay. Every node is in one of the two, so they never overlap, and the
 * members of a container are consecutive. */
struct qn__json {
    qn__json_node *nodes;
    size_t stacked;    /* nodes in use at the beginning */
    size_t settled;    /* index of the lowest final node at the end */
    char *texts;       /* decoded strings, keys and numbers, one after the other */
    size_t texts_size; /* bytes of it in use */
};

typedef struct reader {
    const char *text;
    size_t size, at;
    qn__json *json;
    qn_error *err;
} reader;

static qn_status refuse(reader *r, size_t position, const char *why) {
    qn__fail(r->err, QN_FORMAT, "invalid JSON at byte %zu: %s", position, why);
    return QN_FORMAT;
}

/* The next byte, or -1 at the end of the text. */
static int peek(const reader *r) { return r->at < r->size ? (unsigned char)r->text[r->at] : -1; }

static void skip_space(reader *r) {
    while (r->at < r->size && strchr(" \t\r\n", r->text[r->at]) && r->text[r->at] != 0)
        r->at++;
}

static void keep(reader *r, const char *bytes, size_t size) {
    memcpy(r->json->texts + r->json->texts_size, bytes, size);
    r->json->texts_size += size;
}

/* Four hexadecimal digits, or -1. */
static int read_hex(const reader *r, size_t at) {
    int code = 0;
    if (r->size - at < 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        const int digit = qn__hex_digit(r->text[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* At "\u": one escape, or two that make a surrogate pair. */
static qn_status read_unicode(reader *r) {
    const size_t begin = r->at;
    int code = read_hex(r, begin + 2);
    if (code < 0)
        return refuse(r, begin, "\\u requires four hexadecimal digits");
    if (code == 0)
        return refuse(r, begin, "a text that holds a NUL");
    r->at += 6;
    if (code >= 0xd800 && code < 0xe000) {
        const int pair = code < 0xdc00 && r->size - r->at >= 6 && r->text[r->at] == '\\' &&
                         r->text[r->at + 1] == 'u';
        const int low = pair ? read_hex(r, r->at + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return refuse(r, begin, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        r->at += 6;
    }
    char out[4];
    keep(r, out, qn__utf8_write((unsigned)code, out));
    return QN_OK;
}

static qn_status read_escape(reader *r) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char letter = r->at + 1 < r->size ? r->text[r->at + 1] : 0;
    if (letter == 'u')
        return read_unicode(r);
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (!found)
        return refuse(r, r->at, "an escape that JSON does not have");
    keep(r, &meanings[found - letters], 1);
    r->at += 2;
    return QN_OK;
}

/* At the opening quote. Decoding never makes a string longer, and its two quotes leave space for
 * the NUL, so that `texts` cannot overflow. */
static qn_status read_string(reader *r, const char **out) {
    const size_t begin = r->at++;
    const char *decoded = r->json->texts + r->json->texts_size;
    for (;;) {
        const int c = peek(r);
        if (c < 0)
            return refuse(r, begin, "a string without its closing quote");
        if (c == '"')
            break;
        if (c < 0x20)
            return refuse(r, r->at, "a control character in a string; write it as an escape");
        if (c == '\\') {
            const qn_status status = read_escape(r);
            if (status != QN_OK)
                return status;
            continue;
        }
        const size_t length = qn__utf8_length(r->text + r->at, r->size - r->at);
        if (length == 0)
            return refuse(r, r->at, "bytes that are not UTF-8");
        keep(r, r->text + r->at, length);
        r->at += length;
    }
    r->at++;
    keep(r, "", 1);
    *out = decoded;
    return QN_OK;
}

/* Skips digits; returns how many. */
static size_t skip_digits(reader *r) {
    const size_t begin = r->at;
    while (peek(r) >= '0' && peek(r) <= '9')
        r->at++;
    return r->at - begin;
}

static qn_status read_number(reader *r, qn__json_node *node) {
    const size_t begin = r->at;
    r->at += peek(r) == '-';
    const int zero = peek(r) == '0';
    const size_t whole = skip_digits(r);
    if (whole == 0)
        return refuse(r, r->at, "a number without a digit");
    if (zero && whole > 1)
        return refuse(r, begin, "a number with a leading zero");
    if (peek(r) == '.') {
        r->at++;
        if (skip_digits(r) == 0)
            return refuse(r, r->at, "a number without a digit after its point");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        r->at += peek(r) == '+' || peek(r) == '-';
        if (skip_digits(r) == 0)
            return refuse(r, r->at, "a number without a digit in its exponent");
    }
    node->kind = NUMBER;
    node->text = r->json->texts + r->json->texts_size;
    keep(r, r->text + begin, r->at - begin);
    keep(r, "", 1);
    return QN_OK;
}

static qn_status read_literal(reader *r, qn__json_node *node) {
    static const char *const words[] = {"true", "false", "null"};
    static const kind kinds[] = {TRUTH, FALSEHOOD, NOTHING};
    for (size_t i = 0; i < 3; i++) {
        const size_t length = strlen(words[i]);
        if (r->size - r->at >= length && memcmp(r->text + r->at, words[i], length) == 0) {
            r->at += length;
            node->kind = kinds[i];
            return QN_OK;
        }
    }
    return refuse(r, r->at, r->at < r->size ? "a value was expected here" : "the text ends early");
}

static int compare_keys(const void *a, const void *b) {
    const qn__json_node *const *first = a, *const *second = b;
    const int order = strcmp((*first)->key, (*second)->key);
    if (order != 0)
        return order;
    return (*first)->key_position < (*second)->key_position ? -1 : 1;
}

/* Sorted: comparing each pair of keys would let a small untrusted file cost minutes. */
static qn_status refuse_duplicates(reader *r, const qn__json_node *members, size_t count) {
    if (count < 2)
        return QN_OK;
    const qn__json_node **sorted = qn__alloc(count, sizeof *sorted, r->err);
    if (!sorted)
        return QN_MEMORY;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &members[i];
    qsort(sorted, count, sizeof *sorted, compare_keys);
    const qn__json_node *twin = NULL; /* the first in the text that repeats an earlier key */
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0 &&
            (!twin || sorted[i]->key_position < twin->key_position))
            twin = sorted[i];
    qn__free(sorted);
    if (!twin)
        return QN_OK;
    return qn__fail(r->err, QN_FORMAT, "invalid JSON at byte %zu: the key \"%s\" occurs twice",
                    twin->key_position, twin->key);
}

/* Moves the topmost `count` nodes of the stack to their final place. */
static const qn__json_node *settle(qn__json *json, size_t count) {
    json->stacked -= count;
    json->settled -= count;
    memmove(json->nodes + json->settled, json->nodes + json->stacked, count * sizeof *json->nodes);
    return json->nodes + json->settled;
}

static qn_status read_value(reader *r, qn__json_node *node, int depth);

/* A key and its colon, up to the value. */
static qn_status read_key(reader *r, qn__json_node *member) {
    member->key_position = r->at;
    if (peek(r) != '"')
        return refuse(r, r->at, "a key in double quotes was expected here");
    const qn_status status = read_string(r, &member->key);
    if (status != QN_OK)
        return status;
    skip_space(r);
    if (peek(r) != ':')
        return refuse(r, r->at, "':' was expected here");
    r->at++;
    skip_space(r);
    return QN_OK;
}

/* At the opening bracket. Each member is read into a local node and then pushed: its slot must not
 * be used before the slots of its own members are released. */
static qn_status read_container(reader *r, qn__json_node *node, int depth) {
    if (depth >= DEPTH_MAX)
        return refuse(r, r->at, "more than 32 levels of nesting");
    const int object = r->text[r->at++] == '{';
    const int closing = object ? '}' : ']';
    qn__json *json = r->json;
    size_t count = 0;
    skip_space(r);
    if (peek(r) != closing) {
        for (;;) {
            qn__json_node member = {0};
            qn_status status = object ? read_key(r, &member) : QN_OK;
            if (status == QN_OK)
                status = read_value(r, &member, depth + 1);
            if (status != QN_OK)
                return status;
            json->nodes[json->stacked++] = member;
            count++;
            skip_space(r);
            if (peek(r) != ',')
                break;
            r->at++;
            skip_space(r);
        }
        if (peek(r) != closing)
            return refuse(r, r->at,
                          object ? "',' or '}' was expected here" : "',' or ']' was expected here");
    }
    r->at++;
    node->kind = object ? OBJECT : ARRAY;
    node->count = count;
    node->inside = settle(json, count);
    return object ? refuse_duplicates(r, node->inside, count) : QN_OK;
}

static qn_status read_value(reader *r, qn__json_node *node, int depth) {
    const int c = peek(r);
    if (c == '{' || c == '[')
        return read_container(r, node, depth);
    if (c == '"') {
        node->kind = STRING;
        return read_string(r, &node->text);
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, node);
    return read_literal(r, node);
}

static qn_status read_document(reader *r) {
    qn__json_node root = {0};
    skip_space(r);
    const qn_status status = read_value(r, &root, 0);
    if (status != QN_OK)
        return status;
    skip_space(r);
    if (r->at < r->size)
        return refuse(r, r->at, "there is text after the end");
    r->json->nodes[r->json->stacked++] = root;
    settle(r->json, 1);
    return QN_OK;
}

/* A node is the root, the first in a container, or follows a comma. */
static size_t nodes_at_most(const char *text, size_t size) {
    size_t count = 1;
    for (size_t i = 0; i < size; i++)
        count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return count;
}

qn_status qn__json_parse(const char *text, size_t size, qn__json **out, qn_error *err) {
    *out = NULL;
    qn__json *json = qn__alloc(1, sizeof *json, err);
    if (!json)
        return QN_MEMORY;
    json->settled = nodes_at_most(text, size);
    json->nodes = qn__alloc(json->settled, sizeof *json->nodes, err);
    /* One more byte than the text, for the NUL of a document that is a single number. */
    json->texts = json->nodes ? qn__alloc(size + 1, 1, err) : NULL;
    reader r = {.text = text, .size = size, .json = json, .err = err};
    const qn_status status = json->texts ? read_document(&r) : QN_MEMORY;
    if (status != QN_OK) {
        qn__json_free(json);
        return status;
    }
    *out = json;
    return QN_OK;
}

void qn__json_free(qn__json *json) {
    if (!json)
        return;
    qn__free(json->nodes);
    qn__free(json->texts);
    qn__free(json);
}

/* The root becomes final last, so it is the lowest. */
const qn__json_node *qn__json_root(const qn__json *json) { return json->nodes + json->settled; }

int qn__json_is_object(const qn__json_node *node) { return node && node->kind == OBJECT; }

int qn__json_is_array(const qn__json_node *node) { return node && node->kind == ARRAY; }

int qn__json_is_null(const qn__json_node *node) { return node && node->kind == NOTHING; }

int qn__json_is_true(const qn__json_node *node) { return node && node->kind == TRUTH; }

size_t qn__json_count(const qn__json_node *node) { return node ? node->count : 0; }

const qn__json_node *qn__json_at(const qn__json_node *node, size_t index) {
    return node && index < node->count ? node->inside + index : NULL;
}

const char *qn__json_key(const qn__json_node *node) { return node ? node->key : NULL; }

const qn__json_node *qn__json_get(const qn__json_node *object, const char *key) {
    if (!qn__json_is_object(object))
        return NULL;
    for (size_t i = 0; i < object->count; i++)
        if (strcmp(object->inside[i].key, key) == 0)
            return object->inside + i;
    return NULL;
}

const char *qn__json_string(const qn__json_node *node) {
    return node && node->kind == STRING ? node->text : NULL;
}

int qn__json_u64(const qn__json_node *node, uint64_t *out) {
    return node && node->kind == NUMBER && qn__parse_u64(node->text, strlen(node->text), out);
}

int qn__json_float(const qn__json_node *node, float *out) {
    return node && node->kind == NUMBER && qn__parse_float(node->text, strlen(node->text), out);
}

const char *qn__json_digits(const qn__json_node *node) {
    return node && node->kind == NUMBER ? node->text : NULL;
}

int qn__json_real(const qn__json_node *node, double *out) {
    return node && node->kind == NUMBER && qn__parse_real(node->text, strlen(node->text), out);
}
