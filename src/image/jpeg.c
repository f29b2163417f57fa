#include "image/image_formats.h"
#include "image/image_faults.h"

/* Own declarations of the parts of libturbojpeg.so.0 in use (turbojpeg.h of versions 2 and 3). */
enum { PIXELS_RGB = 0, PIXELS_GREY = 6, STOP_ON_WARNING = 8192 };

static struct {
    void *(*create)(void);
    int (*decode)(void *handle, const unsigned char *bytes, unsigned long size,
                  unsigned char *pixels, int width, int pitch, int height, int format, int flags);
    const char *(*text)(void *handle);
    int (*destroy)(void *handle);
} the;

static const qn__library_symbol symbols[] = {{"tjInitDecompress", &the.create},
                                             {"tjDecompress2", &the.decode},
                                             {"tjGetErrorStr2", &the.text},
                                             {"tjDestroy", &the.destroy},
                                             {NULL, NULL}};

qn__optional_library qn__turbojpeg = {.name = "libjpeg-turbo",
                                      .file = "libturbojpeg.so.0",
                                      .debian = "libturbojpeg0",
                                      .fedora = "turbojpeg",
                                      .symbol = symbols};

/* The library would scale an image of another size to what it is told, and the file may have
 * changed since its head was read. The library takes the first frame, as the head does, and refuses
 * a second one; asking it for the size would make it read all tables twice. */
static qn_status check_head(const uint8_t *bytes, size_t size, const qn__image_head *head,
                            qn_error *err) {
    qn__image_head now;
    const qn_status status = qn__image_head_read(bytes, size, &now, err);
    if (status != QN_OK)
        return status;
    if (now.kind == head->kind && now.width == head->width && now.height == head->height)
        return QN_OK;
    return qn__image_changed(err);
}

qn_status qn__jpeg_decode(void **handle, const uint8_t *bytes, size_t size,
                          const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                          qn_error *err) {
    if (qn__image_need(&qn__turbojpeg, "JPEG", err) != QN_OK)
        return QN_UNSUPPORTED;
    if (!*handle)
        *handle = the.create();
    if (!*handle)
        return qn__fail_memory(err, 1, 1 << 16);
    const qn_status status = check_head(bytes, size, head, err);
    if (status != QN_OK)
        return status;
    const int width = (int)head->width, height = (int)head->height;
    /* A warning means that pixels were guessed, as after the end of a truncated file. */
    if (the.decode(*handle, bytes, size, pixels, width, width * (int)channels, height,
                   channels == 1 ? PIXELS_GREY : PIXELS_RGB, STOP_ON_WARNING) != 0)
        return qn__image_broken(err, "the JPEG file is broken: %s", the.text(*handle));
    return QN_OK;
}

void qn__jpeg_end(void *handle) {
    if (handle)
        the.destroy(handle);
}
