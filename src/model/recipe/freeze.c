#include "model/recipe/freeze.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "model/recipe/adapters.h"
#include <stdio.h>
#include <string.h>

static qn_status refuse(const char *text, qn_error *err) {
    return qn__recipe_refuse(
        err, "`train.freeze`",
        "write layers, counted from 0, such as \"0..14\" or \"0..3,7\", or all-but-last",
        qn__fail(err, QN_USAGE, "\"%.60s\" does not name layers of the network", text));
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

static qn_status refuse_number(uint32_t layer, uint32_t layers, qn_error *err) {
    return qn__recipe_refuse(
        err, "`train.freeze`", "`quern model show` lists the layers of a model",
        qn__fail(err, QN_USAGE, "the network has layers 0 to %u, and not %u", layers - 1, layer));
}

static qn_status check_rest(const char *still, uint32_t layers, qn_error *err) {
    for (uint32_t l = 0; l < layers; ++l)
        if (!still[l])
            return QN_OK;
    return qn__recipe_refuse(
        err, "`train.freeze`", "leave at least the last layer out, with all-but-last",
        qn__fail(err, QN_USAGE, "the network has layers 0 to %u, and one of them must train",
                 layers - 1));
}

qn_status qn__freeze_parse(const char *text, uint32_t layers, char *still, qn_error *err) {
    memset(still, 0, layers);
    if (!text || !*text)
        return QN_OK;
    if (strcmp(text, "all-but-last") == 0) {
        memset(still, 1, layers - 1);
        return QN_OK;
    }
    for (const char *at = text;; ++at) {
        uint32_t first, last;
        if (!read_range(&at, &first, &last) || (*at && *at != ','))
            return refuse(text, err);
        if (last >= layers)
            return refuse_number(last, layers, err);
        memset(still + first, 1, last + 1 - first);
        if (!*at)
            return check_rest(still, layers, err);
    }
}

/* The layers from `first` on that are alike. */
static uint32_t run_of(const char *still, uint32_t first, uint32_t layers) {
    uint32_t end = first;
    while (end < layers && still[end] == still[first])
        ++end;
    return end;
}

qn_status qn__freeze_tidy(const char *text, uint32_t layers, char **out, qn_error *err) {
    char still[QN__MAX_LAYERS];
    qn__text form = {0};
    *out = NULL;
    const qn_status status = qn__freeze_parse(text, layers, still, err);
    for (uint32_t l = 0, end; status == QN_OK && l < layers; l = end) {
        end = run_of(still, l, layers);
        if (still[l])
            qn__text_add(&form, "%s%u..%u", form.data ? "," : "", l, end - 1);
    }
    if (status != QN_OK || !form.data)
        return status;
    *out = qn__text_take(&form, err);
    return *out ? QN_OK : QN_MEMORY;
}

/* Whether a layer from `cut` on reads an output before that of layer `cut - 1`. */
static int is_read_over(const qn__layer *layer, uint32_t layers, uint32_t cut) {
    const int32_t last = (int32_t)cut - 1;
    for (uint32_t l = cut; l < layers; ++l)
        if (qn__layer_source(layer, l) < last ||
            (qn__layer_joins(&layer[l]) && qn__layer_other(layer, l) < last))
            return 1;
    return 0;
}

/* The first layers that do not train, as long as errors need not go through one of them. */
static uint32_t first_of(const qn__layer *layer, uint32_t layers, const char *still) {
    uint32_t cut = still[0] ? run_of(still, 0, layers) : 0;
    while (cut > 0 && is_read_over(layer, layers, cut))
        --cut;
    return cut;
}

/* With adapters only these train, and a new last layer (25.86). */
static qn_status still_of(const qn__recipe *r, char *still, qn_error *err) {
    char role[QN__MAX_LAYERS];
    const uint32_t layers = r->network.layers;
    if (!r->lora)
        return qn__freeze_parse(r->freeze, layers, still, err);
    qn__recipe_roles(r, role);
    for (uint32_t l = 0; l < layers; ++l)
        still[l] =
            role[l] != QN__LORA_DOWN && role[l] != QN__LORA_UP && !(r->new_last && l + 1 == layers);
    return QN_OK;
}

void qn__recipe_still(const qn__recipe *r, char *still) {
    if (still_of(r, still, NULL) != QN_OK)
        memset(still, 0, r->network.layers);
}

static int freezes(const qn__recipe *r) { return r->lora || r->freeze; }

/* The layers of the recipe, and which of them do not train. */
typedef struct subject {
    qn__layer layer[QN__MAX_LAYERS];
    char still[QN__MAX_LAYERS];
    uint32_t layers, first;
} subject;

static qn_status open_subject(const qn__recipe *r, subject *s, qn_error *err) {
    uint64_t parameters;
    s->layers = r->network.layers;
    qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), s->layer, &parameters, err);
    if (status == QN_OK)
        status = still_of(r, s->still, err);
    s->first = status == QN_OK ? first_of(s->layer, s->layers, s->still) : 0;
    return status;
}

uint32_t qn__recipe_frozen(const qn__recipe *r) {
    subject s;
    return freezes(r) && open_subject(r, &s, NULL) == QN_OK ? s.first : 0;
}

int qn__recipe_freezes_single(const qn__recipe *r) {
    subject s;
    if (!r->freeze || open_subject(r, &s, NULL) != QN_OK)
        return 0; /* an invalid recipe is refused later */
    for (uint32_t l = s.first; l < s.layers; ++l)
        if (s.still[l])
            return 1;
    return 0;
}

/* Both tables of tied weights begin where all parameters do (qn__layer_matrix). */
static qn_status refuse_tied(qn_error *err) {
    return qn__recipe_refuse(
        err, "`train.freeze`", "freeze layer 0, too",
        qn__fail(
            err, QN_USAGE,
            "the embedding, layer 0, which is also the last layer (\"tied\"), trains only where "
            "all others do"));
}

/* One that does not train has running averages for moments, and errors do not go through it in this
 * way. */
static qn_status refuse_batchnorm(const qn__recipe *r, uint32_t layer, qn_error *err) {
    char remedy[96];
    qn__fail(err, QN_USAGE,
             "layer %u is a batchnorm, which can only stay as it is where all before it do", layer);
    snprintf(remedy, sizeof remedy, "leave it out, or name all layers before it, too: \"0..%u\"",
             layer);
    return r->lora ? qn__recipe_refuse(err, "`train.lora`",
                                       "name layers after the last batchnorm, such as \"8 on 14\"",
                                       QN_USAGE)
                   : qn__recipe_refuse(err, "`train.freeze`", remedy, QN_USAGE);
}

static qn_status check_layers(const qn__recipe *r, const subject *s, qn_error *err) {
    uint64_t trains = 0;
    if (s->layer[s->layers - 1].tied && s->first == 0)
        return refuse_tied(err);
    for (uint32_t l = s->first; l < s->layers; ++l) {
        if (s->still[l] && s->layer[l].running)
            return refuse_batchnorm(r, l, err);
        trains += s->still[l] ? 0 : qn__layer_end(&s->layer[l]) - s->layer[l].weights;
    }
    if (trains > 0)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.freeze`", "leave a layer with weights out",
        qn__fail(err, QN_USAGE, "the layers that would train have no parameters"));
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
    subject s;
    if (!freezes(r))
        return QN_OK;
    qn_status status = r->freeze ? check_form(r, err) : QN_OK;
    if (status == QN_OK && !*r->init_from)
        return qn__recipe_refuse(
            err, "`train.freeze`", "name the model with `train.init_from`",
            qn__fail(err, QN_USAGE, "layers that do not train need a model that they come from"));
    if (status == QN_OK)
        status = open_subject(r, &s, err);
    return status == QN_OK ? check_layers(r, &s, err) : status;
}

/* Places the parameters of the layers that train, or of the others, from `at` on. Returns where
 * they end. */
static uint64_t place(const qn__program *program, qn__layer *layer, int trains, uint64_t at) {
    for (uint32_t l = 0; l < program->layers; ++l) {
        const uint64_t weights = layer[l].biases - layer[l].weights;
        const uint64_t all = qn__layer_end(&layer[l]) - layer[l].weights;
        if (qn__program_trains(program, l) != trains)
            continue;
        layer[l].weights = at;
        layer[l].biases = at + weights;
        at += all;
    }
    return at;
}

void qn__recipe_freeze(const qn__recipe *r, qn__layer *layer, qn__program *program) {
    char still[QN__MAX_LAYERS] = {0};
    const uint32_t layers = r->network.layers;
    program->frozen = 0;
    program->frozen_parameters = 0;
    if (!freezes(r) || still_of(r, still, NULL) != QN_OK)
        return;
    if (layer[layers - 1].tied) /* its weights are the embedding's (25.15) */
        still[layers - 1] = 0;
    const qn__program own = {
        .layers = layers, .layer = layer, .frozen = first_of(layer, layers, still)};
    for (uint32_t l = 0; l < layers; ++l) {
        layer[l].still = still[l] && l >= own.frozen;
        if (still[l])
            layer[l].drop_threshold = 0;
    }
    program->frozen = own.frozen;
    program->frozen_parameters = place(&own, layer, 0, 0);
    place(&own, layer, 1, program->frozen_parameters);
}
