/* PNG by libpng, opened at run time. */
#ifndef QN_IMAGE_PNG_READ_H
#define QN_IMAGE_PNG_READ_H

#include "image/image_head.h"

/* As qn__image_decode; `kept` is not used. */
qn_status qn__png_decode(void **kept, const uint8_t *bytes, size_t size, const qn__image_head *head,
                         uint32_t channels, uint8_t *pixels, qn_error *err);

const char *qn__png_library(void);
/* What dlopen gave; NULL: it is not there. */
void *qn__png_handle(void);

#endif
