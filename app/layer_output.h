/* The outputs of a layer inside a network, for `quern predict --layer`. */
#ifndef APP_LAYER_OUTPUT_H
#define APP_LAYER_OUTPUT_H

#include "predict.h"
#include <quern/predict.h>

/* Reports options that contradict --layer, or need it, with an exit code; -1: none does. */
int layer_output_check(const predict_flags *flags);

/* Sets *layer to the one that --layer names; 0 without the option. Reports a layer that the model
 * lacks, with an exit code; -1: it has it. */
int layer_output_find(const predict_flags *flags, const qn_model *model, uint32_t *layer);

/* Applies the model and writes the values. `parts`: each rank does so for its rows, which are
 * `data`; else NULL. Returns the exit code. */
int layer_output(const predict_flags *flags, uint32_t layer, const qn_model *model, qn_parts *parts,
                 const qn_data *data);

#endif
