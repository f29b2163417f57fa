#include "layer/window.h"

#include "num/blend.h"

#define HELP                                                                                       \
    "a window's height and width are whole numbers from 1 to 255: \"3x3\", or \"3\" for both"

/* Where tap k of position `at` is in one direction; -1: outside. */
static int64_t place_of(const qn__layer *l, int d, uint32_t at, uint32_t k) {
    const uint32_t from = d ? l->from.width : l->from.height;
    const qn__window *w = &l->window;
    if (l->fitted) {
        const qn__cover c = qn__fitted_taps(l->fitted, at, d ? l->to.width : l->to.height, from);
        return c.begin + k < c.end ? (int64_t)c.begin + k : -1;
    }
    const int64_t spread = qn__layer_spread(l, d);
    const int64_t to = (int64_t)at * w->stride[d] - w->pad[d] + (int64_t)k * w->dilation[d];
    return to % spread == 0 ? to / spread : -1;
}

int qn__tap_find(const qn__layer *l, qn__tap t, qn__places *at) {
    const qn__window *w = &l->window;
    const int64_t y = place_of(l, 0, t.y, t.ky), x = place_of(l, 1, t.x, t.kx);
    if (y < 0 || x < 0 || y >= l->from.height || x >= l->from.width)
        return 0;
    at->input = ((size_t)y * l->from.width + (size_t)x) * l->from.channels;
    at->output = ((size_t)t.y * l->to.width + t.x) * l->to.channels;
    at->weights = ((size_t)t.ky * w->kernel[1] + t.kx) * qn__layer_reads(l);
    return 1;
}

int qn__tap_next(const qn__layer *l, qn__tap *t) {
    if (++t->kx < l->window.kernel[1])
        return 1;
    t->kx = 0;
    if (++t->ky < l->window.kernel[0])
        return 1;
    t->ky = 0;
    if (++t->x < l->to.width)
        return 1;
    t->x = 0;
    return ++t->y < l->to.height;
}

qn_status qn__window_kernel(qn__tokens *tokens, qn__window *window) {
    *window = (qn__window){.stride = {1, 1}, .dilation = {1, 1}};
    return qn__tokens_pair(tokens, "window", 1, 255, HELP, window->kernel);
}

qn_status qn__window_stride(qn__tokens *tokens, qn__window *window) {
    if (!qn__tokens_is(tokens, "stride"))
        return QN_OK;
    qn__tokens_next(tokens);
    return qn__tokens_pair(
        tokens, "stride", 1, 255,
        "a stride is a whole number from 1 to 255: \"stride 2\", or one for each "
        "direction: \"stride 2x1\"",
        window->stride);
}

void qn__window_write(const char *word, const uint32_t pair[2], qn__text *text) {
    qn__text_add(text, " %s %u", word, pair[0]);
    if (pair[0] != pair[1])
        qn__text_add(text, "x%u", pair[1]);
}

/* Pixels from the first to the last tap in one direction. */
static uint32_t extent(const qn__window *w, int d) {
    return w->dilation[d] * (w->kernel[d] - 1) + 1;
}

/* Pixels of the output in one direction; 0 where the window is larger than the input. `ceil`: one
 * more, where its window begins before the padding at the end. */
static uint32_t pixels(const qn__window *w, int d, uint32_t from, int ceil) {
    const uint64_t whole = (uint64_t)from + 2 * (uint64_t)w->pad[d];
    if (whole < extent(w, d))
        return 0;
    const uint64_t last = (whole - extent(w, d)) / w->stride[d]; /* window that fits */
    const uint64_t next = (last + 1) * w->stride[d];
    const int more = ceil && last * w->stride[d] + extent(w, d) < whole && next < from + w->pad[d];
    return (uint32_t)(last + 1) + (uint32_t)more;
}

qn_status qn__window_make(const qn__layer_text *text, qn__shape from, uint32_t channels,
                          uint64_t first, qn__layer *layer, qn_error *err) {
    const qn__window *w = &text->window;
    const uint32_t height = pixels(w, 0, from.height, text->ceil);
    const uint32_t width = pixels(w, 1, from.width, text->ceil);
    if (height == 0 || width == 0) {
        qn__fail(err, QN_USAGE, "a window of %ux%u pixels%s does not fit into %ux%u pixels",
                 extent(w, 0), extent(w, 1),
                 w->dilation[0] > 1 || w->dilation[1] > 1 ? ", its dilation included," : "",
                 from.height, from.width);
        return qn__remedy(err, QN_USAGE,
                          "make the window smaller, or the strides and pools before it");
    }
    return qn__window_fill(text, from, channels, (const uint64_t[]){height, width}, first, layer,
                           err);
}

/* The largest of the fitted windows of one direction. A window has limit / size pixels, and its
 * ends may be within a pixel: both of them, unless the ends of pixels are among those of windows.
 */
static uint32_t largest(uint32_t size, uint32_t limit) {
    const uint32_t rest = limit % size;
    return limit / size + (rest == 0 ? 0 : size % rest == 0 ? 1 : 2);
}

qn_status qn__window_enlarge(const qn__layer_text *text, qn__shape from, uint32_t channels,
                             const uint64_t to[2], uint64_t first, qn__layer *layer,
                             qn_error *err) {
    const qn_status status = qn__window_fill(text, from, channels, to, first, layer, err);
    if (status != QN_OK || from.axes != QN__SEQUENCE || to[0] == 1)
        return status;
    qn__fail(err, QN_USAGE, "positions have one row, not %u", layer->to.height);
    return qn__remedy(err, QN_USAGE, "give 1 for rows: \"1x%u\"", text->window.kernel[1]);
}

qn_status qn__window_fit(const qn__layer_text *text, qn__shape from, const uint64_t to[2],
                         uint64_t first, qn__layer *layer, qn_error *err) {
    const qn_status status = qn__window_enlarge(text, from, from.channels, to, first, layer, err);
    if (status != QN_OK)
        return status;
    layer->fitted = 1;
    layer->window =
        (qn__window){{largest(layer->to.height, from.height), largest(layer->to.width, from.width)},
                     {1, 1},
                     {0, 0},
                     {1, 1}};
    return QN_OK;
}

qn_status qn__window_fill(const qn__layer_text *text, qn__shape from, uint32_t channels,
                          const uint64_t to[2], uint64_t first, qn__layer *layer, qn_error *err) {
    const int fits = to[0] <= QN__MAX_VALUES && to[1] <= QN__MAX_VALUES / to[0] &&
                     channels <= QN__MAX_VALUES / (to[0] * to[1]);
    const qn__shape shape = {channels, (uint32_t)to[0], (uint32_t)to[1], from.axes};
    *layer = (qn__layer){.kind = text->kind,
                         .from = from,
                         .to = shape,
                         .window = text->window,
                         .in = qn__shape_volume(from),
                         .out = qn__shape_volume(shape),
                         .activation = text->activation,
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first};
    if (fits)
        return QN_OK;
    qn__fail(err, QN_USAGE, "%u channel%s of %llux%llu pixels are too many outputs", channels,
             channels == 1 ? "" : "s", (unsigned long long)to[0], (unsigned long long)to[1]);
    return qn__remedy(err, QN_USAGE,
                      "a layer has at most %u outputs: use fewer channels, or pool before",
                      QN__MAX_VALUES);
}
