/* embedding: rows of weights by the numbers of tokens (docs/exactness.md 25.10).
 *
 * The gradient has a chain for each token of a grain. So the forward pass of a training sorts the
 * rows of the batch by their token, those of a token in the order of the chain:
 *
 *     tokens of two items    7 3 7 | 3 7 7          grains of one item
 *     begin                  3: 0, 7: 2, 8: 6
 *     row                    of token 3: *1 *3, of token 7: *0 2 *4 5     * begins a chain
 *
 * A task of the gradient has a panel of channels, and goes through the tokens and their rows once.
 * Tokens that do not occur have sums of 0.
 *
 * Tied weights (25.15) are those of the last layer, in its panels: the rows are gathered from them,
 * and the sums are added to those of the last layer, which are there before. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/embedding.h"
#include <string.h>

/* Tokens whose sums are applied together, and rows of a task. */
enum { TOKENS = 64, ROWS = 256 };
/* With the number of a row: it is the first one of a token in its grain. */
#define BEGINS 0x80000000u

static uint32_t token_at(const qn__cpu_layer *l, const float *input, uint32_t item, uint32_t at) {
    const float value =
        input[at / QN__PANEL * l->in_stride + (size_t)item * QN__PANEL + at % QN__PANEL];
    return qn__token_of(value, qn__layer_tokens(l->layer));
}

/* 25.37, for the layers that read it. */
static void note_lengths(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    for (uint32_t i = 0; i < pass->batch->items; ++i) {
        uint32_t length = l->out_pixels;
        while (length > 0 && token_at(l, l->input, i, length - 1) == QN__NO_TOKEN)
            --length;
        l->tokens.length[i] = length;
    }
}

/* Sorts the rows of a batch by their token, without what is not a token. */
static void sort_rows(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    const uint32_t items = pass->batch->items, positions = l->out_pixels;
    const uint32_t tokens = qn__layer_tokens(l->layer), grain = pass->worker->program->grain;
    const qn__cpu_tokens *s = &l->tokens;
    memset(s->begin, 0, (tokens + (size_t)1) * sizeof *s->begin);
    memset(s->grain, 0xff, tokens * sizeof *s->grain);
    for (uint32_t i = 0; i < items; ++i)
        for (uint32_t t = 0; t < positions; ++t) {
            const uint32_t v = token_at(l, l->input, i, t);
            if (v != QN__NO_TOKEN)
                ++s->begin[v + 1];
        }
    for (uint32_t v = 0; v < tokens; ++v)
        s->begin[v + 1] += s->begin[v];
    for (uint32_t i = 0; i < items; ++i)
        for (uint32_t t = 0; t < positions; ++t) {
            const uint32_t v = token_at(l, l->input, i, t), own = i / grain;
            if (v == QN__NO_TOKEN)
                continue;
            s->row[s->begin[v]++] = (t * items + i) | (s->grain[v] != own ? BEGINS : 0);
            s->grain[v] = own;
        }
    memmove(s->begin + 1, s->begin, tokens * sizeof *s->begin); /* the ends are there now */
    s->begin[0] = 0;
}

/* Where the channels of a token begin in the panels of the last layer; they are QN__PANEL apart. */
static size_t tied_at(const qn__cpu_layer *last, uint32_t panel, uint32_t token) {
    const size_t block = (size_t)(token / QN__PANEL) * qn__cpu_blocks(last) + panel;
    return block * QN__PANEL * QN__PANEL + token % QN__PANEL;
}

static const qn__cpu_layer *last_of(const qn__worker *w) {
    return &w->layer[w->program->layers - 1];
}

static void gather_row(const qn__cpu_layer *last, uint32_t panel, uint32_t token, float *to) {
    const float *from = last->weights + tied_at(last, panel, token);
    for (uint32_t c = 0; c < QN__PANEL; ++c)
        to[c] = from[c * QN__PANEL];
}

static void copy_rows(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                      uint32_t first, uint32_t rows, float *to) {
    const uint32_t items = pass->batch->items;
    const float *weights = l->bias + (size_t)panel * l->vector_pixels * QN__PANEL;
    uint32_t at = first / items, item = first % items;
    for (uint32_t i = 0; i < rows; ++i, to += QN__PANEL) {
        const uint32_t token = token_at(l, l->input, item, at);
        if (token == QN__NO_TOKEN)
            memset(to, 0, QN__PANEL * sizeof *to);
        else if (l->layer->tied)
            gather_row(last_of(pass->worker), panel, token, to);
        else
            memcpy(to, weights + (size_t)token * QN__PANEL, QN__PANEL * sizeof *to);
        at += ++item == items;
        item = item == items ? 0 : item;
    }
}

static void forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grid grid = {(l->rows + ROWS - 1) / ROWS, l->out_panels, 1};
    for (uint32_t block, panel; qn__cpu_take(w, thread, phase, grid, &block, &panel);) {
        const uint32_t first = block * ROWS, left = l->rows - first;
        const uint32_t rows = left < ROWS ? left : ROWS;
        float *to = l->output + panel * l->out_stride + (size_t)first * QN__PANEL;
        if (block == 0 && panel == 0)
            note_lengths(pass, l);
        if (block == 0 && panel == 0 && pass->training && layer >= w->program->frozen)
            sort_rows(pass, l);
        copy_rows(pass, l, panel, first, rows, to);
        qn__cpu_after_product(pass, thread, layer, panel, first, rows, to);
        if (w->bits)
            qn__cpu_note_outputs(pass, layer, first, rows, panel, 1);
    }
}

/* Adds the sums of some tokens, from `first` on, to those of the last layer. */
static void put_tied(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                     uint32_t first, uint32_t tokens, const int64_t *sums) {
    const qn__cpu_layer *last = last_of(pass->worker);
    const uint32_t channels = l->layer->to.channels, left = channels - panel * QN__PANEL;
    const uint32_t columns = left < QN__PANEL ? left : QN__PANEL;
    for (uint32_t v = first; v < first + tokens; ++v, sums += QN__PANEL) {
        int64_t *to = pass->outlet
                          ? pass->outlet->words + (uint64_t)v * channels + panel * QN__PANEL
                          : last->weight_sums + tied_at(last, panel, v);
        if (l->tokens.begin[v] == l->tokens.begin[v + 1])
            continue;
        for (uint32_t c = 0; c < columns; ++c)
            to[pass->outlet ? c : c * QN__PANEL] += sums[c];
    }
}

/* Applies or stores the sums of some tokens, from `first` on. */
static void put(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel, uint32_t first,
                uint32_t tokens, const int64_t *sums) {
    const qn__worker *w = pass->worker;
    const size_t count = (size_t)tokens * QN__PANEL;
    const size_t at = ((size_t)panel * l->vector_pixels + first) * QN__PANEL;
    if (pass->update) {
        qn__cpu_update_pieces(w, pass->update, l, at, count, sums);
        return;
    }
    for (uint32_t v = 0; v < tokens; ++v, sums += QN__PANEL) {
        const qn__cpu_piece piece = qn__cpu_piece_at(l, panel, first + v);
        if (pass->outlet)
            memcpy(pass->outlet->words + qn__program_sum(w->program, piece.canonical), sums,
                   piece.columns * sizeof *sums);
        else if (l->tokens.begin[first + v] < l->tokens.begin[first + v + 1])
            for (uint32_t c = 0; c < piece.columns; ++c)
                l->bias_sums[piece.at + c] += sums[c];
    }
}

/* The sums of one token. Returns 1 if a partial was out of range. */
static int sum_token(const qn__worker *w, const qn__cpu_layer *l, uint32_t token,
                     const float *errors, int64_t *sums) {
    const uint32_t *row = l->tokens.row + l->tokens.begin[token];
    const uint32_t count = l->tokens.begin[token + 1] - l->tokens.begin[token];
    float partial[QN__PANEL];
    for (uint32_t i = 0; i < count;) {
        memset(partial, 0, sizeof partial);
        do {
            const float *error = errors + (size_t)(row[i] & ~BEGINS) * QN__PANEL;
            for (uint32_t c = 0; c < QN__PANEL; ++c)
                partial[c] = partial[c] + error[c];
        } while (++i < count && !(row[i] & BEGINS));
        if (qn__cpu_add_partials(w, 1, QN__PANEL, partial, sums))
            return 1;
    }
    return 0;
}

static int sums_of_panel(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    const uint32_t tokens = qn__layer_tokens(l->layer);
    const float *errors = l->error + panel * l->out_stride;
    int64_t sums[TOKENS * QN__PANEL];
    for (uint32_t first = 0; first < tokens; first += TOKENS) {
        const uint32_t count = tokens - first < TOKENS ? tokens - first : TOKENS;
        memset(sums, 0, (size_t)count * QN__PANEL * sizeof *sums);
        for (uint32_t v = 0; v < count; ++v)
            if (sum_token(pass->worker, l, first + v, errors, sums + (size_t)v * QN__PANEL))
                return 1;
        (l->layer->tied ? put_tied : put)(pass, l, panel, first, count, sums);
    }
    return 0;
}

static void carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const uint32_t tokens = qn__layer_tokens(l->layer);
    l->tokens.begin = qn__cpu_carve(a, tokens + (size_t)1, sizeof *l->tokens.begin);
    l->tokens.grain = qn__cpu_carve(a, tokens, sizeof *l->tokens.grain);
    l->tokens.length = qn__cpu_carve(a, w->capacity, sizeof *l->tokens.length);
    l->tokens.row = qn__cpu_carve(a, w->capacity, l->out_pixels * sizeof *l->tokens.row);
}

const qn__cpu_kind qn__cpu_embedding = {
    .forward = forward, .sums = sums_of_panel, .carve = carve, .one_matrix = 1, .reads_input = 1};
