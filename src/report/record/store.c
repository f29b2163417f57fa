#include "report/record/store.h"

#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "data/bytes/server_address.h"
#include "report/record/store_kinds.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

qn_status qn__store_open(const char *path, int write, qn__store *out, qn_error *err) {
    const int is_server = qn__is_server(path);
    *out = (qn__store){.kind = is_server ? &qn__postgres_store : &qn__sqlite_store};
    out->path = is_server ? qn__server_shown(path, err) : qn__copy_text(path, err);
    return out->path ? out->kind->open(out, path, write, err) : QN_MEMORY;
}

void qn__store_close(qn__store *store) {
    if (store->base)
        store->kind->close(store);
    qn__free(store->path);
    *store = (qn__store){0};
}

void qn__store_number(char id[QN__STORE_ID + 1]) {
    static unsigned count;
    char text[512], host[256] = "", digits[65];
    uint8_t digest[32];
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(text, sizeof text, "%s %ld %lld %ld %.9f %u", host, (long)getpid(),
             (long long)now.tv_sec, now.tv_nsec, qn__now(),
             __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
    qn__sha256_of(text, strlen(text), digest);
    qn__hex(digest, digits);
    snprintf(id, QN__STORE_ID + 1, "%.12s", digits);
}

/* ----------------------------------------------------------------------------------------- writing
 */

/* The columns that are not texts of the record themselves. */
typedef struct row {
    qn__past_run run;
    qn__text command;
    const char *scored; /* the set of the scores; NULL: none */
    double number[5];   /* seconds, accuracy, loss, rmse, r2 */
} row;

/* The test set, else the validation set, else the training items. */
static void fill_scores(row *r) {
    static const char *const sets[] = {"test", "valid", "train"};
    static const char *const keys[] = {"loss", "rmse", "r2"};
    const qn__json_node *score = NULL;
    uint64_t items, correct;
    for (int i = 0; i < 3 && !score; ++i)
        if (qn__json_is_object(score = qn__json_get(r->run.facts, sets[i])))
            r->scored = sets[i];
        else
            score = NULL;
    r->number[0] = qn__fact_number(r->run.facts, "seconds");
    r->number[1] = NAN;
    if (qn__json_u64(qn__json_get(score, "items"), &items) && items > 0 &&
        qn__json_u64(qn__json_get(score, "correct"), &correct))
        r->number[1] = (double)correct / (double)items;
    for (int i = 0; i < 3; ++i)
        r->number[2 + i] = qn__fact_number(score, keys[i]);
}

static void fill_command(row *r) {
    const qn__json_node *command = qn__json_get(r->run.facts, "command");
    for (size_t i = 0; i < qn__json_count(command); ++i) {
        const char *word = qn__json_string(qn__json_at(command, i));
        qn__text_add(&r->command, "%s%s", i ? " " : "", word ? word : "");
    }
}

static void fill_row(const row *r, const char *id, const char *name, const qn__text *about,
                     const qn__text *metrics, qn__store_row *out) {
    const qn__json_node *recipe = qn__json_get(r->run.facts, "recipe");
    const char *data = qn__json_string(qn__json_get(recipe, "data"));
    *out = (qn__store_row){
        .text = {id, name, qn__past_run_text(&r->run, "state"),
                 qn__past_run_text(&r->run, "started"), qn__past_run_text(&r->run, "ended"),
                 qn__past_run_text(&r->run, "host"), r->command.data ? r->command.data : "",
                 data ? data : "", qn__past_run_text(&r->run, "model"), r->scored ? r->scored : "",
                 about->data, metrics->data},
        .epochs = (int64_t)r->run.epochs};
    memcpy(out->number, r->number, sizeof out->number);
}

/* Another rank that has become the writer has written the row, or waits for this transaction. */
static qn_status may_put(const qn__store *store, const qn__owner *owner, qn_error *err) {
    if (!owner->may || owner->may(owner->user))
        return QN_OK;
    return qn__fail(err, QN_BUSY, "the run in %.400s now belongs to another process", store->path);
}

qn_status qn__store_put(const qn__store *store, const char *id, const char *name,
                        const qn__text *about, const qn__text *metrics, const qn__owner *owner,
                        qn_error *err) {
    row r = {.scored = NULL};
    qn__store_row own;
    qn_status status = qn__past_run_parse("the record", about, metrics, &r.run, err);
    if (status != QN_OK)
        return status;
    fill_scores(&r);
    fill_command(&r);
    fill_row(&r, id, name, about, metrics, &own);
    status = r.command.failed ? qn__fail_memory(err, r.command.size + 1, 1)
                              : store->kind->run(store, store->kind->begin, err);
    if (status == QN_OK) {
        status = store->kind->put(store, &own, err);
        if (status == QN_OK)
            status = may_put(store, owner, err);
        if (status == QN_OK)
            status = store->kind->run(store, "COMMIT", err);
        if (status != QN_OK)
            (void)store->kind->run(store, "ROLLBACK", NULL);
    }
    qn__text_release(&r.command);
    qn__past_run_release(&r.run);
    return status;
}

/* ----------------------------------------------------------------------------------------- reading
 */

qn_status qn__store_refuse(const qn__store *s, const char *run, int several, qn_error *err) {
    if (several)
        qn__fail(err, QN_INPUT, "several runs are called \"%.100s\", or begin so", run);
    else
        qn__fail(err, QN_INPUT, "there is no run \"%.100s\"", run);
    qn__at(err, "%.400s", s->path);
    return qn__remedy(
        err, QN_INPUT,
        several ? "give more of its identifier"
                : "give the identifier of a run, or its name; the list of the runs has both");
}

/* The best of the runs that were found. */
typedef struct found {
    qn__text *about, *metrics;
    int rows, how, several;
} found;

static void set(qn__text *out, const char *text) {
    out->size = 0;
    qn__text_add(out, "%s", text ? text : "");
}

static void take(void *user, const char *about, const char *metrics, int how) {
    found *f = user;
    if (f->rows++ == 0) {
        set(f->about, about);
        set(f->metrics, metrics);
        f->how = how;
    } else {
        f->several = how > 0 && f->how == how;
    }
}

qn_status qn__store_get(const qn__store *s, const char *run, qn__text *about, qn__text *metrics,
                        qn_error *err) {
    found f = {about, metrics, 0, -1, 0};
    qn_status status = s->kind->find(s, run, take, &f, err);
    if (status == QN_OK && (f.rows == 0 || f.several))
        status = qn__store_refuse(s, run, f.several, err);
    if (status == QN_OK && (about->failed || metrics->failed))
        status = qn__fail_memory(err, about->size + metrics->size, 1);
    return status;
}

qn_status qn__store_list(const qn__store *s, qn__store_listed *take_row, void *user,
                         qn_error *err) {
    return s->kind->list(s, take_row, user, err);
}
