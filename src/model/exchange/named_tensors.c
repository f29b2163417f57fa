#include "model/exchange/named_tensors.h"

#include "base/memory.h"
#include "model/exchange/state_dict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *one, const void *other) {
    return strcmp((*(const qn__tensor_view *const *)one)->name,
                  (*(const qn__tensor_view *const *)other)->name);
}

static int to_name(const void *name, const void *view) {
    return strcmp(name, (*(const qn__tensor_view *const *)view)->name);
}

static const qn__tensor_view **find(const qn__named_tensors *t, const char *name) {
    return bsearch(name, t->view, t->shards.tensors, sizeof(const qn__tensor_view *), to_name);
}

/* What stands before "FIRST.weight", at the beginning or after a point. */
static int find_prefix(qn__named_tensors *t, const char *first) {
    char end[80];
    const int size = snprintf(end, sizeof end, "%s.weight", first);
    for (size_t i = 0; i < t->shards.tensors; ++i) {
        const char *name = t->view[i]->name;
        const size_t length = strlen(name), before = length - (size_t)size;
        if (length < (size_t)size || before >= sizeof t->prefix ||
            strcmp(name + before, end) != 0 || (before && name[before - 1] != '.'))
            continue;
        snprintf(t->prefix, sizeof t->prefix, "%.*s", (int)before, name);
        return 1;
    }
    return 0;
}

static qn_status sort(qn__named_tensors *t, const char *first, qn_error *err) {
    const size_t count = t->shards.tensors;
    t->view = qn__alloc(count ? count : 1, sizeof *t->view, err);
    t->taken = t->view ? qn__alloc(count ? count : 1, 1, err) : NULL;
    if (!t->taken)
        return QN_MEMORY;
    memset(t->taken, 0, count);
    for (size_t i = 0; i < count; ++i)
        t->view[i] = t->shards.view[i];
    if (count)
        qsort(t->view, count, sizeof *t->view, by_name);
    if (!first || find_prefix(t, first))
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "no tensor is called \"%s.weight\"", first);
    qn__at(err, "%.300s", t->path);
    return qn__remedy(err, QN_MISMATCH,
                      "give the tensors that belong to this config.json, with the names that "
                      "save_pretrained gives them");
}

qn_status qn__named_read(const char *path, const char *first, qn__named_tensors *out,
                         qn_error *err) {
    *out = (qn__named_tensors){.path = path};
    qn_status status = qn__shards_read(path, &out->shards, err);
    if (status == QN_OK)
        status = sort(out, first, err);
    if (status != QN_OK)
        qn__named_release(out);
    return status;
}

void qn__named_release(qn__named_tensors *tensors) {
    qn__shards_release(&tensors->shards);
    qn__free((void *)tensors->view);
    qn__free(tensors->taken);
    *tensors = (qn__named_tensors){.path = NULL};
}

const qn__tensor_view *qn__named_take(qn__named_tensors *tensors, const char *name) {
    char whole[400];
    const int root = *name == '/';
    snprintf(whole, sizeof whole, "%s%s", root ? "" : tensors->prefix, name + root);
    const qn__tensor_view **found = find(tensors, whole);
    if (!found)
        return NULL;
    tensors->taken[found - tensors->view] = 1;
    return *found;
}

qn_status qn__named_check(const qn__named_tensors *tensors, const qn__tensor_view *view,
                          qn_error *err) {
    return qn__tensor_check(view, tensors->path, err);
}

/* Whether a name is that of a pattern in which '#' stands for digits. */
static int matches(const char *name, const char *pattern) {
    for (; *pattern; ++pattern) {
        const size_t digits = strspn(name, "0123456789");
        if (*pattern == '#' ? digits == 0 : *name != *pattern)
            return 0;
        name += *pattern == '#' ? digits : 1;
    }
    return *name == '\0';
}

static int is_ignored(const qn__named_tensors *t, const char *name, const char *const *ignored,
                      int others) {
    const size_t size = strlen(t->prefix);
    if (strncmp(name, t->prefix, size) != 0)
        return others;
    for (; *ignored; ++ignored)
        if (matches(name + size, *ignored))
            return 1;
    return 0;
}

const qn__tensor_view *qn__named_left(const qn__named_tensors *tensors, const char *const *ignored,
                                      int others) {
    for (size_t i = 0; i < tensors->shards.tensors; ++i)
        if (!tensors->taken[i] && !is_ignored(tensors, tensors->view[i]->name, ignored, others))
            return tensors->view[i];
    return NULL;
}
