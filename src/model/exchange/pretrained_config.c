#include "model/exchange/pretrained_config.h"

#include "base/files/file.h"
#include "base/text/json.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct config_file {
    const char *path;
    qn__json *json;
    const qn__json_node *root;
    const qn__pretrained_said *said;
    qn__pretrained_config *out;
    qn_error *err;
} config_file;

/* A number of a config is at most that: more is a mistake, and sums of them stay small. */
enum { MOST = 1 << 24, MOST_BLOCKS = QN__MAX_LAYERS, MOST_TAGS = 255, USUAL_LABELS = 2 };

/* ------------------------------------------------------------------ the file */

static qn_status open_config(const char *path, config_file *c) {
    qn__bytes file;
    qn_status status = qn__file_read(path, &file, c->err);
    if (status != QN_OK)
        return status;
    c->path = path;
    status = qn__json_parse((const char *)file.data, file.size, &c->json, c->err);
    qn__bytes_release(&file);
    if (status == QN_FORMAT) {
        qn__at(c->err, "%.300s", path);
        return qn__remedy(c->err, status, "give the file as save_pretrained wrote it");
    }
    c->root = status == QN_OK ? qn__json_root(c->json) : NULL;
    return status;
}

static qn_status refuse(const config_file *c, qn_status status, const char *remedy) {
    qn__at(c->err, "%.300s", c->path);
    return qn__remedy(c->err, status, "%s", remedy);
}

/* NULL where the file does not say it. */
static const qn__json_node *said(const config_file *c, const char *key) {
    const qn__json_node *node = qn__json_get(c->root, key);
    return qn__json_is_null(node) ? NULL : node;
}

/* A value as a message shows it. */
static const char *show(const qn__json_node *node, char text[60]) {
    double number;
    const char *word = qn__json_string(node);
    if (word)
        snprintf(text, 60, "\"%.50s\"", word);
    else if (qn__json_real(node, &number))
        snprintf(text, 60, "%.17g", number);
    else
        snprintf(text, 60, "%s",
                 qn__json_is_array(node)    ? "a list"
                 : qn__json_is_object(node) ? "an object"
                 : qn__json_is_true(node)   ? "true"
                                            : "false");
    return text;
}

static qn_status refuse_value(const config_file *c, const char *key, const qn__json_node *node,
                              const char *wanted) {
    char text[60];
    if (node)
        qn__fail(c->err, QN_INPUT, "\"%s\" is %s, not %s", key, show(node, text), wanted);
    else
        qn__fail(c->err, QN_INPUT, "\"%s\" is missing, which is %s", key, wanted);
    return refuse(c, QN_INPUT, "give the config.json that belongs to these tensors");
}

/* ------------------------------------------------------------------ its values */

static uint32_t usual_number(const qn__config_key *k, const qn__pretrained_sizes *s) {
    switch ((int)k->otherwise) {
    case -1:
        return s->heads;
    case -2:
        return s->width / s->heads;
    case -4:
        return 4 * s->width;
    default:
        return (uint32_t)k->otherwise;
    }
}

static qn_status read_number(const config_file *c, const qn__config_key *k,
                             qn__pretrained_sizes *out) {
    uint32_t *to = (uint32_t *)(void *)((char *)out + k->place);
    const qn__json_node *node = said(c, k->key);
    uint64_t number = 0;
    if (!node && k->otherwise != 0) {
        *to = usual_number(k, out);
        return QN_OK;
    }
    if (!node || !qn__json_u64(node, &number) || number == 0 || number > MOST)
        return refuse_value(c, k->key, node, "a whole number from 1 to 16777216");
    *to = (uint32_t)number;
    return QN_OK;
}

static qn_status read_truth(const config_file *c, const qn__config_key *k,
                            qn__pretrained_sizes *out) {
    uint32_t *to = (uint32_t *)(void *)((char *)out + k->place);
    const qn__json_node *node = said(c, k->key);
    char text[60];
    *to = node ? (uint32_t)qn__json_is_true(node) : (uint32_t)k->otherwise;
    if (node && !*to && strcmp(show(node, text), "false") != 0)
        return refuse_value(c, k->key, node, "true or false");
    return QN_OK;
}

static qn_status read_real(const config_file *c, const qn__config_key *k,
                           qn__pretrained_sizes *out) {
    double *to = (double *)(void *)((char *)out + k->place);
    const qn__json_node *node = said(c, k->key);
    *to = k->otherwise;
    if (!node && k->otherwise != 0)
        return QN_OK;
    if (!node || !qn__json_real(node, to) || !(*to >= 1e-30 && *to <= 1))
        return refuse_value(c, k->key, node, "a number above 0, up to 1");
    return QN_OK;
}

static qn_status refuse_rotary(const config_file *c, const char *what) {
    qn__fail(c->err, QN_UNSUPPORTED, "%s", what);
    return refuse(c, QN_UNSUPPORTED,
                  "rope_scaling may be null, \"linear\" with a factor, or \"llama3\"");
}

/* A number of the object about rotary positions. */
static qn_status read_turn(const config_file *c, const qn__json_node *in, const char *key,
                           double least, double *to) {
    const qn__json_node *node = qn__json_get(in, key);
    if (node && qn__json_real(node, to) && *to >= least && *to <= 1e30)
        return QN_OK;
    return refuse_value(c, key, node, "a number in its range");
}

static qn_status read_llama3(const config_file *c, const qn__json_node *in,
                             qn__pretrained_sizes *out) {
    double trained = 0;
    qn_status status = read_turn(c, in, "low_freq_factor", 0, &out->low);
    if (status == QN_OK)
        status = read_turn(c, in, "high_freq_factor", 0, &out->high);
    if (status == QN_OK)
        status = read_turn(c, in, "original_max_position_embeddings", 1, &trained);
    out->trained = trained <= MOST ? (uint32_t)trained : MOST;
    return status;
}

/* rope_theta, and rope_scaling or rope_parameters, which may have it, too. */
static qn_status read_rotary(const config_file *c, const qn__config_key *k,
                             qn__pretrained_sizes *out) {
    const qn__json_node *own = said(c, "rope_parameters"),
                        *scaling = own ? own : said(c, "rope_scaling");
    const qn__json_node *theta = qn__json_get(scaling, k->key);
    const qn__json_node *word = qn__json_get(scaling, "rope_type");
    const char *type = qn__json_string(word ? word : qn__json_get(scaling, "type"));
    char what[120];
    theta = theta ? theta : said(c, k->key);
    out->base = k->otherwise;
    out->factor = 1;
    if (theta && (!qn__json_real(theta, &out->base) || !(out->base >= 1 && out->base <= 1e30)))
        return refuse_value(c, k->key, theta, "a number from 1");
    if (!scaling || !type || strcmp(type, "default") == 0)
        return QN_OK;
    const int llama3 = strcmp(type, "llama3") == 0;
    if (!llama3 && strcmp(type, "linear") != 0) {
        snprintf(what, sizeof what, "rotary positions of the type \"%.40s\" are not possible here",
                 type);
        return refuse_rotary(c, what);
    }
    const qn_status status = read_turn(c, scaling, "factor", 1, &out->factor);
    return status == QN_OK && llama3 ? read_llama3(c, scaling, out) : status;
}

static qn_status read_activation(const config_file *c, const qn__config_key *k,
                                 qn__pretrained_sizes *out) {
    char *to = (char *)out + k->place;
    const qn__json_node *node = said(c, k->key);
    const char *theirs = node || !k->word ? qn__json_string(node) : k->word;
    const char *ours = theirs ? qn__pretrained_activation(theirs) : NULL;
    if (!theirs)
        return refuse_value(c, k->key, node, "the name of an activation");
    if (!ours) {
        qn__fail(c->err, QN_UNSUPPORTED,
                 "\"%s\" is \"%.40s\", an activation that Quern does not have", k->key, theirs);
        return refuse(c, QN_UNSUPPORTED, "gelu, gelu_new, relu, silu and tanh are known");
    }
    snprintf(to, sizeof out->activation, "%s", ours);
    return QN_OK;
}

static qn_status read_key(const config_file *c, const qn__config_key *k,
                          qn__pretrained_sizes *out) {
    return k->form == 'n'   ? read_number(c, k, out)
           : k->form == 'b' ? read_truth(c, k, out)
           : k->form == 'p' ? read_rotary(c, k, out)
           : k->form == 'r' ? read_real(c, k, out)
                            : read_activation(c, k, out);
}

/* Whether a value of the file is the one in the table; one that is missing is. */
static int is_value(const qn__json_node *node, const char *value) {
    char text[60];
    return !node || strcmp(show(node, text), value) == 0;
}

static qn_status check_must(const config_file *c, const qn__config_must *must) {
    const qn__json_node *node = said(c, must->key);
    char text[60];
    if (is_value(node, must->value))
        return QN_OK;
    qn__fail(c->err, QN_UNSUPPORTED, "\"%s\" is %s, and only %s is possible here: %s", must->key,
             show(node, text), must->value, must->why);
    return refuse(c, QN_UNSUPPORTED, "such a network cannot be imported");
}

static qn_status check_sizes(const config_file *c, qn__pretrained_sizes *s) {
    s->groups = s->groups ? s->groups : s->heads;
    if (s->heads % s->groups) {
        qn__fail(c->err, QN_INPUT, "%u heads cannot be divided among %u heads of keys", s->heads,
                 s->groups);
        return refuse(c, QN_INPUT, "give the config.json that belongs to these tensors");
    }
    if (!s->head && s->width % s->heads) {
        qn__fail(c->err, QN_INPUT, "%u channels cannot be divided among %u heads", s->width,
                 s->heads);
        return refuse(c, QN_INPUT, "give the config.json that belongs to these tensors");
    }
    if (s->blocks > MOST_BLOCKS) {
        qn__fail(c->err, QN_UNSUPPORTED, "%u blocks are more than a network can have here",
                 s->blocks);
        return refuse(c, QN_UNSUPPORTED, "give the config.json that belongs to these tensors");
    }
    s->head = s->head ? s->head : s->width / s->heads;
    return QN_OK;
}

/* ------------------------------------------------------------------ what it answers */

/* Whether the names only say numbers, as transformers gives them where nobody did. */
static int are_numbers(const qn__class_labels *labels) {
    char usual[QN__LABEL_USUAL];
    for (uint32_t i = 0; i < labels->count; ++i) {
        qn__class_label_usual(i, usual);
        if (strcmp(labels->name[i], usual) != 0)
            return 0;
    }
    return 1;
}

static qn_status read_labels(const config_file *c) {
    const qn__json_node *names = said(c, "id2label");
    qn__pretrained_config *out = c->out;
    qn_status status = names ? qn__class_labels_of_json(names, NULL, &out->labels, c->err) : QN_OK;
    if (status != QN_OK) {
        qn__at(c->err, "%.300s, \"id2label\"", c->path);
        return status;
    }
    out->sizes.outputs = out->labels.count;
    if (!names) {
        const qn__config_key usual = {"num_labels", offsetof(qn__pretrained_sizes, outputs), 'n',
                                      USUAL_LABELS, NULL};
        status = read_number(c, &usual, &out->sizes);
    }
    if (are_numbers(&out->labels))
        qn__class_labels_release(&out->labels);
    return status;
}

static qn_status refuse_outputs(const config_file *c, const char *what) {
    qn__fail(c->err, QN_UNSUPPORTED, "the network has %u outputs, %s", c->out->sizes.outputs, what);
    return refuse(c, QN_UNSUPPORTED, "such a head cannot be imported");
}

/* The head of the row: how many outputs it has, and what they are. */
static qn_status read_head(const config_file *c) {
    qn__pretrained_sizes *s = &c->out->sizes;
    const char *problem = qn__json_string(said(c, "problem_type"));
    const int tags = c->out->row->task == QN__PRETRAINED_TAGS;
    if (c->out->row->task == QN__PRETRAINED_NEXT)
        return QN_OK;
    const qn_status status = read_labels(c);
    if (status != QN_OK)
        return status;
    problem = problem ? problem : "";
    const int several = !tags && strcmp(problem, "multi_label_classification") == 0;
    const int real = !tags && !several && (s->outputs == 1 || strcmp(problem, "regression") == 0);
    if (real && s->outputs > 1)
        return refuse_outputs(c, "each a real number, and one is possible here");
    if (tags && (s->outputs < 2 || s->outputs > MOST_TAGS))
        return refuse_outputs(c, "and 2 to 255 classes of tokens are possible here");
    snprintf(s->answer, sizeof s->answer, "%s", several ? "sigmoid" : real ? "none" : "softmax");
    return QN_OK;
}

/* ------------------------------------------------------------------ which network it is */

static qn_status find_task(const config_file *c, const char *type) {
    static const char *const words[] = {[QN__PRETRAINED_NEXT] = "next",
                                        [QN__PRETRAINED_CLASSIFY] = "classify",
                                        [QN__PRETRAINED_TAGS] = "tags"};
    const char *task = c->said->task;
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strcmp(task, words[i]) == 0) {
            c->out->row = qn__pretrained_of_task(type, (qn__pretrained_task)i);
            if (c->out->row)
                return QN_OK;
            qn__fail(c->err, QN_UNSUPPORTED, "%s reads whole texts, and tells no next token", type);
            qn__at(c->err, "`task`");
            return qn__remedy(c->err, QN_UNSUPPORTED, "give classify or tags");
        }
    qn__fail(c->err, QN_USAGE, "`task` cannot be \"%.40s\"", task);
    return qn__remedy(c->err, QN_USAGE, "it is next, classify or tags");
}

static qn_status refuse_type(const config_file *c, const char *name) {
    char known[200], word[60];
    const qn__json_node *node = said(c, "model_type");
    qn__pretrained_list(known, sizeof known);
    if (name)
        qn__fail(c->err, QN_UNSUPPORTED, "a network of the type \"%.40s\" is not known", name);
    else
        qn__fail(c->err, QN_INPUT,
                 "the file does not say which network it is: \"model_type\" is %s",
                 node ? show(node, word) : "missing");
    qn__at(c->err, "%.300s", c->path);
    return qn__remedy(c->err, name ? QN_UNSUPPORTED : QN_INPUT,
                      "these are known: %s; others need `train.model` with their layers", known);
}

static qn_status find_row(const config_file *c) {
    const char *class = qn__json_string(qn__json_at(said(c, "architectures"), 0));
    const char *name = c->said->type ? c->said->type : qn__json_string(said(c, "model_type"));
    qn__pretrained_config *out = c->out;
    out->row = name ? qn__pretrained_of_class(name, class) : NULL;
    if (!out->row)
        return refuse_type(c, name);
    const qn_status status = c->said->task ? find_task(c, name) : QN_OK;
    if (status != QN_OK)
        return status;
    const int own = class && strcmp(class, out->row->class) == 0;
    out->own_head = own || (out->row->task == QN__PRETRAINED_NEXT);
    return QN_OK;
}

static qn_status read_all(const config_file *c) {
    qn_status status = find_row(c);
    const qn__pretrained *row = c->out->row;
    for (size_t i = 0; status == QN_OK && row->must[i].key; ++i)
        status = check_must(c, &row->must[i]);
    for (size_t i = 0; status == QN_OK && row->key[i].key; ++i)
        status = read_key(c, &row->key[i], &c->out->sizes);
    if (status == QN_OK)
        status = check_sizes(c, &c->out->sizes);
    return status == QN_OK ? read_head(c) : status;
}

qn_status qn__pretrained_config_read(const char *path, const qn__pretrained_said *what,
                                     qn__pretrained_config *out, qn_error *err) {
    config_file c = {.said = what, .out = out, .err = err};
    *out = (qn__pretrained_config){.row = NULL};
    qn_status status = open_config(path, &c);
    if (status == QN_OK)
        status = read_all(&c);
    qn__json_free(c.json);
    return status;
}

qn_status qn__pretrained_config_type(const char *path, char type[32], qn_error *err) {
    config_file c = {.err = err};
    qn_status status = open_config(path, &c);
    *type = '\0';
    if (status != QN_OK)
        return status;
    const int timms =
        qn__json_get(c.root, "architecture") || qn__json_get(c.root, "pretrained_cfg");
    const char *word = !timms ? qn__json_string(qn__json_get(c.root, "model_type")) : NULL;
    if (word)
        snprintf(type, 32, "%.31s", word);
    qn__json_free(c.json);
    return status;
}
