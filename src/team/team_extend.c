/* Sequences that grow (docs/exactness.md 25.70), shared among the workers. A worker has what was
 * computed of its sequences, so a sequence stays with it:
 *
 *     position 0 of a sequence    the worker that would end its step first takes it, by the speeds
 *                                 that were measured
 *     a worker is lost            others take its sequences, and read them again from the tokens
 *                                 that are kept here
 *
 * A row depends on its own sequence alone, so nothing depends on who computes it. */
#include "base/system/clock.h"
#include "team/team_growth.h"
#include "team/team_state.h"
#include <string.h>

enum { TRIALS = 3, TRIAL_ROWS = 16 };

/* ------------------------------------------------------------------------------------------ rows
 */

typedef struct call {
    qn__team *team;
    float *logits; /* of the extension; NULL: none */
    uint32_t rows; /* of it; 0: these are others */
} call;

static void put(qn__growth *g, uint32_t s, uint32_t position, uint32_t token, uint32_t from) {
    qn__grown_rows *r = &g->rows[g->sequence[s].member];
    r->token[r->count] = token;
    r->sequence[r->count] = s;
    r->position[r->count] = position;
    r->from[r->count++] = from;
}

static void copy_logits(const call *c, const qn__grown_rows *r, const float *from) {
    const qn__program *p = c->team->program;
    const size_t out = p->layer[p->layers - 1].out;
    for (uint32_t i = 0; from != c->logits && i < r->count; ++i)
        memcpy(c->logits + r->from[i] * out, from + i * out, out * sizeof *from);
}

static void extend_body(void *context, int index) {
    const call *c = context;
    qn__team *t = c->team;
    qn__team_member *m = &t->member[index];
    const qn__grown_rows *r = &t->growth->rows[index];
    float *to = c->logits && r->count < c->rows ? r->logits : c->logits;
    const qn__extension e = {r->count, r->token, r->sequence, r->position, to};
    const double begun = qn__now();
    uint32_t bad = 0;
    m->device->extend(m->worker, &e, &bad, &m->error);
    const double ended = qn__now();
    m->busy += ended - begun;
    qn__trace_span(t->reports.trace, m->track, "extend", begun, ended,
                   (qn__trace_value){"rows", r->count}, (qn__trace_value){0});
    if (m->error.status != QN_OK) {
        m->failed_at = r->from[bad < r->count ? bad : 0];
        return;
    }
    if (to) {
        qn__speed_add(&t->sharing.pieces.of[index].speed, r->count, ended - begun);
        copy_logits(c, r, to);
    }
    m->items += r->count;
    for (uint32_t i = 0; i < r->count; ++i)
        t->growth->sequence[r->sequence[i]].read = r->position[i] + 1;
}

/* The rows of all members. QN_DEVICE if one was lost. */
static qn_status compute(call *c, qn_error *err) {
    qn__team *t = c->team;
    uint64_t set = 0;
    for (uint32_t i = 0; i < t->count; ++i)
        set |= t->growth->rows[i].count ? QN__BIT(i) : 0;
    const qn_status status = qn__team_do(t, set, extend_body, c, err);
    return status == QN_OK && (set & ~qn__team_alive(t)) ? QN_DEVICE : status;
}

static void clear_rows(const qn__team *t) {
    for (uint32_t i = 0; i < t->count; ++i)
        t->growth->rows[i].count = 0;
}

/* Some of the positions before the extension that members lack. Returns 0 if they lack none. */
static int put_lacking(const qn__team *t) {
    qn__growth *g = t->growth;
    int some = 0;
    clear_rows(t);
    for (uint32_t s = 0; s < t->program->sequences; ++s) {
        const qn__grown *own = &g->sequence[s];
        const uint32_t *token = g->token + (size_t)s * t->program->positions;
        for (uint32_t p = own->read; own->first != QN__NOT_NOW && p < own->first &&
                                     g->rows[own->member].count < t->program->batch;
             ++p, some = 1)
            put(g, s, p, token[p], 0);
    }
    return some;
}

static qn_status compute_extension(qn__team *t, const qn__extension *e, qn_error *err) {
    call c = {.team = t};
    qn_status status = QN_OK;
    while (status == QN_OK && put_lacking(t))
        status = compute(&c, err);
    if (status != QN_OK)
        return status;
    for (uint32_t i = 0; i < e->rows; ++i)
        if (e->position[i] >= t->growth->sequence[e->sequence[i]].read)
            put(t->growth, e->sequence[i], e->position[i], e->token[i], i);
    c.logits = e->logits;
    c.rows = e->rows;
    return compute(&c, err);
}

/* --------------------------------------------------------------------------------------- members
 */

/* Times rows like those of the extension on every member, from few to some. They count for no
 * sequence: each begins with position 0 later. */
static void trial_body(void *context, int index) {
    qn__team *t = context;
    qn__team_member *m = &t->member[index];
    qn__grown_rows *r = &t->growth->rows[index];
    const uint32_t most = t->program->sequences < TRIAL_ROWS ? t->program->sequences : TRIAL_ROWS;
    for (uint32_t i = 0, bad; i < TRIALS && m->error.status == QN_OK; ++i) {
        const qn__extension e = {i + 1 < TRIALS ? 1 : most, r->token, r->sequence, r->position,
                                 r->logits};
        const double begun = qn__now();
        m->device->extend(m->worker, &e, &bad, &m->error);
        const double seconds = qn__now() - begun;
        m->busy += seconds;
        qn__speed_add(&t->sharing.pieces.of[index].speed, e.rows, seconds);
        if (m->error.status == QN_NUMERIC) /* of a token that may stand there by chance */
            m->error.status = QN_OK;
    }
}

static qn_status try_speeds(qn__team *t, const qn__extension *e, qn_error *err) {
    t->growth->tried = 1;
    if (t->count == 1 || t->sharing.fixed)
        return QN_OK;
    for (uint32_t i = 0; i < t->count; ++i)
        for (uint32_t s = 0; s < t->program->sequences && s < TRIAL_ROWS; ++s) {
            t->growth->rows[i].token[s] = e->token[0];
            t->growth->rows[i].sequence[s] = s;
            t->growth->rows[i].position[s] = 0;
        }
    return qn__team_do(t, UINT64_MAX, trial_body, t, err);
}

/* When a member with one sequence more would end its step. */
static double end_of(const qn__team *t, uint32_t member) {
    const qn__speed *speed = &t->sharing.pieces.of[member].speed;
    double sequences = 1;
    for (uint32_t s = 0; s < t->program->sequences; ++s)
        sequences += t->growth->sequence[s].active && t->growth->sequence[s].member == member;
    if (t->sharing.fixed)
        return sequences / t->sharing.queue.of[member].weight;
    return speed->each > 0 ? qn__speed_of(speed, sequences) : sequences;
}

/* The live member that would end first. */
static uint32_t choose(const qn__team *t) {
    uint32_t best = QN__NOBODY;
    double least = 0;
    for (uint32_t i = 0; i < t->count; ++i) {
        if (!t->member[i].worker)
            continue;
        const double end = end_of(t, i);
        if (best == QN__NOBODY || end < least) {
            best = i;
            least = end;
        }
    }
    return best;
}

/* A member for each sequence of the extension that has none. */
static void assign(qn__team *t) {
    for (uint32_t i = 0; i < t->count; ++i)
        qn__speed_fit(&t->sharing.pieces.of[i].speed);
    for (uint32_t s = 0; s < t->program->sequences; ++s) {
        qn__grown *own = &t->growth->sequence[s];
        if (own->member != QN__NOBODY && !t->member[own->member].worker)
            *own = (qn__grown){.member = QN__NOBODY, .first = own->first};
        if (own->first == QN__NOT_NOW || own->member != QN__NOBODY)
            continue;
        own->member = choose(t);
        own->active = 1;
    }
}

/* What the extension has of each sequence. One that begins anew has no member yet. */
static void note(qn__team *t, const qn__extension *e) {
    qn__growth *g = t->growth;
    for (uint32_t s = 0; s < t->program->sequences; ++s) {
        g->sequence[s].first = QN__NOT_NOW;
        g->sequence[s].active &= e->logits == NULL;
    }
    for (uint32_t i = 0; i < e->rows; ++i) {
        qn__grown *own = &g->sequence[e->sequence[i]];
        g->token[(size_t)e->sequence[i] * t->program->positions + e->position[i]] = e->token[i];
        if (own->first == QN__NOT_NOW)
            own->first = e->position[i];
        if (e->position[i] == 0)
            *own = (qn__grown){.member = QN__NOBODY};
        else
            own->active = 1;
    }
}

/* The first row of the extension that failed. */
static uint32_t first_failed(const qn__team *t) {
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < t->count; ++i)
        if (t->member[i].error.status == QN_NUMERIC && t->growth->rows[i].count &&
            t->member[i].failed_at < first)
            first = t->member[i].failed_at;
    return first;
}

qn_status qn__team_extend(qn__team *t, const qn__extension *e, uint32_t *bad, qn_error *err) {
    qn_status status = qn__team_growth(t->program, t->count, &t->growth, err);
    if (status == QN_OK)
        note(t, e);
    do {
        if (status == QN_OK || status == QN_DEVICE)
            status = qn__team_update_members(t, qn__team_alive(t), err);
        if (status == QN_OK && !t->growth->tried)
            status = try_speeds(t, e, err);
        if (status == QN_OK) {
            assign(t);
            status = compute_extension(t, e, err);
        }
    } while (status == QN_DEVICE && qn__team_alive(t));
    if (status == QN_NUMERIC)
        *bad = first_failed(t);
    if (status == QN_DEVICE) /* there is no checkpoint */
        qn__remedy(err, QN_DEVICE, "start again, with other devices in `compute.devices`");
    return status;
}
