#include "predict/generate/reader.h"

#include "base/memory.h"
#include "base/system/threads.h"
#include "base/text/text.h"
#include "layer/layer.h"
#include "device/notes.h"
#include "model/network/network.h"
#include "team/team.h"
#include <stdio.h>
#include <string.h>

/* Rows of a pass over a prompt, enough for products at full speed; and products that are worth a
 * thread. */
enum { ROWS = 128, WORK = 1 << 18 };

struct qn__reader {
    qn__team *team;
    qn__program program;
    qn__layer layer[QN__MAX_LAYERS];
};

uint32_t qn__reader_context(const qn_model *model) {
    qn__program program;
    qn__model_program(model, &program);
    return program.layer[0].to.height * program.layer[0].to.width;
}

static qn_status refuse_layer(const qn_model *model, uint32_t index, qn_error *err) {
    const qn__recipe *recipe = qn__model_recipe_of(model);
    qn__text text = {0};
    qn__network_layer_text(&recipe->network.layer[index], &text);
    qn__fail(err, QN_UNSUPPORTED,
             "the model cannot generate: layer %u, \"%s\", needs all positions of a text", index,
             text.data ? text.data : "");
    qn__text_release(&text);
    return qn__remedy(
        err, QN_UNSUPPORTED,
        recipe->network.layer[index].reverse
            ? "train a model without \"reverse\": its states depend on later tokens"
            : "train a model whose positions do not read later ones, with \"attention H causal\", "
              "\"lstm N\", \"conv N 1x1\" and norms of \"channels\"");
}

qn_status qn__reader_check(const qn_model *model, qn_error *err) {
    qn__program program;
    if (model->kind != &qn__network_kind || qn__model_recipe_of(model)->task != QN__TASK_NEXT) {
        qn__fail(err, QN_USAGE, "the model does not tell which token comes next");
        return qn__remedy(err, QN_USAGE,
                          "generate with a model that was trained with `data.task` next");
    }
    qn__model_program(model, &program);
    for (uint32_t l = 0; l < program.layers; ++l) {
        const qn__layer_ops *ops = qn__layer_ops_of(program.layer[l].kind);
        if (!ops->steps || !ops->steps(&program.layer[l]))
            return refuse_layer(model, l, err);
    }
    return QN_OK;
}

static qn__shape one_pixel(qn__shape shape) {
    shape.height = shape.width = 1;
    return shape;
}

/* A layer of one position. A convolution by single pixels is then dense; its block of integers is
 * the position's in both (15.4, 25.24). */
static qn__layer shrink(const qn__layer *of) {
    qn__layer layer = *of;
    layer.from = one_pixel(of->from);
    layer.to = one_pixel(of->to);
    if (of->kind == QN__LAYER_EMBEDDING)
        layer.from.channels = 1; /* a token */
    layer.second = one_pixel(of->second);
    layer.in = qn__shape_volume(layer.from);
    layer.out = qn__shape_volume(layer.to);
    if (of->kind == QN__LAYER_CONV && !of->conv_groups)
        layer.kind = QN__LAYER_DENSE;
    layer.drop_threshold = 0;
    return layer;
}

static void make_program(const qn_model *model, uint32_t sequences, uint32_t positions,
                         qn__reader *r) {
    qn__model_program(model, &r->program);
    for (uint32_t l = 0; l < r->program.layers; ++l)
        r->layer[l] = shrink(&r->program.layer[l]);
    r->layer[r->program.layers - 1].activation = QN__ACT_NONE; /* logits */
    r->program.layer = r->layer;
    r->program.optimizer = QN__OPT_SGD; /* no state */
    r->program.numbers = (qn__numbers){.attention_arith = r->program.attention_arith};
    r->program.answers = 1;
    r->program.grain = 1;
    r->program.batch = sequences > ROWS ? sequences : ROWS;
    r->program.part = 0;
    r->program.sequences = sequences;
    r->program.positions = positions;
}

/* Threads that are worth it: those of a small network would mostly wait for each other. */
static int threads_for(const qn__program *program) {
    const uint64_t work = program->parameters * program->sequences / WORK + 1;
    const int cores = qn__cores();
    return work < (uint64_t)cores ? (int)work : cores;
}

qn_status qn__reader_open(const qn_model *model, const qn_compute *compute,
                          const qn__member *members, uint32_t count, uint32_t sequences,
                          uint32_t positions, qn__reader **out, qn_error *err) {
    qn_compute own = *compute;
    qn_status status = qn_compute_check(compute, err);
    *out = NULL;
    qn__reader *r = status == QN_OK ? qn__alloc(1, sizeof *r, err) : NULL;
    if (!r)
        return status == QN_OK ? QN_MEMORY : status;
    make_program(model, sequences, positions, r);
    own.threads = own.threads ? own.threads : threads_for(&r->program);
    status = qn__team_create(&r->program, &own, members, count, &r->team, err);
    /* load reads the arrays only. */
    const qn__state state = {.parameters = (float *)(uintptr_t)qn__model_parameters(model)};
    if (status == QN_OK) {
        qn__team_notes(r->team, qn__device_tell_note, NULL);
        status = qn__team_load(r->team, &state, err);
    }
    if (status == QN_OK)
        *out = r;
    else
        qn__reader_close(r);
    return status;
}

void qn__reader_close(qn__reader *r) {
    if (r)
        qn__team_destroy(r->team);
    qn__free(r);
}

uint32_t qn__reader_tokens(const qn__reader *r) {
    return r->layer[r->program.layers - 1].to.channels;
}

uint32_t qn__reader_rows(const qn__reader *r) { return r->program.batch; }

qn_status qn__reader_extend(qn__reader *r, const qn__extension *extension, uint32_t *bad,
                            qn_error *err) {
    return qn__team_extend(r->team, extension, bad, err);
}
