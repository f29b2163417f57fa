#include "image/decode.h"
#include "image/jpeg.h"
#include "image/png_read.h"
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <sys/stat.h>

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

static void add_library(void *handle, qn__text *to) {
    struct link_map *map = NULL;
    struct stat info;
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || stat(map->l_name, &info) != 0)
        qn__text_add(to, "none\n");
    else
        qn__text_add(to, "%s %jd %jd.%09ld\n", map->l_name, (intmax_t)info.st_size,
                     (intmax_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

void qn__image_libraries_add(qn__text *to) {
    add_library(qn__jpeg_handle(), to);
    add_library(qn__png_handle(), to);
}
