#include "image/decode.h"
#include "image/image_formats.h"
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <sys/stat.h>

/* Of each kind; without a library where none is needed. */
static const struct {
    qn__image_decode_one *decode;
    const char *name;
    qn__optional_library *library;
} kinds[QN__IMAGE_KINDS] = {
    [QN__IMAGE_JPEG] = {qn__jpeg_decode, "jpeg", &qn__turbojpeg},
    [QN__IMAGE_PNG] = {qn__png_decode, "png", &qn__libpng},
    [QN__IMAGE_GIF] = {qn__gif_decode, "gif", &qn__giflib},
    [QN__IMAGE_WEBP] = {qn__webp_decode, "webp", &qn__libwebp},
    [QN__IMAGE_TIFF] = {qn__tiff_decode, "tiff", &qn__libtiff},
    [QN__IMAGE_BMP] = {qn__bmp_decode, "bmp", NULL},
};

qn_status qn__image_decode(qn__decoder *decoder, const uint8_t *bytes, size_t size,
                           const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                           qn_error *err) {
    return kinds[head->kind].decode(&decoder->jpeg, bytes, size, head, channels, pixels, err);
}

void qn__decoder_release(qn__decoder *decoder) {
    qn__jpeg_end(decoder->jpeg);
    decoder->jpeg = NULL;
}

const char *qn__image_kind_name(qn__image_kind kind) { return kinds[kind].name; }

qn__optional_library *qn__image_library(qn__image_kind kind) { return kinds[kind].library; }

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
    for (int kind = 0; kind < QN__IMAGE_KINDS; kind++)
        if (kinds[kind].library)
            add_library(qn__optional_open(kinds[kind].library), to);
}
