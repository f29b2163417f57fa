/* The libraries that reading opens at run time, for `quern version`. */
#include "base/system/float_state.h"
#include "data/cells/readers.h"
#include "image/decode.h"
#include "store/http/curl.h"
#include <quern/data.h>
#include <string.h>

/* NULL: nothing of this name needs one. */
static qn__optional_library *library_of(const char *kind) {
    for (int i = QN__IMAGE_OTHER + 1; i < QN__IMAGE_KINDS; i++)
        if (strcmp(kind, qn__image_kind_name((qn__image_kind)i)) == 0)
            return qn__image_library((qn__image_kind)i);
    for (int i = QN__PLAIN + 1; i < QN__PACKINGS; i++)
        if (strcmp(kind, qn__packing_name((qn__packing)i)) == 0)
            return qn__packing_library((qn__packing)i);
    for (const qn__reader *const *at = qn__readers; *at; ++at)
        if (strcmp(kind, (*at)->name[0]) == 0)
            return (*at)->library;
    return strcmp(kind, "http") == 0 ? &qn__curl_library : NULL;
}

const char *qn_data_image_library(const char *kind) {
    QN__OWN_FLOATS; /* libraries are loaded */
    qn__optional_library *library = kind ? library_of(kind) : NULL;
    return library ? qn__optional_about(library) : "";
}
