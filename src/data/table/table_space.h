/* Where the values of a table are put while it is read: memory, or a file of the cache folder.
 *
 * A file is used where the values would take more than half of the available memory. The system
 * writes its pages to the disk when it needs their memory, so such a table may be larger than
 * memory. It becomes the entry of the cache (table_cache.h), or is removed with the table.
 *
 * Of a part, the other ranks of the machine have theirs at the same time, and the work with it
 * needs memory for items of others. So the ranks divide the available memory, and where there is to
 * be no file, a part takes at most two thirds of it. */
#ifndef QN_DATA_TABLE_TABLE_SPACE_H
#define QN_DATA_TABLE_TABLE_SPACE_H

#include "data/table/data.h"
#include <sys/stat.h>

/* How a table is read. */
typedef struct qn__table_space {
    int no_file;       /* 1: the user wants no cache */
    const char *path;  /* what is read, for messages */
    const char *entry; /* the name of the entry that the table may replace; "": none */
    uint64_t before;   /* bytes in the file before the values, a multiple of 64 */
    uint32_t ranks;    /* of this machine, of which each has a part; 0: it is not a part */
} qn__table_space;

/* Space for the values of data->items items of the type and the features that `data` has, all
 * zeros: data->values, data->memory and data->release; data->in_file is that where it is a file.
 * What a call before made is released first. `data->buffer` says how; NULL: in memory. Fails with
 * QN_MEMORY; the remedy says what to do if the table needs a file and cannot have one. */
qn_status qn__table_space_make(qn_data *data, qn_error *err);

/* Takes the values of `data`, as above, from where they lie already: in the plain file `file`, open
 * and seen as `seen`, from byte `begin` on, little-endian. 1: data->values are there; the file may
 * change, which qn__data_check_file finds. 0: qn__table_space_make has to be called; it needs no
 * file of the cache, or the values cannot be used in place. */
int qn__table_space_borrow(qn_data *data, int file, const struct stat *seen, uint64_t begin);

/* More space: for data->items items, of which the first `kept` stay. Fails as above; then nothing
 * has changed but data->items. */
qn_status qn__table_space_grow(qn_data *data, uint64_t kept, qn_error *err);

/* For a reader that fills a table from its beginning: `items` items are there. */
void qn__table_space_wrote(const qn_data *data, uint64_t items);

/* Converts a table of bytes to floats, in new memory: the values of the first `items` items, and
 * zeros for the others. Fails as above; `data` has then no values. */
qn_status qn__table_space_widen(qn_data *data, uint64_t items, qn_error *err);

/* The values, to be written while the table is read. */
static inline void *qn__table_space_values(const qn_data *data) {
    return (void *)(uintptr_t)data->values;
}

#endif
