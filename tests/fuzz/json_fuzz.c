/* JSON texts, and recipes, which are JSON in one way of writing only. */
#include "fuzz/fuzz.h"

#include "base/text/json.h"
#include "base/memory.h"
#include "model/recipe/recipe.h"

static size_t walk(const qn__json_node *node, int depth) {
    size_t nodes = 1;
    uint64_t number;
    float real;
    FUZZ_MUST(depth <= 64);
    if (qn__json_string(node))
        FUZZ_MUST(strlen(qn__json_string(node)) < 1u << 30);
    qn__json_u64(node, &number);
    if (qn__json_float(node, &real))
        FUZZ_MUST(real - real == 0);
    for (size_t i = 0; i < qn__json_count(node); i++) {
        const qn__json_node *child = qn__json_at(node, i);
        FUZZ_MUST(child != NULL);
        if (qn__json_is_object(node)) /* no key is there twice */
            FUZZ_MUST(qn__json_get(node, qn__json_key(child)) == child);
        nodes += walk(child, depth + 1);
    }
    return nodes;
}

static void fuzz_recipe(const char *text, size_t size) {
    qn__recipe recipe;
    qn_error err = {0};
    char *again = NULL;
    const qn_status status = qn__recipe_parse(text, size, &recipe, &err);
    if (status != QN_OK) {
        fuzz_check_refusal(status, NULL, &err);
        return;
    }
    FUZZ_MUST(qn__recipe_json(&recipe, &again, &err) == QN_OK);
    FUZZ_MUST(strlen(again) == size && memcmp(again, text, size) == 0);
    qn__free(again);
    qn__recipe_release(&recipe);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn__json *json = NULL;
    qn_error err = {0};
    const qn_status status = qn__json_parse((const char *)bytes, size, &json, &err);
    if (status == QN_OK)
        FUZZ_MUST(walk(qn__json_root(json), 0) <= size);
    else
        fuzz_check_refusal(status, json, &err);
    qn__json_free(json);
    fuzz_recipe((const char *)bytes, size);
    return 0;
}
