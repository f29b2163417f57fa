/* A folder of checkpoints: the complete state of a run, from which it continues exactly.
 *
 * Each is a file checkpoint-<step, 12 digits>.safetensors, written to a temporary file, synced and
 * renamed. The last two are kept; an older one is removed only when the new one is complete. One
 * process at a time owns the folder. */
#ifndef QN_TRAIN_CHECKPOINT_H
#define QN_TRAIN_CHECKPOINT_H

#include "base/files/folder_lock.h"
#include "num/lbfgs.h"
#include "num/optimise.h"
#include "num/program.h"
#include <quern/status.h>
#include <quern/train.h>
#include <stdint.h>

typedef struct qn__checkpoints qn__checkpoints;

/* A file in the folder: the run in a file of runs that continues from here (train/trainer_store.c).
 */
#define QN__CHECKPOINTS_RUN "run-id"

/* The state of a run between two steps. All pointers belong to the caller. */
typedef struct qn__snapshot {
    const char *recipe_json; /* docs/exactness.md 11.1 */
    uint64_t step;           /* completed steps */
    qn__tally running;       /* of the current epoch */
    qn__adam_powers powers;
    uint64_t parameters;
    uint32_t slots;         /* qn__program_slots */
    float *parameter;       /* parameters floats, in the flat order of num/program.h */
    float *slot[QN__SLOTS]; /* the same for each slot */
    uint32_t pairs;         /* of the optimiser lbfgs: 0 to QN__LBFGS_PAIRS; read from the file */
    float *history; /* space for 2 * QN__LBFGS_PAIRS * parameters floats; NULL: another optimiser */
    int judges;     /* 1: the best epoch counts; `best` are its parameters, or NULL */
    uint32_t best_epoch;
    int64_t best_loss;
    float *best;
} qn__snapshot;

/* Opens the folder, creates it if it is missing (not its parents), locks it for this process and
 * removes temporary files of dead processes (base/files/leftovers.h). `owner` as in
 * base/files/folder_lock.h. Fails with QN_BUSY naming the process that holds it, or QN_IO, also if
 * the lock file is not a regular file. */
qn_status qn__checkpoints_open(const char *dir, const qn__owner *owner, qn__checkpoints **out,
                               qn_error *err);

/* Writes a checkpoint. After a failure (QN_IO, QN_MEMORY) the earlier ones are unchanged. QN_BUSY:
 * the folder now belongs to another process, and was not changed. The first success removes
 * checkpoints of later steps, so a run that does not resume calls qn__checkpoints_count first. */
qn_status qn__checkpoints_write(qn__checkpoints *checkpoints, const qn__snapshot *snapshot,
                                qn_error *err);

/* Loads the last complete checkpoint. `into` says what is expected (recipe_json, parameters, slots)
 * and where to store it. *found is 0, and nothing is written, if the folder has none. A damaged
 * file is skipped with a note, and the previous one taken; QN_FORMAT if all are damaged.
 * QN_MISMATCH if the recipe differs: the message names the keys. `note` may be NULL. */
qn_status qn__checkpoints_last(qn__checkpoints *checkpoints, qn__snapshot *into, int *found,
                               qn_note_fn note, void *user, qn_error *err);

/* 1 if a folder of checkpoints has a file of its own with that name. */
int qn__checkpoints_own(const char *name);

/* The number of checkpoint files, complete or not: a run that does not resume must not overwrite
 * those of another. */
qn_status qn__checkpoints_count(qn__checkpoints *checkpoints, uint64_t *count, qn_error *err);

/* The last step that has a checkpoint file, complete or not; *found is 0 if there is none. The
 * folder need not be open. QN_IO, QN_MEMORY. */
qn_status qn__checkpoints_newest(const char *dir, uint64_t *step, int *found, qn_error *err);

/* For qn__writer_ask, with a qn__checkpoints: 1 if the folder is still this process's. */
int qn__checkpoints_may(void *checkpoints);

/* Unlocks the folder. Accepts NULL. */
void qn__checkpoints_close(qn__checkpoints *checkpoints);

#endif
