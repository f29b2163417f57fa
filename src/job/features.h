/* Outputs of the layers that do not train (docs/exactness.md 24.61), computed once for each item
 * and kept. The network is cut after these layers: the first part is applied to all items, the
 * second one trains on what it gives. */
#ifndef QN_JOB_FEATURES_H
#define QN_JOB_FEATURES_H

#include "data/table/data.h"
#include "model/recipe/recipe.h"
#include "team/team.h"

enum { QN__FEATURE_SETS = 3 }; /* training, validation, test */

/* A set of items, and the same items with the outputs as their values. */
typedef struct qn__feature_set {
    const qn_data *of;
    qn_data made; /* its labels and weights are those of `of` */
} qn__feature_set;

typedef struct qn__features {
    /* `first` ends with a layer of one output, since a network ends with a dense layer. What that
     * one reads is kept. */
    qn__program first, second;
    qn__layer *layer; /* of both */
    int ready;        /* 1: the sets are made, and the second part trains */
    uint32_t sets;
    qn__feature_set set[QN__FEATURE_SETS];
} qn__features;

/* Whether the outputs are the same in each epoch. Fails with QN_USAGE, in the words of an option.
 */
qn_status qn__features_check(const qn__recipe *recipe, const qn_compute *compute, qn_error *err);

/* Both parts of a program some of whose layers do not train; *out is released in any case. `items`:
 * how many the first part is applied to. */
qn_status qn__features_cut(const qn__program *whole, uint64_t items, qn__features *out,
                           qn_error *err);
void qn__features_release(qn__features *features);

/* Computes the outputs for a set, which lives as long, by a team that has the first part. Fails as
 * qn__apply_all and qn__table_space_make. */
qn_status qn__features_make(qn__features *features, qn__team *team, const qn_data *set,
                            qn_error *err);

/* Loads the first part's parameters, those of the whole network from `parameters` on, into the
 * team. *copy, for qn__free, must live as long as the team. */
qn_status qn__features_load(const qn__features *features, qn__team *team, const float *parameters,
                            float **copy, qn_error *err);

/* The set as the second part sees it; `set` itself where `features` is NULL. */
const qn_data *qn__features_of(const qn__features *features, const qn_data *set);

/* The second part of a state; all of it where `features` is NULL. */
qn__state qn__features_state(const qn__features *features, const qn__state *whole);

/* Loads that part into the team. */
qn_status qn__features_load_state(const qn__features *features, qn__team *team,
                                  const qn__state *whole, qn_error *err);

/* Bytes of all sets, and whether some lie in a file. */
uint64_t qn__features_bytes(const qn__features *features, int *in_file);

#endif
