#include "predict/layer_values.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "device/notes.h"
#include "job/apply.h"
#include "model/network/network.h"
#include "team/team.h"
#include <string.h>

static qn_status refuse_layer(const qn_model *model, qn_error *err) {
    qn__fail(err, QN_USAGE, "the model has the layers 0 to %u", qn_model_layers(model) - 1);
    qn__at(err, "`predict.layer`");
    return qn__remedy(err, QN_USAGE,
                      "give the number of one of them, or one from -1 on, which "
                      "counts from the last");
}

/* The layers up to `layer`, and a pool after them. */
static qn_status make_layers(const qn_model *model, uint32_t layer, qn_summary summary,
                             qn__layer_cut *out, qn_error *err) {
    static const qn__pooling kinds[] = {[QN_SUMMARY_MEAN] = QN__POOL_MEAN,
                                        [QN_SUMMARY_MAX] = QN__POOL_MAX,
                                        [QN_SUMMARY_FIRST] = QN__POOL_FIRST,
                                        [QN_SUMMARY_LAST] = QN__POOL_LAST};
    const qn__recipe *recipe = qn__model_recipe_of(model);
    qn__network *cut = qn__alloc(1, sizeof *cut, err);
    if (!cut)
        return QN_MEMORY;
    cut->next = recipe->network.next;
    cut->layers = layer + 1;
    memcpy(cut->layer, recipe->network.layer, cut->layers * sizeof *cut->layer);
    if (summary != QN_SUMMARY_NONE)
        cut->layer[cut->layers++] =
            (qn__layer_text){.kind = QN__LAYER_POOL, .pooling = kinds[summary]};
    out->program.layers = cut->layers;
    const qn_status status = qn__network_program(cut, qn__recipe_input(recipe), out->layer,
                                                 &out->program.parameters, err);
    qn__free(cut);
    return status;
}

/* A network ends with a dense layer: this one has one output, and what it reads is wanted. */
static void append_end(qn__program *p, qn__layer *layer) {
    qn__layer *end = &layer[p->layers];
    *end = qn__layer_dense(end[-1].to, 1, QN__ACT_NONE, p->parameters);
    end->no_biases = 1;
    end->biases = end->weights + end->in;
    p->layers++;
    p->parameters = qn__layer_end(end);
}

/* All but the parameters, which a shape does not need. */
static qn_status make_program(const qn_model *model, uint32_t layer, qn_summary summary,
                              qn__layer_cut *out, qn_error *err) {
    qn__program *p = &out->program;
    *out = (qn__layer_cut){.layer = NULL};
    if ((unsigned)summary > QN_SUMMARY_LAST)
        return qn__fail(err, QN_USAGE, "`summary` is not one of qn_summary");
    if (qn__model_need_network(model, "outputs of a layer", err) != QN_OK)
        return QN_UNSUPPORTED;
    if (layer >= qn_model_layers(model))
        return refuse_layer(model, err);
    const int tied = qn__model_recipe_of(model)->network.layer[layer].tied;
    if (tied || layer + 3 > QN__MAX_LAYERS) {
        qn__fail(err, QN_UNSUPPORTED,
                 tied
                     ? "the last layer has the weights of the first one, and its outputs are those "
                       "of the model"
                     : "the network has too many layers for this");
        qn__at(err, "`predict.layer`");
        return qn__remedy(err, QN_UNSUPPORTED, "give a layer before it");
    }
    qn__model_program(model, p);
    out->layer = qn__alloc((size_t)layer + 3, sizeof *out->layer, err);
    if (!out->layer)
        return QN_MEMORY;
    p->layer = out->layer;
    const qn_status status = make_layers(model, layer, summary, out, err);
    if (status != QN_OK)
        return status;
    append_end(p, out->layer);
    p->loss = QN__LOSS_MSE;
    p->real = 1;
    p->answers = 0;
    p->next = 0;
    p->optimizer = QN__OPT_SGD;
    p->clip = p->ema = 0.0f;
    p->grain = 1;
    return QN_OK;
}

qn_status qn__layer_cut_make(const qn_model *model, uint32_t layer, qn_summary summary,
                             qn__layer_cut *out, qn_error *err) {
    const qn_status status = make_program(model, layer, summary, out, err);
    if (status != QN_OK)
        return status;
    const qn__program *p = &out->program;
    out->parameter = qn__alloc((size_t)p->parameters, sizeof *out->parameter, err);
    if (!out->parameter)
        return QN_MEMORY;
    const size_t own = (size_t)p->layer[p->layers - 1].weights; /* those before the end */
    memcpy(out->parameter, qn__model_parameters(model), own * sizeof *out->parameter);
    return QN_OK;
}

void qn__layer_cut_release(qn__layer_cut *cut) {
    qn__free(cut->layer);
    qn__free(cut->parameter);
}

uint32_t qn__layer_cut_values(const qn__layer_cut *cut) {
    return cut->layer[cut->program.layers - 1].in;
}

struct qn__layer_team {
    qn__program program;
    qn__team *team;
};

qn_status qn__layer_team_open(const qn__layer_cut *cut, const qn_compute *compute, uint64_t items,
                              qn__layer_team **out, qn_error *err) {
    qn__layer_team *t = *out = qn__alloc(1, sizeof *t, err);
    if (!t)
        return QN_MEMORY;
    t->program = cut->program;
    t->program.batch = qn__apply_batch(&t->program, items);
    const qn_status status = qn__team_create(&t->program, compute, NULL, 0, &t->team, err);
    if (status != QN_OK)
        return status;
    qn__team_notes(t->team, qn__device_tell_note, NULL);
    const qn__state state = {.parameters = cut->parameter};
    return qn__team_load(t->team, &state, err);
}

void qn__layer_team_close(qn__layer_team *team) {
    if (team)
        qn__team_destroy(team->team);
    qn__free(team);
}

qn_status qn__layer_team_apply(qn__layer_team *team, const qn_data *inputs, float *values,
                               qn_error *err) {
    const qn__apply_results results = {.inputs = values};
    const qn_status status = qn__apply_all(team->team, &team->program, inputs, &results, err);
    const qn__shape from = team->program.layer[team->program.layers - 1].from;
    return status == QN_OK && from.axes == QN__SEQUENCE
               ? qn__apply_by_pixel(from, inputs->items, values, err)
               : status;
}

void qn__layer_cut_shape(const qn__layer_cut *cut, uint32_t shape[3], uint32_t *lengths) {
    const qn__shape from = cut->layer[cut->program.layers - 1].from;
    const int is_sequence = from.axes == QN__SEQUENCE;
    shape[0] = is_sequence ? from.height * from.width : from.channels;
    shape[1] = is_sequence ? from.channels : from.height;
    shape[2] = is_sequence ? 1 : from.width;
    *lengths = is_sequence ? 2 : from.height * from.width > 1 ? 3 : 1;
}

/* The layer before the head: before the last pool, where it has a pool of all positions or pixels,
 * else before the last layer. */
uint32_t qn_model_body(const qn_model *model) {
    QN__OWN_FLOATS;
    if (!model || model->layers < 2)
        return 0;
    qn__program p;
    qn__model_program(model, &p);
    uint32_t l = p.layers - 1;
    while (l > 0 && p.layer[l].kind != QN__LAYER_POOL && p.layer[l].kind != QN__LAYER_GLOBALPOOL)
        l--;
    return (l > 0 ? l : p.layers - 1) - 1;
}

/* "7", or "-1": so many before the end; 0: it is neither. */
static int read_number(const char *text, uint32_t layers, uint32_t *layer) {
    const int negative = *text == '-';
    uint64_t number;
    if (!qn__parse_u64(text + negative, strlen(text + negative), &number) ||
        number > UINT32_MAX - 1 || (negative && number == 0))
        return 0;
    /* One that is not there is beyond the last. */
    *layer = !negative          ? (uint32_t)number
             : number <= layers ? layers - (uint32_t)number
                                : UINT32_MAX;
    return 1;
}

qn_status qn_model_find_layer(const qn_model *model, const char *text, uint32_t *layer,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(text, err);
    QN__NEED(layer, err);
    if (qn__model_need_network(model, "outputs of a layer", err) != QN_OK)
        return QN_UNSUPPORTED;
    if (strcmp(text, "body") == 0)
        *layer = qn_model_body(model);
    else if (!read_number(text, qn_model_layers(model), layer)) {
        qn__fail(err, QN_USAGE, "\"%.60s\" does not name a layer", text);
        return qn__remedy(err, QN_USAGE,
                          "give a number from 0, one from -1 on, which counts from the last layer, "
                          "or body: the last one before the head");
    }
    return *layer < qn_model_layers(model) ? QN_OK : refuse_layer(model, err);
}

int qn_summary_find(const char *word, qn_summary *out) {
    static const char *const words[] = {[QN_SUMMARY_NONE] = "none",
                                        [QN_SUMMARY_MEAN] = "mean",
                                        [QN_SUMMARY_MAX] = "max",
                                        [QN_SUMMARY_FIRST] = "first",
                                        [QN_SUMMARY_LAST] = "last"};
    for (unsigned k = 0; word && out && k < sizeof words / sizeof *words; k++)
        if (strcmp(word, words[k]) == 0) {
            *out = (qn_summary)k;
            return 1;
        }
    return 0;
}

qn_status qn_model_layer_shape(const qn_model *model, uint32_t layer, qn_summary summary,
                               uint32_t shape[3], uint32_t *lengths, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(shape, err);
    QN__NEED(lengths, err);
    qn__layer_cut cut;
    const qn_status status = make_program(model, layer, summary, &cut, err);
    if (status == QN_OK && cut.layer)
        qn__layer_cut_shape(&cut, shape, lengths);
    qn__layer_cut_release(&cut);
    return status;
}
