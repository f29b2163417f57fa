/* Model texts of the command line: files, ready models, and what the library makes of them. */
#ifndef APP_MODEL_TEXT_H
#define APP_MODEL_TEXT_H

#include <quern/network.h>

/* The file that a model text names, after its "@"; NULL: it names none. */
const char *model_file(const char *model);

/* Reads the text that the model of the job names, for `classes` classes (0: real labels) and items
 * of `features` values (0: unknown), as qn_network_open does. *text is for free(). Returns -1, or
 * an exit code after a message. */
int model_read(const qn_train_options *job, uint64_t features, uint64_t classes, char **text);

/* Sets *outputs to those of the last layer; 0 for a ready model and for NULL, which follow the
 * data. Returns -1, or an exit code after a message. */
int model_outputs(const char *model, uint32_t *outputs);

/* A model as a line of a report has it: the name of the ready model that `given` names (NULL: it
 * names none), or the network's text, which is cut where it is long. With `verbose` it is the text.
 */
enum { MODEL_TITLE = 6144, MODEL_TITLE_LONG = 500 };
void model_title(const char *given, const char *text, int verbose, char title[MODEL_TITLE]);

/* Without data a ready model is shown for so many classes. */
enum { MODEL_USUAL_CLASSES = 10 };

/* Sums over all layers, of one item: operations forward, and in a training step; bytes of outputs.
 */
typedef struct model_totals {
    uint64_t flops, training, activation;
} model_totals;

model_totals model_sum(const qn_network *network);

#endif
