#include "model/network/lora.h"

#include "base/memory.h"
#include "layer/tokens.h"
#include <stdlib.h>
#include <string.h>

/* Twice as much is the alpha of a rank without one. */
enum { MOST_RANK = 1 << 15 };

#define RANKS "give the rank of the adapters, such as 8, \"8 alpha 16\" or \"8 alpha 16 on all\""

/* ------------------------------------------------------------------------------------ the words */

static qn_status read_alpha(qn__tokens *t, qn__lora *out) {
    qn__tokens_next(t);
    if (!qn__parse_float(t->text + t->at, t->size, &out->alpha) || !(out->alpha > 0.0f) ||
        out->alpha > 0x1p16f)
        return qn__tokens_invalid(t, "invalid alpha", "give a number above 0, such as 16");
    qn__tokens_next(t);
    return QN_OK;
}

qn_status qn__lora_parse(const char *text, qn__lora *out, qn_error *err) {
    qn__tokens t = {.text = text, .err = err, .name = "lora"};
    qn__tokens_next(&t);
    qn_status status = qn__tokens_count(&t, "rank", MOST_RANK, RANKS, &out->rank);
    out->alpha = 2.0f * (float)out->rank;
    out->on = NULL;
    if (status == QN_OK && qn__tokens_is(&t, "alpha"))
        status = read_alpha(&t, out);
    if (status == QN_OK && qn__tokens_is(&t, "on")) {
        qn__tokens_next(&t);
        out->on = text + t.at;
        if (t.size == 0 || text[t.at + t.size] != '\0')
            return qn__tokens_invalid(&t, "invalid layers",
                                      "write attention, all, or numbers such as \"on 3,9..12\"");
        return QN_OK;
    }
    return status == QN_OK && t.size > 0 ? qn__tokens_invalid(&t, "unknown word", RANKS) : status;
}

void qn__lora_text(const qn__lora *lora, qn__text *text) {
    char alpha[32];
    qn__float_text(lora->alpha, alpha);
    qn__text_add(text, "%u alpha %s on %s", lora->rank, alpha, lora->on);
}

/* -------------------------------------------------------------------------------------- finding */

static int32_t source_of(const qn__network *network, uint32_t l) {
    return (int32_t)l - 1 - (int32_t)network->layer[l].skip;
}

static int32_t other_of(const qn__network *network, uint32_t l) {
    return (int32_t)l - 1 - (int32_t)network->layer[l].other;
}

static int joins(const qn__layer_text *layer) { return qn__layer_ops_of(layer->kind)->block; }

/* A product of each position or item by itself. */
static int takes_adapter(const qn__layer_text *layer) {
    static const qn__window one = {{1, 1}, {1, 1}, {0, 0}, {1, 1}};
    return layer->kind == QN__LAYER_DENSE ||
           (layer->kind == QN__LAYER_CONV && layer->conv_groups == 0 && !layer->tied &&
            memcmp(&layer->window, &one, sizeof one) == 0);
}

static int is_plain(const qn__layer_text *layer) {
    return layer->activation == QN__ACT_NONE && layer->dropout == 0.0f;
}

/* Whether a layer of an adapter's path has the kind of `main`, and so many outputs. */
static int is_path(const qn__layer_text *layer, const qn__layer_text *main, uint32_t out) {
    return layer->kind == main->kind && takes_adapter(layer) && layer->no_biases &&
           is_plain(layer) && layer->out == out;
}

/* The main layer of the adapter that ends with layer `end`, if there is one: then *found is 1. */
static uint32_t main_of(const qn__network *network, uint32_t end, uint32_t rank, int *found) {
    const qn__layer_text *layer = network->layer, *last = &layer[end];
    *found = 0;
    if (last->kind != QN__LAYER_ADD || last->other != 0 || last->skip < 2 || last->skip > 3 ||
        end < last->skip + 1)
        return 0;
    const uint32_t main = end - 1 - last->skip;
    *found = takes_adapter(&layer[main]) && is_plain(&layer[main]) &&
             is_path(&layer[main + 1], &layer[main], rank) &&
             source_of(network, main + 1) == source_of(network, main) &&
             (last->skip == 2 || (layer[main + 2].kind == QN__LAYER_LAYERSCALE &&
                                  layer[main + 2].skip == 0 && is_plain(&layer[main + 2]))) &&
             is_path(&layer[end - 1], &layer[main], layer[main].out) && layer[end - 1].skip == 0;
    return main;
}

uint32_t qn__lora_find(const qn__network *network, uint32_t rank, char *role) {
    uint32_t count = 0;
    memset(role, QN__LORA_NONE, network->layers);
    for (uint32_t end = 0; rank > 0 && end < network->layers; ++end) {
        int found;
        const uint32_t main = main_of(network, end, rank, &found);
        if (!found)
            continue;
        role[main] = QN__LORA_MAIN;
        role[main + 1] = QN__LORA_DOWN;
        if (network->layer[end].skip == 3)
            role[main + 2] = QN__LORA_SCALE;
        role[end - 1] = QN__LORA_UP;
        role[end] = QN__LORA_END;
        ++count;
    }
    return count;
}

/* ------------------------------------------------------------------------------------- choosing */

/* Layers whose outputs an attention reads, turned or not. */
static uint32_t choose_attention(const qn__network *network, char *chosen) {
    uint32_t count = 0;
    for (uint32_t l = 0; l < network->layers; ++l) {
        int32_t of = source_of(network, l);
        while (of >= 0 && network->layer[of].kind == QN__LAYER_ROTARY)
            of = source_of(network, (uint32_t)of);
        if (network->layer[l].kind != QN__LAYER_ATTENTION || of < 0 ||
            !takes_adapter(&network->layer[of]))
            continue;
        chosen[of] = 1;
        ++count;
    }
    return count;
}

static uint32_t choose_all(const qn__network *network, char *chosen) {
    uint32_t count = 0;
    for (uint32_t l = 0; l + 1 < network->layers; ++l)
        if (takes_adapter(&network->layer[l])) {
            chosen[l] = 1;
            ++count;
        }
    return count;
}

static qn_status refuse(qn_error *err, const char *remedy) {
    qn__at(err, "`train.lora`");
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

static qn_status refuse_numbers(const char *text, qn_error *err) {
    qn__fail(err, QN_USAGE, "\"%.60s\" does not name layers", text);
    return refuse(err, "write attention, all, or numbers such as \"8 on 3,9..12\"");
}

/* "3,9..12" */
static qn_status choose_numbers(const qn__network *network, const char *text, char *chosen,
                                qn_error *err) {
    for (const char *at = text;; ++at) {
        char *end = NULL;
        const unsigned long first = strtoul(at, &end, 10);
        unsigned long last = first;
        if (*at < '0' || *at > '9')
            return refuse_numbers(text, err);
        if (strncmp(end, "..", 2) == 0 && end[2] >= '0' && end[2] <= '9')
            last = strtoul(end + 2, &end, 10);
        if ((*end && *end != ',') || last < first)
            return refuse_numbers(text, err);
        for (unsigned long l = first; l <= last; ++l) {
            if (l >= network->layers - 1 || !takes_adapter(&network->layer[l])) {
                qn__fail(err, QN_USAGE, "layer %lu cannot have an adapter", l);
                return refuse(err, "name layers \"conv N 1x1\" or \"dense N\" before the last "
                                   "layer; `quern model show` lists them");
            }
            chosen[l] = 1;
        }
        if (!*end)
            return QN_OK;
        at = end;
    }
}

static qn_status choose(const qn__network *network, qn__lora *lora, char *chosen, qn_error *err) {
    uint32_t count = 0;
    memset(chosen, 0, network->layers);
    if (!lora->on)
        lora->on = choose_attention(network, chosen) > 0 ? "attention" : "all";
    if (strcmp(lora->on, "attention") == 0)
        count = choose_attention(network, chosen);
    else if (strcmp(lora->on, "all") == 0)
        count = choose_all(network, chosen);
    else
        return choose_numbers(network, lora->on, chosen, err);
    if (count > 0)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the network has no layer that an adapter could stand beside");
    return refuse(err,
                  strcmp(lora->on, "all") == 0
                      ? "adapters are for layers \"conv N 1x1\" and \"dense N\" before the last"
                      : "write \"8 on all\", or numbers of layers");
}

/* --------------------------------------------------------------------------- adding, taking away
 */

/* A copy under way: where the output of each old layer is among the new ones. */
typedef struct copy {
    const qn__network *from;
    qn__network *to;
    int32_t output[QN__MAX_LAYERS];
} copy;

static int32_t new_source(const copy *c, int32_t old) { return old < 0 ? -1 : c->output[old]; }

/* The layers that an old one reads are known by their old numbers; sets their new distances. */
static void put(copy *c, uint32_t l, const qn__layer_text *layer) {
    qn__layer_text *to = &c->to->layer[c->to->layers];
    const int32_t before = (int32_t)c->to->layers - 1;
    *to = *layer;
    to->skip = (uint32_t)(before - new_source(c, source_of(c->from, l)));
    if (joins(layer))
        to->other = (uint32_t)(before - new_source(c, other_of(c->from, l)));
    ++c->to->layers;
}

static void put_after(copy *c, const qn__layer_text *layer) {
    c->to->layer[c->to->layers] = *layer;
    c->to->layer[c->to->layers++].skip = 0;
}

/* The layers of an adapter in the place of layer `l`. */
static void put_adapter(copy *c, uint32_t l, const qn__lora *lora) {
    const qn__layer_text *old = &c->from->layer[l];
    const float factor = lora->alpha / (float)lora->rank;
    qn__layer_text main = *old;
    main.activation = QN__ACT_NONE;
    main.dropout = 0.0f;
    main.drop_path = 0;
    qn__layer_text path = main;
    path.no_biases = 1;
    put(c, l, &main);
    path.out = lora->rank;
    put(c, l, &path);
    if (factor != 1.0f)
        put_after(c, &(qn__layer_text){.kind = QN__LAYER_LAYERSCALE, .factor = factor});
    path.out = old->out;
    put_after(c, &path);
    put_after(c, &(qn__layer_text){.kind = QN__LAYER_ADD,
                                   .activation = old->activation,
                                   .dropout = old->dropout,
                                   .drop_path = old->drop_path});
    c->to->layer[c->to->layers - 1].skip = factor != 1.0f ? 3 : 2;
}

static copy *begin(const qn__network *network, qn_error *err) {
    copy *c = qn__alloc(1, sizeof *c, err);
    if (c && !(c->to = qn__alloc(1, sizeof *c->to, err))) {
        qn__free(c);
        return NULL;
    }
    if (c) {
        c->from = network;
        c->to->next = network->next;
    }
    return c;
}

static void end(copy *c, qn__network *out) {
    if (out)
        *out = *c->to;
    qn__free(c->to);
    qn__free(c);
}

/* What a model text may say, it says here, too: such as how deep blocks stand in each other. */
static qn_status check_text(const qn__network *network, qn_error *err) {
    qn__text text = {0};
    qn__network *again = qn__alloc(1, sizeof *again, err);
    qn__network_text(network, &text);
    char *taken = again ? qn__text_take(&text, err) : NULL;
    qn_status status = taken ? qn__network_parse(taken, again, err) : QN_MEMORY;
    if (!again)
        qn__text_release(&text);
    qn__free(taken);
    qn__free(again);
    return status;
}

qn_status qn__lora_add(const qn__network *network, qn__lora *lora, qn__network *out,
                       qn_error *err) {
    char chosen[QN__MAX_LAYERS];
    qn_status status = choose(network, lora, chosen, err);
    copy *c = status == QN_OK ? begin(network, err) : NULL;
    if (!c)
        return status == QN_OK ? QN_MEMORY : status;
    for (uint32_t l = 0; l < network->layers && status == QN_OK; ++l) {
        if (c->to->layers + 5 > QN__MAX_LAYERS) {
            qn__fail(err, QN_USAGE, "with adapters the network has more than %d layers",
                     QN__MAX_LAYERS);
            status = refuse(err, "name fewer layers, such as \"8 on attention\"");
        } else if (chosen[l]) {
            put_adapter(c, l, lora);
        } else {
            put(c, l, &network->layer[l]);
        }
        c->output[l] = (int32_t)c->to->layers - 1;
    }
    if (status == QN_OK)
        status = check_text(c->to, err);
    end(c, status == QN_OK ? out : NULL);
    return status;
}

void qn__lora_strip(const qn__network *network, uint32_t rank, qn__network *out) {
    char role[QN__MAX_LAYERS];
    qn__network to = {.next = network->next};
    copy c = {.from = network, .to = &to};
    qn__lora_find(network, rank, role);
    for (uint32_t l = 0; l < network->layers; ++l) {
        qn__layer_text layer = network->layer[l];
        if (role[l] == QN__LORA_NONE || role[l] == QN__LORA_MAIN) {
            put(&c, l, &layer);
        } else if (role[l] == QN__LORA_END) {
            const int32_t main = c.output[l - 1 - layer.skip];
            to.layer[main].activation = layer.activation;
            to.layer[main].dropout = layer.dropout;
            to.layer[main].drop_path = layer.drop_path;
            c.output[l] = main;
            continue;
        }
        c.output[l] = (int32_t)to.layers - 1;
    }
    *out = to;
}
