#include "search_file.h"
#include "message.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const search_metric_names[SEARCH_METRICS] = {"accuracy", "f1",   "auc", "log_loss",
                                                         "loss",     "rmse", "mae", "r2"};

static const char COLUMNS[] =
    "setting,fold,items,accuracy,f1,auc,log_loss,loss,rmse,mae,r2,seconds,"
    "model\n";
enum { LONGEST_LINE = 1024 };

static int fail(const search_file *f, const char *what) {
    return message_fail(QN_IO, what, f->path, "name another folder with --run-dir");
}

/* A line of results; 0: it is none. */
static int read_line(const char *line, search_runs *runs) {
    search_result r = {.done = 1};
    uint32_t setting, fold;
    int used = 0;
    if (sscanf(line, "%" SCNu32 ",%" SCNu32 ",%" SCNu64 "%n", &setting, &fold, &r.items, &used) !=
            3 ||
        setting >= runs->settings || fold >= runs->folds)
        return 0;
    const char *at = line + used;
    double *const last = &r.seconds;
    for (int m = 0; m <= SEARCH_METRICS; m++) {
        char *end;
        double *to = m < SEARCH_METRICS ? &r.number[m] : last;
        if (*at != ',')
            return 0;
        *to = strtod(at + 1, &end);
        if (end == at + 1)
            return 0;
        at = end;
    }
    if (*at != ',' || strlen(at + 1) > 64)
        return 0;
    snprintf(r.digest, sizeof r.digest, "%s", at + 1);
    runs->result[setting * runs->folds + fold] = r;
    return 1;
}

/* Reads what is there and cuts off a line that a process could not finish. */
static int read_results(const search_file *f, FILE *from, search_runs *runs) {
    char line[LONGEST_LINE];
    long whole = ftell(from);
    while (fgets(line, sizeof line, from)) {
        const size_t length = strlen(line);
        if (length == 0 || line[length - 1] != '\n')
            break;
        line[length - 1] = '\0';
        if (!read_line(line, runs))
            return fail(f, "the file is damaged");
        whole = ftell(from);
    }
    return ftruncate(f->file, whole) == 0 ? -1 : fail(f, strerror(errno));
}

static int read_all(search_file *f, const char *key, search_runs *runs) {
    const int copy = dup(f->file);
    FILE *from = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!from)
        return fail(f, strerror(errno));
    const size_t room = strlen(key) + sizeof COLUMNS + 8;
    char *wanted = malloc(room), *there = malloc(room);
    int code = wanted && there ? -1 : message_fail(QN_MEMORY, "out of memory", "", "");
    if (code < 0) {
        snprintf(wanted, room, "# %s\n%s", key, COLUMNS);
        const size_t size = strlen(wanted), got = fread(there, 1, size, from);
        if (got == 0) {
            if (write(f->file, wanted, size) != (ssize_t)size)
                code = fail(f, strerror(errno));
        } else if (got != size || memcmp(wanted, there, size) != 0) {
            code = message_fail(QN_MISMATCH,
                                "the folder holds another search, or another file of "
                                "this name",
                                f->path,
                                "give the same data, grid, folds and options, or name "
                                "another folder with --run-dir");
        } else {
            code = read_results(f, from, runs);
        }
    }
    free(wanted);
    free(there);
    fclose(from);
    return code;
}

int search_file_open(search_file *f, const char *folder, const char *key, search_runs *runs) {
    f->file = -1;
    if (!folder)
        return -1;
    snprintf(f->path, sizeof f->path, "%.4000s/search.csv", folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return message_fail(QN_IO, strerror(errno), folder, "name a folder in one that exists");
    f->file = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (f->file < 0)
        return fail(f, strerror(errno));
    if (flock(f->file, LOCK_EX | LOCK_NB) != 0)
        return message_fail(QN_BUSY, "another search uses this folder", f->path,
                            "wait for its end, or name another folder with --run-dir");
    return read_all(f, key, runs);
}

qn_status search_file_add(const search_file *f, const search_runs *runs, uint32_t setting,
                          uint32_t fold, qn_error *err) {
    char line[LONGEST_LINE];
    const search_result *r = &runs->result[setting * runs->folds + fold];
    if (f->file < 0)
        return QN_OK;
    size_t used = (size_t)snprintf(line, sizeof line, "%" PRIu32 ",%" PRIu32 ",%" PRIu64, setting,
                                   fold, r->items);
    for (int m = 0; m < SEARCH_METRICS; m++)
        used += (size_t)snprintf(line + used, sizeof line - used, ",%.17g", r->number[m]);
    used += (size_t)snprintf(line + used, sizeof line - used, ",%.6g,%s\n", r->seconds, r->digest);
    if (write(f->file, line, used) == (ssize_t)used)
        return QN_OK;
    return message_fill(err, QN_IO, f->path,
                        "free space there; the search goes on from what is "
                        "written",
                        "cannot write a result: %s", strerror(errno));
}

void search_file_close(search_file *f) {
    if (f->file >= 0)
        close(f->file);
    f->file = -1;
}
