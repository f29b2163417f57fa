/* The runs in a file, for people who look for one. */
#include <quern/runs.h>

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "report/record/store.h"
#include <inttypes.h>
#include <string.h>

enum { TEXTS = QN__STORE_LISTED, NUMBERS = QN__STORE_NUMBERS, MOST_KEYS = 200 };

typedef struct entry {
    char *text[TEXTS];
    uint64_t epochs;
    double number[NUMBERS];
    uint32_t keys; /* of the recipe, once it was read */
    int read;
    char **key, **value;
} entry;

struct qn_runs {
    qn__store store;
    entry *entry;
    uint64_t count, capacity;
};

static void release(entry *e) {
    for (int i = 0; i < TEXTS; ++i)
        qn__free(e->text[i]);
    for (uint32_t k = 0; k < e->keys; ++k) {
        qn__free(e->key[k]);
        qn__free(e->value[k]);
    }
    qn__free(e->key);
    qn__free(e->value);
}

void qn_runs_close(qn_runs *runs) {
    if (!runs)
        return;
    for (uint64_t i = 0; i < runs->count; ++i)
        release(&runs->entry[i]);
    qn__free(runs->entry);
    qn__store_close(&runs->store);
    qn__free(runs);
}

static qn_status grow(qn_runs *r, qn_error *err) {
    if (r->count < r->capacity)
        return QN_OK;
    const uint64_t capacity = r->capacity ? 2 * r->capacity : 64;
    entry *more = qn__alloc(capacity, sizeof *more, err);
    if (!more)
        return QN_MEMORY;
    if (r->count > 0)
        memcpy(more, r->entry, r->count * sizeof *more);
    qn__free(r->entry);
    r->entry = more;
    r->capacity = capacity;
    return QN_OK;
}

static qn_status add(void *user, const qn__store_row *row, qn_error *err) {
    qn_runs *r = user;
    qn_status status = grow(r, err);
    if (status != QN_OK)
        return status;
    entry *e = &r->entry[r->count++];
    *e = (entry){.read = 0};
    for (int i = 0; i < TEXTS; ++i)
        if (!(e->text[i] = qn__copy_text(row->text[i], err)))
            return QN_MEMORY;
    e->epochs = row->epochs > 0 ? (uint64_t)row->epochs : 0;
    memcpy(e->number, row->number, sizeof e->number);
    return QN_OK;
}

qn_status qn_runs_open(const char *path, qn_runs **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    qn_runs *r = qn__alloc(1, sizeof *r, err);
    if (!r)
        return QN_MEMORY;
    *r = (qn_runs){.count = 0};
    qn_status status = qn__store_open(path, 0, &r->store, err);
    if (status == QN_OK)
        status = qn__store_list(&r->store, add, r, err);
    if (status == QN_OK)
        *out = r;
    else
        qn_runs_close(r);
    return status;
}

uint64_t qn_runs_count(const qn_runs *runs) { return runs ? runs->count : 0; }

qn_status qn_runs_get(const qn_runs *runs, uint64_t index, qn_run_info *info, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(runs, err);
    QN__NEED(info, err);
    const qn__sized *what = QN__SIZED("info", qn_run_info);
    const qn_status status = qn__sized_check(what, info, err);
    if (status != QN_OK)
        return status;
    if (index >= runs->count)
        return qn__fail(err, QN_USAGE,
                        "there are %" PRIu64 " runs, and none with the index %" PRIu64, runs->count,
                        index);
    const entry *e = &runs->entry[index];
    const qn_run_info own = {.size = sizeof own,
                             .id = e->text[0],
                             .name = e->text[1],
                             .state = e->text[2],
                             .started = e->text[3],
                             .ended = e->text[4],
                             .host = e->text[5],
                             .command = e->text[6],
                             .data = e->text[7],
                             .model = e->text[8],
                             .scored = e->text[9],
                             .epochs = e->epochs,
                             .seconds = e->number[0],
                             .accuracy = e->number[1],
                             .loss = e->number[2],
                             .rmse = e->number[3],
                             .r2 = e->number[4]};
    qn__sized_give(what, &own, info, info->size);
    return QN_OK;
}

qn_status qn_runs_find(const qn_runs *runs, const char *run, uint64_t *index, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(runs, err);
    QN__NEED(run, err);
    QN__NEED(index, err);
    /* As qn__store_get: the number, then names, then beginnings. */
    for (int how = 0; how < 3; ++how) {
        uint64_t found = 0;
        for (uint64_t i = 0; i < runs->count; ++i) {
            const char *id = runs->entry[i].text[0];
            const int is = how == 0   ? strcmp(id, run) == 0
                           : how == 1 ? strcmp(runs->entry[i].text[1], run) == 0
                                      : strlen(run) >= 4 && strncmp(id, run, strlen(run)) == 0;
            if (is && found++ == 0)
                *index = i;
        }
        if (found > 1)
            return qn__store_refuse(&runs->store, run, 1, err);
        if (found == 1)
            return QN_OK;
    }
    return qn__store_refuse(&runs->store, run, 0, err);
}

/* ------------------------------------------------------------------------------------------ recipe
 */

static int copy_pair(entry *e, const char *key, const char *value) {
    e->key[e->keys] = qn__copy_text(key, NULL);
    e->value[e->keys] = e->key[e->keys] ? qn__copy_text(value, NULL) : NULL;
    if (e->value[e->keys]) {
        ++e->keys;
        return 1;
    }
    qn__free(e->key[e->keys]);
    return 0;
}

static void copy_recipe(entry *e, const qn__json_node *recipe) {
    char text[64];
    for (size_t i = 0; i < qn__json_count(recipe) && e->keys < MOST_KEYS; ++i) {
        const qn__json_node *node = qn__json_at(recipe, i);
        const char *word = qn__json_string(node);
        if (qn__json_key(node) && (word || qn__past_run_number(node, text)) &&
            !copy_pair(e, qn__json_key(node), word ? word : text))
            return;
    }
}

static void read_recipe(qn_runs *r, entry *e) {
    qn__text about = {0}, metrics = {0};
    qn__past_run run = {.epochs = 0};
    e->read = 1;
    e->key = qn__alloc(MOST_KEYS, sizeof *e->key, NULL);
    e->value = e->key ? qn__alloc(MOST_KEYS, sizeof *e->value, NULL) : NULL;
    if (e->value && qn__store_get(&r->store, e->text[0], &about, &metrics, NULL) == QN_OK &&
        qn__past_run_parse("the record", &about, &metrics, &run, NULL) == QN_OK)
        copy_recipe(e, qn__json_get(run.facts, "recipe"));
    qn__past_run_release(&run);
    qn__text_release(&about);
    qn__text_release(&metrics);
}

static const entry *recipe_of(qn_runs *runs, uint64_t index, uint32_t n) {
    if (!runs || index >= runs->count)
        return NULL;
    entry *e = &runs->entry[index];
    if (!e->read)
        read_recipe(runs, e);
    return e->value && n < e->keys ? e : NULL;
}

const char *qn_runs_key(qn_runs *runs, uint64_t index, uint32_t n) {
    QN__OWN_FLOATS;
    const entry *e = recipe_of(runs, index, n);
    return e ? e->key[n] : NULL;
}

const char *qn_runs_value(qn_runs *runs, uint64_t index, uint32_t n) {
    QN__OWN_FLOATS;
    const entry *e = recipe_of(runs, index, n);
    return e ? e->value[n] : NULL;
}
