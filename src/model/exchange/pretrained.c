#include "model/exchange/pretrained.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define AT(member) offsetof(qn__pretrained_sizes, member)

static const struct activation {
    const char *theirs, *ours;
} activations[] = {
    {"gelu_new", "gelu-tanh"},  {"gelu_pytorch_tanh", "gelu-tanh"},
    {"gelu_fast", "gelu-tanh"}, {"gelu", "gelu"},
    {"relu", "relu"},           {"silu", "silu"},
    {"swish", "silu"},          {"tanh", "tanh"},
};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

/* ------------------------------------------------------------------------------------------ gpt2
 */

static const qn__config_key gpt2_keys[] = {
    {"vocab_size", AT(vocabulary), 'n', 0, NULL},
    {"n_embd", AT(width), 'n', 0, NULL},
    {"n_head", AT(heads), 'n', 0, NULL},
    {"n_layer", AT(blocks), 'n', 0, NULL},
    {"n_positions", AT(positions), 'n', 0, NULL},
    {"n_inner", AT(inner), 'n', -4, NULL},
    {"activation_function", AT(activation), 'a', 0, "gelu_new"},
    {"tie_word_embeddings", AT(tied), 'b', 1, NULL},
    {"layer_norm_epsilon", AT(epsilon), 'r', 1e-5, NULL},
    {.key = NULL}};

static const qn__config_must gpt2_musts[] = {
    {"scale_attn_weights", "true", "attention is always scaled by the root of a head's width"},
    {"scale_attn_by_inverse_layer_idx", "false", "attention has the same scale in all blocks"},
    {"add_cross_attention", "false", "a network reads one sequence"},
    {.key = NULL}};

static const qn__pretrained_line gpt2_head[] = {
    {"embedding %V %N", "wte", 0}, {"position learned", "wpe", 0}, {.text = NULL}};

static const qn__pretrained_line gpt2_block[] = {{"residual { layernorm channels%E", "h.#.ln_1", 0},
                                                 {"conv %A 1x1", "h.#.attn.c_attn", 1},
                                                 {"attention %H causal", NULL, 0},
                                                 {"conv %N 1x1 }", "h.#.attn.c_proj", 1},
                                                 {"residual { layernorm channels%E", "h.#.ln_2", 0},
                                                 {"conv %F 1x1 %G", "h.#.mlp.c_fc", 1},
                                                 {"conv %N 1x1 }", "h.#.mlp.c_proj", 1},
                                                 {.text = NULL}};

static const qn__pretrained_line gpt2_tail[] = {{"layernorm channels%E", "ln_f", 0},
                                                {"conv %V 1x1 nobias softmax", "/lm_head|wte", 0},
                                                {.text = NULL}};

static const char *const gpt2_ignored[] = {"h.#.attn.bias", "h.#.attn.masked_bias", NULL};

/* ---------------------------------------------------------------------------------------- the
 * table */

static const qn__pretrained rows[] = {
    {"gpt2", "GPT2LMHeadModel", "transformer.", gpt2_keys, gpt2_musts, gpt2_head, gpt2_block,
     gpt2_tail, gpt2_ignored},
};
enum { ROWS = sizeof rows / sizeof *rows };

const qn__pretrained *qn__pretrained_row(uint32_t index) {
    return index < ROWS ? &rows[index] : NULL;
}

const qn__pretrained *qn__pretrained_find(const char *type) {
    for (uint32_t i = 0; i < ROWS; ++i)
        if (strcmp(rows[i].type, type) == 0)
            return &rows[i];
    return NULL;
}

void qn__pretrained_list(char *text, size_t size) {
    size_t used = 0;
    *text = '\0';
    for (uint32_t i = 0; i < ROWS && used < size; ++i)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", rows[i].type);
}

const char *qn__pretrained_activation(const char *theirs) {
    for (size_t i = 0; i < ACTIVATIONS; ++i)
        if (strcmp(activations[i].theirs, theirs) == 0)
            return activations[i].ours;
    return NULL;
}

const char *qn__pretrained_activation_back(const char *ours) {
    for (size_t i = 0; i < ACTIVATIONS; ++i)
        if (strcmp(activations[i].ours, ours) == 0)
            return activations[i].theirs;
    return NULL;
}

/* What "%N" and others stand for. */
static void add_value(const qn__pretrained_sizes *s, char key, qn__text *text) {
    switch (key) {
    case 'V':
        qn__text_add(text, "%u", s->vocabulary);
        break;
    case 'N':
        qn__text_add(text, "%u", s->width);
        break;
    case 'A': /* queries, keys and values */
        qn__text_add(text, "%u", 3 * s->width);
        break;
    case 'H':
        qn__text_add(text, "%u", s->heads);
        break;
    case 'F':
        qn__text_add(text, "%u", s->inner);
        break;
    case 'G':
        qn__text_add(text, "%s", s->activation);
        break;
    case 'E': {
        char number[40];
        qn__float_plain((float)s->epsilon, number);
        qn__text_add(text, " eps %s", number);
        break;
    }
    default:
        qn__text_add(text, "%%%c", key);
    }
}

static void add_text(const qn__pretrained_sizes *s, const char *from, qn__text *text) {
    if (text->size)
        qn__text_add(text, "; ");
    for (const char *at = from; *at; ++at)
        if (*at == '%' && at[1])
            add_value(s, *++at, text);
        else
            qn__text_add(text, "%c", *at);
}

/* The name with the number of a block. */
static void write_name(const char *from, uint32_t block, char name[QN__PRETRAINED_NAME]) {
    size_t used = 0;
    for (const char *at = from; *at && used + 12 < QN__PRETRAINED_NAME; ++at)
        if (*at == '#')
            used += (size_t)snprintf(name + used, QN__PRETRAINED_NAME - used, "%u", block);
        else
            name[used++] = *at;
    name[used] = '\0';
}

typedef struct expansion {
    const qn__pretrained_sizes *sizes;
    qn__text *text;
    qn__pretrained_layer *layer;
    uint32_t layers;
} expansion;

static void add_lines(expansion *e, const qn__pretrained_line *line, uint32_t block) {
    for (; line->text; ++line) {
        add_text(e->sizes, line->text, e->text);
        if (!line->module)
            continue;
        if (e->layers < QN__MAX_LAYERS) {
            write_name(line->module, block, e->layer[e->layers].module);
            e->layer[e->layers].turned = line->turned;
        }
        e->layers++;
    }
}

uint32_t qn__pretrained_expand(const qn__pretrained *row, const qn__pretrained_sizes *sizes,
                               qn__text *text, qn__pretrained_layer *layer) {
    expansion e = {.sizes = sizes, .text = text, .layer = layer};
    add_lines(&e, row->head, 0);
    for (uint32_t b = 0; b < sizes->blocks; ++b)
        add_lines(&e, row->block, b);
    add_lines(&e, row->tail, 0);
    return e.layers;
}
