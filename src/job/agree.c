/* What the ranks of a training or a prediction compare. */
#include "job/agree.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "cluster/agreement.h"
#include <quern/cluster.h>
#include <quern/version.h>
#include <stdio.h>
#include <string.h>

enum { DESCRIPTION = 160 };

/* "5000 items of 784 features, digest 4f..."; "none". */
static const char *describe(const qn_data *data, char text[DESCRIPTION]) {
    if (data)
        snprintf(text, DESCRIPTION, "%llu items of %u features, digest %s",
                 (unsigned long long)qn_data_items(data), qn_data_features(data),
                 qn_data_digest(data));
    else
        snprintf(text, DESCRIPTION, "none");
    return text;
}

static const char *contract(char text[16]) {
    snprintf(text, 16, "%d", QN_CONTRACT);
    return text;
}

static const char other_version[] = "install the same version of Quern everywhere";
static const char other_data[] =
    "give every machine the same file, or let rank 0 send it: `share.from_first`";
static const char other_options[] = "start all ranks with the same options";

/* The recipe, or its digest where the names of a wide table make it too long to be sent around:
 * which of them differs is then not said. */
static const char *short_recipe(const char *json, char text[80]) {
    uint8_t hash[32];
    char hex[65];
    if (!json)
        return "";
    if (strlen(json) < QN__AGREED_BYTES / 2)
        return json;
    qn__sha256_of(json, strlen(json), hash);
    qn__hex(hash, hex);
    snprintf(text, 80, "digest %s", hex);
    return text;
}

qn_status qn__agree_to_train(const qn_train_options *o, const qn__recipe *recipe,
                             const qn_data *train, const qn_data *valid, const qn_data *test,
                             qn_status status, qn_error *err) {
    char version[16], sets[3][DESCRIPTION];
    char *json = NULL, digest[80];
    if (!o->compute.cluster)
        return status;
    if (status == QN_OK)
        status = qn__recipe_json(recipe, &json, err);
    const size_t size = sizeof(qn_agreement);
    const qn_agreement items[] = {
        {size, "the version of Quern", qn_version(), other_version},
        {size, "the exactness contract", contract(version), other_version},
        {size, "the training data", describe(train, sets[0]), other_data},
        {size, "the validation set", describe(valid, sets[1]), other_data},
        {size, "the test set", describe(test, sets[2]), other_data},
        {size, "the recipe", short_recipe(json, digest), other_options},
        {size, "`train.checkpoint_dir`", o->checkpoint_dir ? "a folder" : "none", other_options},
        {size, "`train.resume`", o->resume ? "given" : "not given", other_options},
        {size, "`train.trace`", o->trace ? "a file" : "none", other_options},
        {size, "`train.run_dir`", o->run_dir ? "a folder" : "none", other_options},
        {size, "`train.report`", o->report ? "a file" : "none", other_options},
        {size, "`train.plots`", o->plots ? "a folder" : "none", other_options},
        {size, "`compute.cache_features`", o->compute.cache_features ? "given" : "not given",
         other_options},
    };
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    status = qn_cluster_agree(o->compute.cluster, &own, items,
                              (uint32_t)(sizeof items / sizeof *items), err);
    qn__free(json);
    return status;
}

qn_status qn__agree_to_predict(qn_cluster *cluster, const char *model_digest, const qn_data *data,
                               const char *results, qn_status status, qn_error *err) {
    char version[16], set[DESCRIPTION];
    if (!cluster)
        return status;
    const size_t size = sizeof(qn_agreement);
    const qn_agreement items[] = {
        {size, "the version of Quern", qn_version(), other_version},
        {size, "the exactness contract", contract(version), other_version},
        {size, "the model", model_digest, "give every machine the same model file"},
        {size, "the data", describe(data, set), other_data},
        {size, "the choice of results", results, other_options},
    };
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    return qn_cluster_agree(cluster, &own, items, (uint32_t)(sizeof items / sizeof *items), err);
}

qn_status qn__agree_to_generate(qn_cluster *cluster, const char *model_digest, const char *prompts,
                                const char *options, const char *batch, qn_status status,
                                qn_error *err) {
    char version[16], digest[80];
    const size_t size = sizeof(qn_agreement);
    const qn_agreement items[] = {
        {size, "the version of Quern", qn_version(), other_version},
        {size, "the exactness contract", contract(version), other_version},
        {size, "the model", model_digest, "give every machine the same model file"},
        {size, "the prompts", prompts, "give every machine the same prompts"},
        {size, "the options", short_recipe(options, digest), other_options},
        {size, "`generate.batch`", batch, other_options},
    };
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    return qn_cluster_agree(cluster, &own, items, (uint32_t)(sizeof items / sizeof *items), err);
}
