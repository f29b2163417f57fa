/* Networks of the package transformers: what their config.json says, and how their tensors become
 * the layers of a model text. docs/formats.md describes both. */
#ifndef QN_MODEL_EXCHANGE_PRETRAINED_H
#define QN_MODEL_EXCHANGE_PRETRAINED_H

#include "base/text/text.h"
#include "num/program.h"

/* What decides a network of one type. */
typedef struct qn__pretrained_sizes {
    uint32_t vocabulary, width, heads, blocks, positions;
    uint32_t tied;         /* 1: the last layer has the weights of the embedding */
    uint32_t inner;        /* channels between the two layers of a block's second part */
    uint32_t groups, head; /* heads of keys, channels of a head */
    uint32_t biases;       /* 1: the two layers around attention have biases */
    double base, factor;   /* of rotary positions, */
    double low, high;      /* with the rule of Llama 3 where `trained` is not 0 */
    uint32_t trained;
    double epsilon;      /* of normalisations */
    char activation[24]; /* as a model text has it */
    uint32_t types;      /* rows of the table of token types, of which the first one counts */
    uint32_t outputs;    /* of a head */
    char answer[24];     /* the activation of its last layer */
} qn__pretrained_sizes;

/* A key of config.json. */
typedef struct qn__config_key {
    const char *key;
    size_t place; /* in qn__pretrained_sizes */
    /* 'n': uint32_t from 1; 'b': one that is 1 for true; 'r': double above 0; 'a': the name of an
     * activation; 'p': rope_theta, with what other keys say about rotary positions */
    char form;
    double otherwise; /* where the key is missing or null; 0: it must be there; -4: four times the
                         width; -1: as many as heads; -2: the width by the heads */
    const char *word; /* of an activation, in the place of `otherwise` */
} qn__config_key;

/* A key with one value that is possible here: another one is refused. */
typedef struct qn__config_must {
    const char *key, *value; /* as JSON: "true", "\"absolute\"" */
    const char *why;
} qn__config_must;

/* Layers of a model text. "%N" stands for a number of qn__pretrained_sizes, '#' in names of modules
 * for that of a block. At most one of the layers has parameters: then `module` names those of the
 * tensors, "a+b+c" three whose outputs follow one another: queries, keys and values, "/a" one
 * without the prefix of others, "a&b" a table to each row of which the first row of b is added,
 * "a|b" a, where the layer of a tied network has the weights of b, which is another one's. */
typedef struct qn__pretrained_line {
    const char *text, *module;
    int turned; /* the weight is [in][out] */
} qn__pretrained_line;

/* What a network answers. */
typedef enum qn__pretrained_task {
    QN__PRETRAINED_NEXT,     /* the next token */
    QN__PRETRAINED_CLASSIFY, /* a class of the text, several labels or a real number */
    QN__PRETRAINED_TAGS      /* a class of each token */
} qn__pretrained_task;

/* A type of networks with one head. The first row of a type is for checkpoints of other classes. */
typedef struct qn__pretrained {
    const char *type;   /* model_type of config.json */
    const char *class;  /* of `architectures` */
    const char *prefix; /* of the names of its tensors */
    const qn__config_key *key;
    const qn__config_must *must;
    const qn__pretrained_line *head, *block, *tail; /* each ends with a text of NULL */
    qn__pretrained_task task;
    int table; /* 1: positions have parameters; 0: an item may have any number of them */
    const char *const *ignored; /* tensors that are not parameters, ends with NULL */
} qn__pretrained;

/* Row `index`, NULL after the last. */
const qn__pretrained *qn__pretrained_row(uint32_t index);
/* The row of a type and a class, the first one of the type where no other has it; or of a task.
 * NULL: there is none. */
const qn__pretrained *qn__pretrained_of_class(const char *type, const char *class);
const qn__pretrained *qn__pretrained_of_task(const char *type, qn__pretrained_task task);
/* "gpt2, bert" */
void qn__pretrained_list(char *text, size_t size);

/* Names of activations in config.json and in a model text. */
const char *qn__pretrained_activation(const char *theirs);
const char *qn__pretrained_activation_back(const char *ours);

/* One layer with parameters. */
enum { QN__PRETRAINED_NAME = 160 };
typedef struct qn__pretrained_layer {
    char module[QN__PRETRAINED_NAME]; /* with the number of the block */
    int turned;
} qn__pretrained_layer;

/* The model text, and a layer for each that has parameters: at most QN__MAX_LAYERS of them are
 * written; returns their number. `text` may fail for lack of memory. */
uint32_t qn__pretrained_expand(const qn__pretrained *row, const qn__pretrained_sizes *sizes,
                               qn__text *text, qn__pretrained_layer *layer);

#endif
