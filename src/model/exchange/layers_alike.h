/* Whether two layers are the same to an export, which leaves dropout out. */
#ifndef QN_MODEL_EXCHANGE_LAYERS_ALIKE_H
#define QN_MODEL_EXCHANGE_LAYERS_ALIKE_H

#include "layer/layer.h"

/* Its text without dropout, or NULL without memory; to be freed with qn__free. */
char *qn__exported_text(qn__layer_text layer);

int qn__layers_alike(qn__layer_text one, qn__layer_text other);

#endif
