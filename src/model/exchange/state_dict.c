#include "model/exchange/state_dict.h"

#include "base/memory.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const parts[QN__PART_STATES] = {"weight", "bias", "running_mean", "running_var",
                                                   "num_batches_tracked"};

/* Those of layers with states, without "_l0" or "_l0_reverse". */
static const struct {
    const char *name;
    int part;
} state_parts[] = {{"weight_ih", QN__PART_WEIGHT},
                   {"bias_ih", QN__PART_BIAS},
                   {"weight_hh", QN__PART_STATES},
                   {"bias_hh", QN__PART_SHIFT}};

static const char *own_name(const char *name) {
    const char *point = strrchr(name, '.');
    return point ? point + 1 : name;
}

/* The part of a layer with states that a tensor is, or QN__PARTS; *place: the number of its layer,
 * and whether it is reversed. A single cell has no number. */
static int state_part(const char *name, unsigned long *place) {
    const char *own = own_name(name);
    *place = 0;
    for (size_t i = 0; i < sizeof state_parts / sizeof *state_parts; ++i) {
        const size_t size = strlen(state_parts[i].name);
        if (strncmp(own, state_parts[i].name, size) != 0)
            continue;
        own += size;
        if (*own == '\0')
            return state_parts[i].part;
        const size_t digits = strncmp(own, "_l", 2) == 0 ? strspn(own + 2, "0123456789") : 0;
        if (digits == 0 || digits > 6 || (digits > 1 && own[2] == '0'))
            return QN__PARTS;
        *place = 2 * strtoul(own + 2, NULL, 10) + 2;
        own += 2 + digits;
        *place += strcmp(own, "_reverse") == 0;
        return *own == '\0' || *place % 2 ? state_parts[i].part : QN__PARTS;
    }
    return QN__PARTS;
}

/* Whether a tensor is a module by itself: the factors of a layer scale, as torchvision and timm
 * call them. */
static int stands_alone(const char *name) {
    const char *own = own_name(name);
    return strcmp(own, "layer_scale") == 0 || strcmp(own, "gamma") == 0;
}

size_t qn__module_size(const char *name) {
    const char *point = strrchr(name, '.');
    return stands_alone(name) ? strlen(name) : point ? (size_t)(point - name) : 0;
}

/* The part that a tensor is; QN__PARTS: none. */
static int part_of(const char *name) {
    unsigned long place;
    if (stands_alone(name))
        return QN__PART_WEIGHT;
    for (int part = 0; part < QN__PART_STATES; ++part)
        if (strcmp(own_name(name), parts[part]) == 0)
            return part;
    return state_part(name, &place);
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits from `at` on, without leading zeros. */
static size_t digits(const char **at, const char *end) {
    while (*at + 1 < end && **at == '0' && is_digit((*at)[1]))
        ++*at;
    size_t size = 0;
    while (*at + size < end && is_digit((*at)[size]))
        ++size;
    return size;
}

/* Compares names of modules, numbers by value. *words becomes 1 where the first difference is not
 * one of numbers. */
static int compare_names(const char *a, size_t a_size, const char *b, size_t b_size, int *words) {
    const char *const a_end = a + a_size, *const b_end = b + b_size;
    *words = 0;
    while (a < a_end && b < b_end) {
        if (is_digit(*a) && is_digit(*b)) {
            const size_t m = digits(&a, a_end), n = digits(&b, b_end);
            const int order = m != n ? (m > n) - (m < n) : memcmp(a, b, m);
            if (order)
                return order;
            a += m;
            b += n;
        } else if (*a != *b) {
            *words = 1;
            /* A point ends a name, so it comes first. */
            return *a == '.' ? -1 : *b == '.' ? 1 : (unsigned char)*a - (unsigned char)*b;
        } else {
            ++a;
            ++b;
        }
    }
    *words = a < a_end || b < b_end;
    return (a < a_end) - (b < b_end);
}

static int compare_views(const void *one, const void *other) {
    const char *a = (*(const qn__tensor_view *const *)one)->name;
    const char *b = (*(const qn__tensor_view *const *)other)->name;
    int words;
    const int order = compare_names(a, qn__module_size(a), b, qn__module_size(b), &words);
    unsigned long place, other_place;
    const int states = state_part(a, &place) < QN__PARTS;
    const int other_states = state_part(b, &other_place) < QN__PARTS;
    return order                    ? order
           : states != other_states ? states - other_states
           : place != other_place   ? (place > other_place) - (place < other_place)
                                    : strcmp(a, b);
}

const qn__tensor_view *qn__module_any(const qn__module *module) {
    int part = 0;
    while (part + 1 < QN__PARTS && !module->part[part])
        ++part;
    return module->part[part];
}

qn__module *qn__module_find(const qn__state_dict *state, const char *name) {
    const size_t size = strlen(name);
    size_t low = 0, high = state->modules;
    int words;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const char *own = qn__module_any(&state->module[middle])->name;
        const size_t own_size = qn__module_size(own);
        const int order = compare_names(own, own_size, name, size, &words);
        if (order == 0)
            return own_size == size && memcmp(own, name, size) == 0 ? &state->module[middle] : NULL;
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

int qn__modules_by_words(const qn__module *a, const qn__module *b) {
    const char *one = qn__module_any(a)->name, *other = qn__module_any(b)->name;
    int words;
    compare_names(one, qn__module_size(one), other, qn__module_size(other), &words);
    return words;
}

const char *qn__tensor_shape(const qn__tensor_view *view, char text[96]) {
    const uint64_t side[4] = {view->rows, view->columns, view->taps[0], view->taps[1]};
    int used = snprintf(text, 96, "%" PRIu64, view->dimensions ? side[0] : 1);
    for (uint32_t i = 1; i < 4 && i < view->dimensions; ++i)
        used += snprintf(text + used, 96 - (size_t)used, "x%" PRIu64, side[i]);
    return text;
}

static qn_status refuse(const qn__tensor_view *view, const char *path, const char *what,
                        const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%.300s, tensor \"%.80s\"", path, view->name);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

qn_status qn__tensor_check(const qn__tensor_view *view, const char *path, qn_error *err) {
    char what[120];
    if (view->type == QN__TENSOR_OTHER) {
        const int eight = strncmp(view->type_name, "F8", 2) == 0;
        snprintf(what, sizeof what, "the elements are of the type %.20s, %s", view->type_name,
                 eight ? "floats of 8 bits" : "which are not floating-point numbers");
        return refuse(view, path, what,
                      eight ? "multiply them by their scales and store them as F32, F16, BF16 or "
                              "F64: {name: tensor.float()}"
                            : "store them as F32, F16, BF16 or F64: {name: tensor.float()}",
                      err);
    }
    for (uint64_t i = 0; i < view->count; ++i)
        if (!isfinite(qn__tensor_float(view, i)))
            return refuse(view, path, "an element is not a finite float32 number",
                          "a network with such a parameter computes nothing of use: train it again",
                          err);
    return QN_OK;
}

/* Positions, masks and counts: tables that a network of another program keeps beside its
 * parameters. */
static int is_whole(const qn__tensor_view *view) {
    return view->type == QN__TENSOR_OTHER && strncmp(view->type_name, "F8", 2) != 0;
}

/* Fills the modules from views in their order. */
static qn_status group(qn__state_dict *s, const qn__tensor_view **views, size_t count,
                       const char *path, qn_error *err) {
    const char *last = NULL;
    size_t last_size = 0;
    unsigned long place, last_place = 0;
    for (size_t i = 0; i < count; ++i) {
        const char *name = views[i]->name;
        const size_t size = qn__module_size(name);
        const int part = part_of(name), states = state_part(name, &place) < QN__PARTS;
        if (part == QN__PARTS && is_whole(views[i])) {
            s->skipped = s->skipped ? s->skipped : views[i];
            continue;
        }
        if (part == QN__PARTS)
            return refuse(views[i], path,
                          "the tensor is neither weight, bias, running_mean nor running_var of a "
                          "module, nor a weight or bias of LSTM or GRU",
                          "a model text has no layer with such a parameter; leave the tensor out "
                          "where it decides nothing",
                          err);
        if (part != QN__PART_BATCHES && qn__tensor_check(views[i], path, err) != QN_OK)
            return QN_INPUT;
        if (!last || size != last_size || memcmp(last, name, size) != 0 ||
            s->module[s->modules - 1].states != states || place != last_place)
            s->modules++;
        last = name;
        last_size = size;
        last_place = place;
        s->module[s->modules - 1].part[part] = views[i];
        s->module[s->modules - 1].states = states;
    }
    return QN_OK;
}

qn_status qn__state_dict_read(const char *path, qn__state_dict *out, qn_error *err) {
    *out = (qn__state_dict){0};
    qn_status status = qn__shards_read(path, &out->shards, err);
    if (status != QN_OK)
        return status;
    const size_t count = out->shards.tensors;
    const qn__tensor_view **views = qn__alloc(count, sizeof *views, err);
    out->module = views ? qn__alloc(count, sizeof *out->module, err) : NULL;
    for (size_t i = 0; out->module && i < count; ++i)
        views[i] = out->shards.view[i];
    if (out->module && count > 0)
        qsort(views, count, sizeof *views, compare_views);
    status = out->module ? group(out, views, count, path, err) : QN_MEMORY;
    qn__free(views);
    if (status != QN_OK)
        qn__state_dict_release(out);
    return status;
}

void qn__state_dict_release(qn__state_dict *state) {
    qn__shards_release(&state->shards);
    qn__free(state->module);
    *state = (qn__state_dict){0};
}
