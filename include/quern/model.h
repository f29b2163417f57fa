/* Models: a network, or what another method has fitted (quern/fit.h), and the recipe that made it.
 *
 * A model never changes after it was made, and any number of threads may read it. What the
 * functions return as a pointer is owned by the model and valid until qn_model_free. */
#ifndef QUERN_MODEL_H
#define QUERN_MODEL_H

#include <quern/cluster.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_model qn_model;

/* Reads a model file (safetensors, docs/formats.md). Every part of the file is checked, so it may
 * come from anywhere. On success *out is owned by the caller, for qn_model_free; after a failure it
 * is NULL. Fails with QN_IO (also a missing file), QN_MEMORY or QN_FORMAT (not a model, damaged, or
 * of a newer version). */
QN_API qn_status qn_model_load(const char *path, qn_model **out, qn_error *err);

/* Reads a model for all ranks of a cluster, which call this together with the same `from_first`.
 * With `from_first` 0, one rank of each machine reads the file. With `from_first` 1, only the rank
 * with the lowest number reads it, and sends it to the others. `cluster` may be NULL: as
 * qn_model_load.
 *
 * On success each rank owns its *out, which may outlive the cluster. When one rank cannot read the
 * file, all ranks get its status and its message, which names the rank. The cluster can be used
 * further. After QN_CLUSTER, or a failure of this rank alone (QN_MEMORY), the rank calls
 * qn_cluster_leave. Models of different machines are not compared here; qn_predict compares
 * them. */
QN_API qn_status qn_model_share(qn_cluster *cluster, int from_first, const char *path,
                                qn_model **out, qn_error *err);

/* Reads a file of low-rank adapters alone (qn_train_options.lora), and makes a model of them and of
 * `base`, the model that they were trained for. Predictions are those of both; what is saved is the
 * adapters alone. Another model file is taken as it is. `base` may be freed after it. Other
 * arguments and failures as of qn_model_share; also fails with QN_MISMATCH: the adapters are of
 * another model. */
QN_API qn_status qn_model_adapt(qn_cluster *cluster, int from_first, const char *adapter,
                                const qn_model *base, qn_model **out, qn_error *err);

/* Makes a model without adapters of one that qn_model_adapt has made: the products of the adapters
 * are added to the weights that they stand beside. Its outputs differ in roundings. On success *out
 * is owned by the caller, for qn_model_free. Fails with QN_MISMATCH (without adapters), QN_NUMERIC
 * (a weight leaves the range), QN_MEMORY. */
QN_API qn_status qn_model_merge(const qn_model *model, qn_model **out, qn_error *err);

/* The digest of the model that adapters are for; NULL: a model with all its parameters. */
QN_API const char *qn_model_adapts(const qn_model *model);

/* Writes the model to a temporary file in the folder of `path`, syncs it and renames it to `path`.
 * A device, a pipe or a name such as /dev/stdout is written to directly. Fails with QN_IO or
 * QN_MEMORY; the old file is then as before. */
QN_API qn_status qn_model_save(const qn_model *model, const char *path, qn_error *err);

/* Does the same on the writer of a cluster (qn_cluster_is_writer). Right before the renaming it
 * asks all other ranks whether they still count this one as alive. `cluster` may be NULL: as
 * qn_model_save. Also fails with QN_CLUSTER when the others count this rank as dead, because it was
 * stopped or cut off for too long. Then another rank is the writer, and the file at `path` is not
 * touched. */
QN_API qn_status qn_model_save_among(const qn_model *model, const char *path, qn_cluster *cluster,
                                     qn_error *err);

/* Writes the model to an ONNX file (opset 13), for other programs to apply it. The graph takes the
 * values of items as a data set has them: scaling, numbers for missing values and inputs of
 * categories are in it. docs/formats.md names inputs, outputs and metadata. A model of integer
 * arithmetic becomes the float network of the same parameters. The file is written as by
 * qn_model_save.
 *
 * Fails with QN_IO, QN_MEMORY (it takes twice the memory of the parameters), or QN_UNSUPPORTED (the
 * file would have 2 GiB or more). An old file is then as before. */
QN_API qn_status qn_model_write_onnx(const qn_model *model, const char *path, qn_error *err);

/* Writes the parameters to a safetensors file with the names that `library`, "torchvision" or
 * "timm", gives them, for load_state_dict of its network (docs/formats.md). The network is a ready
 * model that has names there, with any dense last layer. Biases of convolutions before a batchnorm,
 * which the library does not have, are subtracted from its running means; qn_device_note then says
 * so. The file is written as by qn_model_save.
 *
 * Fails with QN_IO, QN_MEMORY, QN_USAGE (another library) or QN_UNSUPPORTED (another network). */
QN_API qn_status qn_model_write_state(const qn_model *model, const char *library, const char *path,
                                      qn_error *err);

/* Writes the model as a checkpoint that the package transformers loads: a folder, which is made
 * where it is absent, with config.json, model.safetensors and, where transformers has such a
 * tokenizer, tokenizer.json. The network is one that qn_model_import_pretrained makes; dropout is
 * left out. Files are written as by qn_model_save, config.json last.
 *
 * Fails with QN_IO, QN_MEMORY (it takes the memory of the parameters) or QN_UNSUPPORTED (another
 * network). */
QN_API qn_status qn_model_write_pretrained(const qn_model *model, const char *folder,
                                           qn_error *err);

/* Writes the adapters of a model that qn_model_adapt has made as the package peft loads them: a
 * folder with adapter_model.safetensors and adapter_config.json, made where it is absent. Without
 * its adapters, the network is one of qn_model_write_pretrained. Files are written as by
 * qn_model_save, the second one last.
 *
 * Fails with QN_MISMATCH (without adapters), QN_IO, QN_MEMORY or QN_UNSUPPORTED (another network).
 */
QN_API qn_status qn_model_write_peft(const qn_model *model, const char *folder, qn_error *err);

/* Makes a model of `base` and of adapters that save_pretrained of the package peft wrote to a
 * folder: their products are added to the weights, and layers that the folder has whole take the
 * place of those of `base` (docs/exactness.md 25.94). `base` is a checkpoint of transformers that
 * qn_model_import_pretrained has made, or a model of the same layers; it may be freed after it.
 *
 * Fails with QN_IO, QN_MEMORY, QN_FORMAT, QN_INPUT (not such a folder), QN_MISMATCH (adapters for
 * another model) or QN_UNSUPPORTED (another network, or adapters of another kind). */
QN_API qn_status qn_model_import_peft(const qn_model *base, const char *folder, qn_model **out,
                                      qn_error *err);

/* Frees the model and all that its functions returned. Accepts NULL. Not while a qn_train_options
 * that qn_train_options_from_model filled is in use. */
QN_API void qn_model_free(qn_model *model);

/* What a model predicts of an item. */
typedef enum qn_predicted {
    QN_PREDICTS_LABELS,     /* its class, or a real number: what the training data had as labels */
    QN_PREDICTS_CLUSTERS,   /* the cluster that it belongs to; it was fitted without labels */
    QN_PREDICTS_COMPONENTS, /* a number for each output and no class; it was fitted without labels
                               too */
    QN_PREDICTS_NEXT        /* at each position the token that comes next (qn_predict_next) */
} qn_predicted;

/* The kind of the model: "network", or the `name` of a qn_fit_kind; "" for NULL. */
QN_API const char *qn_model_kind(const qn_model *model);
/* The same in words for a person: "a k-means model"; "" for NULL. */
QN_API const char *qn_model_title(const qn_model *model);
QN_API qn_predicted qn_model_predicts(const qn_model *model);

/* The recipe as JSON (docs/exactness.md 11.1); "" for NULL. */
QN_API const char *qn_model_recipe(const qn_model *model);
/* SHA-256 of the model's file, 64 hexadecimal digits; "" for NULL. */
QN_API const char *qn_model_digest(const qn_model *model);
/* Number of features of an item, number of outputs, number of layers (0 for a model that is not a
 * network); each is 0 for NULL. */
QN_API uint32_t qn_model_inputs(const qn_model *model);
QN_API uint32_t qn_model_outputs(const qn_model *model);
/* Number of classes or clusters that it predicts; 0 for a model that predicts real numbers, and for
 * NULL. */
QN_API uint32_t qn_model_classes(const qn_model *model);
/* Number of answers to an item, where a model gives several; 0 for other models, and for NULL. Of
 * classes of pixels *rows and *columns are those of a mask, else both are 0. Both may be NULL. */
QN_API uint32_t qn_model_answers(const qn_model *model, uint32_t *rows, uint32_t *columns);
QN_API uint32_t qn_model_layers(const qn_model *model);
/* Number of weights and biases of all layers; of other kinds of models the number of elements of
 * all tensors. 0 for NULL. */
QN_API uint64_t qn_model_parameters(const qn_model *model);
/* Writes a line about layer `layer`, counted from 0, such as "dense 500 tanh": at most `size` bytes
 * with the NUL; a longer line is cut. The text is empty when there is no such layer. `text` may be
 * NULL: nothing is written. */
QN_API void qn_model_layer_text(const qn_model *model, uint32_t layer, char *text, size_t size);

/* The tensor with this name in the file, and its shape. "layer0.weight" is outputs x inputs, row
 * after row; of a convolution channels x (channels of the input x height x width of the window).
 * "layer0.bias", "scale.mean" and "scale.deviation" are vectors of *rows elements, with *columns 0.
 * `rows` and `columns` may be NULL. Returns NULL, and writes nothing, when there is no such tensor.
 */
QN_API const float *qn_model_tensor(const qn_model *model, const char *name, uint64_t *rows,
                                    uint64_t *columns);

/* The same for a tensor of doubles. Models that are not networks have them: "centres". */
QN_API const double *qn_model_real_tensor(const qn_model *model, const char *name, uint64_t *rows,
                                          uint64_t *columns);

/* The name of feature k, counted from 0, in the header of the training data. NULL where there was
 * none, for k that is out of range, and for names that Quern itself writes: "f0" or "r0c0". */
QN_API const char *qn_model_feature_name(const qn_model *model, uint32_t k);
/* Number of categories of feature k of the training data; 0 for a column of numbers. */
QN_API uint32_t qn_model_categories(const qn_model *model, uint32_t k);
/* Inputs for the words of feature k of the training data, which held texts; 0: it did not. */
QN_API uint32_t qn_model_text_inputs(const qn_model *model, uint32_t k);
/* What these inputs are, as qn_data_text_features tells it. */
QN_API void qn_model_text_features(const qn_model *model, uint32_t k, char *text, size_t size);
/* The name of the label column of the training data; NULL where there was none. Of several labels
 * with names, a list of these, separated by commas, in double quotes where they hold one:
 * qn_data_options.label_column and expected_label take it. */
QN_API const char *qn_model_label_name(const qn_model *model);
/* The name of the column of weights, "" for weights without a name; NULL: the items had no weights,
 * and for NULL. Owned by the model. */
QN_API const char *qn_model_weight_name(const qn_model *model);
/* How the images of its training were resized, for qn_data_options.expected_resize: "32x48", "short
 * 36 crop 32x32". NULL where they were not resized, where the data was not images, and for NULL.
 * Owned by the model. */
QN_API const char *qn_model_resize(const qn_model *model);
/* The rules of reading of its training data, for qn_data_options.expected_rules; "" where the
 * recipe names none, and for NULL. Owned by the model. */
QN_API const char *qn_model_rules(const qn_model *model);
/* How the dates of its training data were written, for qn_data_options.date_format; NULL: as ISO
 * 8601 has it, and for NULL. Owned by the model. */
QN_API const char *qn_model_date_format(const qn_model *model);
/* How the tokens of its training data were made, for qn_data_options.expected_tokens; NULL where
 * the data was not tokens, and for NULL. Owned by the model. */
QN_API const char *qn_model_tokens(const qn_model *model);
/* The tokenizer of its training data as JSON, for qn_tokenizer_from_json and
 * qn_data_options.expected_tokenizer; NULL where there was none, and for NULL. Owned by the model.
 */
QN_API const char *qn_model_tokenizer(const qn_model *model);
/* Where its training data was a corpus: how many tokens there are from one item to the next, for
 * qn_data_options.expected_context. 0 for others, and for NULL. */
QN_API uint32_t qn_model_context(const qn_model *model);
/* The name of class k, or of label k of several, counted from 0; NULL where they are numbers, and
 * for k out of range. */
QN_API const char *qn_model_class_name(const qn_model *model, uint32_t k);

#ifdef __cplusplus
}
#endif
#endif
