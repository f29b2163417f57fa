/* The names of a watched folder, and how far each is. */
#ifndef QN_SERVE_WATCH_NAMES_H
#define QN_SERVE_WATCH_NAMES_H

#include "base/error.h"
#include <stdint.h>
#include <sys/stat.h>

typedef enum qn__name_state {
    QN__NAME_NEW,    /* not complete yet, as far as is known */
    QN__NAME_QUEUED, /* is read and answered */
    QN__NAME_DONE    /* its answer is stored */
} qn__name_state;

typedef struct qn__watch_name {
    char *name;
    char *version;          /* of an object in a store, or NULL */
    int64_t size, modified; /* when it was looked at, in ns; size -1: it was not */
    uint64_t looked;        /* the number of the look at all files that saw it */
    double failed;          /* when it could not be read, as it is now, for the first time; or 0 */
    qn__name_state state;
} qn__watch_name;

typedef struct qn__watch_names {
    qn__watch_name **slot;
    uint64_t slots, count;
} qn__watch_names; /* begins as {0} */

/* The entry of the name, which is made where there is none; NULL if out of memory. */
qn__watch_name *qn__watch_names_get(qn__watch_names *names, const char *name, qn_error *err);

/* Forgets all that are not queued and that the look `looked` did not see. */
void qn__watch_names_sweep(qn__watch_names *names, uint64_t looked);

void qn__watch_names_release(qn__watch_names *names);

/* Nanoseconds of a file's last change. */
int64_t qn__modified(const struct stat *info);

/* What tells a file from others, whatever its name is. */
typedef struct qn__watch_who {
    uint64_t device, inode, size;
    int64_t modified, born; /* in ns; `born` 0: it is not known */
} qn__watch_who;

/* Files that were read, so that one that gets another name is not read again. */
typedef struct qn__watch_identity {
    uint64_t file; /* 0: an empty place */
    char *name;    /* NULL: it is forgotten */
} qn__watch_identity;

typedef struct qn__watch_identities {
    qn__watch_identity *slot;
    uint64_t slots, count;
} qn__watch_identities; /* begins as {0} */

/* The name under which the file was noted; NULL: it was not, and is noted under `name` now, unless
 * memory is short. */
const char *qn__watch_identities_find(qn__watch_identities *all, const qn__watch_who *who,
                                      const char *name);
void qn__watch_identities_forget(qn__watch_identities *all, const qn__watch_who *who);
void qn__watch_identities_release(qn__watch_identities *all);

#endif
