/* Model texts: what is read and written again is the same network. */
#include "fuzz/fuzz.h"

#include "model/recipe/model_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static qn__network network, again;
    qn_error err = {0};
    qn__text first = {0}, second = {0};
    char *text = fuzz_text(bytes, size);
    /* Another name than that of a file: lines, comments, ready models. */
    static const qn__labels_like labels = {QN__TASK_CLASSIFY, QN__LOSS_CROSS_ENTROPY, 3, 0};
    if (!strchr(text, '@') && qn__model_source_read(text, &labels, &network, &err) != QN_OK)
        fuzz_check_refusal(err.status, NULL, &err);
    const qn_status status = qn__network_parse(text, &network, &err);
    free(text);
    if (status != QN_OK) {
        fuzz_check_refusal(status, NULL, &err);
        return 0;
    }
    qn__network_text(&network, &first);
    FUZZ_MUST(!first.failed && qn__network_parse(first.data, &again, &err) == QN_OK);
    qn__network_text(&again, &second);
    FUZZ_MUST(!second.failed && strcmp(first.data, second.data) == 0);
    qn__text_release(&first);
    qn__text_release(&second);

    static qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    if (qn__network_program(&network, (qn__shape){3, 8, 9, QN__PICTURE}, layer, &parameters,
                            &err) == QN_OK)
        FUZZ_MUST(parameters > 0 && layer[network.layers - 1].out > 0);
    return 0;
}
