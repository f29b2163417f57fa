/* Answers to prompts, some at once. A step reads what the network has not read of each answer, and
 * draws a token for each:
 *
 *     answers   0 1 2 3 | 4 5 ...        the first ones have a sequence of the reader each
 *     prompts   rows without logits      the tokens before the last one, of all new answers
 * together step      a row with logits for each sequence, then a draw for each
 *
 * An answer that is complete gives its sequence to the next one. Each row's numbers depend on its
 * own sequence alone, so which answers are computed together decides no result. */
#include "predict/generate/generator.h"

#include "base/argument.h"
#include "base/digest/sha256.h"
#include "base/binary/little_endian.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "predict/generate/prompt_line.h"
#include "predict/generate/shared_answers.h"
#include "statistics/host_team.h"
#include <string.h>

enum { TOGETHER = 32 };

uint32_t qn__generate_base(uint32_t context, uint32_t count) {
    const uint32_t half = (context + 1) / 2;
    return count <= context ? 0 : (count - context + half - 1) / half * half;
}

/* ------------------------------------------------------------------------------------------- open
 */

static void digest_prompt(const uint32_t *tokens, uint32_t count, uint8_t digest[32]) {
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    qn__sha256_add_little(&hash, tokens, count);
    qn__sha256_end(&hash, digest);
}

/* The answers to a prompt, each with space for all of its tokens. */
static qn_status begin_answers(qn_generator *g, uint32_t prompt, const qn__prompt_line *line,
                               const uint32_t *tokens, uint32_t count, qn_error *err) {
    for (uint32_t i = 0; i < g->options.answers; ++i) {
        qn__answer *a = &g->answer[prompt * g->options.answers + i];
        a->prompt = prompt;
        a->number = i;
        a->count = a->prompt_count = count;
        a->most = line->tokens;
        a->seed = line->seed;
        a->token = qn__alloc((uint64_t)count + a->most, sizeof *a->token, err);
        a->log_probability = qn__alloc(a->most, sizeof *a->log_probability, err);
        a->text = qn__alloc(a->space = 1, 1, err);
        if (!a->token || !a->log_probability || !a->text)
            return QN_MEMORY;
        memcpy(a->token, tokens, count * sizeof *tokens);
        digest_prompt(tokens, count, a->digest);
    }
    return QN_OK;
}

/* One prompt: a text, or a line of JSON. *needed becomes the most positions of an answer. */
static qn_status take_prompt(qn_generator *g, uint32_t i, uint64_t *needed, qn_error *err) {
    const qn_generate_options *o = &g->options;
    qn__prompt_line line = {NULL, o->tokens, o->seed};
    uint32_t *tokens = NULL, size = 0;
    qn_status status = QN_OK;
    if (o->lines)
        status = qn__prompt_line_read(g->prompt[i], i, o, &line, err);
    if (status == QN_OK)
        status = qn__codec_encode(&g->codec, line.text ? line.text : g->prompt[i], i,
                                  o->lines ? NULL : g->chat, g->system, &tokens, &size, err);
    if (status == QN_OK)
        status = begin_answers(g, i, &line, tokens, size, err);
    const uint64_t own = (uint64_t)size + line.tokens;
    *needed = own > *needed ? own : *needed;
    qn__free(line.text);
    qn__free(tokens);
    return status;
}

static qn_status take_prompts(qn_generator *g, const char *const *prompts, uint32_t count,
                              uint64_t *needed, qn_error *err) {
    g->prompt = qn__alloc(count, sizeof *g->prompt, err);
    g->answer = qn__alloc((uint64_t)count * g->options.answers, sizeof *g->answer, err);
    if (!g->prompt || !g->answer)
        return QN_MEMORY;
    g->prompts = count;
    g->answers = count * g->options.answers;
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

static qn_status make_space(qn_generator *g, qn_error *err) {
    const uint32_t rows = qn__reader_rows(g->reader);
    g->sequence = qn__alloc(g->sequences, sizeof *g->sequence, err);
    for (int i = 0; i < 3; ++i)
        g->row[i] = qn__alloc(rows, sizeof *g->row[i], err);
    g->logits = qn__alloc((uint64_t)g->sequences * g->vocabulary, sizeof(float), err);
    g->changed = qn__alloc(g->vocabulary, sizeof(float), err);
    g->space = qn__alloc(1, qn__draw_space(g->vocabulary), err);
    return g->sequence && g->row[0] && g->row[1] && g->row[2] && g->logits && g->changed && g->space
               ? QN_OK
               : QN_MEMORY;
}

static qn_status open_reader(qn_generator *g, const qn_compute *compute, uint64_t needed,
                             qn_error *err) {
    const qn_status status = qn__reader_open(
        g->model, compute, g->shared ? g->shared->member : NULL, g->shared ? g->shared->members : 0,
        g->sequences, needed < g->context ? (uint32_t)needed : g->context, &g->reader, err);
    return status == QN_OK ? make_space(g, err) : status;
}

/* What a rank does on its own. *needed becomes the most positions of an answer. */
static qn_status open_answers(qn_generator *g, const char *const *prompts, uint32_t count,
                              uint64_t *needed, qn_error *err) {
    qn_status status = QN_OK;
    if (status == QN_OK && (count < 1 || count > UINT32_MAX / g->options.answers)) {
        qn__fail(err, QN_USAGE, "there are %u prompts", count);
        status = qn__remedy(err, QN_USAGE, "give at least one, and at most 4294967295 answers");
    }
    if (status == QN_OK)
        status = qn__reader_check(g->model, err);
    if (status != QN_OK)
        return status;
    g->context = qn__reader_context(g->model);
    g->vocabulary = qn__recipe_vocabulary(qn__model_recipe_of(g->model));
    status = qn__codec_open(g->model, g->vocabulary, &g->codec, err);
    const uint32_t known =
        g->codec.tokenizer ? qn_tokenizer_size(g->codec.tokenizer) : g->vocabulary;
    g->drawn = known < g->vocabulary ? known : g->vocabulary;
    if (status == QN_OK && g->chat && !g->codec.tokenizer) {
        qn__fail(err, QN_USAGE, "a chat needs texts, and the model reads numbers of tokens");
        status = qn__remedy(err, QN_USAGE, "leave `generate.chat` out");
    }
    if (status == QN_OK)
        status = take_prompts(g, prompts, count, needed, err);
    const uint32_t most = g->options.batch ? g->options.batch : TOGETHER;
    g->sequences = most < g->answers ? most : g->answers;
    g->until = g->answers;
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
    status = qn__generate_options_take(options, g, err);
    g->options.compute = NULL;
    if (status == QN_OK)
        status = qn_compute_check(&own, err);
    if (status == QN_OK)
        status = open_answers(g, prompts, count, &needed, err);
    g->cluster = own.cluster;
    if (qn_cluster_ranks(own.cluster) > 1)
        status = qn__shared_open(g, &own, complete, status, err);
    own.cluster = NULL;
    if (status == QN_OK)
        status = open_reader(g, &own, needed, err);
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

static void free_answer(qn__answer *a) {
    qn__free(a->token);
    qn__free(a->log_probability);
    qn__free(a->text);
}

void qn_generator_close(qn_generator *g) {
    QN__OWN_FLOATS;
    if (!g)
        return;
    for (uint32_t i = 0; i < g->answers; ++i)
        free_answer(&g->answer[i]);
    for (uint32_t i = 0; i < g->prompts; ++i)
        qn__free(g->prompt[i]);
    for (int i = 0; i < QN__GENERATE_STOPS; ++i)
        qn__free(g->stop[i]);
    for (int i = 0; i < 3; ++i)
        qn__free(g->row[i]);
    qn__free(g->chat);
    qn__free(g->system);
    qn__free(g->prompt);
    qn__free(g->answer);
    qn__free(g->sequence);
    qn__free(g->logits);
    qn__free(g->changed);
    qn__free(g->space);
    qn__codec_close(&g->codec);
    qn__reader_close(g->reader);
    qn__shared_close(g->shared);
    qn__free(g);
}

/* ------------------------------------------------------------------------------------------- step
 */

/* Free sequences begin further answers. */
static void fill_sequences(qn_generator *g) {
    for (uint32_t s = 0; s < g->sequences && g->next < g->until; ++s)
        if (!g->sequence[s].answer)
            g->sequence[s] = (qn__generating){.answer = &g->answer[g->next++]};
}

static void put_row(qn_generator *g, uint32_t row, uint32_t sequence, uint32_t position) {
    const qn__answer *a = g->sequence[sequence].answer;
    g->row[0][row] = a->token[a->base + position];
    g->row[1][row] = sequence;
    g->row[2][row] = position;
}

/* The rows so far. A logit that is not finite is that of an answer. */
static qn_status extend(qn_generator *g, uint32_t rows, float *logits, qn_error *err) {
    const qn__extension e = {.rows = rows,
                             .token = g->row[0],
                             .sequence = g->row[1],
                             .position = g->row[2],
                             .logits = logits};
    uint32_t bad = UINT32_MAX;
    if (rows == 0)
        return QN_OK;
    const qn_status status = qn__reader_extend(g->reader, &e, &bad, err);
    if (status == QN_NUMERIC && bad < rows)
        qn__at(err, "prompt %u, token %u of the answer", g->sequence[g->row[1][bad]].answer->prompt,
               g->sequence[g->row[1][bad]].answer->count -
                   g->sequence[g->row[1][bad]].answer->prompt_count);
    return status;
}

/* All tokens but the last one of each sequence. */
static qn_status read_prompts(qn_generator *g, qn_error *err) {
    const uint32_t most = qn__reader_rows(g->reader);
    uint32_t rows = 0;
    for (uint32_t s = 0; s < g->sequences; ++s) {
        qn__generating *own = &g->sequence[s];
        if (!own->answer)
            continue;
        const uint32_t base = qn__generate_base(g->context, own->answer->count);
        own->fed = base == own->answer->base ? own->fed : 0;
        own->answer->base = base;
        for (; own->fed + 1 < own->answer->count - base; ++own->fed) {
            if (rows == most) {
                const qn_status status = extend(g, rows, NULL, err);
                if (status != QN_OK)
                    return status;
                rows = 0;
            }
            put_row(g, rows++, s, own->fed);
        }
    }
    return extend(g, rows, NULL, err);
}

static qn_status read_last(qn_generator *g, qn_error *err) {
    uint32_t rows = 0;
    for (uint32_t s = 0; s < g->sequences; ++s)
        if (g->sequence[s].answer)
            put_row(g, rows++, s, g->sequence[s].fed++);
    return extend(g, rows, g->logits, err);
}

/* Draws the next token of an answer. */
static void draw(qn_generator *g, qn__answer *a, float *logits) {
    const qn_generate_options *o = &g->options;
    const qn__drawing how = {o->temperature, o->top_k, o->top_p, o->repetition};
    float *own = logits;
    if (o->log_probabilities && how.repetition != 1.0f) {
        own = g->changed;
        memcpy(own, logits, g->drawn * sizeof *own);
    }
    qn__draw_penalty(how.repetition, a->token, a->count, g->drawn, own, g->space);
    const uint32_t token = qn__draw_token(
        &how, g->drawn, own, qn__draw_word(a->seed, a->digest, a->number, a->count), g->space);
    if (o->log_probabilities)
        a->log_probability[a->count - a->prompt_count] =
            qn__draw_log_probability(g->drawn, logits, token);
    a->token[a->count++] = token;
}

static qn_status draw_all(qn_generator *g, qn_error *err) {
    float *logits = g->logits;
    for (uint32_t s = 0; s < g->sequences; ++s) {
        qn__answer *a = g->sequence[s].answer;
        if (!a)
            continue;
        draw(g, a, logits);
        logits += g->vocabulary;
        const qn_status status = qn__answer_grow(g, a, err);
        if (status != QN_OK)
            return status;
        if (a->end != QN_ANSWER_GOES_ON)
            g->sequence[s].answer = NULL;
    }
    return QN_OK;
}

/* A token for each of some answers of this rank. */
static qn_status step(qn_generator *g, int *more, qn_error *err) {
    fill_sequences(g);
    qn_status status = read_prompts(g, err);
    if (status == QN_OK)
        status = read_last(g, err);
    if (status == QN_OK)
        status = draw_all(g, err);
    *more = status == QN_OK && g->next < g->until;
    for (uint32_t s = 0; s < g->sequences && status == QN_OK; ++s)
        *more |= g->sequence[s].answer != NULL;
    return status;
}

/* For qn__shared_open. */
static qn_status complete(qn_generator *g, uint32_t from, uint32_t to, qn_error *err) {
    qn_status status = QN_OK;
    int more = 1;
    g->next = from;
    g->until = to;
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
    const qn__answer *a = &generator->answer[index];
    const qn_answer own = {.size = sizeof own,
                           .prompt = a->prompt,
                           .number = a->number,
                           .text = a->text,
                           .bytes = a->shown,
                           .tokens = a->token + a->prompt_count,
                           .count = a->count - a->prompt_count,
                           .log_probabilities =
                               generator->options.log_probabilities ? a->log_probability : NULL,
                           .prompt_tokens = a->token,
                           .prompt_count = a->prompt_count,
                           .end = a->end,
                           .slid = a->base > 0};
    qn__sized_give(QN__SIZED("out", qn_answer), &own, out, qn__sized_of(out));
    return QN_OK;
}
