/* The defaults of the library's options, as text for a help or a form. qn_train_options_init and
 * the functions that compute read the same values. Texts are written into the caller's memory. */
#ifndef QUERN_DEFAULTS_H
#define QUERN_DEFAULTS_H

#include <quern/export.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The default of qn_train_options.learning_rate, .momentum and .weight_decay: the value that
 * belongs to the optimiser. The number is minus infinity, which is not valid for any of them. */
#define QN_BY_OPTIMIZER (-__builtin_huge_valf())

/* The default of qn_train_options.batch and .epochs: the value that suits the data. */
#define QN_BY_DATA 0

/* Writes the default of an option into `text`, at most `capacity` bytes with the NUL at the end.
 * `field` is named as in messages (<quern/status.h>), without backquotes: "train.grain" returns
 * "32", "compute.device_timeout" returns "60", in seconds. A default that depends on other options
 * or on the data lists the cases, with those options between backquotes: "sgd; real labels: adam;
 * tables: adamw".
 *
 * Returns 1 on success. Returns 0 for a field that has no default or does not exist, when the text
 * does not fit, and for NULL; then `text`, if there is one, is empty. */
QN_API int qn_default_text(const char *field, char *text, size_t capacity);

/* Writes the network that is trained when qn_train_options.model is NULL, for images of `classes`
 * classes: "dense 500 tanh; dense 10 softmax" for 10. At most `capacity` bytes with the NUL; 64 are
 * enough. Returns 1 on success. Returns 0, with an empty text, when `classes` is 0 or the text does
 * not fit. `text` may be NULL: 0. */
QN_API int qn_default_model(uint32_t classes, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
