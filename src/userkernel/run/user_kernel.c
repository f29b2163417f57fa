/* Kernels of users: opening, and what is bound to their declarations. */
#include "userkernel/run/user_devices.h"
#include "userkernel/run/user_iterate.h"

#include "base/files/remote.h"
#include "base/argument.h"
#include "base/encoding.h"
#include "base/files/file.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "userkernel/compiler/user_lanes.h"
#include "userkernel/execution/user_output.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LENGTHS_MAX = 48 }; /* an index space has at most 2^48 items */

/* ------------------------------------------------------------------ opening */

/* Recipes are JSON, so a text must be UTF-8. */
static qn_status check_utf8(const char *text, const char *name, qn_error *err) {
    const size_t good = qn__utf8_prefix(text);
    uint32_t line = 1;
    if (!text[good])
        return QN_OK;
    for (size_t i = 0; i < good; i++)
        line += text[i] == '\n';
    qn__fail(err, QN_INPUT, "the kernel's text is not UTF-8");
    qn__at(err, "%s, line %u", name, (unsigned)line);
    return qn__remedy(err, QN_INPUT, "save the file as UTF-8");
}

void qn_kernel_free(qn_kernel *k) {
    QN__OWN_FLOATS;
    if (!k)
        return;
    qn__remote_hurry_end(&k->hurries);
    for (uint32_t i = 0; i < QN__USER_PARTS; i++) {
        if (!k->part[i].lent)
            qn__user_array_release(&k->part[i].array);
        qn__free(k->part[i].path);
        qn__user_series_release(&k->part[i]);
    }
    qn__user_devices_free(k);
    qn__user_code_release(&k->code);
    qn__user_source_release(&k->source);
    qn__rank_reports_release(&k->watch.reports);
    qn__free(k->text);
    qn__free(k->name);
    qn__free(k);
}

static void set_defaults(qn_kernel *k) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_part *p = &k->source.part[i];
        if (p->use != QN__USER_SCALAR || !p->has_default)
            continue;
        k->part[i].scalar = p->value;
        k->part[i].has_scalar = 1;
        qn__user_type_print(p->type, &p->value, k->part[i].text);
    }
}

qn_status qn__user_kernel_make(const char *text, const char *name, qn_kernel **out, qn_error *err) {
    *out = NULL;
    qn_kernel *k = qn__alloc(1, sizeof *k, err);
    if (!k)
        return QN_MEMORY;
    k->code.file = -1;
    k->seed = 1;
    k->text = qn__copy_text(text, err);
    k->name = qn__copy_text(name, err);
    qn_status status = k->text && k->name ? check_utf8(text, name, err) : QN_MEMORY;
    if (status == QN_OK)
        status = qn__user_source_read(k->text, k->name, &k->source, err);
    if (status != QN_OK) {
        qn_kernel_free(k);
        return status;
    }
    qn__user_lanes_plan(&k->source);
    set_defaults(k);
    *out = k;
    return QN_OK;
}

qn_status qn_kernel_read(const char *text, const char *name, qn_kernel **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(text, err);
    QN__NEED(name, err);
    return qn__user_kernel_make(text, name, out, err);
}

qn_status qn_kernel_open(const char *path, qn_kernel **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    qn__bytes bytes;
    qn_status status = qn__file_read(path, &bytes, err);
    if (status != QN_OK)
        return status;
    if (strlen((const char *)bytes.data) != bytes.size) {
        qn__fail(err, QN_INPUT, "the file is not text");
        qn__at(err, "%s", path);
        status = qn__remedy(err, QN_INPUT, "name the C file of a kernel");
    } else {
        status = qn__user_kernel_make((const char *)bytes.data, path, out, err);
    }
    qn__bytes_release(&bytes);
    return status;
}

/* ------------------------------------------------------------------ what it declares */

uint32_t qn_kernel_dimensions(const qn_kernel *k) {
    QN__OWN_FLOATS;
    return k ? k->source.dimensions : 0;
}

uint32_t qn_kernel_parts(const qn_kernel *k) {
    QN__OWN_FLOATS;
    return k ? k->source.parts : 0;
}

qn_status qn_kernel_part_get(const qn_kernel *k, uint32_t index, qn_kernel_part *part,
                             qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(part, err);
    const qn_status status = qn__sized_check(QN__SIZED("part", qn_kernel_part), part, err);
    if (status != QN_OK)
        return status;
    if (index >= k->source.parts)
        return qn__fail(err, QN_USAGE, "the kernel has no declaration %u, only %u", (unsigned)index,
                        (unsigned)k->source.parts);
    const qn__user_part *p = &k->source.part[index];
    qn_kernel_part own = {.size = sizeof own,
                          .name = p->name,
                          .use = (qn_kernel_use)p->use,
                          .type = qn__user_type_numpy(qn__user_part_type(p)),
                          .dimensions =
                              qn__user_part_is_array(p) ? qn__user_dimensions(k, index) : 0,
                          .reach = p->halo,
                          .text = k->part[index].has_scalar ? k->part[index].text : NULL,
                          .next = p->next ? k->source.part[p->next - 1].name : NULL,
                          .bins = p->bins,
                          .components = p->components};
    qn__sized_give(QN__SIZED("part", qn_kernel_part), &own, part, part->size);
    return QN_OK;
}

/* ------------------------------------------------------------------ binding */

static int is_scalar(const qn__user_part *part) { return part->use == QN__USER_SCALAR; }

/* Finds a declaration of a kind. */
static qn_status find(const qn_kernel *k, const char *name, int (*is)(const qn__user_part *part),
                      const char *what, uint32_t *part, qn_error *err) {
    char list[256] = "";
    size_t used = 0;
    *part = qn__user_part_named(k, name);
    if (*part < QN__USER_PARTS && is(&k->source.part[*part]))
        return QN_OK;
    for (uint32_t i = 0; i < k->source.parts && used < sizeof list; i++)
        if (is(&k->source.part[i]))
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "",
                                     k->source.part[i].name);
    qn__fail(err, QN_USAGE, "the kernel has no %s \"%s\"", what, name);
    qn__at(err, "%s", k->name);
    return list[0] ? qn__remedy(err, QN_USAGE, "it has: %s", list)
                   : qn__remedy(err, QN_USAGE, "it has none: leave it out");
}

qn_status qn_kernel_set(qn_kernel *k, const char *name, const char *value, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(name, err);
    QN__NEED(value, err);
    uint32_t i;
    uint64_t number = 0;
    const qn_status status = find(k, name, is_scalar, "scalar", &i, err);
    if (status != QN_OK)
        return status;
    const qn__user_type type = k->source.part[i].type;
    if (!qn__user_type_read(type, value, &number)) {
        qn__fail(err, QN_USAGE, "\"%s\" is not a value of the scalar \"%s\", which is %s", value,
                 name, qn__user_type_word(type));
        qn__at(err, "`kernel.scalar`");
        return qn__remedy(err, QN_USAGE,
                          qn__user_type_is_real(type)
                              ? "write a decimal number, such as 0.5 or 1e-3"
                              : "write a whole number within the type's range");
    }
    k->part[i].scalar = number;
    k->part[i].has_scalar = 1;
    qn__user_type_print(type, &number, k->part[i].text);
    return QN_OK;
}

qn_status qn__user_check_dimensions(const qn_kernel *k, uint32_t part, uint32_t dimensions,
                                    const char *place, qn_error *err) {
    const qn__user_part *p = &k->source.part[part];
    const uint32_t want = qn__user_dimensions(k, part);
    if (dimensions == want)
        return QN_OK;
    qn__fail(err, QN_USAGE, "\"%s\" of the kernel has %u dimension%s, but this array has %u",
             p->name, (unsigned)want, want == 1 ? "" : "s", (unsigned)dimensions);
    qn__at(err, "%s", place);
    return qn__remedy(err, QN_USAGE, "%s",
                      p->use == QN__USER_WHOLE ? "give another array, or change its WHOLE"
                      : p->bins > 0            ? "give an array with one number a bin"
                                               : "give another array, or change INDEX");
}

qn_status qn__user_check_type(const qn_kernel *k, uint32_t part, const qn__user_array *a,
                              const char *path, qn_error *err) {
    const qn__user_part *p = &k->source.part[part];
    if (a->type == p->type)
        return QN_OK;
    qn__fail(err, QN_INPUT, "\"%s\" of the kernel is %s, and the file holds %s", p->name,
             qn__user_type_numpy(p->type), qn__user_type_numpy(a->type));
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "save array.astype('%s'), or declare %s(%s, %s...",
                      qn__user_type_numpy(p->type), qn__user_use_word(p->use),
                      qn__user_type_word(a->type), p->name);
}

/* Takes what an array was bound to before. */
static void unbind(qn_kernel *k, uint32_t part) {
    qn__user_bound *b = &k->part[part];
    if (!b->lent)
        qn__user_array_release(&b->array);
    qn__free(b->path);
    b->path = NULL;
    b->is_refused = 0;
    b->lent = b->in_parts = 0;
    b->array = (qn__user_array){.data = NULL};
    b->digest[0] = '\0';
}

qn_status qn_kernel_bind_file(qn_kernel *k, const char *name, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(name, err);
    QN__NEED(path, err);
    uint32_t i;
    qn__user_array array = {.data = NULL};
    qn_status status = find(k, name, qn__user_part_is_array, "array", &i, err);
    if (status != QN_OK)
        return status;
    const int written = qn__user_part_is_written(&k->source.part[i]);
    if (!written) {
        status = qn__user_array_open(path, name, 0, &array, err);
        if (status == QN_OK)
            status = qn__user_check_type(k, i, &array, path, err);
        if (status == QN_OK)
            status = qn__user_check_dimensions(k, i, array.dimensions, path, err);
    }
    if (status == QN_OK && written) {
        array.type = qn__user_part_type(&k->source.part[i]);
        array.dimensions = qn__user_dimensions(k, i);
        status = qn__user_output_check(&array, name, path, err);
        array = (qn__user_array){.data = NULL};
    }
    char *copy = status == QN_OK ? qn__copy_text(path, err) : NULL;
    if (!copy) {
        qn__user_array_release(&array);
        return status == QN_OK ? QN_MEMORY : status;
    }
    unbind(k, i);
    k->part[i].array = array;
    k->part[i].path = copy;
    return QN_OK;
}

qn_status qn__user_check_shape(const uint64_t *shape, uint32_t dimensions, const char *what,
                               qn_error *err) {
    uint64_t items = 1;
    for (uint32_t d = 0; d < dimensions; d++)
        if (shape[d] == 0 || __builtin_mul_overflow(items, shape[d], &items) ||
            items > (uint64_t)1 << LENGTHS_MAX) {
            qn__fail(err, QN_USAGE, "the shape of %s has a length of 0, or more than 2^%d items",
                     what, LENGTHS_MAX);
            return qn__remedy(err, QN_USAGE, "give lengths from 1");
        }
    return QN_OK;
}

/* `length`: the last one of an array. */
static qn_status check_last(const qn_kernel *k, uint32_t part, uint64_t length, qn_error *err) {
    const qn__user_part *p = &k->source.part[part];
    const uint32_t want = p->bins > 0 ? p->bins : p->components;
    const char *what = p->bins > 0 ? "bin" : "component";
    if (want == 0 || length == want)
        return QN_OK;
    qn__fail(err, QN_USAGE, "\"%s\" has %u %ss, but the array %llu numbers", p->name,
             (unsigned)want, what, (unsigned long long)length);
    qn__at(err, "%s", k->name);
    return qn__remedy(err, QN_USAGE, "give an array with one number a %s", what);
}

qn_status qn_kernel_bind(qn_kernel *k, const char *name, void *data, const uint64_t *shape,
                         uint32_t dimensions, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(name, err);
    QN__NEED(data, err);
    QN__NEED(shape, err);
    uint32_t i;
    qn_status status = find(k, name, qn__user_part_is_array, "array", &i, err);
    if (status == QN_OK)
        status = qn__user_check_dimensions(k, i, dimensions, name, err);
    if (status == QN_OK)
        status = qn__user_check_shape(shape, dimensions, name, err);
    if (status == QN_OK)
        status = check_last(k, i, shape[dimensions - 1], err);
    if (status != QN_OK)
        return status;
    unbind(k, i);
    qn__user_array *a = &k->part[i].array;
    *a = (qn__user_array){
        .type = qn__user_part_type(&k->source.part[i]), .dimensions = dimensions, .data = data};
    memcpy(a->shape, shape, dimensions * sizeof *shape);
    k->part[i].lent = 1;
    return QN_OK;
}

/* ------------------------------------------------------------------ arrays in parts */

static const char RANK[] = "%r"; /* stands for the number of the rank */

static int can_be_in_parts(const qn__user_part *p) { return p->use <= QN__USER_OUTPUT; }

qn_status qn_kernel_bind_parts(qn_kernel *k, const char *name, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(name, err);
    QN__NEED(path, err);
    uint32_t i;
    qn_status status = find(k, name, can_be_in_parts, "array with a row for each item", &i, err);
    if (status != QN_OK)
        return status;
    if (k->source.part[i].use == QN__USER_OUTPUT) {
        const qn__user_array array = {.type = k->source.part[i].type,
                                      .dimensions = qn__user_dimensions(k, i)};
        status = qn__user_output_check(&array, name, path, err);
        if (status == QN_OK && !strstr(path, RANK)) {
            qn__fail(err, QN_USAGE, "all ranks would write one file for \"%s\"", name);
            qn__at(err, "%s", path);
            status = qn__remedy(err, QN_USAGE,
                                "write %%r for the number of the rank, as in out-%%r.npy");
        }
    }
    char *copy = status == QN_OK ? qn__copy_text(path, err) : NULL;
    if (!copy)
        return status == QN_OK ? QN_MEMORY : status;
    unbind(k, i);
    k->part[i].in_parts = 1;
    k->part[i].path = copy;
    return QN_OK;
}

qn_status qn_kernel_bind_part(qn_kernel *k, const char *name, void *data, const uint64_t *shape,
                              uint32_t dimensions, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(name, err);
    QN__NEED(data, err);
    QN__NEED(shape, err);
    uint32_t i;
    uint64_t rows[QN_KERNEL_DIMENSIONS];
    qn_status status = find(k, name, can_be_in_parts, "array with a row for each item", &i, err);
    if (status == QN_OK)
        status = qn__user_check_dimensions(k, i, dimensions, name, err);
    if (status != QN_OK)
        return status;
    memcpy(rows, shape, dimensions * sizeof *rows);
    rows[0] += rows[0] == 0; /* a rank may have none */
    status = qn__user_check_shape(rows, dimensions, name, err);
    if (status == QN_OK && dimensions > 1)
        status = check_last(k, i, shape[dimensions - 1], err);
    if (status != QN_OK)
        return status;
    unbind(k, i);
    k->part[i].own =
        (qn__user_array){.type = k->source.part[i].type, .dimensions = dimensions, .data = data};
    memcpy(k->part[i].own.shape, shape, dimensions * sizeof *shape);
    k->part[i].in_parts = k->part[i].lent = 1;
    return QN_OK;
}

qn_status qn_kernel_set_shape(qn_kernel *k, const uint64_t *shape, uint32_t dimensions,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(shape, err);
    if (dimensions != k->source.dimensions) {
        qn__fail(err, QN_USAGE, "the index space of the kernel has %u dimension%s, not %u",
                 (unsigned)k->source.dimensions, k->source.dimensions == 1 ? "" : "s",
                 (unsigned)dimensions);
        qn__at(err, "`kernel.shape`");
        return qn__remedy(err, QN_USAGE, "give a length for each name of INDEX");
    }
    const qn_status status = qn__user_check_shape(shape, dimensions, "the index space", err);
    if (status == QN_OK)
        memcpy(k->shape, shape, dimensions * sizeof *shape);
    return status;
}

qn_status qn_kernel_set_seed(qn_kernel *k, uint64_t seed, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    if (!k->source.has_random) {
        qn__fail(err, QN_USAGE, "a seed does nothing: the kernel does not declare RANDOM");
        qn__at(err, "%s", k->name);
        return qn__remedy(err, QN_USAGE, "leave `kernel.seed` out");
    }
    k->seed = seed;
    return QN_OK;
}
