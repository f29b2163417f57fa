/* The rows of pretrained.h by family; the last one of each has no type. */
#ifndef QN_MODEL_EXCHANGE_PRETRAINED_ROWS_H
#define QN_MODEL_EXCHANGE_PRETRAINED_ROWS_H

#include "model/exchange/pretrained.h"

extern const qn__pretrained qn__pretrained_decoders[], qn__pretrained_encoders[];

#endif
