/* What the files of this folder share. */
#ifndef QN_SERVE_MODELS_MODELS_STATE_H
#define QN_SERVE_MODELS_MODELS_STATE_H

#include "serve/models/models.h"
#include <pthread.h>
#include <sys/stat.h>

/* A place from which a version comes. The keeper's thread alone changes it, by the lock. */
typedef struct qn__model_origin {
    char *name, *version, *path;
    char *folder; /* that was given and had it; NULL: the file was given */
    qn__served *served;
    char *why;         /* it is not served, or not as the file is now */
    struct stat stamp; /* of the file that was read last, also in vain */
    int away;          /* unloaded by a request */
    int seen;          /* while a folder is looked at */
} qn__model_origin;

/* A folder that was given, and the name before it, or "". */
typedef struct qn__model_folder {
    char *path, *name;
} qn__model_folder;

/* A file or folder that a line on stderr told of, and how it was then. */
typedef struct qn__model_told {
    char *path;
    struct stat stamp; /* zeros: it could not be looked at */
} qn__model_told;

/* A request to the keeper. */
typedef struct qn__model_order qn__model_order;
struct qn__model_order {
    qn__model_order *next;
    char *name;
    int load;
    void (*done)(void *user, const qn_error *err);
    void *user;
};

struct qn__models {
    pthread_mutex_t lock; /* of all below but makers, folders and told */
    pthread_cond_t wake;
    qn__model_origin **source;
    size_t count, capacity;
    qn__served *dead; /* without requests, to be freed */
    uint32_t living;  /* that are not freed, these too */
    qn__model_order *orders;
    int look, ends, kept; /* kept: there is a keeper */
    qn__model_folder *folder;
    qn__model_told *told;
    size_t folders, tellings;
    const qn__part_maker *maker[QN__SERVED_PARTS];
    qn__keeper_options options;
    pthread_t keeper;
};

/* models.c */

/* Whether it is the same file, unchanged. */
int qn__same_file(const struct stat *a, const struct stat *b);

/* Reads a source's file, and serves what it holds in place of what was served before. A file with
 * the same bytes changes nothing. */
qn_status qn__origin_read(qn__models *models, qn__model_origin *source, qn_error *err);
/* Serves nothing of it any more; `why` stays the caller's. */
void qn__origin_drop(qn__models *models, qn__model_origin *source, const char *why);
/* A new source that is not read yet; NULL with a message where memory is short, a name is invalid,
 * or name and version are taken. */
qn__model_origin *qn__origin_add(qn__models *models, const char *name, const char *version,
                                 const char *path, const char *folder, qn_error *err);
/* Says why a file or folder is not served as it is now, once for each state of it. */
void qn__models_tell(qn__models *models, const char *path, const qn_error *err);
/* Tells that a model is served from a new file. */
void qn__models_tell_served(const qn__models *models, const qn__model_origin *source);
/* Frees what has no requests any more. */
void qn__models_bury(qn__models *models);

/* model_sources.c: brings the sources in line with a folder: reads new files and changed ones,
 * takes away those that left. The first failure is in *err; the others are read all the same. Once
 * there is a keeper, it tells of each file, and only a folder that cannot be read is a failure. */
typedef enum qn__walk_depth {
    QN__WALK_HERE, /* a folder in a store is passed over */
    QN__WALK_NEW,  /* it is listed, and new files are read */
    QN__WALK_ALL   /* all its files are read again */
} qn__walk_depth;
qn_status qn__models_walk(qn__models *models, const qn__model_folder *folder, qn__walk_depth depth,
                          qn_error *err);
/* Reads the file again if it is not as it was; at an address only where it was `asked` for. */
qn_status qn__origin_look(qn__models *models, qn__model_origin *source, int asked, qn_error *err);

#endif
