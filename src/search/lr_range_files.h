/* The record and the picture of a range of learning rates. */
#ifndef QN_SEARCH_LR_RANGE_FILES_H
#define QN_SEARCH_LR_RANGE_FILES_H

#include <quern/search.h>

/* A range, and what it owns. */
typedef struct qn__lr_run {
    qn_lr_range found; /* the first member: the caller has its address */
    uint32_t steps;
    float *rate; /* `steps` of each */
    double *loss, *smoothed;
    double mean, weight; /* of 24.35 */
    char *recipe, *csv, *svg;
    const char *folder;  /* NULL: none */
    qn_cluster *cluster; /* NULL: one process */
} qn__lr_run;

/* Makes both texts, and writes them where there is a folder. Fails with QN_MISMATCH (another record
 * is there), QN_IO or QN_MEMORY. */
qn_status qn__lr_range_write(qn__lr_run *run, qn_error *err);

#endif
