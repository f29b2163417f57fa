/* Prediction: a model applied to data. */
#ifndef QUERN_PREDICT_H
#define QUERN_PREDICT_H

#include <quern/data.h>
#include <quern/device.h>
#include <quern/model.h>
#include <quern/parts.h>
#include <quern/score.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Applies `model` to every item of `data`. The caller owns the arrays, and each may be NULL:
 *   classes[items]                       the output that is greatest, counted from 0; of equal ones
 *                                        the first
 *   scores[items]                        that output
 *   outputs[items x qn_model_outputs]    all outputs, item after item
 * A model of two classes with one output predicts class 1 where the output is above 1/2; the score
 * of class 0 is 1 - output. A model of real labels predicts numbers, in units of the labels: scores
 * and outputs are both the predictions, and classes are 0. A model trained with `missing` "drop"
 * predicts the items without a missing value. The others have the class -1, and NaN as score and
 * outputs; how many there are is reported by qn_device_note. Where model and data have names for
 * columns, columns are matched by name, in any order. Others are ignored. Labels are matched by the
 * names of classes. A column or a label that the model does not have is reported by qn_device_note.
 *
 * `compute` may be NULL: the defaults. Where the CPU computes alone, the model keeps its threads
 * and packed parameters for the next call with the same `compute`, so that single items are
 * predicted fast. Several threads may predict with one model at once. With compute->cluster all
 * ranks call this together with the same arguments, and each gets all results.
 *
 * Fails with QN_USAGE, QN_MISMATCH (other columns, or values that are not bytes for a
 * model of bytes; ranks that differ), QN_NUMERIC (an output is not finite; the item is named),
 * QN_UNSUPPORTED, QN_MEMORY, QN_DEVICE (no device is left) or QN_CLUSTER (this rank has to leave).
 * After a failure the contents of the arrays are undefined. A failure of one rank is returned on
 * all ranks, except QN_DEVICE and QN_CLUSTER: there the others continue. A device that was lost or
 * left out is reported by qn_device_note. */
QN_API qn_status qn_predict(const qn_model *model, const qn_data *data, const qn_compute *compute,
                            int32_t *classes, float *scores, float *outputs, qn_error *err);

/* The same for a model that gives several answers to an item, `n` of them (qn_model_answers):
 * `answers` has `n` bytes for each item: classes of pixels, row after row, or 1 or 0 for each
 * label. They are 255 for an item without a prediction. `outputs` has qn_model_outputs floats for
 * each item: for each pixel the probabilities of all classes, or for each label that of having it.
 * Without `outputs` no memory for those of all items is needed. Fails with QN_UNSUPPORTED for
 * another model, for which qn_predict is; qn_predict refuses classes and scores of this one. */
QN_API qn_status qn_predict_several(const qn_model *model, const qn_data *data,
                                    const qn_compute *compute, uint8_t *answers, float *outputs,
                                    qn_error *err);

/* The same for a network that tells which token comes next (docs/exactness.md 25.14, 25.65). An
 * item has one token more than positions (qn_model_answers). The caller owns the arrays, and each
 * may be NULL:
 * - logprobs[qn_data_texts]: the natural logarithm of the probability of the text's tokens after
 *   the first, given those before them; a text is an item, but for those that are several (25.69)
 * - tokens[qn_data_texts]: the most probable token in the place of the text's last one; of one with
 *   fewer tokens than an item the one that follows them
 * - logprob[items x positions]: the logarithm for each token after the first; NaN: it is none, or
 *   an item before has it
 * - token[items x positions]: the most probable token in the place of each; -1 after the place that
 *   follows the item's last token
 * An item without a prediction, or without a token, has NaN and -1. Fails with QN_UNSUPPORTED for
 * another model; qn_predict and qn_predict_several refuse this one. */
QN_API qn_status qn_predict_next(const qn_model *model, const qn_data *data,
                                 const qn_compute *compute, double *logprobs, int32_t *tokens,
                                 float *logprob, int32_t *token, qn_error *err);

/* The same with flips, for networks of images. The outputs are means of those for the item and for
 * its mirror image, left and right exchanged, and classes and scores follow from them. Also fails
 * with QN_UNSUPPORTED for other models and items, and for several answers to an item. */
QN_API qn_status qn_predict_flipped(const qn_model *model, const qn_data *data,
                                    const qn_compute *compute, int32_t *classes, float *scores,
                                    float *outputs, qn_error *err);

/* What is made of the positions of a text, or of the pixels of a picture, in the outputs of a
 * layer. Of a text only those below its length count. */
typedef enum qn_summary {
    QN_SUMMARY_NONE = 0, /* all are given */
    QN_SUMMARY_MEAN = 1,
    QN_SUMMARY_MAX = 2,
    QN_SUMMARY_FIRST = 3, /* the first position, as [CLS] of BERT */
    QN_SUMMARY_LAST = 4
} qn_summary;

/* The last layer before the head of a network: the one before its last pool of all positions or
 * pixels, or else before its last layer. Its outputs are what is meant by embeddings. 0 for NULL
 * and for a model without such a layer. */
QN_API uint32_t qn_model_body(const qn_model *model);

/* The layer that a text names: its number from 0, one from -1 on, which counts from the last layer,
 * or "body" (qn_model_body). Fails with QN_USAGE (another text, or a layer that the model lacks) or
 * QN_UNSUPPORTED (not a network). */
QN_API qn_status qn_model_find_layer(const qn_model *model, const char *text, uint32_t *layer,
                                     qn_error *err);

/* The summary that a word names: "none", "mean", "max", "first" or "last". Returns 0, and leaves
 * *out, where it names none, and for NULL. */
QN_API int qn_summary_find(const char *word, qn_summary *out);

/* The shape of the outputs of `layer`, counted from 0, for one item, after the summary: *lengths of
 * shape[3] count, the others are 1. A sequence has positions x channels, a picture channels x
 * height x width, and other outputs, also a summary, have one length. Fails with QN_USAGE
 * (a layer that the model lacks), QN_UNSUPPORTED (not a network) or QN_MEMORY. */
QN_API qn_status qn_model_layer_shape(const qn_model *model, uint32_t layer, qn_summary summary,
                                      uint32_t shape[3], uint32_t *lengths, qn_error *err);

/* The outputs of `layer`, with its activation, instead of predictions: `values` has items x those
 * of qn_model_layer_shape. Those of the last layer are what the loss takes: before softmax, before
 * sigmoid with the losses that apply it, and before real labels get their units. Positions after
 * the end of a text are computed, too, but say nothing without a summary. An item without a
 * prediction has NaN. Of a model of next tokens an item has as many positions as the network reads.
 * Else as qn_predict, and fails as it and qn_model_layer_shape do. */
QN_API qn_status qn_predict_layer(const qn_model *model, const qn_data *data,
                                  const qn_compute *compute, uint32_t layer, qn_summary summary,
                                  float *values, qn_error *err);

/* Outputs of a layer for a table of a database; begin with {.size = sizeof(qn_layer_order)}. */
typedef struct qn_layer_order {
    size_t size; /* sizeof(qn_layer_order) */
    uint32_t layer;
    qn_summary summary;
    const float
        *values;    /* of qn_predict_layer; NULL: only whether they can be written is checked */
    const char *to; /* "sqlite:FILE?table=NAME" or "postgresql://USER@HOST/DATABASE?table=NAME";
                       without a name the table is "outputs" */
    qn_cluster *cluster; /* the ranks that made them, as for qn_predictions_write; NULL: none */
} qn_layer_order;

/* The run in the table. */
typedef struct qn_layer_run {
    size_t size;    /* sizeof(qn_layer_run), set by the caller */
    char name[128]; /* "" where nothing is written */
    int there;      /* 1: the table had it already, and nothing was added */
} qn_layer_run;

/* Writes outputs of a layer into a database: a row for each item of `data`, with the columns run,
 * item, "file" where items have names, the label where there is one, and f0, f1 and so on. Runs,
 * and a table that is missing or there, are as those of qn_predictions_write: all rows or none, and
 * each run once. NaN is NULL. `run` may be NULL. Fails with QN_USAGE (NULL; `to` is not a
 * database), QN_UNSUPPORTED (a missing library; more columns than a table may have: 2,000 in
 * SQLite, 1,600 in PostgreSQL), QN_INPUT (the table has other columns), or as qn_model_layer_shape
 * and qn_predictions_write do. */
QN_API qn_status qn_layer_write(const qn_model *model, const qn_data *data,
                                const qn_layer_order *order, qn_layer_run *run, qn_error *err);

/* The results of one prediction, kept until they are written. */
typedef struct qn_predictions qn_predictions;

/* Predicts and keeps classes and scores; with `all_outputs` 1 all outputs too. Where the data has
 * labels, up to 2^26 outputs are kept for qn_predictions_evaluate in any case. `compute` may be
 * NULL. On success *out is owned by the caller, for qn_predictions_free; after a failure it is
 * NULL. `model`, `data` and the cluster must outlive *out. Fails as qn_predict does. */
QN_API qn_status qn_predictions_make(const qn_model *model, const qn_data *data,
                                     const qn_compute *compute, int all_outputs,
                                     qn_predictions **out, qn_error *err);

/* The same with the results of qn_predict_flipped. */
QN_API qn_status qn_predictions_make_flipped(const qn_model *model, const qn_data *data,
                                             const qn_compute *compute, int all_outputs,
                                             qn_predictions **out, qn_error *err);

/* Writes the results as CSV, one line for each item: "item,prediction,score". For images a column
 * "file" follows "item"; where the data has labels, a column "label" comes next. With `all_outputs`
 * 1 the columns "p0,p1,..." are last. `item` counts from 0. A model of real labels has neither
 * "score" nor "p0": the prediction is the number. Of a model of several labels, "item" and "file"
 * are followed by a column for each label with its probability, "p0,p1,...". Of a model of classes
 * of pixels `path` is a folder, which is made where it is missing. It gets a PNG file for each
 * image, with its name but for the ending ".png", whose palette index is the class
 * (docs/images.md). A model of next tokens has
 * "item,tokens,correct,logprob,label,prediction,perplexity", with `all_outputs` 1 a line for each
 * token: "item,position,token,logprob,prediction", and "text" where it has a tokenizer
 * (docs/layers.md). Cells after the label are empty for an item without a prediction. It writes a
 * temporary file in the folder of `path`, syncs it and renames it to `path`.
 *
 * Among ranks only the writer (qn_cluster_is_writer) calls this. Right before the renaming it asks
 * all other ranks whether they still count this one as alive, and fails with QN_CLUSTER when they
 * do not. Also fails with QN_IO or QN_MEMORY. After a failure the old file is as before, and the
 * results can be written again. A PNG file that is there is replaced where this function wrote it
 * and nobody changed it; else nothing is written: QN_INPUT. */
QN_API qn_status qn_predictions_write(const qn_predictions *predictions, const char *path,
                                      qn_error *err);

/* Of predictions that qn_predictions_join has joined: writes those of the items that `rank` had,
 * which this rank has (qn_parts_range), with their numbers in the whole. Without items it writes
 * the line of names alone, or makes the folder. Fails with QN_USAGE (NULL; other parts, or items of
 * another rank), or as qn_predictions_write. */
QN_API qn_status qn_predictions_write_part(const qn_predictions *predictions, const qn_parts *parts,
                                           uint32_t rank, const char *path, qn_error *err);

/* The same into a table of a database, where `path` is its address: "sqlite:FILE?table=NAME" or
 * "postgresql://USER@HOST/DATABASE?table=NAME", with "predictions" as the default
 * (docs/formats.md). A table that is missing is made. One that is there must have the columns; rows
 * are added. The first column is "run": what decides the result in 16 digits, or NAME of
 * "?run=NAME". All rows are in one transaction. Where the table has the run, nothing is added.
 * qn_predictions_run says both after qn_predictions_write: the name, "" where it wrote a file,
 * valid until the next call; *there is 1 where nothing was added. `there` may be NULL. */
QN_API const char *qn_predictions_run(const qn_predictions *predictions, int *there);

/* 1: the path is the address of a database; 0 for others, and for NULL. */
QN_API int qn_writes_to_database(const char *path);

/* Whether qn_predictions_write could write to `path`, to be asked before the prediction. Of masks:
 * whether it would replace a file in the folder that it did not write, for all items of `data`. Of
 * a database: whether it answers, and its table takes the columns that qn_predictions_columns with
 * `all_outputs` and `top` gives. Fails with QN_INPUT (it could not, or two images would have one
 * mask), QN_USAGE (NULL; an address of an unknown kind), QN_UNSUPPORTED, QN_IO or QN_MEMORY. */
QN_API qn_status qn_predictions_check(const qn_model *model, const qn_data *data, const char *path,
                                      int all_outputs, uint32_t top, qn_error *err);

/* What qn_predictions_write writes of results that were made with `all_outputs` 1: with
 * `all_outputs` 0 not the columns "p0,p1,..."; with `top` above 1 the classes of the `top` greatest
 * outputs, at most all, as columns "prediction2,score2" and so on after "score". Of equal outputs
 * the first class is first. Fails with QN_USAGE (NULL; the outputs were not kept) or QN_UNSUPPORTED
 * (a `top` above 1, and the model has not one output for each class). */
QN_API qn_status qn_predictions_columns(qn_predictions *predictions, int all_outputs, uint32_t top,
                                        qn_error *err);

/* The size of masks that qn_predictions_write writes: that of the original images
 * (qn_data_original_size), or with `as_given` 1 what the network gives. Fails with QN_USAGE (NULL)
 * or QN_UNSUPPORTED (`as_given` 1, and the model does not predict masks). */
QN_API qn_status qn_predictions_mask_size(qn_predictions *predictions, int as_given, qn_error *err);

/* Makes predictions of parts those of the whole; all ranks call this together, each with what
 * qn_predictions_make gave it for qn_parts_own(parts), with no cluster in `compute`. Afterwards
 * qn_predictions_items, _correct, _score and qn_predictions_evaluate are those of the items of all
 * ranks, as one process has them. qn_predictions_write still writes those of this rank, with their
 * numbers in the whole. No values of items travel. With `evaluated` 1 the labels and outputs of all
 * items come to each rank, where there are at most 2^26 outputs or all_outputs was 1; without,
 * qn_predictions_evaluate is for real labels only. `parts` must outlive the call alone.
 *
 * Fails with QN_USAGE (NULL; predictions of other data), QN_IO (a rank has ended, and its part is
 * missing; see qn_parts_mend), QN_MEMORY or QN_CLUSTER; on all ranks alike. Then the predictions
 * can only be freed. */
QN_API qn_status qn_predictions_join(qn_predictions *predictions, const qn_parts *parts,
                                     int evaluated, qn_error *err);

/* Number of items that have a prediction: all, or with `missing` "drop" those without a missing
 * value. 0 for NULL. */
QN_API uint64_t qn_predictions_items(const qn_predictions *predictions);

/* Number of items whose predicted class is their label; 0 without labels and for NULL. */
QN_API uint64_t qn_predictions_correct(const qn_predictions *predictions);

/* The score of the items that have a prediction, `items` 0 where the data has no labels; of real
 * labels `mae`, `rmse` and `r2`. Fails with QN_USAGE for NULL. */
QN_API qn_status qn_predictions_score(const qn_predictions *predictions, qn_score *score,
                                      qn_error *err);

/* Frees the results. Accepts NULL. */
QN_API void qn_predictions_free(qn_predictions *predictions);

/* Predicts and writes, as qn_predictions_make and qn_predictions_write do. Among ranks all call
 * this, and the writer writes the file. If the writer dies meanwhile, the file is not written.
 * *correct is what qn_predictions_correct returns, and 0 when the prediction fails; `correct` may
 * be NULL. Fails as those two do; the old file is then as before. */
QN_API qn_status qn_predict_csv(const qn_model *model, const qn_data *data,
                                const qn_compute *compute, const char *path, int all_outputs,
                                uint64_t *correct, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
