/* Networks of transformers that read a whole text: each position sees all. */
#include "model/exchange/pretrained_rows.h"

#include <stddef.h>

#define AT(member) offsetof(qn__pretrained_sizes, member)

/* A normalisation stands after a block's sum, not before its path as in newer networks. */

/* ------------------------------------------------------------------ bert */

static const qn__config_key bert_keys[] = {{"vocab_size", AT(vocabulary), 'n', 0, NULL},
                                           {"hidden_size", AT(width), 'n', 0, NULL},
                                           {"num_attention_heads", AT(heads), 'n', 0, NULL},
                                           {"num_hidden_layers", AT(blocks), 'n', 0, NULL},
                                           {"max_position_embeddings", AT(positions), 'n', 0, NULL},
                                           {"intermediate_size", AT(inner), 'n', 0, NULL},
                                           {"type_vocab_size", AT(types), 'n', 2, NULL},
                                           {"hidden_act", AT(activation), 'a', 0, "gelu"},
                                           {"layer_norm_eps", AT(epsilon), 'r', 1e-12, NULL},
                                           {.key = NULL}};

static const qn__config_must bert_musts[] = {
    {"position_embedding_type", "\"absolute\"", "positions are added to the tokens"},
    {"is_decoder", "false", "each position sees all"},
    {"add_cross_attention", "false", "a network reads one sequence"},
    {.key = NULL}};

static const qn__pretrained_line bert_head[] = {
    {"embedding %V %N", "embeddings.word_embeddings", 0},
    {"position learned", "embeddings.position_embeddings&embeddings.token_type_embeddings", 0},
    {"layernorm channels%E", "embeddings.LayerNorm", 0},
    {.text = NULL}};

#define BERT_ATTENTION "encoder.layer.#.attention."

static const qn__pretrained_line bert_block[] = {
    {"residual { conv %A 1x1",
     BERT_ATTENTION "self.query+" BERT_ATTENTION "self.key+" BERT_ATTENTION "self.value", 0},
    {"attention %H", NULL, 0},
    {"conv %N 1x1 }", BERT_ATTENTION "output.dense", 0},
    {"layernorm channels%E", BERT_ATTENTION "output.LayerNorm", 0},
    {"residual { conv %F 1x1 %G", "encoder.layer.#.intermediate.dense", 0},
    {"conv %N 1x1 }", "encoder.layer.#.output.dense", 0},
    {"layernorm channels%E", "encoder.layer.#.output.LayerNorm", 0},
    {.text = NULL}};

static const qn__pretrained_line bert_classes[] = {{"pool first", NULL, 0},
                                                   {"dense %N tanh", "pooler.dense", 0},
                                                   {"dense %C %S", "/classifier", 0},
                                                   {.text = NULL}};

static const qn__pretrained_line bert_tags[] = {{"conv %C 1x1 %S", "/classifier", 0},
                                                {.text = NULL}};

static const char *const bert_ignored[] = {"embeddings.position_ids", "pooler.dense.weight",
                                           "pooler.dense.bias", NULL};

/* ------------------------------------------------------------------ distilbert */

static const qn__config_key distilbert_keys[] = {
    {"vocab_size", AT(vocabulary), 'n', 0, NULL},
    {"dim", AT(width), 'n', 0, NULL},
    {"n_heads", AT(heads), 'n', 0, NULL},
    {"n_layers", AT(blocks), 'n', 0, NULL},
    {"max_position_embeddings", AT(positions), 'n', 0, NULL},
    {"hidden_dim", AT(inner), 'n', 0, NULL},
    {"activation", AT(activation), 'a', 0, "gelu"},
    {.key = NULL}};

static const qn__config_must distilbert_musts[] = {{.key = NULL}};

static const qn__pretrained_line distilbert_head[] = {
    {"embedding %V %N", "embeddings.word_embeddings", 0},
    {"position learned", "embeddings.position_embeddings", 0},
    {"layernorm channels eps 1e-12", "embeddings.LayerNorm", 0},
    {.text = NULL}};

#define DISTIL_ATTENTION "transformer.layer.#.attention."

static const qn__pretrained_line distilbert_block[] = {
    {"residual { conv %A 1x1",
     DISTIL_ATTENTION "q_lin+" DISTIL_ATTENTION "k_lin+" DISTIL_ATTENTION "v_lin", 0},
    {"attention %H", NULL, 0},
    {"conv %N 1x1 }", DISTIL_ATTENTION "out_lin", 0},
    {"layernorm channels eps 1e-12", "transformer.layer.#.sa_layer_norm", 0},
    {"residual { conv %F 1x1 %G", "transformer.layer.#.ffn.lin1", 0},
    {"conv %N 1x1 }", "transformer.layer.#.ffn.lin2", 0},
    {"layernorm channels eps 1e-12", "transformer.layer.#.output_layer_norm", 0},
    {.text = NULL}};

static const qn__pretrained_line distilbert_classes[] = {{"pool first", NULL, 0},
                                                         {"dense %N relu", "/pre_classifier", 0},
                                                         {"dense %C %S", "/classifier", 0},
                                                         {.text = NULL}};

/* ------------------------------------------------------------------ the rows */

#define BERT(CLASS, TASK, TAIL)                                                                    \
    {                                                                                              \
        "bert", CLASS, "bert.", bert_keys, bert_musts, bert_head, bert_block, TAIL, TASK, 1,       \
            bert_ignored                                                                           \
    }
#define DISTILBERT(CLASS, TASK, TAIL)                                                              \
    {                                                                                              \
        "distilbert", CLASS, "distilbert.", distilbert_keys, distilbert_musts, distilbert_head,    \
            distilbert_block, TAIL, TASK, 1, bert_ignored                                          \
    }

const qn__pretrained qn__pretrained_encoders[] = {
    BERT("BertForSequenceClassification", QN__PRETRAINED_CLASSIFY, bert_classes),
    BERT("BertForTokenClassification", QN__PRETRAINED_TAGS, bert_tags),
    DISTILBERT("DistilBertForSequenceClassification", QN__PRETRAINED_CLASSIFY, distilbert_classes),
    DISTILBERT("DistilBertForTokenClassification", QN__PRETRAINED_TAGS, bert_tags),
    {.type = NULL}};
