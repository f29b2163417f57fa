/* The list of models: who is served under which name. */
#include "serve/models/models_state.h"

#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qn_status qn__models_make(qn__models **out, qn_error *err) {
    pthread_condattr_t attributes;
    *out = qn__alloc(1, sizeof **out, err);
    if (!*out)
        return QN_MEMORY;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&(*out)->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&(*out)->lock, NULL);
    return QN_OK;
}

int qn__same_file(const struct stat *a, const struct stat *b) {
    return a->st_size == b->st_size && a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void qn__models_maker(qn__models *models, const qn__part_maker *maker) {
    models->maker[maker->part] = maker;
}

/* ----------------------------------------------------------------------------- a version's memory
 */

static void free_served(qn__served *s) {
    qn__models *models = s->models;
    for (int p = 0; p < QN__SERVED_PARTS; p++)
        if (s->part[p])
            models->maker[p]->free(s->part[p]);
    qn_model_free(s->owned);
    qn__free(s->name);
    qn__free(s->version);
    qn__free(s->path);
    qn__free(s);
    pthread_mutex_lock(&models->lock);
    models->living--;
    pthread_mutex_unlock(&models->lock);
}

/* A part may be in the middle of the call that gives up the last reference, so another thread frees
 * it: the keeper, or who frees the list. */
void qn__served_release(qn__served *served) {
    if (!served || atomic_fetch_sub(&served->references, 1) != 1)
        return;
    qn__models *models = served->models;
    pthread_mutex_lock(&models->lock);
    served->next = models->dead;
    models->dead = served;
    pthread_cond_broadcast(&models->wake);
    pthread_mutex_unlock(&models->lock);
}

void qn__models_bury(qn__models *models) {
    pthread_mutex_lock(&models->lock);
    qn__served *dead = models->dead;
    models->dead = NULL;
    pthread_mutex_unlock(&models->lock);
    while (dead) {
        qn__served *next = dead->next;
        free_served(dead);
        dead = next;
    }
}

/* ------------------------------------------------------------------------------------------ names
 */

static qn_status check_name(const char *what, const char *text, qn_error *err) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    if (*text && strspn(text, letters) == strlen(text) && strlen(text) < 100)
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

qn__served *qn__models_take(qn__models *models, const char *name, const char *version) {
    qn__served *found = NULL;
    const int any = !version || !*version;
    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->count; i++) {
        qn__served *s = models->source[i]->served;
        if (!s || strcmp(s->name, name) != 0 || (!any && strcmp(s->version, version) != 0))
            continue;
        if (!found || compare_versions(found->version, s->version) < 0)
            found = s;
    }
    if (found)
        atomic_fetch_add(&found->references, 1);
    pthread_mutex_unlock(&models->lock);
    return found;
}

size_t qn__models_list(qn__models *models, void (*each)(void *user, const qn__model_state *state),
                       void *user) {
    size_t served = 0;
    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->count; i++) {
        const qn__model_origin *s = models->source[i];
        const qn__model_state state = {s->name, s->version, s->path, s->served,
                                       s->why ? s->why : ""};
        served += s->served != NULL;
        if (each)
            each(user, &state);
    }
    pthread_mutex_unlock(&models->lock);
    return served;
}

/* --------------------------------------------------------------------------------------- sources
 */

static void free_source(qn__model_origin *s) {
    qn__free(s->name);
    qn__free(s->version);
    qn__free(s->path);
    qn__free(s->folder);
    qn__free(s->why);
    qn__free(s);
}

/* The caller holds the lock. */
static qn_status append(qn__models *models, qn__model_origin *s, qn_error *err) {
    for (size_t i = 0; i < models->count; i++) {
        const qn__model_origin *other = models->source[i];
        if (strcmp(other->name, s->name) != 0 || strcmp(other->version, s->version) != 0)
            continue;
        qn__fail(err, QN_USAGE, "there are two models \"%s\" of version %s", s->name, s->version);
        qn__at(err, "%s, %s", other->path, s->path);
        return qn__remedy(err, QN_USAGE,
                          "give one of them another name or version: NAME:VERSION=PATH");
    }
    if (models->count == models->capacity) {
        const size_t capacity = models->capacity ? 2 * models->capacity : 8;
        qn__model_origin **more = realloc(models->source, capacity * sizeof *more);
        if (!more)
            return qn__fail_memory(err, capacity, sizeof *more);
        models->source = more;
        models->capacity = capacity;
    }
    models->source[models->count++] = s;
    return QN_OK;
}

qn__model_origin *qn__origin_add(qn__models *models, const char *name, const char *version,
                                 const char *path, const char *folder, qn_error *err) {
    if (check_name("name", name, err) != QN_OK || check_name("version", version, err) != QN_OK)
        return NULL;
    qn__model_origin *s = qn__alloc(1, sizeof *s, err);
    if (!s)
        return NULL;
    s->name = qn__copy_text(name, err);
    s->version = qn__copy_text(version, err);
    s->path = qn__copy_text(path, err);
    s->folder = folder ? qn__copy_text(folder, err) : NULL;
    qn_status status =
        s->name && s->version && s->path && (s->folder || !folder) ? QN_OK : QN_MEMORY;
    pthread_mutex_lock(&models->lock);
    if (status == QN_OK)
        status = append(models, s, err);
    pthread_mutex_unlock(&models->lock);
    if (status == QN_OK)
        return s;
    free_source(s);
    return NULL;
}

/* ---------------------------------------------------------------------------------------- telling
 */

/* Whether it was told of as it is now; else it is from now on. Without memory it is told again. */
static int was_told(qn__models *models, const char *path) {
    struct stat now;
    if (stat(path, &now) != 0)
        memset(&now, 0, sizeof now);
    for (size_t i = 0; i < models->tellings; i++) {
        qn__model_told *t = &models->told[i];
        if (strcmp(t->path, path) != 0)
            continue;
        const int same = qn__same_file(&t->stamp, &now);
        t->stamp = now;
        return same;
    }
    qn__model_told *more = realloc(models->told, (models->tellings + 1) * sizeof *more);
    if (!more)
        return 0;
    models->told = more;
    more[models->tellings] = (qn__model_told){qn__copy_text(path, NULL), now};
    models->tellings += more[models->tellings].path != NULL;
    return 0;
}

void qn__models_tell(qn__models *models, const char *path, const qn_error *err) {
    char text[2200];
    const int elsewhere = *err->where && strcmp(err->where, path) != 0;
    if (!models->options.note || was_told(models, path))
        return;
    snprintf(text, sizeof text, "%s is not served as it is now: %s%s%s%s%s", path, err->what,
             elsewhere ? ", at " : "", elsewhere ? err->where : "", *err->remedy ? "; " : "",
             err->remedy);
    models->options.note(models->options.user, text);
}

void qn__models_tell_served(const qn__models *models, const qn__model_origin *source) {
    char text[600];
    if (!models->options.note || !source->served)
        return;
    snprintf(text, sizeof text, "%s version %s is served from its new file, %.16s", source->name,
             source->version, qn_model_digest(source->served->model));
    models->options.note(models->options.user, text);
}

/* ---------------------------------------------------------------------------------------- serving
 */

static void set_served(qn__models *models, qn__model_origin *source, qn__served *served,
                       const char *why) {
    char *text = why ? qn__copy_text(why, NULL) : NULL;
    pthread_mutex_lock(&models->lock);
    qn__served *before = source->served;
    source->served = served;
    qn__free(source->why);
    source->why = text;
    pthread_mutex_unlock(&models->lock);
    qn__served_release(before);
}

void qn__origin_drop(qn__models *models, qn__model_origin *source, const char *why) {
    set_served(models, source, NULL, why);
}

static qn_status make_parts(qn__served *s, qn_error *err) {
    for (int p = 0; p < QN__SERVED_PARTS; p++) {
        const qn__part_maker *maker = s->models->maker[p];
        const qn_status status = maker ? maker->make(s, maker->user, &s->part[p], err) : QN_OK;
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

/* `owned`, which may be NULL, belongs to the list from now on, also after a failure. */
static qn_status serve(qn__models *models, qn__model_origin *source, const qn_model *model,
                       qn_model *owned, qn_error *err) {
    qn__served *s = qn__alloc(1, sizeof *s, err);
    if (!s) {
        qn_model_free(owned);
        return QN_MEMORY;
    }
    pthread_mutex_lock(&models->lock);
    models->living++;
    pthread_mutex_unlock(&models->lock);
    s->models = models;
    s->model = model;
    s->owned = owned;
    atomic_init(&s->references, 1);
    s->name = qn__copy_text(source->name, err);
    s->version = qn__copy_text(source->version, err);
    s->path = qn__copy_text(source->path, err);
    const qn_status status = s->name && s->version && s->path ? make_parts(s, err) : QN_MEMORY;
    if (status == QN_OK)
        set_served(models, source, s, NULL);
    else
        free_served(s);
    return status;
}

qn_status qn__origin_read(qn__models *models, qn__model_origin *source, qn_error *err) {
    qn_model *model = NULL;
    const qn_status status = qn_model_load(source->path, &model, err);
    if (status != QN_OK)
        return status;
    const qn__served *now = source->served; /* this thread alone changes it */
    if (now && strcmp(qn_model_digest(now->model), qn_model_digest(model)) == 0) {
        qn_model_free(model);
        return QN_OK;
    }
    return serve(models, source, model, model, err);
}

qn_status qn__models_add(qn__models *models, const char *name, const char *version,
                         const qn_model *model, qn_error *err) {
    qn_error own;
    qn__model_origin *source =
        qn__origin_add(models, name, version ? version : "1", "", NULL, err ? err : &own);
    if (!source)
        return err ? err->status : own.status;
    return serve(models, source, model, NULL, err);
}

/* Requests that were answered by the server may still be on their way through a model. */
static void bury_all(qn__models *models) {
    pthread_mutex_lock(&models->lock);
    while (models->living > 0) {
        while (!models->dead)
            pthread_cond_wait(&models->wake, &models->lock);
        pthread_mutex_unlock(&models->lock);
        qn__models_bury(models);
        pthread_mutex_lock(&models->lock);
    }
    pthread_mutex_unlock(&models->lock);
}

static void free_list(qn__models *models) {
    for (size_t i = 0; i < models->count; i++) {
        qn__origin_drop(models, models->source[i], NULL);
        free_source(models->source[i]);
    }
    for (size_t i = 0; i < models->folders; i++) {
        qn__free(models->folder[i].path);
        qn__free(models->folder[i].name);
    }
    for (size_t i = 0; i < models->tellings; i++)
        qn__free(models->told[i].path);
    bury_all(models);
    free(models->told);
    free(models->source);
    free(models->folder);
}

void qn__models_free(qn__models *models) {
    if (!models)
        return;
    pthread_mutex_lock(&models->lock);
    models->ends = 1;
    pthread_cond_broadcast(&models->wake);
    pthread_mutex_unlock(&models->lock);
    if (models->kept)
        pthread_join(models->keeper, NULL);
    free_list(models);
    pthread_cond_destroy(&models->wake);
    pthread_mutex_destroy(&models->lock);
    qn__free(models);
}
