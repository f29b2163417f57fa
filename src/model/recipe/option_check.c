/* Whether the numbers of a recipe are in their ranges, and what its names take. */
#include "model/recipe/option_rows.h"

#include "model/recipe/tables.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* "learning rate" of "the learning rate". */
static const char *bare(const char *what) { return what + (strncmp(what, "the ", 4) == 0 ? 4 : 0); }

static const char *member_of(const qn__option *o) { return strchr(o->open.field, '.') + 1; }

static qn_status refuse(const qn__option *o, const char *remedy, qn_status status, qn_error *err) {
    char field[64];
    snprintf(field, sizeof field, "`%s`", o->open.field);
    return qn__recipe_refuse(err, field, remedy, status);
}

/* Where it is not used it is 0, which need not be valid. */
static qn_status check_float(const qn__option *o, float value, int taken, qn_error *err) {
    const int open = o->range.low_open && taken;
    const int above = open ? value > o->range.low : value >= o->range.low;
    const int below = o->range.high_open ? value < o->range.high : value <= o->range.high;
    char number[32];
    if (above && below)
        return QN_OK;
    if (isfinite(value))
        qn__float_text(value, number);
    else
        snprintf(number, sizeof number, "%s", isnan(value) ? "NaN" : "infinite");
    return refuse(o, o->remedy, qn__fail(err, QN_USAGE, "%s is %s", o->what, number), err);
}

static qn_status check_count(const qn__option *o, uint32_t value, int taken, qn_error *err) {
    if ((value >= o->open.low || (value == 0 && !taken)) && value <= o->open.high)
        return QN_OK;
    return refuse(o, o->remedy, qn__fail(err, QN_USAGE, "%s is %u", o->what, value), err);
}

/* A number of a loss that is not the chosen one. qn__recipe_check_full_batch refuses what lbfgs
 * does not take. */
static qn_status check_used(const qn__option *o, const qn__recipe *r, qn_error *err) {
    char remedy[160];
    if (o->open.only != QN_CHOICE_LOSS || qn__table_takes(&qn__losses, (int)r->loss, member_of(o)))
        return QN_OK;
    snprintf(remedy, sizeof remedy, "use %s %s, or leave it out", qn__losses.field, o->takers);
    return refuse(o, remedy,
                  qn__fail(err, QN_USAGE, "the loss \"%s\" has no %s",
                           qn__table_name(&qn__losses, (int)r->loss), bare(o->what)),
                  err);
}

static qn_status check(const qn__option *o, const qn__recipe *r, qn_error *err) {
    const int taken = qn__option_taken(o, r);
    qn_status status = QN_OK;
    if (!o->what || !o->remedy)
        return QN_OK;
    if (o->form == QN__FORM_COUNT)
        status = check_count(o, *(const uint32_t *)qn__option_in(o, r), taken, err);
    else if (o->form == QN__FORM_FLOAT)
        status = check_float(o, *(const float *)qn__option_in(o, r), taken, err);
    return status == QN_OK && !o->dropped && qn__option_set(o, r) ? check_used(o, r, err) : status;
}

qn_status qn__options_check(const qn__recipe *r, qn_error *err) {
    qn_status status = QN_OK;
    for (const qn__option *o = qn__options; o->key && status == QN_OK; ++o)
        status = check(o, r, err);
    return status;
}

qn_status qn__options_refuse_steps(const qn__option *o, qn_error *err) {
    return refuse(o, "leave it out, or take another `train.optimizer`",
                  qn__fail(err, QN_USAGE, "the optimizer \"lbfgs\" takes no %s", bare(o->what)),
                  err);
}

/* Whether the number is neither the default nor 0. */
static int is_given(const qn__option *o, const void *at) {
    const double value = o->open.type == QN_OPTION_FLOAT   ? (double)*(const float *)at
                         : o->open.type == QN_OPTION_COUNT ? (double)*(const uint32_t *)at
                         : o->open.type == QN_OPTION_FLAG  ? (double)*(const int *)at
                                                           : 0.0;
    return value != o->usual && value != 0;
}

qn_status qn__options_check_steps(const qn_train_options *options, qn_error *err) {
    for (const qn__option *o = qn__options; o->key; ++o)
        if (o->open.steps && is_given(o, (const char *)options + o->open.offset))
            return qn__options_refuse_steps(o, err);
    return QN_OK;
}
