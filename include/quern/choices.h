/* The names that a recipe, a qn_compute and data files can use, each with one line of explanation:
 * for a help text, a menu or the completion of a command line. The library reads options by the
 * same table. Texts are static: nothing here is freed, and no call fails. */
#ifndef QUERN_CHOICES_H
#define QUERN_CHOICES_H

#include <quern/export.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a name is for. */
typedef enum qn_choice_kind {
    QN_CHOICE_NONE = 0,   /* has no names */
    QN_CHOICE_ACTIVATION, /* of a layer, in the text of qn_train_options.model */
    QN_CHOICE_LOSS,       /* qn_train_options.loss */
    QN_CHOICE_OPTIMIZER,  /* qn_train_options.optimizer */
    QN_CHOICE_INIT,       /* qn_train_options.init */
    QN_CHOICE_SCALE,      /* qn_train_options.scale */
    QN_CHOICE_ARITH,      /* qn_train_options.arith */
    QN_CHOICE_SCHEDULE,   /* qn_train_options.schedule */
    QN_CHOICE_MISSING,    /* qn_train_options.missing */
    QN_CHOICE_KEEP,       /* qn_train_options.keep */
    QN_CHOICE_INIT_SCALE, /* qn_train_options.init_scale */
    QN_CHOICE_DEVICE,     /* kinds of devices, for qn_compute.devices; the first name is "auto" */
    QN_CHOICE_ISA,        /* qn_compute.isa */
    QN_CHOICE_GPU_ISA,    /* qn_compute.gpu_isa */
    QN_CHOICE_READ,       /* formats that qn_data_open reads */
    QN_CHOICE_WRITE,      /* formats of qn_data_write */
    QN_CHOICE_DECAY,      /* qn_train_options.decay_on */
    QN_CHOICE_ATTENTION_ARITH /* qn_train_options.attention_arith */
} qn_choice_kind;

/* Name number `index` of a kind, counted from 0. NULL when `index` is too large, and for an unknown
 * kind. */
QN_API const char *qn_choice_name(qn_choice_kind kind, uint32_t index);

/* What that name means: one line without a full stop. NULL where qn_choice_name returns NULL. */
QN_API const char *qn_choice_about(qn_choice_kind kind, uint32_t index);

/* The name of that kind that a user most likely means by `word`, such as "adamw" for "AdamW" or
 * "cross-entropy" for "nll". NULL when no name is similar, for NULL and for an unknown kind. */
QN_API const char *qn_choice_near(qn_choice_kind kind, const char *word);

/* 1 when `word` names something well-known that Quern does not have, such as the optimiser
 * "rmsprop"; qn_choice_near then returns the name that is most similar in meaning. 0 for other
 * words and for NULL. */
QN_API int qn_choice_lacks(qn_choice_kind kind, const char *word);

/* 1 when the choice of this name uses `member` of qn_train_options, and not all choices of its kind
 * do: "beta1" is taken by the optimisers "adam" and "adamw", "lr_step" by the schedule "step". 0
 * for every other member, for unknown names and for NULL. */
QN_API int qn_choice_takes(qn_choice_kind kind, const char *name, const char *member);

#ifdef __cplusplus
}
#endif
#endif
