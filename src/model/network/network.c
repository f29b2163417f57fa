#include "model/network/network.h"

#include "layer/axes.h"
#include "layer/padding.h"
#include "model/network/choice_table.h"
#include "model/network/network_refuse.h"
#include <stdio.h>
#include <string.h>

enum { LAYERS_OF_CONTRACT_7 = 255 };

/* Where words of the current layer stand; SIZE_MAX: nowhere. */
typedef struct marks {
    size_t softmax, dropout, gated;
} marks;

static qn_status parse_kind(qn__tokens *w, qn__layer_kind *kind) {
    if (qn__tokens_ended(w))
        return qn__tokens_fail(w, w->at, "a layer is empty",
                               "write a layer, such as \"dense 500 tanh\", or take the semicolon "
                               "out");
    if (!qn__layer_find(w, kind))
        return qn__network_refuse_kind(w);
    qn__tokens_next(w);
    return QN_OK;
}

/* The activation, unless the next word is "dropout", "droppath" or the end of the layer. */
static qn_status parse_activation(qn__tokens *w, const qn__layer_ops *ops, marks *at,
                                  qn__activation *out) {
    *out = QN__ACT_NONE;
    if (qn__tokens_ended(w) || qn__tokens_is(w, "dropout") || qn__tokens_is(w, "droppath"))
        return QN_OK;
    const qn__choice *row = qn__table_row(&qn__activations, w->text + w->at, w->size);
    if (row == NULL)
        return qn__network_refuse_word(w, ops, 1);
    *out = (qn__activation)row->value;
    if (*out == QN__ACT_SOFTMAX)
        at->softmax = w->at;
    if (qn__keeps_slope(*out))
        at->gated = w->at;
    qn__tokens_next(w);
    return QN_OK;
}

static qn_status parse_dropout(qn__tokens *w, marks *at, qn__layer_text *layer) {
    layer->dropout = 0.0f;
    layer->drop_path = !qn__tokens_ended(w) && qn__tokens_is(w, "droppath");
    if (qn__tokens_ended(w) || (!layer->drop_path && !qn__tokens_is(w, "dropout")))
        return QN_OK;
    const char *const help = layer->drop_path
                                 ? "a probability lies between 0 and 1: \"droppath 0.2\""
                                 : "a dropout probability lies between 0 and 1: \"dropout 0.2\"";
    at->dropout = w->at;
    qn__tokens_next(w);
    float chance;
    if (qn__tokens_ended(w))
        return qn__tokens_fail(w, w->at,
                               layer->drop_path ? "the probability of droppath is missing"
                                                : "the dropout's probability is missing",
                               help);
    if (!qn__parse_float(w->text + w->at, w->size, &chance))
        return qn__tokens_invalid(
            w, layer->drop_path ? "invalid droppath probability" : "invalid dropout probability",
            help);
    if (!(chance > 0.0f && chance < 1.0f))
        return qn__tokens_fail(w, w->at,
                               layer->drop_path
                                   ? "the probability of droppath is not between 0 and 1"
                                   : "the dropout's probability is not between 0 and 1",
                               "0 and 1 themselves are excluded; without it, leave the word out");
    layer->dropout = chance;
    qn__tokens_next(w);
    return QN_OK;
}

/* Activation and dropout, to the end of the layer, and the semicolon after it. */
static qn_status parse_end(qn__tokens *w, marks *at, qn__layer_text *layer) {
    const qn__layer_ops *ops = qn__layer_ops_of(layer->kind);
    qn_status status = ops->bare ? QN_OK : parse_activation(w, ops, at, &layer->activation);
    if (status == QN_OK && !ops->bare)
        status = parse_dropout(w, at, layer);
    if (status != QN_OK)
        return status;
    if (!qn__tokens_ended(w))
        return qn__network_refuse_word(w, ops, 0);
    if (qn__tokens_is(w, ";"))
        qn__tokens_next(w);
    return QN_OK;
}

/* A block whose end was not read. Layers are counted in the whole network. */
typedef struct block {
    qn__layer_kind kind;
    size_t begin;            /* of its word in the text */
    int64_t input;           /* the layer whose output both paths read; -1: the network's input */
    uint32_t main, shortcut; /* the first layers of the two paths; shortcut 0: not begun */
} block;

/* Those of the current place, the outermost first. */
typedef struct blocks {
    uint32_t open;
    block at[QN__MAX_DEPTH];
} blocks;

#define BLOCK_HELP                                                                                 \
    "write \"residual { conv 32 3x3 relu; conv 32 3x3 } relu\", or with a shortcut: "              \
    "\"residual { conv 32 3x3 stride 2 relu; conv 32 3x3 | conv 32 1x1 stride 2 } relu\""

static block *innermost(blocks *b) { return b->open ? &b->at[b->open - 1] : NULL; }

/* The layer that layer number `layers` reads: the first one of a path reads the block's input. */
static int64_t next_source(blocks *b, uint32_t layers) {
    const block *in = innermost(b);
    return in && (in->main == layers || in->shortcut == layers) ? in->input : (int64_t)layers - 1;
}

static qn_status refuse_depth(const qn__tokens *w, size_t begin) {
    return qn__tokens_fail(w, begin, "more than 8 blocks stand in one another",
                           "8 blocks that contain each other are the most: end one of them with "
                           "\"}\" first");
}

/* The word of a block was read: its brace. */
static qn_status open_block(qn__tokens *w, blocks *b, qn__layer_kind kind, size_t begin,
                            uint32_t layers) {
    const block own = {kind, begin, next_source(b, layers), layers, 0};
    if (b->open == QN__MAX_DEPTH)
        return refuse_depth(w, begin);
    if (!qn__tokens_is(w, "{"))
        return qn__tokens_fail(w, w->at, "the block's \"{\" is missing", BLOCK_HELP);
    qn__tokens_next(w);
    b->at[b->open++] = own;
    return QN_OK;
}

/* At "|" or "}": the path before it must have layers. */
static qn_status end_path(qn__tokens *w, const block *b, uint32_t layers) {
    if (!b)
        return qn__tokens_invalid(w, "no block is open at", BLOCK_HELP);
    if (b->main == layers)
        return qn__tokens_fail(w, w->at, "the block has no layers", BLOCK_HELP);
    if (b->shortcut == layers)
        return qn__tokens_fail(w, w->at, "the shortcut has no layers",
                               "without \"|\" the shortcut is the block's input itself");
    if (b->shortcut && qn__tokens_is(w, "|"))
        return qn__tokens_fail(w, w->at, "the block has a second shortcut",
                               "a block has at most one \"|\": the main path stands before it, the "
                               "shortcut after it");
    qn__tokens_next(w);
    return QN_OK;
}

/* At "}": the layer that joins both paths. */
static qn_status close_block(qn__tokens *w, marks *at, blocks *b, uint32_t layers,
                             qn__layer_text *layer) {
    const block *own = innermost(b);
    const qn_status status = end_path(w, own, layers);
    if (status != QN_OK)
        return status;
    *layer = (qn__layer_text){.kind = own->kind};
    if (own->shortcut)
        layer->skip = layers - own->shortcut;
    else
        layer->other = (uint32_t)((int64_t)layers - 1 - own->input);
    b->open--;
    return parse_end(w, at, layer);
}

/* One layer and the semicolon after it, or the begin of a block or of its shortcut. *made: whether
 * there is a layer. */
static qn_status parse_layer(qn__tokens *w, marks *at, blocks *b, uint32_t layers,
                             qn__layer_text *layer, int *made) {
    const size_t begin = w->at;
    *at = (marks){SIZE_MAX, SIZE_MAX, SIZE_MAX};
    *layer = (qn__layer_text){0};
    *made = !qn__tokens_is(w, "|");
    if (qn__tokens_is(w, "}"))
        return close_block(w, at, b, layers, layer);
    if (!*made) {
        const qn_status status = end_path(w, innermost(b), layers);
        if (status == QN_OK)
            innermost(b)->shortcut = layers;
        return status;
    }
    qn_status status = parse_kind(w, &layer->kind);
    if (status != QN_OK)
        return status;
    const qn__layer_ops *ops = qn__layer_ops_of(layer->kind);
    if (ops->block) {
        *made = 0;
        return open_block(w, b, layer->kind, begin, layers);
    }
    layer->skip = (uint32_t)((int64_t)layers - 1 - next_source(b, layers));
    if (ops->parse)
        status = ops->parse(w, layer);
    return status == QN_OK ? parse_end(w, at, layer) : status;
}

static qn_status refuse_open(const qn__tokens *w, const blocks *b) {
    return qn__tokens_fail(w, b->at[b->open - 1].begin, "the block's \"}\" is missing", BLOCK_HELP);
}

static qn_status refuse_softmax(const qn__tokens *w, const marks *at) {
    return qn__tokens_fail(
        w, at->softmax, "softmax stands before the last layer",
        "softmax turns the last outputs into probabilities; use relu, tanh or sigmoid here");
}

/* "gated N [nobias] ACTIVATION" is a short form of a product of two convolutions of 1x1, of which
 * the first one has the activation: three layers. */
enum { GATED = 3 };

static qn_status parse_gated_words(qn__tokens *w, marks *at, qn__layer_text *conv) {
    static const char *const help =
        "give the width and an activation, as in \"gated 1024 silu\" or \"gated 1024 nobias gelu\"";
    qn__tokens_next(w);
    qn_status status = qn__tokens_count(w, "width", QN__MAX_WIDTH, help, &conv->out);
    if (status == QN_OK && !qn__tokens_ended(w) && qn__tokens_is(w, "nobias")) {
        conv->no_biases = 1;
        qn__tokens_next(w);
    }
    if (status == QN_OK && qn__tokens_ended(w))
        return qn__tokens_fail(w, w->at, "the activation of the gate is missing", help);
    if (status == QN_OK)
        status = parse_activation(w, qn__layer_ops_of(conv->kind), at, &conv->activation);
    at->gated = SIZE_MAX; /* it is not that of the last layer */
    return status == QN_OK && conv->activation == QN__ACT_SOFTMAX ? refuse_softmax(w, at) : status;
}

static qn_status parse_gated(qn__tokens *w, marks *at, blocks *b, uint32_t layers,
                             qn__layer_text layer[GATED]) {
    const qn__window single = {{1, 1}, {1, 1}, {0, 0}, {1, 1}};
    const int64_t input = next_source(b, layers);
    const size_t begin = w->at;
    *at = (marks){SIZE_MAX, SIZE_MAX, SIZE_MAX};
    layer[0] = (qn__layer_text){
        .kind = QN__LAYER_CONV, .window = single, .skip = (uint32_t)((int64_t)layers - 1 - input)};
    layer[2] = (qn__layer_text){.kind = QN__LAYER_MULTIPLY, .skip = 1};
    if (b->open == QN__MAX_DEPTH)
        return refuse_depth(w, begin);
    const qn_status status = parse_gated_words(w, at, &layer[0]);
    layer[1] = layer[0];
    layer[1].skip += 1;
    layer[1].activation = QN__ACT_NONE;
    return status == QN_OK ? parse_end(w, at, &layer[2]) : status;
}

/* "lstm N [reverse]" and "gru N [reverse]" are short forms of a convolution of 1x1, which has the
 * products of all gates, and of the states after it (25.34): two layers. */
enum { RECURRENT = 2 };

static qn_status parse_recurrent(qn__tokens *w, marks *at, blocks *b, uint32_t layers,
                                 qn__layer_text layer[RECURRENT]) {
    static const char *const help = "give the channels of a state, as in \"lstm 256\"";
    const int gru = qn__tokens_is(w, "gru");
    const uint32_t gates = gru ? 3 : 4;
    *at = (marks){SIZE_MAX, SIZE_MAX, SIZE_MAX};
    layer[0] = (qn__layer_text){.kind = QN__LAYER_CONV,
                                .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                                .skip = (uint32_t)((int64_t)layers - 1 - next_source(b, layers))};
    layer[1] =
        (qn__layer_text){.kind = QN__LAYER_RECURRENT, .cell = gru ? QN__CELL_GRU : QN__CELL_LSTM};
    qn__tokens_next(w);
    const qn_status status =
        qn__tokens_count(w, "width", QN__MAX_WIDTH / gates, help, &layer[0].out);
    if (status != QN_OK)
        return status;
    layer[0].out *= gates;
    layer[1].reverse = !qn__tokens_ended(w) && qn__tokens_is(w, "reverse");
    if (layer[1].reverse)
        qn__tokens_next(w);
    return parse_end(w, at, &layer[1]);
}

/* Words that stand for several layers. */
static const struct form {
    const char *word;
    uint32_t layers;
    qn_status (*parse)(qn__tokens *w, marks *at, blocks *b, uint32_t layers, qn__layer_text *layer);
} forms[] = {{"gated", GATED, parse_gated},
             {"lstm", RECURRENT, parse_recurrent},
             {"gru", RECURRENT, parse_recurrent}};

/* The next layers of the text: one or, of a short form, several. *made: their number, 0 at the
 * begin of a block or of its shortcut. */
static qn_status parse_layers(qn__tokens *w, marks *at, blocks *b, qn__network *network,
                              int *made) {
    qn__layer_text *layer = &network->layer[network->layers];
    const struct form *form = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i)
        form = qn__tokens_is(w, forms[i].word) ? &forms[i] : form;
    if (network->layers + (form ? form->layers : 1) > QN__MAX_LAYERS)
        return qn__tokens_fail(w, w->at, "the model has more than 1023 layers",
                               "1023 layers are the most that a model can have");
    if (!form)
        return parse_layer(w, at, b, network->layers, layer, made);
    *made = (int)form->layers;
    return form->parse(w, at, b, network->layers, layer);
}

/* Checks that depend on the position of the layer that was just read, which began at `begin`. */
static qn_status check_place(const qn__tokens *w, const marks *at, size_t begin,
                             qn__layer_kind kind) {
    const int last = w->size == 0;
    if (qn__tokens_is(w, ";"))
        return QN_OK; /* an empty layer, which is refused next */
    if (!last && at->softmax != SIZE_MAX)
        return refuse_softmax(w, at);
    if (last && at->dropout != SIZE_MAX)
        return qn__tokens_fail(w, at->dropout, "the last layer has dropout",
                               "outputs cannot be dropped: take the dropout out of the last layer");
    if (last && at->gated != SIZE_MAX)
        return qn__tokens_fail(w, at->gated,
                               "the last layer has gelu, gelu-tanh, silu or hardswish",
                               "they stand in layers before the last: use none or softmax here");
    if (last && kind != QN__LAYER_DENSE && kind != QN__LAYER_CONV)
        return qn__tokens_fail(
            w, begin, "the last layer is neither dense nor a convolution",
            "end the model with a dense layer, such as \"dense 10 softmax\", or "
            "where each pixel or token has a class with \"conv 10 1x1 softmax\"");
    return QN_OK;
}

qn_status qn__network_parse(const char *text, qn__network *out, qn_error *err) {
    return qn__network_parse_lines(text, NULL, NULL, out, err);
}

qn_status qn__network_parse_lines(const char *text, const char *lines, const char *name,
                                  qn__network *out, qn_error *err) {
    qn__tokens w = {text != NULL ? text : "", 0, 0, err, name, lines};
    qn__network network = {0};
    blocks open = {0};
    marks at;
    qn__tokens_next(&w);
    if (w.size == 0)
        return qn__tokens_fail(&w, 0, "the model has no layers",
                               "name them from the first to the last: "
                               "`train.model` \"dense 500 tanh; dense 10 softmax\"");
    while (w.size > 0) {
        const size_t begin = w.at;
        const qn__layer_text *layer = &network.layer[network.layers];
        int made = 0;
        qn_status status = parse_layers(&w, &at, &open, &network, &made);
        if (status == QN_OK && made && !open.open)
            status = check_place(&w, &at,
                                 qn__layer_ops_of(layer->kind)->block ? open.at[0].begin : begin,
                                 layer[made - 1].kind);
        if (status == QN_OK && made && at.softmax != SIZE_MAX && open.open)
            status = w.size > 0 ? refuse_softmax(&w, &at) : refuse_open(&w, &open);
        if (status != QN_OK)
            return status;
        network.layers += (uint32_t)made;
    }
    if (open.open)
        return refuse_open(&w, &open);
    *out = network;
    return QN_OK;
}

/* Activation and dropout, each after a blank. */
static void add_end(const qn__layer_text *layer, qn__text *text) {
    if (qn__layer_ops_of(layer->kind)->bare)
        return;
    qn__text_add(text, " %s", qn__table_name(&qn__activations, (int)layer->activation));
    if (layer->dropout != 0.0f) {
        char number[32];
        qn__float_text(layer->dropout, number);
        qn__text_add(text, layer->drop_path ? " droppath %s" : " dropout %s", number);
    }
}

void qn__network_layer_text(const qn__layer_text *layer, qn__text *text) {
    const qn__layer_ops *ops = qn__layer_ops_of(layer->kind);
    qn__text_add(text, "%s", ops->word);
    if (ops->write)
        ops->write(layer, text);
    add_end(layer, text);
}

/* Where each block begins, by its end: the layer whose output it reads, -1 for the network's input,
 * and the first of its own layers. Other layers are as blocks of one. */
typedef struct spans {
    int32_t input[QN__MAX_LAYERS];
    uint32_t begin[QN__MAX_LAYERS];
} spans;

static int joins(const qn__layer_text *layer) { return qn__layer_ops_of(layer->kind)->block; }

static int32_t source_of(const qn__network *network, uint32_t l) {
    return (int32_t)l - 1 - (int32_t)network->layer[l].skip;
}

/* The end `l` of a block: its main path is gone through from its end to its begin. */
static void find_block(const qn__network *network, uint32_t l, spans *s) {
    const qn__layer_text *layer = &network->layer[l];
    uint32_t part = l - 1 - layer->skip;
    s->input[l] =
        layer->skip ? source_of(network, l - layer->skip) : (int32_t)l - 1 - (int32_t)layer->other;
    while (s->input[part] > s->input[l])
        part = (uint32_t)s->input[part];
    s->begin[l] = s->begin[part];
}

static void find_blocks(const qn__network *network, spans *s) {
    for (uint32_t l = 0; l < network->layers; ++l) {
        s->input[l] = source_of(network, l);
        s->begin[l] = l;
        if (joins(&network->layer[l]))
            find_block(network, l, s);
    }
}

/* Whether a shortcut begins with layer l. */
static int begins_shortcut(const qn__network *network, uint32_t l) {
    for (uint32_t end = l + 1; end < network->layers; ++end)
        if (joins(&network->layer[end]) && network->layer[end].skip == end - l)
            return 1;
    return 0;
}

/* The words of all blocks that begin with layer l, the outermost first. */
static void add_begins(const qn__network *network, const spans *s, uint32_t l, qn__text *text) {
    for (uint32_t end = network->layers; --end > l;)
        if (joins(&network->layer[end]) && s->begin[end] == l)
            qn__text_add(text, "%s { ", qn__layer_ops_of(network->layer[end].kind)->word);
}

void qn__network_text(const qn__network *network, qn__text *text) {
    spans s;
    find_blocks(network, &s);
    for (uint32_t l = 0; l < network->layers; ++l) {
        const qn__layer_text *layer = &network->layer[l];
        if (joins(layer)) {
            qn__text_add(text, " }");
            add_end(layer, text);
            continue;
        }
        if (l > 0)
            qn__text_add(text, begins_shortcut(network, l) ? " | " : "; ");
        add_begins(network, &s, l, text);
        qn__network_layer_text(layer, text);
    }
}

/* Whether a block stands in another one. */
static int has_nested(const qn__network *network) {
    spans s;
    uint32_t last = 0; /* the end before, + 1 */
    find_blocks(network, &s);
    for (uint32_t l = 0; l < network->layers; ++l) {
        if (joins(&network->layer[l]) && last > s.begin[l])
            return 1;
        last = joins(&network->layer[l]) ? l + 1 : last;
    }
    return 0;
}

/* 6.5: floor(p * 2^32 + 1/2). Products and sums are exact in double where they matter: p has 24
 * bits, and if p * 2^32 has bits below 2^-29 it is far below 1/2. */
static void dropout_numbers(float chance, qn__layer *layer) {
    if (chance == 0.0f) {
        layer->drop_threshold = 0;
        layer->drop_keep = 1.0f;
        return;
    }
    layer->drop_threshold = (uint32_t)((double)chance * 0x1p32 + 0.5);
    layer->drop_keep = 1.0f / (1.0f - chance);
}

int qn__network_has_pixels(const qn__network *network) {
    int other = 0;
    for (uint32_t l = 0; l < network->layers; ++l)
        other |= network->layer[l].kind != QN__LAYER_DENSE;
    return other;
}

/* The version from which an activation exists; 0: the first. */
static const int activation_contract[] = {
    [QN__ACT_LEAKY_RELU] = 6, [QN__ACT_GELU] = 6,      [QN__ACT_SILU] = 6,
    [QN__ACT_RELU6] = 8,      [QN__ACT_HARDSWISH] = 8, [QN__ACT_HARDSIGMOID] = 8,
    [QN__ACT_GELU_TANH] = 9};

int qn__network_contract(const qn__network *network) {
    const int new = network->layers > LAYERS_OF_CONTRACT_7 || has_nested(network) ||
                    network->layer[network->layers - 1].kind == QN__LAYER_CONV;
    int most = new ? 8 : 1;
    for (uint32_t l = 0; l < network->layers; ++l) {
        const qn__layer_text *layer = &network->layer[l];
        const int words = qn__layer_contract(layer);
        most = words > most ? words : most;
        most = activation_contract[layer->activation] > most
                   ? activation_contract[layer->activation]
                   : most;
    }
    return most;
}

static const char *place_of(int32_t layer, char text[32]) {
    if (layer < 0)
        return "the network's input";
    snprintf(text, 32, "layer %d", layer);
    return text;
}

/* The two outputs that the end of a block reads: their shapes must fit, and give its own. */
static qn_status join_shapes(qn__layer *layer, uint32_t index, qn__shape input, qn_error *err) {
    const int32_t main = qn__layer_source(layer, index), other = qn__layer_other(layer, index);
    const qn__layer_ops *ops = qn__layer_ops_of(layer[index].kind);
    char one[32], two[32], shape[2][QN__SHAPE_TEXT];
    layer[index].second = other < 0 ? input : layer[other].to;
    if (ops->meet(&layer[index]))
        return QN_OK;
    qn__fail(err, QN_USAGE, "%s outputs of different shapes: %s of %s and %s of %s", ops->verb,
             qn__shape_text(layer[index].from, shape[0]), place_of(main, one),
             qn__shape_text(layer[index].second, shape[1]), place_of(other, two));
    return qn__remedy(err, QN_USAGE, "%s", ops->fit);
}

int qn__network_reads_features(const qn__network *network) {
    return qn__layer_ops_of(network->layer[0].kind)->reads_features;
}

/* A layer of tokens stands before all others, and is the only one that reads the items. */
static qn_status check_first(const qn__network *network, uint32_t l, qn_error *err) {
    const qn__layer_kind kind = network->layer[l].kind;
    const qn__layer_ops *ops = qn__layer_ops_of(kind);
    const int reads = source_of(network, l) < 0 ||
                      (ops->block && (int32_t)l - 1 - (int32_t)network->layer[l].other < 0);
    if (reads && kind == QN__LAYER_RECURRENT) {
        qn__fail(err, QN_USAGE, "\"%s\" reads the network's input", ops->word);
        return qn__remedy(err, QN_USAGE,
                          "write \"lstm 256\" or \"gru 256\": each has the products before it");
    }
    if (l == 0 ||
        !(kind == QN__LAYER_EMBEDDING || (reads && network->layer[0].kind == QN__LAYER_EMBEDDING)))
        return QN_OK;
    qn__fail(err, QN_USAGE,
             kind == QN__LAYER_EMBEDDING ? "\"%s\" stands after another layer"
                                         : "\"%s\" reads the numbers of tokens",
             ops->word);
    return qn__remedy(err, QN_USAGE, "begin the model with \"embedding\", before the first block");
}

/* Tied weights (25.15): those of the embedding, which the last layer uses as its own. */
static qn_status check_tied(const qn__network *network, uint32_t l, qn__layer *layer,
                            qn_error *err) {
    const qn__layer *table = &layer[0];
    if (!network->layer[l].tied)
        return QN_OK;
    if (l + 1 < network->layers || table->kind != QN__LAYER_EMBEDDING) {
        qn__fail(err, QN_USAGE,
                 table->kind == QN__LAYER_EMBEDDING
                     ? "a tied layer stands before the last one"
                     : "a tied layer has the weights of an embedding, and the model "
                       "begins without one");
        return qn__remedy(err, QN_USAGE,
                          "write \"embedding V N; ...; conv V 1x1 tied softmax\", or \"nobias\"");
    }
    if (layer[l].to.channels != network->layer[0].vocabulary ||
        layer[l].from.channels != table->to.channels) {
        qn__fail(err, QN_USAGE,
                 "the embedding has %u tokens of %u channels, and the tied layer has %u outputs of "
                 "%u channels",
                 network->layer[0].vocabulary, table->to.channels, layer[l].to.channels,
                 layer[l].from.channels);
        return qn__remedy(err, QN_USAGE, "give both the same numbers: the table is one");
    }
    layer[0].tied = 1;
    return QN_OK;
}

/* Whether the positions that a layer reads are those of the tokens, so that an item has a length.
 */
static int counts_lengths(const qn__layer *layer, uint32_t l) {
    return qn__layer_ops_of(layer[l].kind)->reads_length &&
           qn__has_token_positions(layer, layer[l].from);
}

qn_status qn__network_program(const qn__network *network, qn__shape input, qn__layer *layer,
                              uint64_t *parameters, qn_error *err) {
    /* 1,023 layers of at most 2^24 x 2^28 weights are below 2^64, so the sum cannot overflow. */
    uint64_t at = 0;
    qn__shape shape = input;
    if (qn__network_reads_features(network))
        shape = (qn__shape){qn__shape_volume(input), 1, 1, QN__PICTURE};
    input = shape;
    for (uint32_t l = 0; l < network->layers; ++l) {
        qn__layer_text own = network->layer[l];
        const qn__layer_text *from = &own;
        const qn__layer_ops *ops = qn__layer_ops_of(from->kind);
        own.next = l == 0 && network->next;
        if (from->skip) {
            const int64_t source = (int64_t)l - 1 - from->skip;
            shape = source < 0 ? input : layer[source].to;
        }
        qn_status status = check_first(network, l, err);
        if (status == QN_OK)
            status = qn__layer_make(ops, from, shape, at, &layer[l], err);
        if (status == QN_OK)
            status = check_tied(network, l, layer, err);
        layer[l].skip = from->skip;
        layer[l].other = from->other;
        if (status == QN_OK && ops->join)
            status = join_shapes(layer, l, input, err);
        if (status != QN_OK) {
            qn__at(err, "model, layer %u", l);
            return status;
        }
        layer[l].by_length = counts_lengths(layer, l);
        dropout_numbers(from->dropout, &layer[l]);
        layer[l].drop_path = from->drop_path;
        at = qn__layer_end(&layer[l]);
        shape = layer[l].to;
    }
    /* Sizes in bytes, of several arrays together, must not overflow. */
    if (at > (uint64_t)(SIZE_MAX / 64)) {
        qn__fail(err, QN_USAGE, "the model would have %llu parameters", (unsigned long long)at);
        qn__at(err, "model");
        return qn__remedy(err, QN_USAGE, "make its layers narrower");
    }
    *parameters = at;
    return QN_OK;
}
