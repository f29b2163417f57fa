#include "model/exchange/imported_recipe.h"

#include "base/digest/sha256.h"
#include <string.h>

void qn__recipe_imported(qn__recipe *recipe, const qn__shards *shards) {
    uint8_t digest[32];
    memset(recipe->data, '0', sizeof recipe->data - 1);
    recipe->items = 1;
    qn__shards_digest(shards, digest);
    qn__hex(digest, recipe->init_from);
    qn__recipe_tidy(recipe);
}
