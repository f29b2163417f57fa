#include "model/recipe/adapters.h"

#include "base/memory.h"
#include <string.h>

uint32_t qn__recipe_rank(const qn__recipe *r) {
    qn__lora lora;
    return r->lora && qn__lora_parse(r->lora, &lora, NULL) == QN_OK ? lora.rank : 0;
}

void qn__recipe_roles(const qn__recipe *r, char *role) {
    qn__lora_find(&r->network, qn__recipe_rank(r), role);
}

void qn__recipe_start(const qn__recipe *r, qn__network *out) {
    const uint32_t rank = qn__recipe_rank(r);
    if (rank > 0)
        qn__lora_strip(&r->network, rank, out);
    else
        *out = r->network;
}

qn_status qn__recipe_take_lora(const char *text, qn__recipe *r, qn_error *err) {
    char role[QN__MAX_LAYERS];
    qn__lora lora;
    qn__text tidy = {0};
    if (!text || !*text)
        return QN_OK;
    qn_status status = qn__lora_parse(text, &lora, err);
    if (status == QN_OK && (!lora.on || qn__lora_find(&r->network, lora.rank, role) == 0))
        status = qn__lora_add(&r->network, &lora, &r->network, err);
    if (status != QN_OK)
        return status;
    qn__lora_text(&lora, &tidy);
    r->lora = qn__text_take(&tidy, err);
    return r->lora ? QN_OK : QN_MEMORY;
}

static qn_status refuse(qn_error *err, const char *remedy, qn_status status) {
    return qn__recipe_refuse(err, "`train.lora`", remedy, status);
}

static qn_status check_form(const qn__recipe *r, const qn__lora *lora, qn_error *err) {
    qn__text tidy = {0};
    if (lora->on)
        qn__lora_text(lora, &tidy);
    char *form = lora->on ? qn__text_take(&tidy, err) : NULL;
    if (lora->on && !form)
        return QN_MEMORY;
    const int same = form && strcmp(form, r->lora) == 0;
    qn__free(form);
    return same ? QN_OK
                : refuse(
                      err, "make the recipe again with quern train",
                      qn__fail(err, QN_USAGE, "\"%.60s\" is not how a recipe writes it", r->lora));
}

qn_status qn__recipe_check_base(const qn__recipe *r, const qn__network *base, qn_error *err) {
    char role[QN__MAX_LAYERS];
    const uint32_t rank = qn__recipe_rank(r);
    if (qn__lora_find(base, rank, role) == 0)
        return QN_OK;
    return refuse(err, "give another rank",
                  qn__fail(err, QN_USAGE,
                           "the model to start from has a block that looks like an adapter of rank "
                           "%u",
                           rank));
}

qn_status qn__recipe_check_lora(const qn__recipe *r, qn_error *err) {
    char role[QN__MAX_LAYERS];
    qn__lora lora;
    if (!r->lora)
        return QN_OK;
    if (!*r->init_from)
        return refuse(err, "name the model with `train.init_from`",
                      qn__fail(err, QN_USAGE, "adapters need a model that they change"));
    if (r->freeze)
        return refuse(err, "leave out `train.freeze`",
                      qn__fail(err, QN_USAGE,
                               "with adapters all layers of the model stay as they "
                               "are"));
    qn_status status = qn__lora_parse(r->lora, &lora, err);
    if (status == QN_OK)
        status = check_form(r, &lora, err);
    if (status == QN_OK && qn__lora_find(&r->network, lora.rank, role) == 0)
        return refuse(err,
                      "leave out `train.model`, so that the layers are those of the model to "
                      "start from",
                      qn__fail(err, QN_USAGE, "the network has no adapters of rank %u", lora.rank));
    return status;
}
