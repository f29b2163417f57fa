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

qn_status qn__image_lacks(const qn__image_need *need, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "%s files need %s, and there is no %s here", need->format,
             need->name, need->file);
    return qn__remedy(
        err, QN_UNSUPPORTED, "install it (Debian: %s; Fedora: %s), or convert the images to %s",
        need->debian, need->fedora, strcmp(need->format, "PNG") == 0 ? "JPEG" : "PNG");
}
