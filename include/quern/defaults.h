/* The defaults of the library's options, as text for a help or a form. qn_train_options_init and
 * the functions that compute read the same values. */
#ifndef QUERN_DEFAULTS_H
#define QUERN_DEFAULTS_H

#include <quern/export.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The learning rate or the momentum that belongs to the optimiser: qn_train_options_init sets
 * `learning_rate` and `momentum` to this. It is minus infinity, which is no valid rate and no valid
 * momentum. */
#define QN_BY_OPTIMIZER (-__builtin_huge_valf())

/* Writes the default of an option into `text`, at most `room` bytes with the NUL at the end.
 * `field` is named as in messages (<quern/status.h>), without backquotes: "train.batch" gives "64",
 * "compute.device_timeout" gives "60", in seconds. A default that depends on other options lists
 * the cases, with those options between backquotes: "0.1; `train.optimizer` adam, adamw: 0.001".
 *
 * Returns 1. Returns 0, with an empty text, for a field that has no default or does not exist, and
 * when the text does not fit. `field` and `text` may be NULL: 0. */
QN_API int qn_default_text(const char *field, char *text, size_t room);

/* Writes the network that is trained when qn_train_options.model is NULL, for data of `classes`
 * classes: "dense 500 tanh; dense 10 softmax" for 10. Otherwise as qn_default_text; 0 for no
 * classes. 64 bytes are enough. */
QN_API int qn_default_model(uint32_t classes, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
