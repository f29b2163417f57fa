/* Each rank reads its part; then they agree on one table. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/cells/labels.h"
#include "data/open/open_list.h"
#include "data/open/same_options.h"
#include "data/parts/parts_deal.h"
#include "data/parts/parts_digest.h"
#include "data/parts/parts_heads.h"
#include "data/parts/parts_memory.h"
#include "data/parts/parts_mend.h"
#include "data/parts/parts_read.h"
#include "data/parts/parts_tokens.h"
#include "data/table/data_options.h"
#include "data/table/token_row.h"
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ reading */

static qn_status refuse(const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "%s are not read in parts", what);
    return qn__remedy(err, QN_UNSUPPORTED, "%s", remedy);
}

static qn_status check_table(const qn_data *own, qn_error *err) {
    char name[160];
    for (uint32_t k = 0; k < own->features; k++) {
        const qn__feature *f = &own->schema->feature[k];
        if (f->exact == QN__EXACT_NONE)
            continue;
        qn__fail(err, QN_UNSUPPORTED,
                 "%s holds numbers that float32 cannot hold; they are not read in parts",
                 qn__column_name(own->schema, k, name, sizeof name));
        return qn__remedy(err, QN_UNSUPPORTED, "leave it out with `data.drop`");
    }
    return QN_OK;
}

/* The files of labels of this rank; for qn__free. */
static const char **labels_of(const qn__parts_lot *lot, qn_data_options *o, qn_error *err) {
    const size_t count = lot->to - lot->from;
    const char **paths = (const char **)qn__alloc(count, sizeof *paths, err);
    if (!paths)
        return NULL;
    for (size_t i = 0; i < count; i++)
        paths[i] = lot->labels.file[lot->from + i].path;
    o->labels_path = paths[0];
    o->labels_more = paths + 1;
    o->labels_more_count = (uint32_t)(count - 1);
    return paths;
}

static qn_status read_files(qn_parts *parts, const qn__parts_lot *lot,
                            const qn_data_options *options, qn__part_reading *reading,
                            qn_error *err) {
    qn_data_options o = *options;
    const char **labels = NULL;
    if (lot->labels.count > 0 && !(labels = labels_of(lot, &o, err)))
        return QN_MEMORY;
    if (!lot->encloses && !o.no_cache)
        o.no_cache = QN__NO_ENTRY; /* the values may change below */
    const qn__file_list own = {.file = lot->list.file + lot->from,
                               .count = lot->to - lot->from,
                               .capacity = lot->to - lot->from,
                               .keys = lot->list.keys};
    const qn_status status = qn__data_open_list(&own, &o, reading, &parts->own, err);
    qn__free((void *)labels);
    return status;
}

/* Reads the rows of this rank: parts->own; it stays NULL where the rank has none. */
static qn_status read_own(qn_parts *parts, const qn__parts_lot *lot, const qn_data_options *options,
                          qn__part_reading *reading, qn_error *err) {
    if (!parts->given && lot->from == lot->to)
        return QN_OK;
    const qn_status status = parts->given ? qn__parts_lend(parts->given, options, &parts->own, err)
                                          : read_files(parts, lot, options, reading, err);
    if (status != QN_OK && reading->is_empty)
        return QN_OK;
    if (status == QN_OK && parts->own->items == 0) {
        qn_data_close(parts->own);
        parts->own = NULL;
    }
    return status;
}

/* The rows of this rank get a schema. A tokenizer that was learned is known from now on. */
static qn_status settle_own(qn_parts *parts, qn_error *err) {
    qn_data *own = parts->own;
    if (!own)
        return QN_OK;
    qn_status status = qn__data_need_schema(own, err);
    if (status == QN_OK)
        own->schema->target = qn__data_target(own);
    return status == QN_OK ? check_table(own, err) : status;
}

/* The names of the files of all ranks, for messages. */
static qn_status gather_names(qn_parts *parts, const qn__parts_lot *lot, qn_error *err) {
    char own[sizeof *parts->name] = "no file";
    if (parts->given)
        snprintf(own, sizeof own, "a table in memory");
    qn__parts_name_files(&lot->list, lot->from, lot->to, own, sizeof own);
    return qn__parts_gather_each(parts, own, sizeof own, parts->name, err);
}

/* ------------------------------------------------------------------ one table */

static qn_status merge(qn_parts *parts, const qn_data_options *options, qn__parts_again *again,
                       qn_error *err) {
    qn__part_heads_release(parts, parts->heads); /* of an earlier merge */
    qn_status status = qn__part_heads_gather(parts, parts->heads, err);
    *again = (qn__parts_again){0};
    if (status == QN_OK && qn__parts_disordered(parts, parts->heads)) {
        status = qn__parts_agree(parts, qn__parts_reorder(parts, parts->heads, options, err), err);
        qn__part_heads_release(parts, parts->heads);
        *parts->heads = (qn__part_heads){.part = NULL};
        if (status == QN_OK)
            status = qn__part_heads_gather(parts, parts->heads, err);
    }
    if (status == QN_OK)
        qn__parts_colours(parts, parts->heads, again);
    if (status == QN_OK && !again->any) {
        /* what is found here is the same on all ranks, but for memory */
        qn_status own = qn__parts_columns(parts, parts->heads, options, err);
        if (own == QN_OK)
            own = qn__parts_labels(parts, parts->heads, options, again, err);
        status = qn__parts_agree(parts, own, err);
    }
    return status;
}

static qn_status read_again(qn_parts *parts, const qn__parts_lot *lot,
                            const qn_data_options *options, const qn__parts_again *again,
                            qn_error *err) {
    qn_data_options o = *options;
    qn__part_reading reading = {.ranks = qn__parts_beside(parts)};
    qn__parts_know_tokenizer(parts, &o);
    if (again->real)
        o.task = "regress";
    if (again->colours)
        o.expected_features = 3 * parts->own->features;
    const int own = again->real || again->colours;
    if (!own && parts->own && parts->own->items > 0)
        return QN_OK;
    qn_data_close(parts->own);
    parts->own = NULL;
    const qn_status status = own ? read_own(parts, lot, &o, &reading, err) : QN_OK;
    return status == QN_OK ? settle_own(parts, err) : status;
}

static qn_status read_once(qn_parts *parts, const qn__parts_lot *lot,
                           const qn_data_options *options, qn_error *err) {
    qn__parts_again again = {0};
    qn__part_tokens tokens;
    qn__part_tokens_begin(&tokens, parts, options);
    qn__parts_forget_tokens(parts);
    qn_status status = read_own(parts, lot, options, &tokens.reading, err);
    if (parts->heir_of > 0 && !tokens.failed)
        status = qn__parts_name_lost(parts, parts->heir_of - 1, status, err);
    status = qn__part_tokens_read(&tokens, status, err);
    if (status == QN_OK)
        status = qn__parts_row(parts, &tokens.reading, options, err);
    if (status == QN_OK) {
        status = settle_own(parts, err);
        if (status == QN_OK)
            status = qn__parts_keep_tokenizer(parts, err);
        status = qn__parts_agree(parts, status, err);
    }
    if (status == QN_OK)
        status = merge(parts, options, &again, err);
    if (status == QN_OK && again.any) {
        status = qn__parts_agree(parts, read_again(parts, lot, options, &again, err), err);
        if (status == QN_OK)
            status = merge(parts, options, &again, err);
        if (status == QN_OK && again.any) /* images in memory stay as they are */
            status =
                refuse("grey images beside images with colours", "give all three channels", err);
    }
    return status;
}

/* Where a rank ends meanwhile, another one has its files, too, and all read again. */
static qn_status read_all(qn_parts *parts, qn__parts_lot *lot, const qn_data_options *options,
                          qn_error *err) {
    qn_status status;
    do {
        qn_data_close(parts->own);
        parts->own = NULL;
        status = read_once(parts, lot, options, err);
    } while (qn__parts_take_files(parts, lot, &status, err));
    parts->agreed = status == QN_OK;
    memcpy(parts->had, parts->first, (parts->ranks + (size_t)1) * sizeof *parts->had);
    memcpy(parts->had_text, parts->text, (parts->ranks + (size_t)1) * sizeof *parts->had_text);
    return status;
}

static qn_status note_left(const qn_parts *parts, qn_error *err) {
    const qn__part_row *row = parts->row;
    return row ? qn__token_row_note(row->left, row->token[parts->ranks], parts->own, err) : QN_OK;
}

static qn_status finish_once(qn_parts *parts, qn_error *err) {
    qn_data *own = parts->own;
    qn__late_digest_free(own->late);
    own->late = NULL;
    qn_status status = qn__parts_digest(parts, err);
    if (status == QN_OK) {
        status = qn__late_digest_create(own, &own->late, err);
        if (status == QN_OK)
            status = qn__parts_keep_tokenizer(parts, err);
        status = qn__parts_agree(parts, status, err);
    }
    if (status == QN_OK)
        status = qn__parts_notes(parts, err);
    return status == QN_OK ? qn__parts_agree(parts, note_left(parts, err), err) : status;
}

static qn_status finish(qn_parts *parts, qn_error *err) {
    qn_status status;
    do
        status = finish_once(parts, err);
    while (qn__parts_mend(parts, &status, err));
    return status;
}

/* The files of `lot`, or parts->given. */
static qn_status open_lot(qn_parts *parts, qn__parts_lot *lot, const qn_data_options *options,
                          qn_error *err) {
    qn_status status = gather_names(parts, lot, err);
    if (status == QN_OK)
        status = qn__parts_keep_paths(parts, lot, err);
    parts->options = *options;
    parts->options.decoded = NULL; /* the caller's progress may end before a part is read again */
    if (status == QN_OK)
        status = read_all(parts, lot, options, err);
    return status == QN_OK ? finish(parts, err) : status;
}

static qn_status open_files(qn_parts *parts, const char *const *paths, size_t count,
                            const qn_data_options *options, qn_error *err) {
    qn__parts_lot lot;
    qn_status status;
    do {
        status = qn__parts_deal(parts, paths, count, options, &lot, err);
        if (status == QN_OK)
            status = open_lot(parts, &lot, options, err);
        qn__parts_lot_release(&lot);
    } while (qn__parts_deal_again(parts, &status));
    return status;
}

static qn_parts *create(qn_cluster *cluster, qn_error *err) {
    const uint32_t ranks = cluster ? qn_cluster_ranks(cluster) : 1;
    qn_parts *parts = qn__alloc(1, sizeof *parts, err);
    if (!parts)
        return NULL;
    parts->cluster = cluster;
    parts->ranks = ranks;
    parts->rank = cluster ? qn_cluster_rank(cluster) : 0;
    parts->first = qn__alloc(ranks + 1, sizeof *parts->first, err);
    parts->name = parts->first ? qn__alloc(ranks, sizeof *parts->name, err) : NULL;
    parts->text = parts->name ? qn__alloc(ranks + 1, sizeof *parts->text, err) : NULL;
    parts->had = parts->text ? qn__alloc(ranks + 1, sizeof *parts->had, err) : NULL;
    parts->had_text = parts->had ? qn__alloc(ranks + 1, sizeof *parts->had_text, err) : NULL;
    parts->gone = parts->had_text ? qn__alloc(ranks, sizeof *parts->gone, err) : NULL;
    parts->heads = parts->gone ? qn__alloc(1, sizeof *parts->heads, err) : NULL;
    if (parts->heads)
        return parts;
    qn_parts_close(parts);
    return NULL;
}

/* `paths` is NULL for a table in memory. */
static qn_status make(qn_cluster *cluster, const char *const *paths, size_t count,
                      const qn_data *given, const qn_data_options *options, qn_parts **out,
                      qn_error *err) {
    qn__parts_lot none = {.from = 0};
    qn_data_options own;
    qn_parts *parts = create(cluster, err);
    if (!parts) {
        if (cluster)
            qn__cluster_fail(cluster, err);
        return QN_MEMORY;
    }
    parts->given = given;
    qn_status status = qn__cluster_remember(cluster, err);
    if (status == QN_OK)
        status = qn__same_options(cluster, paths ? "qn_parts_open" : "qn_parts_of_data", options, 1,
                                  &own, err);
    if (status == QN_OK)
        status =
            paths ? open_files(parts, paths, count, &own, err) : open_lot(parts, &none, &own, err);
    if (status == QN_OK)
        *out = parts;
    else
        qn_parts_close(parts);
    return status;
}

qn_status qn_parts_open(qn_cluster *cluster, const char *const *paths, size_t count,
                        const qn_data_options *options, qn_parts **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(paths, err);
    qn_error unwanted;
    return make(cluster, paths, count, NULL, options, out, err ? err : &unwanted);
}

qn_status qn_parts_of_data(qn_cluster *cluster, const qn_data *own, const qn_data_options *options,
                           qn_parts **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    qn_error unwanted;
    return make(cluster, NULL, 0, own, options, out, err ? err : &unwanted);
}

/* ------------------------------------------------------------------ answers */

void qn_parts_close(qn_parts *parts) {
    if (!parts)
        return;
    qn_data_close(parts->own);
    if (parts->heads)
        qn__part_heads_release(parts, parts->heads);
    qn__free(parts->heads);
    qn__parts_drop_paths(parts);
    qn__part_row_free(parts->row);
    qn__free(parts->tokenizer);
    qn__free(parts->first);
    qn__free(parts->text);
    qn__free(parts->had);
    qn__free(parts->had_text);
    qn__free(parts->name);
    qn__free(parts->gone);
    qn__free(parts->in_class);
    qn__free(parts);
}

uint64_t qn_parts_items(const qn_parts *parts) { return parts ? qn__parts_items(parts) : 0; }

uint64_t qn_parts_first(const qn_parts *parts) { return parts ? parts->first[parts->rank] : 0; }

const qn_data *qn_parts_own(const qn_parts *parts) { return parts ? parts->own : NULL; }

const char *qn_parts_digest(const qn_parts *parts) { return parts ? parts->digest : ""; }

const uint64_t *qn_parts_class_items(const qn_parts *parts) {
    return parts ? parts->in_class : NULL;
}
