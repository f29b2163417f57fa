/* Low-rank adapters (Hu et al. 2021) beside layers of a network that do not train:
 * docs/exactness.md 25.86.
 *
 *     residual { conv 96 1x1 | conv 8 1x1 nobias; layerscale 2; conv 96 1x1 nobias }
 *                main          down               scale         up                     end
 *
 * The block stands in the place of the layer "conv 96 1x1", whose activation and dropout its end
 * has. Where the factor is 1 there is no scale. */
#ifndef QN_MODEL_NETWORK_LORA_H
#define QN_MODEL_NETWORK_LORA_H

#include "model/network/network.h"

/* What a layer is in an adapter. */
typedef enum qn__lora_role {
    QN__LORA_NONE,
    QN__LORA_MAIN,
    QN__LORA_DOWN,
    QN__LORA_SCALE,
    QN__LORA_UP,
    QN__LORA_END
} qn__lora_role;

/* What a user says: "8", "8 alpha 16", "8 alpha 16 on all". */
typedef struct qn__lora {
    uint32_t rank;
    float alpha;    /* the factor is alpha / rank; twice the rank unless the user says it */
    const char *on; /* the end of the text: attention, all, or numbers of layers; NULL: a rule */
} qn__lora;

/* Fails with QN_USAGE. `text` is neither NULL nor empty, and must outlive `out`. */
qn_status qn__lora_parse(const char *text, qn__lora *out, qn_error *err);

/* The one form of recipes, which qn__lora_parse reads. `on` as qn__lora_add has chosen it. */
void qn__lora_text(const qn__lora *lora, qn__text *text);

/* Finds the adapters of this rank. role[network->layers] receives a qn__lora_role for each layer.
 * Returns the number of adapters. */
uint32_t qn__lora_find(const qn__network *network, uint32_t rank, char *role);

/* The same network with adapters beside the layers that `lora` names, whose rule for them it
 * settles. Fails with QN_USAGE where there are none, or where one cannot have an adapter. `out` may
 * be `network`. */
qn_status qn__lora_add(const qn__network *network, qn__lora *lora, qn__network *out, qn_error *err);

/* The network without its adapters of this rank. `out` may be `network`. */
void qn__lora_strip(const qn__network *network, uint32_t rank, qn__network *out);

#endif
