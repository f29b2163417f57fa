/* Formats that are often found among images and are not read, such as HEIC, by their first bytes.
 */
#ifndef QN_IMAGE_IMAGE_OTHER_H
#define QN_IMAGE_IMAGE_OTHER_H

#include <stddef.h>
#include <stdint.h>

#define QN__OTHER_NONE UINT32_MAX

/* The number of the format of a file that begins with `bytes`; QN__OTHER_NONE: it is unknown. */
uint32_t qn__image_other(const uint8_t *bytes, size_t size);

/* The number of a camera's RAW format in a TIFF file, whose first image is a thumbnail or not yet
 * in colours. */
uint32_t qn__image_raw(void);

/* The number of formats. Their numbers are from 0 to below it. */
uint32_t qn__image_others(void);

/* What files of the format are called, as in "2 files are HEIC images". Static. */
const char *qn__image_other_name(uint32_t other, int several);

/* 1 when such a file is an image, and its first bytes are a mark that no text begins with. */
int qn__image_other_is_picture(uint32_t other);

/* What to do with them. Static. */
const char *qn__image_other_remedy(uint32_t other);

#endif
