/* libpng's own interface and not the short one that it also has: the latter converts by the gamma
 * of the file, in arithmetic that may change, and takes 16 bits for linear light. Here a byte of
 * the file is a byte of the image. */
#include "image/png_read.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "image/image_faults.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* Own declarations of the parts of libpng16.so.16 in use; png and info are opaque there too. */
typedef void (*report_fn)(void *png, const char *text);
typedef void (*read_fn)(void *png, unsigned char *to, size_t size);

typedef struct png_functions {
    void *library;
    const char *(*version)(const void *png);
    void *(*create)(const char *version, void *user, report_fn error, report_fn warning);
    void *(*create_info)(void *png);
    void (*destroy)(void **png, void **info, void **end);
    void *(*user)(const void *png);    /* of create */
    void *(*io_user)(const void *png); /* of set_read */
    void (*set_read)(void *png, void *user, read_fn read);
    void (*set_limits)(void *png, uint32_t width, uint32_t height);
    void (*read_info)(void *png, void *info);
    void (*palette_to_rgb)(void *png);
    void (*expand_grey)(void *png);
    void (*strip_16)(void *png);
    void (*strip_alpha)(void *png);
    void (*grey_to_rgb)(void *png);
    int (*interlacing)(void *png);
    void (*update)(void *png, void *info);
    size_t (*row_bytes)(const void *png, const void *info);
    void (*read_image)(void *png, unsigned char **rows);
    void (*read_end)(void *png, void *info);
} png_functions;

static png_functions the;
static char about[64];
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static const struct {
    const char *name;
    size_t place;
} names[] = {
    {"png_get_libpng_ver", offsetof(png_functions, version)},
    {"png_create_read_struct", offsetof(png_functions, create)},
    {"png_create_info_struct", offsetof(png_functions, create_info)},
    {"png_destroy_read_struct", offsetof(png_functions, destroy)},
    {"png_get_error_ptr", offsetof(png_functions, user)},
    {"png_get_io_ptr", offsetof(png_functions, io_user)},
    {"png_set_read_fn", offsetof(png_functions, set_read)},
    {"png_set_user_limits", offsetof(png_functions, set_limits)},
    {"png_read_info", offsetof(png_functions, read_info)},
    {"png_set_palette_to_rgb", offsetof(png_functions, palette_to_rgb)},
    {"png_set_expand_gray_1_2_4_to_8", offsetof(png_functions, expand_grey)},
    {"png_set_strip_16", offsetof(png_functions, strip_16)},
    {"png_set_strip_alpha", offsetof(png_functions, strip_alpha)},
    {"png_set_gray_to_rgb", offsetof(png_functions, grey_to_rgb)},
    {"png_set_interlace_handling", offsetof(png_functions, interlacing)},
    {"png_read_update_info", offsetof(png_functions, update)},
    {"png_get_rowbytes", offsetof(png_functions, row_bytes)},
    {"png_read_image", offsetof(png_functions, read_image)},
    {"png_read_end", offsetof(png_functions, read_end)},
};

static int find_all(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *const address = dlsym(the.library, names[i].name);
        if (!address)
            return 0;
        memcpy((char *)&the + names[i].place, &address, sizeof address);
    }
    return 1;
}

static void open_library(void) {
    the.library = dlopen("libpng16.so.16", RTLD_NOW | RTLD_LOCAL);
    qn__float_state_set();
    if (the.library && !find_all()) {
        dlclose(the.library);
        the.library = NULL;
    }
    if (the.library)
        snprintf(about, sizeof about, "libpng %.20s (libpng16.so.16)", the.version(NULL));
}

void *qn__png_handle(void) {
    pthread_once(&opened, open_library);
    return the.library;
}

const char *qn__png_library(void) {
    pthread_once(&opened, open_library);
    return the.library ? about : NULL;
}

static const qn__image_need need = {"PNG", "libpng", "libpng16.so.16", "libpng16-16", "libpng"};

/* A file being decoded. libpng reports errors through a function that must not return. */
typedef struct decoding {
    jmp_buf failed;
    char text[96];
    const uint8_t *bytes;
    size_t size, at;
    void *png, *info;
    unsigned char **rows;
} decoding;

_Noreturn static void fail(void *png, const char *text) {
    decoding *d = the.user(png);
    snprintf(d->text, sizeof d->text, "%s", text);
    longjmp(d->failed, 1);
}

static void ignore(void *png, const char *text) { (void)png, (void)text; }

static void give_bytes(void *png, unsigned char *to, size_t size) {
    decoding *d = the.io_user(png);
    if (size > d->size - d->at)
        fail(png, "it is cut off");
    memcpy(to, d->bytes + d->at, size);
    d->at += size;
}

/* Bytes for every channel: a palette's colours, the high byte of 16 bits, no alpha. */
static void set_transforms(const decoding *d, uint32_t channels) {
    the.palette_to_rgb(d->png);
    the.expand_grey(d->png);
    the.strip_16(d->png);
    the.strip_alpha(d->png);
    if (channels == 3)
        the.grey_to_rgb(d->png);
    (void)the.interlacing(d->png);
}

/* Nothing that this function changes after setjmp lies in its own variables. 0: it failed. */
static int run(decoding *d, const qn__image_head *head, uint32_t channels) {
    if (setjmp(d->failed))
        return 0;
    d->png = the.create(the.version(NULL), d, fail, ignore);
    d->info = d->png ? the.create_info(d->png) : NULL;
    if (!d->info) {
        snprintf(d->text, sizeof d->text, "out of memory");
        return 0;
    }
    the.set_read(d->png, d, give_bytes);
    the.set_limits(d->png, head->width, head->height);
    the.read_info(d->png, d->info);
    set_transforms(d, channels);
    the.update(d->png, d->info);
    if (the.row_bytes(d->png, d->info) != (size_t)head->width * channels)
        fail(d->png, "its pixels do not fit its head");
    the.read_image(d->png, d->rows);
    the.read_end(d->png, NULL);
    return 1;
}

qn_status qn__png_decode(void **kept, const uint8_t *bytes, size_t size, const qn__image_head *head,
                         uint32_t channels, uint8_t *pixels, qn_error *err) {
    (void)kept;
    if (!qn__png_handle())
        return qn__image_lacks(&need, err);
    decoding d = {.bytes = bytes, .size = size};
    d.rows = qn__alloc(head->height, sizeof *d.rows, err);
    if (!d.rows)
        return QN_MEMORY;
    for (uint32_t y = 0; y < head->height; y++)
        d.rows[y] = pixels + (size_t)y * head->width * channels;
    const int done = run(&d, head, channels);
    if (d.png)
        the.destroy(&d.png, &d.info, NULL);
    qn__free(d.rows);
    if (done)
        return QN_OK;
    return qn__image_broken(err, "the PNG file is broken: %s", d.text);
}
