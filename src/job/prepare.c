#include "job/prepare.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/prepare/lists.h"
#include "job/token_check.h"
#include "job/weights.h"
#include "model/recipe/several_targets.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void tell_dropped(const qn__encoding_notes *notes, uint64_t dropped, uint64_t items) {
    char text[256];
    if (!notes->tell)
        return;
    snprintf(text, sizeof text, "%s: %" PRIu64 " of %" PRIu64 " items lack a value and %s",
             notes->what, dropped, items, notes->dropped ? notes->dropped : "are left out");
    notes->tell(notes->user, text);
    qn__float_state_set();
}

/* Leaves out what lacks a value, where the rule says so. */
static qn_status drop(qn__missing rule, const qn_data *raw, const qn__encoding_notes *notes,
                      qn__prepared *out, qn_error *err) {
    out->inputs = raw;
    if (rule != QN__MISSING_DROP)
        return QN_OK;
    const qn_status status = qn__complete_items(raw, &out->complete, err);
    if (status != QN_OK)
        qn__at(err, "%s", notes->what);
    if (!out->complete)
        return status;
    tell_dropped(notes, raw->items - out->complete->items, raw->items);
    out->inputs = out->complete;
    return QN_OK;
}

/* Wide columns become floats. */
static qn_status narrow(const qn__encoding *how, const qn__encoding_notes *notes, qn__prepared *out,
                        qn_error *err) {
    const qn_status status = qn__subtract_offsets(how, out->inputs, notes, &out->narrow, err);
    if (out->narrow)
        out->inputs = out->narrow;
    return status;
}

static qn_status encode(const qn__encoding *how, const qn__encoding_notes *notes, qn__prepared *out,
                        qn_error *err) {
    qn_status status = QN_OK;
    if (how->vocabulary)
        status = qn__check_tokens(out->inputs, how->vocabulary, notes->what, err);
    if (status == QN_OK)
        status = qn__make_lists(how, out->inputs, notes, &out->encoded, err);
    if (!out->encoded)
        return status;
    out->inputs = out->encoded;
    qn_data_close(out->narrow); /* a matrix that nobody needs any more */
    out->narrow = NULL;
    return status;
}

qn_status qn__prepare(const qn__encoding *how, const qn_data *raw, const qn__encoding_notes *notes,
                      qn__prepared *out, qn_error *err) {
    memset(out, 0, sizeof *out);
    qn_status status = drop(how->missing, raw, notes, out, err);
    if (status == QN_OK)
        status = narrow(how, notes, out, err);
    return status == QN_OK ? encode(how, notes, out, err) : status;
}

void qn__prepared_release(qn__prepared *prepared) {
    qn_data_close(prepared->encoded);
    qn_data_close(prepared->narrow);
    qn_data_close(prepared->complete);
    memset(prepared, 0, sizeof *prepared);
}

/* The views for training and validation of all items as they are now. */
static qn_status split(const qn__recipe *recipe, qn__training_items *out, qn_error *err) {
    qn_data_close(out->split[0]);
    qn_data_close(out->split[1]);
    out->split[0] = out->split[1] = NULL;
    out->train = out->all.inputs;
    if (!(recipe->valid > 0))
        return QN_OK;
    const qn_status status = qn__data_split(out->all.inputs, recipe->valid, recipe->seed,
                                            &out->split[0], &out->split[1], err);
    out->train = out->split[0];
    out->valid = out->split[1];
    return status;
}

/* Weights of items and classes. */
static qn_status weigh(const qn__recipe *recipe, qn__training_items *out, qn_error *err) {
    float *of_class;
    qn_status status = qn__class_factors(recipe, out->train, &of_class, err);
    if (status == QN_OK)
        status =
            qn__weights_combine(out->train, of_class, "the training items", &out->weights, err);
    if (status == QN_OK && out->valid)
        status = qn__weights_combine(out->valid, of_class, "the validation items",
                                     &out->valid_shares, err);
    qn__free(of_class);
    if (status != QN_OK || !out->weights)
        return status;
    if (!(out->shares = qn__alloc(out->train->items, sizeof *out->shares, err)))
        return QN_MEMORY;
    memcpy(out->shares, out->weights, out->train->items * sizeof *out->shares);
    qn__weights_share(out->shares, out->train->items);
    if (out->valid && out->valid_shares)
        qn__weights_share(out->valid_shares, out->valid->items);
    return QN_OK;
}

/* Training items without a target of their own would train nothing. */
static qn_status check_targets(const qn__training_items *items, const qn__recipe *recipe,
                               qn_error *err) {
    if (!items->shares || recipe->task != QN__TASK_NEXT)
        return QN_OK;
    for (uint64_t i = 0; i < items->train->items; ++i)
        if (items->shares[i] > 0)
            return QN_OK;
    qn__fail(err, QN_INPUT, "no training item has a token that comes after another one");
    return qn__remedy(err, QN_INPUT,
                      "the largest number of a type of tokens, such as 65535, says that there is "
                      "none: give items with at least two tokens");
}

/* The shares of the items of both sets, which stay what they are when columns become inputs. */
static qn_status share(const qn__recipe *recipe, qn__training_items *out, qn_error *err) {
    qn_status status = weigh(recipe, out, err);
    const uint32_t tokens = recipe->task == QN__TASK_NEXT ? qn__recipe_vocabulary(recipe) : 0;
    if (status == QN_OK && !qn__recipe_moves_targets(recipe))
        status = qn__weights_of_targets(out->train, tokens, &out->shares, err);
    if (status == QN_OK)
        status = check_targets(out, recipe, err);
    if (status == QN_OK && out->valid)
        status = qn__weights_of_targets(out->valid, tokens, &out->valid_shares, err);
    return status;
}

/* Without a scaling, nothing is subtracted before a value is rounded. */
static void tell_rounded(const qn__recipe *recipe, const qn__encoding_notes *notes) {
    char name[160], text[400];
    for (uint32_t k = 0; notes->tell && recipe->table && k < recipe->features; k++) {
        if (recipe->table->feature[k].exact == QN__EXACT_NONE)
            continue;
        snprintf(text, sizeof text,
                 "%s: float32 cannot hold the numbers of %s, and rounds them; `train.scale` "
                 "standard subtracts their mean first",
                 notes->what, qn__column_name(recipe->table, k, name, sizeof name));
        notes->tell(notes->user, text);
        qn__float_state_set();
    }
}

/* Wide columns become differences from numbers near their means. What was split are the columns
 * before. */
static qn_status fit_offsets(const qn__recipe *recipe, const qn__fitted *kept,
                             const qn__encoding_notes *notes, qn__training_items *out,
                             qn_error *err) {
    const uint32_t offsets = qn__recipe_offsets(recipe);
    if (offsets == 0) {
        tell_rounded(recipe, notes);
        return QN_OK;
    }
    if (!(out->offset = qn__alloc(offsets, sizeof *out->offset, err)))
        return QN_MEMORY;
    if (kept)
        qn__offsets_keep(kept->table, kept->offset, recipe->table, out->offset);
    else
        qn__offsets_fit(out->train, recipe->table, out->offset);
    const qn__encoding how = qn__recipe_encoding(recipe, NULL, out->offset, NULL);
    const qn_status status = narrow(&how, notes, &out->all, err);
    return status == QN_OK ? split(recipe, out, err) : status;
}

static qn_status fit(const qn__recipe *recipe, const qn__fitted *kept, int threads,
                     qn__training_items *out, qn_error *err) {
    if (!qn__recipe_fills(recipe))
        return QN_OK;
    if (!(out->fill = qn__alloc(recipe->features, sizeof *out->fill, err)))
        return QN_MEMORY;
    if (!kept)
        return qn__fill_fit(out->train, out->weights, recipe->missing, threads, out->fill, err);
    memcpy(out->fill, kept->fill, recipe->features * sizeof *out->fill);
    return QN_OK;
}

/* How rare words are. */
static qn_status fit_idf(const qn__recipe *recipe, const qn__fitted *kept, qn__training_items *out,
                         qn_error *err) {
    const uint64_t inputs = qn__schema_text_inputs(recipe->table);
    if (inputs == 0)
        return QN_OK;
    if (!(out->idf = qn__alloc(inputs, sizeof *out->idf, err)))
        return QN_MEMORY;
    if (!kept)
        return qn__idf_fit(out->train, recipe->table, out->idf, err);
    memcpy(out->idf, kept->idf, inputs * sizeof *out->idf);
    return QN_OK;
}

qn_status qn__training_items_make(const qn__recipe *recipe, const qn_data *data,
                                  const qn__fitted *kept, int threads,
                                  const qn__encoding_notes *notes, qn__training_items *out,
                                  qn_error *err) {
    memset(out, 0, sizeof *out);
    qn_status status = drop(recipe->missing, data, notes, &out->all, err);
    if (status == QN_OK)
        status = split(recipe, out, err);
    if (status == QN_OK)
        status = share(recipe, out, err);
    if (status == QN_OK)
        status = fit_offsets(recipe, kept, notes, out, err);
    if (status == QN_OK)
        status = fit(recipe, kept, threads, out, err);
    if (status == QN_OK)
        status = fit_idf(recipe, kept, out, err);
    qn__encoding how = qn__recipe_encoding(recipe, out->fill, NULL, out->idf);
    how.by_value = 0; /* its categories are the recipe's */
    if (status == QN_OK)
        status = encode(&how, notes, &out->all, err);
    /* What was split are the columns, which are not the inputs any more. */
    if (status == QN_OK && out->all.encoded)
        status = split(recipe, out, err);
    return status;
}

void qn__training_items_release(qn__training_items *items) {
    qn_data_close(items->split[0]);
    qn_data_close(items->split[1]);
    qn__prepared_release(&items->all);
    qn__free(items->fill);
    qn__free(items->offset);
    qn__free(items->idf);
    qn__free(items->weights);
    qn__free(items->shares);
    qn__free(items->valid_shares);
    memset(items, 0, sizeof *items);
}
