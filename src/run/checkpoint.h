/* A folder of checkpoints: everything that a run needs to continue as if it had never stopped.
 *
 * Each is a file checkpoint-<step, 12 digits>.safetensors, written beside, synced and renamed. The
 * last two are kept; an older one goes only when the new one is whole. One process at a time holds
 * the folder. */
#ifndef QN_RUN_CHECKPOINT_H
#define QN_RUN_CHECKPOINT_H

#include "num/optimise.h"
#include "num/program.h"
#include <quern/status.h>
#include <quern/train.h>
#include <stdint.h>

typedef struct qn__checkpoints qn__checkpoints;

/* The state of a run between two steps. All pointers belong to the caller. */
typedef struct qn__snapshot {
    const char *recipe_json; /* docs/exactness.md 11.1 */
    uint64_t step;           /* steps done */
    qn__tally running;       /* of the epoch that is under way */
    qn__adam_powers powers;
    uint64_t parameters;
    uint32_t slots;   /* qn__optimizer_slots */
    float *parameter; /* parameters floats, in the flat order of num/program.h */
    float *slot[2];   /* the same for each slot */
    /* Asked when all is written and nothing is left but to rename or remove a file: 0, and the
     * folder stays as it is (QN_BUSY when not even the new file is in its place). NULL: yes. */
    int (*may)(void *user);
    void *user;
} qn__snapshot;

/* Opens the folder, makes it when it is missing (not its parents), takes it for this process and
 * removes what dead processes left half written (base/leftovers.h). Fails with QN_BUSY naming the
 * process that holds it, or QN_IO; so it does where the lock file's place holds no regular file. */
qn_status qn__checkpoints_open(const char *dir, qn__checkpoints **out, qn_error *err);

/* Writes a checkpoint. After a failure (QN_IO, QN_MEMORY) the earlier ones are as they were. After
 * the first success those of later steps are gone: a run that was not resumed asks
 * qn__checkpoints_count first. */
qn_status qn__checkpoints_write(qn__checkpoints *checkpoints, const qn__snapshot *snapshot,
                                qn_error *err);

/* Loads the last whole checkpoint. `into` says what is expected (recipe_json, parameters, slots)
 * and where to put it; *found becomes 0 and nothing is written when the folder has none. A damaged
 * file is passed over with a note, and the one before it taken; when all are damaged it fails with
 * QN_FORMAT. QN_MISMATCH when the recipe is another one: the message names the keys that differ.
 * `note` may be NULL. */
qn_status qn__checkpoints_last(qn__checkpoints *checkpoints, qn__snapshot *into, int *found,
                               qn_note_fn note, void *user, qn_error *err);

/* 1 when a folder of checkpoints keeps a file of its own under that name. */
int qn__checkpoints_own(const char *name);

/* How many checkpoint files there are, whole or not: so that a run which was not asked to resume
 * can say that it would write over another's. */
qn_status qn__checkpoints_count(qn__checkpoints *checkpoints, uint64_t *count, qn_error *err);

/* The last step of which the folder has a checkpoint file, whole or not; *found is 0 when there is
 * none. The folder need not be open. QN_IO, QN_MEMORY. */
qn_status qn__checkpoints_newest(const char *dir, uint64_t *step, int *found, qn_error *err);

/* Gives the folder back. Accepts NULL. */
void qn__checkpoints_close(qn__checkpoints *checkpoints);

#endif
