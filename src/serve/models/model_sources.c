/* Where models come from: files and folders, looked at again and again. */
#include "serve/models/models_state.h"

#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FIRST_VERSION[] = "1", ENDING[] = ".safetensors";

/* ------------------------------------------------------------------------------------------ files
 */

qn_status qn__origin_look(qn__models *models, qn__model_origin *source, int asked, qn_error *err) {
    struct stat now = {0};
    const int far = qn__remote_is(source->path); /* it is read only when somebody asks for it */
    if (source->away || !*source->path || (far && !asked))
        return QN_OK;
    if (!far && stat(source->path, &now) != 0)
        return source->served ? QN_OK /* it may come back */
                              : qn__fail_errno(err, "read", source->path);
    if (!far && qn__same_file(&now, &source->stamp))
        return QN_OK;
    source->stamp = now; /* of before the reading: what is written meanwhile is read again */
    const qn_status status = qn__origin_read(models, source, err);
    if (status != QN_OK && !source->served)
        qn__origin_drop(models, source, err ? err->what : "");
    return status;
}

/* --------------------------------------------------------------------------------------- folders
 */

static int ends_so(const char *name, const char *ending) {
    const size_t size = strlen(name), end = strlen(ending);
    return size > end && strcmp(name + size - end, ending) == 0;
}

static int is_there(const char *path) {
    struct stat about;
    return qn__remote_is(path) ? qn__remote_file_is_there(path) : stat(path, &about) == 0;
}

static qn__model_origin *source_at(const qn__models *models, const char *path) {
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->source[i]->path, path) == 0)
            return models->source[i];
    return NULL;
}

/* A version of the folder whose file is gone goes on with another file. NULL: there is none. */
static qn__model_origin *succeed(qn__models *models, const char *folder, const char *name,
                                 const char *version, const char *path) {
    for (size_t i = 0; i < models->count; i++) {
        qn__model_origin *s = models->source[i];
        if (!s->folder || strcmp(s->folder, folder) != 0 || strcmp(s->name, name) != 0 ||
            strcmp(s->version, version) != 0 || is_there(s->path))
            continue;
        char *own = qn__copy_text(path, NULL);
        if (!own)
            return NULL;
        pthread_mutex_lock(&models->lock);
        qn__free(s->path);
        s->path = own;
        pthread_mutex_unlock(&models->lock);
        memset(&s->stamp, 0, sizeof s->stamp);
        return s;
    }
    return NULL;
}

static qn_status look_at(qn__models *models, const char *folder, const char *name,
                         const char *version, const char *path, int asked, qn_error *err) {
    qn__model_origin *source = source_at(models, path);
    if (!source)
        source = succeed(models, folder, name, version, path);
    if (!source)
        source = qn__origin_add(models, name, version, path, folder, err);
    if (!source)
        return err->status;
    source->seen = 1;
    const qn__served *before = source->served;
    const qn_status status = qn__origin_look(models, source, asked || !source->served, err);
    if (models->kept && status == QN_OK && source->served != before)
        qn__models_tell_served(models, source);
    return status;
}

/* Where a walk stands. */
typedef struct walk {
    qn__models *models;
    const qn__model_folder *folder;
    const char *name, *version;
    int asked;   /* 1: files of stores are read again, too */
    int *listed; /* 0: a list of a store could not be had, so nothing in it counts as gone */
} walk;

/* A file of a folder: one that is known, or a new one. */
static qn_status take_file(const walk *w, const char *name, const char *version, const char *path,
                           qn_error *err) {
    qn_error own = {0};
    err = err ? err : &own;
    const qn_status status =
        look_at(w->models, w->folder->path, name, version, path, w->asked, err);
    if (status == QN_OK || !w->models->kept)
        return status;
    qn__models_tell(w->models, path, err);
    return QN_OK;
}

/* Calls `each` for the entries of a folder with their paths, in the order of their names. The first
 * failure is kept; the others are visited all the same. */
typedef qn_status visit(void *user, const char *name, const char *path, qn_error *err);

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static qn_status visit_here(const char *folder, visit *each, void *user, qn_error *err) {
    struct dirent **entry = NULL;
    const int count = scandir(folder, &entry, is_visible, alphasort);
    qn_status status = QN_OK;
    if (count < 0)
        return qn__fail_errno(err, "read", folder);
    for (int i = 0; i < count; i++) {
        qn_error own;
        qn__text path = {0};
        qn__text_add(&path, "%s/%s", folder, entry[i]->d_name);
        const qn_status one =
            path.failed ? QN_MEMORY : each(user, entry[i]->d_name, path.data, &own);
        if (one != QN_OK && status == QN_OK) {
            status = one;
            if (err)
                *err = own;
        }
        qn__text_release(&path);
        free(entry[i]);
    }
    free(entry);
    return status;
}

/* The same of a folder in a store, of whose list only the first parts of the names count. */
typedef struct far_visit {
    size_t begin;    /* of names in addresses */
    char last[1100]; /* the address of the entry before, of a folder with its slash */
    visit *each;
    void *user;
    qn_status status; /* the first failure, and its message */
    qn_error err;
} far_visit;

static qn_status visit_entry(void *user, const char *address, const qn__remote_about *about,
                             qn_error *err) {
    far_visit *v = user;
    char path[sizeof v->last], name[256];
    qn_error own;
    const size_t size = strcspn(address + v->begin, "/");
    const int is_folder = address[v->begin + size] == '/';
    (void)about, (void)err;
    if (address[v->begin] == '.' || size == 0 || size >= sizeof name ||
        v->begin + size + 2 > sizeof path)
        return QN_OK;
    snprintf(path, sizeof path, "%.*s", (int)(v->begin + size) + is_folder, address);
    if (strcmp(path, v->last) == 0)
        return QN_OK;
    memcpy(v->last, path, sizeof path);
    snprintf(name, sizeof name, "%.*s", (int)size, address + v->begin);
    const qn_status one = v->each(v->user, name, path, &own);
    if (one != QN_OK && v->status == QN_OK) {
        v->status = one;
        v->err = own;
    }
    return QN_OK;
}

static qn_status visit_far(const char *folder, visit *each, const walk *w, qn_error *err) {
    qn__text prefix = {0};
    far_visit v = {.each = each, .user = (void *)(uintptr_t)w};
    qn__text_add(&prefix, "%s%s", folder, qn__folder_slash(folder));
    v.begin = prefix.size;
    const qn_status status = prefix.failed ? qn__fail_memory(err, 1, prefix.size)
                                           : qn__remote_list(prefix.data, 0, visit_entry, &v, err);
    qn__text_release(&prefix);
    *w->listed &= status == QN_OK;
    if (status == QN_OK && v.status != QN_OK && err)
        *err = v.err;
    return status == QN_OK ? v.status : status;
}

static qn_status visit_all(const char *folder, visit *each, walk *w, qn_error *err) {
    return qn__remote_is(folder) ? visit_far(folder, each, w, err)
                                 : visit_here(folder, each, w, err);
}

/* FOLDER/NAME/VERSION/x.safetensors; a second such file has a name and version that are taken. */
static qn_status visit_file(void *user, const char *name, const char *path, qn_error *err) {
    const walk *w = user;
    return ends_so(name, ENDING) ? take_file(w, w->name, w->version, path, err) : QN_OK;
}

static qn_status visit_version(void *user, const char *name, const char *path, qn_error *err) {
    walk w = *(const walk *)user;
    w.version = name;
    return qn__path_is_folder(path) ? visit_all(path, visit_file, &w, err) : QN_OK;
}

static qn_status visit_model(void *user, const char *name, const char *path, qn_error *err) {
    walk w = *(const walk *)user;
    w.name = name;
    if (qn__path_is_folder(path))
        return visit_all(path, visit_version, &w, err);
    if (!ends_so(name, ENDING))
        return QN_OK;
    char *own = qn__copy_unquoted(name, strlen(name) - strlen(ENDING), 0, err);
    const qn_status status = own ? take_file(&w, own, FIRST_VERSION, path, err) : QN_MEMORY;
    qn__free(own);
    return status;
}

qn_status qn__models_walk(qn__models *models, const qn__model_folder *folder, qn__walk_depth depth,
                          qn_error *err) {
    int listed = 1;
    walk w = {.models = models,
              .folder = folder,
              .name = folder->name,
              .asked = depth == QN__WALK_ALL,
              .listed = &listed};
    if (depth == QN__WALK_HERE && qn__remote_is(folder->path))
        return QN_OK;
    for (size_t i = 0; i < models->count; i++)
        models->source[i]->seen = 0;
    const qn_status status =
        visit_all(folder->path, *folder->name ? visit_version : visit_model, &w, err);
    for (size_t i = 0; i < models->count; i++) {
        qn__model_origin *s = models->source[i];
        if (s->folder && strcmp(s->folder, folder->path) == 0 && !s->seen && s->served && listed &&
            qn__path_is_folder(folder->path)) {
            qn__origin_drop(models, s, "its file is gone");
            memset(&s->stamp, 0, sizeof s->stamp);
        }
    }
    return status;
}

/* --------------------------------------------------------------------------- what the caller gave
 */

/* The parts of "NAME:VERSION=PATH", which `own` holds. */
typedef struct place {
    char *own;
    const char *name, *version, *path; /* name and version: "" where they are not given */
} place;

static qn_status split(const char *what, place *p, qn_error *err) {
    p->own = qn__copy_text(what, err);
    if (!p->own)
        return QN_MEMORY;
    char *equals = strchr(p->own, '=');
    p->name = p->version = "";
    p->path = p->own;
    if (!equals || memchr(p->own, '/', (size_t)(equals - p->own)))
        return QN_OK;
    *equals = '\0';
    p->path = equals + 1;
    p->name = p->own;
    char *colon = strchr(p->own, ':');
    if (colon) {
        *colon = '\0';
        p->version = colon + 1;
    }
    return QN_OK;
}

static qn_status load_folder(qn__models *models, const place *p, qn_error *err) {
    qn__model_folder *more =
        realloc(models->folder, (models->folders + 1) * sizeof(qn__model_folder));
    if (!more)
        return qn__fail_memory(err, models->folders + 1, sizeof(qn__model_folder));
    models->folder = more;
    qn__model_folder *folder = &more[models->folders];
    folder->path = qn__copy_text(p->path, err);
    folder->name = qn__copy_text(p->name, err);
    if (!folder->path || !folder->name) {
        qn__free(folder->path);
        qn__free(folder->name);
        return QN_MEMORY;
    }
    models->folders++;
    return qn__models_walk(models, folder, QN__WALK_NEW, err);
}

static qn_status load_file(qn__models *models, const place *p, qn_error *err) {
    const char *slash = strrchr(p->path, '/'), *name = slash ? slash + 1 : p->path;
    const size_t size = strlen(name) - (ends_so(name, ENDING) ? strlen(ENDING) : 0);
    char *short_name = qn__copy_unquoted(name, size, 0, err);
    if (!short_name)
        return QN_MEMORY;
    qn_error own;
    qn__model_origin *source =
        qn__origin_add(models, *p->name ? p->name : short_name,
                       *p->version ? p->version : FIRST_VERSION, p->path, NULL, err ? err : &own);
    qn__free(short_name);
    if (!source)
        return err ? err->status : own.status;
    struct stat now;
    if (stat(p->path, &now) == 0)
        source->stamp = now;
    return qn__origin_read(models, source, err);
}

qn_status qn__models_load(qn__models *models, const char *what, qn_error *err) {
    place p;
    qn_status status = split(what, &p, err);
    if (status == QN_OK)
        status = !*p.version && qn__path_is_folder(p.path) ? load_folder(models, &p, err)
                                                           : load_file(models, &p, err);
    qn__free(p.own);
    return status;
}
