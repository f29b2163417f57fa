/* The names that a recipe can use, each with one line of explanation: for a help text, a menu or
 * the completion of a command line. Both come from the table that the library itself reads. */
#ifndef QUERN_CHOICES_H
#define QUERN_CHOICES_H

#include <quern/export.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qn_choice_kind {
    QN_CHOICE_NONE = 0,   /* has no names */
    QN_CHOICE_ACTIVATION, /* in the text of qn_train_options.model */
    QN_CHOICE_LOSS,       /* qn_train_options.loss, and so on */
    QN_CHOICE_OPTIMIZER,
    QN_CHOICE_INIT,
    QN_CHOICE_SCALE,
    QN_CHOICE_ARITH,
    QN_CHOICE_SCHEDULE
} qn_choice_kind;

/* Name number `index` of a kind, counted from 0; NULL beyond the last one and for an unknown kind.
 * The text is static. */
QN_API const char *qn_choice_name(qn_choice_kind kind, uint32_t index);

/* What that name stands for: one line without a full stop; NULL where qn_choice_name gives NULL.
 * The text is static. */
QN_API const char *qn_choice_about(qn_choice_kind kind, uint32_t index);

/* The name of that kind which a user most likely means by `word`, such as "adamw" for "AdamW" or
 * "cross-entropy" for "nll"; NULL when none is near. The text is static. */
QN_API const char *qn_choice_near(qn_choice_kind kind, const char *word);

#ifdef __cplusplus
}
#endif
#endif
