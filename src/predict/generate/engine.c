#include "predict/generate/engine.h"

#include "base/memory.h"
#include <string.h>

/* A sequence of the reader. */
typedef struct slot {
    qn__answer *answer; /* NULL: it is free */
    uint32_t fed;       /* positions that the reader has of it */
} slot;

struct qn__engine {
    qn__engine_plan plan;
    const qn__codec *codec;
    qn__reader *reader;
    uint32_t context, vocabulary;
    uint32_t drawn; /* tokens that are drawn: those below it have a text */
    slot *slot;
    qn__answer *first, *last; /* that wait */
    uint32_t waiting;
    uint32_t *row[3]; /* tokens, sequences and positions of the rows of an extension */
    uint32_t *most_probable;
    float *logits;  /* of all sequences */
    float *changed; /* of one, after the penalty */
    void *space;    /* of the draws */
};

/* ------------------------------------------------------------------------------------------- open
 */

static qn_status make_space(qn__engine *e, qn_error *err) {
    const uint32_t rows = qn__reader_rows(e->reader);
    e->slot = qn__alloc(e->plan.sequences, sizeof *e->slot, err);
    for (int i = 0; i < 3; ++i)
        e->row[i] = qn__alloc(rows, sizeof *e->row[i], err);
    e->logits = qn__alloc((uint64_t)e->plan.sequences * e->vocabulary, sizeof(float), err);
    e->changed = qn__alloc(e->vocabulary, sizeof(float), err);
    e->most_probable = qn__alloc(e->vocabulary, sizeof *e->most_probable, err);
    e->space = qn__alloc(1, qn__draw_space(e->vocabulary), err);
    return e->slot && e->row[0] && e->row[1] && e->row[2] && e->logits && e->changed &&
                   e->most_probable && e->space
               ? QN_OK
               : QN_MEMORY;
}

qn_status qn__engine_open(const qn_model *model, const qn_compute *compute,
                          const qn__member *members, uint32_t count, const qn__codec *codec,
                          const qn__engine_plan *plan, qn__engine **out, qn_error *err) {
    qn__engine *e = qn__alloc(1, sizeof *e, err);
    *out = NULL;
    if (!e)
        return QN_MEMORY;
    e->plan = *plan;
    e->codec = codec;
    e->context = qn__reader_context(model);
    e->vocabulary = codec->vocabulary;
    const uint32_t known = codec->tokenizer ? qn_tokenizer_size(codec->tokenizer) : e->vocabulary;
    e->drawn = known < e->vocabulary ? known : e->vocabulary;
    const uint32_t positions = plan->positions < e->context ? plan->positions : e->context;
    qn_status status = qn__reader_open(model, compute, members, count, plan->sequences, positions,
                                       &e->reader, err);
    if (status == QN_OK)
        status = make_space(e, err);
    if (status == QN_OK)
        *out = e;
    else
        qn__engine_close(e);
    return status;
}

void qn__engine_close(qn__engine *e) {
    if (!e)
        return;
    for (int i = 0; i < 3; ++i)
        qn__free(e->row[i]);
    qn__free(e->slot);
    qn__free(e->logits);
    qn__free(e->changed);
    qn__free(e->most_probable);
    qn__free(e->space);
    qn__reader_close(e->reader);
    qn__free(e);
}

/* ------------------------------------------------------------------------------------ who is there
 */

void qn__engine_add(qn__engine *e, qn__answer *a) {
    a->after = NULL;
    if (e->last)
        e->last->after = a;
    else
        e->first = a;
    e->last = a;
    ++e->waiting;
}

/* Takes one that waits from the list; `before` it is NULL for the first one. */
static void unlink_waiting(qn__engine *e, qn__answer *before, const qn__answer *a) {
    if (before)
        before->after = a->after;
    else
        e->first = a->after;
    if (e->last == a)
        e->last = before;
    --e->waiting;
}

void qn__engine_remove(qn__engine *e, qn__answer *a) {
    for (uint32_t s = 0; s < e->plan.sequences; ++s)
        if (e->slot[s].answer == a) {
            e->slot[s].answer = NULL;
            return;
        }
    qn__answer *before = NULL;
    for (qn__answer *own = e->first; own; before = own, own = own->after)
        if (own == a) {
            unlink_waiting(e, before, a);
            return;
        }
}

uint32_t qn__engine_active(const qn__engine *e) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < e->plan.sequences; ++s)
        count += e->slot[s].answer != NULL;
    return count;
}

uint32_t qn__engine_waiting(const qn__engine *e) { return e->waiting; }

/* Free sequences begin answers that wait. */
static void fill_slots(qn__engine *e) {
    for (uint32_t s = 0; s < e->plan.sequences && e->first; ++s)
        if (!e->slot[s].answer) {
            e->slot[s] = (slot){.answer = e->first};
            unlink_waiting(e, NULL, e->first);
        }
}

/* ---------------------------------------------------------------------------------------- reading
 */

/* The place of the token that the network reads first, before token `count`: 25.70. */
static uint32_t base_of(uint32_t context, uint32_t count) {
    const uint32_t half = (context + 1) / 2;
    return count <= context ? 0 : (count - context + half - 1) / half * half;
}

/* The tokens before the last one that the reader lacks. */
static uint32_t lacking(const slot *s) {
    return s->answer ? s->answer->count - s->answer->base - 1 - s->fed : 0;
}

static void put_row(qn__engine *e, uint32_t row, uint32_t sequence) {
    slot *own = &e->slot[sequence];
    e->row[0][row] = own->answer->token[own->answer->base + own->fed];
    e->row[1][row] = sequence;
    e->row[2][row] = own->fed++;
}

/* The answer of a row is lost. What the reader has of the others is read again. */
static void drop_row(qn__engine *e, uint32_t row, qn__answer **failed, qn_error *err) {
    qn__answer *a = e->slot[e->row[1][row]].answer;
    qn__at(err, "prompt %u, token %u of the answer", a->prompt, a->count - a->prompt_count);
    e->slot[e->row[1][row]].answer = NULL;
    for (uint32_t s = 0; s < e->plan.sequences; ++s)
        e->slot[s].fed = 0;
    *failed = a;
}

static qn_status extend(qn__engine *e, uint32_t rows, float *logits, qn__answer **failed,
                        qn_error *err) {
    const qn__extension own = {.rows = rows,
                               .token = e->row[0],
                               .sequence = e->row[1],
                               .position = e->row[2],
                               .logits = logits};
    uint32_t bad = UINT32_MAX;
    if (rows == 0)
        return QN_OK;
    const qn_status status = qn__reader_extend(e->reader, &own, &bad, err);
    if (status == QN_NUMERIC && bad < rows)
        drop_row(e, bad, failed, err);
    return status;
}

/* How many tokens of prompts a step reads. *readers are the answers that lack some. */
static uint32_t most_rows(const qn__engine *e, uint32_t *readers) {
    uint32_t growing = 0;
    *readers = 0;
    for (uint32_t s = 0; s < e->plan.sequences; ++s) {
        const uint32_t left = lacking(&e->slot[s]);
        *readers += left > 0;
        growing += e->slot[s].answer && left == 0;
    }
    if (!e->plan.beside)
        return UINT32_MAX;
    return growing ? e->plan.beside : qn__reader_rows(e->reader);
}

/* A text that slides is read anew from its new beginning. */
static void find_bases(qn__engine *e) {
    for (uint32_t s = 0; s < e->plan.sequences; ++s) {
        qn__answer *a = e->slot[s].answer;
        const uint32_t base = a ? base_of(e->context, a->count) : 0;
        if (!a || base == a->base)
            continue;
        a->base = base;
        e->slot[s].fed = 0;
    }
}

static qn_status read_prompts(qn__engine *e, qn__answer **failed, qn_error *err) {
    const uint32_t full = qn__reader_rows(e->reader);
    uint32_t rows = 0, readers, budget = most_rows(e, &readers);
    for (uint32_t s = 0; s < e->plan.sequences && budget > 0; ++s) {
        const uint32_t left = lacking(&e->slot[s]);
        if (left == 0)
            continue;
        uint32_t part = e->plan.beside ? budget / readers : left;
        part = part < 1 ? 1 : part < left ? part : left;
        --readers;
        budget -= e->plan.beside ? part : 0;
        for (; part > 0; --part) {
            put_row(e, rows++, s);
            if (rows < full)
                continue;
            const qn_status status = extend(e, rows, NULL, failed, err);
            if (status != QN_OK)
                return status;
            rows = 0;
        }
    }
    return extend(e, rows, NULL, failed, err);
}

/* ------------------------------------------------------------------------------------------- step
 */

static void note_probabilities(qn__engine *e, qn__answer *a, const float *logits, uint32_t token) {
    const qn__manner *m = a->manner;
    const uint32_t place = a->count - a->prompt_count;
    if (!m->log_probabilities && !m->choices)
        return;
    const qn__log_scale scale = qn__draw_log_scale(e->drawn, logits);
    a->log_probability[place] = qn__draw_log_probability(scale, logits[token]);
    if (!m->choices)
        return;
    qn__text_choice *to = a->choice + (size_t)place * m->choices;
    const uint32_t count = qn__draw_greatest(e->drawn, logits, m->choices, e->most_probable);
    for (uint32_t i = 0; i < m->choices; ++i) /* there may not be so many */
        to[i] =
            i < count
                ? (qn__text_choice){e->most_probable[i],
                                    qn__draw_log_probability(scale, logits[e->most_probable[i]])}
                : (qn__text_choice){QN__NO_TOKEN, 0.0f};
}

/* Draws the next token of an answer. */
static void draw(qn__engine *e, qn__answer *a, const float *logits) {
    const qn__drawing *how = &a->manner->drawing;
    const float *own = logits;
    if (how->repetition != 1.0f) {
        memcpy(e->changed, logits, e->drawn * sizeof *logits);
        qn__draw_penalty(how->repetition, a->token, a->count, e->drawn, e->changed, e->space);
        own = e->changed;
    }
    const uint32_t token = qn__draw_token(
        how, e->drawn, own, qn__draw_word(a->seed, a->digest, a->number, a->count), e->space);
    note_probabilities(e, a, logits, token);
    a->token[a->count++] = token;
}

/* A token for each answer whose row has logits. */
static qn_status draw_all(qn__engine *e, uint32_t rows, qn_error *err) {
    for (uint32_t i = 0; i < rows; ++i) {
        slot *own = &e->slot[e->row[1][i]];
        qn__answer *a = own->answer;
        draw(e, a, e->logits + (size_t)i * e->vocabulary);
        const qn_status status = qn__answer_grow(e->codec, a, err);
        if (status != QN_OK)
            return status;
        if (a->end != QN_ANSWER_GOES_ON)
            own->answer = NULL;
        if (e->plan.grown)
            e->plan.grown(e->plan.context, a);
    }
    return QN_OK;
}

static qn_status grow(qn__engine *e, qn__answer **failed, qn_error *err) {
    uint32_t rows = 0;
    for (uint32_t s = 0; s < e->plan.sequences; ++s)
        if (e->slot[s].answer && lacking(&e->slot[s]) == 0)
            put_row(e, rows++, s);
    const qn_status status = extend(e, rows, e->logits, failed, err);
    return status == QN_OK ? draw_all(e, rows, err) : status;
}

qn_status qn__engine_step(qn__engine *e, int *more, qn__answer **failed, qn_error *err) {
    *failed = NULL;
    fill_slots(e);
    find_bases(e);
    qn_status status = read_prompts(e, failed, err);
    if (status == QN_OK)
        status = grow(e, failed, err);
    *more = e->first != NULL || qn__engine_active(e) > 0;
    return status;
}
