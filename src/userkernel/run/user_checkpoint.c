#include "userkernel/run/user_checkpoint.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "cluster/cluster.h"
#include "team/together.h"
#include "userkernel/run/user_done.h"
#include "userkernel/run/user_state.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_LINE "quern kernel checkpoint 1"
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
    qn__user_done_end(k);
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
    if (k->iterations == 1 && qn__user_done_open(k, err) != QN_OK)
        return QN_MEMORY;
    if (!(c->seconds >= 0)) {
        qn__fail(err, QN_USAGE, "the time between checkpoints is below 0");
        return qn__remedy(err, QN_USAGE, "give seconds in `kernel.checkpoint_seconds`");
    }
    if (c->seconds == 0 && c->iterations == 0)
        c->seconds = USUAL_SECONDS;
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

/* ------------------------------------------------------------------ the header */

static int is_carried(const qn_kernel *k, uint32_t part) {
    return k->source.part[part].use == QN__USER_OUTPUT && k->source.part[part].next;
}

/* The part's array as the file holds it: of a series the first numbers. Returns its word, or NULL:
 * the file has none. */
static const char *stored(const qn_kernel *k, uint32_t part, uint64_t iteration, void *state,
                          qn__user_array *out) {
    if (is_carried(k, part)) {
        *out = k->part[part].array;
        out->data = state;
        return "array";
    }
    if (!k->part[part].wants_series)
        return NULL;
    *out = k->part[part].series;
    out->shape[0] = iteration;
    return "series";
}

static qn_status write_header(const qn_kernel *k, uint64_t iteration,
                              void *const state[QN__USER_PARTS], qn__text *out, qn_error *err) {
    qn_status status = QN_OK;
    qn__text_add(out, FIRST_LINE "\n");
    qn__state_identify(k, out);
    qn__text_add(out, "iteration %" PRIu64 "\n", iteration);
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        char hex[65];
        qn__user_array a;
        const char *word = stored(k, i, iteration, state[i], &a);
        if (!word)
            continue;
        status = qn__user_array_digest(&a, NULL, hex, err);
        qn__text_add(out, "%s %s %s\n", word, k->source.part[i].name, hex);
    }
    qn__state_end(out);
    return out->failed && status == QN_OK ? qn__fail_memory(err, 1, out->size) : status;
}

static qn_status fill(const qn_kernel *k, uint64_t iteration, void *const state[QN__USER_PARTS],
                      qn__writer *writer, qn_error *err) {
    qn__text header = {0};
    qn_status status = write_header(k, iteration, state, &header, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, header.data, header.size, err);
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        qn__user_array a;
        if (stored(k, i, iteration, state[i], &a))
            status = qn__user_array_write_numbers(&a, writer, err);
    }
    qn__text_release(&header);
    return status;
}

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
    qn__writer *writer;
    qn_status status = begin_write(k, err);
    if (status == QN_OK)
        status = qn__writer_create(k->checkpoint.path, &writer, err);
    if (status != QN_OK)
        return status;
    qn__writer_ask(writer, qn__lock_may, &k->checkpoint.lock);
    status = fill(k, iteration, state, writer, err);
    if (status != QN_OK) {
        qn__writer_drop(writer);
        return status;
    }
    status = qn__writer_commit(writer, err);
    k->checkpoint.is_own = 1; /* it may be in place even if the folder could not be synced */
    return status;
}

qn_status qn__user_checkpoint_write_items(qn_kernel *k, uint64_t items, qn__user_total *total,
                                          qn_error *err) {
    const qn_status status = begin_write(k, err);
    return status == QN_OK ? qn__user_done_write(k, items, total, err) : status;
}

/* ------------------------------------------------------------------ reading */

static qn_status tell_other(const qn__state_reader *r, const char *what, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "the checkpoint is of a run with %s", what);
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_MISMATCH,
                      "give `kernel.iterations` as there, or another file for `kernel.checkpoint`");
}

static qn_status tell_older(const qn__state_reader *r, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "the checkpoint is of an older version of Quern");
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_MISMATCH, "remove it, and begin again");
}

static qn_status read_iteration(qn_kernel *k, qn__state_reader *r, qn_error *err) {
    uint64_t iteration = 0;
    if (qn__state_take(r, "items"))
        return k->iterations == 1 ? tell_older(r, err) : tell_other(r, "one iteration", err);
    const char *text = qn__state_take(r, "iteration");
    if (!text || !qn__parse_u64(text, strlen(text), &iteration) || iteration == 0)
        return qn__state_damaged(r, "it has no iteration", err);
    if (k->iterations == 1)
        return tell_other(r, "several iterations", err);
    k->checkpoint.is_resumed = 1;
    k->checkpoint.from = iteration;
    if (iteration < k->iterations)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the checkpoint has %" PRIu64 " iterations, and the run only %" PRIu64,
             iteration, k->iterations);
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_USAGE,
                      "give more `kernel.iterations`, or begin again without `kernel.resume`");
}

/* The digests of the arrays, in the order of the declarations. */
static qn_status read_digests(const qn_kernel *k, qn__state_reader *r,
                              char digest[QN__USER_PARTS][65], qn_error *err) {
    const uint64_t done = k->checkpoint.from;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        qn__user_array a;
        const char *word = stored(k, i, done, k->part[i].array.data, &a);
        if (!word)
            continue;
        const char *text = qn__state_take(r, word);
        const size_t size = strlen(k->source.part[i].name);
        if (!text || strncmp(text, k->source.part[i].name, size) != 0 || text[size] != ' ' ||
            strlen(text + size + 1) != 64) {
            qn__fail(err, QN_MISMATCH, "the checkpoint is of a run with other series");
            qn__at(err, "%s", r->path);
            return qn__remedy(err, QN_MISMATCH,
                              "ask for the same `kernel.series`, or give another file for "
                              "`kernel.checkpoint`");
        }
        memcpy(digest[i], text + size + 1, 65);
    }
    if (qn__state_take(r, "digest"))
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "the checkpoint is of a run with more series");
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_MISMATCH, "ask for the same `kernel.series`");
}

static qn_status read_numbers(qn_kernel *k, FILE *file, qn__state_reader *r,
                              char digest[QN__USER_PARTS][65], qn_error *err) {
    const uint64_t from = k->checkpoint.from;
    if (!qn__state_take(r, "") || fseek(file, (long)r->at, SEEK_SET) != 0)
        return qn__state_damaged(r, "no empty line ends its header", err);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        char hex[65];
        qn__user_array a;
        if (!stored(k, i, from, k->part[i].array.data, &a))
            continue;
        if (fread(a.data, 1, qn__user_array_bytes(&a), file) != qn__user_array_bytes(&a))
            return qn__state_damaged(r, "it is cut off, or cannot be read", err);
        qn__user_array_from_little(&a);
        const qn_status status = qn__user_array_digest(&a, NULL, hex, err);
        if (status != QN_OK)
            return status;
        if (strcmp(hex, digest[i]) != 0)
            return qn__state_damaged(r, "its numbers do not fit their digest", err);
    }
    return fgetc(file) == EOF ? QN_OK : qn__state_damaged(r, "bytes stand after its end", err);
}

static qn_status read_all(qn_kernel *k, FILE *file, qn__state_reader *r, qn_error *err) {
    char digest[QN__USER_PARTS][65] = {{0}};
    if (!qn__state_is_whole(r))
        return qn__state_damaged(r, "its header does not fit its digest", err);
    if (!qn__state_take(r, FIRST_LINE))
        return qn__state_damaged(r, "it is not of this version of Quern", err);
    qn_status status = qn__state_identity_check(k, r, err);
    if (status == QN_OK)
        status = read_iteration(k, r, err);
    if (status == QN_OK)
        status = read_digests(k, r, digest, err);
    return status == QN_OK ? read_numbers(k, file, r, digest, err) : status;
}

/* By the first line. */
static int is_of_items(const qn__state_reader *r) {
    static const char line[] = QN__DONE_LINE "\n";
    return r->size >= sizeof line - 1 && memcmp(r->bytes, line, sizeof line - 1) == 0;
}

qn_status qn__user_checkpoint_read(qn_kernel *k, qn_error *err) {
    k->checkpoint.from = 0;
    if (!k->checkpoint.resume)
        return QN_OK;
    FILE *file = fopen(k->checkpoint.path, "rbe");
    if (!file)
        return errno == ENOENT ? QN_OK : qn__fail_errno(err, "open", k->checkpoint.path);
    qn__state_reader *r = qn__alloc(1, sizeof *r, err);
    qn_status status = r ? QN_OK : QN_MEMORY;
    if (r) {
        r->path = k->checkpoint.path;
        r->size = fread(r->bytes, 1, sizeof r->bytes, file);
        if (!is_of_items(r))
            status = read_all(k, file, r, err);
        else
            status = k->iterations == 1 ? qn__user_done_read(k, fileno(file), err)
                                        : tell_other(r, "one iteration", err);
    }
    qn__free(r);
    fclose(file);
    return status;
}
