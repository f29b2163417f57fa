/* Recipes from files: strict parsing, and comparison. */
#include "base/memory.h"
#include "base/text/json.h"
#include "model/recipe/option_rows.h"
#include "model/recipe/schedule.h"
#include <quern/version.h>
#include <stdio.h>
#include <string.h>

/* Whether every recipe of this contract has the key. */
static int is_required(const qn__option *o, uint64_t contract) {
    return o->contract <= contract && o->contract < 6;
}

/* Whether a recipe of this contract may have the key. */
static int is_known(const char *name, uint64_t contract) {
    const qn__option *o = qn__options;
    while (o->key && strcmp(o->key, name) != 0)
        ++o;
    return o->key && o->contract <= contract;
}

#define REMADE "the file was changed, or made by another program: make it again with quern train"
#define NEWER "it was made by a newer version of Quern: use that one"

/* The object being read. The first failure is kept, and later reads return 0. */
typedef struct reader {
    const qn__json_node *object;
    qn_status status;
    qn_error *err;
} reader;

static void bad(reader *r, const char *key, const char *what, const char *remedy) {
    if (r->status != QN_OK)
        return;
    r->status = qn__fail(r->err, QN_FORMAT, "%s", what);
    qn__at(r->err, "recipe, key \"%.60s\"", key);
    qn__remedy(r->err, QN_FORMAT, "%s", remedy);
}

static uint64_t read_count(reader *r, const char *key, uint64_t most) {
    uint64_t value = 0;
    if (!qn__json_u64(qn__json_get(r->object, key), &value) || value > most) {
        bad(r, key, "the value is not a whole number in range", REMADE);
        return 0;
    }
    return value;
}

static float read_float(reader *r, const char *key) {
    float value = 0.0f;
    if (!qn__json_float(qn__json_get(r->object, key), &value))
        bad(r, key, "the value is not a number in range", REMADE);
    return value;
}

static const char *read_text(reader *r, const char *key) {
    const char *text = qn__json_string(qn__json_get(r->object, key));
    if (text == NULL)
        bad(r, key, "the value is not a string", REMADE);
    return text != NULL ? text : "";
}

static int read_name(reader *r, const char *key, const qn__table *table) {
    const char *name = read_text(r, key);
    const qn__choice *row = qn__table_row(table, name, strlen(name));
    if (row != NULL && row->name == qn__table_name(table, row->value))
        return row->value;
    char what[160];
    snprintf(what, sizeof what, "unknown %s \"%.80s\"", table->what, name);
    bad(r, key, what, NEWER);
    return 0;
}

/* Requires all keys and no others, the version first: a newer recipe may differ in everything
 * else. */
static void check_keys(reader *r) {
    uint64_t contract = 0;
    char what[160];
    if (!qn__json_u64(qn__json_get(r->object, "contract"), &contract)) {
        bad(r, "contract", "the recipe does not say which version of the contract it keeps",
            REMADE);
    } else if (contract < 1 || contract > QN_CONTRACT) {
        snprintf(what, sizeof what,
                 "the recipe keeps version %llu of the contract; this is version %d",
                 (unsigned long long)contract, QN_CONTRACT);
        bad(r, "contract", what, contract > QN_CONTRACT ? NEWER : REMADE);
    }
    for (const qn__option *o = qn__options; o->key; ++o)
        if (is_required(o, contract) && qn__json_get(r->object, o->key) == NULL)
            bad(r, o->key, "the key is missing", REMADE);
    for (size_t i = 0; i < qn__json_count(r->object); ++i) {
        const char *key = qn__json_key(qn__json_at(r->object, i));
        if (!is_known(key, contract))
            bad(r, key, "unknown key", NEWER);
    }
}

static void read_digest(reader *r, const char *key, char digest[65]) {
    const char *text = read_text(r, key);
    if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
        bad(r, key, "the value is not a digest", REMADE);
    else
        memcpy(digest, text, 65);
}

static void read_network(reader *r, const char *key, qn__network *to) {
    qn_error inner = {0};
    if (qn__network_parse(read_text(r, key), to, &inner) != QN_OK)
        bad(r, key, inner.what, REMADE);
}

static void read_table(reader *r, const char *key, qn__schema **to) {
    qn_error inner = {0};
    if (r->status != QN_OK)
        return;
    const qn_status status = qn__schema_from_json(qn__json_get(r->object, key), to, &inner);
    if (status == QN_FORMAT)
        bad(r, key, inner.what, REMADE);
    else if (status != QN_OK)
        r->status = qn__fail(r->err, status, "%s", inner.what);
}

static void copy_text(reader *r, const char *text, char **to) {
    if (r->status == QN_OK && !(*to = qn__copy_text(text, r->err)))
        r->status = QN_MEMORY;
}

static void read_shape(reader *r, const char *key, qn__shape *to) {
    const char *text = read_text(r, key);
    unsigned channels, height, width;
    if (!*text)
        return;
    if (sscanf(text, "%9ux%9ux%9u", &channels, &height, &width) == 3)
        *to = (qn__shape){channels, height, width, QN__PICTURE};
    else
        bad(r, key, "the value is not a shape", REMADE);
}

static void read_value(reader *r, const qn__option *o, void *to) {
    const int none = qn__json_is_null(qn__json_get(r->object, o->key));
    const uint32_t most = o->form != QN__FORM_FLAG ? UINT32_MAX : o->latest ? o->latest : 1;
    switch (o->form) {
    case QN__FORM_COUNT:
    case QN__FORM_FLAG:
        *(uint32_t *)to = (uint32_t)read_count(r, o->key, most);
        break;
    case QN__FORM_LONG:
        *(uint64_t *)to = read_count(r, o->key, UINT64_MAX);
        break;
    case QN__FORM_FLOAT:
        *(float *)to = read_float(r, o->key);
        break;
    case QN__FORM_NAME:
        *(int *)to = read_name(r, o->key, o->table);
        break;
    case QN__FORM_TEXT:
        if (*read_text(r, o->key))
            copy_text(r, read_text(r, o->key), to);
        break;
    case QN__FORM_MAYBE:
        if (!none)
            copy_text(r, read_text(r, o->key), to);
        break;
    case QN__FORM_DIGEST:
        if (o->contract == 1 || *read_text(r, o->key))
            read_digest(r, o->key, to);
        break;
    case QN__FORM_NETWORK:
        read_network(r, o->key, to);
        break;
    case QN__FORM_TABLE:
        read_table(r, o->key, to);
        break;
    case QN__FORM_SHAPE:
        read_shape(r, o->key, to);
    }
}

/* Writing what was read must give the text again. So a recipe has one form only, and whatever the
 * reader was lenient about (upper case, "1.0" for "1", numbers that the optimiser ignores) is found
 * here. */
static qn_status check_form(const qn__recipe *recipe, const char *json, size_t size,
                            qn_error *err) {
    qn__recipe tidy = *recipe;
    char *again;
    qn__recipe_tidy(&tidy);
    qn_status status = qn__recipe_json(&tidy, &again, err);
    if (status != QN_OK)
        return status;
    if (strlen(again) != size || memcmp(again, json, size) != 0) {
        size_t at = 0;
        while (at < size && again[at] != '\0' && again[at] == json[at])
            ++at;
        qn__fail(err, QN_FORMAT, "the recipe is not written the way recipes are");
        qn__at(err, "recipe, byte %zu", at);
        status = qn__remedy(err, QN_FORMAT, REMADE);
    }
    qn__free(again);
    return status;
}

/* The members of the object, checked one by one. On failure too, `out` is to be released. */
static void read_members(reader *r, qn__recipe *out) {
    if (!qn__json_is_object(r->object))
        bad(r, "", "the recipe is not a JSON object", REMADE);
    else
        check_keys(r);
    for (const qn__option *o = qn__options; o->key && r->status == QN_OK; ++o)
        if (qn__json_get(r->object, o->key) != NULL)
            read_value(r, o, qn__option_to(o, out));
}

static qn_status check_whole(const qn__recipe *recipe, const char *json, size_t size,
                             qn_error *err) {
    qn_error inner = {0};
    if (qn__recipe_check(recipe, &inner) == QN_OK && qn__recipe_check_best(recipe, &inner) == QN_OK)
        return check_form(recipe, json, size, err);
    qn__fail(err, QN_FORMAT, "the recipe is invalid: %s", inner.what);
    qn__at(err, "recipe");
    return qn__remedy(err, QN_FORMAT, REMADE);
}

qn_status qn__recipe_parse(const char *json, size_t size, qn__recipe *out, qn_error *err) {
    qn__json *document;
    qn__recipe recipe = {0};
    const qn_status status = qn__json_parse(json, size, &document, err);
    if (status == QN_MEMORY)
        return status;
    if (status != QN_OK)
        return qn__remedy(err, qn__fail(err, QN_FORMAT, "the recipe is not JSON"), REMADE);
    reader r = {qn__json_root(document), QN_OK, err};
    read_members(&r, &recipe);
    recipe.network.next = recipe.task == QN__TASK_NEXT;
    qn__json_free(document);
    if (r.status == QN_OK)
        r.status = check_whole(&recipe, json, size, err);
    if (r.status == QN_OK)
        *out = recipe;
    else
        qn__recipe_release(&recipe);
    return r.status;
}

/* --------------------------------------------------------------------------------- comparison */

/* Where the first 100 bytes of two texts are alike: what a message leaves out of both, so that it
 * shows where they differ. */
static size_t common_part(const char *a, const char *b) {
    enum { SHOWN = 100, KEPT = 30 };
    size_t same = 0;
    while (a != NULL && b != NULL && a[same] != '\0' && a[same] == b[same])
        ++same;
    if (same < SHOWN - KEPT)
        return 0;
    same -= KEPT;
    while (((unsigned char)a[same] & 0xc0) == 0x80) /* inside a UTF-8 character */
        --same;
    return same;
}

/* The value of a key as text, cut for a message, of a string without its first `skip` bytes;
 * "nothing" if it is missing. */
static void value_text(const qn__json_node *object, const char *key, size_t skip, char text[128]) {
    const qn__json_node *node = qn__json_get(object, key);
    uint64_t count;
    float number;
    if (qn__json_string(node) != NULL)
        snprintf(text, 128, "\"%s%.100s\"", skip > 0 ? "..." : "", qn__json_string(node) + skip);
    else if (qn__json_is_null(node))
        snprintf(text, 128, "null");
    else if (qn__json_u64(node, &count))
        snprintf(text, 128, "%llu", (unsigned long long)count);
    else if (qn__json_float(node, &number))
        qn__float_text(number, text);
    else
        snprintf(text, 128, "nothing");
}

/* Where two tables differ, as the texts of what stands there; equal texts when they do not. */
static void table_texts(const qn__json_node *one, const qn__json_node *other, char a[128],
                        char b[128]) {
    qn__schema *x = NULL, *y = NULL;
    snprintf(a, 128, "nothing");
    snprintf(b, 128, "nothing");
    /* What cannot be read is named by the reader of the recipe. */
    if (qn__schema_from_json(qn__json_get(one, "table"), &x, NULL) == QN_OK &&
        qn__schema_from_json(qn__json_get(other, "table"), &y, NULL) == QN_OK)
        qn__schema_difference(x, y, a, b);
    qn__schema_free(x);
    qn__schema_free(y);
}

/* Appends as much of `more` as fits; what is cut ends in dots. */
static void append(char *text, size_t size, const char *more) {
    const size_t used = strlen(text), capacity = size - used;
    const int wanted = snprintf(text + used, capacity, "%s", more);
    if ((size_t)wanted >= capacity && size > 4)
        memcpy(text + size - 4, "...", 4);
}

/* Whether a recipe without the key says the same as one with this value: recipes of an earlier
 * contract lack the keys of later ones. */
static int is_usual(const qn__option *o, const char *value) {
    char first[64];
    if (o->form != QN__FORM_NAME)
        return strcmp(value, "null") == 0 || strcmp(value, "\"\"") == 0 || strcmp(value, "0") == 0;
    snprintf(first, sizeof first, "\"%s\"", o->table->row[0].name);
    return strcmp(value, first) == 0;
}

static int is_same(const qn__option *o, const char *a, const char *b) {
    static const char none[] = "nothing";
    return strcmp(a, b) == 0 || (strcmp(a, none) == 0 && is_usual(o, b)) ||
           (strcmp(b, none) == 0 && is_usual(o, a));
}

/* 1 when the values of the key differ, which are appended after `count` others. */
static size_t difference(const qn__json_node *one, const qn__json_node *other, const qn__option *o,
                         size_t count, char *text, size_t size) {
    char a[128], b[128], line[320];
    if (o->form == QN__FORM_TABLE) {
        table_texts(one, other, a, b);
    } else {
        const size_t skip = common_part(qn__json_string(qn__json_get(one, o->key)),
                                        qn__json_string(qn__json_get(other, o->key)));
        value_text(one, o->key, skip, a);
        value_text(other, o->key, skip, b);
    }
    if (is_same(o, a, b))
        return 0;
    snprintf(line, sizeof line, "%s%s %s and %s", count > 0 ? ", " : "", o->key, a, b);
    append(text, size, line);
    return 1;
}

/* The contract, which has the first row, follows from the other keys: it is named where none of
 * them differs. */
static size_t differences(const qn__json_node *one, const qn__json_node *other, char *text,
                          size_t size) {
    size_t count = 0;
    for (const qn__option *o = qn__options + 1; o->key; ++o)
        count += difference(one, other, o, count, text, size);
    return count > 0 ? count : difference(one, other, qn__options, count, text, size);
}

size_t qn__recipe_differences(const char *one, const char *other, char *text, size_t size) {
    qn__json *a = NULL, *b = NULL;
    size_t count = 0;
    text[0] = '\0';
    if (strcmp(one, other) == 0)
        return 0;
    if (qn__json_parse(one, strlen(one), &a, NULL) == QN_OK &&
        qn__json_parse(other, strlen(other), &b, NULL) == QN_OK &&
        qn__json_is_object(qn__json_root(a)) && qn__json_is_object(qn__json_root(b)))
        count = differences(qn__json_root(a), qn__json_root(b), text, size);
    if (count == 0) {
        append(text, size, "the recipe's text");
        count = 1;
    }
    qn__json_free(a);
    qn__json_free(b);
    return count;
}

qn__continuing qn__recipe_continues(const char *one, const char *other) {
    qn__recipe a = {0}, b = {0};
    char *text = NULL;
    int same = 0, same_rule = 1;
    if (qn__recipe_parse(one, strlen(one), &a, NULL) == QN_OK &&
        qn__recipe_parse(other, strlen(other), &b, NULL) == QN_OK) {
        a.epochs = b.epochs;
        same_rule = !a.new_last || !b.new_last || a.new_last == b.new_last;
        if (!same_rule) {
            a.new_last = b.new_last;
            a.contract = b.contract;
        }
        same = qn__recipe_json(&a, &text, NULL) == QN_OK && strcmp(text, other) == 0;
    }
    const qn__continuing how = !same                       ? QN__CONTINUES_NOT
                               : !same_rule                ? QN__CONTINUES_NOT_BY_RULE
                               : !qn__rate_looks_ahead(&a) ? QN__CONTINUES
                               : a.stages                  ? QN__CONTINUES_NOT_BY_STAGES
                                                           : QN__CONTINUES_NOT_BY_COSINE;
    qn__free(text);
    qn__recipe_release(&a);
    qn__recipe_release(&b);
    return how;
}
