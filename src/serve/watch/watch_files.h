/* Files of a watched folder: whether they are complete, and what is in them. */
#ifndef QN_SERVE_WATCH_FILES_H
#define QN_SERVE_WATCH_FILES_H

#include "serve/watch/watch_names.h"
#include "serve/watch/watch_units.h"
#include <sys/stat.h>

/* Of a file. */
static const uint64_t QN__WATCH_MOST_BYTES = (uint64_t)1 << 31;

typedef enum qn__writers {
    QN__WRITERS_NONE,   /* no process has it open for writing */
    QN__WRITERS_SOME,   /* one has */
    QN__WRITERS_UNKNOWN /* the file system does not tell */
} qn__writers;

qn__writers qn__watch_writers(int folder, const char *name);

/* A file's content, in memory of its own: its readers do not see what others do to it meanwhile. */
typedef struct qn__watch_bytes {
    char *bytes; /* for qn__free */
    size_t size;
    struct stat info;
    qn__watch_who who;
} qn__watch_bytes;

/* Reads a file. Where it cannot be read, unit->status and unit->error say so; unless `is_final`,
 * it may be read later. */
qn__skip qn__watch_file_read(int folder, const char *name, int is_final, qn__watch_bytes *out,
                             qn__watch_unit *unit);

/* Reads `size` bytes of an open file into out->bytes; fewer where it became shorter. 0: errno says
 * why not. */
int qn__watch_read_bytes(int file, uint64_t size, qn__watch_bytes *out);

/* Gives a unit the items of a file: of an image, of rows as CSV or JSON, or of a text where its
 * name ends in ".txt"; or its prompts. Sets its status, as qn__body_read and
 * qn__watch_prompts_read. */
void qn__watch_file_items(const qn__watch_units *units, const char *name,
                          const qn__watch_bytes *bytes, qn__watch_unit *unit);

/* QN_INPUT: it has more than QN__WATCH_MOST_BYTES. */
qn_status qn__watch_refuse_size(qn_error *err);

/* Whether it may have more than one item. */
int qn__watch_may_hold_rows(const char *name);

/* Whether it changed in the last seconds, or in the future, as the clocks of others have it. */
int qn__watch_is_fresh(const struct stat *info);

#endif
