/* Errors of the readers of data, in the words of a client that sends bodies. */
#ifndef QN_SERVE_INFERENCE_REFUSAL_WORDS_H
#define QN_SERVE_INFERENCE_REFUSAL_WORDS_H

#include "base/error.h"

/* Names no files, and of the remedies only those that a client has: an option of a reader, such as
 * `data.drop`, is not one of them. */
void qn__refusal_words(qn_error *err);

#endif
