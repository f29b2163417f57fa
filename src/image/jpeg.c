#include "image/jpeg.h"
#include "base/system/library.h"
#include "image/image_faults.h"
#include <pthread.h>
#include <string.h>

/* Own declarations of the parts of libturbojpeg.so.0 in use (turbojpeg.h of versions 2 and 3). */
enum { PIXELS_RGB = 0, PIXELS_GREY = 6, STOP_ON_WARNING = 8192 };

typedef struct turbo {
    qn__library library;
    void *(*create)(void);
    int (*decode)(void *handle, const unsigned char *bytes, unsigned long size,
                  unsigned char *pixels, int width, int pitch, int height, int format, int flags);
    const char *(*text)(void *handle);
    int (*destroy)(void *handle);
} turbo;

static turbo the;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static qn__library_function find(const char *name) { return qn__library_find(&the.library, name); }

static void open_library(void) {
    if (!qn__library_open(&the.library, "libturbojpeg.so.0"))
        return;
    the.create = (void *(*)(void))find("tjInitDecompress");
    the.decode = (int (*)(void *, const unsigned char *, unsigned long, unsigned char *, int, int,
                          int, int, int))find("tjDecompress2");
    the.text = (const char *(*)(void *))find("tjGetErrorStr2");
    the.destroy = (int (*)(void *))find("tjDestroy");
    qn__library_is_whole(&the.library);
}

static const qn__image_need need = {"JPEG", "libjpeg-turbo", "libturbojpeg.so.0", "libturbojpeg0",
                                    "turbojpeg"};

const char *qn__jpeg_library(void) {
    pthread_once(&opened, open_library);
    return the.library.handle ? "libjpeg-turbo (libturbojpeg.so.0)" : NULL;
}

void *qn__jpeg_handle(void) {
    pthread_once(&opened, open_library);
    return the.library.handle;
}

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
    if (!qn__jpeg_handle())
        return qn__image_lacks(&need, err);
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
