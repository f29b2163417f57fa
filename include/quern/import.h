/* Models from the parameters that other programs have trained. */
#ifndef QUERN_IMPORT_H
#define QUERN_IMPORT_H

#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tells where a tensor of the model, such as "layer0.weight", comes from: the name of a tensor in
 * the file, or "" where the file has none and the default was taken: 1 for weights of
 * normalisations, 0 for biases. A sum of two tensors is "A + B". Texts are valid during the call.
 */
typedef void (*qn_import_told)(void *user, const char *tensor, const char *from);

/* Makes a model of the parameters in a safetensors file, as
 * safetensors.torch.save_file(net.state_dict(), path) writes it. The names are PyTorch's:
 * "NAME.weight", "NAME.bias", "NAME.running_mean", "NAME.running_var", and "NAME.weight_ih_l0" and
 * the others of LSTM and GRU; "NAME.num_batches_tracked" is ignored. Elements are F32, F16, BF16 or
 * F64; F64 is rounded to the nearest float32.
 *
 * Of `job` it reads `model` (the network, as for qn_train_open), `shape`, `loss` and `scale`, which
 * is "none", "unit", "fraction", "imagenet" or numbers of channels. `like` is a data set like those
 * that the model is for. Only its features, its shape, how images were resized, its rules, and the
 * names of its columns and classes are used, not its values. A network that ends with a convolution
 * gives the class of each pixel; one that ends with a dense sigmoid layer of several outputs, with
 * the loss "binary" or none, gives several labels, and so does a ready model with the loss "binary"
 * and several classes. The names are then those of the pixels' classes or of the labels. Without a
 * loss a softmax has "cross-entropy", a sigmoid "binary", another last layer "mse".
 *
 * Where the modules have the names that a network of torchvision or timm gives them, and `model`
 * has as many layers with parameters, names say which module a layer takes. Else each layer with
 * parameters takes the first module whose tensors have its shapes and that no layer before took, in
 * the order of names; numbers in names count by value. A doubt about this order is reported by
 * qn_device_note. `told`, which may be NULL, is called with `user` for each
 * tensor of the model; it calls no function of the library.
 *
 * The recipe of such a model describes no training (docs/exactness.md 12.4): it cannot be replayed.
 *
 * On success *out is owned by the caller, for qn_model_free; after a failure it is NULL. Fails with
 * QN_MISMATCH (a layer without tensors, a tensor without a layer), QN_INPUT (numbers that are not
 * finite, tensors of other kinds), QN_FORMAT (not a safetensors file), QN_USAGE, QN_IO or
 * QN_MEMORY. */
QN_API qn_status qn_model_import(const char *path, const qn_train_options *job, const qn_data *like,
                                 qn_import_told told, void *user, qn_model **out, qn_error *err);

/* The network that a state dict is of. */
typedef struct qn_import_found {
    size_t size;      /* sizeof(qn_import_found) */
    char model[32];   /* the ready model, for qn_train_options.model */
    char library[32]; /* whose names the tensors have: "torchvision" or "timm" */
    uint32_t classes; /* outputs of the last layer */
} qn_import_found;

/* Finds the network of a safetensors file by the names of its modules, which may all have one
 * prefix, such as "module.". Set found->size before. Shapes are checked by qn_model_import. Fails
 * with QN_MISMATCH (no network with these names is known), and as qn_model_import does for files
 * that it cannot read. */
QN_API qn_status qn_model_recognise(const char *path, qn_import_found *found, qn_error *err);

/* What is said about a checkpoint of the package transformers beside its files. */
typedef struct qn_pretrained_options {
    size_t size;        /* sizeof(qn_pretrained_options) */
    const char *type;   /* "gpt2": what the network is; NULL: the model_type of its config.json */
    const char *config; /* the file; NULL: config.json in the folder of the tensors */
    const char *tokenizer; /* a tokenizer.json, or "none"; NULL: the one in that folder, if any */
    uint32_t context;      /* positions of an item; 0: as many as config.json says */
    const char *task; /* "next": the next token; "classify": a class of the text; "tags": a class of
                         each token. NULL: what the checkpoint was saved for */
} qn_pretrained_options;

/* Makes a model of a checkpoint as save_pretrained of the package transformers writes it. `path` is
 * its folder, its safetensors file, or the index of several. docs/formats.md says which networks
 * are known, and what of config.json they may say. `options` may be NULL. The tokenizer becomes
 * part of the model. `told` as for qn_model_import; several tensors that become one are joined by
 * " + ".
 *
 * On success *out is owned by the caller, for qn_model_free; after a failure it is NULL. Fails with
 * QN_MISMATCH (a tensor is missing, has another shape than config.json says, or belongs to no
 * part), QN_UNSUPPORTED (what the network or its tokenizer cannot do here; the key is named),
 * QN_INPUT (a value of config.json makes no sense, a number is not finite), QN_FORMAT, QN_USAGE,
 * QN_IO or QN_MEMORY. */
QN_API qn_status qn_model_import_pretrained(const char *path, const qn_pretrained_options *options,
                                            qn_import_told told, void *user, qn_model **out,
                                            qn_error *err);

/* The model_type of the config.json of such a checkpoint; "" where there is none. `config` as in
 * qn_pretrained_options. Fails with QN_FORMAT (not JSON), QN_IO or QN_MEMORY. */
QN_API qn_status qn_pretrained_type(const char *path, const char *config, char type[32],
                                    qn_error *err);

/* What a file says about a network that another program has trained. */
typedef struct qn_import_config qn_import_config;

typedef struct qn_import_about {
    size_t size;                   /* sizeof(qn_import_about) */
    const char *shape;             /* of an item, "3x224x224"; NULL: the file does not say it */
    const char *test_shape;        /* of items at which the network was tested; NULL: not said */
    const char *scale;             /* for qn_train_options.scale; NULL: not said */
    const char *resize;            /* for qn_data_arrays.resize; NULL: not said */
    uint32_t classes;              /* 0: not said */
    const char *const *class_name; /* `classes` texts, which differ; NULL: not said */
} qn_import_about;

/* Reads a config.json as timm writes it (docs/formats.md). `shape`, which may be NULL, is that of
 * an item where it is not the one of the file: images are then resized for it. On success *out is
 * owned by the caller, for qn_import_config_free; after a failure it is NULL. Fails with QN_IO,
 * QN_FORMAT (not JSON), QN_INPUT (what the file says cannot be done here) or QN_MEMORY. */
QN_API qn_status qn_import_config_open(const char *path, const char *shape, qn_import_config **out,
                                       qn_error *err);

/* The same for a file of the names of classes alone: JSON where its name ends in ".json", else a
 * text with one name a line. */
QN_API qn_status qn_import_labels_open(const char *path, qn_import_config **out, qn_error *err);

/* Fills *out, whose size is set before. Texts are valid as long as `config`. */
QN_API qn_status qn_import_config_get(const qn_import_config *config, qn_import_about *out,
                                      qn_error *err);
QN_API void qn_import_config_free(qn_import_config *config); /* NULL: nothing happens */

#ifdef __cplusplus
}
#endif
#endif
