/* Whether a table fits a model. */
#ifndef QN_PREDICT_FITTING_H
#define QN_PREDICT_FITTING_H

#include "data/prepare/encode.h"
#include "model/recipe/recipe.h"

/* What a table has to fit, to be used with the model of this recipe; `what` names it. */
qn__fitting qn__fitting_of(const qn__recipe *recipe, const char *what);

/* Checks that items whose height and width are known have the recipe's shape; `what` names them in
 * messages. Values of another shape would be other pixels. Fails with QN_MISMATCH. */
qn_status qn__shape_check(const qn__recipe *recipe, const qn_data *data, const char *what,
                          qn_error *err);

#endif
