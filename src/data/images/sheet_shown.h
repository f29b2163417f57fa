/* What a training with seed 1 sees of an item, for a contact sheet. */
#ifndef QN_DATA_IMAGES_SHEET_SHOWN_H
#define QN_DATA_IMAGES_SHEET_SHOWN_H

#include "data/table/data.h"
#include "num/augment.h"
#include "num/mix.h"

/* Of one data set. qn__sheet_shown_begin fills it. */
typedef struct qn__sheet_shown {
    const qn_data *data;
    qn__augment augment;    /* without words: values stay as they are */
    qn__mix mix;            /* alpha is 0: items are not mixed */
    int masked;             /* 1: items have masks */
    uint8_t *values, *mask; /* of the item that was shown last; `mask` where items have masks */
    uint64_t partner;       /* with which it was mixed */
    qn__mixing mixing;      /* and how */
    uint8_t *other;         /* the partner's values */
    void *space;
} qn__sheet_shown;

/* Reads and checks the options. Fails with QN_USAGE, QN_INPUT or QN_MEMORY. To be ended in any case
 * where *shown was {0} before. */
qn_status qn__sheet_shown_begin(qn__sheet_shown *shown, const qn_data *data,
                                const qn_sheet_options *options, qn_error *err);
void qn__sheet_shown_end(qn__sheet_shown *shown);

/* Whether a training changes items. */
int qn__sheet_shown_changes(const qn__sheet_shown *shown);

/* An item as it is in an epoch. */
void qn__sheet_shown_at(qn__sheet_shown *shown, uint64_t item, uint32_t epoch);
/* An item as it is. */
void qn__sheet_shown_plain(qn__sheet_shown *shown, uint64_t item);

#endif
