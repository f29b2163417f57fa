/* Data sets from a caller's arrays, copied, lent or taken over: lent values stay where they are
 * when they can be used there. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/cells/commas.h"
#include "data/cells/label_columns.h"
#include "data/cells/labels.h"
#include "data/cells/prose.h"
#include "data/cells/wide_gather.h"
#include "data/numpy/npy_several.h"
#include "data/numpy/array_dates.h"
#include "data/numpy/arrays_copy.h"
#include "data/table/missing.h"
#include "data/table/rules.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The owner of values that are used in place. */
typedef struct lent {
    void *owner;
    void (*release)(void *owner);
} lent;

static void end_loan(void *memory) {
    lent *loan = memory;
    if (loan->release)
        loan->release(loan->owner);
    qn__free(loan);
}

/* 1 when every missing value has the bits that a table has there. */
static int are_missing_plain(const qn_data *data, const void *values) {
    const size_t count = data->missing ? (size_t)data->items * data->features : 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, (const char *)values + i * sizeof bits, sizeof bits);
        if ((bits & 0x7fffffff) > 0x7f800000 && bits != QN__MISSING_BITS)
            return 0;
    }
    return 1;
}

static void make_missing_plain(const qn_data *data, float *values) {
    const size_t count = data->missing ? (size_t)data->items * data->features : 0;
    for (size_t i = 0; i < count; i++)
        if (qn__is_missing(values[i]))
            qn__set_missing(&values[i]);
}

/* 1 when the values can be read as they lie. Kernels read up to QN__DATA_MARGIN bytes after the
 * last one. In the same page these are readable, whoever owns them; the page after may not be. */
static int is_usable(const qn_data *data, const void *values) {
    const uintptr_t first = (uintptr_t)values;
    const uintptr_t end = first + qn__data_bytes_of(data, data->items);
    const long page = sysconf(_SC_PAGESIZE);
    const uintptr_t aligned = first % qn__element_of(data->type)->size;
    return aligned == 0 && page > 0 && end % (uintptr_t)page != 0 &&
           end % (uintptr_t)page <= (uintptr_t)page - QN__DATA_MARGIN &&
           are_missing_plain(data, values);
}

/* What becomes of a caller's values. */
typedef enum holding {
    COPY,
    LEND, /* used in place where that is possible; their owner is told when they are not needed */
    TAKE  /* used in place; freed with the data set */
} holding;

static qn_status take_values(qn_data *data, const qn_data_arrays *a, holding how, qn_error *err) {
    const size_t bytes = qn__data_bytes_of(data, data->items);
    if (how == TAKE) {
        data->release = qn__free;
        data->memory = (void *)(uintptr_t)a->values;
        data->values = data->memory;
        make_missing_plain(data, data->memory);
        return QN_OK;
    }
    if (how == COPY || !is_usable(data, a->values)) {
        data->memory = qn__alloc(bytes, 1, err);
        if (!data->memory)
            return QN_MEMORY;
        data->release = qn__free;
        data->values = memcpy(data->memory, a->values, bytes);
        make_missing_plain(data, data->memory);
        return QN_OK;
    }
    /* The release is set last, when nothing can fail any more: until then the caller owns them. */
    lent *loan = qn__alloc(1, sizeof *loan, err);
    if (!loan)
        return QN_MEMORY;
    data->memory = loan;
    data->release = end_loan;
    data->values = a->values;
    return QN_OK;
}

/* A copy of the labels, targets or weights, 4 bytes each. */
static qn_status take_labels(const qn_data *data, const void *from, void **to, qn_error *err) {
    if (!from)
        return QN_OK;
    *to = qn__alloc(data->items, sizeof(int32_t), err);
    if (!*to)
        return QN_MEMORY;
    memcpy(*to, from, (size_t)data->items * sizeof(int32_t));
    return QN_OK;
}

static int copy_name(char **to, const char *from, qn_error *err) {
    *to = from ? qn__copy_text(from, err) : NULL;
    return !from || *to;
}

static int copy_names(char ***to, const char *const *from, uint32_t count, uint32_t *filled,
                      qn_error *err) {
    *to = qn__alloc(count, sizeof **to, err);
    if (!*to)
        return 0;
    for (*filled = 0; *filled < count; ++*filled)
        if (!copy_name(&(*to)[*filled], from[*filled], err))
            return 0;
    return 1;
}

static int take_column(qn__feature *to, const qn_data_arrays *a, uint32_t k, qn_error *err) {
    const uint32_t count = a->categories ? a->categories[k] : 0;
    to->bytes = a->type == QN_F32 && a->feature_bytes && a->feature_bytes[k];
    to->said = !a->texts ? QN__SAID_NOTHING : a->texts[k] ? QN__SAID_TEXT : QN__SAID_CATEGORY;
    if (a->feature_name && !copy_name(&to->name, a->feature_name[k], err))
        return 0;
    return count == 0 || copy_names(&to->category, a->category[k], count, &to->categories, err);
}

static qn_status take_names(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    if (!a->feature_name && !a->label_name && !a->class_name && !a->categories && !a->targets &&
        !a->feature_bytes)
        return QN_OK;
    qn__schema *s = data->schema = qn__schema_create(data->features, err);
    if (!s || !copy_name(&s->label, a->label_name, err))
        return QN_MEMORY;
    for (uint32_t k = 0; k < data->features; k++)
        if (!take_column(&s->feature[k], a, k, err))
            return QN_MEMORY;
    s->target = a->several      ? QN__TARGET_SEVERAL
                : a->targets    ? QN__TARGET_REAL
                : !a->labels    ? QN__TARGET_NONE
                : a->class_name ? QN__TARGET_CLASS
                                : QN__TARGET_INDEX;
    const int several = s->target == QN__TARGET_SEVERAL && a->class_name;
    if ((several || s->target == QN__TARGET_CLASS) &&
        !copy_names(&s->class_name, a->class_name, a->classes, &s->classes, err))
        return QN_MEMORY;
    if (several && !a->mask_rows && !s->label &&
        !(s->label = qn__label_list(s->class_name, s->classes, err)))
        return QN_MEMORY;
    return QN_OK;
}

/* ------------------------------------------------------------------------------------- checks */

static qn_status check_classes(const qn_data_arrays *a, qn_error *err) {
    for (uint32_t i = 0; a->class_name && i < a->classes; i++)
        if (!a->class_name[i])
            return qn__fail(err, QN_INPUT, "class %u has no name", (unsigned)i);
    for (uint64_t i = 0; a->class_name && a->labels && i < a->items; i++) {
        if ((uint32_t)a->labels[i] >= a->classes) {
            qn__fail(err, QN_INPUT, "the label %d is not one of %u classes", (int)a->labels[i],
                     (unsigned)a->classes);
            qn__at(err, "item %llu", (unsigned long long)i);
            return QN_INPUT;
        }
    }
    for (uint64_t i = 0; a->targets && i < a->items; i++) {
        if (!isfinite(a->targets[i])) {
            qn__fail(err, QN_INPUT, "a label is not a finite number");
            qn__at(err, "item %llu", (unsigned long long)i);
            return QN_INPUT;
        }
    }
    return QN_OK;
}

static double value_at(const qn_data_arrays *a, uint64_t item, uint32_t k) {
    const size_t at = (size_t)item * a->features + k;
    return qn__element_of(a->type)->number(a->values, at);
}

/* Ascending texts, and values that are their indices. */
static qn_status check_column(const qn_data_arrays *a, uint32_t k, qn_error *err) {
    const uint32_t count = a->categories[k];
    for (uint32_t i = 0; i < count; i++)
        if (!a->category || !a->category[k] || !a->category[k][i] ||
            (i > 0 && strcmp(a->category[k][i - 1], a->category[k][i]) >= 0))
            return qn__fail(err, QN_INPUT, "the categories of feature %u do not ascend",
                            (unsigned)k);
    for (uint64_t i = 0; count > 0 && i < a->items; i++) {
        const double value = value_at(a, i, k);
        if (isnan(value) || (value >= 0 && value < (double)count && value == (uint32_t)value))
            continue;
        qn__fail(err, QN_INPUT, "%g is not one of %u categories", value, (unsigned)count);
        qn__at(err, "item %llu, feature %u", (unsigned long long)i, (unsigned)k);
        return QN_INPUT;
    }
    return QN_OK;
}

/* Columns that a caller says to hold bytes. */
static qn_status check_bytes(const qn_data_arrays *a, uint32_t k, qn_error *err) {
    if (a->categories && a->categories[k])
        return qn__fail(err, QN_USAGE, "feature %u holds bytes and categories", (unsigned)k);
    for (uint64_t i = 0; i < a->items; i++) {
        const double value = value_at(a, i, k);
        if (value >= 0 && value <= 255 && value == (uint8_t)value && !signbit(value))
            continue;
        qn__fail(err, QN_INPUT, "%g is not a whole number from 0 to 255", value);
        qn__at(err, "item %llu, feature %u", (unsigned long long)i, (unsigned)k);
        return QN_INPUT;
    }
    return QN_OK;
}

static int is_task(const char *task) {
    return !task || strcmp(task, "auto") == 0 || strcmp(task, "classify") == 0 ||
           strcmp(task, "regress") == 0;
}

static qn_status take_weights(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    const qn_status status = take_labels(data, a->weights, (void **)&data->weights, err);
    return status == QN_OK && data->weights
               ? qn__data_check_weights(data->weights, data->items, "", err)
               : status;
}

/* Several targets of each item. */
static qn_status check_several(const qn_data_arrays *a, qn_error *err) {
    const uint64_t pixels = (uint64_t)a->mask_rows * a->mask_columns;
    const int mask = a->mask_rows || a->mask_columns;
    if (!a->several)
        return QN_OK;
    if (a->labels || a->targets || a->task)
        return qn__fail(err, QN_USAGE, "several and labels, targets or task contradict each other");
    if (a->class_name && (mask ? a->classes > QN__NO_TARGET : a->classes != a->each))
        return qn__fail(err, QN_USAGE, "%u names are not those of %u labels", (unsigned)a->classes,
                        (unsigned)a->each);
    if (a->each == 0 || (mask && pixels != a->each) || a->items > SIZE_MAX / a->each)
        return qn__fail(err, QN_USAGE, "%u targets are not a mask of %ux%u pixels",
                        (unsigned)a->each, (unsigned)a->mask_rows, (unsigned)a->mask_columns);
    const qn__several given = {a->each, a->mask_rows, a->mask_columns,
                               (uint8_t *)(uintptr_t)a->several, 1};
    if (mask && a->class_name && qn__several_classes(&given, a->items) > a->classes)
        return qn__fail(err, QN_INPUT, "a target is above the %u classes", (unsigned)a->classes);
    return qn__several_check(&given, a->items, err);
}

static qn_status take_several(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    if (!a->several)
        return QN_OK;
    data->several = qn__several_create(a->items, a->each, a->mask_rows, a->mask_columns, err);
    if (!data->several)
        return QN_MEMORY;
    memcpy(data->several->target, a->several, (size_t)a->items * a->each);
    return qn__npy_note_one_hot(data, err);
}

/* `finite`: the values are known to be. */
static qn_status check(const qn_data_arrays *a, int finite, int *missing, qn_error *err) {
    if ((a->labels && a->targets) || (a->class_name && (a->task || a->targets)))
        return qn__fail(err, QN_USAGE, "%s contradict each other",
                        a->class_name ? "class_name and task or targets" : "labels and targets");
    if (!is_task(a->task))
        return qn__fail(err, QN_USAGE, "\"%s\" is not a task", a->task);
    qn_status status = qn__data_check_arrays(a->type, a->items, a->features, a->values,
                                             a->task ? NULL : a->labels, err);
    if (status == QN_OK && !finite)
        status = qn__data_check_values(a->type, a->items, a->features, a->values,
                                       a->missing ? missing : NULL, err);
    if (status == QN_OK)
        status = check_classes(a, err);
    if (status == QN_OK)
        status = check_several(a, err);
    for (uint32_t k = 0; status == QN_OK && a->categories && k < a->features; k++)
        status = check_column(a, k, err);
    for (uint32_t k = 0;
         status == QN_OK && a->type == QN_F32 && a->feature_bytes && k < a->features; k++)
        if (a->feature_bytes[k])
            status = check_bytes(a, k, err);
    return status;
}

/* Whole labels that mean what those of a file do. */
static qn_status settle(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    qn_data_options options;
    if (!a->task)
        return QN_OK;
    qn_data_options_init(&options);
    options.task = a->task;
    options.classes = a->classes;
    return qn__labels_settle(data, &options, 1, "the labels", err);
}

/* ------------------------------------------------------------------------------- wide columns */

/* The exact values of a feature: one of both, `step` apart; none: its floats are all. */
typedef struct exact {
    const int64_t *whole;
    const char *real;
    size_t step;
} exact;

static exact exact_of(const qn_data_arrays *a, uint32_t k) {
    if (a->type != QN_F32 || (a->categories && a->categories[k]) || qn__array_is_date(a, k))
        return (exact){.step = 0};
    if (a->whole && a->whole[k])
        return (exact){.whole = a->whole[k]};
    if (a->real && a->real[k])
        return (exact){.real = (const char *)a->real[k], .step = sizeof(double)};
    const size_t item = a->item_step ? (size_t)a->item_step : a->features;
    const size_t feature = a->feature_step ? (size_t)a->feature_step : 1;
    return a->doubles ? (exact){.real = (const char *)a->values + k * feature * sizeof(double),
                                .step = item * sizeof(double)}
                      : (exact){.step = 0};
}

static qn_status gather_feature(qn__wide_gather *gather, const exact *from, uint32_t k,
                                qn_error *err) {
    qn_status status = QN_OK;
    for (uint64_t i = 0; status == QN_OK && i < gather->data->items; i++) {
        double real;
        if (!qn__wide_is_open(gather, &gather->column[k]))
            break;
        if (from->whole) {
            if (from->whole[i] != QN__WIDE_MISSING)
                status = qn__wide_gather_whole(gather, k, i, from->whole[i], err);
            continue;
        }
        memcpy(&real, from->real + i * from->step, sizeof real);
        if (!isnan(real))
            status = qn__wide_gather_real(gather, k, i, real, err);
    }
    return status;
}

/* Whether some float is large enough to stand for another whole number. */
static int has_large(const qn_data *data) {
    const float *values = (const void *)data->values;
    const size_t count = (size_t)data->items * data->features;
    int large = 0;
    for (size_t i = 0; i < count; i++)
        large |= fabsf(values[i]) > 0x1p24f;
    return large;
}

/* Whether the first doubles of a feature leave open that it is wide, where all are whole numbers
 * that float32 holds unless `large`. */
static int may_be_wide(qn__wide_gather *gather, const exact *from, uint32_t k, int large) {
    enum { FIRST = 64 };
    qn__wide_column_state look = gather->column[k];
    for (uint64_t i = 0; i < FIRST && i < gather->data->items; i++) {
        double real;
        memcpy(&real, from->real + i * from->step, sizeof real);
        if (!isnan(real))
            qn__wide_see_real(&look.facts, real);
    }
    look.facts.fraction |= !large;
    return qn__wide_is_open(gather, &look);
}

static qn_status gather_wide(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    qn__wide_gather gather;
    qn_status status = QN_OK;
    if (data->type != QN_F32 || !(a->whole || a->real || a->doubles))
        return QN_OK;
    status = qn__wide_gather_begin(&gather, data, data->features, a->expected_rules, err);
    const int large = status == QN_OK && gather.features > 0 && has_large(data);
    for (uint32_t k = 0; status == QN_OK && k < gather.features; k++) {
        const exact from = exact_of(a, k);
        if (!from.whole && !from.real)
            continue;
        qn__wide_gather_column(&gather, k, from.real != NULL);
        if (from.whole ? large : may_be_wide(&gather, &from, k, large))
            status = gather_feature(&gather, &from, k, err);
    }
    if (status == QN_OK)
        status = qn__wide_gather_end(&gather, err);
    qn__wide_gather_release(&gather);
    return status;
}

static qn_status take_resize(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    if (!a->resize)
        return QN_OK;
    if (a->type == QN_U8)
        return qn__resize_parse(a->resize, &data->resize, err);
    qn__fail(err, QN_USAGE, "images that were resized are bytes");
    return qn__remedy(err, QN_USAGE, "give the pixels as QN_U8, or leave `data.resize` out");
}

static qn_status find_texts(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    const qn_data_options options = {.expected_rules = a->expected_rules};
    return qn__prose_find(data, !a->texts && qn__prose_wanted(&options), a->text_features, "", err);
}

/* Items of tokens that share one with the next. */
static int is_corpus(const qn_data_arrays *a) {
    return qn__element_is_token(a->type) && a->feature_step == 1 && !a->doubles &&
           a->item_step > 0 && a->item_step + 1 == a->features;
}

/* `given`: the arrays as the caller has them, of which `a` are the floats. */
static qn_status fill(qn_data *data, const qn_data_arrays *a, const qn_data_arrays *given,
                      holding how, qn_error *err) {
    data->type = a->type;
    data->items = a->items;
    data->features = a->features;
    data->format = "array";
    if (is_corpus(a))
        data->context = (uint32_t)a->item_step;
    if (qn__element_is_token(a->type))
        snprintf(data->tokens, sizeof data->tokens, "%s", QN__TOKENS_IDS);
    qn_status status = a->rules ? qn__rules_parse(a->rules, &data->rules, err) : QN_OK;
    if (status == QN_OK)
        status = take_resize(data, a, err);
    if (status == QN_OK)
        status = take_values(data, a, how, err);
    if (status == QN_OK)
        status = take_labels(data, a->labels, (void **)&data->labels, err);
    if (status == QN_OK)
        status = take_labels(data, a->targets, (void **)&data->targets, err);
    if (status == QN_OK)
        status = take_several(data, a, err);
    if (status == QN_OK)
        status = take_weights(data, a, err);
    if (status == QN_OK)
        status = take_names(data, a, err);
    data->comma = qn__comma_column(data->schema);
    if (status == QN_OK)
        status = qn__array_dates_take(data, a, err);
    if (status == QN_OK)
        status = gather_wide(data, given, err);
    if (status == QN_OK)
        status = find_texts(data, a, err);
    if (status == QN_OK)
        status = settle(data, a, err);
    if (status == QN_OK)
        status = qn__data_finish_later(data, err);
    return status;
}

/* After a failure the values are still the caller's. */
static qn_status make(const qn_data_arrays *a, const qn_data_arrays *given, holding how, int finite,
                      qn_data **out, qn_error *err) {
    int missing = 0;
    qn_status status = check(a, finite, &missing, err);
    if (status != QN_OK)
        return status;
    qn_data *data = qn__alloc(1, sizeof *data, err);
    if (!data)
        return QN_MEMORY;
    data->missing = missing;
    status = fill(data, a, given, how, err);
    if (status != QN_OK) {
        if (how == TAKE)
            data->memory = NULL;
        qn_data_close(data);
        return status;
    }
    if (data->release == end_loan)
        *(lent *)data->memory = (lent){a->owner, a->release};
    else if (a->release)
        a->release(a->owner);
    *out = data;
    return QN_OK;
}

/* Of values that are brought into the order of a table first. */
static qn_status make_copy(const qn_data_arrays *a, qn_data **out, qn_error *err) {
    qn_data_arrays own = *a;
    int finite;
    qn_status status = qn__data_check_arrays(a->type, a->items, a->features, a->values, NULL, err);
    if (status != QN_OK)
        return status;
    float *values = qn__alloc(a->items, a->features * sizeof *values, err);
    if (!values)
        return QN_MEMORY;
    own.values = values;
    status = qn__arrays_copy(a, values, &finite, err);
    if (status == QN_OK)
        status = make(&own, a, TAKE, finite, out, err);
    if (status != QN_OK)
        qn__free(values);
    return status;
}

void qn_data_arrays_init(qn_data_arrays *arrays) {
    if (arrays)
        *arrays = (qn_data_arrays){.size = sizeof *arrays, .type = QN_F32};
}

qn_status qn_data_from_arrays(qn_data_type type, uint64_t items, uint32_t features,
                              const void *values, const int32_t *labels, qn_data **out,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(values, err);
    const qn_data_arrays a = {
        .type = type, .items = items, .features = features, .values = values, .labels = labels};
    return make(&a, &a, COPY, 0, out, err);
}

qn_status qn_data_lend(const qn_data_arrays *arrays, qn_data **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(arrays, err);
    qn_data_arrays a;
    qn_data_arrays_init(&a);
    const qn_status status = qn__sized_take(QN__SIZED("arrays", qn_data_arrays), arrays, &a, err);
    if (status != QN_OK)
        return status;
    if (!a.values)
        return qn__fail_null(err, __func__, "arrays->values");
    return qn__arrays_differ(&a) && !is_corpus(&a) ? make_copy(&a, out, err)
                                                   : make(&a, &a, LEND, 0, out, err);
}

qn_status qn__data_take(const qn_data_arrays *arrays, qn_data **out, qn_error *err) {
    return make(arrays, arrays, TAKE, 0, out, err);
}
