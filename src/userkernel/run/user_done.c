/* The file has a head, two places for states, and a place for each output. A state says how many
 * items are done. They are taken in their order, so an output up to there never changes again. New
 * items are written after those of the last state and synced; then a state is written to the place
 * of the older one. So at any moment one of the two is whole, and so are its items: after kill -9,
 * a full disk or a loss of power. Each state has digests of itself and of the outputs. */
#include "userkernel/run/user_done.h"

#include "base/digest/sha256.h"
#include "base/memory.h"
#include "cluster/cluster.h"
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
enum { FEW_LINES = 640, OF_A_LINE = 80 };

/* Bytes from the beginning of the file. */
typedef struct layout {
    uint64_t state[STATES], output[QN__USER_PARTS], end;
    size_t lines_bytes; /* of those that begin the file, or a state */
    size_t state_bytes, totals_bytes;
} layout;

struct qn__user_done {
    layout at;
    int file;       /* to write; -1: it is not open */
    uint64_t items; /* of the better state that the file has */
    int place;      /* of the other one */
    uint64_t hashed;
    qn__sha256 hash[QN__USER_PARTS]; /* of so many items of each output */
    /* All parts, one after the other: of kernel->checkpoint.items, and of the state that is read
     * or written. */
    int64_t *totals, *next;
};

int qn__user_done_used(const qn_kernel *k) { return k->checkpoint.path && k->iterations == 1; }

/* ------------------------------------------------------------------ the layout */

static uint64_t pages(uint64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

static int is_output(const qn_kernel *k, uint32_t part) {
    return k->source.part[part].use == QN__USER_OUTPUT;
}

static int is_total(const qn_kernel *k, uint32_t part) {
    return qn__user_use_is_result(k->source.part[part].use) && !is_output(k, part);
}

/* Where the words of a part's total begin; those of the part after the last one: all. */
static uint64_t words_before(const qn_kernel *k, uint32_t part) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < part; i++)
        words += is_total(k, i) ? qn__user_total_all_words(&k->source.part[i]) : 0;
    return words;
}

static uint64_t bytes_of(const qn_kernel *k, uint32_t part, uint64_t items) {
    return items * qn__user_part_each(&k->source.part[part]);
}

static void lay_out(const qn_kernel *k, layout *at) {
    at->totals_bytes = (size_t)words_before(k, k->source.parts) * sizeof(int64_t);
    at->lines_bytes = (size_t)pages(FEW_LINES + k->source.parts * (QN__USER_NAME_MAX + OF_A_LINE));
    at->state_bytes = at->lines_bytes + (size_t)pages(at->totals_bytes);
    at->end = at->lines_bytes;
    for (int s = 0; s < STATES; s++) {
        at->state[s] = at->end;
        at->end += at->state_bytes;
    }
    for (uint32_t i = 0; i < k->source.parts; i++) {
        at->output[i] = at->end;
        if (is_output(k, i))
            at->end += pages(bytes_of(k, i, (uint64_t)qn__user_job_items(&k->job)));
    }
}

/* The lines at the beginning of the file, which never change. */
static qn_status write_head(const qn_kernel *k, const layout *at, qn__text *out, qn_error *err) {
    qn__text_add(out, QN__DONE_LINE "\n");
    qn__state_identify(k, out);
    for (int s = 0; s < STATES; s++)
        qn__text_add(out, "state %" PRIu64 "\n", at->state[s]);
    qn__text_add(out, "totals %zu\n", at->lines_bytes);
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (is_output(k, i))
            qn__text_add(out, "output %s %" PRIu64 "\n", k->source.part[i].name, at->output[i]);
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
static qn_status sync_file(const qn_kernel *k, const qn__user_done *f, qn_error *err) {
    return fdatasync(f->file) == 0 ? QN_OK : qn__fail_errno(err, "write", k->checkpoint.path);
}

/* ------------------------------------------------------------------ digests */

/* Adds the items up to `items` of each output to its digest. */
static void hash_items(const qn_kernel *k, qn__user_done *f, uint64_t items) {
    uint8_t block[BLOCK];
    for (uint32_t i = 0; i < k->source.parts && items > f->hashed; i++) {
        if (!is_output(k, i))
            continue;
        const uint64_t end = bytes_of(k, i, items);
        for (uint64_t at = bytes_of(k, i, f->hashed), some; at < end; at += some) {
            some = end - at < BLOCK ? end - at : BLOCK;
            qn__sha256_add(
                &f->hash[i],
                qn__user_array_little(&k->part[i].array, (size_t)at, (size_t)some, block),
                (size_t)some);
        }
    }
    f->hashed = items > f->hashed ? items : f->hashed;
}

static void begin_hash(qn__user_done *f) {
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

static void totals_text(const qn__user_done *f, const void *little, char hex[65]) {
    uint8_t digest[32];
    qn__sha256_of(little, f->at.totals_bytes, digest);
    qn__hex(digest, hex);
}

/* ------------------------------------------------------------------ a state */

static qn__user_array totals_array(const qn__user_done *f) {
    return (qn__user_array){.type = QN__USER_I64,
                            .dimensions = 1,
                            .shape = {f->at.totals_bytes / sizeof(int64_t)},
                            .data = f->next};
}

/* The bytes of the state of so many items, which have been hashed. */
static qn_status make_state(const qn_kernel *k, const qn__user_done *f, uint64_t items,
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
    qn__text_add(&lines, "items %" PRIu64 "\n", items);
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (is_output(k, i)) {
            hash_text(&f->hash[i], hex);
            qn__text_add(&lines, "output %s %s\n", k->source.part[i].name, hex);
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
    uint64_t items;
    char digest[QN__USER_PARTS][65];
    int is_there; /* it is whole */
    int is_empty; /* there never was one */
} state;

static int parse_state(const qn_kernel *k, qn__state_reader *r, state *out, char totals[65]) {
    const char *text = qn__state_take(r, "items");
    if (!text || !qn__parse_u64(text, strlen(text), &out->items) || out->items % 8 != 0 ||
        out->items >= (uint64_t)qn__user_job_items(&k->job))
        return 0;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const size_t size = strlen(k->source.part[i].name);
        if (!is_output(k, i))
            continue;
        text = qn__state_take(r, "output");
        if (!text || strncmp(text, k->source.part[i].name, size) != 0 || text[size] != ' ' ||
            strlen(text + size + 1) != 64)
            return 0;
        memcpy(out->digest[i], text + size + 1, 65);
    }
    text = qn__state_take(r, "totals");
    if (!text || strlen(text) != 64)
        return 0;
    memcpy(totals, text, 65);
    return 1;
}

/* Reads the state at a place into `out`, and its totals into `little`. */
static qn_status read_state(const qn_kernel *k, const qn__user_done *f, int file, int place,
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
static qn_status find_state(const qn_kernel *k, qn__user_done *f, int file, qn__state_reader *r,
                            state *best, int *partial, qn_error *err) {
    void *little = qn__alloc(1, f->at.totals_bytes, err);
    state *read = qn__alloc(1, sizeof *read, err);
    qn_status status = little && read ? QN_OK : QN_MEMORY;
    *best = (state){.is_there = 0};
    *partial = 0;
    for (int s = 0; s < STATES && status == QN_OK; s++) {
        status = read_state(k, f, file, s, r, read, little, err);
        *partial |= status == QN_OK && !read->is_there && !read->is_empty;
        if (status != QN_OK || !read->is_there || (best->is_there && best->items > read->items))
            continue;
        *best = *read;
        f->place = 1 - s;
        memcpy(f->next, little, f->at.totals_bytes);
    }
    qn__user_array totals = totals_array(f);
    qn__user_array_from_little(&totals);
    f->items = best->items;
    qn__free(read);
    qn__free(little);
    return status;
}

/* ------------------------------------------------------------------ the state of a run */

qn_status qn__user_done_open(qn_kernel *k, qn_error *err) {
    qn__user_done *f = k->checkpoint.file = qn__alloc(1, sizeof *f, err);
    if (!f)
        return QN_MEMORY;
    f->file = -1;
    begin_hash(f); /* also for a rank that neither reads nor makes the file, but writes it later */
    f->totals = qn__alloc(1 + words_before(k, k->source.parts), sizeof *f->totals, err);
    f->next = qn__alloc(1 + words_before(k, k->source.parts), sizeof *f->next, err);
    return f->totals && f->next ? QN_OK : QN_MEMORY;
}

void qn__user_done_end(qn_kernel *k) {
    qn__user_done *f = k->checkpoint.file;
    k->checkpoint.file = NULL;
    if (!f)
        return;
    if (f->file >= 0)
        close(f->file);
    qn__free(f->totals);
    qn__free(f->next);
    qn__free(f);
}

void qn__user_done_begin(const qn_kernel *k, qn__user_total *total) {
    const qn__user_done *f = k->checkpoint.file;
    for (uint32_t i = 0; i < k->source.parts && k->checkpoint.items > 0; i++)
        if (is_total(k, i))
            qn__user_total_unpack(&total[i], &k->source.part[i], f->totals + words_before(k, i));
}

static void take_totals(const qn_kernel *k, const qn__user_done *f, qn__user_total *total) {
    memset(f->next, 0, f->at.totals_bytes);
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (is_total(k, i))
            qn__user_total_pack(&total[i], &k->source.part[i], f->next + words_before(k, i));
}

/* The state that was read or written is the one to go on from. */
static void take_state(qn_kernel *k, qn__user_done *f, uint64_t items) {
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

static qn_status check_head(const qn_kernel *k, const layout *at, qn__state_reader *r,
                            qn_error *err) {
    int is_ours;
    if (!qn__state_is_whole(r))
        return qn__state_damaged(r, "its header does not fit its digest", err);
    if (!qn__state_take(r, QN__DONE_LINE))
        return qn__state_damaged(r, "it is not of this version of Quern", err);
    qn_status status = qn__state_identity_check(k, r, err);
    if (status == QN_OK)
        status = has_head(k, at, r, &is_ours, err);
    if (status == QN_OK && !is_ours)
        return qn__state_damaged(r, "its parts are at other places", err);
    return status;
}

static qn_status read_items(qn_kernel *k, qn__user_done *f, int file, const state *s,
                            const qn__state_reader *r, qn_error *err) {
    char hex[65];
    for (uint32_t i = 0; i < k->source.parts; i++) {
        if (!is_output(k, i))
            continue;
        qn__user_array a = {.type = k->source.part[i].type,
                            .dimensions = 1,
                            .shape = {s->items * qn__user_part_numbers(&k->source.part[i])},
                            .data = k->part[i].array.data};
        const size_t size = qn__user_array_bytes(&a);
        const ssize_t got = read_at(file, a.data, size, f->at.output[i]);
        if (got < 0)
            return qn__fail_errno(err, "read", r->path);
        if ((size_t)got != size)
            return qn__state_damaged(r, "it is cut off", err);
        qn__user_array_from_little(&a);
    }
    begin_hash(f);
    hash_items(k, f, s->items);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        if (is_output(k, i))
            hash_text(&f->hash[i], hex);
        if (is_output(k, i) && strcmp(hex, s->digest[i]) != 0)
            return qn__state_damaged(r, "its numbers do not fit their digest", err);
    }
    return QN_OK;
}

static qn_status read_all(qn_kernel *k, int file, qn__state_reader *r, state *best, qn_error *err) {
    qn__user_done *f = k->checkpoint.file;
    struct stat there;
    const ssize_t size = read_at(file, r->bytes, sizeof r->bytes, 0);
    if (size < 0 || fstat(file, &there) != 0)
        return qn__fail_errno(err, "read", r->path);
    r->size = (size_t)size;
    lay_out(k, &f->at);
    qn_status status = check_head(k, &f->at, r, err);
    if (status == QN_OK && (uint64_t)there.st_size > f->at.end)
        return qn__state_damaged(r, "bytes stand after its end", err);
    if (status == QN_OK)
        status = find_state(k, f, file, r, best, &k->checkpoint.is_partial, err);
    if (status == QN_OK && !best->is_there)
        return qn__state_damaged(r, "none of its two states fits its digest", err);
    if (status == QN_OK)
        status = read_items(k, f, file, best, r, err);
    if (status == QN_OK)
        take_state(k, f, best->items);
    k->checkpoint.is_resumed = status == QN_OK;
    return status;
}

qn_status qn__user_done_read(qn_kernel *k, int file, qn_error *err) {
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

/* A file without items: the head, a state of zeros, and nothing. */
static qn_status fill_new(const qn_kernel *k, qn__user_done *f, qn__writer *writer, uint8_t *bytes,
                          qn_error *err) {
    qn__text head = {0};
    qn_status status = write_head(k, &f->at, &head, err);
    if (status == QN_OK) {
        memcpy(bytes, head.data, head.size);
        status = make_state(k, f, 0, bytes + f->at.lines_bytes, err);
    }
    qn__text_release(&head);
    return status == QN_OK
               ? qn__writer_add(writer, bytes, f->at.lines_bytes + STATES * f->at.state_bytes, err)
               : status;
}

static qn_status open_to_write(qn_kernel *k, qn__user_done *f, qn_error *err) {
    f->file = open(k->checkpoint.path, O_RDWR | O_CLOEXEC);
    return f->file >= 0 ? QN_OK : qn__fail_errno(err, "open", k->checkpoint.path);
}

static qn_status make_file(qn_kernel *k, qn__user_done *f, qn_error *err) {
    qn__writer *writer;
    uint8_t *bytes = qn__alloc(1, f->at.lines_bytes + STATES * f->at.state_bytes, err);
    qn_status status = bytes ? qn__writer_create(k->checkpoint.path, &writer, err) : QN_MEMORY;
    if (status == QN_OK) {
        qn__writer_ask(writer, qn__lock_may, &k->checkpoint.lock);
        memset(f->next, 0, f->at.totals_bytes);
        begin_hash(f);
        status = fill_new(k, f, writer, bytes, err);
        if (status == QN_OK)
            status = qn__writer_commit(writer, err);
        else
            qn__writer_drop(writer);
        k->checkpoint.is_own = 1; /* it may be in place even if the folder could not be synced */
    }
    qn__free(bytes);
    f->items = 0;
    f->place = 1;
    return status == QN_OK ? open_to_write(k, f, err) : status;
}

/* ------------------------------------------------------------------ writing */

/* 1: the open file is still the one of that name. */
static int is_in_place(const qn_kernel *k, const qn__user_done *f) {
    struct stat own, there;
    return f->file >= 0 && fstat(f->file, &own) == 0 && stat(k->checkpoint.path, &there) == 0 &&
           own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

/* Opens the file that this run or another rank of it has made. *is: it has a state of this run. */
static qn_status open_old(qn_kernel *k, qn__user_done *f, int *is, qn_error *err) {
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
static qn_status attach(qn_kernel *k, qn__user_done *f, qn_error *err) {
    int is_ours = 0;
    qn_status status = QN_OK;
    if (is_in_place(k, f))
        return QN_OK;
    if (f->file >= 0)
        close(f->file);
    f->file = -1;
    lay_out(k, &f->at);
    if (access(k->checkpoint.path, F_OK) == 0)
        status = open_old(k, f, &is_ours, err);
    if (status != QN_OK || is_ours)
        return status;
    if (f->file >= 0)
        close(f->file);
    f->file = -1;
    return make_file(k, f, err);
}

/* The file is written in its place: a process that was stopped and has lost the lock must not go on
 * with it. */
static qn_status check_held(qn_kernel *k, qn_error *err) {
    if (qn__lock_held(&k->checkpoint.lock))
        return QN_OK;
    return qn__fail(err, QN_BUSY, "%s now belongs to another process", k->checkpoint.path);
}

static qn_status write_items(qn_kernel *k, const qn__user_done *f, uint64_t items, qn_error *err) {
    uint8_t block[BLOCK];
    for (uint32_t i = 0; i < k->source.parts; i++) {
        if (!is_output(k, i))
            continue;
        const uint64_t end = bytes_of(k, i, items);
        for (uint64_t at = bytes_of(k, i, f->items), some; at < end; at += some) {
            some = end - at < BLOCK ? end - at : BLOCK;
            qn_status status = check_held(k, err);
            if (status != QN_OK)
                return status;
            status =
                write_at(f->file, k->checkpoint.path,
                         qn__user_array_little(&k->part[i].array, (size_t)at, (size_t)some, block),
                         (size_t)some, f->at.output[i] + at, err);
            if (status != QN_OK)
                return status;
        }
    }
    return sync_file(k, f, err);
}

static qn_status write_state(qn_kernel *k, qn__user_done *f, uint64_t items, qn_error *err) {
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

qn_status qn__user_done_write(qn_kernel *k, uint64_t items, qn__user_total *total, qn_error *err) {
    qn__user_done *f = k->checkpoint.file;
    qn_status status = attach(k, f, err);
    if (status != QN_OK || f->items >= items) /* another rank has written more */
        return status;
    status = write_items(k, f, items, err);
    if (status != QN_OK)
        return status;
    hash_items(k, f, items);
    take_totals(k, f, total);
    status = write_state(k, f, items, err);
    if (status == QN_OK)
        take_state(k, f, items);
    return status;
}
