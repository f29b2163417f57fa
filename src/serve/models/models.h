/* The models that a server has: names, versions, and what other rooms made for each of them.
 *
 * A request uses a version between qn__models_take and qn__served_release. A version that was
 * replaced meanwhile stays until its last request has ended; the keeper's thread frees it then. */
#ifndef QN_SERVE_MODELS_MODELS_H
#define QN_SERVE_MODELS_MODELS_H

#include "base/error.h"
#include <quern/model.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct qn__models qn__models;

/* What rooms keep beside a model: one part of each kind, or NULL. */
typedef enum qn__served_part {
    QN__PART_PREDICTOR, /* items of many requests computed together: serve/inference */
    QN__PART_TEXT,      /* texts that a model of next tokens continues: serve/text */
    QN__SERVED_PARTS
} qn__served_part;

/* A version of a model. Not changed once it is served. */
typedef struct qn__served qn__served;
struct qn__served {
    char *name, *version;
    char *path; /* "": it was not read from a file */
    const qn_model *model;
    void *part[QN__SERVED_PARTS];
    qn_model *owned; /* freed with it; NULL: it is the caller's */
    qn__models *models;
    qn__served *next; /* of those that wait to be freed */
    atomic_int references;
};

/* How a part is made when a model is read, and freed after its last request. make may leave *part
 * NULL where the model needs none. */
typedef struct qn__part_maker {
    qn__served_part part;
    qn_status (*make)(const qn__served *served, void *user, void **part, qn_error *err);
    void (*free)(void *part);
    void *user;
} qn__part_maker;

qn_status qn__models_make(qn__models **out, qn_error *err);
/* Ends the keeper, and frees the models; requests have ended. Accepts NULL. */
void qn__models_free(qn__models *models);
/* Before the first model. The maker stays the caller's, and valid. */
void qn__models_maker(qn__models *models, const qn__part_maker *maker);

/* "PATH", "NAME=PATH" or "NAME:VERSION=PATH"; PATH is a file, or without a version a folder:
 *   FOLDER/NAME.safetensors              version 1
 *   FOLDER/NAME/VERSION/any.safetensors  one file, as Triton has its repository
 * With a name, the folder is that of its versions: FOLDER/VERSION/any.safetensors. */
qn_status qn__models_load(qn__models *models, const char *what, qn_error *err);
qn_status qn__models_add(qn__models *models, const char *name, const char *version,
                         const qn_model *model, qn_error *err);

/* The version of that name, or of a NULL or empty `version` the greatest; NULL: there is none. */
qn__served *qn__models_take(qn__models *models, const char *name, const char *version);
void qn__served_release(qn__served *served);

/* A version, whether it is served or not. */
typedef struct qn__model_state {
    const char *name, *version, *path;
    const qn__served *served; /* NULL: it is not */
    const char *why;          /* then: "unloaded", or what reading it told */
} qn__model_state;
/* Calls `each` for all versions, in the order in which they came; it must not call these functions.
 * Returns how many are served. `each` may be NULL. */
size_t qn__models_list(qn__models *models, void (*each)(void *user, const qn__model_state *state),
                       void *user);

/* ------------------------------------------------------------------------------------- the keeper
 *
 * A thread that reads files again when they changed. What cannot be read is told to `note`, and the
 * version before stays. */

typedef struct qn__keeper_options {
    double seconds;  /* it looks at the files so often; 0: only when it is asked */
    qn_note_fn note; /* may be NULL */
    void *user;
} qn__keeper_options;

qn_status qn__models_keep(qn__models *models, const qn__keeper_options *options, qn_error *err);
/* Lets it look at the files now. */
void qn__models_look(qn__models *models);
/* Lets it read all versions of a name (`load` 1), or take them away; `done` is called on its thread
 * with the result. Fails with QN_MEMORY, or QN_INPUT (it ends); `done` is not called then. */
qn_status qn__models_ask(qn__models *models, const char *name, int load,
                         void (*done)(void *user, const qn_error *err), void *user, qn_error *err);

#endif
