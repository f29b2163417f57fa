#include "data/parts/parts_memory.h"
#include "base/memory.h"
#include "data/cells/text_set.h"
#include "data/table/remote_rows.h"
#include <string.h>

static void keep(void *memory) { (void)memory; }

int qn__parts_is_lent(const qn_data *own) { return own->release == keep; }

static qn_status check(const qn_data *given, qn_error *err) {
    const char *what = qn__data_remote(given)             ? "a table that is in parts already"
                       : given->context || *given->tokens ? "a table of tokens"
                       : given->several                   ? "a table of several labels"
                       : given->names                     ? "a table of images of files"
                                                          : NULL;
    if (!what)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "%s cannot be a part", what);
    return qn__remedy(err, QN_UNSUPPORTED, "give a table of numbers and categories");
}

/* ------------------------------------------------------------------ copies */

static int copy_array(void *to, const void *from, const qn_data *data, qn_error *err) {
    void **place = to;
    *place = from ? qn__alloc(data->items, sizeof(int32_t), err) : NULL;
    if (*place)
        memcpy(*place, from, (size_t)data->items * sizeof(int32_t));
    return !from || *place;
}

/* The values of a view lie in other places. */
static qn_status copy_values(const qn_data *given, qn_data *own, qn_error *err) {
    const size_t stride = qn__data_stride(given);
    uint8_t *to = qn__alloc(given->items, stride, err);
    if (!to)
        return QN_MEMORY;
    for (uint64_t i = 0; i < given->items; i++)
        memcpy(to + i * stride, qn__data_item(given, i), stride);
    own->memory = to;
    own->release = qn__free;
    own->values = to;
    own->index = NULL;
    own->in_file = NULL;
    return QN_OK;
}

/* All that a table owns, but its values. */
static qn_status copy(const qn_data *given, qn_data *own, qn_error *err) {
    *own = *given;
    own->index = NULL;
    own->late = NULL;
    own->values_digest = NULL;
    own->label_columns = NULL;
    own->tokenizer = own->note = NULL;
    own->names = NULL;
    own->words = NULL;
    own->window = NULL;
    own->wide = NULL;
    own->kept = NULL;
    own->listed = NULL;
    own->several = NULL;
    own->buffer = NULL;
    own->remote = NULL;
    own->weight_name = NULL;
    own->labels = NULL;
    own->targets = own->weights = NULL;
    own->schema = NULL;
    own->mapped = 0;
    own->memory = NULL;
    own->release = keep;
    const int copied = copy_array(&own->labels, given->labels, given, err) &&
                       copy_array(&own->targets, given->targets, given, err) &&
                       copy_array(&own->weights, given->weights, given, err);
    if (copied && given->schema)
        own->schema = qn__schema_copy(given->schema, err);
    if (copied && given->weight_name)
        own->weight_name = qn__copy_text(given->weight_name, err);
    if (!copied || !given->schema != !own->schema || !given->weight_name != !own->weight_name)
        return QN_MEMORY;
    return given->index ? copy_values(given, own, err) : QN_OK;
}

/* ------------------------------------------------------------------ quantities */

static qn_status quantities(const qn_data *own, float *number, qn_error *err) {
    for (uint32_t k = 0; k < own->classes; k++) {
        const char *text =
            own->schema && k < own->schema->classes ? own->schema->class_name[k] : NULL;
        double value = k;
        if (text && !qn__class_value(&(qn__cell){.text = text, .size = strlen(text)}, &value))
            return qn__fail(err, QN_INPUT, "the class \"%.80s\" is not a number", text);
        number[k] = (float)value;
    }
    return QN_OK;
}

static qn_status make_real(qn_data *own, qn_error *err) {
    float *number = qn__alloc(own->classes, sizeof *number, err);
    float *targets = number ? qn__alloc(own->items, sizeof *targets, err) : NULL;
    qn_status status = targets ? quantities(own, number, err) : QN_MEMORY;
    for (uint64_t i = 0; status == QN_OK && i < own->items; i++)
        targets[i] = number[own->labels[i]];
    qn__free(number);
    if (status != QN_OK) {
        qn__free(targets);
        return status;
    }
    qn__free(own->labels);
    own->labels = NULL;
    own->classes = 0;
    own->targets = targets;
    if (own->schema)
        qn__schema_drop_classes(own->schema);
    return QN_OK;
}

qn_status qn__parts_lend(const qn_data *given, const qn_data_options *options, qn_data **out,
                         qn_error *err) {
    qn_status status = check(given, err);
    *out = status == QN_OK ? qn__alloc(1, sizeof **out, err) : NULL;
    if (!*out)
        return status == QN_OK ? QN_MEMORY : status;
    status = copy(given, *out, err);
    if (status == QN_OK && (*out)->labels && options->task && strcmp(options->task, "regress") == 0)
        status = make_real(*out, err);
    return status;
}
