/* Answers as JSON, with the words and numbers of the CSV file that `quern predict` writes. */
#ifndef QN_SERVE_BATCH_ANSWER_JSON_H
#define QN_SERVE_BATCH_ANSWER_JSON_H

#include "base/text/text.h"
#include "serve/batch/batcher.h"

/* Appends the answer to one item of `data`, the request's table, as a JSON object:
 *   classes        {"prediction":"cat","score":0.9}; by number where classes have no names; null
 *                  without a prediction
 *   real labels    {"prediction":1.5}
 *   several labels {"labels":{"dog":0.25,"cat":0.9}}
 *   pixels         {"mask":[[0,1],[0,0]]}, classes by number, 255: without one
 *   tags           {"tags":"O B-PER O"}, of the words or tokens of a text
 *   components     {"outputs":[0.5,0.25]}
 * With `all_outputs` 1 classes have "outputs", too: those of all classes, in their order. */
void qn__answer_add_json(qn__text *text, const qn_model *model, const qn_data *data,
                         const qn__batch_answer *answer, uint64_t item, int all_outputs);

/* Appends the outputs of a layer for one item, a list. */
void qn__answer_add_outputs(qn__text *text, const qn__batch_answer *answer, uint64_t item);

#endif
