#include "statistics/fit/sum_recipe.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/text/json.h"
#include "data/table/rules.h"
#include <stdio.h>
#include <string.h>

#define REMADE "the file was changed, or made by another program: make it again with quern fit"

/* The first version of the contract that has this recipe. */
enum { CONTRACT = 7 };

/* ------------------------------------------------------------------------------------ parameters
 */

static qn_status refuse_value(const qn__fit_parameter *p, const char *text, size_t size,
                              qn_error *err) {
    qn__fail(err, QN_USAGE, "%s cannot be \"%.*s\"", p->name, (int)(size < 40 ? size : 40), text);
    if (p->whole)
        return qn__remedy(err, QN_USAGE, "it is a whole number from %llu to %llu",
                          (unsigned long long)p->least, (unsigned long long)p->most);
    return qn__remedy(err, QN_USAGE, "it is a number from 0");
}

static qn_status read_value(const qn__fit_parameter *p, const char *text, size_t size,
                            qn__fit_value *value, qn_error *err) {
    const int read = p->whole ? qn__parse_u64(text, size, &value->whole) &&
                                    value->whole >= p->least && value->whole <= p->most
                              : qn__parse_real(text, size, &value->real) && value->real >= 0;
    value->real = value->real + 0.0; /* no -0 */
    return read ? QN_OK : refuse_value(p, text, size, err);
}

static qn_status refuse_name(const qn__model_kind *kind, const char *word, size_t size,
                             qn_error *err) {
    char known[200] = "";
    for (const qn__fit_parameter *p = kind->parameter; p->name; ++p)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
                 p->name);
    qn__fail(err, QN_USAGE, "%s has no parameter \"%.*s\"", kind->title,
             (int)(size < 40 ? size : 40), word);
    return qn__remedy(err, QN_USAGE, "write NAME=NUMBER with one of these: %s", known);
}

/* One "NAME=NUMBER" of `size` bytes. */
static qn_status take_word(qn__sum_model *m, const char *word, size_t size, uint32_t *seen,
                           qn_error *err) {
    const qn__fit_parameter *p = m->open.kind->parameter;
    const char *equal = memchr(word, '=', size);
    const size_t length = equal ? (size_t)(equal - word) : size;
    uint32_t k = 0;
    while (p[k].name && !(strlen(p[k].name) == length && memcmp(p[k].name, word, length) == 0))
        ++k;
    if (!p[k].name)
        return refuse_name(m->open.kind, word, size, err);
    if (*seen & 1u << k) {
        qn__fail(err, QN_USAGE, "%s is given twice", p[k].name);
        return qn__remedy(err, QN_USAGE, "leave one of them out");
    }
    *seen |= 1u << k;
    return equal ? read_value(&p[k], equal + 1, size - length - 1, &m->value[k], err)
                 : refuse_value(&p[k], "", 0, err);
}

qn_status qn__sum_take(qn__sum_model *m, const char *text, qn_error *err) {
    const qn__fit_parameter *p = m->open.kind->parameter;
    uint32_t seen = 0;
    qn_status status = QN_OK;
    for (uint32_t k = 0; p[k].name && status == QN_OK; ++k)
        status = read_value(&p[k], p[k].usual, strlen(p[k].usual), &m->value[k], err);
    for (const char *at = text + strspn(text, " ,"); *at && status == QN_OK;) {
        const size_t size = strcspn(at, " ,");
        status = take_word(m, at, size, &seen, err);
        at += size;
        at += strspn(at, " ,");
    }
    return status;
}

/* The shortest text that gives the number back, as 1.6 has it for floats. */
static void write_real(double value, char text[40]) {
    const locale_t before = uselocale(qn__c_locale());
    double back;
    for (int digits = 1; digits <= 17; ++digits) {
        snprintf(text, 40, "%.*g", digits, value);
        if (qn__parse_real(text, strlen(text), &back) && !(back < value) && !(back > value))
            break;
    }
    uselocale(before);
}

static void add_parameters(const qn__sum_model *m, qn__text *text) {
    const qn__fit_parameter *p = m->open.kind->parameter;
    for (uint32_t k = 0; p[k].name; ++k) {
        char number[40];
        if (p[k].whole)
            snprintf(number, sizeof number, "%llu", (unsigned long long)m->value[k].whole);
        else
            write_real(m->value[k].real, number);
        qn__text_add(text, "%s%s=%s", k > 0 ? " " : "", p[k].name, number);
    }
}

/* ----------------------------------------------------------------------------------------- recipe
 */

static void add_recipe(const qn__sum_model *m, qn__text *text) {
    qn__text_add(text, "{\"contract\":%d,\"kind\":\"%s\",\"parameters\":\"", CONTRACT,
                 m->open.kind->name);
    add_parameters(m, text);
    qn__text_add(text, "\",\"data\":\"%s\",\"items\":%llu,\"features\":%u,\"rules\":", m->data,
                 (unsigned long long)m->items, m->open.features);
    qn__text_add_json(text, m->rules);
    qn__text_add(text, ",\"table\":");
    qn__schema_add_json(m->schema, text);
    qn__text_add(text, "}");
}

qn_status qn__sum_texts(qn__sum_model *m, qn_error *err) {
    qn__text text = {0};
    add_parameters(m, &text);
    m->parameters = qn__text_take(&text, err);
    if (!m->parameters)
        return QN_MEMORY;
    add_recipe(m, &text);
    m->recipe = qn__text_take(&text, err);
    return m->recipe ? QN_OK : QN_MEMORY;
}

/* ---------------------------------------------------------------------------------------- reading
 */

static qn_status bad(qn_error *err, const char *key, const char *what, const char *remedy) {
    qn__fail(err, QN_FORMAT, "%s", what);
    qn__at(err, "recipe, key \"%s\"", key);
    return qn__remedy(err, QN_FORMAT, "%s", remedy);
}

/* Columns are numbers, which is all that these models take. */
static qn_status check_table(const qn__schema *table, uint32_t features, qn_error *err) {
    int plain = !table || table->features == features;
    for (uint32_t k = 0; table && plain && k < features; ++k)
        plain = !table->feature[k].categories && !table->feature[k].dates &&
                table->feature[k].exact == QN__EXACT_NONE;
    return plain ? QN_OK : bad(err, "table", "the columns are not those of such a model", REMADE);
}

static qn_status read_table(qn__sum_model *m, const qn__json_node *root, qn_error *err) {
    qn_error inner = {0};
    const qn_status status = qn__schema_from_json(qn__json_get(root, "table"), &m->schema, &inner);
    if (status == QN_FORMAT)
        return bad(err, "table", inner.what, REMADE);
    if (status != QN_OK)
        return qn__fail(err, status, "%s", inner.what);
    return check_table(m->schema, m->open.features, err);
}

static qn_status read_members(qn__sum_model *m, const qn__json_node *root, qn_error *err) {
    const char *parameters = qn__json_string(qn__json_get(root, "parameters"));
    const char *data = qn__json_string(qn__json_get(root, "data"));
    const char *rules = qn__json_string(qn__json_get(root, "rules"));
    uint64_t contract = 0, features = 0;
    uint32_t known;
    qn_error inner = {0};
    if (!qn__json_u64(qn__json_get(root, "contract"), &contract) || contract != CONTRACT)
        return bad(err, "contract", "the recipe keeps another version of the contract",
                   contract > CONTRACT ? "it was made by a newer version of Quern: use that one"
                                       : REMADE);
    if (!parameters || qn__sum_take(m, parameters, &inner) != QN_OK)
        return bad(err, "parameters", parameters ? inner.what : "the value is not a string",
                   REMADE);
    if (!data || strlen(data) != 64 || strspn(data, "0123456789abcdef") != 64)
        return bad(err, "data", "the value is not a digest", REMADE);
    memcpy(m->data, data, 65);
    if (!qn__json_u64(qn__json_get(root, "items"), &m->items) || m->items == 0)
        return bad(err, "items", "the value is not a whole number in range", REMADE);
    if (!qn__json_u64(qn__json_get(root, "features"), &features) || features == 0 ||
        features > UINT32_MAX)
        return bad(err, "features", "the value is not a whole number in range", REMADE);
    m->open.features = (uint32_t)features;
    if (!rules || qn__rules_parse(rules, &known, &inner) != QN_OK)
        return bad(err, "rules", rules ? inner.what : "the value is not a string", REMADE);
    m->rules = qn__copy_text(rules, err);
    return m->rules ? read_table(m, root, err) : QN_MEMORY;
}

/* A recipe has one form only. */
static qn_status check_form(qn__sum_model *m, const char *json, qn_error *err) {
    const qn_status status = qn__sum_texts(m, err);
    if (status != QN_OK || strcmp(m->recipe, json) == 0)
        return status;
    qn__fail(err, QN_FORMAT, "the recipe is not written the way recipes are");
    qn__at(err, "recipe");
    return qn__remedy(err, QN_FORMAT, REMADE);
}

qn_status qn__sum_parse(qn__sum_model *m, const char *json, qn_error *err) {
    qn__json *document;
    qn_status status = qn__json_parse(json, strlen(json), &document, err);
    if (status == QN_MEMORY)
        return status;
    if (status != QN_OK)
        return qn__remedy(err, qn__fail(err, QN_FORMAT, "the recipe is not JSON"), REMADE);
    if (qn__json_is_object(qn__json_root(document)))
        status = read_members(m, qn__json_root(document), err);
    else
        status = bad(err, "", "the recipe is not a JSON object", REMADE);
    qn__json_free(document);
    return status == QN_OK ? check_form(m, json, err) : status;
}
