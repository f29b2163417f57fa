/* The device memory of a worker, and the check, before any allocation, that it fits. All arrays but
 * those of items are allocated once, when the worker is opened, for the largest batch: an
 * allocation in a step would wait for the device, and could fail when half of the work is done.
 *
 * One list of pieces serves three ends (`walk`): their bytes are counted, they are allocated, they
 * are released. A piece of a network without pixels or without integers has no bytes.
 *
 *     fixed pieces | with pixels: taps, chains, ... | with integers: digits, ... | shared | of each
 *                                                                                    layer
 *
 * Outputs and errors have buffers in turn: gpu_windows.c decides which. */
#include "base/memory.h"
#include "device/gpu/gpu_kinds.h"
#include "layer/layer.h"
#include "num/augment.h"

/* An output and the layer that reads it. */
static void read_by(qn__worker *w, int32_t source, uint32_t reader) {
    if (source < 0)
        return;
    uint32_t *readers = w->layer[source].readers;
    readers[0] = readers[1] ? readers[0] : reader; /* no reader has number 0 */
    readers[1] = reader;
}

static void place_edges(qn__worker *w) {
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        w->layer[l].readers[1] = 0;
        const int adds = qn__layer_joins(&w->program->layer[l]);
        w->layer[l].source = qn__layer_source(w->program->layer, l);
        w->layer[l].other = adds ? qn__layer_other(w->program->layer, l) : -1;
        read_by(w, w->layer[l].source, l);
        read_by(w, w->layer[l].other, l);
    }
}

/* Integers, augmentation and mixing need all inputs of an item, and so do layers other than the
 * first that read them. */
static int takes_lists(const qn__worker *w) {
    const qn__program *p = w->program;
    int takes = p->lists && p->arith == QN__ARITH_F32 && !p->augment && !p->mix && !p->sequences &&
                p->layer[0].kind == QN__LAYER_DENSE && !qn__gpu_has_pixels(&w->layer[0]);
    for (uint32_t l = 1; l < p->layers; ++l)
        takes &= w->layer[l].source >= 0 &&
                 (w->layer[l].other >= 0 || !qn__layer_joins(w->layer[l].layer));
    return takes;
}

void qn__gpu_place(qn__worker *w) {
    uint64_t outputs = 0;
    w->model.padded = 0;
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        const qn__layer *layer = &w->program->layer[l];
        w->layer[l].layer = layer;
        w->layer[l].kind = qn__gpu_kind_of(layer->kind);
        w->layer[l].weights = w->model.padded;
        const uint64_t ld = qn__gpu_ld(layer->to.channels);
        w->layer[l].biases = w->model.padded + layer->depth * ld;
        w->model.padded = w->layer[l].biases + qn__gpu_vectors(layer) * ld;
        w->layer[l].output_place = (uint32_t)outputs;
        outputs += ld;
    }
    place_edges(w);
    w->lists.takes = takes_lists(w);
}

/* A buffer that the worker needs, and its size. */
typedef struct piece {
    qn__gpu_memory *memory;
    uint64_t bytes;
} piece;

enum { FIXED_PIECES = 26, PIXELS_PIECES = 5, INTGEMM_PIECES = 7, LAYER_PIECES = 3 };

static uint64_t row_bytes(const qn__worker *w, uint64_t n) {
    return qn__gpu_ld(n) * w->capacity * sizeof(float);
}

static uint64_t widest(const qn__program *p) {
    uint64_t outputs = 0;
    for (uint32_t l = 0; l < p->layers; ++l)
        outputs = p->layer[l].out > outputs ? p->layer[l].out : outputs;
    return outputs;
}

/* Buffers that do not depend on the number of layers; returns how many. */
static uint32_t fixed_pieces(qn__worker *w, piece *pieces) {
    const uint64_t parameters = w->model.padded * sizeof(float), items = w->capacity;
    const uint64_t inputs = w->program->layer[0].in, written = w->lists.takes ? 0 : inputs;
    const int standard = w->program->scale == QN__SCALE_STANDARD;
    const qn__shape last = w->program->layer[w->program->layers - 1].to;
    const uint64_t lines = w->program->answers ? items * last.height : 0;
    const uint64_t pixels = lines * last.width;
    const piece all[FIXED_PIECES] = {
        {&w->step, sizeof(qn_step)},
        {&w->reports.status, sizeof(qn_status_words)},
        {&w->model.parameters, parameters},
        {&w->model.sums, w->program->sequences ? 0 : w->model.padded * sizeof(int64_t)},
        {&w->model.slot[0], w->slots > 0 ? parameters : 0},
        {&w->model.slot[1], w->slots > 1 ? parameters : 0},
        {&w->model.slot[2], w->slots > 2 ? parameters : 0},
        {&w->batch.unit, 256 * sizeof(float)},
        {&w->batch.mean, standard ? inputs * sizeof(float) : 0},
        {&w->batch.inverse, standard ? inputs * sizeof(float) : 0},
        {&w->batch.inputs, row_bytes(w, written)},
        {&w->batch.numbers, items * sizeof(uint64_t)},
        {&w->batch.targets, (w->program->mix ? 3 : 1) * items * sizeof(int32_t)},
        {&w->batch.weight, items * sizeof(float)},
        {&w->batch.loss, items * sizeof(float)},
        {&w->batch.classes, items * sizeof(int32_t)},
        {&w->batch.scores, items * sizeof(float)},
        {&w->batch.finite, items * sizeof(uint32_t)},
        {&w->batch.answers, w->program->next ? 0 : items * w->program->answers},
        {&w->batch.pixel_loss, pixels * sizeof(float)},
        {&w->batch.pixel_state, pixels * sizeof(uint32_t)},
        {&w->batch.line_loss, lines * sizeof(float)},
        {&w->batch.line_state, lines * sizeof(uint32_t)},
        {&w->slices.marks, w->slices.marks_bytes},
        {&w->feeds.sent_rows, items * sizeof(uint64_t)},
        {&w->feeds.sent_values, items * written * sizeof(float)},
    };
    for (uint32_t i = 0; i < FIXED_PIECES; ++i)
        pieces[i] = all[i];
    return FIXED_PIECES;
}

/* Buffers of layers with pixels. */
static uint32_t pixels_pieces(qn__worker *w, piece *pieces) {
    uint64_t chains, transposed;
    qn__gpu_pixels_needs(w, &chains, &transposed);
    if (!qn__program_window(w->program))
        return 0;
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        const qn__gpu_layer *own = &w->layer[l];
        const uint64_t bytes = own->kind->chains ? own->kind->chains(w, own->layer) : 0;
        chains = bytes > chains ? bytes : chains;
    }
    const piece all[PIXELS_PIECES] = {
        {&w->pixels.taps, w->program->layers * (QN__GPU_TAPS * sizeof(qn_taps))},
        {&w->pixels.unfolded, w->pixels.unfolded_floats * sizeof(float)},
        {&w->pixels.chains, chains},
        {&w->pixels.transposed, transposed},
        {&w->pixels.rows, sizeof(qn_step)},
    };
    for (uint32_t i = 0; i < PIXELS_PIECES; ++i)
        pieces[i] = all[i];
    return PIXELS_PIECES;
}

/* Bytes of `rows` rows of words of the program's digits. */
static uint64_t words_bytes(const qn__worker *w, uint64_t rows, uint64_t words) {
    return rows * words * (w->bits / 7) * sizeof(uint32_t);
}

/* Buffers of integer products. */
static uint32_t intgemm_pieces(qn__worker *w, piece *pieces) {
    const qn__program *p = w->program;
    if (!w->bits)
        return 0;
    const uint64_t along = p->sequences ? 0 : qn__gpu_grain_words(p),
                   grains = qn__program_part(p) / p->grain + 1;
    uint64_t outputs = 0, items, inputs, errors, rows;
    qn__gpu_pixels_words(w, &inputs, &errors, &rows);
    items = inputs;
    for (uint32_t l = 0; l < p->layers; ++l) {
        const uint64_t in = p->layer[l].in, out = p->layer[l].out;
        const uint64_t words = w->capacity * qn__gpu_words(in > out ? in : out);
        outputs += qn__gpu_ld(p->layer[l].to.channels);
        if (!p->layer[l].depth || qn__gpu_is_conv(&w->layer[l]))
            continue;
        items = words > items ? words : items;
        inputs = in * along > inputs ? in * along : inputs;
        errors = out * along > errors ? out * along : errors;
    }
    const piece all[INTGEMM_PIECES] = {
        {&w->integers.absmax_outputs, outputs * sizeof(uint32_t)},
        {&w->integers.absmax_items, w->capacity * sizeof(uint32_t)},
        {&w->integers.absmax_rows, rows * sizeof(uint32_t)},
        {&w->integers.absmax_grains, 2 * p->layers * grains * sizeof(uint32_t)},
        {&w->integers.quantized_items, words_bytes(w, 1, items)},
        {&w->integers.quantized_inputs, words_bytes(w, 1, inputs)},
        {&w->integers.quantized_errors, words_bytes(w, 1, errors)},
    };
    for (uint32_t i = 0; i < INTGEMM_PIECES; ++i)
        pieces[i] = all[i];
    return INTGEMM_PIECES;
}

/* Bytes of the words for the errors of a layer: a row for each input, or each channel of a
 * convolution's inputs. */
static uint64_t words_by_input(const qn__worker *w, const qn__gpu_layer *own) {
    const qn__layer *l = own->layer;
    const uint64_t taps = (uint64_t)l->window.kernel[0] * l->window.kernel[1];
    if (!qn__layer_is_integer(l))
        return 0;
    if (!qn__gpu_is_conv(own))
        return words_bytes(w, l->depth, qn__gpu_words(l->to.channels));
    return words_bytes(w, l->from.channels, qn__gpu_words(taps * l->to.channels));
}

static void layer_pieces(qn__worker *w, uint32_t layer, piece pieces[LAYER_PIECES]) {
    qn__gpu_layer *l = &w->layer[layer];
    const uint64_t in = qn__layer_is_integer(l->layer) ? l->layer->depth : 0,
                   out = in ? l->layer->to.channels : 0;
    pieces[0] = (piece){&l->by_output, words_bytes(w, out, qn__gpu_words(in))};
    pieces[1] =
        (piece){&l->by_input, qn__gpu_takes_errors(w, l->source) ? words_by_input(w, l) : 0};
    pieces[2] = (piece){&l->moments, l->kind->moments ? l->kind->moments(w, l->layer) : 0};
}

/* Calls `each` for all buffers; stops at the first failure. */
static qn_status walk(qn__worker *w, qn_status (*each)(qn__worker *, piece, void *, qn_error *),
                      void *context, qn_error *err) {
    piece pieces[FIXED_PIECES + PIXELS_PIECES + INTGEMM_PIECES];
    uint32_t count = fixed_pieces(w, pieces);
    count += pixels_pieces(w, pieces + count);
    count += intgemm_pieces(w, pieces + count);
    qn_status status = QN_OK;
    for (uint32_t i = 0; status == QN_OK && i < count; ++i)
        status = each(w, pieces[i], context, err);
    for (uint32_t i = 0; status == QN_OK && i < w->shared.count; ++i) {
        qn__gpu_buffer *own = &w->shared.buffer[i];
        status = each(w, (piece){&own->memory, own->bytes}, context, err);
    }
    for (uint32_t l = 0; status == QN_OK && l < w->program->layers; ++l) {
        layer_pieces(w, l, pieces);
        for (uint32_t i = 0; status == QN_OK && i < LAYER_PIECES; ++i)
            status = each(w, pieces[i], context, err);
    }
    return status;
}

typedef struct need {
    uint64_t bytes, largest;
} need;

static qn_status count_piece(qn__worker *w, piece p, void *context, qn_error *err) {
    need *n = context;
    (void)w;
    (void)err;
    n->bytes += p.bytes;
    n->largest = p.bytes > n->largest ? p.bytes : n->largest;
    return QN_OK;
}

uint64_t qn__gpu_needs(const qn__worker *w, uint64_t *largest) {
    need n = {0};
    qn__worker copy = *w; /* walk names members by pointers and does not change them here */
    walk(&copy, count_piece, &n, NULL);
    *largest = n.largest;
    return n.bytes;
}

static double mebibytes(uint64_t bytes) { return (double)bytes / (1 << 20); }

/* Drivers and displays need some memory: a sixteenth is left to them. */
static uint64_t usable(const qn__worker *w) { return w->facts->memory - w->facts->memory / 16; }

int qn__gpu_fits(const qn__worker *w, uint64_t bytes, uint64_t largest) {
    return largest <= w->facts->largest && bytes <= usable(w) && w->bytes <= usable(w) - bytes;
}

static qn_status too_small(const qn__worker *w, const char *what, uint64_t bytes, uint64_t largest,
                           qn_error *err) {
    const char *name = w->facts->name;
    if (largest > w->facts->largest)
        qn__fail(err, QN_DEVICE, "%s: %s needs a piece of %.1f MiB, the device allows %.1f MiB",
                 name, what, mebibytes(largest), mebibytes(w->facts->largest));
    else
        qn__fail(err, QN_DEVICE,
                 "%s: %s needs %.1f MiB, %.1f of the device's %.1f MiB can still be used", name,
                 what, mebibytes(bytes), mebibytes(w->bytes < usable(w) ? usable(w) - w->bytes : 0),
                 mebibytes(w->facts->memory));
    return qn__remedy(err, QN_DEVICE,
                      "take a smaller batch or a smaller model, or leave the device out");
}

qn_status qn__gpu_more(qn__worker *w, const char *what, uint64_t bytes, qn__gpu_memory *out,
                       qn_error *err) {
    if (bytes == 0)
        return QN_OK;
    if (!qn__gpu_fits(w, bytes, bytes))
        return too_small(w, what, bytes, bytes, err);
    const qn_status status = w->driver->allocate(w->gpu, (size_t)bytes, out, err);
    if (status == QN_OK)
        w->bytes += out->bytes;
    else
        *out = (qn__gpu_memory){0};
    return status;
}

static qn_status allocate_piece(qn__worker *w, piece p, void *context, qn_error *err) {
    (void)context;
    qn_status status = qn__gpu_more(w, "a batch", p.bytes, p.memory, err);
    /* Rows end in padding that no kernel writes. */
    if (status == QN_OK && p.bytes)
        status = w->driver->clear(w->gpu, p.memory, 0, (size_t)p.bytes, err);
    return status;
}

qn_status qn__gpu_allocate(qn__worker *w, qn_error *err) {
    uint64_t largest;
    const uint64_t bytes = qn__gpu_needs(w, &largest);
    if (!qn__gpu_fits(w, bytes, largest))
        return too_small(w, "the model with a batch", bytes, largest, err);
    const uint64_t row = qn__gpu_ld(widest(w->program)) * sizeof(int64_t);
    const uint64_t item = (uint64_t)w->program->layer[0].in * sizeof(float);
    w->stage.bytes = QN__GPU_STAGE;
    if (row > w->stage.bytes)
        w->stage.bytes = (size_t)row;
    if (item > w->stage.bytes)
        w->stage.bytes = (size_t)item;
    const size_t tokens = w->program->sequences ? row_bytes(w, 1) : 0; /* of an extension */
    if (tokens > w->stage.bytes)
        w->stage.bytes = tokens;
    const size_t answers = w->program->answers + sizeof(float); /* and a share */
    if (answers > w->stage.bytes)
        w->stage.bytes = answers;
    w->stage.memory = qn__alloc(w->stage.bytes, 1, err);
    w->stage.augment_space =
        qn__alloc(w->program->augment ? qn__augment_space(w->program->augment) + 1 : 1, 1, err);
    w->stage.shown_space = qn__alloc(qn__shown_space(w->program) + 1, 1, err);
    w->stage.partner = qn__alloc(w->program->mix ? item : 1, 1, err);
    w->stage.sequence_rows =
        qn__alloc(w->program->sequences + 1, sizeof *w->stage.sequence_rows, err);
    if (!w->stage.memory || !w->stage.augment_space || !w->stage.shown_space || !w->stage.partner ||
        !w->stage.sequence_rows)
        return QN_MEMORY;
    const qn_status status = walk(w, allocate_piece, NULL, err);
    if (status == QN_OK)
        qn__gpu_connect_arrays(w);
    return status;
}

void qn__gpu_drop(qn__worker *w, qn__gpu_memory *memory) {
    if (memory->bytes == 0)
        return;
    w->bytes -= memory->bytes;
    w->driver->release(w->gpu, memory);
    *memory = (qn__gpu_memory){0};
}

static qn_status release_piece(qn__worker *w, piece p, void *context, qn_error *err) {
    (void)context;
    (void)err;
    qn__gpu_drop(w, p.memory);
    return QN_OK;
}

void qn__gpu_release_all(qn__worker *w) {
    for (int i = 0; i < QN__GPU_FEEDS; ++i) {
        qn__gpu_drop(w, &w->feeds.feed[i].values);
        qn__gpu_drop(w, &w->feeds.feed[i].rows);
        qn__gpu_drop(w, &w->feeds.feed[i].labels);
        qn__gpu_drop(w, &w->feeds.feed[i].weights);
    }
    qn__gpu_drop(w, &w->lists.rows);
    qn__gpu_drop(w, &w->lists.columns);
    qn__gpu_drop(w, &w->model.canonical);
    if (w->layer)
        walk(w, release_piece, NULL, NULL);
}
