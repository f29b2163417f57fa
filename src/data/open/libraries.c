/* The libraries that reading opens at run time, for `quern version`. */
#include "base/system/float_state.h"
#include "data/bytes/bzip2.h"
#include "data/bytes/xz.h"
#include "data/bytes/zstd.h"
#include "data/sql/postgres.h"
#include "data/sql/sqlite.h"
#include "image/decode.h"
#include "image/image_other.h"
#include <quern/data.h>
#include <string.h>

const char *qn_data_image_library(const char *kind) {
    QN__OWN_FLOATS; /* libraries are loaded */
    const char *about = NULL;
    static const struct {
        const char *name;
        qn__image_kind kind;
    } images[] = {{"jpeg", QN__IMAGE_JPEG},
                  {"png", QN__IMAGE_PNG},
                  {"gif", QN__IMAGE_GIF},
                  {"webp", QN__IMAGE_WEBP},
                  {"tiff", QN__IMAGE_TIFF}};
    for (size_t i = 0; kind && i < sizeof images / sizeof images[0]; i++)
        if (strcmp(kind, images[i].name) == 0)
            about = qn__image_library(images[i].kind);
    if (kind && strcmp(kind, "zstd") == 0)
        about = qn__zstd_library();
    if (kind && strcmp(kind, "bzip2") == 0)
        about = qn__bzip2_library();
    if (kind && strcmp(kind, "xz") == 0)
        about = qn__xz_library();
    if (kind && strcmp(kind, "sqlite") == 0)
        about = qn__sqlite_library();
    if (kind && strcmp(kind, "postgresql") == 0)
        about = qn__postgres_library();
    return about ? about : "";
}
