/* The recipe: everything that determines a result. docs/exactness.md section 11. */
#ifndef QN_MODEL_RECIPE_RECIPE_H
#define QN_MODEL_RECIPE_RECIPE_H

#include "data/prepare/offsets.h"
#include "model/network/network.h"
#include "model/recipe/class_weight.h"
#include "num/augment.h"

typedef enum qn__init {
    QN__INIT_AUTO,
    QN__INIT_GLOROT,
    QN__INIT_HE,
    QN__INIT_LECUN,
    QN__INIT_ZERO /* what `auto` means for lbfgs with one layer; no recipe names it */
} qn__init;

/* The random numbers that a new last layer begins with: those of a layer without a start, of 24.60,
 * or others, of 24.83. */
typedef enum qn__new_last { QN__NEW_LAST_AS_FIRST = 1, QN__NEW_LAST_BY_START = 2 } qn__new_last;

typedef enum qn__schedule {
    QN__SCHEDULE_CONSTANT,
    QN__SCHEDULE_STEP,
    QN__SCHEDULE_COSINE,
    QN__SCHEDULE_EXPONENTIAL /* contract 8 */
} qn__schedule;

typedef enum qn__task {
    QN__TASK_CLASSIFY,
    QN__TASK_REGRESS,
    QN__TASK_SEGMENT,    /* each pixel has a class (docs/exactness.md 24.76) */
    QN__TASK_MULTILABEL, /* an item has several labels, each 0 or 1 */
    QN__TASK_NEXT        /* after each token of an item comes the next one (25.14) */
} qn__task;

typedef enum qn__keep { QN__KEEP_LAST, QN__KEEP_BEST } qn__keep;

/* Scaling and the numbers for missing values, in a training that starts from a model. */
typedef enum qn__init_scale { QN__INIT_SCALE_FIT, QN__INIT_SCALE_KEEP } qn__init_scale;

/* Each member has a row in option_rows.c, which says its key in the file. It owns `table` and its
 * texts: copied with qn__recipe_copy, ended with qn__recipe_release. */
typedef struct qn__recipe {
    uint32_t contract; /* the lowest version of the contract that has all it uses */
    qn__arith arith;
    char data[65]; /* digest of the whole data set: 64 hexadecimal digits */
    uint64_t items;
    uint32_t features;
    float valid; /* the fraction, 0: no split */
    qn__scale scale;
    qn__network network;
    qn__init init;
    qn__loss loss;
    qn__optimizer optimizer;
    union {
        qn__numbers numbers; /* of the loss and the optimiser; what they do not take is 0 */
        struct {
            QN__NUMBERS
        };
    };
    float learning_rate; /* "lr" */
    qn__schedule schedule;
    uint32_t lr_step;
    float lr_gamma;
    uint32_t warmup, batch, grain, epochs;
    uint64_t seed;
    uint32_t gradient_scale; /* "unit" */
    /* From here on contract 2; where these and those of contract 3 are 0, the recipe is of contract
     * 1. */
    qn__task task;
    qn__missing missing;
    qn__schema *table; /* names, categories and classes of the data; NULL: none */
    qn__keep keep;
    uint32_t patience;  /* epochs; 0: no early stopping */
    char init_from[65]; /* digest of the model that it starts from; "": none */
    /* From here on contract 3. */
    qn__init_scale init_scale;
    char *weight; /* the column of the items' weights, "" for one without a name; NULL: none */
    char *class_weight; /* as qn__class_weight_tidy writes it; NULL: all are 1 */
    /* From here on contract 4. */
    char valid_data[65]; /* digest of the validation file that decides the best epoch; "": none */
    /* From here on contract 5. */
    qn__shape shape; /* of the items, where qn__recipe_needs_shape; else all are 0 */
    /* From here on contract 6: written where it is not 0. */
    uint32_t nesterov;     /* 1: Nesterov's momentum */
    float l1, tolerance;   /* of lbfgs; else 0 */
    uint32_t no_intercept; /* 1: lbfgs leaves the last biases as they are */
    char *augment;         /* as qn__augment_add_text writes it; NULL: none */
    char *resize;          /* of images, as qn__resize_text writes it; NULL: none */
    char *stages;          /* two or more, as qn__stages_add_text writes them; NULL: none */
    /* From here on contract 7. */
    char *rules;       /* of reading, as qn__rules_text writes them; NULL: none */
    char *date_format; /* of CSV files, as strptime has it; NULL: as ISO 8601 */
    /* From here on contract 8. */
    char *scale_numbers; /* as qn__scale_numbers_text writes them; NULL: they are fitted */
    char *lora;          /* adapters, as qn__lora_text writes them; NULL: none */
    char *freeze; /* the layers that do not train, as qn__freeze_tidy writes them; NULL: none */
    uint32_t new_last; /* not 0: of init_from it has all layers but the last one: a qn__new_last */
    float lr_depth;    /* the factor of the learning rate from part to part (24.62); 0: 1 */
    float mixup, cutmix; /* of the beta distribution; 0: items are not mixed */
    /* From here on contract 9. */
    uint32_t context;       /* of a corpus: tokens from one item to the next; else 0 */
    float lr_min;           /* of the schedule cosine: the rate at its end; else 0 */
    uint32_t group_lengths; /* batches whose texts are sorted by length together; 0: none */
    char *tokenizer;        /* no key: its text, whose digest `tokens` has; NULL: there is none */
    char *tokens; /* how they were made, as qn_data_tokens tells it; NULL: the data is not tokens */
} qn__recipe;

/* The distribution of the initial weights, `auto` only where it depends on the layer. */
qn__init qn__recipe_init(const qn__recipe *recipe);

/* The rule of the updates: the optimiser, or a variant of it that has no name of its own. */
qn__optimizer qn__recipe_rule(const qn__recipe *recipe);

/* A deep copy. QN_MEMORY: *to is empty, and needs no release. */
qn_status qn__recipe_copy(const qn__recipe *from, qn__recipe *to, qn_error *err);

/* Frees what the recipe owns; it is empty afterwards. An empty recipe may be released. */
void qn__recipe_release(qn__recipe *recipe);

/* Sets to 0 the numbers that the optimiser and the schedule do not use, and -0 to 0, and the
 * version of the contract, so that recipes which mean the same are written the same. Call it before
 * qn__recipe_check. */
void qn__recipe_tidy(qn__recipe *recipe);

/* Whether its optimiser takes this member of the options. */
int qn__recipe_optimizer_takes(const qn__recipe *recipe, const char *member);

/* Completes a message about a recipe: `status` is what qn__fail returned for its first part. */
qn_status qn__recipe_refuse(qn_error *err, const char *option, const char *remedy,
                            qn_status status);

/* Checks the options, the network and their combination, but for qn__recipe_check_best; of the data
 * only that scaling and sizes are possible. Fails with QN_USAGE; the message names the option, such
 * as --batch. */
qn_status qn__recipe_check(const qn__recipe *recipe, qn_error *err);

/* Checks that there are validation items where they decide the best epoch. Fails with QN_USAGE. */
qn_status qn__recipe_check_best(const qn__recipe *recipe, qn_error *err);

/* Parts of qn__recipe_check. */
qn_status qn__recipe_check_nesterov(const qn__recipe *recipe, qn_error *err);
qn_status qn__recipe_check_full_batch(const qn__recipe *recipe, qn_error *err);

/* Refuses a recipe whose steps cannot be counted before it runs: QN_USAGE for lbfgs. */
qn_status qn__recipe_check_steps(const qn__recipe *recipe, qn_error *err);

/* 1 when the result depends on the validation losses of the epochs: early stopping, or the best
 * epoch (docs/exactness.md 7.5). */
int qn__recipe_judges(const qn__recipe *recipe);

/* Classes that the outputs of the last layer can tell apart: two with the loss binary. */
uint32_t qn__recipe_classes(const qn__recipe *recipe);

/* The classes to which it can give weights. The result borrows its table. */
qn__class_names qn__recipe_class_names(const qn__recipe *recipe);

/* Checks that labels 0 .. classes-1 (qn_data_classes) fit the outputs of the last layer. */
qn_status qn__recipe_check_classes(const qn__recipe *recipe, uint32_t classes, qn_error *err);

/* Inputs of its network: those of the columns of its data. */
uint32_t qn__recipe_inputs(const qn__recipe *recipe);

/* Whether the shape of images matters: to the first layer, or to augmentation. */
int qn__recipe_needs_shape(const qn__recipe *recipe);

/* The size of the vocabulary of which its items are tokens (docs/exactness.md 25.10); 0: they are
 * numbers. */
uint32_t qn__recipe_vocabulary(const qn__recipe *recipe);

/* How training items are augmented; without words if they are not. `recipe` was checked. */
qn__augment qn__recipe_augment(const qn__recipe *recipe);

/* The input of its network: pixels, or features without any. */
qn__shape qn__recipe_input(const qn__recipe *recipe);

/* Whether its model has a number for each column to replace missing values. */
int qn__recipe_fills(const qn__recipe *recipe);

/* Wide columns from which its model subtracts an offset. */
uint32_t qn__recipe_offsets(const qn__recipe *recipe);

/* How its model sees another table than that of its training; `fill` as qn__fill_fit makes it, or
 * NULL; `offset` of qn__recipe_offsets columns, or NULL. The result borrows them. */
qn__encoding qn__recipe_encoding(const qn__recipe *recipe, const float *fill,
                                 const qn__offset *offset, const float *idf);

/* Whether the outputs of its network are probabilities of the classes. */
int qn__recipe_gives_probabilities(const qn__recipe *recipe);

/* Refuses data whose items are windows of texts (docs/exactness.md 25.69): nothing trains on them.
 * Fails with QN_INPUT; `what` names the data. */
qn_status qn__recipe_check_windows(const qn_data *data, const char *what, qn_error *err);

/* Checks that its network takes the values of `data` as they are, where they are tokens. Fails with
 * QN_MISMATCH; `what` names the data. */
qn_status qn__recipe_check_tokens(const qn__recipe *recipe, const qn_data *data, const char *what,
                                  qn_error *err);

/* Whether its scaling is for data of bytes only. */
int qn__recipe_needs_bytes(const qn__recipe *recipe);

/* The longest recipe, as JSON: names of columns and classes are all that makes one long. */
#define QN__RECIPE_LONGEST ((size_t)1 << 23)

/* The recipe as JSON, byte for byte as 11.1 says; released with qn__free. Fails with QN_USAGE when
 * it is longer than QN__RECIPE_LONGEST, or with QN_MEMORY. */
qn_status qn__recipe_json(const qn__recipe *recipe, char **out, qn_error *err);

/* Reads a recipe that comes from anywhere. It must be written exactly as qn__recipe_json writes it,
 * and be one that qn__recipe_check accepts. On success *out is the caller's to release; it is
 * untouched on failure. Fails with QN_FORMAT (malformed, or made by a newer version) or QN_MEMORY.
 */
qn_status qn__recipe_parse(const char *json, size_t size, qn__recipe *out, qn_error *err);

/* The differences of two recipes as JSON: "lr 0.1 and 0.2, batch 64 and 32", cut at `size` with
 * "..."; empty if there are none. Returns the number of different keys; texts that are not JSON
 * differ in one. */
size_t qn__recipe_differences(const char *one, const char *other, char *text, size_t size);

/* Whether two recipes, as JSON, differ only in the number of epochs and have the same steps in the
 * epochs of both. They have not if the learning rates depend on the number of epochs, or a rule of
 * the contract is a later one. */
typedef enum qn__continuing {
    QN__CONTINUES_NOT,
    QN__CONTINUES,
    QN__CONTINUES_NOT_BY_COSINE, /* its schedule is why not */
    QN__CONTINUES_NOT_BY_STAGES,
    QN__CONTINUES_NOT_BY_RULE
} qn__continuing;
qn__continuing qn__recipe_continues(const char *one, const char *other);

#endif
