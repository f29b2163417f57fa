/* Networks of transformers that read a text from its beginning on. */
#include "model/exchange/pretrained_rows.h"

#include <stddef.h>

#define AT(member) offsetof(qn__pretrained_sizes, member)

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
                                                {"conv %V 1x1 %T softmax", "/lm_head|wte", 0},
                                                {.text = NULL}};

static const qn__pretrained_line gpt2_classes[] = {{"layernorm channels%E", "ln_f", 0},
                                                   {"pool last", NULL, 0},
                                                   {"dense %C nobias %S", "/score", 0},
                                                   {.text = NULL}};

static const qn__pretrained_line gpt2_tags[] = {
    {"layernorm channels%E", "ln_f", 0}, {"conv %C 1x1 %S", "/classifier", 0}, {.text = NULL}};

static const char *const gpt2_ignored[] = {"h.#.attn.bias", "h.#.attn.masked_bias", NULL};

/* ------------------------------------------------------------------ llama, qwen2 */

/* Keys that both have. */
#define LLAMA_KEYS                                                                                 \
    {"vocab_size", AT(vocabulary), 'n', 0, NULL}, {"hidden_size", AT(width), 'n', 0, NULL},        \
        {"num_attention_heads", AT(heads), 'n', 0, NULL},                                          \
        {"num_key_value_heads", AT(groups), 'n', -1, NULL}, {"head_dim", AT(head), 'n', -2, NULL}, \
        {"num_hidden_layers", AT(blocks), 'n', 0, NULL},                                           \
        {"max_position_embeddings", AT(positions), 'n', 0, NULL},                                  \
        {"intermediate_size", AT(inner), 'n', 0, NULL},                                            \
        {"hidden_act", AT(activation), 'a', 0, "silu"},                                            \
        {"rms_norm_eps", AT(epsilon), 'r', 1e-6, NULL},                                            \
        {"rope_theta", AT(base), 'p', 10000, NULL}, {                                              \
        "tie_word_embeddings", AT(tied), 'b', 0, NULL                                              \
    }

static const qn__config_key llama_keys[] = {
    LLAMA_KEYS, {"attention_bias", AT(biases), 'b', 0, NULL}, {.key = NULL}};

static const qn__config_key qwen2_keys[] = {LLAMA_KEYS, {.key = NULL}};

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
    {"conv %V 1x1 %T softmax", "/lm_head|embed_tokens", 0},
    {.text = NULL}};

static const qn__pretrained_line llama_classes[] = {{"rmsnorm%E", "norm", 0},
                                                    {"pool last", NULL, 0},
                                                    {"dense %C nobias %S", "/score", 0},
                                                    {.text = NULL}};

static const qn__pretrained_line llama_tags[] = {
    {"rmsnorm%E", "norm", 0}, {"conv %C 1x1 %S", "/score", 0}, {.text = NULL}};

static const char *const llama_ignored[] = {"layers.#.self_attn.rotary_emb.inv_freq",
                                            "rotary_emb.inv_freq", NULL};

/* ------------------------------------------------------------------ the rows */

#define GPT2(CLASS, TASK, TAIL)                                                                    \
    {                                                                                              \
        "gpt2", CLASS, "transformer.", gpt2_keys, gpt2_musts, gpt2_head, gpt2_block, TAIL, TASK,   \
            1, gpt2_ignored                                                                        \
    }
#define LLAMA(CLASS, TASK, TAIL)                                                                   \
    {                                                                                              \
        "llama", CLASS, "model.", llama_keys, llama_musts, llama_head, llama_block, TAIL, TASK, 0, \
            llama_ignored                                                                          \
    }
#define QWEN2(CLASS, TASK, TAIL)                                                                   \
    {                                                                                              \
        "qwen2", CLASS, "model.", qwen2_keys, qwen2_musts, llama_head, qwen2_block, TAIL, TASK, 0, \
            llama_ignored                                                                          \
    }

const qn__pretrained qn__pretrained_decoders[] = {
    GPT2("GPT2LMHeadModel", QN__PRETRAINED_NEXT, gpt2_tail),
    GPT2("GPT2ForSequenceClassification", QN__PRETRAINED_CLASSIFY, gpt2_classes),
    GPT2("GPT2ForTokenClassification", QN__PRETRAINED_TAGS, gpt2_tags),
    LLAMA("LlamaForCausalLM", QN__PRETRAINED_NEXT, llama_tail),
    LLAMA("LlamaForSequenceClassification", QN__PRETRAINED_CLASSIFY, llama_classes),
    LLAMA("LlamaForTokenClassification", QN__PRETRAINED_TAGS, llama_tags),
    QWEN2("Qwen2ForCausalLM", QN__PRETRAINED_NEXT, llama_tail),
    QWEN2("Qwen2ForSequenceClassification", QN__PRETRAINED_CLASSIFY, llama_classes),
    QWEN2("Qwen2ForTokenClassification", QN__PRETRAINED_TAGS, llama_tags),
    {.type = NULL}};
