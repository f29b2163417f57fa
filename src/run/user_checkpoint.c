#include "run/user_checkpoint.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "cluster/cluster.h"
#include "job/user_sums.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_LINE "quern kernel checkpoint 1"
enum { HEADER_MAX = 1 << 14, LONGEST = 255 /* bytes of a line */ };
static const double USUAL_SECONDS = 60;

/* ------------------------------------------------------------------ options */

static qn_status lock(qn_kernel *k, qn_error *err) {
    qn__user_checkpoint *c = &k->checkpoint;
    return c->lock.file >= 0 ? QN_OK
                             : qn__file_lock_take(c->path, "the file of the checkpoint",
                                                  "`kernel.checkpoint`", &c->lock, err);
}

void qn__user_checkpoint_end(qn_kernel *k) {
    qn__file_lock_release(&k->checkpoint.lock);
    qn__free(k->checkpoint.totals);
    k->checkpoint.totals = NULL;
}

/* ------------------------------------------------------------------ one iteration */

int qn__user_checkpoint_of_items(const qn_kernel *k) {
    return k->checkpoint.path && k->iterations == 1;
}

/* Where the words of a part's total begin; those of the part behind the last one: all. */
static uint64_t words_before(const qn_kernel *k, uint32_t part) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < part; i++)
        words += qn__user_total_all_words(&k->source.part[i]);
    return words;
}

static qn_status make_totals(qn_kernel *k, qn_error *err) {
    k->checkpoint.totals =
        qn__alloc(1 + words_before(k, k->source.parts), sizeof *k->checkpoint.totals, err);
    return k->checkpoint.totals ? QN_OK : QN_MEMORY;
}

void qn__user_checkpoint_keep(qn_kernel *k, uint64_t items, qn__user_total *total) {
    qn__user_checkpoint *c = &k->checkpoint;
    memset(c->totals, 0, words_before(k, k->source.parts) * sizeof *c->totals);
    for (uint32_t i = 0; i < k->source.parts; i++)
        qn__user_total_pack(&total[i], &k->source.part[i], c->totals + words_before(k, i));
    c->items = items;
}

void qn__user_checkpoint_begin(const qn_kernel *k, qn__user_total *total) {
    for (uint32_t i = 0; i < k->source.parts && k->checkpoint.items > 0; i++)
        qn__user_total_unpack(&total[i], &k->source.part[i],
                              k->checkpoint.totals + words_before(k, i));
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
    if (k->iterations == 1 && make_totals(k, err) != QN_OK)
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

/* Digests of what the state follows from. */
typedef struct identity {
    char kernel[65], shape[72], values[65], inputs[65];
} identity;

static void add_word(qn__sha256 *hash, const char *word) {
    qn__sha256_add(hash, word, strlen(word) + 1);
}

static void end(qn__sha256 *hash, char hex[65]) {
    uint8_t digest[32];
    qn__sha256_end(hash, digest);
    qn__hex(digest, hex);
}

static void identify(const qn_kernel *k, identity *id) {
    char seed[24];
    qn__sha256 text, values, inputs;
    qn__sha256_begin(&text);
    qn__sha256_begin(&values);
    qn__sha256_begin(&inputs);
    add_word(&text, k->text);
    snprintf(seed, sizeof seed, "%" PRIu64, k->seed);
    add_word(&values, seed);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_use use = k->source.part[i].use;
        if (use == QN__USER_SCALAR)
            add_word(&values, k->part[i].text);
        else if (use < QN__USER_OUTPUT)
            add_word(&inputs, k->part[i].digest);
    }
    end(&text, id->kernel);
    end(&values, id->values);
    end(&inputs, id->inputs);
    qn__user_shape_text(
        k->source.dimensions,
        (const uint64_t *)k->job.extent + QN_KERNEL_DIMENSIONS - k->source.dimensions, id->shape);
}

static int is_carried(const qn_kernel *k, uint32_t part) {
    return k->source.part[part].use == QN__USER_OUTPUT && k->source.part[part].next;
}

/* The same where there is one iteration: the first items of an output, and the words of a total. */
static const char *stored_items(const qn_kernel *k, uint32_t part, uint64_t items,
                                qn__user_array *out) {
    const qn__user_part *p = &k->source.part[part];
    if (!qn__user_use_is_result(p->use))
        return NULL;
    const int total = p->use != QN__USER_OUTPUT;
    *out = (qn__user_array){.type = total ? QN__USER_I64 : p->type, .dimensions = 1};
    out->shape[0] = total ? qn__user_total_all_words(p) : items * qn__user_part_numbers(p);
    out->data =
        total ? (void *)(k->checkpoint.totals + words_before(k, part)) : k->part[part].array.data;
    return total ? "total" : "items";
}

/* The part's array as the file holds it: of a series the first numbers. Returns its word, or NULL:
 * the file has none. */
static const char *stored(const qn_kernel *k, uint32_t part, uint64_t iteration, void *state,
                          qn__user_array *out) {
    if (qn__user_checkpoint_of_items(k))
        return stored_items(k, part, iteration, out);
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

/* What the file counts. */
static const char *unit_of(const qn_kernel *k) {
    return qn__user_checkpoint_of_items(k) ? "items" : "iteration";
}

static qn_status write_header(const qn_kernel *k, uint64_t iteration,
                              void *const state[QN__USER_PARTS], qn__text *out, qn_error *err) {
    identity id;
    qn_status status = QN_OK;
    identify(k, &id);
    qn__text_add(out, FIRST_LINE "\nkernel %s\nshape %s\nvalues %s\ninputs %s\n%s %" PRIu64 "\n",
                 id.kernel, id.shape, id.values, id.inputs, unit_of(k), iteration);
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        char hex[65];
        qn__user_array a;
        const char *word = stored(k, i, iteration, state[i], &a);
        if (!word)
            continue;
        status = qn__user_array_digest(&a, NULL, hex, err);
        qn__text_add(out, "%s %s %s\n", word, k->source.part[i].name, hex);
    }
    if (out->failed && status == QN_OK)
        status = qn__fail_memory(err, 1, out->size);
    if (status == QN_OK) {
        char hex[65];
        uint8_t digest[32];
        qn__sha256_of(out->data, out->size, digest);
        qn__hex(digest, hex);
        qn__text_add(out, "digest %s\n\n", hex);
    }
    return status;
}

static qn_status fill(const qn_kernel *k, uint64_t iteration, void *const state[QN__USER_PARTS],
                      qn__writer *writer, qn_error *err) {
    qn__text header = {0};
    qn_status status = write_header(k, iteration, state, &header, err);
    if (status == QN_OK)
        status = header.failed ? qn__fail_memory(err, 1, header.size)
                               : qn__writer_add(writer, header.data, header.size, err);
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

qn_status qn__user_checkpoint_write(qn_kernel *k, uint64_t iteration,
                                    void *const state[QN__USER_PARTS], qn_error *err) {
    qn__writer *writer;
    qn_status status = check_owner(k, err);
    if (status != QN_OK)
        return status;
    status = lock(k, err); /* the writer may have been another rank */
    if (status == QN_BUSY)
        err->status = status = QN_IO; /* QN_BUSY is that another rank writes */
    if (status == QN_OK)
        status = qn__writer_create(k->checkpoint.path, &writer, err);
    if (status != QN_OK)
        return status;
    if (k->compute.cluster)
        qn__writer_ask(writer, qn__cluster_may_write, k->compute.cluster);
    status = fill(k, iteration, state, writer, err);
    if (status != QN_OK) {
        qn__writer_drop(writer);
        return status;
    }
    status = qn__writer_commit(writer, err);
    k->checkpoint.is_own = 1; /* it may be in place even if the folder could not be synced */
    return status;
}

/* ------------------------------------------------------------------ reading */

typedef struct reader {
    const char *path;
    FILE *file;
    uint8_t bytes[HEADER_MAX]; /* of its beginning */
    size_t size, at;
    char line[LONGEST + 1];
} reader;

static qn_status damaged(const reader *r, const char *what, qn_error *err) {
    qn__fail(err, QN_FORMAT, "the checkpoint is damaged: %s", what);
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_FORMAT, "remove it, and begin again without `kernel.resume`");
}

/* Takes the next line if it begins with the word and a blank; returns what follows, or NULL. */
static const char *take(reader *r, const char *word) {
    const size_t size = strlen(word), left = r->size - r->at;
    const uint8_t *line = r->bytes + r->at;
    const uint8_t *newline = left > 0 ? memchr(line, '\n', left < LONGEST ? left : LONGEST) : NULL;
    if (!newline)
        return NULL;
    const size_t length = (size_t)(newline - line);
    memcpy(r->line, line, length);
    r->line[length] = '\0';
    if (strlen(r->line) != length || strncmp(r->line, word, size) != 0 ||
        (length > size && r->line[size] != ' '))
        return NULL;
    r->at += length + 1;
    return r->line + size + (length > size);
}

/* The lines up to the digest are what it says. */
static int is_whole(reader *r) {
    char hex[65];
    uint8_t digest[32];
    const char *wanted = NULL;
    size_t at = 0;
    for (r->at = 0; r->at < r->size && !wanted;) {
        const uint8_t *newline = memchr(r->bytes + r->at, '\n', r->size - r->at);
        at = r->at;
        wanted = take(r, "digest");
        if (!newline)
            return 0;
        if (!wanted)
            r->at = (size_t)(newline - r->bytes) + 1;
    }
    if (!wanted)
        return 0;
    qn__sha256_of(r->bytes, at, digest);
    qn__hex(digest, hex);
    r->at = 0;
    return strcmp(hex, wanted) == 0;
}

static qn_status check_identity(const qn_kernel *k, reader *r, qn_error *err) {
    static const char *const words[] = {"kernel", "shape", "values", "inputs"};
    static const char *const names[] = {"kernel", "shape", "scalars or seed", "inputs"};
    identity id;
    identify(k, &id);
    const char *const own[] = {id.kernel, id.shape, id.values, id.inputs};
    for (int i = 0; i < 4; i++) {
        const char *theirs = take(r, words[i]);
        if (!theirs)
            return damaged(r, "its first lines are not those of a checkpoint", err);
        if (strcmp(theirs, own[i]) == 0)
            continue;
        qn__fail(err, QN_MISMATCH, "the checkpoint is of a run with %s %s",
                 i < 2 ? "another" : "other", names[i]);
        qn__at(err, "%s", r->path);
        return qn__remedy(err, QN_MISMATCH,
                          "give those of that run, or another file for `kernel.checkpoint`");
    }
    return QN_OK;
}

/* Of one iteration: the items that are done. */
static qn_status accept_items(qn_kernel *k, const reader *r, uint64_t items, qn_error *err) {
    k->checkpoint.items = items;
    return items % 8 == 0 && items < (uint64_t)qn__user_job_items(&k->job)
               ? QN_OK
               : damaged(r, "it has another number of items", err);
}

static qn_status read_iteration(qn_kernel *k, reader *r, qn_error *err) {
    uint64_t iteration = 0;
    const int of_items = qn__user_checkpoint_of_items(k);
    if (take(r, of_items ? "iteration" : "items")) {
        qn__fail(err, QN_MISMATCH, "the checkpoint is of a run with %s",
                 of_items ? "several iterations" : "one iteration");
        qn__at(err, "%s", r->path);
        return qn__remedy(err, QN_MISMATCH,
                          "give `kernel.iterations` as there, or another file for "
                          "`kernel.checkpoint`");
    }
    const char *text = take(r, unit_of(k));
    if (!text || !qn__parse_u64(text, strlen(text), &iteration) || iteration == 0)
        return damaged(r, "it has no iteration", err);
    k->checkpoint.is_resumed = 1;
    if (of_items)
        return accept_items(k, r, iteration, err);
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
static qn_status read_digests(const qn_kernel *k, reader *r, char digest[QN__USER_PARTS][65],
                              qn_error *err) {
    const uint64_t done = k->checkpoint.from + k->checkpoint.items;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        qn__user_array a;
        const char *word = stored(k, i, done, k->part[i].array.data, &a);
        if (!word)
            continue;
        const char *text = take(r, word);
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
    if (take(r, "digest"))
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "the checkpoint is of a run with more series");
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_MISMATCH, "ask for the same `kernel.series`");
}

static qn_status read_numbers(qn_kernel *k, reader *r, char digest[QN__USER_PARTS][65],
                              qn_error *err) {
    const uint64_t from = k->checkpoint.from + k->checkpoint.items;
    if (!take(r, "") || fseek(r->file, (long)r->at, SEEK_SET) != 0)
        return damaged(r, "no empty line ends its header", err);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        char hex[65];
        qn__user_array a;
        if (!stored(k, i, from, k->part[i].array.data, &a))
            continue;
        if (fread(a.data, 1, qn__user_array_bytes(&a), r->file) != qn__user_array_bytes(&a))
            return damaged(r, "it is cut off, or cannot be read", err);
        qn__user_array_from_little(&a);
        const qn_status status = qn__user_array_digest(&a, NULL, hex, err);
        if (status != QN_OK)
            return status;
        if (strcmp(hex, digest[i]) != 0)
            return damaged(r, "its numbers do not fit their digest", err);
    }
    return fgetc(r->file) == EOF ? QN_OK : damaged(r, "bytes stand behind its end", err);
}

static qn_status read_all(qn_kernel *k, reader *r, qn_error *err) {
    char digest[QN__USER_PARTS][65] = {{0}};
    if (!is_whole(r))
        return damaged(r, "its header does not fit its digest", err);
    if (!take(r, FIRST_LINE))
        return damaged(r, "it is not of this version of Quern", err);
    qn_status status = check_identity(k, r, err);
    if (status == QN_OK)
        status = read_iteration(k, r, err);
    if (status == QN_OK)
        status = read_digests(k, r, digest, err);
    return status == QN_OK ? read_numbers(k, r, digest, err) : status;
}

qn_status qn__user_checkpoint_read(qn_kernel *k, qn_error *err) {
    k->checkpoint.from = 0;
    if (!k->checkpoint.resume)
        return QN_OK;
    FILE *file = fopen(k->checkpoint.path, "rbe");
    if (!file)
        return errno == ENOENT ? QN_OK : qn__fail_errno(err, "open", k->checkpoint.path);
    reader *r = qn__alloc(1, sizeof *r, err);
    qn_status status = r ? QN_OK : QN_MEMORY;
    if (r) {
        r->path = k->checkpoint.path;
        r->file = file;
        r->size = fread(r->bytes, 1, sizeof r->bytes, file);
        status = read_all(k, r, err);
    }
    qn__free(r);
    fclose(file);
    return status;
}
