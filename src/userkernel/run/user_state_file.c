/* The file has a head, two places for states, and a place for each array:
 *
 *   0          head: what the run is, and where the states stand
 *   4096       state: how much is done, digests, totals
 *   4096 + n   state
 *   4096 + 2n  outputs and series, in the order of the declarations; each begins a page
 *
 * In a run of one iteration a state says how many items are done. They are taken in their order, so
 * an output up to there never changes again. New items are written after those of the last state
 * and synced; then a state is written to the place of the older one. So at any moment one of the
 * two is whole, and so are its items: after kill -9, a full disk or a loss of power. In a run of
 * several iterations all numbers change, so each checkpoint is a new file with one state, which
 * replaces the one before. */
#include "userkernel/run/user_state_file.h"

#include "base/digest/sha256.h"
#include "base/memory.h"
#include "userkernel/run/user_state.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, BLOCK = 1 << 16, STATES = 2 };
/* Bytes of the lines without those of outputs, and of such a line without the name, at most. */
enum { FEW_LINES = 800, OF_A_LINE = 100 };

#define FIRST_LINE "quern kernel checkpoint"
#define FORMAT "2"

/* Bytes from the beginning of the file. */
typedef struct layout {
    uint64_t state[STATES], array[QN__USER_PARTS], end;
    size_t lines_bytes; /* of those that begin the file, or a state */
    size_t state_bytes, totals_bytes;
} layout;

struct qn__state_file {
    layout at;
    int file;       /* of a run of one iteration, to write; -1: it is not open */
    uint64_t items; /* of the better state that the file has */
    int place;      /* of the other one */
    uint64_t hashed;
    qn__sha256 hash[QN__USER_PARTS]; /* of each array, of outputs so many items */
    /* All parts, one after the other: of kernel->checkpoint.items, and of the state that is read
     * or written. */
    int64_t *totals, *next;
};

int qn__state_of_items(const qn_kernel *k) { return k->checkpoint.path && k->iterations == 1; }

/* ------------------------------------------------------------------ the layout */

static uint64_t pages(uint64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

static int is_total(const qn_kernel *k, uint32_t part) {
    const qn__user_use use = k->source.part[part].use;
    return k->iterations == 1 && qn__user_use_is_result(use) && use != QN__USER_OUTPUT;
}

/* The numbers of a part that a state has after `done` items or iterations. `carried`: the outputs
 * that are carried, or NULL: those of the kernel. Returns its word, or NULL: it has none. */
static const char *stored(const qn_kernel *k, uint32_t part, uint64_t done, void *const *carried,
                          qn__user_array *out) {
    const qn__user_part *p = &k->source.part[part];
    const qn__user_bound *b = &k->part[part];
    const uint64_t items = k->iterations == 1 ? done : (uint64_t)qn__user_job_items(&k->job);
    if (p->use == QN__USER_OUTPUT && (k->iterations == 1 || p->next)) {
        *out = (qn__user_array){.type = p->type,
                                .dimensions = 1,
                                .shape = {items * qn__user_part_numbers(p)},
                                .data = carried ? carried[part] : b->array.data};
        return "output";
    }
    if (k->iterations == 1 || !b->wants_series)
        return NULL;
    *out = b->series;
    out->shape[0] = done;
    return "series";
}

/* Where the words of a part's total begin; those of the part after the last one: all. */
static uint64_t words_before(const qn_kernel *k, uint32_t part) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < part; i++)
        words += is_total(k, i) ? qn__user_total_all_words(&k->source.part[i]) : 0;
    return words;
}

static void lay_out(const qn_kernel *k, uint64_t done, layout *at) {
    const uint64_t most = k->iterations == 1 ? (uint64_t)qn__user_job_items(&k->job) : done;
    qn__user_array a;
    at->totals_bytes = (size_t)words_before(k, k->source.parts) * sizeof(int64_t);
    at->lines_bytes = (size_t)pages(FEW_LINES + k->source.parts * (QN__USER_NAME_MAX + OF_A_LINE));
    at->state_bytes = at->lines_bytes + (size_t)pages(at->totals_bytes);
    for (int s = 0; s < STATES; s++)
        at->state[s] = at->lines_bytes + (uint64_t)s * at->state_bytes;
    at->end = at->lines_bytes + STATES * at->state_bytes;
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (stored(k, i, most, NULL, &a)) {
            at->array[i] = pages(at->end);
            at->end = at->array[i] + qn__user_array_bytes(&a);
        }
}

/* The lines at the beginning of the file, which never change. */
static qn_status write_head(const qn_kernel *k, const layout *at, qn__text *out, qn_error *err) {
    qn__text_add(out, FIRST_LINE " " FORMAT "\n");
    qn__text_add(out, "run %s\n", k->iterations == 1 ? "items" : "iterations");
    qn__state_identify(k, out);
    for (int s = 0; s < STATES; s++)
        qn__text_add(out, "state %" PRIu64 "\n", at->state[s]);
    qn__text_add(out, "totals %zu\n", at->lines_bytes);
    qn__state_end(out);
    return out->failed || out->size > at->lines_bytes ? qn__fail_memory(err, 1, out->size) : QN_OK;
}

/* ------------------------------------------------------------------ reading and writing */

/* Returns the bytes up to the end of the file, at most `size`; -1: errno has the reason. */
static ssize_t read_at(int file, void *to, size_t size, uint64_t at) {
    size_t done = 0;
    while (done < size) {
        const ssize_t got = pread(file, (char *)to + done, size - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static qn_status write_at(int file, const char *path, const void *from, size_t size, uint64_t at,
                          qn_error *err) {
    for (size_t done = 0; done < size;) {
        const ssize_t put =
            pwrite(file, (const char *)from + done, size - done, (off_t)(at + done));
        if (put < 0 && errno != EINTR)
            return qn__fail_errno(err, "write", path);
        if (put > 0)
            done += (size_t)put;
    }
    return QN_OK;
}

/* After an error nobody knows which of the last bytes are on the disk. The next attempt writes all
 * of them again, because f->items and f->place are what they were. */
static qn_status sync_file(const qn_kernel *k, const qn__state_file *f, qn_error *err) {
    return fdatasync(f->file) == 0 ? QN_OK : qn__fail_errno(err, "write", k->checkpoint.path);
}

/* ------------------------------------------------------------------ digests */

/* Adds the numbers of a state to the digests: of items those that they lack. */
static void hash_numbers(const qn_kernel *k, qn__state_file *f, uint64_t done,
                         void *const *carried) {
    uint8_t block[BLOCK];
    for (uint32_t i = 0; i < k->source.parts; i++) {
        qn__user_array a;
        if (!stored(k, i, done, carried, &a))
            continue;
        const size_t end = qn__user_array_bytes(&a);
        const uint32_t each = k->iterations == 1 ? qn__user_part_each(&k->source.part[i]) : 0;
        for (size_t at = (size_t)f->hashed * each, some; at < end; at += some) {
            some = end - at < BLOCK ? end - at : BLOCK;
            qn__sha256_add(&f->hash[i], qn__user_array_little(&a, at, some, block), some);
        }
    }
    f->hashed = done > f->hashed ? done : f->hashed;
}

static void begin_hash(qn__state_file *f) {
    f->hashed = 0;
    for (uint32_t i = 0; i < QN__USER_PARTS; i++)
        qn__sha256_begin(&f->hash[i]);
}

static void hash_text(const qn__sha256 *hash, char hex[65]) {
    qn__sha256 copy = *hash;
    uint8_t digest[32];
    qn__sha256_end(&copy, digest);
    qn__hex(digest, hex);
}

static void totals_text(const qn__state_file *f, const void *little, char hex[65]) {
    uint8_t digest[32];
    qn__sha256_of(little, f->at.totals_bytes, digest);
    qn__hex(digest, hex);
}

/* ------------------------------------------------------------------ a state */

static qn__user_array totals_array(const qn__state_file *f) {
    return (qn__user_array){.type = QN__USER_I64,
                            .dimensions = 1,
                            .shape = {f->at.totals_bytes / sizeof(int64_t)},
                            .data = f->next};
}

static const char *count_word(const qn_kernel *k) {
    return k->iterations == 1 ? "items" : "iteration";
}

/* The bytes of a state, whose numbers have been hashed. */
static qn_status make_state(const qn_kernel *k, const qn__state_file *f, uint64_t done,
                            uint8_t *bytes, qn_error *err) {
    const qn__user_array totals = totals_array(f);
    qn__text lines = {0};
    char hex[65];
    if (f->at.totals_bytes > 0) {
        uint8_t *to = bytes + f->at.lines_bytes;
        const void *little = qn__user_array_little(&totals, 0, f->at.totals_bytes, to);
        if (little != to)
            memcpy(to, little, f->at.totals_bytes);
    }
    qn__text_add(&lines, "%s %" PRIu64 "\n", count_word(k), done);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        qn__user_array a;
        const char *word = stored(k, i, done, NULL, &a);
        if (!word)
            continue;
        hash_text(&f->hash[i], hex);
        qn__text_add(&lines, "%s %s %" PRIu64 " %s\n", word, k->source.part[i].name, f->at.array[i],
                     hex);
    }
    totals_text(f, bytes + f->at.lines_bytes, hex);
    qn__text_add(&lines, "totals %s\n", hex);
    qn__state_end(&lines);
    const int fits = !lines.failed && lines.size <= f->at.lines_bytes;
    if (fits)
        memcpy(bytes, lines.data, lines.size);
    const qn_status status = fits ? QN_OK : qn__fail_memory(err, 1, lines.size);
    qn__text_release(&lines);
    return status;
}

/* A state that was read. */
typedef struct state {
    uint64_t done; /* items or iterations */
    char digest[QN__USER_PARTS][65];
    int is_there; /* it is whole */
    int is_empty; /* there never was one */
} state;

/* Items are taken in grains of eight or more. */
static int may_be(const qn_kernel *k, uint64_t done) {
    return k->iterations > 1 ? done > 0
                             : done % 8 == 0 && done < (uint64_t)qn__user_job_items(&k->job);
}

static int parse_state(const qn_kernel *k, qn__state_reader *r, state *out, char totals[65]) {
    const char *text = qn__state_take(r, count_word(k));
    layout at;
    if (!text || !qn__parse_u64(text, strlen(text), &out->done) || !may_be(k, out->done))
        return 0;
    lay_out(k, out->done, &at);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        char place[QN__USER_NAME_MAX + 24];
        qn__user_array a;
        const char *word = stored(k, i, 0, NULL, &a);
        if (!word)
            continue;
        const int size =
            snprintf(place, sizeof place, "%s %" PRIu64 " ", k->source.part[i].name, at.array[i]);
        text = qn__state_take(r, word);
        if (!text || strncmp(text, place, (size_t)size) != 0 || strlen(text + size) != 64)
            return 0;
        memcpy(out->digest[i], text + size, 65);
    }
    text = qn__state_take(r, "totals");
    if (!text || strlen(text) != 64)
        return 0;
    memcpy(totals, text, 65);
    return 1;
}

/* Reads the state at a place into `out`, and its totals into `little`. */
static qn_status read_state(const qn_kernel *k, const qn__state_file *f, int file, int place,
                            qn__state_reader *r, state *out, void *little, qn_error *err) {
    char wanted[65], hex[65];
    const ssize_t size = read_at(file, r->bytes, f->at.lines_bytes, f->at.state[place]);
    const ssize_t totals =
        read_at(file, little, f->at.totals_bytes, f->at.state[place] + f->at.lines_bytes);
    *out = (state){.is_there = 0};
    if (size < 0 || totals < 0)
        return qn__fail_errno(err, "read", r->path);
    r->size = (size_t)size;
    r->at = 0;
    out->is_empty = size > 0 && r->bytes[0] == 0;
    if ((size_t)totals != f->at.totals_bytes || !qn__state_is_whole(r) ||
        !parse_state(k, r, out, wanted))
        return QN_OK;
    totals_text(f, little, hex);
    out->is_there = strcmp(hex, wanted) == 0;
    return QN_OK;
}

/* Finds the better state of the file: `best`, with its totals. *partial: one is not whole. */
static qn_status find_state(const qn_kernel *k, qn__state_file *f, int file, qn__state_reader *r,
                            state *best, int *partial, qn_error *err) {
    void *little = qn__alloc(1, f->at.totals_bytes, err);
    state *read = qn__alloc(1, sizeof *read, err);
    qn_status status = little && read ? QN_OK : QN_MEMORY;
    *best = (state){.is_there = 0};
    *partial = 0;
    for (int s = 0; s < STATES && status == QN_OK; s++) {
        status = read_state(k, f, file, s, r, read, little, err);
        *partial |= status == QN_OK && !read->is_there && !read->is_empty;
        if (status != QN_OK || !read->is_there || (best->is_there && best->done > read->done))
            continue;
        *best = *read;
        f->place = 1 - s;
        memcpy(f->next, little, f->at.totals_bytes);
    }
    qn__user_array totals = totals_array(f);
    qn__user_array_from_little(&totals);
    f->items = best->done;
    qn__free(read);
    qn__free(little);
    return status;
}

/* ------------------------------------------------------------------ the state of a run */

qn_status qn__state_file_open(qn_kernel *k, qn_error *err) {
    qn__state_file *f = k->checkpoint.file = qn__alloc(1, sizeof *f, err);
    if (!f)
        return QN_MEMORY;
    f->file = -1;
    begin_hash(f); /* also for a rank that neither reads nor makes the file, but writes it later */
    f->totals = qn__alloc(1 + words_before(k, k->source.parts), sizeof *f->totals, err);
    f->next = qn__alloc(1 + words_before(k, k->source.parts), sizeof *f->next, err);
    return f->totals && f->next ? QN_OK : QN_MEMORY;
}

void qn__state_file_close(qn_kernel *k) {
    qn__state_file *f = k->checkpoint.file;
    k->checkpoint.file = NULL;
    if (!f)
        return;
    if (f->file >= 0)
        close(f->file);
    qn__free(f->totals);
    qn__free(f->next);
    qn__free(f);
}

void qn__state_totals(const qn_kernel *k, qn__user_total *total) {
    const qn__state_file *f = k->checkpoint.file;
    for (uint32_t i = 0; i < k->source.parts && k->checkpoint.items > 0; i++)
        if (is_total(k, i))
            qn__user_total_unpack(&total[i], &k->source.part[i], f->totals + words_before(k, i));
}

static void take_totals(const qn_kernel *k, const qn__state_file *f, qn__user_total *total) {
    memset(f->next, 0, f->at.totals_bytes);
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (is_total(k, i))
            qn__user_total_pack(&total[i], &k->source.part[i], f->next + words_before(k, i));
}

/* The state that was read or written is the one to go on from. */
static void take_state(qn_kernel *k, qn__state_file *f, uint64_t items) {
    int64_t *const next = f->totals;
    f->totals = f->next;
    f->next = next;
    k->checkpoint.items = items;
}

/* ------------------------------------------------------------------ reading */

/* 1: the file begins with just these lines. */
static qn_status has_head(const qn_kernel *k, const layout *at, const qn__state_reader *r, int *is,
                          qn_error *err) {
    qn__text head = {0};
    const qn_status status = write_head(k, at, &head, err);
    *is = status == QN_OK && r->size >= head.size && memcmp(r->bytes, head.data, head.size) == 0;
    qn__text_release(&head);
    return status;
}

static qn_status tell_other(const qn__state_reader *r, const char *what, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "the checkpoint is of a run with %s", what);
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_MISMATCH,
                      "give `kernel.iterations` as there, or another file for `kernel.checkpoint`");
}

/* Formats before this one had one kind of file for items and one for iterations. */
static qn_status check_format(qn__state_reader *r, qn_error *err) {
    const char *format = qn__state_take(r, FIRST_LINE);
    if (!format && qn__state_take(r, "quern kernel items"))
        format = "1";
    if (!format)
        return qn__state_damaged(r, "its header does not fit its digest", err);
    if (strcmp(format, FORMAT) == 0)
        return QN_OK;
    qn__fail(err, QN_MISMATCH,
             "the checkpoint is of another version of Quern: it has format %.20s, not " FORMAT,
             format);
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_MISMATCH,
                      "go on with the version that wrote it, or remove it and begin again");
}

static qn_status check_head(const qn_kernel *k, const layout *at, qn__state_reader *r,
                            qn_error *err) {
    int is_ours = 0;
    qn_status status = check_format(r, err);
    if (status != QN_OK)
        return status;
    if (!qn__state_is_whole(r))
        return qn__state_damaged(r, "its header does not fit its digest", err);
    qn__state_take(r, FIRST_LINE);
    const char *run = qn__state_take(r, "run");
    if (run && strcmp(run, k->iterations == 1 ? "iterations" : "items") == 0)
        return tell_other(r, k->iterations == 1 ? "several iterations" : "one iteration", err);
    status = qn__state_identity_check(k, r, err);
    if (status == QN_OK)
        status = has_head(k, at, r, &is_ours, err);
    return status != QN_OK || is_ours ? status
                                      : qn__state_damaged(r, "its parts are at other places", err);
}

static qn_status read_numbers(qn_kernel *k, qn__state_file *f, int file, const state *s,
                              const qn__state_reader *r, qn_error *err) {
    char hex[65];
    qn__user_array a;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        if (!stored(k, i, s->done, NULL, &a))
            continue;
        const size_t size = qn__user_array_bytes(&a);
        const ssize_t got = read_at(file, a.data, size, f->at.array[i]);
        if (got < 0)
            return qn__fail_errno(err, "read", r->path);
        if ((size_t)got != size)
            return qn__state_damaged(r, "it is cut off", err);
        qn__user_array_from_little(&a);
    }
    begin_hash(f);
    hash_numbers(k, f, s->done, NULL);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        if (!stored(k, i, s->done, NULL, &a))
            continue;
        hash_text(&f->hash[i], hex);
        if (strcmp(hex, s->digest[i]) != 0)
            return qn__state_damaged(r, "its numbers do not fit their digest", err);
    }
    return QN_OK;
}

/* Series have so many numbers as the run has iterations. */
static qn_status check_done(const qn_kernel *k, uint64_t done, const qn__state_reader *r,
                            qn_error *err) {
    if (k->iterations == 1 || done < k->iterations)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the checkpoint has %" PRIu64 " iterations, and the run only %" PRIu64,
             done, k->iterations);
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_USAGE,
                      "give more `kernel.iterations`, or begin again without `kernel.resume`");
}

static qn_status read_all(qn_kernel *k, int file, qn__state_reader *r, state *best, qn_error *err) {
    qn__state_file *f = k->checkpoint.file;
    struct stat there;
    const ssize_t size = read_at(file, r->bytes, sizeof r->bytes, 0);
    if (size < 0 || fstat(file, &there) != 0)
        return qn__fail_errno(err, "read", r->path);
    r->size = (size_t)size;
    lay_out(k, 0, &f->at);
    qn_status status = check_head(k, &f->at, r, err);
    if (status == QN_OK)
        status = find_state(k, f, file, r, best, &k->checkpoint.is_partial, err);
    if (status == QN_OK && !best->is_there)
        return qn__state_damaged(r, "none of its two states fits its digest", err);
    if (status == QN_OK)
        status = check_done(k, best->done, r, err);
    if (status != QN_OK)
        return status;
    lay_out(k, best->done, &f->at);
    if ((uint64_t)there.st_size > f->at.end)
        return qn__state_damaged(r, "bytes follow its end", err);
    status = read_numbers(k, f, file, best, r, err);
    if (status != QN_OK)
        return status;
    if (k->iterations == 1)
        take_state(k, f, best->done);
    else
        k->checkpoint.from = best->done;
    k->checkpoint.is_resumed = 1;
    return QN_OK;
}

qn_status qn__state_file_read(qn_kernel *k, int file, qn_error *err) {
    qn__state_reader *r = qn__alloc(1, sizeof *r, err);
    state *best = qn__alloc(1, sizeof *best, err);
    qn_status status = r && best ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        r->path = k->checkpoint.path;
        status = read_all(k, file, r, best, err);
    }
    qn__free(best);
    qn__free(r);
    return status;
}

/* ------------------------------------------------------------------ a new file */

/* The arrays of a new file, each at its place. */
static qn_status add_numbers(const qn_kernel *k, const qn__state_file *f, uint64_t done,
                             void *const *carried, qn__writer *writer, qn_error *err) {
    static const uint8_t zeros[PAGE];
    uint64_t at = f->at.lines_bytes + STATES * f->at.state_bytes;
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        qn__user_array a;
        if (!stored(k, i, done, carried, &a))
            continue;
        status = qn__writer_add(writer, zeros, (size_t)(f->at.array[i] - at), err);
        if (status == QN_OK)
            status = qn__user_array_write_numbers(&a, writer, err);
        at = f->at.array[i] + qn__user_array_bytes(&a);
    }
    return status;
}

/* The head and one state. Of items a new file has none. */
static qn_status fill_new(const qn_kernel *k, const qn__state_file *f, uint64_t done,
                          void *const *carried, qn__writer *writer, qn_error *err) {
    qn__text head = {0};
    const size_t size = f->at.lines_bytes + STATES * f->at.state_bytes;
    uint8_t *bytes = qn__alloc(1, size, err);
    qn_status status = bytes ? write_head(k, &f->at, &head, err) : QN_MEMORY;
    if (status == QN_OK) {
        memcpy(bytes, head.data, head.size);
        status = make_state(k, f, done, bytes + f->at.lines_bytes, err);
    }
    qn__text_release(&head);
    if (status == QN_OK)
        status = qn__writer_add(writer, bytes, size, err);
    qn__free(bytes);
    return status == QN_OK && k->iterations > 1 ? add_numbers(k, f, done, carried, writer, err)
                                                : status;
}

static qn_status make_file(qn_kernel *k, qn__state_file *f, uint64_t done, void *const *carried,
                           qn_error *err) {
    qn__writer *writer;
    qn_status status = qn__writer_create(k->checkpoint.path, &writer, err);
    if (status != QN_OK)
        return status;
    qn__writer_ask(writer, qn__lock_may, &k->checkpoint.lock);
    memset(f->next, 0, f->at.totals_bytes);
    begin_hash(f);
    hash_numbers(k, f, done, carried);
    status = fill_new(k, f, done, carried, writer, err);
    status = qn__writer_finish(writer, NULL, status, err);
    k->checkpoint.is_own = 1; /* it may be in place even if the folder could not be synced */
    f->items = 0;
    f->place = 1;
    return status;
}

qn_status qn__state_iteration_write(qn_kernel *k, uint64_t iteration,
                                    void *const carried[QN__USER_PARTS], qn_error *err) {
    qn__state_file *f = k->checkpoint.file;
    lay_out(k, iteration, &f->at);
    return make_file(k, f, iteration, carried, err);
}

static qn_status open_to_write(qn_kernel *k, qn__state_file *f, qn_error *err) {
    f->file = open(k->checkpoint.path, O_RDWR | O_CLOEXEC);
    return f->file >= 0 ? QN_OK : qn__fail_errno(err, "open", k->checkpoint.path);
}

/* ------------------------------------------------------------------ items, in place */

/* 1: the open file is still the one of that name. */
static int is_in_place(const qn_kernel *k, const qn__state_file *f) {
    struct stat own, there;
    return f->file >= 0 && fstat(f->file, &own) == 0 && stat(k->checkpoint.path, &there) == 0 &&
           own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

/* Opens the file that this run or another rank of it has made. *is: it has a state of this run. */
static qn_status open_old(qn_kernel *k, qn__state_file *f, int *is, qn_error *err) {
    qn__state_reader *r = qn__alloc(1, sizeof *r, err);
    state *best = qn__alloc(1, sizeof *best, err);
    qn_status status = r && best ? open_to_write(k, f, err) : QN_MEMORY;
    int partial;
    *is = 0;
    if (status == QN_OK) {
        r->path = k->checkpoint.path;
        const ssize_t size = read_at(f->file, r->bytes, sizeof r->bytes, 0);
        r->size = size > 0 ? (size_t)size : 0;
        status = has_head(k, &f->at, r, is, err);
    }
    if (status == QN_OK && *is) {
        status = find_state(k, f, f->file, r, best, &partial, err);
        *is = best->is_there;
    }
    qn__free(best);
    qn__free(r);
    return status;
}

/* The file is open, and has the first f->items items. */
static qn_status attach(qn_kernel *k, qn__state_file *f, qn_error *err) {
    int is_ours = 0;
    qn_status status = QN_OK;
    if (is_in_place(k, f))
        return QN_OK;
    if (f->file >= 0)
        close(f->file);
    f->file = -1;
    lay_out(k, 0, &f->at);
    if (access(k->checkpoint.path, F_OK) == 0)
        status = open_old(k, f, &is_ours, err);
    if (status != QN_OK || is_ours)
        return status;
    if (f->file >= 0)
        close(f->file);
    f->file = -1;
    status = make_file(k, f, 0, NULL, err);
    return status == QN_OK ? open_to_write(k, f, err) : status;
}

/* The file is written in its place: a process that was stopped and has lost the lock must not go on
 * with it. */
static qn_status check_held(qn_kernel *k, qn_error *err) {
    if (qn__lock_held(&k->checkpoint.lock))
        return QN_OK;
    return qn__fail(err, QN_BUSY, "%s now belongs to another process", k->checkpoint.path);
}

static qn_status write_items(qn_kernel *k, const qn__state_file *f, uint64_t items, qn_error *err) {
    uint8_t block[BLOCK];
    for (uint32_t i = 0; i < k->source.parts; i++) {
        qn__user_array a;
        if (!stored(k, i, items, NULL, &a))
            continue;
        const size_t end = qn__user_array_bytes(&a);
        size_t at = (size_t)f->items * qn__user_part_each(&k->source.part[i]);
        for (size_t some; at < end; at += some) {
            some = end - at < BLOCK ? end - at : BLOCK;
            qn_status status = check_held(k, err);
            if (status == QN_OK)
                status = write_at(f->file, k->checkpoint.path,
                                  qn__user_array_little(&a, at, some, block), some,
                                  f->at.array[i] + at, err);
            if (status != QN_OK)
                return status;
        }
    }
    return sync_file(k, f, err);
}

static qn_status write_state(qn_kernel *k, qn__state_file *f, uint64_t items, qn_error *err) {
    uint8_t *bytes = qn__alloc(1, f->at.state_bytes, err);
    qn_status status = bytes ? make_state(k, f, items, bytes, err) : QN_MEMORY;
    if (status == QN_OK)
        status = qn__lock_check(&k->checkpoint.lock, k->checkpoint.path, err);
    if (status == QN_OK)
        status = write_at(f->file, k->checkpoint.path, bytes, f->at.state_bytes,
                          f->at.state[f->place], err);
    if (status == QN_OK)
        status = sync_file(k, f, err);
    qn__free(bytes);
    if (status != QN_OK)
        return status;
    f->items = items;
    f->place = 1 - f->place;
    return QN_OK;
}

qn_status qn__state_items_write(qn_kernel *k, uint64_t items, qn__user_total *total,
                                qn_error *err) {
    qn__state_file *f = k->checkpoint.file;
    qn_status status = attach(k, f, err);
    if (status != QN_OK || f->items >= items) /* another rank has written more */
        return status;
    status = write_items(k, f, items, err);
    if (status != QN_OK)
        return status;
    hash_numbers(k, f, items, NULL);
    take_totals(k, f, total);
    status = write_state(k, f, items, err);
    if (status == QN_OK)
        take_state(k, f, items);
    return status;
}
