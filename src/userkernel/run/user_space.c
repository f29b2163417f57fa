/* The shape of the index space, and what must be bound before a run. */
#include "userkernel/run/user_space.h"

#include "base/files/place.h"
#include <stdio.h>
#include <string.h>

/* A whole array has the shape of the index space if an output becomes it. */
static int has_space(const qn__user_part *p) {
    return p->use <= QN__USER_OUTPUT && (p->use != QN__USER_WHOLE || p->next);
}

/* Whose shape the index space has, for messages: the first array, or `kernel.shape`. */
typedef struct space {
    uint64_t shape[QN_KERNEL_DIMENSIONS];
    const char *of;
} space;

static qn_status join_shape(const qn_kernel *k, const qn__user_array *a, const char *name, space *s,
                            qn_error *err) {
    char one[72], other[72];
    const uint32_t dimensions = k->source.dimensions;
    if (!s->of) {
        memcpy(s->shape, a->shape, dimensions * sizeof *s->shape);
        s->of = name;
        return QN_OK;
    }
    if (memcmp(s->shape, a->shape, dimensions * sizeof *s->shape) == 0)
        return QN_OK;
    qn__user_shape_text(dimensions, s->shape, one);
    qn__user_shape_text(dimensions, a->shape, other);
    qn__fail(err, QN_USAGE, "\"%s\" has the shape %s, and \"%s\" %s", s->of, one, name, other);
    qn__at(err, "%s", k->name);
    return qn__remedy(err, QN_USAGE,
                      "arrays of the index space have one shape; declare others as WHOLE");
}

/* A declaration as the text has it; of arrays that are read, without dimensions and borders. */
static void name_declaration(const qn__user_part *p, char *text, size_t size) {
    char bins[24] = "";
    if (p->bins + p->components > 0)
        snprintf(bins, sizeof bins, ", %u", (unsigned)(p->bins + p->components));
    else if (p->scans == 2)
        snprintf(bins, sizeof bins, ", exclusive");
    if (p->use == QN__USER_COUNT)
        snprintf(text, size, "COUNT(%s%s)", p->name, bins);
    else
        snprintf(text, size, "%s(%s, %s%s)", p->scans ? "SCAN" : qn__user_use_word(p->use),
                 qn__user_type_word(p->type), p->name, bins);
}

/* An array that must be there. */
static qn_status need(const qn_kernel *k, uint32_t part, qn_error *err) {
    const qn__user_part *p = &k->source.part[part];
    const qn__user_bound *b = &k->part[part];
    const int written = qn__user_part_is_written(p);
    char declaration[QN__USER_NAME_MAX + 64];
    if (p->use == QN__USER_SCALAR ? b->has_scalar
        : written                 ? b->path || b->lent || k->is_recipe
                                  : p->use > QN__USER_OUTPUT || b->array.data != NULL)
        return QN_OK;
    if (p->use == QN__USER_OUTPUT && p->next)
        return QN_OK; /* what is carried on may be wanted for sums only */
    if (p->use == QN__USER_SCALAR)
        qn__fail(err, QN_USAGE, "the scalar \"%s\" has no value", p->name);
    else if (b->is_refused)
        qn__fail(err, QN_USAGE,
                 "the recipe names %s for \"%s\", which is not below the folder of the recipe",
                 b->path, p->name);
    else if (b->path)
        qn__fail(err, QN_IO, "cannot read %s, the array for \"%s\"", b->path, p->name);
    else
        qn__fail(err, QN_USAGE, "there is no array for \"%s\"", p->name);
    name_declaration(p, declaration, sizeof declaration);
    qn__at(err, "%s in %s", declaration, k->name);
    if (p->use == QN__USER_SCALAR)
        return qn__remedy(err, err ? err->status : QN_USAGE, "add `kernel.scalar` %s=VALUE",
                          p->name);
    if (written)
        return qn__remedy(err, QN_USAGE, "add `kernel.output` %s=FILE.npy", p->name);
    if (b->is_refused)
        return qn__remedy(err, QN_USAGE,
                          "if the recipe is yours, add `kernel.allow_path` with the folder of that "
                          "file; else add `kernel.input` %s=FILE.npy",
                          p->name);
    return qn__remedy(err, b->path ? QN_IO : QN_USAGE, "add `kernel.input` %s=FILE.npy", p->name);
}

/* The memory of an array: of one in parts the rows of this rank. */
static const qn__user_array *memory_of(const qn__user_bound *b) {
    return b->in_parts ? &b->own : &b->array;
}

/* The compiled loops count on outputs that no other array overlaps. */
qn_status qn__user_overlaps_check(const qn_kernel *k, qn_error *err) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_bound *out = &k->part[i];
        const uintptr_t begin = (uintptr_t)memory_of(out)->data;
        if (!qn__user_part_is_written(&k->source.part[i]) || !out->lent)
            continue;
        for (uint32_t j = 0; j < k->source.parts; j++) {
            const qn__user_array *other = memory_of(&k->part[j]);
            const uintptr_t from = (uintptr_t)other->data;
            if (j == i || !other->data || from >= begin + qn__user_array_bytes(memory_of(out)) ||
                begin >= from + qn__user_array_bytes(other))
                continue;
            qn__fail(err, QN_USAGE, "the memory of \"%s\" overlaps that of \"%s\"",
                     k->source.part[i].name, k->source.part[j].name);
            qn__at(err, "`kernel.output`");
            return qn__remedy(err, QN_USAGE, "give each output memory of its own");
        }
    }
    return QN_OK;
}

/* The path of a declaration's array or series, by turns; NULL: none. */
static const char *path_of(const qn_kernel *k, uint32_t i) {
    const qn__user_bound *b = &k->part[i / 2];
    return i % 2 ? b->series_path : b->path;
}

/* Of two outputs to one file the first would be lost; of an output to the file of an input, the
 * input, without which nobody can replay the recipe. */
qn_status qn__user_paths_check(const qn_kernel *k, qn_error *err) {
    qn__place place, other;
    for (uint32_t i = 0; i < 2 * k->source.parts && !k->is_recipe; i++) {
        const char *path = path_of(k, i);
        if (!path || (i % 2 == 0 && !qn__user_part_is_written(&k->source.part[i / 2])))
            continue;
        qn__place_of(path, &place);
        for (uint32_t j = 0; j < 2 * k->source.parts; j++) {
            if (j == i || !path_of(k, j))
                continue;
            qn__place_of(path_of(k, j), &other);
            if (!qn__place_same(&place, &other))
                continue;
            qn__fail(err, QN_USAGE, "\"%s\" and \"%s\" have the same file",
                     k->source.part[i / 2].name, k->source.part[j / 2].name);
            qn__at(err, "%s", path);
            return qn__remedy(err, QN_USAGE, "give each a file of its own");
        }
    }
    return QN_OK;
}

qn_status qn__user_space_find(const qn_kernel *k, uint64_t shape[QN_KERNEL_DIMENSIONS],
                              qn_error *err) {
    qn_status status = QN_OK;
    space s = {.of = NULL};
    if (k->shape[0] > 0) {
        memcpy(s.shape, k->shape, sizeof s.shape);
        s.of = "the given shape";
    }
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        status = need(k, i, err);
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        const qn__user_bound *b = &k->part[i];
        /* An output of an earlier run follows the shape of this one. */
        if (has_space(&k->source.part[i]) && b->array.data &&
            (k->source.part[i].use != QN__USER_OUTPUT || b->lent))
            status = join_shape(k, &b->array, k->source.part[i].name, &s, err);
    }
    memcpy(shape, s.shape, sizeof s.shape);
    if (status != QN_OK || s.of)
        return status;
    qn__fail(err, QN_USAGE, "the shape of the index space is not known");
    qn__at(err, "%s", k->name);
    return qn__remedy(err, QN_USAGE, "add `kernel.shape` with a length for each index, as %s",
                      k->source.dimensions == 1   ? "1000000"
                      : k->source.dimensions == 2 ? "600x800"
                                                  : "64x64x64");
}
