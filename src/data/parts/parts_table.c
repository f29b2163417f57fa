/* The parts of all ranks as one table on each. */
#include "base/argument.h"

#include "base/memory.h"
#include "base/system/available.h"
#include "base/system/fault_space.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "cluster/items.h"
#include "data/ahead/page_ahead.h"
#include "data/open/data_snapshot.h"
#include "data/parts/part_rows.h"
#include "data/parts/parts_copy.h"
#include "data/parts/parts_heads.h"
#include "data/parts/parts_mend.h"
#include "data/parts/parts_read.h"
#include "data/parts/parts_tokens.h"
#include "data/table/remote_rows.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { VALUES, SEVERAL, LABELS, TARGETS, WEIGHTS, WINDOWS, ARRAYS = QN__PART_ARRAYS };

/* Requests of one fill that are open at a time; bytes of a digest as text, with what is around. */
enum { OPEN = 32, DIGEST = 72 };

typedef struct whole {
    qn_parts *parts;
    char (*digest)[DIGEST]; /* of each part */
    qn__part_array array[ARRAYS];
    uint64_t begin[ARRAYS]; /* in the space */
    qn__items *items;
    qn__fault_space *space;
    qn__part_rows rows;
    qn__remote_rows remote;
    int partial;
    uint64_t number; /* of the table among those of the cluster */
    uint64_t bytes;  /* of the space */
    uint64_t kept;   /* bytes of values, at most */
    int late_copies; /* 1: this rank joins, and then makes its copies */
    int copying;     /* 1: the thread makes copies that this rank has to have */
    pthread_t thread;
    atomic_int random;           /* 1: the system knows that own rows are read in a random order */
    void *snapshot;              /* of `like`, for its schema and notes */
    _Atomic(qn_data *) *adopted; /* of each rank: its part, where this rank read it again */
} whole;

/* ------------------------------------------------------------ what is here */

static const uint8_t *array_of(const qn_data *part, uint32_t kind) {
    switch (kind) {
    case VALUES:
        return part->values;
    case SEVERAL:
        return part->several ? part->several->target : NULL;
    case LABELS:
        return (const uint8_t *)part->labels;
    case TARGETS:
        return (const uint8_t *)part->targets;
    case WEIGHTS:
        return (const uint8_t *)part->weights;
    case WINDOWS:
        return (const uint8_t *)part->window;
    }
    return NULL;
}

static const qn_data *part_here(whole *w, uint32_t part) {
    return part == w->parts->rank ? w->parts->own : atomic_load(&w->adopted[part]);
}

/* Windows tell which text of a part they are of; in the whole others are before it. */
static void number_windows(qn__text_window *window, uint64_t count, uint64_t before) {
    for (uint64_t i = 0; i < count; ++i)
        window[i].text += before;
}

static int copy_piece(void *user, uint32_t part, const qn__item_piece *piece, void *to) {
    whole *w = user;
    const qn_data *here = part_here(w, part);
    const int known = here && piece->array < ARRAYS && w->array[piece->array].stride;
    const uint64_t bytes = known ? qn__part_array_bytes(w->array[piece->array], here->items) : 0;
    if (!known || piece->offset > bytes || piece->bytes > bytes - piece->offset)
        return 0;
    memcpy(to, array_of(here, piece->array) + piece->offset, piece->bytes);
    if (piece->array == WINDOWS)
        number_windows(to, piece->bytes / sizeof(qn__text_window), w->parts->text[part]);
    return 1;
}

/* Reads the part of a rank that is gone. */
static qn_status adopt(void *user, uint32_t part, qn_error *err) {
    whole *w = user;
    qn_data *read = NULL;
    if (atomic_load(&w->adopted[part]))
        return QN_OK;
    const qn_status status = qn__parts_read(w->parts, part, &read, err);
    if (status != QN_OK)
        return status;
    char digest[65];
    qn__data_digest_now(read, digest);
    if (strcmp(digest, w->digest[part]) == 0) {
        atomic_store(&w->adopted[part], read);
        return QN_OK;
    }
    qn_data_close(read);
    qn__fail(err, QN_MISMATCH, "the files are not those that the rank had");
    qn__at(err, "%s", w->parts->name[part]);
    return QN_MISMATCH;
}

static const char *name_of(void *user, uint32_t part) {
    const whole *w = user;
    return w->parts->name[part];
}

/* ------------------------------------------------------------ filling */

/* Open requests of a fill, and where their answers go. */
typedef struct filling {
    whole *whole;
    qn__item_request *request[OPEN];
    uint8_t *to[OPEN];
    uint32_t bytes[OPEN], count;
    qn_status status;
    qn_error *err;
} filling;

static void finish(filling *f) {
    for (uint32_t i = 0; i < f->count; ++i) {
        const uint8_t *bytes;
        if (f->status == QN_OK) {
            f->status = qn__items_wait(f->whole->items, f->request[i], &bytes, f->err);
            if (f->status == QN_OK)
                memcpy(f->to[i], bytes, f->bytes[i]);
        }
        qn__items_drop(f->whole->items, f->request[i]);
    }
    f->count = 0;
}

static void fetch(filling *f, uint32_t part, const qn__item_piece *piece, uint8_t *to) {
    if (part == f->whole->parts->rank) {
        (void)copy_piece(f->whole, part, piece, to);
        return;
    }
    if (f->count == OPEN)
        finish(f);
    qn__item_request *request = qn__items_ask(f->whole->items, part, piece, 1, f->err);
    if (!request) {
        f->status = QN_MEMORY;
        return;
    }
    f->request[f->count] = request;
    f->to[f->count] = to;
    f->bytes[f->count++] = piece->bytes;
}

/* The bytes from..end-1 of an array of the whole, of each rank that has some. */
static void fetch_array(filling *f, uint32_t k, uint64_t from, uint64_t end, uint8_t *to) {
    const qn_parts *parts = f->whole->parts;
    const qn__part_array array = f->whole->array[k];
    for (uint32_t part = 0; part < parts->ranks && f->status == QN_OK; ++part) {
        const uint64_t rows = parts->first[part + 1] - parts->first[part];
        const int last = parts->first[part + 1] == qn__parts_items(parts);
        const uint64_t begin = parts->first[part] * array.stride;
        const uint64_t after =
            begin + (last ? qn__part_array_bytes(array, rows) : rows * array.stride);
        const uint64_t low = from > begin ? from : begin, high = end < after ? end : after;
        if (low < high)
            fetch(f, part, &(qn__item_piece){k, (uint32_t)(high - low), low - begin},
                  to + (low - from));
    }
}

/* Rows that could not be got: `status`, with what to do. */
static qn_status advise(const qn_parts *parts, qn_status status, qn_error *err) {
    if (status == QN_IO)
        qn__remedy(
            err, QN_IO,
            parts->given
                ? "start again, or give files as parts that every rank can read"
                : "put the files of all parts where every rank can read them, or start again");
    return status;
}

/* Rows that could not be got, for whatever reason, end the job of all ranks at its next collective
 * call. Such a call lies before each model and checkpoint that is written. */
static qn_status end_job(const whole *w, qn_status status, qn_error *err) {
    if (status == QN_OK)
        return QN_OK;
    advise(w->parts, status, err);
    qn_error copy = *err;
    qn__cluster_fail(w->parts->cluster, &copy);
    return status;
}

static qn_status fill(void *user, uint64_t first, uint64_t count, uint8_t *to, qn_error *err) {
    whole *w = user;
    const uint64_t rows = qn__parts_items(w->parts);
    filling f = {.whole = w, .err = err};
    const uint64_t after = w->bytes > first ? w->bytes - first : 0; /* a block may end later */
    int asked;
    memset(to, 0, count);
    const qn_status status = qn__cluster_ask_run(w->parts->cluster, w->number, first,
                                                 count < after ? count : after, to, &asked, err);
    if (asked)
        return end_job(w, status, err);
    for (uint32_t k = 0; k < ARRAYS && f.status == QN_OK; ++k) {
        const uint64_t begin = w->begin[k], end = begin + qn__part_array_bytes(w->array[k], rows);
        const uint64_t low = first > begin ? first : begin;
        const uint64_t high = first + count < end ? first + count : end;
        if (low < high)
            fetch_array(&f, k, low - begin, high - begin, to + (low - first));
    }
    finish(&f);
    return end_job(w, f.status, err);
}

/* For a rank that joins: it reads the whole as this rank does. */
static int read_whole(void *user, uint64_t first, uint64_t count, void *to) {
    const whole *w = user;
    if (first > w->bytes || count > w->bytes - first)
        return 0;
    memcpy(to, qn__fault_space_memory(w->space) + first, count);
    return qn__fault_space_check(w->space, NULL) == QN_OK;
}

/* ------------------------------------------------------------ rows */

static qn__asked_rows *ask_rows(void *user, const uint64_t *row, uint8_t *const *to, uint32_t count,
                                qn_error *err) {
    whole *w = user;
    if (w->parts->own->in_file && !atomic_fetch_add(&w->random, 1))
        qn__page_order(w->parts->own, 1);
    return qn__part_rows_ask(&w->rows, row, to, count, err);
}

static qn_status take_rows(void *user, qn__asked_rows *asked, qn_error *err) {
    whole *w = user;
    return end_job(w, qn__part_rows_take(&w->rows, asked, err), err);
}

static void drop_rows(void *user, qn__asked_rows *asked) {
    whole *w = user;
    qn__part_rows_drop(&w->rows, asked);
}

static void forget_rows(void *user) { qn__fault_space_forget(((whole *)user)->space); }

/* Other ranks have got rows of this part: a change of its file ends the job of all. */
static qn_status check_rows(void *user, qn_error *err) {
    const whole *w = user;
    qn_error why = {.what = ""};
    qn_status status = qn__fault_space_check(w->space, err);
    if (status != QN_OK || !w->parts->own)
        return status;
    status = qn__data_check_file(w->parts->own, &why);
    if (status == QN_OK)
        return QN_OK;
    if (err)
        *err = why;
    qn__cluster_fail(w->parts->cluster, &why);
    return status;
}

/* ------------------------------------------------------------ the table */

static void release(void *memory) {
    whole *w = memory;
    if (w->copying)
        pthread_join(w->thread, NULL);
    qn__fault_space_destroy(w->space);
    qn__items_destroy(w->items);
    for (uint32_t i = 0; w->adopted && i < w->parts->ranks; ++i)
        qn_data_close(atomic_load(&w->adopted[i]));
    qn__free((void *)w->adopted);
    qn__free(w->digest);
    qn_parts_close(w->parts);
    qn__free(w->snapshot);
    qn__free(w);
}

/* A table with the same kinds of arrays: the first item of some part. */
static const qn_data *first_of(const qn_parts *parts) {
    return parts->heads->part[parts->heads->lead].data;
}

/* Places of the arrays, each in blocks of its own, so that those after the values are never
 * dropped. *droppable: bytes of the values, and of masks, which are as large. */
static uint64_t lay_out(whole *w, uint64_t *droppable) {
    const qn_data *like = first_of(w->parts), *own = w->parts->own;
    const uint64_t rows = qn__parts_items(w->parts), block = QN__FAULT_BLOCK;
    const int masks = like->several && like->several->height;
    const uint64_t stride[ARRAYS] = {qn__data_step(own),
                                     like->several ? like->several->each : 0,
                                     like->labels ? sizeof(int32_t) : 0,
                                     like->targets ? sizeof(float) : 0,
                                     like->weights ? sizeof(float) : 0,
                                     own->window ? sizeof *own->window : 0};
    uint64_t at = 0;
    for (uint32_t k = 0; k < ARRAYS; ++k) {
        w->array[k] = (qn__part_array){stride[k], k ? 0 : qn__data_stride(own) - stride[k]};
        w->begin[k] = at;
        const uint64_t bytes = qn__part_array_bytes(w->array[k], rows) + QN__DATA_MARGIN;
        if (stride[k])
            at = (at + bytes + block - 1) / block * block;
        *droppable = k == VALUES || (masks && k == SEVERAL) ? at : *droppable;
    }
    return at;
}

/* All that a table has beside its items. */
static qn_status describe(whole *w, qn_data **out, qn_error *err) {
    const qn_data *first = first_of(w->parts);
    qn_data like = *w->parts->own;
    void *values = qn__alloc(1, qn__data_stride(&like), err); /* of the item: nobody reads them */
    qn__text_window window = {0, 0};
    int32_t label = 0;
    float number = 1;
    like.items = 1;
    like.names = NULL; /* those of the whole are with the ranks */
    like.values = values;
    like.values_digest = NULL;
    like.note = NULL;
    like.late = NULL;
    like.labels = first->labels ? &label : NULL;
    like.targets = first->targets ? &number : NULL;
    like.weights = first->weights ? &number : NULL;
    like.window = like.window ? &window : NULL;
    snprintf(like.digest, sizeof like.digest, "%s", w->parts->digest);
    const uint64_t bytes = qn__data_snapshot_bytes(&like);
    w->snapshot = values ? qn__alloc(1, bytes, err) : NULL;
    if (w->snapshot)
        qn__data_snapshot_write(&like, w->snapshot);
    qn__free(values);
    return w->snapshot ? qn__data_snapshot_map(w->snapshot, bytes, out, err) : QN_MEMORY;
}

static void point(whole *w, qn_data *data) {
    const uint8_t *memory = qn__fault_space_memory(w->space);
    data->items = qn__parts_items(w->parts);
    data->values = memory;
    /* Nobody writes to labels; the pointers are not const for those who allocate them. */
    if (data->several)
        data->several->target = (uint8_t *)(uintptr_t)(memory + w->begin[SEVERAL]);
    if (data->labels)
        data->labels = (int32_t *)(uintptr_t)(memory + w->begin[LABELS]);
    if (data->targets)
        data->targets = (float *)(uintptr_t)(memory + w->begin[TARGETS]);
    if (data->weights)
        data->weights = (float *)(uintptr_t)(memory + w->begin[WEIGHTS]);
    if (data->window)
        data->window = (qn__text_window *)(uintptr_t)(memory + w->begin[WINDOWS]);
    data->classes = w->parts->own->classes;
    data->memory = w;
    data->release = release;
    w->remote = (qn__remote_rows){.values = memory,
                                  .parts = w->parts,
                                  .partial = w->partial,
                                  .kept = w->kept,
                                  .user = w,
                                  .ask = ask_rows,
                                  .take = take_rows,
                                  .drop = drop_rows,
                                  .check = check_rows,
                                  .forget = forget_rows};
    data->remote = &w->remote;
}

/* Says how the files were understood. */
static qn_status note_parts(const qn_parts *parts, qn_data *data, qn_error *err) {
    char text[200];
    const unsigned long long files = parts->paths->first[parts->ranks];
    const unsigned long long items = qn__parts_items(parts);
    if (files == 0)
        snprintf(text, sizeof text, "the parts of %u ranks are in memory: %llu items in all",
                 parts->ranks, items);
    else if (parts->paths->shared)
        snprintf(text, sizeof text, "%llu images are the parts of %u ranks", items, parts->ranks);
    else
        snprintf(text, sizeof text, "%llu %s the part%s of %u rank%s: %llu items in all", files,
                 files == 1 ? "file is" : "files are", files == 1 ? "" : "s", parts->ranks,
                 parts->ranks == 1 ? "" : "s", items);
    return qn__data_add_note(data, text, err);
}

/* The part of which rank `rank` keeps copy k, from 1: where the rank of a part ends, the next ones
 * are asked for it (cluster/items.h). */
static uint32_t copied(const qn_parts *parts, uint32_t rank, uint32_t k) {
    return (rank + parts->ranks - k) % parts->ranks;
}

static uint32_t copies_of(const qn_parts *parts) {
    return parts->copies < parts->ranks ? parts->copies : parts->ranks;
}

/* Says what the copies cost. */
static qn_status note_copies(const whole *w, qn_data *data, qn_error *err) {
    const qn_parts *parts = w->parts;
    uint64_t most = 0;
    char text[160];
    for (uint32_t r = 0; r < parts->ranks; ++r) {
        uint64_t bytes = 0;
        for (uint32_t k = 1; k < copies_of(parts); ++k)
            bytes += qn__parts_copy_bytes(parts, copied(parts, r, k), w->array);
        most = bytes > most ? bytes : most;
    }
    if (most == 0)
        return QN_OK;
    snprintf(text, sizeof text, "%u ranks have each part: the copies on a rank take up to %.1f MiB",
             copies_of(parts), (double)most / (1 << 20));
    return qn__data_add_note(data, text, err);
}

static qn_status copy_parts(whole *w, qn_error *err) {
    const qn_parts *parts = w->parts;
    qn_status status = QN_OK;
    for (uint32_t k = 1; k < copies_of(parts) && status == QN_OK; ++k) {
        const uint32_t part = copied(parts, parts->rank, k);
        qn_data *copy = NULL;
        if (parts->first[part] == parts->first[part + 1])
            continue;
        status = advise(parts, qn__parts_copy(w->items, parts, part, w->array, &copy, err), err);
        if (status == QN_OK && copy->window)
            number_windows(copy->window, copy->items, 0 - parts->text[part]);
        if (status == QN_OK)
            atomic_store(&w->adopted[part], copy);
    }
    return status;
}

static void *copy_later(void *user) {
    whole *w = user;
    qn_error unwanted; /* without the copies the others still give their parts */
    qn__float_state_set();
    (void)copy_parts(w, &unwanted);
    return NULL;
}

/* A rank that has joined gets its copies while it computes. */
static void make_copies_later(void *user) {
    whole *w = user;
    if (w->late_copies)
        w->copying = qn__thread_start(&w->thread, NULL, copy_later, w) == 0;
    w->late_copies = 0;
}

/* A row is asked for in one request. */
static qn_status check_stride(const whole *w, qn_error *err) {
    if (!w->partial || qn__data_stride(w->parts->own) <= QN__ANSWER_MOST)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED,
             "items of more than 4 MiB cannot be in parts, unless all values are kept");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "let each rank keep all values, or read all of the data");
}

static qn_status open_whole(whole *w, uint64_t kept, qn_data **out, qn_error *err) {
    const qn_parts *parts = w->parts;
    const qn__item_holder holder = {.user = w,
                                    .reach = adopt,
                                    .copy = copy_piece,
                                    .name = name_of,
                                    .renewed = make_copies_later,
                                    .whole = read_whole};
    const qn__fault_filler filler = {w, fill};
    uint64_t droppable = 0;
    const uint64_t bytes = lay_out(w, &droppable);
    w->bytes = bytes;
    w->kept = kept;
    w->partial = kept < droppable;
    w->adopted = (_Atomic(qn_data *) *)qn__alloc(parts->ranks, sizeof *w->adopted, err);
    qn_status status = w->adopted ? check_stride(w, err) : QN_MEMORY;
    if (status == QN_OK)
        status = describe(w, out, err);
    if (status == QN_OK)
        status = note_parts(parts, *out, err);
    if (status == QN_OK && parts->own->note)
        status = qn__data_add_note(*out, parts->own->note, err);
    if (status == QN_OK)
        status = note_copies(w, *out, err);
    if (status == QN_OK)
        status = qn__items_create(parts->cluster, w->number, &holder, &w->items, err);
    if (status == QN_OK) /* its threads find all that they need */
        status = qn__fault_space_create(bytes, droppable, kept, &filler, &w->space, err);
    w->rows = (qn__part_rows){.items = w->items,
                              .local = parts->own,
                              .first = parts->first,
                              .ranks = parts->ranks,
                              .rank = parts->rank,
                              .step = w->array[VALUES].stride,
                              .stride = qn__data_stride(parts->own)};
    if (status == QN_OK)
        point(w, *out);
    return status;
}

/* What a table has that does not travel in parts; NULL: nothing. */
static const char *unsupported(const qn_data *own) {
    return own->listed || own->words ? "texts"
           : own->wide || own->kept  ? "numbers that float32 cannot hold"
                                     : NULL;
}

static qn_status check_kind(const qn_parts *parts, qn_error *err) {
    const char *what = unsupported(parts->own);
    if (!what)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "%s cannot be in parts yet", what);
    return qn__remedy(err, QN_UNSUPPORTED, "let each machine read all of the data");
}

/* Each rank tells the digest of its part. */
static qn_status gather_digests(whole *w, qn_error *err) {
    char own[DIGEST] = "";
    snprintf(own, sizeof own, "%s", qn_data_digest(w->parts->own));
    if (!w->digest)
        w->digest = qn__alloc(w->parts->ranks, sizeof *w->digest, err);
    qn_status status = qn__parts_agree(w->parts, w->digest ? QN_OK : QN_MEMORY, err);
    if (status != QN_OK)
        return status;
    status = qn__parts_gather_each(w->parts, own, sizeof own, w->digest, err);
    if (status != QN_OK || !w->digest)
        return status;
    const char *told = w->digest[w->parts->rank];
    return *told && strcmp(told, own) != 0 ? qn__parts_differ(w->parts, err) : QN_OK;
}

/* Takes over `parts`, as the caller does. After the last agreement all ranks answer requests. */
static qn_status make_table(qn_parts *parts, uint64_t kept, qn_data **out, qn_error *err) {
    const uint64_t number = qn__cluster_table(parts->cluster);
    whole *w = qn__alloc(1, sizeof *w, err);
    qn_status status = qn__parts_agree(parts, w ? check_kind(parts, err) : QN_MEMORY, err);
    if (!w) {
        qn_parts_close(parts);
        return QN_MEMORY;
    }
    w->parts = parts;
    w->number = number;
    while (status == QN_OK && (status = gather_digests(w, err)) != QN_OK)
        if (!qn__parts_mend(parts, &status, err))
            break;
    if (status == QN_OK)
        status = qn__parts_agree(
            parts,
            open_whole(w, kept ? kept : qn__available_memory() / 4 / qn__parts_beside(parts), out,
                       err),
            err);
    w->late_copies = parts->copies > 1 && qn__cluster_takes_history(parts->cluster);
    if (status == QN_OK && parts->copies > 1)
        status = qn__parts_agree(parts, w->late_copies ? QN_OK : copy_parts(w, err), err);
    if (status == QN_OK)
        return QN_OK;
    if (*out && (*out)->memory) { /* this rank had no failure */
        qn_data_close(*out);
    } else {
        qn_data_close(*out);
        release(w);
    }
    *out = NULL;
    return status;
}

qn_status qn_parts_copies(qn_parts *parts, uint32_t copies, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(parts, err);
    char text[16];
    qn_error why = {.what = ""};
    snprintf(text, sizeof text, "%u", copies);
    if (copies == 0)
        qn__fail(&why, QN_USAGE, "%s needs at least one rank for each part", __func__);
    const qn_agreement same = {sizeof same, "the number of copies", text,
                               "start all ranks with the same options"};
    const qn_status status = qn_cluster_agree(parts->cluster, &why, &same, 1, err);
    if (status == QN_OK)
        parts->copies = copies;
    return status;
}

qn_status qn_parts_table(qn_parts *parts, uint64_t kept, qn_data **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(parts, err);
    qn_error unheard;
    if (qn_cluster_ranks(parts->cluster) > 1)
        return make_table(parts, kept, out, err ? err : &unheard);
    *out = parts->own;
    parts->own = NULL;
    qn_parts_close(parts);
    return QN_OK;
}

const qn_parts *qn_data_parts(const qn_data *data) {
    const qn__remote_rows *remote = data ? qn__data_remote(data) : NULL;
    return remote ? remote->parts : NULL;
}

qn_status qn_parts_check(const qn_data *data, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    const qn__remote_rows *remote = qn__data_remote(data);
    qn_error unheard;
    return remote ? remote->check(remote->user, err ? err : &unheard) : QN_OK;
}
