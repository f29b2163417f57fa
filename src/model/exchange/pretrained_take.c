/* The parameters of an import, from the tensors of its checkpoint. */
#include "model/exchange/pretrained_import.h"

#include "base/memory.h"
#include "device/notes.h"
#include "layer/layer.h"
#include "layer/product.h"
#include "model/exchange/state_dict.h"
#include "model/recipe/initial.h"
#include <stdio.h>
#include <string.h>

/* MOST_NEW: layers of a head. */
enum { MOST_PARTS = 4, MOST_NEW = 2 };

typedef qn__pretrained_import import;

/* The tensors of one layer: `parts` weights or biases whose outputs follow one another. */
typedef struct sources {
    uint32_t parts;
    const qn__tensor_view *view[MOST_PARTS];
} sources;

static qn_status refuse_tensor(const import *i, const char *name, const qn__tensor_view *view,
                               const char *need) {
    char shape[96];
    if (view)
        qn__fail(i->err, QN_MISMATCH, "by config.json a tensor of %s has %s", i->row->type, need);
    else
        qn__fail(i->err, QN_MISMATCH, "a tensor of %s is missing, of %s", i->row->type, need);
    if (view)
        qn__at(i->err, "%.250s, tensor \"%.120s\" of %s", i->path, view->name,
               qn__tensor_shape(view, shape));
    else
        qn__at(i->err, "%.250s, no tensor \"%.120s\"", i->path, name);
    return qn__remedy(i->err, QN_MISMATCH,
                      "give the whole checkpoint, with the config.json that belongs to it");
}

/* The tensor "MODULE.PART"; NULL: there is none. Old files have other names of two parts. */
static const qn__tensor_view *take(import *i, const char *module, const char *part) {
    static const char *const old[][2] = {{"weight", "gamma"}, {"bias", "beta"}};
    char name[QN__PRETRAINED_NAME + 24];
    const int size = (int)strcspn(module, "|&");
    snprintf(name, sizeof name, "%.*s.%s", size, module, part);
    const qn__tensor_view *found = qn__named_take(&i->tensors, name);
    for (size_t k = 0; !found && k < sizeof old / sizeof *old; ++k) {
        snprintf(name, sizeof name, "%.*s.%s", size, module, old[k][1]);
        if (strcmp(part, old[k][0]) == 0)
            found = qn__named_take(&i->tensors, name);
    }
    return found;
}

/* `need`: its shape. */
static qn_status find_tensor(import *i, const char *module, const char *part, const char *need,
                             const qn__tensor_view **out) {
    char name[QN__PRETRAINED_NAME + 24];
    snprintf(name, sizeof name, "%.*s.%s", (int)strcspn(module, "|&"), module, part);
    *out = take(i, module, part);
    return *out ? qn__named_check(&i->tensors, *out, i->err)
                : refuse_tensor(i, name + (*name == '/'), NULL, need);
}

/* Outputs of one part of a layer: of queries, keys and values, or all of them. */
static uint64_t rows_of(const import *i, uint32_t parts, uint32_t part, uint64_t all) {
    const uint64_t heads = part == 0 ? i->config.sizes.heads : i->config.sizes.groups;
    return parts == 1 ? all : heads * i->config.sizes.head;
}

/* The tensor of a part: `rows` numbers for each of `reads` inputs, or alone where that is 0. */
static qn_status find_source(import *i, const char *module, const char *part, int turned,
                             uint64_t rows, uint64_t reads, const qn__tensor_view **out) {
    char need[64];
    const uint64_t first = turned && reads ? reads : rows, second = turned && reads ? rows : reads;
    snprintf(need, sizeof need, reads ? "%llux%llu numbers" : "%llu numbers",
             (unsigned long long)first, (unsigned long long)second);
    const qn_status status = find_tensor(i, module, part, need, out);
    const int fits = status == QN_OK && (*out)->dimensions == (reads ? 2 : 1) &&
                     (*out)->rows == first && (*out)->columns == second;
    return status != QN_OK || fits ? status : refuse_tensor(i, "", *out, need);
}

/* The tensors of all parts of a layer's module: "q+k+v". */
static qn_status find_sources(import *i, const qn__pretrained_layer *named, const char *part,
                              uint64_t rows, uint64_t reads, sources *out) {
    char module[QN__PRETRAINED_NAME];
    uint32_t parts = 1;
    qn_status status = QN_OK;
    for (const char *at = named->module; *at; ++at)
        parts += *at == '+';
    *out = (sources){.parts = parts};
    const char *at = named->module;
    for (uint32_t p = 0; status == QN_OK && p < parts && p < MOST_PARTS; ++p) {
        const size_t size = strcspn(at, "+");
        snprintf(module, sizeof module, "%.*s", (int)size, at);
        at += size + (at[size] == '+');
        status = find_source(i, module, part, named->turned, rows_of(i, parts, p, rows), reads,
                             &out->view[p]);
    }
    return status;
}

static void tell(const import *i, uint32_t layer, const char *part, const sources *from) {
    char name[48], list[MOST_PARTS * QN__PRETRAINED_NAME] = "";
    size_t used = 0;
    for (uint32_t p = 0; p < from->parts && used < sizeof list; ++p)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", p ? " + " : "",
                                 from->view[p]->name);
    snprintf(name, sizeof name, "layer%u.%s", layer, part);
    if (i->told)
        i->told(i->user, name, list);
}

/* The weights of a convolution of 1x1, in the order of the tensors. */
static void copy_weights(import *i, const qn__layer *l, const sources *from, int turned) {
    const uint64_t reads = l->depth, count = reads * l->to.channels;
    uint64_t ends[MOST_PARTS] = {0};
    for (uint32_t p = 0; p < from->parts; ++p)
        ends[p] = (p ? ends[p - 1] : 0) + from->view[p]->count / reads;
    for (uint64_t k = 0; k < count; ++k) {
        const uint64_t filed = qn__product_filed(l, k), row = filed / reads, c = filed % reads;
        uint32_t p = 0;
        while (row >= ends[p])
            ++p;
        const uint64_t own = row - (p ? ends[p - 1] : 0);
        const uint64_t at = turned ? c * from->view[p]->columns + own : own * reads + c;
        i->parameter[l->weights + k] = qn__tensor_float(from->view[p], at);
    }
}

static qn_status take_vectors(import *i, uint32_t index, const qn__pretrained_layer *named,
                              const char *part, uint64_t at, uint64_t count) {
    sources from;
    const qn_status status = find_sources(i, named, part, count, 0, &from);
    if (status != QN_OK)
        return status;
    for (uint32_t p = 0; p < from.parts; ++p)
        for (uint64_t k = 0; k < from.view[p]->count; ++k)
            i->parameter[at++] = qn__tensor_float(from.view[p], k);
    tell(i, index, part, &from);
    return QN_OK;
}

static qn_status take_product(import *i, uint32_t index, const qn__pretrained_layer *named) {
    const qn__layer *l = &i->layer[index];
    sources from;
    const qn_status status = find_sources(i, named, "weight", l->to.channels, l->depth, &from);
    if (status != QN_OK)
        return status;
    copy_weights(i, l, &from, named->turned);
    tell(i, index, "weight", &from);
    return l->no_biases ? QN_OK : take_vectors(i, index, named, "bias", l->biases, l->to.channels);
}

/* The first row of another table is added to each one (25.82). */
static qn_status add_row(import *i, const qn__layer *l, const char *module) {
    const uint64_t columns = l->to.channels;
    const qn__tensor_view *from;
    const qn_status status =
        find_source(i, module, "weight", 0, i->config.sizes.types, columns, &from);
    for (uint64_t k = 0; status == QN_OK && k < l->vector; ++k)
        i->parameter[l->biases + k] += qn__tensor_float(from, k % columns);
    return status;
}

/* A table of tokens, or the first rows of one of positions. */
static qn_status take_table(import *i, uint32_t index, const qn__pretrained_layer *named) {
    const qn__layer *l = &i->layer[index];
    const uint64_t columns = l->to.channels, rows = l->vector / columns;
    const uint64_t whole = l->kind == QN__LAYER_POSITION ? i->config.sizes.positions : rows;
    const char *added = strchr(named->module, '&');
    sources from;
    const qn_status status = find_sources(i, named, "weight", whole, columns, &from);
    if (status != QN_OK)
        return status;
    for (uint64_t k = 0; k < rows * columns; ++k)
        i->parameter[l->biases + k] = qn__tensor_float(from.view[0], k);
    tell(i, index, "weight", &from);
    return added ? add_row(i, l, added + 1) : QN_OK;
}

static qn_status take_layer(import *i, uint32_t index, const qn__pretrained_layer *named) {
    const qn__layer *l = &i->layer[index];
    const char *const *names = qn__layer_ops_of(l->kind)->names;
    qn_status status = QN_OK;
    if (l->depth)
        return take_product(i, index, named);
    if (qn__layer_ops_of(l->kind)->bound)
        return take_table(i, index, named);
    for (uint32_t v = 0; status == QN_OK && v < l->vectors; ++v)
        status =
            take_vectors(i, index, named, names[v], l->biases + (uint64_t)v * l->vector, l->vector);
    return status;
}

/* Whether the checkpoint has the tensors of a layer. Heads of one name differ by their biases. */
static int has_layer(import *i, const qn__layer *l, const qn__pretrained_layer *named) {
    char module[QN__PRETRAINED_NAME];
    snprintf(module, sizeof module, "%.*s", (int)strcspn(named->module, "+"), named->module);
    const int weights = take(i, module, "weight") != NULL, biases = take(i, module, "bias") != NULL;
    return weights && biases == !l->no_biases;
}

static void tell_new(const uint32_t *fresh, uint32_t count) {
    char text[160], first[24] = "";
    if (count == 0)
        return;
    if (count > 1)
        snprintf(first, sizeof first, "s %u and", fresh[0]);
    snprintf(text, sizeof text,
             "the checkpoint has no head for this task: layer%s %u begin%s with random weights, so "
             "train it further",
             first, fresh[count - 1], count > 1 ? "" : "s");
    qn__device_tell(text);
}

/* Of a checkpoint with another head the last layers may be missing: they begin as in a training. */
static qn_status take_layers(import *i) {
    const uint32_t layers = i->recipe.network.layers;
    qn_status status = QN_OK;
    uint32_t fresh[MOST_NEW] = {0}, count = 0;
    i->parameter = qn__alloc(i->parameters, sizeof *i->parameter, i->err);
    if (!i->parameter)
        return QN_MEMORY;
    if (!i->config.own_head)
        qn__initial_parameters(i->layer, layers, &i->recipe, i->parameter);
    for (uint32_t l = 0, n = 0; status == QN_OK && l < layers; ++l) {
        if (!i->layer[l].depth && !i->layer[l].vectors)
            continue;
        const qn__pretrained_layer *named = &i->named[n++];
        if (i->layer[l].depth && i->layer[l].tied) { /* a copy in the file means nothing */
            (void)take(i, named->module, "weight");
            continue;
        }
        const int last = l + MOST_NEW >= layers && i->layer[l].depth;
        if (last && !i->config.own_head && count < MOST_NEW && !has_layer(i, &i->layer[l], named))
            fresh[count++] = l;
        else
            status = take_layer(i, l, named);
    }
    if (status == QN_OK)
        tell_new(fresh, count);
    return status;
}

/* A tensor of no layer would mean that the network computes something else. */
static qn_status check_rest(const import *i) {
    char shape[96];
    const qn__tensor_view *left = qn__named_left(&i->tensors, i->row->ignored, !i->config.own_head);
    if (!left)
        return QN_OK;
    qn__fail(i->err, QN_MISMATCH, "a tensor belongs to no part of %s with %u blocks", i->row->type,
             i->config.sizes.blocks);
    qn__at(i->err, "%.250s, tensor \"%.120s\" of %s", i->path, left->name,
           qn__tensor_shape(left, shape));
    return qn__remedy(i->err, QN_MISMATCH,
                      "give the config.json that belongs to these tensors; heads for other tasks "
                      "are left out by saving the network without them");
}

qn_status qn__pretrained_take(qn__pretrained_import *i) {
    const qn_status status = take_layers(i);
    return status == QN_OK ? check_rest(i) : status;
}
