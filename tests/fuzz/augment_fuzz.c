/* Texts of --augment: what is read and written again means the same, and its words act on an image
 * that they accept. */
#include "fuzz/fuzz.h"

#include "image/augment_text.h"

static void act(const qn__augment *augment) {
    enum { ROWS = 5, COLUMNS = 6, CHANNELS = 3 };
    uint8_t item[CHANNELS * ROWS * COLUMNS], changed[sizeof item];
    /* Large kernels and paddings take memory that a device has, and a run of the corpus has not. */
    const size_t space = qn__augment_space(augment);
    if (space > (size_t)1 << 24)
        return;
    void *own = malloc(space + 1);
    FUZZ_MUST(own != NULL);
    for (size_t i = 0; i < sizeof item; i++)
        item[i] = (uint8_t)(37 * i);
    qn__augment_item(augment, 1, 2, 3, 1, item, changed, own);
    free(own);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn__augment augment, again;
    qn_error err = {0};
    qn__text first = {0}, second = {0};
    char *text = fuzz_text(bytes, size);
    const qn_status status = qn__augment_parse(text, &augment, &err);
    free(text);
    if (status != QN_OK) {
        fuzz_check_refusal(status, NULL, &err);
        return 0;
    }
    qn__augment_add_text(&augment, &first);
    FUZZ_MUST(!first.failed);
    FUZZ_MUST(qn__augment_parse(first.data, &again, &err) == QN_OK);
    qn__augment_add_text(&again, &second);
    FUZZ_MUST(!second.failed && first.size == second.size);
    FUZZ_MUST(first.size == 0 || memcmp(first.data, second.data, first.size) == 0);
    qn__text_release(&first);
    qn__text_release(&second);
    augment.shape = (qn__shape){3, 5, 6, QN__PICTURE};
    const qn_status fits = qn__augment_check(&augment, &err);
    if (fits == QN_OK && augment.words > 0)
        act(&augment);
    else if (fits != QN_OK)
        fuzz_check_refusal(fits, NULL, &err);
    return 0;
}
