/* Ranks agree on texts, of which recipes are compared key by key. */
#include "base/system/float_state.h"
#include "cluster/agreement.h"
#include "model/recipe/recipe.h"

qn_status qn_cluster_agree(qn_cluster *cluster, const qn_error *own, const qn_agreement *item,
                           uint32_t count, qn_error *err) {
    QN__OWN_FLOATS;
    return qn__cluster_agree(cluster, own, item, count, qn__recipe_differences, err);
}
