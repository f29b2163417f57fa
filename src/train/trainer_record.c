/* The record of a training: opened, and what becomes of it when it cannot be written. */
#include "train/trainer_state.h"

qn__record_start qn__train_facts(const qn_train *t) {
    const int threads = t->options.compute.threads ? t->options.compute.threads : qn__cores();
    return (qn__record_start){.recipe_json = t->job.recipe_json,
                              .real = t->job.recipe.task == QN__TASK_REGRESS,
                              .next = t->job.program.next,
                              .isa = t->isa,
                              .threads = threads,
                              .arguments = t->record.command_line ? 1 : 0,
                              .argument = (const char *const *)&t->record.command_line,
                              .begun = t->record.wall};
}

/* The previous writer may have appended lines of epochs that this rank does not know of: the record
 * is continued after its last complete line. */
qn_status qn__train_take_record(qn_train *t, uint64_t epochs_done, qn_error *err) {
    qn__record_start start = qn__train_facts(t);
    start.epochs_done = epochs_done;
    start.owner = &t->owner;
    start.known = t->cluster ? qn__record_metrics(t->record.story) : NULL;
    return t->record.folder ? QN_OK
                            : qn__record_open(t->record.dir, &start, &t->record.folder, err);
}

int qn__train_may_record(const qn_train *t) {
    return t->record.incomplete.status == QN_OK || t->record.incomplete.status == QN_BUSY;
}

int qn__train_recorded(qn_train *t, qn_status status, const qn_error *why) {
    const qn_status before = t->record.incomplete.status;
    if (status == QN_BUSY) { /* the lock is lost, or held by another run */
        qn__record_close(t->record.folder);
        t->record.folder = NULL;
        if (!qn__train_is_writer(t))
            return 0;
    }
    if (status == QN_OK && before == QN_BUSY)
        t->record.incomplete = (qn_error){0};
    if (status == QN_OK || before == status || (before != QN_OK && before != QN_BUSY))
        return 0;
    t->record.incomplete = *why;
    return 1;
}
