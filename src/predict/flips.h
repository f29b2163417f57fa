/* Predictions of images and their mirror images together: docs/exactness.md 24.64. */
#ifndef QN_PREDICT_FLIPS_H
#define QN_PREDICT_FLIPS_H

#include "data/table/data.h"
#include "model/formats/model_kind.h"
#include "model/recipe/recipe.h"
#include "team/team.h"

/* Refuses a model that is not a network of images, with QN_UNSUPPORTED. `data` says what images it
 * has where the network does not. */
qn_status qn__flips_check(const qn__recipe *recipe, const qn_data *data, qn_error *err);

/* As qn__apply_all for the results that are not NULL; their numbers are those of both images. */
qn_status qn__flips_apply(qn__team *team, const qn__program *program, qn__shape shape,
                          const qn_data *inputs, const qn__model_results *results, qn_error *err);

/* Of an item: of the network's first layer, or else of the data's images. */
qn__shape qn__flips_shape(const qn__recipe *recipe, const qn_data *data);

#endif
