/* Recipes of user kernels: what is read has its kernel, a shape and what is compared. */
#include "fuzz/fuzz.h"

#include "userkernel/run/user_kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn_error err = {0};
    qn_kernel *kernel = NULL;
    const qn_status status =
        qn__user_recipe_read((const char *)bytes, size, "k.recipe.json", &kernel, &err);
    if (status != QN_OK) {
        fuzz_check_refusal(status, kernel, &err);
        FUZZ_MUST(err.remedy[0] != '\0' && err.where[0] != '\0');
        return 0;
    }
    FUZZ_MUST(kernel->is_recipe && qn_kernel_dimensions(kernel) > 0 && kernel->shape[0] > 0);
    for (uint32_t i = 0; i < qn_kernel_parts(kernel); i++) {
        const qn__user_bound *b = &kernel->part[i];
        const qn__user_part *part = &kernel->source.part[i];
        FUZZ_MUST(part->use == QN__USER_SCALAR   ? b->has_scalar
                  : qn__user_part_is_array(part) ? strlen(b->wanted) == 64
                                                 : b->expects > 0);
    }
    qn_kernel_free(kernel);
    return 0;
}
