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
    int64_t size, modified; /* when it was looked at, in ns; size -1: it was not */
    uint64_t looked;        /* the number of the look at the folder that saw it */
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

/* Files that were read, so that one that gets another name is not read again. */
typedef struct qn__watch_identities {
    uint64_t *slot; /* pairs: of a file, and of its name */
    uint64_t slots, count;
} qn__watch_identities; /* begins as {0} */

/* Notes the file under the name. 1: it was noted under another one. If memory is short, it is not
 * noted. */
int qn__watch_renamed(qn__watch_identities *all, const struct stat *info, const char *name);

#endif
