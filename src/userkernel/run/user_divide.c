#include "userkernel/run/user_divide.h"

#include "base/memory.h"
#include "base/system/available.h"
#include "cluster/agreement.h"
#include "data/parts/parts_deal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a rank tells of its part of an input. */
typedef struct head {
    uint8_t present; /* 1 */
    char name[183];  /* of the files, for messages */
    uint64_t rows, shape[QN__USER_DIMENSIONS];
} head;

static int is_input(const qn__user_part *p) { return p->use < QN__USER_OUTPUT; }

/* An array of which the index space has a row for each of its own. */
static int has_rows(const qn__user_part *p) {
    return p->use <= QN__USER_OUTPUT && (p->use != QN__USER_WHOLE || p->next);
}

/* ------------------------------------------------------------------ the same on all ranks */

static qn_status check(const qn_kernel *k, qn_error *err) {
    if (k->source.has_scan) {
        qn__fail(err, QN_UNSUPPORTED, "a kernel with a SCAN does not run with arrays in parts");
        qn__at(err, "%s", k->name);
        return qn__remedy(err, QN_UNSUPPORTED, "give every rank the whole arrays");
    }
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (k->source.part[i].use == QN__USER_OUTPUT && k->part[i].lent && !k->part[i].in_parts) {
            qn__fail(err, QN_UNSUPPORTED,
                     "the memory for \"%s\" is for all rows, and a rank has its own rows alone",
                     k->source.part[i].name);
            qn__at(err, "`kernel.output`");
            return qn__remedy(err, QN_UNSUPPORTED,
                              "bind memory for the rows of this rank, with qn_kernel_bind_part");
        }
    return QN_OK;
}

/* All ranks have the same arrays in parts. *some: there are any. */
static qn_status agree(const qn_kernel *k, int *some, qn_error *err) {
    qn__text text = {0};
    qn_status status = QN_OK;
    *some = 0;
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (k->part[i].in_parts) {
            qn__text_add(&text, "%s%s", *some ? ", " : "", k->source.part[i].name);
            *some = 1;
        }
    if (*some)
        status = check(k, err);
    if (text.failed)
        status = qn__fail_memory(err, 1, text.size);
    if (k->compute.cluster) {
        const qn_error own = status == QN_OK ? (qn_error){0} : *err;
        const qn_agreement same = {sizeof same, "the arrays in parts", *some ? text.data : "none",
                                   "start all ranks with the same options"};
        status = qn_cluster_agree(k->compute.cluster, &own, &same, text.failed ? 0 : 1, err);
    }
    qn__text_release(&text);
    return status;
}

/* ------------------------------------------------------------------ the files of an input */

static qn_status refuse_shape(const qn_kernel *k, uint32_t part, const char *where, qn_error *err) {
    qn__fail(err, QN_INPUT, "the parts of \"%s\" have rows of different shapes",
             k->source.part[part].name);
    qn__at_of(err, where);
    return qn__remedy(err, QN_INPUT, "all lengths but the first one are the same in all parts");
}

static int same_rows(const qn__user_array *a, const uint64_t *shape) {
    return memcmp(a->shape + 1, shape + 1, sizeof a->shape - sizeof *shape) == 0;
}

static qn_status open_file(const qn_kernel *k, uint32_t part, const char *path, qn__part_input *in,
                           qn_error *err) {
    qn__rows_here *h = &in->here[in->count];
    qn_status status = qn__user_array_open(path, k->source.part[part].name, 1, &h->array, err);
    if (status != QN_OK)
        return status;
    h->rows = h->array.shape[0];
    in->count++;
    status = qn__user_check_type(k, part, &h->array, path, err);
    if (status == QN_OK)
        status = qn__user_check_dimensions(k, part, h->array.dimensions, path, err);
    if (status == QN_OK && !same_rows(&h->array, in->here[0].array.shape))
        status = refuse_shape(k, part, path, err);
    return status;
}

/* All files that this rank names; those of all ranks where they name the same. */
static qn_status open_files(const qn_kernel *k, uint32_t part, const qn__parts_lot *lot,
                            qn__part_input *in, qn_error *err) {
    qn_status status = QN_OK;
    in->here = qn__alloc(lot->list.count, sizeof *in->here, err);
    if (!in->here)
        return QN_MEMORY;
    for (size_t i = 0; i < lot->list.count && status == QN_OK; i++)
        status = open_file(k, part, lot->list.file[i].path, in, err);
    return status;
}

static qn_status take_memory(const qn_kernel *k, uint32_t part, qn__part_input *in, head *own,
                             qn_error *err) {
    in->here = qn__alloc(1, sizeof *in->here, err);
    if (!in->here)
        return QN_MEMORY;
    in->here[0] = (qn__rows_here){.rows = k->part[part].own.shape[0], .array = k->part[part].own};
    in->count = 1;
    snprintf(own->name, sizeof own->name, "an array in memory");
    return QN_OK;
}

/* What this process has of the input. *same: all ranks name the same files. */
static qn_status open_own(const qn_kernel *k, uint32_t part, head *own, int *same, qn_error *err) {
    qn_parts *parts = &k->divided->parts;
    qn__part_input *in = &k->divided->input[part];
    const char *path = k->part[part].path;
    qn__parts_lot lot = {.from = 0};
    qn_data_options options;
    qn_data_options_init(&options);
    parts->dealt = 0; /* of another input */
    qn_status status = qn__parts_deal(parts, &path, path ? 1 : 0, &options, &lot, err);
    if (status == QN_OK && path)
        status = qn__parts_agree(parts, open_files(k, part, &lot, in, err), err);
    else if (status == QN_OK)
        status = qn__parts_agree(parts, take_memory(k, part, in, own, err), err);
    if (status == QN_OK && path)
        qn__parts_name_files(&lot.list, 0, lot.list.count, own->name, sizeof own->name);
    *same = path && parts->dealt;
    qn__parts_lot_release(&lot);
    return status;
}

/* ------------------------------------------------------------------ the whole of an input */

/* Where the rows of each rank begin: in equal shares where all have the same files. */
static void set_first(const qn__part_space *s, qn__part_input *in, const head *all, int same) {
    uint64_t at = 0;
    for (uint32_t r = 0; r < s->parts.ranks; r++) {
        in->first[r] = same ? qn__part_share(all[r].rows, r, s->parts.ranks) : at;
        at += all[r].rows;
    }
    in->first[s->parts.ranks] = same ? all[0].rows : at;
    at = same ? 0 : in->first[s->parts.rank];
    for (size_t i = 0; i < in->count; i++) {
        in->here[i].first = at;
        at += in->here[i].rows;
    }
}

/* The array of the whole, whose numbers are not there yet. */
static qn_status describe(const qn_kernel *k, uint32_t part, const head *all, qn__user_array *a,
                          qn_error *err) {
    const qn__part_space *s = k->divided;
    const uint64_t *lead = NULL;
    *a = (qn__user_array){.type = k->source.part[part].type,
                          .dimensions = qn__user_dimensions(k, part)};
    for (uint32_t r = 0; r < s->parts.ranks; r++) {
        if (all[r].rows == 0)
            continue;
        lead = lead ? lead : all[r].shape;
        memcpy(a->shape, all[r].shape, sizeof a->shape);
        if (!same_rows(a, lead))
            return refuse_shape(k, part, all[r].name, err);
    }
    a->shape[0] = s->input[part].first[s->parts.ranks];
    if (lead) {
        const qn_status status =
            qn__user_check_shape(a->shape, a->dimensions, k->source.part[part].name, err);
        const uint64_t items = status == QN_OK ? qn__user_array_items(a) : 0;
        const uint32_t size = qn__user_type_size(a->type);
        return items > SIZE_MAX / 2 / size ? qn__fail_memory(err, items, size) : status;
    }
    qn__fail(err, QN_INPUT, "no rank has rows of \"%s\"", k->source.part[part].name);
    return qn__remedy(err, QN_INPUT, "give at least one rank an array with rows");
}

static qn_status join_heads(qn_kernel *k, uint32_t part, const head *own, int same, head *all,
                            qn_error *err) {
    qn__part_space *s = k->divided;
    qn__part_input *in = &s->input[part];
    qn_status status = qn__parts_gather_each(&s->parts, own, sizeof *own, all, err);
    if (status != QN_OK)
        return status;
    if (!*s->parts.name[0])
        for (uint32_t r = 0; r < s->parts.ranks; r++)
            memcpy(s->parts.name[r], all[r].name, sizeof all[r].name);
    set_first(s, in, all, same);
    status = describe(k, part, all, &k->part[part].array, err);
    if (status == QN_OK)
        in->row = qn__user_array_bytes(&k->part[part].array) / k->part[part].array.shape[0];
    k->part[part].array.data = in; /* not NULL: it is bound */
    return status;
}

static qn_status open_input(qn_kernel *k, uint32_t part, qn_error *err) {
    qn__part_space *s = k->divided;
    qn__part_input *in = &s->input[part];
    head own = {.present = 1}, *all = qn__alloc(s->parts.ranks, sizeof *all, err);
    int same = 0;
    in->first = qn__alloc((uint64_t)s->parts.ranks + 1, sizeof *in->first, err);
    qn_status status = qn__parts_agree(&s->parts, all && in->first ? QN_OK : QN_MEMORY, err);
    if (status == QN_OK)
        status = open_own(k, part, &own, &same, err);
    for (size_t i = 0; i < in->count; i++) {
        own.rows += in->here[i].rows;
        memcpy(own.shape, in->here[i].array.shape, sizeof own.shape);
    }
    if (status == QN_OK && all)
        status = join_heads(k, part, &own, same, all, err);
    qn__free(all);
    return status;
}

/* ------------------------------------------------------------------ open, close */

static qn_status make(qn_kernel *k, qn_error *err) {
    qn__part_space *s = k->divided = qn__alloc(1, sizeof *s, err);
    if (!s)
        return QN_MEMORY;
    s->parts.cluster = k->compute.cluster;
    s->parts.ranks = qn_cluster_ranks(k->compute.cluster);
    s->parts.rank = qn_cluster_rank(k->compute.cluster);
    s->parts.first = qn__alloc((uint64_t)s->parts.ranks + 1, sizeof *s->parts.first, err);
    s->parts.name = qn__alloc(s->parts.ranks, sizeof *s->parts.name, err);
    s->parts.gone = qn__alloc(s->parts.ranks, sizeof *s->parts.gone, err);
    return s->parts.first && s->parts.name && s->parts.gone ? QN_OK : QN_MEMORY;
}

qn_status qn__user_divide_open(qn_kernel *k, qn_error *err) {
    int some = 0;
    qn_status status = agree(k, &some, err);
    if (status != QN_OK || !some)
        return status;
    status = make(k, err);
    if (status != QN_OK && k->compute.cluster)
        qn__cluster_fail(k->compute.cluster, err);
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        if (k->part[i].in_parts && is_input(&k->source.part[i]))
            status = open_input(k, i, err);
    if (status == QN_OK && k->compute.cluster)
        status = qn__parts_agree(&k->divided->parts, qn__part_rows_open(k->divided, err), err);
    if (status != QN_OK)
        qn__user_divide_close(k);
    return status;
}

static void close_input(qn__part_input *in, int lent) {
    for (size_t i = 0; i < in->count && !lent; i++)
        qn__user_array_release(&in->here[i].array);
    qn__free(in->here);
    qn__free(in->first);
}

void qn__user_divide_close(qn_kernel *k) {
    qn__part_space *s = k->divided;
    if (!s)
        return;
    qn__items_destroy(s->items);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        qn__user_bound *b = &k->part[i];
        if (!b->in_parts || (!is_input(&k->source.part[i]) && !b->lent))
            continue;
        close_input(&s->input[i], b->lent);
        qn__user_array_release(&b->array); /* its memory, if it has some */
    }
    qn__free(s->parts.first);
    qn__free(s->parts.name);
    qn__free(s->parts.gone);
    qn__free(s);
    k->divided = NULL;
}

/* ------------------------------------------------------------------ the rows of this rank */

uint32_t qn__user_divide_needs(const qn_kernel *k, uint32_t part, qn__row_range out[2]) {
    const qn__user_part *p = &k->source.part[part];
    const qn__row_range own = qn__part_own_rows(k->divided);
    const uint64_t rows = k->part[part].array.shape[0], halo = p->halo;
    if (own.begin == own.end)
        return 0;
    const int wraps = p->use == QN__USER_HALOED && p->border == QN__USER_WRAP;
    if (p->use == QN__USER_WHOLE || (wraps && own.end - own.begin + 2 * halo >= rows)) {
        out[0] = (qn__row_range){0, rows};
        return 1;
    }
    const uint64_t low = own.begin < halo ? halo - own.begin : 0; /* rows beyond the ends */
    const uint64_t high = own.end + halo > rows ? own.end + halo - rows : 0;
    out[0] = (qn__row_range){low ? 0 : own.begin - halo, high ? rows : own.end + halo};
    if (!wraps || low + high == 0)
        return 1;
    out[1] = low ? (qn__row_range){rows - low, rows} : (qn__row_range){0, high};
    return 2;
}

/* The rows of the first input in parts that has those of the index space; else equal shares. */
static void divide(const qn_kernel *k, uint64_t rows) {
    qn__part_space *s = k->divided;
    const uint32_t ranks = s->parts.ranks;
    for (uint32_t r = 0; r <= ranks; r++)
        s->parts.first[r] = qn__part_share(rows, r, ranks);
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (s->input[i].first && has_rows(&k->source.part[i])) {
            memcpy(s->parts.first, s->input[i].first, (ranks + 1) * sizeof *s->parts.first);
            return;
        }
}

void qn__user_divide_items(const qn_kernel *k, int64_t *begin, int64_t *end) {
    const qn__row_range own = qn__part_own_rows(k->divided);
    const int64_t row = qn__user_job_items(&k->job) / qn__user_job_rows(&k->job);
    *begin = (int64_t)own.begin * row;
    *end = (int64_t)own.end * row;
}

qn__user_array qn__user_divide_own(const qn_kernel *k, uint32_t part) {
    const qn__row_range own = qn__part_own_rows(k->divided);
    qn__user_array a = k->part[part].array;
    const uint64_t row = qn__user_array_bytes(&a) / a.shape[0];
    a.data = (void *)((uintptr_t)a.data + (uintptr_t)(own.begin * row));
    a.shape[0] = own.end - own.begin;
    a.map_bytes = a.own_bytes = 0;
    return a;
}

/* ------------------------------------------------------------------ memory of the inputs */

/* The file that has all these rows; NULL: none has. */
static const qn__rows_here *find_file(const qn__part_input *in, const qn__row_range *range,
                                      uint32_t count) {
    for (size_t i = 0; i < in->count; i++) {
        const qn__rows_here *h = &in->here[i];
        uint32_t has = 0;
        for (uint32_t k = 0; k < count; k++)
            has += range[k].begin >= h->first && range[k].end <= h->first + h->rows;
        if (has == count)
            return h;
    }
    return NULL;
}

static qn_status check_memory(const qn_kernel *k, uint32_t part, uint64_t bytes, qn_error *err) {
    const uint64_t available = qn__available_memory();
    if (bytes <= available)
        return QN_OK;
    qn__fail(err, QN_MEMORY,
             "the rows of \"%s\" that this rank needs take %" PRIu64 " MiB, and %" PRIu64
             " MiB are free",
             k->source.part[part].name, bytes >> 20, available >> 20);
    qn__at_of(err, k->divided->parts.name[k->divided->parts.rank]);
    return qn__remedy(err, QN_MEMORY, "use more ranks, or write the rows of a rank as one file");
}

/* The kernel counts rows from 0, so the memory begins where row 0 of the whole would be. Rows that
 * nobody reads take no memory. */
static qn_status get_rows(qn_kernel *k, uint32_t part, qn_error *err) {
    const qn__part_input *in = &k->divided->input[part];
    qn__user_array *a = &k->part[part].array;
    qn__row_range range[2];
    uint64_t bytes = 0;
    const uint32_t count = qn__user_divide_needs(k, part, range);
    const qn__rows_here *h = find_file(in, range, count);
    if (h && h->array.data) {
        a->data = (void *)((uintptr_t)h->array.data - (uintptr_t)(h->first * in->row));
        return QN_OK;
    }
    for (uint32_t i = 0; i < count; i++)
        bytes += (range[i].end - range[i].begin) * in->row;
    qn_status status = check_memory(k, part, bytes, err);
    if (status == QN_OK)
        status = qn__user_array_reserve(a, err);
    for (uint32_t i = 0; i < count && status == QN_OK; i++)
        status =
            qn__part_rows_read(k->divided, part, range[i].begin * in->row, range[i].end * in->row,
                               (uint8_t *)a->data + range[i].begin * in->row, err);
    return status;
}

/* Memory of the caller for the rows of this rank. What NEXT carries gets rows of neighbours too, so
 * it is computed elsewhere. */
static qn_status place_output(qn_kernel *k, uint32_t part,
                              const uint64_t shape[QN_KERNEL_DIMENSIONS], qn_error *err) {
    qn__user_bound *b = &k->part[part];
    const qn__row_range own = qn__part_own_rows(k->divided);
    char here[72], wanted[72];
    qn__user_array_declare(k, part, shape, &b->array);
    const uint64_t row = qn__user_array_bytes(&b->array) / b->array.shape[0];
    qn__user_array want = b->array;
    want.shape[0] = own.end - own.begin;
    const int same = memcmp(want.shape, b->own.shape, want.dimensions * sizeof *want.shape) == 0;
    if (same && k->source.part[part].next && k->iterations > 1)
        return qn__user_array_reserve(&b->array, err);
    if (same) {
        b->array.data = (void *)((uintptr_t)b->own.data - (uintptr_t)(own.begin * row));
        return QN_OK;
    }
    qn__user_shape_text(want.dimensions, b->own.shape, here);
    qn__user_shape_text(want.dimensions, want.shape, wanted);
    qn__fail(err, QN_USAGE, "the memory for \"%s\" has the shape %s, and this rank computes %s",
             k->source.part[part].name, here, wanted);
    qn__at(err, "`kernel.output`");
    return qn__remedy(err, QN_USAGE, "give it as many rows as the first input in parts has here");
}

qn_status qn__user_divide_space(qn_kernel *k, const uint64_t shape[QN_KERNEL_DIMENSIONS],
                                qn_error *err) {
    qn_status status = QN_OK;
    if (!k->divided)
        return QN_OK;
    divide(k, shape[0]);
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        if (k->part[i].in_parts && is_input(&k->source.part[i]))
            status = get_rows(k, i, err);
        else if (k->part[i].in_parts && k->part[i].lent)
            status = place_output(k, i, shape, err);
    return status;
}
