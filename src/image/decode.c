#include "image/decode.h"
#include "image/jpeg.h"
#include "image/png_read.h"

qn_status qn__image_decode(qn__decoder *decoder, const uint8_t *bytes, size_t size,
                           const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                           qn_error *err) {
    if (head->kind == QN__IMAGE_JPEG)
        return qn__jpeg_decode(&decoder->jpeg, bytes, size, head, channels, pixels, err);
    return qn__png_decode(bytes, size, head, channels, pixels, err);
}

void qn__decoder_release(qn__decoder *decoder) {
    qn__jpeg_end(decoder->jpeg);
    decoder->jpeg = NULL;
}

const char *qn__image_library(qn__image_kind kind) {
    return kind == QN__IMAGE_JPEG ? qn__jpeg_library() : qn__png_library();
}
