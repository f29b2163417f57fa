/* Masks as PNG files: the answers of a model of classes of pixels. */
#ifndef QN_SERVE_WATCH_MASKS_H
#define QN_SERVE_WATCH_MASKS_H

#include "serve/watch/watch_units.h"

/* Whether the model predicts masks. */
int qn__watch_has_masks(const qn_model *model);

/* Writes the mask of each unit that was predicted, and sets its name. A unit whose mask cannot have
 * its name gets an error. Fails with QN_IO or QN_MEMORY, and can be repeated then. */
qn_status qn__watch_masks_write(const qn_model *model, const char *folder, qn__watch_unit *units,
                                qn_error *err);

#endif
