/* Answers to prompts that are known from the start. An engine computes some of them at once; over
 * ranks each rank has one, for a part of the answers. */
#include "predict/generate/generator.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "predict/generate/prompt_line.h"
#include "predict/generate/shared_answers.h"
#include "statistics/host_team.h"
#include <string.h>

enum { TOGETHER = 32 };

/* ------------------------------------------------------------------------------------------- open
 */

/* One prompt: a text, or a line of JSON. *needed becomes the most positions of an answer. */
static qn_status take_prompt(qn_generator *g, uint32_t i, uint64_t *needed, qn_error *err) {
    const qn_generate_options *o = &g->own.options;
    qn__prompt_line line = {NULL, o->tokens, o->seed};
    uint32_t *tokens = NULL, size = 0;
    qn_status status = QN_OK;
    if (o->lines)
        status = qn__prompt_line_read(g->prompt[i], i, o, &line, err);
    if (status == QN_OK)
        status =
            qn__codec_encode(&g->codec, line.text ? line.text : g->prompt[i], i,
                             o->lines ? NULL : g->own.chat, g->own.system, &tokens, &size, err);
    const qn__question question = {&g->own.manner, tokens, size, line.tokens, line.seed};
    for (uint32_t n = 0; n < o->answers && status == QN_OK; ++n)
        status = qn__answer_begin(&question, i, n, &g->answer[i * o->answers + n], err);
    const uint64_t own = (uint64_t)size + line.tokens;
    *needed = own > *needed ? own : *needed;
    qn__free(line.text);
    qn__free(tokens);
    return status;
}

static qn_status take_prompts(qn_generator *g, const char *const *prompts, uint32_t count,
                              uint64_t *needed, qn_error *err) {
    g->prompt = qn__alloc(count, sizeof *g->prompt, err);
    g->answer = qn__alloc((uint64_t)count * g->own.options.answers, sizeof *g->answer, err);
    if (!g->prompt || !g->answer)
        return QN_MEMORY;
    g->prompts = count;
    g->answers = count * g->own.options.answers;
    for (uint32_t i = 0; i < count; ++i) {
        if (!prompts[i])
            return qn__fail_null_at(err, "qn_generator_open", "prompts", i, "");
        if (!(g->prompt[i] = qn__copy_text(prompts[i], err)))
            return QN_MEMORY;
        const qn_status status = take_prompt(g, i, needed, err);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

static qn_status open_engine(qn_generator *g, const qn_compute *compute, uint64_t needed,
                             qn_error *err) {
    const qn__engine_plan plan = {.sequences = g->sequences,
                                  .positions = needed < UINT32_MAX ? (uint32_t)needed : UINT32_MAX};
    const qn_status status =
        qn__engine_open(g->model, compute, g->shared ? g->shared->member : NULL,
                        g->shared ? g->shared->members : 0, &g->codec, &plan, &g->engine, err);
    for (uint32_t i = 0; i < g->answers && status == QN_OK && !g->shared; ++i)
        qn__engine_add(g->engine, &g->answer[i]);
    return status;
}

/* What a rank does on its own. *needed becomes the most positions of an answer. */
static qn_status open_answers(qn_generator *g, const char *const *prompts, uint32_t count,
                              uint64_t *needed, qn_error *err) {
    qn_status status = QN_OK;
    if (status == QN_OK && (count < 1 || count > UINT32_MAX / g->own.options.answers)) {
        qn__fail(err, QN_USAGE, "there are %u prompts", count);
        status = qn__remedy(err, QN_USAGE, "give at least one, and at most 4294967295 answers");
    }
    if (status == QN_OK)
        status = qn__reader_check(g->model, err);
    if (status != QN_OK)
        return status;
    status = qn__codec_open(g->model, &g->codec, err);
    if (status == QN_OK && g->own.chat && !g->codec.tokenizer) {
        qn__fail(err, QN_USAGE, "a chat needs texts, and the model reads numbers of tokens");
        status = qn__remedy(err, QN_USAGE, "leave `generate.chat` out");
    }
    if (status == QN_OK)
        status = take_prompts(g, prompts, count, needed, err);
    const uint32_t most = g->own.options.batch ? g->own.options.batch : TOGETHER;
    g->sequences = most < g->answers ? most : g->answers;
    return status;
}

static qn_status complete(qn_generator *g, uint32_t from, uint32_t to, qn_error *err);

static qn_status open_all(qn_generator *g, const char *const *prompts, uint32_t count,
                          const qn_generate_options *options, qn_error *err) {
    uint64_t needed = 0;
    qn_compute own;
    const qn_compute *compute = options ? options->compute : NULL;
    qn_status status = qn__host_team_compute("qn_generator_open", compute, 0, &own, err);
    if (status != QN_OK)
        return status;
    status = qn__taken_options_take(options, &g->own, err);
    g->own.options.compute = NULL;
    if (status == QN_OK)
        status = qn_compute_check(&own, err);
    if (status == QN_OK)
        status = open_answers(g, prompts, count, &needed, err);
    g->cluster = own.cluster;
    if (qn_cluster_ranks(own.cluster) > 1)
        status = qn__shared_open(g, &own, complete, status, err);
    own.cluster = NULL;
    if (status == QN_OK)
        status = open_engine(g, &own, needed, err);
    return g->shared ? qn__shared_end(g->shared, status, err) : status;
}

qn_status qn_generator_open(const qn_model *model, const char *const *prompts, uint32_t count,
                            const qn_generate_options *options, qn_generator **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(model, err);
    QN__NEED(prompts, err);
    qn_error unwanted;
    err = err ? err : &unwanted; /* ranks compare it */
    qn_generator *g = qn__alloc(1, sizeof *g, err);
    if (!g)
        return QN_MEMORY;
    g->model = model;
    const qn_status status = open_all(g, prompts, count, options, err);
    if (status == QN_OK)
        *out = g;
    else
        qn_generator_close(g);
    return status;
}

void qn_generator_close(qn_generator *g) {
    QN__OWN_FLOATS;
    if (!g)
        return;
    for (uint32_t i = 0; i < g->answers; ++i)
        qn__answer_release(&g->answer[i]);
    for (uint32_t i = 0; i < g->prompts; ++i)
        qn__free(g->prompt[i]);
    qn__free(g->prompt);
    qn__free(g->answer);
    qn__taken_options_release(&g->own);
    qn__codec_close(&g->codec);
    qn__engine_close(g->engine);
    qn__shared_close(g->shared);
    qn__free(g);
}

/* ------------------------------------------------------------------------------------------- step
 */

static qn_status step(qn_generator *g, int *more, qn_error *err) {
    qn__answer *failed;
    const qn_status status = qn__engine_step(g->engine, more, &failed, err);
    *more = *more && status == QN_OK;
    return status;
}

/* For qn__shared_open. */
static qn_status complete(qn_generator *g, uint32_t from, uint32_t to, qn_error *err) {
    qn_status status = QN_OK;
    int more = 1;
    for (uint32_t i = from; i < to; ++i)
        qn__engine_add(g->engine, &g->answer[i]);
    while (more && status == QN_OK)
        status = step(g, &more, err);
    return status;
}

qn_status qn_generator_step(qn_generator *generator, int *more, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(generator, err);
    QN__NEED(more, err);
    qn_error unwanted;
    err = err ? err : &unwanted; /* ranks are told it */
    *more = 0;
    return generator->shared ? qn__shared_round(generator, more, err) : step(generator, more, err);
}

/* ---------------------------------------------------------------------------------------- answers
 */

uint32_t qn_generator_answers(const qn_generator *generator) {
    QN__OWN_FLOATS;
    return generator ? generator->answers : 0;
}

qn_status qn_generator_answer(const qn_generator *generator, uint32_t index, qn_answer *out,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(generator, err);
    QN__NEED(out, err);
    const qn_status status = qn__sized_check(QN__SIZED("out", qn_answer), out, err);
    if (status != QN_OK)
        return status;
    if (index >= generator->answers)
        return qn__fail(err, QN_USAGE, "there is no answer %u", index);
    qn_answer own;
    qn__answer_show(&generator->answer[index], &own);
    qn__sized_give(QN__SIZED("out", qn_answer), &own, out, qn__sized_of(out));
    return QN_OK;
}
