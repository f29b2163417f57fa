#include "predict/layer_values.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "device/notes.h"
#include "job/apply.h"
#include "model/network/network.h"
#include "team/team.h"
#include <string.h>

static qn_status refuse_layer(const qn_model *model, qn_error *err) {
    qn__fail(err, QN_USAGE, "the model has the layers 0 to %u", qn_model_layers(model) - 1);
    qn__at(err, "`predict.layer`");
    return qn__remedy(err, QN_USAGE, "give the number of one of them, or leave it out");
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

qn_status qn__layer_cut_make(const qn_model *model, uint32_t layer, qn_summary summary,
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
    const size_t own = (size_t)p->parameters;
    append_end(p, out->layer);
    p->loss = QN__LOSS_MSE;
    p->real = 1;
    p->answers = 0;
    p->next = 0;
    p->optimizer = QN__OPT_SGD;
    p->clip = p->ema = 0.0f;
    p->grain = 1;
    out->parameter = qn__alloc((size_t)p->parameters, sizeof *out->parameter, err);
    if (!out->parameter)
        return QN_MEMORY;
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

qn_status qn__layer_cut_apply(const qn__layer_cut *cut, const qn_compute *compute,
                              const qn_data *inputs, float *values, qn_error *err) {
    qn__program program = cut->program;
    qn__team *team = NULL;
    program.batch = qn__apply_batch(&program, inputs->items);
    qn_status status = qn__team_create(&program, compute, NULL, 0, &team, err);
    if (status != QN_OK)
        return status;
    qn__team_notes(team, qn__device_tell_note, NULL);
    const qn__state state = {.parameters = cut->parameter};
    status = qn__team_load(team, &state, err);
    const qn__apply_results results = {.inputs = values};
    if (status == QN_OK)
        status = qn__apply_all(team, &program, inputs, &results, err);
    qn__team_destroy(team);
    const qn__shape from = program.layer[program.layers - 1].from;
    return status == QN_OK && from.axes == QN__SEQUENCE
               ? qn__apply_by_pixel(from, inputs->items, values, err)
               : status;
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

qn_status qn_model_layer_shape(const qn_model *model, uint32_t layer, qn_summary summary,
                               uint32_t shape[3], uint32_t *lengths, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(shape, err);
    QN__NEED(lengths, err);
    qn__layer_cut cut;
    const qn_status status = qn__layer_cut_make(model, layer, summary, &cut, err);
    if (status == QN_OK && cut.layer) {
        const qn__shape from = cut.layer[cut.program.layers - 1].from;
        const int is_sequence = from.axes == QN__SEQUENCE;
        shape[0] = is_sequence ? from.height * from.width : from.channels;
        shape[1] = is_sequence ? from.channels : from.height;
        shape[2] = is_sequence ? 1 : from.width;
        *lengths = is_sequence ? 2 : from.height * from.width > 1 ? 3 : 1;
    }
    qn__layer_cut_release(&cut);
    return status;
}
