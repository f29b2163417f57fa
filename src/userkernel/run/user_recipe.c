/* The recipe of a user kernel's results, as JSON: text, scalars, shape, digests of inputs and
 * outputs, values of the other results. docs/kernels.md lists its members. */
#include "userkernel/run/user_iterate.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/text/json.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The version of what a kernel's text means, and of these members. */
enum { VERSION = 1 };

/* ------------------------------------------------------------------ writing */

static int is_utf8(const char *text) { return !text[qn__utf8_prefix(text)]; }

static void write_numbers(qn__text *out, const uint64_t *numbers, uint32_t count) {
    qn__text_add(out, "[");
    for (uint32_t d = 0; d < count; d++)
        qn__text_add(out, "%s%" PRIu64, d > 0 ? ", " : "", numbers[d]);
    qn__text_add(out, "]");
}

static void write_file(const char *path, qn__text *out) {
    if (!path || !is_utf8(path))
        return;
    qn__text_add(out, "\"file\": ");
    qn__text_add_json(out, path);
    qn__text_add(out, ", ");
}

static void write_part(const qn_kernel *k, uint32_t i, qn__text *out) {
    const qn__user_part *p = &k->source.part[i];
    const qn__user_bound *b = &k->part[i];
    if (p->use == QN__USER_SCALAR) {
        qn__text_add(out, "\"%s\"", b->text);
    } else if (qn__user_part_is_array(p)) {
        qn__text_add(out, "{");
        write_file(b->in_parts ? NULL : b->path, out);
        qn__text_add(out, "\"digest\": \"%s\"}", b->digest);
    } else if (!b->has_value) {
        qn__text_add(out, "null");
    } else if (qn__user_use_is_extreme(p->use)) {
        qn__text_add(out, "{\"value\": \"%s\", \"item\": ", b->text);
        write_numbers(out, b->item, k->source.dimensions);
        qn__text_add(out, "}");
    } else {
        qn__text_add(out, "\"%s\"", b->text);
    }
}

static void write_group(const qn_kernel *k, const char *name, qn__user_use first, qn__user_use last,
                        qn__text *out) {
    int some = 0;
    qn__text_add(out, ",\n  \"%s\": {", name);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        if (k->source.part[i].use < first || k->source.part[i].use > last)
            continue;
        qn__text_add(out, "%s\n    \"%s\": ", some++ ? "," : "", k->source.part[i].name);
        write_part(k, i, out);
    }
    qn__text_add(out, some ? "\n  }" : "}");
}

/* Left out where there is none. */
static void write_series(const qn_kernel *k, qn__text *out) {
    int some = 0;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_bound *b = &k->part[i];
        if (!b->wants_series)
            continue;
        qn__text_add(out, "%s\n    \"%s\": {", some++ ? "," : ",\n  \"series\": {",
                     k->source.part[i].name);
        write_file(b->series_path, out);
        qn__text_add(out, "\"digest\": \"%s\"}", b->series_digest);
    }
    if (some)
        qn__text_add(out, "\n  }");
}

void qn__user_recipe_write(const qn_kernel *k, qn__text *out) {
    qn__text_add(out, "{\n  \"quern\": \"kernel %d\",\n  \"name\": ", VERSION);
    qn__text_add_json(out, is_utf8(k->name) ? k->name : "kernel");
    qn__text_add(out, ",\n  \"shape\": ");
    write_numbers(out, k->report.shape, k->source.dimensions);
    if (k->iterations > 1)
        qn__text_add(out, ",\n  \"iterations\": %" PRIu64, k->iterations);
    if (k->source.has_random)
        qn__text_add(out, ",\n  \"seed\": %" PRIu64, k->seed);
    write_group(k, "scalars", QN__USER_SCALAR, QN__USER_SCALAR, out);
    write_group(k, "inputs", QN__USER_INPUT, QN__USER_HALOED, out);
    write_group(k, "outputs", QN__USER_OUTPUT, QN__USER_OUTPUT, out);
    write_group(k, "results", QN__USER_SUM, QN__USER_ARGMAX, out);
    write_series(k, out);
    qn__text_add(out, ",\n  \"text\": ");
    qn__text_add_json(out, k->text);
    qn__text_add(out, "\n}\n");
}

/* ------------------------------------------------------------------ reading */

static qn_status bad(const char *path, const char *what, qn_error *err) {
    qn__fail(err, QN_FORMAT, "the recipe of a kernel is malformed: %s", what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_FORMAT, "name a file that quern run wrote, unchanged");
}

static qn_status check_version(const qn__json_node *root, const char *path, qn_error *err) {
    char wanted[32];
    const char *version = qn__json_string(qn__json_get(root, "quern"));
    snprintf(wanted, sizeof wanted, "kernel %d", VERSION);
    if (!version || strncmp(version, "kernel ", 7) != 0)
        return bad(path, "\"quern\" does not say \"kernel\"", err);
    if (strcmp(version, wanted) == 0)
        return QN_OK;
    qn__fail(err, QN_FORMAT, "the recipe is of another version, \"%s\"", version);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_FORMAT, "use the version of Quern that wrote it");
}

static int read_numbers(const qn__json_node *list, uint64_t *numbers, uint32_t count) {
    if (!qn__json_is_array(list) || qn__json_count(list) != count)
        return 0;
    for (uint32_t d = 0; d < count; d++)
        if (!qn__json_u64(qn__json_at(list, d), &numbers[d]))
            return 0;
    return 1;
}

static int is_digest(const char *text) {
    return text && strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* The member of a declaration in its group. */
static qn_status read_part(qn_kernel *k, uint32_t i, const qn__json_node *root, const char *path,
                           qn_error *err) {
    const qn__user_part *p = &k->source.part[i];
    qn__user_bound *b = &k->part[i];
    const char *group = p->use == QN__USER_SCALAR   ? "scalars"
                        : p->use < QN__USER_OUTPUT  ? "inputs"
                        : p->use == QN__USER_OUTPUT ? "outputs"
                                                    : "results";
    const qn__json_node *node = qn__json_get(qn__json_get(root, group), p->name);
    if (!node)
        return bad(path, "a declaration of the text is missing", err);
    if (p->use == QN__USER_SCALAR) {
        const char *text = qn__json_string(node);
        return text && qn_kernel_set(k, p->name, text, err) == QN_OK
                   ? QN_OK
                   : bad(path, "a scalar has no value of its type", err);
    }
    if (qn__user_part_is_array(p)) {
        const int input = p->use < QN__USER_OUTPUT;
        const char *digest = qn__json_string(qn__json_get(node, "digest"));
        const char *file = qn__json_string(qn__json_get(node, "file"));
        if (!is_digest(digest))
            return bad(path, "an array has no digest", err);
        strcpy(b->wanted, digest);
        b->path = file && input ? qn__copy_text(file, err) : NULL;
        return file && input && !b->path ? QN_MEMORY : QN_OK;
    }
    const int extreme = qn__json_is_object(node);
    const char *value = qn__json_string(extreme ? qn__json_get(node, "value") : node);
    b->expects = value ? 1 : 2;
    if ((value && strlen(value) >= sizeof b->expected) || (!value && !qn__json_is_null(node)) ||
        (extreme &&
         !read_numbers(qn__json_get(node, "item"), b->expected_item, k->source.dimensions)))
        return bad(path, "a result is not a number", err);
    strcpy(b->expected, value ? value : "");
    return QN_OK;
}

/* Both are left out where they would say nothing. */
static qn_status read_iterations(qn_kernel *k, const qn__json_node *root, const char *path,
                                 qn_error *err) {
    const qn__json_node *iterations = qn__json_get(root, "iterations");
    const qn__json_node *series = qn__json_get(root, "series");
    k->iterations = 1;
    if (iterations && (!qn__json_u64(iterations, &k->iterations) || k->iterations == 0))
        return bad(path, "the number of iterations is malformed", err);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__json_node *node = qn__json_get(series, k->source.part[i].name);
        const char *digest = qn__json_string(qn__json_get(node, "digest"));
        if (!node)
            continue;
        if (!qn__user_has_series(&k->source.part[i]) || !is_digest(digest))
            return bad(path, "a series is malformed", err);
        strcpy(k->part[i].series_wanted, digest);
        k->part[i].wants_series = 1;
    }
    return QN_OK;
}

static qn_status read_root(const qn__json_node *root, const char *path, qn_kernel **out,
                           qn_error *err) {
    qn_status status = check_version(root, path, err);
    const char *text = qn__json_string(qn__json_get(root, "text"));
    const char *name = qn__json_string(qn__json_get(root, "name"));
    uint64_t shape[QN_KERNEL_DIMENSIONS];
    if (status == QN_OK && (!text || !name))
        status = bad(path, "the text or its name is missing", err);
    if (status == QN_OK)
        status = qn__user_kernel_make(text, name, out, err);
    if (status != QN_OK)
        return status;
    (*out)->is_recipe = 1;
    if (!read_numbers(qn__json_get(root, "shape"), shape, (*out)->source.dimensions))
        return bad(path, "the shape is missing", err);
    if (qn_kernel_set_shape(*out, shape, (*out)->source.dimensions, err) != QN_OK)
        return bad(path, "the shape is out of range", err);
    status = read_iterations(*out, root, path, err);
    if ((*out)->source.has_random && !qn__json_u64(qn__json_get(root, "seed"), &(*out)->seed))
        return bad(path, "the seed is missing", err);
    for (uint32_t i = 0; i < (*out)->source.parts && status == QN_OK; i++)
        status = read_part(*out, i, root, path, err);
    return status;
}

qn_status qn__user_recipe_read(const char *json, size_t size, const char *path, qn_kernel **out,
                               qn_error *err) {
    qn__json *document;
    *out = NULL;
    qn_status status = qn__json_parse(json, size, &document, err);
    if (status != QN_OK) {
        qn__at(err, "%s", path);
        return qn__remedy(err, status, "name a recipe that quern run wrote");
    }
    status = read_root(qn__json_root(document), path, out, err);
    qn__json_free(document);
    if (status != QN_OK) {
        qn_kernel_free(*out);
        *out = NULL;
    }
    return status;
}
