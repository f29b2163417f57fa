#include "model/formats/recipe_options.h"

#include "base/memory.h"
#include "base/sized.h"
#include "data/cells/commas.h"
#include "data/table/data.h"
#include "data/table/picture.h"
#include "data/table/rules.h"
#include "data/table/shape.h"
#include "image/augment_text.h"
#include "layer/axes.h"
#include "model/formats/model.h"
#include "model/recipe/defaults.h"
#include "model/recipe/adapters.h"
#include "model/recipe/freeze.h"
#include "model/recipe/model_source.h"
#include "model/recipe/option_rows.h"
#include "model/recipe/scale_numbers.h"
#include "model/recipe/several_targets.h"
#include "model/recipe/stages.h"
#include "model/recipe/tables.h"
#include "model/recipe/tokens_for.h"
#include <quern/defaults.h>
#include <stdio.h>
#include <stdlib.h>

/* Categories that a column may have however few items there are. */
enum { CATEGORIES_ALWAYS = 100 };
/* The gradient scale where nothing is said, and what it is then with lbfgs. */
enum { USUAL_SCALE = 44, FULL_BATCH_SCALE = 32 };

/* Finds a name; without one the first row of the table, which is the default. */
static qn_status find(const qn__table *table, const char *name, int *value, qn_error *err) {
    *value = table->row[0].value;
    return name != NULL ? qn__table_find(table, name, value, err) : QN_OK;
}

/* Means and deviations that are asked for. */
static qn_status find_scale_numbers(const char *given, qn__recipe *r, qn_error *err) {
    qn__scale_numbers numbers;
    char text[QN__SCALE_NUMBERS_TEXT];
    const qn_status status = qn__scale_numbers_parse(given, &numbers, err);
    if (status != QN_OK)
        return status;
    if (r->init_scale == QN__INIT_SCALE_KEEP) {
        qn__fail(err, QN_USAGE, "the scaling of a model is kept, and numbers for it are given");
        qn__at(err, "`train.scale`, `train.init_scale`");
        return qn__remedy(err, QN_USAGE, "leave one of them out");
    }
    qn__scale_numbers_text(&numbers, text);
    r->scale = QN__SCALE_CHANNEL;
    r->scale_numbers = qn__copy_text(text, err);
    return r->scale_numbers ? QN_OK : QN_MEMORY;
}

/* The numbers of a network that was imported with them: its layers know no other inputs. */
static const char *numbers_of_start(const qn_train_options *o) {
    return o->init_from && !o->init_scale ? qn__model_recipe_of(o->init_from)->scale_numbers : NULL;
}

/* What is asked for, or what suits the model to start from or the data. `picture`: what
 * qn__is_picture says of it; `texts`: it has nothing but texts. */
static qn_status find_scale(const qn_train_options *o, int picture, int texts, qn__recipe *r,
                            qn_error *err) {
    int scale;
    if (o->scale != NULL && qn__scale_numbers_meant(o->scale))
        return find_scale_numbers(o->scale, r, err);
    if (o->scale != NULL) {
        const qn_status status = qn__table_find(&qn__scalings, o->scale, &scale, err);
        r->scale = status == QN_OK ? (qn__scale)scale : r->scale;
        return status;
    }
    if (r->init_scale == QN__INIT_SCALE_KEEP) {
        r->scale = qn__model_recipe_of(o->init_from)->scale;
        return QN_OK;
    }
    if (numbers_of_start(o))
        return find_scale_numbers(numbers_of_start(o), r, err);
    r->scale = r->tokens ? QN__SCALE_NONE : qn__default_scale(picture, texts, r->arith);
    return QN_OK;
}

/* `what` of the model differs from what is asked for; NULL: there is no model. */
static qn_status refuse_keep(const char *what, qn_error *err) {
    if (what)
        qn__fail(err, QN_MISMATCH, "the model to start from has another %s, which cannot be kept",
                 what);
    else
        qn__fail(err, QN_USAGE, "there is no model whose scaling could be kept");
    qn__at(err, "`train.init_scale`");
    return qn__remedy(err, what ? QN_MISMATCH : QN_USAGE,
                      what ? "leave out `train.scale` and `train.missing`, and give data with the "
                             "columns of that model"
                           : "name it with `train.init_from`");
}

/* The scaling has a factor for each input: the columns of texts must have as many, each of them. */
static int has_inputs_of(const qn__schema *a, const qn__schema *b) {
    const uint32_t features = a && b ? a->features : 0;
    if (qn__schema_text_inputs(a) != qn__schema_text_inputs(b))
        return 0;
    for (uint32_t k = 0; k < features && k < b->features; k++)
        if (!qn__grams_equal(a->feature[k].grams, a->feature[k].text, b->feature[k].grams,
                             b->feature[k].text))
            return 0;
    return 1;
}

/* What is kept of the model must be what the recipe needs. */
static qn_status check_keep(const qn_model *model, const qn__recipe *r, qn_error *err) {
    if (r->init_scale == QN__INIT_SCALE_FIT)
        return QN_OK;
    const qn__recipe *from = qn__model_recipe_of(model);
    const char *what = from->scale != r->scale                       ? "scaling"
                       : from->missing != r->missing                 ? "rule for missing values"
                       : from->task != r->task                       ? "task"
                       : from->features != r->features               ? "number of columns"
                       : !has_inputs_of(from->table, r->table)       ? "number of words"
                       : qn__scale_count(from) != qn__scale_count(r) ? "number of channels"
                                                                     : NULL;
    return what ? refuse_keep(what, err) : QN_OK;
}

static qn_status find_names(const qn_train_options *o, const qn_data *data, int picture,
                            qn__recipe *r, qn_error *err) {
    int loss = (int)qn__default_loss(r->task), init_scale;
    int keep = o->patience > 0 ? QN__KEEP_BEST : QN__KEEP_LAST;
    qn_status status = o->loss ? qn__table_find(&qn__losses, o->loss, &loss, err) : QN_OK;
    if (status == QN_OK)
        status = find(&qn__init_scales, o->init_scale, &init_scale, err);
    if (status == QN_OK && o->keep != NULL)
        status = qn__table_find(&qn__keeps, o->keep, &keep, err);
    if (status != QN_OK)
        return status;
    r->loss = (qn__loss)loss;
    r->keep = (qn__keep)keep;
    r->init_scale = o->init_from ? (qn__init_scale)init_scale : QN__INIT_SCALE_FIT;
    if (r->init_scale != (qn__init_scale)init_scale)
        return refuse_keep(NULL, err);
    if (r->init_scale == QN__INIT_SCALE_KEEP && r->missing == QN__MISSING_ERROR)
        r->missing = qn__model_recipe_of(o->init_from)->missing;
    return find_scale(o, picture, qn__schema_texts(data->schema) == data->features, r, err);
}

/* The numbers that depend on the optimiser and on the data. */
static void find_numbers(const qn_train_options *o, const qn__default_case *of, qn__recipe *r) {
    const int given =
        o->optimizer != NULL || r->optimizer != qn__default_optimizer(of, QN_BY_OPTIMIZER);
    r->learning_rate = o->learning_rate == QN_BY_OPTIMIZER
                           ? qn__default_learning_rate(of, r->optimizer, given)
                           : o->learning_rate;
    r->momentum = o->momentum == QN_BY_OPTIMIZER ? qn__default_momentum(r->optimizer) : o->momentum;
    r->weight_decay =
        o->weight_decay == QN_BY_OPTIMIZER ? qn__default_weight_decay(of, given) : o->weight_decay;
    r->batch = o->batch == QN_BY_DATA ? qn__default_batch(of) : o->batch;
    r->epochs =
        o->epochs == QN_BY_DATA ? qn__default_epochs(of, r->optimizer, r->batch) : o->epochs;
    const uint64_t pixels =
        qn__recipe_needs_shape(r) ? (uint64_t)r->shape.height * r->shape.width : 0;
    const uint32_t grain = r->task == QN__TASK_NEXT ? qn__default_grain_of_tokens(r->features - 1)
                                                    : qn__default_grain(pixels);
    r->grain = o->grain == QN_BY_DATA ? grain : o->grain;
    if (!o->schedule)
        r->schedule = qn__default_schedule(of, given);
}

static qn_status find_optimizer(const qn_train_options *o, const qn__default_case *of,
                                qn__recipe *r, qn_error *err) {
    int optimizer = (int)qn__default_optimizer(of, o->momentum), schedule = 0;
    qn_status status = QN_OK;
    if (o->optimizer)
        status = qn__table_find(&qn__optimizers, o->optimizer, &optimizer, err);
    if (status == QN_OK && o->schedule)
        status = qn__table_find(&qn__schedules, o->schedule, &schedule, err);
    if (status != QN_OK)
        return status;
    r->optimizer = (qn__optimizer)optimizer;
    r->schedule = (qn__schedule)schedule;
    find_numbers(o, of, r);
    return QN_OK;
}

/* A gradient is the sum of more grains than that of a batch, and each has less capacity. */
static void find_unit(qn__recipe *r) {
    if (r->optimizer == QN__OPT_LBFGS && r->gradient_scale == USUAL_SCALE)
        r->gradient_scale = FULL_BATCH_SCALE;
}

/* What is asked for, what the data knows, or what it was when the model was made. */
static qn_status find_shape(const qn_train_options *o, const qn_data *data, qn__recipe *r,
                            qn_error *err) {
    uint32_t given[3] = {qn_data_image_channels(data), 0, 0};
    qn_data_image_size(data, &given[1], &given[2]);
    const qn_status status =
        o->shape ? qn__shape_read(o->shape, "`train.shape`", given, err) : QN_OK;
    r->shape = (qn__shape){given[0], given[1], given[2], QN__PICTURE};
    const qn_model *known = o->table_of ? o->table_of : !o->model ? o->init_from : NULL;
    if (!given[0] && known)
        r->shape = qn__model_recipe_of(known)->shape;
    return status;
}

/* In the form that recipes have. */
static qn_status find_augment(const qn_train_options *o, qn__recipe *r, qn_error *err) {
    qn__augment augment;
    qn__text text = {0};
    const qn_status status = qn__augment_parse(o->augment, &augment, err);
    if (status != QN_OK || augment.words == 0)
        return status;
    qn__augment_add_text(&augment, &text);
    r->augment = qn__text_take(&text, err);
    return r->augment ? QN_OK : QN_MEMORY;
}

/* Fewer classes than outputs would train, and is hardly ever meant. Tokens have no classes. */
static qn_status check_outputs(const qn__labels_like *labels, const qn__recipe *r, qn_error *err) {
    const qn__layer_text *last = &r->network.layer[r->network.layers - 1];
    if (labels->task != QN__TASK_CLASSIFY || last->activation != QN__ACT_SOFTMAX ||
        last->out == labels->classes || labels->classes == 0)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "the model to start from has %u outputs, and the data %u classes",
             last->out, labels->classes);
    qn__at(err, "`train.init_from`");
    return qn__remedy(err, QN_MISMATCH,
                      "for these classes add `train.new_last`; to keep all outputs, give the "
                      "layers of that model with `train.model`");
}

/* The layers of the model to start from; a new last one is the default of the labels. */
static qn_status take_network(const qn_model *model, const qn__labels_like *labels, qn__recipe *r,
                              qn_error *err) {
    char text[QN__DEFAULT_LAST_CAPACITY];
    r->network = qn__model_recipe_of(model)->network;
    if (!r->new_last)
        return check_outputs(labels, r, err);
    if (labels->task == QN__TASK_CLASSIFY && labels->classes == 0)
        return qn__recipe_refuse(
            err, "`train.new_last`", "leave it out, or give all layers with `train.model`",
            qn__fail(err, QN_USAGE, "the data has no classes for new outputs"));
    qn__default_last(labels->task, labels->loss, labels->classes, text);
    qn__network *last = qn__alloc(1, sizeof *last, err); /* large for a stack */
    const qn_status status = last ? qn__network_parse(text, last, err) : QN_MEMORY;
    qn__layer_text *own = &r->network.layer[r->network.layers - 1];
    if (status == QN_OK) {
        /* Class heads of GPT-2 and Llama have no biases, and transformers has no place for them. */
        last->layer[0].no_biases = r->network.layer[0].kind == QN__LAYER_EMBEDDING &&
                                   own->kind == QN__LAYER_DENSE &&
                                   last->layer[0].kind == QN__LAYER_DENSE && own->no_biases;
        *own = last->layer[0];
    }
    qn__free(last);
    return status;
}

static int attends(const qn__network *network) {
    for (uint32_t l = 0; l < network->layers; ++l)
        if (network->layer[l].kind == QN__LAYER_ATTENTION)
            return 1;
    return 0;
}

/* `of->table` says whether the data is one, and is 0 after it for a network on pixels. */
static qn_status find_network(const qn_train_options *o, const qn_data *data, qn__default_case *of,
                              qn__recipe *r, qn__model_source *source, qn_error *err) {
    const qn__labels_like labels = {r->task, r->loss, qn__width_for(data), qn__tokens_for(data)};
    char model[QN__DEFAULT_MODEL_CAPACITY] = "";
    qn_status status = find_shape(o, data, r, err);
    of->table = of->table && r->shape.height == 0;
    if (status == QN_OK && o->model == NULL && o->init_from) {
        status = take_network(o->init_from, &labels, r, err);
        of->attention = attends(&r->network);
        return status;
    }
    if (o->model == NULL)
        qn__default_model(of, r->loss, qn__width_for(data), model);
    if (status == QN_OK)
        status = qn__model_source_open(o->model != NULL ? o->model : model, &labels, source, err);
    if (status == QN_OK)
        status = qn__model_source_parse(source, &r->network, err);
    of->text &= status == QN_OK && r->network.layers == 1;
    of->attention = attends(&r->network);
    return status;
}

static qn_status check_scale(const qn__recipe *r, const qn_data *data, qn_error *err) {
    if (!qn__recipe_needs_bytes(r) || qn_data_type_of(data) == QN_U8)
        return qn__recipe_check_windows(data, "the training data", err) == QN_OK
                   ? qn__recipe_check_tokens(r, data, "the training data", err)
                   : QN_INPUT;
    qn__fail(err, QN_USAGE,
             "the scaling \"%s\" is for bytes; the data's values are not all whole "
             "numbers from 0 to 255",
             qn__table_name(&qn__scalings, (int)r->scale));
    qn__at(err, "`train.scale`");
    return qn__remedy(err, QN_USAGE, "use `train.scale` standard, or `train.scale` none");
}

/* Layers that are not alike differ in what this tells: text, shape of the input, and in blocks also
 * the layers that they read. */
static void tell_layer(qn__text *to, const qn__layer_text *text, const qn__layer *layer, uint32_t l,
                       int reads) {
    char input[QN__SHAPE_TEXT];
    qn__text_add(to, "\"");
    qn__network_layer_text(text, to);
    qn__text_add(to, "\" for an input of %s", qn__shape_text(layer[l].from, input));
    if (reads && qn__layer_source(layer, l) < 0)
        qn__text_add(to, ", which is the network's");
    else if (reads)
        qn__text_add(to, " from layer %d", qn__layer_source(layer, l));
    if (reads && qn__layer_joins(&layer[l]) && qn__layer_other(layer, l) < 0)
        qn__text_add(to, " and the network's");
    else if (reads && qn__layer_joins(&layer[l]))
        qn__text_add(to, " and layer %d", qn__layer_other(layer, l));
}

static void fail_layer(const qn_model *model, const qn__network *own, uint32_t l,
                       const qn__layer *from, const qn__layer *layer, qn_error *err) {
    const int reads = from[l].skip != layer[l].skip || from[l].other != layer[l].other;
    qn__text one = {0}, other = {0};
    tell_layer(&one, &qn__model_recipe_of(model)->network.layer[l], from, l, reads);
    tell_layer(&other, &own->layer[l], layer, l, reads);
    qn__fail(err, QN_MISMATCH, "layer %u of the model to start from is %s, that of this network %s",
             l, one.data ? one.data : "another", other.data ? other.data : "another");
    free(one.data);
    free(other.data);
}

/* With a new last layer the classes are those of the data; its columns must be the model's. */
static qn_status check_columns(const qn_model *model, const qn_data *data, qn_error *err) {
    const qn__schema *table = qn__model_recipe_of(model)->table, *own = data->schema;
    char one[128], other[128];
    if (!table || !own || table->features != own->features)
        return QN_OK; /* the layers tell */
    qn__schema *joined = qn__schema_join(own, table, NULL, table->features, err);
    if (!joined)
        return QN_MEMORY;
    const int differs = qn__schema_difference(joined, own, one, other);
    qn__schema_free(joined);
    if (!differs)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "the model to start from has %s, the data %s", one, other);
    qn__at(err, "`train.new_last`");
    return qn__remedy(err, QN_MISMATCH, "give the columns of that model, in their order");
}

/* What to do where layer `l` is the first that differs. */
static qn_status help_start(const qn_model *model, uint32_t layers, uint32_t l,
                            const qn__program *from, const qn__layer *layer, qn_error *err) {
    const int same_input = l < from->layers && l < layers &&
                           memcmp(&from->layer[l].from, &layer[l].from, sizeof layer[l].from) == 0;
    const char *resize = qn_model_resize(model);
    if (same_input && from->layers == layers && l + 1 == from->layers)
        return qn__remedy(err, QN_MISMATCH,
                          "for other classes set `train.new_last`; or give `train.model` and the "
                          "columns of that model");
    const int other_size =
        l == 0 && !same_input && from->layer[0].from.channels == layer[0].from.channels;
    if (other_size && resize && *resize)
        return qn__remedy(err, QN_MISMATCH,
                          "make the images as large as those of that model: `data.resize` \"%s\"",
                          resize);
    const qn__shape size = from->layer[0].from;
    if (other_size)
        return qn__remedy(
            err, QN_MISMATCH,
            "give images of %ux%u pixels, as that model was trained on (`train.shape`, "
            "`data.resize`)",
            size.height, size.width);
    return qn__remedy(err, QN_MISMATCH,
                      "leave out `train.model`, so that the layers are those of that model, and "
                      "give its columns");
}

/* The networks of a recipe and of the model that it starts from. Together they are more than a
 * stack should hold. */
typedef struct beginning {
    qn__layer layer[QN__MAX_LAYERS];
    qn__network own;
    qn__program from;
} beginning;

static qn_status compare_start(const qn_model *model, const qn__recipe *r, beginning *b,
                               qn_error *err) {
    uint64_t parameters;
    if (qn__recipe_check_base(r, &qn__model_recipe_of(model)->network, err) != QN_OK)
        return QN_USAGE;
    qn__recipe_start(r, &b->own);
    qn__model_program(model, &b->from);
    qn_status status =
        qn__network_program(&b->own, qn__recipe_input(r), b->layer, &parameters, err);
    uint32_t l = 0;
    while (status == QN_OK && l < b->from.layers && l < b->own.layers &&
           qn__layer_alike(&b->from.layer[l], &b->layer[l]))
        ++l;
    if (r->new_last && b->from.layers == b->own.layers && l + 1 == b->from.layers &&
        memcmp(&b->from.layer[l].from, &b->layer[l].from, sizeof b->layer[l].from) == 0)
        ++l;
    if (status != QN_OK || (l == b->from.layers && l == b->own.layers))
        return status;
    if (l == b->from.layers || l == b->own.layers)
        qn__fail(err, QN_MISMATCH, "the model to start from has %u layers, this network has %u",
                 b->from.layers, b->own.layers);
    else
        fail_layer(model, &b->own, l, b->from.layer, b->layer, err);
    qn__at(err, "`train.init_from`");
    return help_start(model, b->own.layers, l, &b->from, b->layer, err);
}

/* The parameters of `model` must be those of the recipe's network; with a new last layer those
 * before it. */
static qn_status check_start(const qn_model *model, const qn__recipe *r, qn_error *err) {
    if (!model)
        return QN_OK;
    beginning *b = qn__alloc(1, sizeof *b, err);
    const qn_status status = b ? compare_start(model, r, b, err) : QN_MEMORY;
    qn__free(b);
    return status;
}

/* Numbers with a decimal comma: read as texts they would be categories. */
static qn_status check_commas(const qn_data *data, qn_error *err) {
    char name[160];
    if (data->comma == 0)
        return QN_OK;
    const uint32_t column = data->comma - 1;
    qn__fail(err, QN_INPUT, "%s holds texts such as \"%.40s\", which may be numbers",
             qn__column_name(data->schema, column, name, sizeof name),
             qn__comma_example(&data->schema->feature[column]));
    return qn__remedy(err, QN_INPUT,
                      "write numbers with a decimal point and no other mark, or leave the column "
                      "out with `data.drop`; where they are categories, name it with "
                      "`data.category`");
}

/* A column whose texts tell items apart, such as names of people, teaches nothing and costs an
 * input for each. */
static qn_status check_categories(const qn_data *data, qn_error *err) {
    char name[160];
    if (check_commas(data, err) != QN_OK)
        return QN_INPUT;
    for (uint32_t k = 0; data->schema && k < data->features; ++k) {
        const uint32_t categories = data->schema->feature[k].categories;
        if (categories <= CATEGORIES_ALWAYS || categories <= data->items / 2 ||
            data->schema->feature[k].text)
            continue;
        qn__fail(err, QN_INPUT, "%s has %u different texts in %llu items",
                 qn__column_name(data->schema, k, name, sizeof name), categories,
                 (unsigned long long)data->items);
        return qn__remedy(
            err, QN_INPUT,
            "names and identifiers do not help to predict other items: leave the column out with "
            "`data.drop`; where its words do, name it with `data.text`");
    }
    return QN_OK;
}

/* Labels of data that is read for a model may have one text alone; a new model needs both. */
static qn_status check_label_texts(const qn__schema *table, qn_error *err) {
    for (uint32_t k = 0; table->label_value && k < table->classes; ++k)
        if (table->label_value[2 * k] && !table->label_value[2 * k + 1]) {
            qn__fail(err, QN_INPUT, "the only text of the label \"%.80s\" is \"%.60s\"",
                     table->class_name[k], table->label_value[2 * k]);
            return qn__remedy(err, QN_INPUT,
                              "write 0 and 1, or leave the column out of the labels");
        }
    return QN_OK;
}

/* The names, where a model has any to remember. */
static qn_status find_table(const qn_train_options *o, const qn_data *data, qn__recipe *r,
                            qn_error *err) {
    const qn__schema *table = o->table_of ? qn__model_recipe_of(o->table_of)->table : data->schema;
    if (qn__schema_is_trivial(table))
        return QN_OK;
    if (check_categories(data, err) != QN_OK || check_label_texts(table, err) != QN_OK)
        return QN_INPUT;
    r->table = qn__schema_copy(table, err);
    for (uint32_t k = 0; r->table && k < r->table->features; ++k)
        if (r->table->feature[k].exact == QN__EXACT_MOMENT) /* a date is enough to know */
            r->table->feature[k].exact = QN__EXACT_NONE;
    for (uint32_t k = 0; r->table && k < r->table->features; ++k)
        if (r->table->feature[k].text) /* its words are enough to know */
            qn__feature_drop_categories(&r->table->feature[k]);
    return r->table ? QN_OK : QN_MEMORY;
}

/* Weights of items and of classes. The table is known. */
static qn_status find_weights(const qn_train_options *o, const qn_data *data, qn__recipe *r,
                              qn_error *err) {
    const qn__class_names names = qn__recipe_class_names(r);
    /* A replay reads another file, perhaps, but writes the recipe that it replays. */
    const qn_model *same = o->table_of != o->init_from ? o->table_of : NULL;
    const char *known = same ? qn__model_recipe_of(same)->weight : NULL;
    const char *name = known ? known : data->weight_name ? data->weight_name : "";
    if (data->weights && !(r->weight = qn__copy_text(name, err)))
        return QN_MEMORY;
    if (o->class_weight && (r->task == QN__TASK_REGRESS || qn__recipe_is_several(r)))
        /* qn__recipe_check refuses it */
        return (r->class_weight = qn__copy_text(o->class_weight, err)) ? QN_OK : QN_MEMORY;
    return qn__class_weight_tidy(o->class_weight, &names, &r->class_weight, err);
}

/* How the images were made, or those of the recipe that is replayed: the data may be their pixels.
 */
static qn_status find_resize(const qn_train_options *o, const qn_data *data, qn__recipe *r,
                             qn_error *err) {
    char text[QN__RESIZE_TEXT];
    const qn_model *same = o->table_of != o->init_from ? o->table_of : NULL;
    qn__resize_text(&data->resize, text);
    const char *how = same ? qn__model_recipe_of(same)->resize : *text ? text : NULL;
    r->resize = how ? qn__copy_text(how, err) : NULL;
    return r->resize || !how ? QN_OK : QN_MEMORY;
}

/* The rules by which the data was read, or those of the recipe that is replayed. */
static qn_status find_rules(const qn_train_options *o, const qn_data *data, qn__recipe *r,
                            qn_error *err) {
    char text[QN_RULES_TEXT];
    const qn_model *same = o->table_of != o->init_from ? o->table_of : NULL;
    const uint32_t others = data->rules & ~(uint32_t)(QN__RULE_EXACT | QN__RULE_TEXT);
    qn__rules_text(others | (qn__wide_features(r->table) ? QN__RULE_EXACT : 0u) |
                       (qn__schema_texts(r->table) ? QN__RULE_TEXT : 0u),
                   text);
    const char *rules = same ? qn__model_recipe_of(same)->rules : *text ? text : NULL;
    r->rules = rules ? qn__copy_text(rules, err) : NULL;
    return r->rules || !rules ? QN_OK : QN_MEMORY;
}

/* How dates were written; a replay keeps what the recipe says. */
static qn_status find_date_format(const qn_train_options *o, const qn_data *data, qn__recipe *r,
                                  qn_error *err) {
    const qn_model *same = o->table_of != o->init_from ? o->table_of : NULL;
    const char *format = same                 ? qn__model_recipe_of(same)->date_format
                         : *data->date_format ? data->date_format
                                              : NULL;
    r->date_format = format ? qn__copy_text(format, err) : NULL;
    return r->date_format || !format ? QN_OK : QN_MEMORY;
}

/* A replay draws the random numbers of the recipe; a new training those of today's rule. */
static void keep_new_last(const qn_train_options *o, qn__recipe *r) {
    const qn_model *same = o->table_of != o->init_from ? o->table_of : NULL;
    if (r->new_last && same && qn__model_recipe_of(same)->new_last)
        r->new_last = qn__model_recipe_of(same)->new_last;
}

/* How tokens were made; a replay keeps what the recipe says. */
static qn_status find_tokens(const qn_train_options *o, const qn_data *data, qn__recipe *r,
                             qn_error *err) {
    const qn_model *same = o->table_of != o->init_from ? o->table_of : NULL;
    const char *tokens = same ? qn__model_recipe_of(same)->tokens : qn_data_tokens(data);
    r->tokens = tokens ? qn__copy_text(tokens, err) : NULL;
    r->context = same ? qn__model_recipe_of(same)->context : qn_data_context(data);
    if (r->context != qn_data_context(data)) {
        qn__fail(err, QN_MISMATCH,
                 r->context ? "the model was trained on a corpus, and this data is not one"
                            : "the model was not trained on a corpus");
        return qn__remedy(err, QN_MISMATCH, "give the data that it was trained on");
    }
    const char *text = same ? qn__model_recipe_of(same)->tokenizer : qn_data_tokenizer(data);
    r->tokenizer = text ? qn__copy_text(text, err) : NULL;
    return (r->tokens || !tokens) && (r->tokenizer || !text) ? QN_OK : QN_MEMORY;
}

static int has_tables(const qn__recipe *r) {
    int has = 0;
    for (uint32_t l = 0; l < r->network.layers; ++l)
        has |= qn__layer_ops_of(r->network.layer[l].kind)->bound != NULL;
    return has;
}

/* What decays (25.16); without decay nothing does. */
static qn_status find_decay(const qn_train_options *o, qn__recipe *r, qn_error *err) {
    int on = has_tables(r) ? QN__DECAY_MATRICES : QN__DECAY_WEIGHTS;
    const int none = r->weight_decay == 0.0f || r->optimizer == QN__OPT_LBFGS;
    const qn_status status = o->decay_on ? find(&qn__decays, o->decay_on, &on, err) : QN_OK;
    if (status != QN_OK)
        return status;
    if (o->decay_on && none && on != QN__DECAY_WEIGHTS)
        return qn__recipe_refuse(
            err, "`train.decay_on`", "give `train.weight_decay` too, or leave it out",
            qn__fail(err, QN_USAGE, "nothing decays %s",
                     r->optimizer == QN__OPT_LBFGS ? "with the optimizer \"lbfgs\""
                                                   : "with the weight decay 0"));
    r->decay_on = none ? QN__DECAY_WEIGHTS : (qn__decay)on;
    return QN_OK;
}

/* 25.25. What does not fit is refused with the recipe. */
static qn_status find_attention(const qn_train_options *o, qn__recipe *r, qn_error *err) {
    int arith = QN__ATTENTION_FLOAT32;
    const qn_status status =
        o->attention_arith ? find(&qn__attention_ariths, o->attention_arith, &arith, err) : QN_OK;
    r->attention_arith = (qn__attention_arith)arith;
    return status;
}

/* The stages say how many epochs there are. */
static qn_status check_epochs(const qn_train_options *o, const qn__recipe *r, qn_error *err) {
    qn_train_options usual;
    qn_train_options_init(&usual);
    if (!o->stages || o->epochs == usual.epochs || o->epochs == r->epochs)
        return QN_OK;
    qn__fail(err, QN_USAGE, "`train.epochs` is not the sum of the epochs of `train.stages`");
    return qn__remedy(err, QN_USAGE, "leave it out: each stage says its epochs");
}

static qn_status refuse_unlabelled(qn_error *err) {
    qn__fail(err, QN_INPUT, "the training data has no labels");
    return qn__remedy(err, QN_INPUT,
                      "IDX, NPY: give the file of labels too (`data.labels_path`); CSV: "
                      "`data.label_column` says which column holds them; tokens: begin "
                      "`train.model` with \"embedding\" to learn which token comes next");
}

/* Tokens are not scaled. Where they have no labels, each is the target of those before it. */
static void find_task(const qn_train_options *o, const qn_data *data, qn__recipe *r) {
    if (!qn__recipe_vocabulary(r))
        return;
    if (!o->scale)
        r->scale = QN__SCALE_NONE;
    if (!qn__data_labelled(data))
        r->task = QN__TASK_NEXT;
    r->network.next = r->task == QN__TASK_NEXT;
}

static qn_status fill(const qn_train_options *options, const qn_data *data, qn__recipe *r,
                      qn__model_source *source, qn_error *err) {
    snprintf(r->data, sizeof r->data, "%s", qn_data_digest(data));
    r->items = qn_data_items(data);
    r->features = qn_data_features(data);
    r->task = qn__task_of(data);
    const int picture = qn__is_picture(data, err);
    if (picture < 0)
        return QN_MEMORY;
    qn__default_case of = {r->task, !picture, r->items, qn__schema_texts(data->schema) > 0, 0};
    if (!qn__data_labelled(data) && !options->model && !options->init_from)
        return refuse_unlabelled(err);
    qn_status status = qn__options_take(options, r, err);
    if (status == QN_OK)
        status = find_tokens(options, data, r, err);
    if (status == QN_OK)
        status = find_names(options, data, picture, r, err);
    if (status == QN_OK)
        status = find_network(options, data, &of, r, source, err);
    if (status == QN_OK)
        find_task(options, data, r);
    of.task = r->task;
    if (status == QN_OK && r->task != QN__TASK_NEXT && !qn__data_labelled(data))
        return refuse_unlabelled(err);
    if (status == QN_OK)
        status = find_augment(options, r, err);
    if (status == QN_OK)
        status = qn__recipe_take_lora(options->lora, r, err);
    if (status == QN_OK)
        status = qn__freeze_tidy(options->freeze, r->network.layers, &r->freeze, err);
    if (status == QN_OK)
        status = find_optimizer(options, &of, r, err);
    if (status == QN_OK)
        status = find_decay(options, r, err);
    if (status == QN_OK)
        status = find_attention(options, r, err);
    if (status == QN_OK)
        status = find_table(options, data, r, err);
    if (status == QN_OK)
        status = find_weights(options, data, r, err);
    if (status == QN_OK)
        status = find_resize(options, data, r, err);
    if (status == QN_OK)
        status = find_rules(options, data, r, err);
    if (status == QN_OK)
        status = find_date_format(options, data, r, err);
    if (status == QN_OK && r->optimizer == QN__OPT_LBFGS)
        status = qn__options_check_steps(options, err);
    if (status != QN_OK)
        return status;
    find_unit(r);
    keep_new_last(options, r);
    status = qn__stages_take(options->stages, r, err);
    if (status == QN_OK)
        status = check_epochs(options, r, err);
    if (status != QN_OK)
        return status;
    if (options->init_from)
        snprintf(r->init_from, sizeof r->init_from, "%s", qn_model_digest(options->init_from));
    qn__recipe_tidy(r);
    status = qn__recipe_check(r, err);
    if (status == QN_OK)
        status = check_start(options->init_from, r, err);
    if (status == QN_OK && options->init_from && r->new_last && !options->table_of)
        status = check_columns(options->init_from, data, err);
    if (status == QN_OK)
        status = check_keep(options->init_from, r, err);
    if (status == QN_OK)
        status = check_scale(r, data, err);
    if (status == QN_OK)
        status = qn__recipe_check_set(r, data, "the training data", err);
    if (status == QN_OK)
        status = qn__recipe_check_classes(r, qn_data_classes(data), err);
    return status;
}

qn_status qn__recipe_from_options(const qn_train_options *options, const qn_data *data,
                                  qn__recipe *out, qn_error *err) {
    /* Its layers would fill a third of the stack of a thread. */
    qn__recipe *recipe = qn__alloc(1, sizeof *recipe, err);
    qn__model_source source = {0};
    if (!recipe)
        return QN_MEMORY;
    const qn_status status = fill(options, data, recipe, &source, err);
    if (status == QN_OK)
        *out = *recipe;
    else
        qn__recipe_release(recipe);
    qn__free(recipe);
    if (status != QN_OK)
        qn__model_source_place(&source, err);
    qn__model_source_release(&source);
    return status;
}

void qn__recipe_settle(const qn__recipe *r, qn_train_options *o) {
    const int steps = r->optimizer != QN__OPT_LBFGS;
    if (!o->optimizer)
        o->optimizer = qn__table_name(&qn__optimizers, (int)r->optimizer);
    if (!o->schedule && steps)
        o->schedule = qn__table_name(&qn__schedules, (int)r->schedule);
    if (o->learning_rate == QN_BY_OPTIMIZER && steps)
        o->learning_rate = r->learning_rate;
    if (o->momentum == QN_BY_OPTIMIZER && steps)
        o->momentum = r->momentum;
    if (o->weight_decay == QN_BY_OPTIMIZER)
        o->weight_decay = r->weight_decay;
    if (o->batch == QN_BY_DATA && steps)
        o->batch = r->batch;
    if (o->epochs == QN_BY_DATA)
        o->epochs = r->epochs;
    if (o->grain == QN_BY_DATA)
        o->grain = r->grain;
}

void qn__recipe_to_options(const qn__recipe *r, const char *model_text, qn_train_options *o) {
    o->model = model_text;
    qn__options_give(r, o);
}

qn_status qn__train_options_take(const char *function, const char *argument,
                                 const qn_train_options *given, qn_train_options *own,
                                 qn_error *err) {
    const qn__sized what = {function, argument, "qn_train_options", sizeof *own};
    qn_train_options_init(own);
    qn_status status = qn__sized_take(&what, given, own, err);
    if (status != QN_OK)
        return status;
    char name[64];
    snprintf(name, sizeof name, "%s->compute", argument);
    const qn__sized inner = {function, name, "qn_compute", sizeof own->compute};
    if (own->compute.size != sizeof own->compute)
        status = qn__sized_refuse(&inner, own->compute.size, err);
    if (status == QN_OK)
        status = qn__model_need_network(own->init_from, "`train.init_from`", err);
    if (status == QN_OK)
        status = qn__model_need_network(own->table_of, "a training", err);
    return status;
}
