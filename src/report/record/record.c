#include "report/record/record.h"

#include "kernels/runtime/elementary_functions.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/files/remote_write.h"
#include "base/memory.h"
#include "base/text/text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <quern/version.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEADER                                                                                     \
    "epoch,seconds,items_per_second,rate,train_loss,train_accuracy,valid_loss,valid_accuracy,"     \
    "test_loss,test_accuracy\n"
#define HEADER_REAL                                                                                \
    "epoch,seconds,items_per_second,rate,train_loss,train_mae,train_rmse,train_r2,valid_loss,"     \
    "valid_mae,valid_rmse,valid_r2,test_loss,test_mae,test_rmse,test_r2\n"

#define HEADER_NEXT                                                                                \
    "epoch,seconds,items_per_second,rate,train_loss,train_accuracy,train_perplexity,valid_loss,"   \
    "valid_accuracy,valid_perplexity,test_loss,test_accuracy,test_perplexity\n"

#define METRICS "metrics.csv"
#define JSON "run.json"
#define OLD_METRICS "previous-metrics.csv"
#define OLD_JSON "previous-run.json"
#define LOCK "run.lock"

const char *const qn__record_files[] = {METRICS, JSON, OLD_METRICS, OLD_JSON, LOCK, NULL};

struct qn__record {
    int real, next;                /* as it began */
    char *metrics, *json;          /* paths */
    int file;                      /* metrics.csv, open for appending */
    qn__lock lock;                 /* of the folder */
    char *recipe, *isa, *argument; /* JSON texts, or NULL; argument: a JSON array */
    int threads;
    char started[32];
    qn__text lines; /* of metrics.csv, of a record in memory or at an address */
};

/* ISO 8601, UTC. */
static void time_text(time_t moment, char text[32]) {
    struct tm parts = {0};
    gmtime_r(&moment, &parts);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* ---------------------------------------------------------------------------------------- start */

static char *json_of_text(const char *plain, qn_error *err) {
    qn__text text = {0};
    qn__text_add_json(&text, plain);
    return qn__text_take(&text, err);
}

static char *json_of_arguments(const qn__record_start *start, qn_error *err) {
    qn__text text = {0};
    qn__text_add(&text, "[");
    for (int i = 0; i < start->arguments; ++i) {
        qn__text_add(&text, "%s", i > 0 ? ", " : "");
        char *word = qn__copy_text(start->argument[i], NULL);
        if (word)
            qn__remote_hide(word);
        text.failed |= !word;
        qn__text_add_json(&text, word ? word : "");
        qn__free(word);
    }
    qn__text_add(&text, "]");
    return qn__text_take(&text, err);
}

static qn_status keep_facts(qn__record *r, const qn__record_start *start, qn_error *err) {
    r->threads = start->threads;
    r->real = start->real;
    r->next = start->next;
    time_text(start->begun ? start->begun : time(NULL), r->started);
    if (start->recipe_json != NULL && (r->recipe = qn__copy_text(start->recipe_json, err)) == NULL)
        return QN_MEMORY;
    if (start->isa != NULL && (r->isa = json_of_text(start->isa, err)) == NULL)
        return QN_MEMORY;
    if (start->arguments > 0 && (r->argument = json_of_arguments(start, err)) == NULL)
        return QN_MEMORY;
    return QN_OK;
}

/* Reads a file that may be missing: *out is empty then. */
static qn_status read_old(const char *path, qn__bytes *out, qn_error *err) {
    qn__remote_about about;
    *out = (qn__bytes){0};
    if (!qn__remote_is(path))
        return access(path, F_OK) == 0 ? qn__file_read(path, out, err) : QN_OK;
    const qn_status status = qn__remote_look(path, &about, err);
    return status == QN_OK ? qn__file_read(path, out, err) : status == QN_INPUT ? QN_OK : status;
}

/* The same for an address, where nothing can be renamed. */
static qn_status set_aside_remote(const char *from, const char *to, qn_error *err) {
    qn__bytes old;
    qn__writer *writer = NULL;
    qn_status status = read_old(from, &old, err);
    if (status == QN_OK && old.data) {
        status = qn__writer_create(to, &writer, err);
        if (status == QN_OK) {
            qn__writer_add(writer, old.data, old.size, NULL);
            status = qn__writer_commit(writer, err);
        }
        if (status == QN_OK)
            status = qn__remote_remove(from, err);
    }
    qn__bytes_release(&old);
    return status;
}

/* Renames an earlier record; a missing one is not an error. */
static qn_status set_aside(qn__record *r, const char *dir, const char *name, const char *other,
                           qn_error *err) {
    char *from = NULL, *to = NULL;
    qn_status status = qn__folder_path(dir, name, &from, err);
    if (status == QN_OK)
        status = qn__folder_path(dir, other, &to, err);
    if (status == QN_OK)
        status = qn__lock_check(&r->lock, from, err);
    if (status == QN_OK && qn__remote_is(from))
        status = set_aside_remote(from, to, err);
    else if (status == QN_OK && rename(from, to) != 0 && errno != ENOENT)
        status = qn__fail_errno(err, "move away", from);
    qn__free(from);
    qn__free(to);
    return status;
}

/* The number of bytes of an earlier metrics.csv to keep: the header and the lines of increasing
 * epochs up to `done`. *last is the last of them. 0 if the file has another header. A line without
 * its end was truncated when the process died. */
static size_t bytes_to_keep(const char *header, const uint8_t *data, size_t size, uint64_t done,
                            uint64_t *last) {
    const size_t head = strlen(header);
    *last = 0;
    if (size < head || memcmp(data, header, head) != 0)
        return 0;
    size_t at = head;
    while (at < size) {
        const uint8_t *comma = memchr(data + at, ',', size - at);
        const uint8_t *end = memchr(data + at, '\n', size - at);
        uint64_t epoch;
        if (comma == NULL || end == NULL || comma > end ||
            !qn__parse_u64((const char *)data + at, (size_t)(comma - (data + at)), &epoch) ||
            epoch <= *last || epoch > done)
            break;
        *last = epoch;
        at = (size_t)(end - data) + 1;
    }
    return at;
}

/* The lines of the epochs after `last` and up to `done`, of those that this process knows. A rank
 * that takes over may not have the file of the other one, or not its last lines. */
static void add_known(const qn__record_start *start, const char *header, uint64_t last,
                      qn__text *lines) {
    uint64_t unwanted;
    if (start->known == NULL || start->known->data == NULL)
        return;
    const uint8_t *data = (const uint8_t *)start->known->data;
    const size_t size = start->known->size;
    const size_t from = bytes_to_keep(header, data, size, last, &unwanted);
    const size_t to = bytes_to_keep(header, data, size, start->epochs_done, &unwanted);
    if (to > from)
        qn__text_add(lines, "%.*s", (int)(to - from), (const char *)data + from);
}

static const char *header_of(const qn__record *r) {
    return r->real ? HEADER_REAL : r->next ? HEADER_NEXT : HEADER;
}

/* Writes a file of the record, whole. */
static qn_status write_whole(qn__record *r, const char *path, const qn__text *text, qn_error *err) {
    qn__writer *writer = NULL;
    const qn_status status = text->failed ? qn__fail_memory(err, text->size + 1, 1)
                                          : qn__writer_create(path, &writer, err);
    if (status != QN_OK)
        return status;
    /* The writer remembers its first failure, which commit returns. */
    qn__writer_add(writer, text->data, text->size, NULL);
    qn__writer_ask(writer, qn__lock_may, &r->lock);
    return qn__writer_commit(writer, err);
}

/* Starts metrics.csv with its header, or with the lines to keep of the existing file. It is a new
 * file: what a rank that was stopped appends to the old one is in no folder. */
static qn_status begin_metrics(qn__record *r, const qn__record_start *start, qn_error *err) {
    qn__bytes old = {0};
    const char *header = header_of(r);
    qn_status status = start->epochs_done > 0 ? read_old(r->metrics, &old, err) : QN_OK;
    if (status != QN_OK)
        return status;
    uint64_t last;
    const size_t keep = bytes_to_keep(header, old.data, old.size, start->epochs_done, &last);
    if (keep > 0)
        qn__text_add(&r->lines, "%.*s", (int)keep, (const char *)old.data);
    else
        qn__text_add(&r->lines, "%s", header);
    add_known(start, header, last, &r->lines);
    status = write_whole(r, r->metrics, &r->lines, err);
    qn__bytes_release(&old);
    return status;
}

static qn_status open_metrics(qn__record *r, const char *dir, const qn__record_start *start,
                              qn_error *err) {
    qn_status status = QN_OK;
    if (start->epochs_done == 0 && !r->lock.inherited) {
        status = set_aside(r, dir, METRICS, OLD_METRICS, err);
        if (status == QN_OK)
            status = set_aside(r, dir, JSON, OLD_JSON, err);
    }
    if (status == QN_OK)
        status = begin_metrics(r, start, err);
    if (status != QN_OK || qn__remote_is(dir))
        return status;
    qn__text_release(&r->lines);
    r->file = open(r->metrics, O_WRONLY | O_APPEND | O_CLOEXEC);
    return r->file >= 0 ? QN_OK : qn__fail_errno(err, "open", r->metrics);
}

/* The text with which a record's file begins. */
static const char *beginning_of(const char *name) {
    if (strcmp(name, METRICS) == 0 || strcmp(name, OLD_METRICS) == 0)
        return "epoch,seconds,";
    return strcmp(name, LOCK) == 0 ? "" : "{\n  \"state\": ";
}

/* Reads the first bytes of a file that may be missing. Returns QN_OK and their number. */
static qn_status read_beginning(const char *path, char *text, size_t most, size_t *size,
                                qn_error *err) {
    qn__bytes whole = {0};
    *size = 0;
    if (qn__remote_is(path)) {
        const qn_status status = read_old(path, &whole, err);
        *size = whole.size < most ? whole.size : most;
        if (*size > 0)
            memcpy(text, whole.data, *size);
        qn__bytes_release(&whole);
        return status;
    }
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return errno == ENOENT ? QN_OK : qn__fail_errno(err, "open", path);
    const ssize_t got = read(file, text, most);
    close(file);
    *size = got > 0 ? (size_t)got : 0;
    return got >= 0 ? QN_OK : qn__fail_errno(err, "read", path);
}

/* A file with a record's name and other content belongs to the user and is kept. */
static qn_status check_own(const char *dir, const char *name, qn_error *err) {
    const char *wanted = beginning_of(name);
    char found[32];
    size_t size = 0;
    char *path;
    qn_status status = qn__folder_path(dir, name, &path, err);
    if (status != QN_OK)
        return status;
    status = read_beginning(path, found, strlen(wanted), &size, err);
    if (status == QN_OK && size != 0 &&
        (size != strlen(wanted) || memcmp(found, wanted, size) != 0)) {
        qn__fail(err, QN_IO, "%s is not a file of a record, and would be replaced", path);
        qn__at(err, "%s", path);
        status = qn__remedy(err, QN_IO, "move it away, or use another folder (`train.run_dir`)");
    }
    qn__free(path);
    return status;
}

static qn_status take_folder(qn__record *r, const char *dir, const qn__record_start *start,
                             qn_error *err) {
    qn_status status = QN_OK;
    for (const char *const *name = qn__record_files; *name && status == QN_OK; name++)
        status = check_own(dir, *name, err);
    if (status == QN_OK)
        status = qn__folder_lock(dir, LOCK, "the folder of the record", "`train.run_dir`",
                                 start->owner, &r->lock, err);
    return status;
}

qn_status qn__record_open(const char *dir, const qn__record_start *start, qn__record **out,
                          qn_error *err) {
    *out = NULL;
    if (!qn__remote_is(dir) && mkdir(dir, 0777) != 0 && errno != EEXIST)
        return qn__fail_errno(err, "make the folder", dir);
    qn__record *r = qn__alloc(1, sizeof *r, err);
    if (r == NULL)
        return QN_MEMORY;
    r->file = r->lock.file = -1;
    qn_status status = qn__folder_path(dir, METRICS, &r->metrics, err);
    if (status == QN_OK)
        status = qn__folder_path(dir, JSON, &r->json, err);
    if (status == QN_OK)
        status = keep_facts(r, start, err);
    if (status == QN_OK)
        status = take_folder(r, dir, start, err);
    if (status == QN_OK)
        status = open_metrics(r, dir, start, err);
    if (status != QN_OK) {
        qn__record_close(r);
        return status;
    }
    *out = r;
    return QN_OK;
}

qn_status qn__record_keep(const qn__record_start *start, qn__record **out, qn_error *err) {
    qn__record *r = qn__alloc(1, sizeof *r, err);
    *out = r;
    if (r == NULL)
        return QN_MEMORY;
    r->file = r->lock.file = -1;
    const qn_status status = keep_facts(r, start, err);
    qn__text_add(&r->lines, "%s", header_of(r));
    if (status != QN_OK) {
        qn__record_close(r);
        *out = NULL;
    }
    return status;
}

void qn__record_recall(qn__record *record, const qn__text *metrics, uint64_t epochs_done) {
    const char *header = header_of(record);
    uint64_t last;
    const size_t keep = metrics->data == NULL
                            ? 0
                            : bytes_to_keep(header, (const uint8_t *)metrics->data, metrics->size,
                                            epochs_done, &last);
    if (keep == 0 || record->lines.failed)
        return;
    uint64_t unwanted;
    qn__text own = record->lines;
    const size_t from = bytes_to_keep(header, (const uint8_t *)own.data, own.size, last, &unwanted);
    record->lines = (qn__text){0};
    qn__text_add(&record->lines, "%.*s%s", (int)keep, metrics->data, own.data + from);
    qn__text_release(&own);
}

const qn__text *qn__record_metrics(const qn__record *record) { return &record->lines; }

void qn__record_close(qn__record *record) {
    if (record == NULL)
        return;
    if (record->file >= 0)
        close(record->file);
    qn__lock_release(&record->lock);
    qn__free(record->metrics);
    qn__free(record->json);
    qn__free(record->recipe);
    qn__free(record->isa);
    qn__free(record->argument);
    qn__text_release(&record->lines);
    qn__free(record);
}

/* ---------------------------------------------------------------------------------- each epoch */

/* A number that is there, after a comma. */
static void add_cell(qn__text *line, double value) {
    if (isfinite(value))
        qn__text_add(line, ",%.9g", value);
    else
        qn__text_add(line, ",");
}

/* ",loss,accuracy", both empty where there was no such set, and ",perplexity" of next tokens;
 * ",loss,mae,rmse,r2" of real labels. */
static void add_score(qn__text *line, const qn__record *r, const qn_score *score) {
    const double numbers[] = {score->loss, score->mae, score->rmse, score->r2};
    for (int i = 0; r->real && i < 4; ++i)
        add_cell(line, score->items ? numbers[i] : (double)NAN);
    if (r->real)
        return;
    if (score->items == 0)
        qn__text_add(line, ",,");
    else
        qn__text_add(line, ",%.9g,%.9g", score->loss,
                     (double)score->correct / (double)score->items);
    if (r->next)
        add_cell(line, score->items ? qn__f64_exp(score->loss) : (double)NAN);
}

/* Writes the whole line at once, so that a reader never sees half of it. A limit on file sizes
 * raises a signal that would end the program; it is blocked and discarded. Returns 1, or 0 and
 * errno. */
static int append_quietly(int file, const char *bytes, size_t size) {
    sigset_t limit, before;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    const ssize_t put = write(file, bytes, size);
    const int error = put < 0 ? errno : ENOSPC;
    if (put < 0 && error == EFBIG)
        sigtimedwait(&limit, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return put == (ssize_t)size;
}

static void add_epoch(qn__text *line, const qn__record *r, const qn_epoch_event *event) {
    qn__text_add(line, "%" PRIu32 ",%.6f,%.6g,%.9g", event->epoch, event->seconds,
                 event->items_per_second, event->learning_rate);
    add_score(line, r, &event->train);
    add_score(line, r, &event->valid);
    add_score(line, r, &event->test);
    qn__text_add(line, "\n");
}

/* An address takes whole files only. */
qn_status qn__record_epoch(qn__record *record, const qn_epoch_event *event, qn_error *err) {
    qn__text line = {0};
    if (record->file < 0) {
        add_epoch(&record->lines, record, event);
        if (record->metrics != NULL)
            return write_whole(record, record->metrics, &record->lines, err);
        return record->lines.failed ? qn__fail_memory(err, record->lines.size + 1, 1) : QN_OK;
    }
    add_epoch(&line, record, event);
    qn_status status = line.failed ? qn__fail_memory(err, line.size + 1, 1) : QN_OK;
    if (status == QN_OK)
        status = qn__lock_check(&record->lock, record->metrics, err);
    if (status == QN_OK && !append_quietly(record->file, line.data, line.size))
        status = qn__fail_errno(err, "write", record->metrics);
    qn__text_release(&line);
    return status;
}

/* ------------------------------------------------------------------------------------------ end */

/* Numbers that JSON cannot represent become null. */
static void add_number(qn__text *t, const char *key, double value) {
    if (isfinite(value))
        qn__text_add(t, ",\n  \"%s\": %.9g", key, value);
    else
        qn__text_add(t, ",\n  \"%s\": null", key);
}

static void add_member(qn__text *t, const char *key, const char *json) {
    qn__text_add(t, ",\n  \"%s\": %s", key, json != NULL ? json : "null");
}

static void add_text(qn__text *t, const char *key, const char *plain) {
    qn__text_add(t, ",\n  \"%s\": ", key);
    qn__text_add_json(t, plain);
}

static void add_final(qn__text *t, const char *key, const qn_train_report *report,
                      const qn_score *score) {
    static const char *const names[] = {"loss", "perplexity", "mae", "rmse", "r2"};
    if (score->items == 0) {
        add_member(t, key, NULL);
        return;
    }
    qn__text_add(t, ",\n  \"%s\": {\"items\": %" PRIu64, key, score->items);
    if (!report->real)
        qn__text_add(t, ", \"correct\": %" PRIu64, score->correct);
    const double perplexity = report->next ? qn__f64_exp(score->loss) : (double)NAN;
    const double numbers[] = {score->loss, perplexity, score->mae, score->rmse, score->r2};
    for (int i = 0; i < 5; ++i)
        if (isfinite(numbers[i]))
            qn__text_add(t, ", \"%s\": %.9g", names[i], numbers[i]);
    qn__text_add(t, "}");
}

/* A number within a line. */
static void add_field(qn__text *t, const char *key, double value) {
    qn__text_add_number(t, key, 6, value);
}

/* Shares of values that lost all bits. */
static void add_rounding(qn__text *t, const qn_rounding *r) {
    if (!r || r->bits == 0) {
        add_member(t, "rounding", NULL);
        return;
    }
    qn__text_add(t, ",\n  \"rounding\": {\"bits\": %d, \"items\": %" PRIu32, r->bits, r->items);
    add_field(t, "inputs", r->inputs);
    add_field(t, "activations", r->activations);
    add_field(t, "weights", r->weights);
    add_field(t, "errors", r->errors);
    add_field(t, "grain_inputs", r->grain_inputs);
    add_field(t, "grain_activations", r->grain_activations);
    add_field(t, "grain_errors", r->grain_errors);
    qn__text_add(t, "}");
}

static void add_worker(qn__text *t, const qn_worker_report *w) {
    qn__text_add(t, "{\"rank\": %" PRIu32 ", \"name\": ", w->rank);
    qn__text_add_json(t, w->name);
    qn__text_add(t, ", \"device\": ");
    qn__text_add_json(t, w->device);
    qn__text_add(t, ", \"grains\": %" PRIu64 ", \"items\": %" PRIu64 ", \"steps\": %" PRIu64,
                 w->grains, w->items, w->steps);
    qn__text_add(t, ", \"lost\": %s, \"note\": ", w->lost ? "true" : "false");
    qn__text_add_json(t, w->note);
    qn__text_add(t, ", \"bytes_up\": %" PRIu64 ", \"bytes_down\": %" PRIu64, w->bytes_up,
                 w->bytes_down);
    add_field(t, "seconds_up", w->seconds_up);
    add_field(t, "seconds_down", w->seconds_down);
    add_field(t, "joules", w->joules > 0 ? w->joules : (double)NAN);
    add_field(t, "rate", w->items_per_second);
    add_field(t, "busy", w->busy);
    qn__text_add(t, ", \"core_busy\": [");
    for (int i = 0; i < w->cores && w->core_busy != NULL; ++i)
        qn__text_add(t, "%s%.6g", i > 0 ? ", " : "",
                     isfinite(w->core_busy[i]) ? w->core_busy[i] : 0.0);
    qn__text_add(t, "]}");
}

static void add_rank(qn__text *t, const qn_rank_report *r) {
    qn__text_add(t, "{\"rank\": %" PRIu32 ", \"host\": ", r->rank);
    qn__text_add_json(t, r->host);
    qn__text_add(t, ", \"lost\": %s, \"workers\": ", r->lost ? "true" : "false");
    qn__text_add_json(t, r->worker_names);
    qn__text_add(t, ", \"items\": %" PRIu64, r->items);
    add_field(t, "rate", r->items_per_second);
    add_field(t, "busy", r->busy);
    add_field(t, "waiting", r->waiting);
    qn__text_add(t,
                 ", \"bytes_out\": %" PRIu64 ", \"bytes_in\": %" PRIu64
                 ", \"bytes_early\": %" PRIu64 ", \"counted_out\": %" PRIu64
                 ", \"counted_in\": %" PRIu64 ", \"bytes_shared\": %" PRIu64
                 ", \"recoveries\": %" PRIu32,
                 r->bytes_out, r->bytes_in, r->bytes_early, r->counted_out, r->counted_in,
                 r->bytes_shared, r->recoveries);
    add_field(t, "longest_recovery", r->longest_recovery);
    qn__text_add(t, ", \"joined_after\": %" PRIu64 "}", r->joined_after);
}

/* A row for each label. */
static void add_confusion(qn__text *t, const qn_train_report *r) {
    if (!r->confusion || r->classes > QN__RECORDED_CLASSES)
        return;
    qn__text_add(t, ",\n  \"confusion\": [");
    for (uint32_t label = 0; label < r->classes; ++label) {
        qn__text_add(t, "%s[", label > 0 ? ",\n    " : "\n    ");
        for (uint32_t c = 0; c < r->classes; ++c)
            qn__text_add(t, "%s%" PRIu64, c > 0 ? ", " : "",
                         r->confusion[(size_t)label * r->classes + c]);
        qn__text_add(t, "]");
    }
    qn__text_add(t, "]");
}

static void add_report(qn__text *t, const qn_train_report *report) {
    add_number(t, "seconds", report->seconds);
    add_number(t, "seconds_training", report->seconds_training);
    add_number(t, "seconds_to_first_step", report->seconds_to_first_step);
    add_number(t, "bound", report->bound);
    add_number(t, "seconds_choosing", report->seconds_choosing);
    qn__text_add(t, ",\n  \"steps_repeated\": %" PRIu64, report->steps_repeated);
    qn__text_add(t, ",\n  \"items\": %" PRIu64 ",\n  \"steps\": %" PRIu64, report->items,
                 report->steps);
    qn__text_add(t, ",\n  \"resumed_from\": %" PRIu64, report->resumed_from);
    add_final(t, "train", report, &report->train);
    add_final(t, "valid", report, &report->valid);
    add_final(t, "test", report, &report->test);
    add_confusion(t, report);
    qn__text_add(t, ",\n  \"evaluation\": {\"valid\": %s,\n   \"test\": %s}",
                 report->valid_evaluation ? report->valid_evaluation->json : "null",
                 report->test_evaluation ? report->test_evaluation->json : "null");
    add_rounding(t, report->rounding);
    qn__text_add(t, ",\n  \"workers\": [");
    for (uint32_t i = 0; i < report->workers; ++i) {
        qn__text_add(t, "%s", i > 0 ? ",\n    " : "\n    ");
        add_worker(t, report->worker[i]);
    }
    qn__text_add(t, "],\n  \"ranks\": [");
    for (uint32_t i = 0; i < report->ranks; ++i) {
        qn__text_add(t, "%s", i > 0 ? ",\n    " : "\n    ");
        add_rank(t, report->rank[i]);
    }
    qn__text_add(t, "]");
}

void qn__record_about(const qn__record *r, const qn_train_report *report, const char *model_digest,
                      const char *state, qn__text *t) {
    char host[256] = "", ended[32];
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    time_text(time(NULL), ended);
    qn__text_add(t, "{\n  \"state\": ");
    qn__text_add_json(t, state);
    add_text(t, "started", r->started);
    add_text(t, "ended", ended);
    add_text(t, "version", qn_version());
    add_text(t, "build", qn_build_info());
    add_text(t, "host", host);
    add_member(t, "command", r->argument);
    qn__text_add(t, ",\n  \"threads\": %d", r->threads);
    add_member(t, "isa", r->isa);
    add_member(t, "recipe", r->recipe);
    add_text(t, "model", model_digest);
    if (report != NULL)
        add_report(t, report);
    qn__text_add(t, "\n}\n");
}

qn_status qn__record_end(qn__record *record, const qn_train_report *report,
                         const char *model_digest, const char *state, qn_error *err) {
    qn__text text = {0};
    qn__record_about(record, report, model_digest, state, &text);
    const qn_status status = write_whole(record, record->json, &text, err);
    qn__text_release(&text);
    return status;
}
