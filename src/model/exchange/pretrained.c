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

/* ------------------------------------------------------------------ gpt2 */

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

/* ------------------------------------------------------------------ llama, qwen2 */

static const qn__config_key llama_keys[] = {
    {"vocab_size", AT(vocabulary), 'n', 0, NULL},
    {"hidden_size", AT(width), 'n', 0, NULL},
    {"num_attention_heads", AT(heads), 'n', 0, NULL},
    {"num_key_value_heads", AT(groups), 'n', -1, NULL},
    {"head_dim", AT(head), 'n', -2, NULL},
    {"num_hidden_layers", AT(blocks), 'n', 0, NULL},
    {"max_position_embeddings", AT(positions), 'n', 0, NULL},
    {"intermediate_size", AT(inner), 'n', 0, NULL},
    {"hidden_act", AT(activation), 'a', 0, "silu"},
    {"rms_norm_eps", AT(epsilon), 'r', 1e-6, NULL},
    {"rope_theta", AT(base), 'p', 10000, NULL},
    {"attention_bias", AT(biases), 'b', 0, NULL},
    {"tie_word_embeddings", AT(tied), 'b', 0, NULL},
    {.key = NULL}};

static const qn__config_key qwen2_keys[] = {
    {"vocab_size", AT(vocabulary), 'n', 0, NULL},
    {"hidden_size", AT(width), 'n', 0, NULL},
    {"num_attention_heads", AT(heads), 'n', 0, NULL},
    {"num_key_value_heads", AT(groups), 'n', -1, NULL},
    {"head_dim", AT(head), 'n', -2, NULL},
    {"num_hidden_layers", AT(blocks), 'n', 0, NULL},
    {"max_position_embeddings", AT(positions), 'n', 0, NULL},
    {"intermediate_size", AT(inner), 'n', 0, NULL},
    {"hidden_act", AT(activation), 'a', 0, "silu"},
    {"rms_norm_eps", AT(epsilon), 'r', 1e-6, NULL},
    {"rope_theta", AT(base), 'p', 10000, NULL},
    {"tie_word_embeddings", AT(tied), 'b', 0, NULL},
    {.key = NULL}};

static const qn__config_must llama_musts[] = {
    {"mlp_bias", "false", "the layers of a block's second part have no biases"}, {.key = NULL}};

static const qn__config_must qwen2_musts[] = {
    {"use_sliding_window", "false", "all blocks see all positions before"}, {.key = NULL}};

static const qn__pretrained_line llama_head[] = {{"embedding %V %N", "embed_tokens", 0},
                                                 {.text = NULL}};

/* What differs: the biases of a block's attention. */
#define LLAMA_BLOCK(BIASES, MIXED_BIASES)                                                          \
    {"residual { rmsnorm%E", "layers.#.input_layernorm", 0},                                       \
        {"conv %A 1x1" BIASES,                                                                     \
         "layers.#.self_attn.q_proj+layers.#.self_attn.k_proj+layers.#.self_attn.v_proj", 0},      \
        {"position rotary %H%K%R", NULL, 0}, {"attention %H causal%K", NULL, 0},                   \
        {"conv %N 1x1" MIXED_BIASES " }", "layers.#.self_attn.o_proj", 0},                         \
        {"residual { rmsnorm%E", "layers.#.post_attention_layernorm", 0},                          \
        {"product { conv %F 1x1 nobias %G", "layers.#.mlp.gate_proj", 0},                          \
        {"| conv %F 1x1 nobias }", "layers.#.mlp.up_proj", 0},                                     \
        {"conv %N 1x1 nobias }", "layers.#.mlp.down_proj", 0}, {                                   \
        .text = NULL                                                                               \
    }

static const qn__pretrained_line llama_block[] = {LLAMA_BLOCK("%B", "%B")};
static const qn__pretrained_line qwen2_block[] = {LLAMA_BLOCK("", " nobias")};

static const qn__pretrained_line llama_tail[] = {
    {"rmsnorm%E", "norm", 0},
    {"conv %V 1x1 nobias softmax", "/lm_head|embed_tokens", 0},
    {.text = NULL}};

static const char *const llama_ignored[] = {"layers.#.self_attn.rotary_emb.inv_freq",
                                            "rotary_emb.inv_freq", NULL};

/* ------------------------------------------------------------------ the table */

static const qn__pretrained rows[] = {
    {"gpt2", "GPT2LMHeadModel", "transformer.", gpt2_keys, gpt2_musts, gpt2_head, gpt2_block,
     gpt2_tail, 1, gpt2_ignored},
    {"llama", "LlamaForCausalLM", "model.", llama_keys, llama_musts, llama_head, llama_block,
     llama_tail, 0, llama_ignored},
    {"qwen2", "Qwen2ForCausalLM", "model.", qwen2_keys, qwen2_musts, llama_head, qwen2_block,
     llama_tail, 0, llama_ignored},
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

static void add_number(const char *word, double number, qn__text *text) {
    char digits[40];
    qn__float_plain((float)number, digits);
    qn__text_add(text, " %s%s%s", word, *word ? " " : "", digits);
}

static void add_rotary(const qn__pretrained_sizes *s, qn__text *text) {
    add_number("base", s->base, text);
    add_number("scale", s->factor, text);
    if (!s->trained)
        return;
    add_number("llama3", s->low, text);
    add_number("", s->high, text);
    qn__text_add(text, " %u", s->trained);
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
        qn__text_add(text, "%u", (s->heads + 2 * s->groups) * s->head);
        break;
    case 'B':
        qn__text_add(text, "%s", s->biases ? "" : " nobias");
        break;
    case 'K':
        qn__text_add(text, " kv %u", s->groups);
        break;
    case 'R':
        add_rotary(s, text);
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
    case 'E':
        add_number("eps", s->epsilon, text);
        break;
    default:
        qn__text_add(text, "%%%c", key);
    }
}

static void add_text(const qn__pretrained_sizes *s, const char *from, qn__text *text) {
    if (text->size)
        qn__text_add(text, *from == '|' ? " " : "; ");
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
