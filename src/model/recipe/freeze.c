#include "model/recipe/freeze.h"

#include "base/memory.h"
#include <stdio.h>
#include <string.h>

static qn_status refuse(const char *text, qn_error *err) {
    return qn__recipe_refuse(
        err, "`train.freeze`",
        "write the first layers, counted from 0, such as \"0..14\", or all-but-last",
        qn__fail(err, QN_USAGE, "\"%.60s\" does not name the first layers of the network", text));
}

/* A number of at most 4 digits; *at moves after it. */
static int read_number(const char **at, uint32_t *number) {
    const size_t digits = strspn(*at, "0123456789");
    *number = 0;
    for (size_t i = 0; i < digits && digits <= 4; ++i)
        *number = *number * 10 + (uint32_t)((*at)[i] - '0');
    *at += digits;
    return digits > 0 && digits <= 4;
}

/* "3" or "0..3". */
static int read_range(const char **at, uint32_t *first, uint32_t *last) {
    if (!read_number(at, first))
        return 0;
    *last = *first;
    if (strncmp(*at, "..", 2) != 0)
        return 1;
    *at += 2;
    return read_number(at, last) && *last >= *first;
}

static qn_status refuse_hole(uint32_t layer, uint32_t before, qn_error *err) {
    return qn__recipe_refuse(
        err, "`train.freeze`", "freeze the first layers, without one between them that trains",
        qn__fail(err, QN_USAGE, "layer %u would train before layer %u, which would not", before,
                 layer));
}

static qn_status check_count(uint32_t count, uint32_t layers, qn_error *err) {
    if (count < layers)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.freeze`", "leave at least the last layer out, with all-but-last",
        qn__fail(err, QN_USAGE, "the network has layers 0 to %u, and the last one must train",
                 layers - 1));
}

qn_status qn__freeze_parse(const char *text, uint32_t layers, uint32_t *count, qn_error *err) {
    *count = 0;
    if (!text || !*text)
        return QN_OK;
    if (strcmp(text, "all-but-last") == 0) {
        *count = layers - 1;
        return QN_OK;
    }
    for (const char *at = text;; ++at) {
        uint32_t first, last;
        if (!read_range(&at, &first, &last) || (*at && *at != ','))
            return refuse(text, err);
        if (last >= layers)
            return check_count(last + 1, layers, err);
        if (first > *count)
            return refuse_hole(first, *count, err);
        *count = last + 1 > *count ? last + 1 : *count;
        if (!*at)
            return check_count(*count, layers, err);
    }
}

qn_status qn__freeze_tidy(const char *text, uint32_t layers, char **out, qn_error *err) {
    uint32_t count;
    char form[32];
    *out = NULL;
    const qn_status status = qn__freeze_parse(text, layers, &count, err);
    if (status != QN_OK || count == 0)
        return status;
    snprintf(form, sizeof form, "0..%u", count - 1);
    *out = qn__copy_text(form, err);
    return *out ? QN_OK : QN_MEMORY;
}

/* The last layer that reads an output before the last frozen one; 0: none does. */
static uint32_t reader_over(const qn__layer *layer, uint32_t layers, uint32_t frozen) {
    for (uint32_t l = layers; l-- > frozen && frozen > 0;) {
        const int32_t last = (int32_t)frozen - 1;
        if (qn__layer_source(layer, l) < last ||
            (qn__layer_joins(&layer[l]) && qn__layer_other(layer, l) < last))
            return l;
    }
    return 0;
}

static qn_status check_blocks(const qn__recipe *r, uint32_t frozen, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    const qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, err);
    if (status != QN_OK)
        return status;
    const uint32_t reader = reader_over(layer, r->network.layers, frozen);
    if (reader == 0)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.freeze`", "freeze whole blocks",
        qn__fail(err, QN_USAGE,
                 "layer %u, the last that would not train, is inside a block, which "
                 "ends with layer %u",
                 frozen - 1, reader));
}

static qn_status check_form(const qn__recipe *r, qn_error *err) {
    char *form;
    const qn_status status = qn__freeze_tidy(r->freeze, r->network.layers, &form, err);
    if (status != QN_OK)
        return status;
    const int same = form && strcmp(form, r->freeze) == 0;
    qn__free(form);
    return same ? QN_OK
                : qn__recipe_refuse(err, "`train.freeze`", "make the recipe again with quern train",
                                    qn__fail(err, QN_USAGE,
                                             "\"%.60s\" is not how a recipe writes it", r->freeze));
}

qn_status qn__recipe_check_freeze(const qn__recipe *r, qn_error *err) {
    uint32_t count;
    if (!r->freeze)
        return QN_OK;
    qn_status status = check_form(r, err);
    if (status == QN_OK && !*r->init_from)
        return qn__recipe_refuse(
            err, "`train.freeze`", "name the model with `train.init_from`",
            qn__fail(err, QN_USAGE, "layers that do not train need a model that they come from"));
    if (status == QN_OK)
        status = qn__freeze_parse(r->freeze, r->network.layers, &count, err);
    return status == QN_OK ? check_blocks(r, count, err) : status;
}

void qn__recipe_freeze(const qn__recipe *r, qn__layer *layer, qn__program *program) {
    program->frozen = 0;
    program->frozen_parameters = 0;
    if (qn__freeze_parse(r->freeze, r->network.layers, &program->frozen, NULL) != QN_OK ||
        program->frozen == 0)
        return;
    program->frozen_parameters = layer[program->frozen].weights;
    for (uint32_t l = 0; l < program->frozen; ++l)
        layer[l].drop_threshold = 0;
}
