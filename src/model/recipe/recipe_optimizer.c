/* What optimisers with rules of their own ask of a recipe: Nesterov's form, and lbfgs
 * (docs/exactness.md 17.5, 17.14). */
#include "model/recipe/option_rows.h"

qn__optimizer qn__recipe_rule(const qn__recipe *r) {
    /* Workers of lbfgs make no update; any rule without state will do. */
    return r->nesterov                     ? QN__OPT_NESTEROV
           : r->optimizer == QN__OPT_LBFGS ? QN__OPT_SGD
                                           : r->optimizer;
}

qn__init qn__recipe_init(const qn__recipe *r) {
    const int flat = r->optimizer == QN__OPT_LBFGS && r->network.layers == 1;
    return flat && r->init == QN__INIT_AUTO ? QN__INIT_ZERO : r->init;
}

qn_status qn__recipe_check_nesterov(const qn__recipe *r, qn_error *err) {
    if (!r->nesterov || qn__recipe_optimizer_takes(r, "nesterov"))
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.nesterov`",
        "use `train.optimizer` momentum with a `train.momentum` greater than 0, such as "
        "0.9, or leave it out",
        qn__fail(err, QN_USAGE, "Nesterov's form needs a momentum greater than 0"));
}

static qn_status refuse_with_lbfgs(const char *option, const char *what, qn_error *err) {
    return qn__recipe_refuse(err, option, "leave it out, or take another `train.optimizer`",
                             qn__fail(err, QN_USAGE, "the optimizer \"lbfgs\" takes no %s", what));
}

/* A value that changes from step to step, or a loss that is not the one whose gradient is taken,
 * leaves the line search nothing to compare. */
qn_status qn__recipe_check_full_batch(const qn__recipe *r, qn_error *err) {
    if (r->no_intercept && r->optimizer != QN__OPT_LBFGS)
        return qn__recipe_refuse(
            err, "`train.no_intercept`", "leave it out, or take `train.optimizer` lbfgs",
            qn__fail(err, QN_USAGE, "only the optimizer \"lbfgs\" can leave out an intercept"));
    if (r->optimizer != QN__OPT_LBFGS)
        return QN_OK;
    for (const qn__option *o = qn__options; o->key; ++o)
        if (o->open.steps && !o->dropped && qn__option_set(o, r))
            return qn__options_refuse_steps(o, err);
    for (uint32_t l = 0; l < r->network.layers; ++l) {
        if (r->network.layer[l].dropout > 0.0f)
            return refuse_with_lbfgs("`train.model`", "dropout", err);
        if (qn__layer_ops_of(r->network.layer[l].kind)->forward_grain)
            return refuse_with_lbfgs(
                "`train.model`", "batchnorm; other normalisations need no running averages", err);
    }
    if (r->items > UINT32_MAX)
        return qn__recipe_refuse(
            err, "`data.path`", "take another `train.optimizer`",
            qn__fail(err, QN_USAGE, "lbfgs takes at most %u items", UINT32_MAX));
    return QN_OK;
}

qn_status qn__recipe_check_steps(const qn__recipe *r, qn_error *err) {
    if (r->optimizer != QN__OPT_LBFGS)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.optimizer`",
        "take `train.optimizer` sgd and a `train.batch` instead; a batch with all items "
        "takes as long as one evaluation of lbfgs",
        qn__fail(err, QN_USAGE,
                 "the line search of lbfgs decides how many steps there "
                 "are, so they cannot be planned or measured"));
}
