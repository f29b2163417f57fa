/* What files say about themselves (quern/description.h). */
#include "base/argument.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "data/bytes/file_list.h"
#include "data/cells/described.h"
#include "data/cells/readers.h"
#include <fcntl.h>
#include <quern/description.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptions are short: most of the time a store is waited for. */
enum { AT_ONCE = 16 };

struct qn_description {
    const qn__reader *reader;
    qn__file_list list;
    qn__described of_first;
    uint64_t items;
};

/* Files that are described, each by the thread that takes it next. */
typedef struct describing {
    const qn_description *of;
    qn__described *file;
    qn_error *error; /* of each file */
    qn_status *status;
    atomic_size_t next;
} describing;

static qn_status refuse(const char *path, const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static const qn__reader *describer(void) {
    const qn__reader *const *at = qn__readers;
    while (*at && !(*at)->describe)
        at++;
    return *at;
}

static qn_status open_one(const char *path, int *file, qn_error *err) {
    if (qn__remote_is(path))
        return qn__remote_open(path, file, err);
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return *file >= 0 ? QN_OK : qn__fail_errno(err, "open", path);
}

static qn_status describe_one(const qn_description *d, size_t i, qn__described *out,
                              qn_error *err) {
    struct stat info;
    int file = -1;
    const char *path = d->list.file[i].path;
    qn_status status = open_one(path, &file, err);
    if (status != QN_OK)
        return status;
    if (fstat(file, &info) != 0)
        status = qn__fail_errno(err, "look at", path);
    else if (!S_ISREG(info.st_mode))
        status = refuse(path, "only Parquet files say what columns they have",
                        "describe it by its rows: quern data info", err);
    else
        status = d->reader->describe(file, (uint64_t)info.st_size, path, out, err);
    qn__remote_close(file);
    return status;
}

static void describe_some(void *context, int thread) {
    describing *all = context;
    size_t i;
    (void)thread;
    while ((i = atomic_fetch_add(&all->next, 1)) < all->of->list.count)
        all->status[i] = describe_one(all->of, i, &all->file[i], &all->error[i]);
}

static int is_same(const qn__described *a, const qn__described *b) {
    int same = a->columns == b->columns;
    for (size_t k = 0; same && k < a->columns; k++)
        same = strcmp(a->column[k].name, b->column[k].name) == 0 &&
               strcmp(a->column[k].type, b->column[k].type) == 0;
    return same;
}

/* The first failure, in the order of the files. */
static qn_status collect(qn_description *d, describing *all, qn_error *err) {
    for (size_t i = 0; i < d->list.count; i++) {
        if (all->status[i] != QN_OK) {
            if (err)
                *err = all->error[i];
            return all->status[i];
        }
        if (!is_same(&all->file[0], &all->file[i]))
            return refuse(d->list.file[i].path, "the file has other columns than the first one",
                          "describe files of one table together, and others alone", err);
        for (size_t k = 0; k < all->file[i].columns; k++)
            all->file[0].column[k].may_miss |= all->file[i].column[k].may_miss;
        d->items += all->file[i].items;
    }
    d->of_first = all->file[0];
    all->file[0] = (qn__described){0};
    return QN_OK;
}

static qn_status describe_all(qn_description *d, qn_error *err) {
    const size_t count = d->list.count;
    describing all = {.of = d,
                      .file = qn__alloc(count, sizeof *all.file, err),
                      .error = qn__alloc(count, sizeof *all.error, err),
                      .status = qn__alloc(count, sizeof *all.status, err)};
    qn__pool *pool = NULL;
    qn_status status = all.file && all.error && all.status ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        status = qn__pool_create(count < AT_ONCE ? (int)count : AT_ONCE, 0, &pool, err);
    if (status == QN_OK) {
        qn__pool_run(pool, describe_some, &all);
        status = collect(d, &all, err);
    }
    for (size_t i = 0; all.file && i < count; i++)
        qn__described_release(&all.file[i]);
    qn__pool_destroy(pool);
    qn__free(all.file);
    qn__free(all.error);
    qn__free(all.status);
    return status;
}

qn_status qn_description_read(const char *const *paths, size_t count, qn_description **out,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(paths, err);
    qn_description *d = qn__alloc(1, sizeof *d, err);
    if (!d)
        return QN_MEMORY;
    d->reader = describer();
    qn_status status = qn__file_list_make(paths, count, 0, &d->list, err);
    if (status == QN_OK)
        status = describe_all(d, err);
    if (status == QN_OK)
        *out = d;
    else
        qn_description_free(d);
    return status;
}

void qn_description_free(qn_description *d) {
    if (!d)
        return;
    qn__described_release(&d->of_first);
    qn__file_list_release(&d->list);
    qn__free(d);
}

const char *qn_description_format(const qn_description *d) { return d ? d->reader->name[0] : ""; }

uint64_t qn_description_files(const qn_description *d) { return d ? d->list.count : 0; }

uint64_t qn_description_items(const qn_description *d) { return d ? d->items : 0; }

uint32_t qn_description_columns(const qn_description *d) {
    return d ? (uint32_t)(d->of_first.columns + d->list.keys) : 0;
}

const char *qn_description_name(const qn_description *d, uint32_t column) {
    if (column >= qn_description_columns(d))
        return "";
    const size_t own = d->of_first.columns;
    return column < own ? d->of_first.column[column].name : d->list.file[0].key[column - own].name;
}

const char *qn_description_type(const qn_description *d, uint32_t column) {
    if (column >= qn_description_columns(d))
        return "";
    return column < d->of_first.columns ? d->of_first.column[column].type : "key of a folder";
}

int qn_description_may_miss(const qn_description *d, uint32_t column) {
    return d && column < d->of_first.columns && d->of_first.column[column].may_miss;
}
