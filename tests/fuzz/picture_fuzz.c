/* One image file of any format: its head, its pixels, and these as they are seen. */
#include "fuzz/fuzz.h"
#include "image/decode.h"
#include "image/image_other.h"
#include "image/image_turn.h"
#include "image/mask.h"

#include <string.h>

/* More would take longer than a fuzzer waits. */
enum { MOST = 1 << 20 };

static void refused(qn_status status, const qn_error *err) {
    FUZZ_MUST(status == QN_INPUT || status == QN_MEMORY || status == QN_UNSUPPORTED);
    FUZZ_MUST(status == QN_MEMORY || (err->what[0] && err->remedy[0]));
}

static void decode(const uint8_t *bytes, size_t size, const qn__image_head *head,
                   uint32_t channels) {
    qn__decoder decoder = {0};
    qn_error err = {0};
    const size_t count = (size_t)head->height * head->width * channels;
    uint8_t *pixels = malloc(count), *seen = malloc(count);
    FUZZ_MUST(pixels && seen);
    memset(pixels, 0xA5, count);
    const qn_status status = qn__image_decode(&decoder, bytes, size, head, channels, pixels, &err);
    if (status == QN_OK)
        qn__image_turn(pixels, head, channels, seen);
    else
        refused(status, &err);
    unsigned sum = 0;
    for (size_t i = 0; status == QN_OK && i < count; i++)
        sum += pixels[i] - (unsigned)seen[i];
    FUZZ_MUST(status != QN_OK || sum == 0);
    qn__decoder_release(&decoder);
    free(pixels);
    free(seen);
}

/* The same file as a mask. */
static void decode_mask(const uint8_t *bytes, size_t size, const qn__image_head *head) {
    const qn__resize how = {.height = 3, .width = 5};
    qn_error err = {0};
    uint8_t *pixels = malloc((size_t)head->height * head->width), small[15];
    FUZZ_MUST(pixels != NULL);
    qn_status status = qn__mask_check(bytes, size, head, &err);
    if (status == QN_OK)
        status = qn__mask_decode(bytes, size, head, pixels, &err);
    if (status == QN_OK)
        FUZZ_MUST(qn__resize_nearest(&how, pixels, head->height, head->width, small, &err) ==
                  QN_OK);
    else
        refused(status, &err);
    unsigned sum = 0;
    for (size_t i = 0; status == QN_OK && i < sizeof small; i++)
        sum += small[i];
    FUZZ_MUST(status != QN_OK || sum <= 15 * 255);
    free(pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    /* Of their own size, so that a sanitizer sees what is read after their end. */
    uint8_t *own = malloc(size ? size : 1);
    qn__image_head head;
    qn_error err = {0};
    FUZZ_MUST(own != NULL);
    memcpy(own, bytes, size);
    for (size_t most = size / 2; most < size; most += size / 8 + 1)
        (void)qn__image_head_read(own, most, &head, NULL);
    const qn_status status = qn__image_head_read(own, size, &head, &err);
    if (status != QN_OK)
        refused(status, &err);
    FUZZ_MUST(head.orientation >= 1 && head.orientation <= 8);
    FUZZ_MUST((head.kind == QN__IMAGE_OTHER) == (head.other != QN__OTHER_NONE));
    if (status == QN_OK && (uint64_t)head.width * head.height <= MOST) {
        FUZZ_MUST(head.width > 0 && head.height > 0);
        decode(own, size, &head, 3);
        decode_mask(own, size, &head);
        if (head.channels == 1)
            decode(own, size, &head, 1);
    }
    free(own);
    return 0;
}
