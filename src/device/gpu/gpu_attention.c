/* attention (docs/exactness.md 25.20 to 25.26): a group of lanes has 16 queries, or 16 keys, of a
 * head, and some of its channels. Scores are computed again in each kernel. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "kernels/step.h"
#include "num/intgemm_reference.h"

enum { BLOCK = 16, CHANNELS = 64 }; /* of a group of lanes */
enum { PANEL = 32, CACHED = 128 };  /* positions, and channels of a group: attention_cached.cl */

static uint64_t groups_of(const qn__gpu_pass *pass, const qn__layer *l, uint32_t heads) {
    const uint32_t width = l->to.channels / l->heads;
    return (uint64_t)pass->items * heads * qn__gpu_pieces(qn__gpu_pixels(l), BLOCK) *
           qn__gpu_pieces(width, CHANNELS);
}

static void push_words(const qn__gpu_pass *pass, uint32_t index, qn__gpu_call *c) {
    const qn__layer *l = pass->worker->layer[index].layer;
    QN__PUSH_NUMBERS(c, index * QN__GPU_TAPS);
    qn__gpu_push_lengths(pass, index, c);
    QN__PUSH_NUMBERS(c, l->heads, l->kv_heads, l->span, (uint32_t)l->causal);
}

static void push_source(const qn__gpu_pass *pass, uint32_t i, qn__gpu_call *c) {
    QN__PUSH_MEMORY(c, &pass->worker->step, &pass->worker->pixels.taps, qn__gpu_lengths_of(pass, i),
                    qn__gpu_input_of(pass, i));
}

/* The width of its integers; 0: float. */
static uint32_t bits_of(const qn__worker *w, const qn__layer *l) {
    return (uint32_t)qn__program_bits(w->program, l);
}

/* The absmax of blocks of inputs, or of errors. */
static void launch_blocks(qn__gpu_pass *pass, uint32_t i, const qn__gpu_memory *from, int back) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t heads = l->layer->heads, groups = l->layer->kv_heads;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, from, &l->moments);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, heads, groups, (uint32_t)back);
    qn__gpu_launch_over(
        pass, QN__K_ATTENTION_BLOCKS,
        (uint64_t)pass->items * (back ? heads : heads + 2 * groups) * qn__gpu_pixels(l->layer), &c);
}

/* What is kept of further positions: keys and values, or their blocks. */
static void launch_keep(qn__gpu_pass *pass, uint32_t i, qn__kernel kernel, uint32_t each) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_input_of(pass, i), &w->batch.numbers,
                    &w->layer[i].moments);
    QN__PUSH_NUMBERS(&c, l->heads, l->kv_heads, l->to.channels / l->heads, w->program->positions);
    qn__gpu_launch_over(pass, kernel, (uint64_t)pass->items * 2 * l->kv_heads * each, &c);
}

/* 25.70: attention over sequences that grow. */
static void forward_cached(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t heads = l->layer->heads, width = l->layer->to.channels / heads;
    const uint32_t bits = bits_of(w, l->layer);
    qn__gpu_call c = {0};
    launch_keep(pass, i, QN__K_ATTENTION_KEEP, width);
    if (bits)
        launch_keep(pass, i, QN__K_ATTENTION_KEEP_BLOCKS, 1);
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_input_of(pass, i), &w->batch.numbers, &l->moments,
                    &l->output);
    QN__PUSH_NUMBERS(&c, heads, l->layer->kv_heads, width, w->program->positions, l->layer->span);
    if (bits)
        QN__PUSH_NUMBERS(&c, bits);
    qn__gpu_launch_over(pass, bits ? QN__K_ATTENTION_CACHED_INTEGER : QN__K_ATTENTION_CACHED,
                        pass->items * heads * qn__gpu_pieces(width, CACHED), &c);
}

static void forward(qn__gpu_pass *pass, uint32_t i) {
    if (pass->worker->program->sequences) {
        forward_cached(pass, i);
        return;
    }
    const qn__gpu_layer *l = &pass->worker->layer[i];
    const uint32_t bits = bits_of(pass->worker, l->layer);
    qn__gpu_call c = {0};
    if (bits)
        launch_blocks(pass, i, qn__gpu_input_of(pass, i), 0);
    push_source(pass, i, &c);
    QN__PUSH_MEMORY(&c, &l->output, &l->moments);
    push_words(pass, i, &c);
    if (bits)
        QN__PUSH_NUMBERS(&c, bits);
    qn__gpu_launch_over(pass, bits ? QN__K_ATTENTION_INTEGER_FORWARD : QN__K_ATTENTION_FORWARD,
                        groups_of(pass, l->layer, l->layer->heads), &c);
}

static void launch_means(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, &l->output, qn__gpu_errors_of(w, i),
                    &l->moments);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, l->layer->heads, l->layer->kv_heads);
    qn__gpu_launch_over(pass, QN__K_ATTENTION_MEANS,
                        (uint64_t)pass->items * l->layer->heads * qn__gpu_pixels(l->layer), &c);
}

static void launch_errors(qn__gpu_pass *pass, uint32_t i, qn__kernel kernel, uint32_t heads) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t bits = bits_of(w, l->layer);
    qn__gpu_call c = {0};
    push_source(pass, i, &c);
    QN__PUSH_MEMORY(&c, qn__gpu_errors_of(w, i), &l->moments,
                    qn__gpu_errors_of(w, (uint32_t)l->source));
    push_words(pass, i, &c);
    QN__PUSH_NUMBERS(&c, qn__gpu_gives_first(w, i, l->source) ? 0 : QN_NORM_ADD);
    if (bits)
        QN__PUSH_NUMBERS(&c, bits);
    qn__gpu_launch_over(pass, kernel, groups_of(pass, l->layer, heads), &c);
}

static void errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const int integers = bits_of(w, l) != 0;
    if (!qn__gpu_takes_errors(w, w->layer[i].source))
        return;
    launch_means(pass, i);
    if (integers)
        launch_blocks(pass, i, qn__gpu_errors_of(w, i), 1);
    launch_errors(pass, i, integers ? QN__K_ATTENTION_INTEGER_QUERIES : QN__K_ATTENTION_QUERIES,
                  l->heads);
    launch_errors(pass, i, integers ? QN__K_ATTENTION_INTEGER_KEYS : QN__K_ATTENTION_KEYS,
                  l->kv_heads);
    qn__gpu_finish_errors(pass, i);
}

/* The keys and values of all positions of the sequences that grow, and their blocks. */
static uint64_t cache(const qn__worker *w, const qn__layer *l) {
    const uint64_t width = l->to.channels / l->heads + (bits_of(w, l) != 0);
    const uint64_t positions = qn__gpu_pieces(w->program->positions, PANEL) * PANEL;
    return 2 * w->program->sequences * l->kv_heads * positions * width * sizeof(float);
}

static uint64_t moments(const qn__worker *w, const qn__layer *l) {
    if (w->program->sequences)
        return cache(w, l);
    const uint64_t arrays = QN_ATTEND_ARRAYS + (bits_of(w, l) ? QN_ATTEND_BLOCKS : 0);
    return arrays * w->capacity * l->heads * qn__gpu_pixels(l) * sizeof(float);
}

const qn__gpu_kind qn__gpu_attention = {.forward = forward,
                                        .errors = errors,
                                        .moments = moments,
                                        .reads_input = 1,
                                        .reads_output = 1,
                                        .keeps = 1};
