#include "search/search_file.h"

#include "base/digest/sha256.h"
#include "base/encoding.h"
#include "base/files/file.h"
#include "base/files/remote.h"
#include "base/files/write_whole.h"
#include "base/memory.h"
#include "base/text/text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "# quern search "
static const char COLUMNS[] =
    "setting,fold,items,accuracy,f1,auc,log_loss,loss,rmse,mae,r2,seconds,model,name,check\n";
/* Digits of a line's check: against slips and damage, not against somebody who means it. */
enum { CHECK = 16 };

/* ------------------------------------------------------------------------------------- lines */

/* The check of a line depends on the search, so lines of another one are none of this. */
static void check_of(const char *key, const char *line, size_t size, char check[65]) {
    uint8_t digest[32];
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, key, strlen(key));
    qn__sha256_add(&hash, "\n", 1);
    qn__sha256_add(&hash, line, size);
    qn__sha256_end(&hash, digest);
    qn__hex(digest, check);
    check[CHECK] = '\0';
}

static void add_number(qn__text *to, double value) {
    if (isnan(value))
        qn__text_add(to, ",nan");
    else
        qn__text_add(to, ",%.17g", value);
}

/* In quotes; a line has no line ends within. */
static void add_name(qn__text *to, const char *name) {
    qn__text_add(to, ",\"");
    for (; name && *name; name++)
        qn__text_add(to, "%s%c", *name == '"' ? "\"" : "",
                     (unsigned char)*name < ' ' || *name == 0x7f ? ' ' : *name);
    qn__text_add(to, "\"");
}

static void add_line(qn__text *to, const char *key, const qn__search_table *t, uint64_t result,
                     const char *name) {
    const qn_search_result *r = &t->result[result];
    char check[65];
    qn__text_add(to, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, result / t->folds, result % t->folds,
                 r->items);
    for (int m = 0; m < QN_SEARCH_METRICS; m++)
        add_number(to, r->number[m]);
    qn__text_add(to, ",%.6g,%s", r->seconds, r->model);
    add_name(to, name);
    if (to->failed)
        return;
    check_of(key, to->data, to->size, check);
    qn__text_add(to, ",%s\n", check);
}

static int is_checked(const char *key, const char *line, size_t size) {
    char check[65];
    if (size < CHECK + 1 || line[size - CHECK - 1] != ',')
        return 0;
    check_of(key, line, size - CHECK - 1, check);
    return memcmp(check, line + size - CHECK, CHECK) == 0;
}

/* A line whose check is right. 0: it says what no line of a search says. */
static int read_line(const char *line, const qn__search_table *t, unsigned char *kept) {
    qn_search_result r = {.size = sizeof r, .done = 1};
    uint32_t setting, fold;
    int used = 0;
    if (sscanf(line, "%" SCNu32 ",%" SCNu32 ",%" SCNu64 "%n", &setting, &fold, &r.items, &used) !=
            3 ||
        setting >= t->settings || fold >= t->folds)
        return 0;
    const char *at = line + used;
    for (int m = 0; m <= QN_SEARCH_METRICS; m++) {
        char *end;
        double *to = m < QN_SEARCH_METRICS ? &r.number[m] : &r.seconds;
        if (*at != ',')
            return 0;
        *to = strtod_l(at + 1, &end, qn__c_locale());
        if (end == at + 1)
            return 0;
        at = end;
    }
    const size_t digits = *at == ',' ? strspn(at + 1, "0123456789abcdef") : 1;
    if ((digits != 64 && digits != 0) || at[1 + digits] != ',' || (digits == 0) != (r.items == 0))
        return 0;
    memcpy(r.model, at + 1, digits);
    const uint64_t index = (uint64_t)setting * t->folds + fold;
    t->result[index] = r;
    kept[index] = 1;
    return 1;
}

/* ------------------------------------------------------------------------------------ reading */

static qn_status other_folder(const qn__search_file *f, qn_status status, const char *remedy,
                              qn_error *err) {
    qn__at(err, "%s", f->path);
    return qn__remedy(err, status, "%s, or name another folder (`search.folder`)", remedy);
}

static qn_status refuse_line(const qn__search_file *f, uint64_t number, qn_error *err) {
    qn__fail(err, QN_FORMAT,
             "line %" PRIu64 " is not what a search wrote: it was changed, or is damaged", number);
    return other_folder(f, QN_FORMAT, "remove that line, and its run is made again", err);
}

/* The lines after the first two. What follows the last line end is what a process that was killed
 * could not finish; it is cut off. */
static qn_status read_lines(const qn__search_file *f, char *text, size_t size, size_t at,
                            const qn__search_table *t, qn_error *err) {
    char *end;
    for (uint64_t number = 3; (end = memchr(text + at, '\n', size - at)) != NULL; number++) {
        const size_t length = (size_t)(end - text) - at;
        *end = '\0';
        if (!is_checked(f->key, text + at, length) || !read_line(text + at, t, f->kept))
            return refuse_line(f, number, err);
        at += length + 1;
    }
    return ftruncate(f->file, (off_t)at) == 0 ? QN_OK : qn__fail_errno(err, "write", f->path);
}

static qn_status write_all(const qn__search_file *f, const char *text, size_t size, qn_error *err) {
    return qn__write_whole(f->file, text, size) == 0 ? QN_OK
                                                     : qn__fail_errno(err, "write", f->path);
}

/* Whether it is the beginning of a file of some search, without results. */
static int holds_nothing(const char *text, size_t size) {
    const size_t mark = strlen(MARK);
    if (memcmp(text, MARK, size < mark ? size : mark) != 0)
        return 0;
    const char *end = memchr(text, '\n', size);
    const size_t rest = end ? size - (size_t)(end + 1 - text) : 0;
    return rest < sizeof COLUMNS && (!end || memcmp(end + 1, COLUMNS, rest) == 0);
}

static qn_status take(const qn__search_file *f, char *text, size_t size, const qn__search_table *t,
                      qn_error *err) {
    qn__text head = {0};
    qn__text_add(&head, MARK "%s\n%s", f->key, COLUMNS);
    qn_status status = QN_OK;
    if (head.failed)
        status = qn__fail_memory(err, head.size + 1, 1);
    else if (size >= head.size && memcmp(text, head.data, head.size) == 0)
        status = read_lines(f, text, size, head.size, t, err);
    else if (!holds_nothing(text, size)) {
        qn__fail(err, QN_MISMATCH, "the folder holds another search, or another file of this name");
        status =
            other_folder(f, QN_MISMATCH, "give the same data, settings, folds and options", err);
    } else if (ftruncate(f->file, 0) != 0)
        status = qn__fail_errno(err, "write", f->path);
    else
        status = write_all(f, head.data, head.size, err);
    qn__text_release(&head);
    return status;
}

static qn_status read_all(const qn__search_file *f, const qn__search_table *t, qn_error *err) {
    struct stat about;
    if (fstat(f->file, &about) != 0)
        return qn__fail_errno(err, "read", f->path);
    if (!S_ISREG(about.st_mode)) {
        qn__fail(err, QN_IO, "cannot use %s: it is not a file", f->path);
        return other_folder(f, QN_IO, "move it away", err);
    }
    char *text = qn__alloc((uint64_t)about.st_size + 1, 1, err);
    size_t size = 0;
    ssize_t n = 1;
    while (text && n > 0 && size < (size_t)about.st_size) {
        n = pread(f->file, text + size, (size_t)about.st_size - size, (off_t)size);
        size += n > 0 ? (size_t)n : 0;
    }
    const qn_status status = !text   ? QN_MEMORY
                             : n < 0 ? qn__fail_errno(err, "read", f->path)
                                     : take(f, text, size, t, err);
    qn__free(text);
    return status;
}

/* ------------------------------------------------------------------------------------ the file */

/* The file of a rank that this one goes on for, with all of its lines, as a new file in its place.
 */
static qn_status renew(qn__search_file *f, qn_error *err) {
    qn__bytes old = {0};
    qn__writer *writer = NULL;
    qn_status status = qn__file_read(f->path, &old, err);
    if (status == QN_OK)
        status = qn__writer_create(f->path, &writer, err);
    if (status == QN_OK) {
        /* The writer remembers its first failure, which commit returns. */
        qn__writer_add(writer, old.data, old.size, NULL);
        qn__writer_ask(writer, qn__lock_may, &f->lock);
        status = qn__writer_commit(writer, err);
    }
    qn__bytes_release(&old);
    return status;
}

static qn_status open_file(qn__search_file *f, qn_error *err) {
    struct stat about;
    if (f->lock.inherited && stat(f->path, &about) == 0 && S_ISREG(about.st_mode)) {
        const qn_status status = renew(f, err);
        if (status != QN_OK)
            return status;
    }
    /* O_NONBLOCK: open never blocks, whatever is there. */
    f->file = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    return f->file >= 0 ? QN_OK : qn__fail_errno(err, "open", f->path);
}

qn_status qn__search_file_open(qn__search_file *f, const char *folder, const qn__owner *owner,
                               const char *key, const qn__search_table *table, qn_error *err) {
    const size_t capacity = strlen(folder) + sizeof "/search.csv";
    *f = (qn__search_file){.file = -1, .lock.file = -1, .key = key};
    f->path = qn__alloc(capacity, 1, err);
    f->kept = qn__alloc((uint64_t)table->settings * table->folds, 1, err);
    if (!f->path || !f->kept)
        return QN_MEMORY;
    snprintf(f->path, capacity, "%s/search.csv", folder);
    if (qn__remote_is(folder)) {
        qn__fail(err, QN_UNSUPPORTED,
                 "the results of a search grow in place, which a store cannot do");
        qn__at(err, "%s", folder);
        return qn__remedy(err, QN_UNSUPPORTED, "name a folder of this machine: `search.folder`");
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return qn__fail_errno(err, "make the folder", folder);
    qn_status status = qn__folder_lock(folder, "search.lock", "the folder of the search",
                                       "`search.folder`", owner, &f->lock, err);
    if (status == QN_OK)
        status = open_file(f, err);
    return status == QN_OK ? read_all(f, table, err) : status;
}

qn_status qn__search_file_add(qn__search_file *f, const qn__search_table *table, uint64_t result,
                              const char *name, qn_error *err) {
    qn__text line = {0};
    add_line(&line, f->key, table, result, name);
    qn_status status = line.failed ? qn__fail_memory(err, line.size + 1, 1)
                                   : qn__lock_check(&f->lock, f->path, err);
    if (status == QN_OK)
        status = write_all(f, line.data, line.size, err);
    qn__text_release(&line);
    f->kept[result] = status == QN_OK;
    return status;
}

void qn__search_file_close(qn__search_file *f) {
    if (f->file >= 0)
        close(f->file);
    qn__lock_release(&f->lock);
    qn__free(f->path);
    qn__free(f->kept);
    *f = (qn__search_file){.file = -1, .lock.file = -1};
}
