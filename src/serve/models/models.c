#include "serve/models/models.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct qn__models {
    pthread_mutex_t lock;
    qn__served **served;
    size_t count, capacity;
    const qn__part_maker *maker[QN__SERVED_PARTS];
};

static const char FIRST_VERSION[] = "1";

qn_status qn__models_make(qn__models **out, qn_error *err) {
    *out = qn__alloc(1, sizeof **out, err);
    if (!*out)
        return QN_MEMORY;
    pthread_mutex_init(&(*out)->lock, NULL);
    return QN_OK;
}

void qn__models_maker(qn__models *models, const qn__part_maker *maker) {
    models->maker[maker->part] = maker;
}

static void free_served(qn__served *s) {
    for (int p = 0; p < QN__SERVED_PARTS; p++)
        if (s->part[p])
            s->models->maker[p]->free(s->part[p]);
    qn_model_free(s->owned);
    qn__free(s->name);
    qn__free(s->version);
    qn__free(s->path);
    qn__free(s);
}

void qn__served_release(qn__served *served) {
    if (served && atomic_fetch_sub(&served->references, 1) == 1)
        free_served(served);
}

void qn__models_free(qn__models *models) {
    if (!models)
        return;
    for (size_t i = 0; i < models->count; i++)
        qn__served_release(models->served[i]);
    free(models->served);
    pthread_mutex_destroy(&models->lock);
    qn__free(models);
}

/* ------------------------------------------------------------------------------------------ names
 */

static int is_name(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    return *text && strspn(text, letters) == strlen(text) && strlen(text) < 100;
}

static qn_status check_name(const char *what, const char *text, qn_error *err) {
    if (is_name(text))
        return QN_OK;
    qn__fail(err, QN_USAGE, "the %s \"%s\" of a model is not valid", what, text);
    return qn__remedy(err, QN_USAGE,
                      "give one of letters, digits, \".\", \"_\" and \"-\", at most 99 of them: "
                      "NAME:VERSION=PATH");
}

/* Versions that are numbers are ordered as numbers, others as texts after them. */
static int compare_versions(const char *a, const char *b) {
    char *end_a, *end_b;
    const unsigned long long x = strtoull(a, &end_a, 10), y = strtoull(b, &end_b, 10);
    const int number_a = *end_a == '\0', number_b = *end_b == '\0';
    if (number_a && number_b && x != y)
        return x < y ? -1 : 1;
    if (number_a != number_b)
        return number_a ? -1 : 1;
    return strcmp(a, b);
}

/* The caller holds the lock. */
static qn__served *find(const qn__models *models, const char *name, const char *version) {
    qn__served *found = NULL;
    for (size_t i = 0; i < models->count; i++) {
        qn__served *s = models->served[i];
        if (strcmp(s->name, name) != 0)
            continue;
        if (version && *version && strcmp(s->version, version) == 0)
            return s;
        if (!(version && *version) && (!found || compare_versions(found->version, s->version) < 0))
            found = s;
    }
    return version && *version ? NULL : found;
}

qn__served *qn__models_take(qn__models *models, const char *name, const char *version) {
    pthread_mutex_lock(&models->lock);
    qn__served *found = find(models, name, version);
    if (found)
        atomic_fetch_add(&found->references, 1);
    pthread_mutex_unlock(&models->lock);
    return found;
}

qn__served *qn__models_at(qn__models *models, size_t index) {
    pthread_mutex_lock(&models->lock);
    qn__served *found = index < models->count ? models->served[index] : NULL;
    if (found)
        atomic_fetch_add(&found->references, 1);
    pthread_mutex_unlock(&models->lock);
    return found;
}

size_t qn__models_count(qn__models *models) {
    pthread_mutex_lock(&models->lock);
    const size_t count = models->count;
    pthread_mutex_unlock(&models->lock);
    return count;
}

/* ---------------------------------------------------------------------------------------- loading
 */

static qn_status make_parts(qn__served *s, qn_error *err) {
    for (int p = 0; p < QN__SERVED_PARTS; p++) {
        const qn__part_maker *maker = s->models->maker[p];
        const qn_status status = maker ? maker->make(s, maker->user, &s->part[p], err) : QN_OK;
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

/* The caller holds the lock. */
static qn_status append(qn__models *models, qn__served *s, qn_error *err) {
    if (find(models, s->name, s->version)) {
        qn__fail(err, QN_USAGE, "there are two models \"%s\" of version %s", s->name, s->version);
        return qn__remedy(err, QN_USAGE,
                          "give one of them another name or version: "
                          "NAME:VERSION=PATH");
    }
    if (models->count == models->capacity) {
        const size_t capacity = models->capacity ? 2 * models->capacity : 8;
        qn__served **more = realloc(models->served, capacity * sizeof(qn__served *));
        if (!more)
            return qn__fail_memory(err, capacity, sizeof(qn__served *));
        models->served = more;
        models->capacity = capacity;
    }
    models->served[models->count++] = s;
    return QN_OK;
}

/* Serves a model. `owned` belongs to the list from now on, also after a failure. */
static qn_status serve(qn__models *models, const qn__served *what, qn_error *err) {
    qn__served *s = qn__alloc(1, sizeof *s, err);
    if (!s) {
        qn_model_free(what->owned);
        return QN_MEMORY;
    }
    s->models = models;
    s->model = what->model;
    s->owned = what->owned;
    atomic_init(&s->references, 1);
    s->name = qn__copy_text(what->name, err);
    s->version = qn__copy_text(what->version, err);
    s->path = qn__copy_text(what->path, err);
    qn_status status = s->name && s->version && s->path ? make_parts(s, err) : QN_MEMORY;
    if (status == QN_OK) {
        pthread_mutex_lock(&models->lock);
        status = append(models, s, err);
        pthread_mutex_unlock(&models->lock);
    }
    if (status != QN_OK)
        free_served(s);
    return status;
}

qn_status qn__models_add(qn__models *models, const char *name, const char *version,
                         const qn_model *model, qn_error *err) {
    qn_status status = check_name("name", name, err);
    if (status == QN_OK && version)
        status = check_name("version", version, err);
    qn__served what = {.path = (char[]){""}, .model = model};
    what.name = (char *)(uintptr_t)name;
    what.version = (char *)(uintptr_t)(version ? version : FIRST_VERSION);
    return status == QN_OK ? serve(models, &what, err) : status;
}

/* The parts of "NAME:VERSION=PATH". The text that they are parts of is `own`. */
typedef struct place {
    char *own;
    const char *name, *version, *path;
} place;

static qn_status split(const char *what, place *p, qn_error *err) {
    char *equals, *colon;
    p->own = qn__copy_text(what, err);
    if (!p->own)
        return QN_MEMORY;
    equals = strchr(p->own, '=');
    p->version = FIRST_VERSION;
    if (equals && !memchr(p->own, '/', (size_t)(equals - p->own))) {
        *equals = '\0';
        p->path = what + (equals + 1 - p->own);
        p->name = p->own;
        colon = strchr(p->own, ':');
        if (colon) {
            *colon = '\0';
            p->version = colon + 1;
        }
    } else {
        char *slash = strrchr(p->own, '/'), *name = slash ? slash + 1 : p->own;
        char *ending = strstr(name, ".safetensors");
        if (ending)
            *ending = '\0';
        p->path = what;
        p->name = name;
    }
    const qn_status status = check_name("name", p->name, err);
    return status == QN_OK ? check_name("version", p->version, err) : status;
}

qn_status qn__models_load(qn__models *models, const char *what, qn_error *err) {
    place p = {0};
    qn__served s = {0};
    qn_status status = split(what, &p, err);
    if (status == QN_OK)
        status = qn_model_load(p.path, &s.owned, err);
    if (status == QN_OK) {
        s.model = s.owned;
        s.name = (char *)(uintptr_t)p.name;
        s.version = (char *)(uintptr_t)p.version;
        s.path = (char *)(uintptr_t)p.path;
        status = serve(models, &s, err);
    }
    qn__free(p.own);
    return status;
}
