/* Tensor files, indices of several, and models: qn__tensors_from_bytes, qn__shards_read,
 * qn__model_from_bytes. */
#include "fuzz/fuzz.h"

#include "base/digest/sha256.h"
#include "model/formats/model.h"
#include "model/formats/safetensors.h"
#include "model/formats/shards.h"
#include "predict/model_kinds.h"
#include <math.h>

static void check_tensors(const qn__tensors *tensors, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < qn__tensors_count(tensors); i++) {
        const qn__tensor_view *view = qn__tensors_at(tensors, i);
        FUZZ_MUST(view->rows > 0 &&
                  view->count == view->rows * (view->columns ? view->columns : 1));
        FUZZ_MUST(view->bytes >= bytes && view->count <= size / 4);
        FUZZ_MUST((size_t)(view->bytes - bytes) + view->count * 4 <= size);
        FUZZ_MUST(qn__tensors_find(tensors, view->name) == view);
    }
    uint8_t digest[32], wanted[32];
    qn__tensors_file_digest(tensors, digest);
    qn__sha256_of(bytes, size, wanted);
    FUZZ_MUST(memcmp(digest, wanted, sizeof digest) == 0);
    qn__tensors_note(tensors, "recipe");
}

/* The same bytes as the file of another program: whatever was accepted above is accepted here. */
static void check_any(const uint8_t *bytes, size_t size, int accepted) {
    qn__tensors *tensors = NULL;
    qn_error err = {0};
    const qn_status status = qn__tensors_any_from_bytes(bytes, size, "fuzzed", &tensors, &err);
    FUZZ_MUST(status == QN_OK || !accepted);
    if (status != QN_OK)
        fuzz_check_refusal(status, tensors, &err);
    for (size_t i = 0; status == QN_OK && i < qn__tensors_count(tensors); i++) {
        const qn__tensor_view *view = qn__tensors_at(tensors, i);
        FUZZ_MUST(view->count > 0 && view->bytes >= bytes && view->dimensions <= 4);
        if (view->type != QN__TENSOR_OTHER)
            (void)(qn__tensor_float(view, 0) + qn__tensor_float(view, view->count - 1));
    }
    qn__tensors_free(tensors);
}

/* The same bytes as a file or as an index. */
static void check_shards(const uint8_t *bytes, size_t size) {
    qn__shards shards;
    qn_error err = {0};
    const qn_status status = qn__shards_read(fuzz_file(0, bytes, size), &shards, &err);
    if (status != QN_OK)
        fuzz_check_refusal(status, shards.file, &err);
    for (size_t i = 0; status == QN_OK && i < shards.tensors; i++)
        FUZZ_MUST(shards.view[i]->count > 0 && shards.view[i]->type_name);
    qn__shards_release(&shards);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn__tensors *tensors = NULL;
    qn_model *model = NULL;
    qn_error err = {0};
    qn_status status = qn__tensors_from_bytes(bytes, size, "fuzzed", &tensors, &err);
    if (status == QN_OK)
        check_tensors(tensors, bytes, size);
    else
        fuzz_check_refusal(status, tensors, &err);
    qn__tensors_free(tensors);
    check_any(bytes, size, status == QN_OK);
    check_shards(bytes, size);

    err = (qn_error){0};
    status = qn__model_from_bytes(bytes, size, "fuzzed", NULL, &model, &err);
    if (status != QN_OK) {
        fuzz_check_refusal(status, model, &err);
        return 0;
    }
    FUZZ_MUST(*qn_model_kind(model) && qn_model_inputs(model) > 0 && qn_model_outputs(model) > 0);
    for (uint64_t i = 0; i < qn_model_parameters(model); i++)
        if (qn_model_layers(model) > 0)
            FUZZ_MUST(isfinite(qn__model_parameters(model)[i]));
        else /* all tensors are one array */
            FUZZ_MUST(isfinite(model->tensor->real[i]));
    qn_model_free(model);
    return 0;
}
