/* A map is a sum over the last feature maps, weighted by the last layer. So it is what a network
 * gives whose pool is replaced by a convolution of 1x1 pixels with these weights. All devices
 * compute that network as any other. Its last layer is dense, as that of every network: it copies
 * the maps. */
#include "predict/class_maps.h"

#include "base/memory.h"
#include "model/formats/model.h"
#include <math.h>
#include <quern/predict.h>
#include <string.h>

/* Values of the maps that one network gives: the last layer has the square of it as weights. */
enum { MOST_VALUES = 4096 };

/* Classes whose maps one network gives. */
typedef struct group {
    const qn__judged *of;
    const qn__layer *pool, *last;
    const int32_t *class; /* ascending */
    uint32_t classes, pixels;
} group;

/* Whether the mean is that of all pixels. */
static int is_global(const qn__layer *pool) {
    const qn__window *w = &pool->window;
    if (pool->from.axes != QN__PICTURE || pool->to.height != 1 || pool->to.width != 1)
        return 0;
    return pool->kind == QN__LAYER_GLOBALPOOL ||
           (pool->kind == QN__LAYER_AVGPOOL &&
            (pool->fitted || (w->kernel[0] == pool->from.height && w->pad[0] == 0 &&
                              w->kernel[1] == pool->from.width && w->pad[1] == 0)));
}

/* Why there are no maps; NULL: there are. */
static const char *find(const qn__judged *judged, qn__program *program, group *g) {
    static const char other[] = "the network does not end with globalpool and one dense layer";
    if (judged->model->kind != &qn__network_kind || judged->real)
        return other;
    qn__model_program(judged->model, program);
    if (program->layers < 2)
        return other;
    g->last = &program->layer[program->layers - 1];
    g->pool = g->last - 1;
    if (g->last->kind != QN__LAYER_DENSE || !is_global(g->pool))
        return other;
    const uint64_t pixels = (uint64_t)g->pool->from.height * g->pool->from.width;
    g->pixels = (uint32_t)pixels;
    return pixels < 2             ? "the last feature maps have one pixel"
           : pixels > MOST_VALUES ? "the last feature maps have more than 4,096 pixels"
                                  : NULL;
}

/* ------------------------------------------------------------------ the network */

/* With one output for two classes the weights of class 0 are those of class 1, negated. */
static void set_weights(const group *g, const float *from, float *to) {
    const uint32_t channels = g->pool->from.channels;
    const int one = g->last->out == 1;
    for (uint32_t c = 0; c < g->classes; ++c)
        for (uint32_t k = 0; k < channels; ++k) {
            const size_t row = one ? 0 : (size_t)g->class[c];
            const float weight = from[g->last->weights + row * channels + k];
            to[(size_t)c * channels + k] = one && g->class[c] == 0 ? -weight : weight;
        }
}

static float *make_parameters(const group *g, qn_error *err) {
    const size_t first = (size_t)g->last->weights, values = (size_t)g->classes * g->pixels,
                 weights = (size_t)g->classes * g->pool->from.channels;
    const float *from = qn__model_parameters(g->of->model);
    float *made = qn__alloc(first + weights + values * values, sizeof *made, err);
    if (!made)
        return NULL;
    memcpy(made, from, first * sizeof *made);
    set_weights(g, from, made + first);
    memset(made + first + weights, 0, values * values * sizeof *made);
    for (size_t i = 0; i < values; ++i)
        made[first + weights + i * values + i] = 1.0f;
    return made;
}

static void change_network(const group *g, qn__recipe *recipe) {
    qn__layer_text *last = &recipe->network.layer[recipe->network.layers - 1];
    last[-1] = (qn__layer_text){.kind = QN__LAYER_CONV,
                                .out = g->classes,
                                .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                                .no_biases = 1};
    last[0] =
        (qn__layer_text){.kind = QN__LAYER_DENSE, .out = g->classes * g->pixels, .no_biases = 1};
    recipe->arith = QN__ARITH_F32;
    recipe->loss = QN__LOSS_MSE; /* binary has one output only */
}

static qn_status make_model(const group *g, qn_model **out, qn_error *err) {
    qn__recipe recipe = {.contract = 0};
    qn__fitted fitted;
    *out = NULL;
    qn_status status = qn__recipe_copy(qn__model_recipe_of(g->of->model), &recipe, err);
    if (status != QN_OK)
        return status;
    change_network(g, &recipe);
    qn__model_fitted(g->of->model, &fitted);
    float *parameters = make_parameters(g, err);
    fitted.parameter = parameters;
    status = parameters ? qn__model_create(&recipe, &fitted, out, err) : QN_MEMORY;
    qn__free(parameters);
    qn__recipe_release(&recipe);
    return status;
}

/* ------------------------------------------------------------------ its items */

/* The place of a class among those of the group; as many as there are: it is not one. */
static uint32_t place_of(const group *g, int32_t class) {
    uint32_t at = 0;
    while (at < g->classes && g->class[at] != class)
        ++at;
    return at;
}

/* Sets the bits of the group's items in `marks`; returns their number. */
static uint64_t mark(const group *g, uint64_t *marks) {
    uint64_t count = 0;
    memset(marks, 0, (size_t)(g->of->data->items / 64 + 1) * sizeof *marks);
    for (uint32_t i = 0; i < g->of->mistakes; ++i) {
        const qn__mistake *m = &g->of->worst[i];
        if (place_of(g, m->class) == g->classes)
            continue;
        marks[m->item / 64] |= (uint64_t)1 << m->item % 64;
        ++count;
    }
    return count;
}

/* How many marked items stand before this one. */
static uint64_t rank_of(const uint64_t *marks, uint64_t item) {
    uint64_t rank = 0;
    for (uint64_t w = 0; w < item / 64; ++w)
        rank += (uint64_t)__builtin_popcountll(marks[w]);
    const uint64_t before = marks[item / 64] & (((uint64_t)1 << item % 64) - 1);
    return rank + (uint64_t)__builtin_popcountll(before);
}

static void take(const group *g, const uint64_t *marks, const float *output, float *value) {
    const size_t values = (size_t)g->classes * g->pixels;
    for (uint32_t i = 0; i < g->of->mistakes; ++i) {
        const uint32_t c = place_of(g, g->of->worst[i].class);
        if (c == g->classes)
            continue;
        const float *of = output + values * rank_of(marks, g->of->worst[i].item);
        for (uint32_t p = 0; p < g->pixels; ++p)
            value[(size_t)i * g->pixels + p] = of[(size_t)p * g->classes + c];
    }
}

static qn_status apply(const group *g, const qn_compute *compute, uint64_t *marks, float *value,
                       qn_error *err) {
    qn_model *model;
    qn_status status = make_model(g, &model, err);
    if (status != QN_OK)
        return status;
    const uint64_t count = mark(g, marks);
    qn_data *some = qn__data_view(g->of->data, marks, 1, count, err);
    float *output =
        some ? qn__alloc(count, (uint64_t)g->classes * g->pixels * sizeof *output, err) : NULL;
    status = output ? qn_predict(model, some, compute, NULL, NULL, output, err) : QN_MEMORY;
    if (status == QN_OK)
        take(g, marks, output, value);
    qn__free(output);
    qn_data_close(some);
    qn_model_free(model);
    return status;
}

/* ------------------------------------------------------------------ all of it */

/* The predicted classes of the mistakes, ascending, each once; their number. */
static uint32_t list_classes(const qn__judged *judged, int32_t *class) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < judged->mistakes; ++i) {
        uint32_t at = count;
        while (at > 0 && class[at - 1] >= judged->worst[i].class)
            --at;
        if (at < count && class[at] == judged->worst[i].class)
            continue;
        memmove(class + at + 1, class + at, (count - at) * sizeof *class);
        class[at] = judged->worst[i].class;
        ++count;
    }
    return count;
}

static qn_status make_all(group *g, const qn_compute *compute, qn__class_maps *out, qn_error *err) {
    const uint32_t most = MOST_VALUES / g->pixels;
    int32_t *class = qn__alloc(g->of->mistakes, sizeof *class, err);
    uint64_t *marks = qn__alloc(g->of->data->items / 64 + 1, sizeof *marks, err);
    qn_status status = class && marks ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        out->value = qn__alloc(g->of->mistakes, (uint64_t)g->pixels * sizeof *out->value, err);
    if (!out->value)
        status = QN_MEMORY;
    const uint32_t classes = status == QN_OK ? list_classes(g->of, class) : 0;
    for (uint32_t at = 0; at < classes && status == QN_OK; at += g->classes) {
        g->class = class + at;
        g->classes = classes - at < most ? classes - at : most;
        status = apply(g, compute, marks, out->value, err);
    }
    qn__free(class);
    qn__free(marks);
    return status;
}

qn_status qn__class_maps_make(const qn__judged *judged, const qn_compute *compute,
                              qn__class_maps *out, qn_error *err) {
    group g = {.of = judged};
    qn__program program;
    *out = (qn__class_maps){.why = find(judged, &program, &g)};
    if (out->why || judged->mistakes == 0 || g.pixels == 0)
        return QN_OK;
    out->rows = g.pool->from.height;
    out->columns = g.pool->from.width;
    const qn_status status = make_all(&g, compute, out, err);
    if (status != QN_NUMERIC)
        return status;
    qn__class_maps_release(out);
    out->why = "a value of the maps is too large for a float";
    return QN_OK;
}

void qn__class_maps_release(qn__class_maps *maps) {
    qn__free(maps->value);
    *maps = (qn__class_maps){.rows = 0};
}

void qn__class_map_bytes(const qn__class_maps *maps, uint32_t mistake, uint8_t *bytes) {
    const size_t pixels = (size_t)maps->rows * maps->columns;
    const float *value = maps->value + mistake * pixels;
    double least = value[0], most = value[0];
    for (size_t p = 1; p < pixels; ++p) {
        least = value[p] < least ? value[p] : least;
        most = value[p] > most ? value[p] : most;
    }
    for (size_t p = 0; p < pixels; ++p)
        bytes[p] = most > least
                       ? (uint8_t)floor(((double)value[p] - least) / (most - least) * 255 + 0.5)
                       : 0;
}
