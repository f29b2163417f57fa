#include "data/table/kept_part.h"
#include "base/memory.h"
#include "data/table/kept.h"
#include "data/table/wide_facts.h"
#include <math.h>

/* What a column of a part is in a file of its own. */
typedef struct fate {
    qn__exact exact;    /* wide so */
    int kept, is_float; /* kept: doubles, all of which are floats where `is_float` */
} fate;

/* A part on its way. */
typedef struct making {
    const qn_data *from;
    const uint64_t *item;
    qn_data *part;
    fate *fate; /* of each feature */
    uint32_t wide, kept;
} making;

/* Exact values of feature k of the whole table; NULL: it has none. */
static const qn__wide_value *source_of(const making *m, uint32_t k) {
    const uint32_t column = qn__kept_column(m->from, k);
    return column ? m->from->kept->value[column - 1] : qn__wide_column(m->from, k);
}

static qn__wide_value value_of(const making *m, const qn__wide_value *source, uint64_t i) {
    return source[qn__data_row(m->from, m->item[i])];
}

/* Whether a value of a whole column is not a float. */
static fate of_whole(const making *m, const qn__wide_value *source) {
    qn__wide_facts facts = {.any = 0};
    for (uint64_t i = 0; i < m->part->items && !facts.other; i++) {
        const int64_t whole = value_of(m, source, i).whole;
        if (whole != QN__WIDE_MISSING)
            qn__wide_see_whole(&facts, whole);
    }
    return (fate){.exact = facts.other ? QN__EXACT_WHOLE : QN__EXACT_NONE};
}

/* By 23.4 of the contract. What was wide stays so where its values differ: they span less. */
static fate of_real(const making *m, const qn__wide_value *source, int was_wide) {
    qn__wide_facts f = {.any = 0};
    for (uint64_t i = 0; source && i < m->part->items; i++) {
        const double real = value_of(m, source, i).real;
        if (!isnan(real))
            qn__wide_see_real(&f, real);
    }
    if (!f.other)
        return (fate){.kept = 1, .is_float = 1};
    if (!f.fraction)
        return (fate){.exact = QN__EXACT_WHOLE};
    if (f.hi > f.lo && (was_wide || qn__wide_spans_little(&f)))
        return (fate){.exact = QN__EXACT_REAL};
    return (fate){.kept = 1};
}

static void find_fates(making *m) {
    for (uint32_t k = 0; k < m->part->features; k++) {
        const qn__exact exact = qn__wide_kind(m->from, k);
        if (exact == QN__EXACT_WHOLE)
            m->fate[k] = of_whole(m, source_of(m, k));
        else if (exact == QN__EXACT_MOMENT)
            m->fate[k].exact = exact;
        else if (exact == QN__EXACT_REAL || qn__kept_column(m->from, k))
            m->fate[k] = of_real(m, source_of(m, k), exact == QN__EXACT_REAL);
        m->wide += m->fate[k].exact != QN__EXACT_NONE;
        m->kept += m->fate[k].kept != 0;
    }
}

/* Doubles may all be whole in a part. */
static qn__wide_value as_whole(double real) {
    return (qn__wide_value){.whole = isnan(real) ? QN__WIDE_MISSING : (int64_t)real};
}

/* As a reader has it: 23.5 of the contract. */
static qn__wide_value as_real(double real) {
    qn__wide_value value = {.whole = qn__wide_missing(QN__EXACT_REAL)};
    if (!isnan(real))
        value.real = real == 0 ? 0 : real;
    return value;
}

static void put_wide(const making *m, uint32_t j, uint32_t k) {
    const qn__wide_value *source = source_of(m, k);
    const qn__exact to = m->fate[k].exact, from = qn__wide_kind(m->from, k);
    const int is_real = from == QN__EXACT_NONE || from == QN__EXACT_REAL;
    qn__wide_value *out = qn__wide_of(m->part->wide, j);
    m->part->wide->feature[j] = k;
    for (uint64_t i = 0; i < m->part->items; i++) {
        const qn__wide_value value = value_of(m, source, i);
        out[i] = !is_real                ? value
                 : to == QN__EXACT_WHOLE ? as_whole(value.real)
                                         : as_real(value.real);
    }
}

static qn_status put_kept(const making *m, uint32_t j, uint32_t k, qn_error *err) {
    const qn__wide_value *source = source_of(m, k);
    qn__wide_value *values = NULL;
    if (!m->fate[k].is_float && !(values = qn__alloc(m->part->items, sizeof *values, err)))
        return QN_MEMORY;
    for (uint64_t i = 0; values && i < m->part->items; i++)
        values[i] = value_of(m, source, i);
    qn__kept_put(m->part, j, k, values);
    return QN_OK;
}

static qn_status put_all(const making *m, qn_error *err) {
    qn_data *part = m->part;
    qn_status status = QN_OK;
    if (m->wide > 0 && !(part->wide = qn__wide_create(m->wide, part->items, NULL, err)))
        return QN_MEMORY;
    if (m->kept > 0 && !(part->kept = qn__kept_create(m->kept, err)))
        return QN_MEMORY;
    for (uint32_t k = 0, wide = 0, kept = 0; k < part->features && status == QN_OK; k++) {
        if (part->schema)
            part->schema->feature[k].exact = m->fate[k].exact;
        if (m->fate[k].exact != QN__EXACT_NONE)
            put_wide(m, wide++, k);
        if (m->fate[k].kept)
            status = put_kept(m, kept++, k, err);
    }
    return status;
}

qn_status qn__kept_part(const qn_data *from, const uint64_t *item, qn_data *part, qn_error *err) {
    making m = {.from = from, .item = item, .part = part};
    qn_status status = QN_OK;
    if (from->wide || from->kept) {
        m.fate = qn__alloc(part->features, sizeof *m.fate, err);
        if (!m.fate)
            return QN_MEMORY;
        find_fates(&m);
        status = m.wide > 0 ? qn__wide_need_schema(part, err) : QN_OK;
        if (status == QN_OK)
            status = put_all(&m, err);
        qn__free(m.fate);
    }
    qn__wide_set_rules(part);
    return status;
}
