#include "image/image_faults.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static qn_status fail(qn_error *err, const char *format, va_list values) {
    char text[200];
    vsnprintf(text, sizeof text, format, values);
    return qn__fail(err, QN_INPUT, "%s", text);
}

qn_status qn__image_broken(qn_error *err, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fail(err, format, values);
    va_end(values);
    return qn__remedy(err, QN_INPUT,
                      "replace or remove the file; `data.skip_broken` leaves out all that cannot "
                      "be read");
}

qn_status qn__image_unread(qn_error *err, const char *how, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fail(err, format, values);
    va_end(values);
    return qn__remedy(err, QN_INPUT,
                      "%s; `data.skip_broken` leaves out all files that cannot be read", how);
}

qn_status qn__image_changed(qn_error *err) {
    qn__fail(err, QN_INPUT, "the file changed while it was read");
    return qn__remedy(err, QN_INPUT, "start again when nothing writes to it");
}

qn_status qn__image_need(qn__optional_library *library, const char *format, qn_error *err) {
    char use[64];
    snprintf(use, sizeof use, "%s files need %s", format, library->name);
    return qn__optional_need(library, use,
                             strcmp(format, "PNG") == 0 ? "convert the images to JPEG"
                                                        : "convert the images to PNG",
                             err);
}
