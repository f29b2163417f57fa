/* Tables that were read from text, in the user's cache folder: a snapshot (data_snapshot.h) for
 * each list of files and each way to read it.
 *
 * An entry is used where the file has the stamp with which it was read (base/files/files_stamp.h)
 * and all its digests are right. A missing or invalid entry is therefore not a failure; a problem
 * becomes a note. Two processes may make one at once: the last one stays. */
#ifndef QN_DATA_OPEN_TABLE_CACHE_H
#define QN_DATA_OPEN_TABLE_CACHE_H

#include "base/files/cache_space.h"
#include "base/system/threads.h"
#include "base/text/text.h"
#include "data/bytes/part_files.h"
#include "data/table/data.h"
#include "data/table/table_space.h"

typedef struct qn__table_cache {
    int off;       /* nothing is kept, and nothing is looked for */
    qn__text key;  /* which file, and how it is read */
    uint64_t most; /* the largest useful entry in bytes; a larger one is not faster to read than the
                      text */
    char name[QN__CACHE_ENTRY];
    char stamp[65];
    char note[512];         /* for people; "": nothing */
    qn__table_space buffer; /* for the values while the text is read */
} qn__table_cache;

/* Decides which entry is used, unless cache->off; and where the values are put while the text is
 * read. Small files are read at once: they have no entry. Never fails: without memory there is no
 * cache. `files` and `options` must outlive it. */
void qn__table_cache_begin(qn__table_cache *cache, const qn__part_files *files,
                           const qn_data_options *options);
void qn__table_cache_end(qn__table_cache *cache);

/* Finds the entry and checks it, with the threads of `pool`. 1: `data`, which was all zeros, is the
 * table, mapped where the entry lies. 0: there is none, and `data` is as before. */
int qn__table_cache_load(qn__table_cache *cache, qn__pool *pool, qn_data *data);

/* Keeps a table that was read. If its values are in a file, this file becomes the entry, and the
 * values may move. */
void qn__table_cache_keep(qn__table_cache *cache, qn_data *data);

#endif
