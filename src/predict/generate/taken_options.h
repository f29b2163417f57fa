/* The options of a generation, checked. */
#ifndef QN_PREDICT_GENERATE_TAKEN_OPTIONS_H
#define QN_PREDICT_GENERATE_TAKEN_OPTIONS_H

#include "predict/generate/answer.h"

/* The texts of `options` are copies: `chat`, `system`, and those of the manner. */
typedef struct qn__taken_options {
    qn_generate_options options;
    char *chat, *system;
    qn__manner manner;
} qn__taken_options;

/* Checks options, NULL for the defaults, and takes them over. *to is then for
 * qn__taken_options_release, also after a failure. Fails with QN_USAGE or QN_MEMORY. */
qn_status qn__taken_options_take(const qn_generate_options *options, qn__taken_options *to,
                                 qn_error *err);
void qn__taken_options_release(qn__taken_options *taken);

#endif
