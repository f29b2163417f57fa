/* The models that a server has: names, versions, and what other rooms made for each of them.
 *
 * A request uses a version between qn__models_take and qn__served_release. A version that was
 * replaced meanwhile stays until its last request has ended. */
#ifndef QN_SERVE_MODELS_MODELS_H
#define QN_SERVE_MODELS_MODELS_H

#include "base/error.h"
#include <quern/model.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct qn__models qn__models;

/* What rooms keep beside a model: one part of each kind, or NULL. */
typedef enum qn__served_part {
    QN__PART_BATCHER, /* items of many requests computed together: serve/batch */
    QN__PART_TEXT,    /* texts that a model of next tokens continues: serve/text */
    QN__SERVED_PARTS
} qn__served_part;

/* A version of a model. Not changed once it is served. */
typedef struct qn__served {
    char *name, *version;
    char *path; /* "": it was not read from a file */
    const qn_model *model;
    void *part[QN__SERVED_PARTS];
    qn_model *owned; /* freed with it; NULL: it is the caller's */
    qn__models *models;
    atomic_int references;
} qn__served;

/* How a part is made when a model is read, and freed after its last request. make may leave *part
 * NULL where the model needs none. */
typedef struct qn__part_maker {
    qn__served_part part;
    qn_status (*make)(const qn__served *served, void *user, void **part, qn_error *err);
    void (*free)(void *part);
    void *user;
} qn__part_maker;

qn_status qn__models_make(qn__models **out, qn_error *err);
/* Frees the models; requests have ended. Accepts NULL. */
void qn__models_free(qn__models *models);
/* Before the first model. The maker stays the caller's, and valid. */
void qn__models_maker(qn__models *models, const qn__part_maker *maker);

/* "PATH", "NAME=PATH" or "NAME:VERSION=PATH". */
qn_status qn__models_load(qn__models *models, const char *what, qn_error *err);
qn_status qn__models_add(qn__models *models, const char *name, const char *version,
                         const qn_model *model, qn_error *err);

/* The version of that name, or of a NULL or empty `version` the greatest; NULL: there is none. */
qn__served *qn__models_take(qn__models *models, const char *name, const char *version);
void qn__served_release(qn__served *served);

/* Version number `index` of all, in the order in which they came; NULL after the last. */
qn__served *qn__models_at(qn__models *models, size_t index);
size_t qn__models_count(qn__models *models);

#endif
