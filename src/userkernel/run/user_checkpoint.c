/* When a checkpoint is written, and by whom: options, the lock, and what is due. user_state_file.c
 * writes and reads the file. Before the work the place is tried and locked, so that a wrong folder
 * or a second run is known at once. Among ranks one writes; if it dies, the next one takes the
 * lock. */
#include "userkernel/run/user_checkpoint.h"

#include "base/files/remote.h"
#include "base/system/clock.h"
#include "cluster/cluster.h"
#include "team/together.h"
#include "userkernel/run/user_state_file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const double USUAL_SECONDS = 60;

/* ------------------------------------------------------------------ options */

static qn_status lock(qn_kernel *k, qn_error *err) {
    qn__user_checkpoint *c = &k->checkpoint;
    const qn__owner owner = qn__owner_of(k->compute.cluster);
    if (c->lock.file >= 0 && qn__lock_may(&c->lock))
        return QN_OK;
    qn__lock_release(&c->lock); /* another process has it */
    return qn__file_lock(c->path, "the file of the checkpoint", "`kernel.checkpoint`", &owner,
                         &c->lock, err);
}

void qn__user_checkpoint_end(qn_kernel *k) {
    qn__state_file_close(k);
    qn__lock_release(&k->checkpoint.lock);
}

/* A folder that is missing is known before the work. */
static qn_status try_place(qn_kernel *k, qn_error *err) {
    qn__writer *writer;
    if (!qn_cluster_is_writer(k->compute.cluster))
        return QN_OK;
    const qn_status status = qn__writer_create(k->checkpoint.path, &writer, err);
    if (status != QN_OK)
        return status;
    qn__writer_drop(writer);
    return lock(k, err);
}

qn_status qn__user_checkpoint_set(qn_kernel *k, const qn_kernel_options *o, qn_error *err) {
    struct stat there;
    qn__user_checkpoint *c = &k->checkpoint;
    *c = (qn__user_checkpoint){.path = o->checkpoint,
                               .seconds = o->checkpoint_seconds,
                               .iterations = o->checkpoint_iterations,
                               .resume = o->resume,
                               .written = qn__now(),
                               .lock.file = -1};
    if (!c->path) {
        if (!o->resume && o->checkpoint_iterations == 0 && o->checkpoint_seconds == 0)
            return QN_OK;
        qn__fail(err, QN_USAGE, "there is no file for checkpoints");
        return qn__remedy(err, QN_USAGE, "add `kernel.checkpoint` with a file");
    }
    if (k->iterations == 1 && c->iterations > 0) {
        qn__fail(err, QN_USAGE,
                 "the kernel runs once, so no number of iterations is between two "
                 "checkpoints");
        qn__at(err, "`kernel.checkpoint_seconds`");
        return qn__remedy(err, QN_USAGE, "give a time there, such as 60 seconds");
    }
    if (qn__state_file_open(k, err) != QN_OK)
        return QN_MEMORY;
    if (!(c->seconds >= 0)) {
        qn__fail(err, QN_USAGE, "the time between checkpoints is below 0");
        return qn__remedy(err, QN_USAGE, "give seconds in `kernel.checkpoint_seconds`");
    }
    if (c->seconds == 0 && c->iterations == 0)
        c->seconds = USUAL_SECONDS;
    if (qn__remote_is(c->path)) {
        qn__fail(err, QN_UNSUPPORTED, "the checkpoint of a kernel cannot be in a store");
        qn__at(err, "%s", c->path);
        return qn__remedy(err, QN_UNSUPPORTED,
                          "name a file of this machine for `kernel.checkpoint`");
    }
    const int is_there = stat(c->path, &there) == 0;
    if (is_there && !S_ISREG(there.st_mode)) {
        qn__fail(err, QN_IO, "the place of the checkpoint is not a file");
        qn__at(err, "%s", c->path);
        return qn__remedy(err, QN_IO, "name another file for `kernel.checkpoint`");
    }
    if (!is_there || c->resume)
        return try_place(k, err);
    qn__fail(err, QN_USAGE, "the file of the checkpoint exists");
    qn__at(err, "%s", c->path);
    return qn__remedy(err, QN_USAGE,
                      "add `kernel.resume` to go on from it, or remove it to begin again");
}

uint64_t qn__user_checkpoint_ahead(const qn_kernel *k, uint64_t iteration, uint64_t most) {
    const uint64_t every = k->checkpoint.path ? k->checkpoint.iterations : 0;
    if (every == 0 || every - iteration % every > most)
        return most;
    return every - iteration % every;
}

int qn__user_checkpoint_due(const qn_kernel *k, uint64_t iteration) {
    const qn__user_checkpoint *c = &k->checkpoint;
    if (!c->path || iteration == 0 || iteration >= k->iterations)
        return 0;
    return (c->iterations > 0 && iteration % c->iterations == 0) ||
           (c->seconds > 0 && qn__now() - c->written >= c->seconds);
}

/* ------------------------------------------------------------------ writing */

/* Two runs may have begun when there was no file. Of ranks another one may have written it. */
static qn_status check_owner(const qn_kernel *k, qn_error *err) {
    struct stat there;
    const qn__user_checkpoint *c = &k->checkpoint;
    if (c->is_own || c->is_resumed || k->compute.cluster || stat(c->path, &there) != 0)
        return QN_OK;
    qn__fail(err, QN_IO, "another run has written the file of the checkpoint");
    qn__at(err, "%s", c->path);
    return qn__remedy(err, QN_IO, "give each run its own file for `kernel.checkpoint`");
}

/* The writer may have been another rank. */
static qn_status begin_write(qn_kernel *k, qn_error *err) {
    if (k->compute.cluster && !qn__cluster_may_write(k->compute.cluster))
        return qn__fail(err, QN_BUSY, "another rank writes the checkpoints");
    qn_status status = check_owner(k, err);
    if (status == QN_OK)
        status = lock(k, err);
    if (status == QN_BUSY)
        err->status = status = QN_IO; /* QN_BUSY is that another rank writes */
    return status;
}

qn_status qn__user_checkpoint_write(qn_kernel *k, uint64_t iteration,
                                    void *const state[QN__USER_PARTS], qn_error *err) {
    const qn_status status = begin_write(k, err);
    return status == QN_OK ? qn__state_iteration_write(k, iteration, state, err) : status;
}

qn_status qn__user_checkpoint_write_items(qn_kernel *k, uint64_t items, qn__user_total *total,
                                          qn_error *err) {
    const qn_status status = begin_write(k, err);
    return status == QN_OK ? qn__state_items_write(k, items, total, err) : status;
}

/* ------------------------------------------------------------------ reading */

qn_status qn__user_checkpoint_read(qn_kernel *k, qn_error *err) {
    k->checkpoint.from = 0;
    if (!k->checkpoint.resume)
        return QN_OK;
    const int file = open(k->checkpoint.path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT ? QN_OK : qn__fail_errno(err, "open", k->checkpoint.path);
    const qn_status status = qn__state_file_read(k, file, err);
    close(file);
    return status;
}
