/* What is said of an image file that cannot be read, in one way for all formats. */
#ifndef QN_IMAGE_IMAGE_FAULTS_H
#define QN_IMAGE_IMAGE_FAULTS_H

#include "base/system/library.h"

/* Fails with QN_INPUT, without a place, and with the remedy for a broken file. `format` and what
 * follows are those of printf. */
qn_status qn__image_broken(qn_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same with another remedy: how the file can be converted to one that is read. */
qn_status qn__image_unread(qn_error *err, const char *how, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The file changed since its head was read. */
qn_status qn__image_changed(qn_error *err);

/* QN_UNSUPPORTED where the library is not there. `format`: what it decodes, such as "PNG". */
qn_status qn__image_need(qn__optional_library *library, const char *format, qn_error *err);

#endif
