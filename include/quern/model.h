/* Models: a network, its parameters and the recipe it came from. */
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

/* Reads a model file (safetensors, docs/formats.md). The file may come from anywhere: nothing in it
 * is believed before it is checked. Fails with QN_IO, QN_MEMORY, QN_FORMAT. */
QN_API qn_status qn_model_load(const char *path, qn_model **out, qn_error *err);

/* The same for all ranks of a cluster, which call this together: on each machine one rank reads the
 * file; with `from_first` the rank with the lowest number alone reads it and sends it. Where one
 * cannot, all fail alike, and the message names that rank. `cluster` may be NULL. */
QN_API qn_status qn_model_share(qn_cluster *cluster, int from_first, const char *path,
                                qn_model **out, qn_error *err);

/* Writes the model beside `path`, syncs and renames it into place. */
QN_API qn_status qn_model_save(const qn_model *model, const char *path, qn_error *err);

/* The same for the rank of a cluster that speaks, which asks all others right before the renaming
 * whether they still count on it: one that was stopped or cut off for too long while it wrote fails
 * with QN_CLUSTER, and leaves alone what the others have put there. `cluster` may be NULL. */
QN_API qn_status qn_model_save_among(const qn_model *model, const char *path, qn_cluster *cluster,
                                     qn_error *err);

QN_API void qn_model_free(qn_model *model);

/* The recipe as JSON (docs/exactness.md 11.1); owned by the model. */
QN_API const char *qn_model_recipe(const qn_model *model);
/* SHA-256 of the model's file, 64 hexadecimal digits; owned by the model. */
QN_API const char *qn_model_digest(const qn_model *model);
QN_API uint32_t qn_model_inputs(const qn_model *model);
QN_API uint32_t qn_model_outputs(const qn_model *model);
QN_API uint32_t qn_model_layers(const qn_model *model);
/* Number of weights and biases of all layers. */
QN_API uint64_t qn_model_parameters(const qn_model *model);
/* A line about one layer, such as "dense 500 tanh", written into text. */
QN_API void qn_model_layer_text(const qn_model *model, uint32_t layer, char *text, size_t size);

/* A tensor by its name in the file ("layer0.weight"): a pointer owned by the model, and its shape
 * (columns is 0 for a vector; `rows` and `columns` may be NULL). NULL when there is none of that
 * name. */
QN_API const float *qn_model_tensor(const qn_model *model, const char *name, uint64_t *rows,
                                    uint64_t *columns);

#ifdef __cplusplus
}
#endif
#endif
