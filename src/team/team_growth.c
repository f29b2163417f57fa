#include "team/team_growth.h"

#include "base/memory.h"

void qn__team_growth_free(qn__growth *g) {
    if (!g)
        return;
    for (uint32_t i = 0; g->rows && i < g->members; ++i) {
        qn__free(g->rows[i].token);
        qn__free(g->rows[i].logits);
    }
    qn__free(g->rows);
    qn__free(g->token);
    qn__free(g->sequence);
    qn__free(g);
}

static qn_status make_rows(const qn__program *p, uint32_t members, qn__grown_rows *r,
                           qn_error *err) {
    const uint64_t batch = p->batch, out = p->layer[p->layers - 1].out;
    if (!(r->token = qn__alloc(4 * batch, sizeof *r->token, err)))
        return QN_MEMORY;
    r->sequence = r->token + batch;
    r->position = r->sequence + batch;
    r->from = r->position + batch;
    if (members > 1 && !(r->logits = qn__alloc(p->sequences * out, sizeof(float), err)))
        return QN_MEMORY;
    return QN_OK;
}

qn_status qn__team_growth(const qn__program *p, uint32_t members, qn__growth **out, qn_error *err) {
    qn__growth *g = *out ? *out : qn__alloc(1, sizeof *g, err);
    if (*out || !g)
        return g ? QN_OK : QN_MEMORY;
    *out = g;
    g->members = members;
    g->sequence = qn__alloc(p->sequences, sizeof *g->sequence, err);
    g->token = qn__alloc((uint64_t)p->sequences * p->positions, sizeof *g->token, err);
    g->rows = qn__alloc(members, sizeof *g->rows, err);
    if (!g->sequence || !g->token || !g->rows)
        return QN_MEMORY;
    for (uint32_t s = 0; s < p->sequences; ++s)
        g->sequence[s].member = QN__NOBODY;
    for (uint32_t i = 0; i < members; ++i)
        if (make_rows(p, members, &g->rows[i], err) != QN_OK)
            return QN_MEMORY;
    return QN_OK;
}
