/* Reading the part of another rank again, after that has ended. */
#ifndef QN_DATA_PARTS_PARTS_READ_H
#define QN_DATA_PARTS_PARTS_READ_H

#include "data/parts/parts_deal.h"

/* The files of all ranks, with whole paths: those of rank r from first[r] on. */
typedef struct qn__part_paths {
    uint64_t *first; /* ranks + 1 */
    char **path;
    char **labels;   /* as many; NULL: there are none */
    uint32_t *share; /* as many: which of `shares` the rank has that reads it first */
    uint32_t shares;
    int keyed;    /* 1: folders name columns; such files are not read again */
    int shared;   /* 1: the ranks have shares of the images of one folder or archive */
    int encloses; /* 1: folders or archives of images */
} qn__part_paths;

/* Collective: fills parts->paths. Fails as qn__parts_gather_blobs. */
qn_status qn__parts_keep_paths(qn_parts *parts, const qn__parts_lot *lot, qn_error *err);
void qn__parts_drop_paths(qn_parts *parts);

/* The files of a rank; the paths stay those of parts->paths. Free out->file. */
qn_status qn__parts_files_of(const qn_parts *parts, uint32_t rank, qn__file_list *out,
                             qn_error *err);

/* Reads the part of a rank again, under the schema of the whole; not collective, any thread. The
 * caller compares its digest. Fails as qn_data_open_files, and with QN_MISMATCH where the files do
 * not fit the whole any more. */
qn_status qn__parts_read(const qn_parts *parts, uint32_t rank, qn_data **out, qn_error *err);

#endif
