/* A data set as one flat run of bytes, so that processes can share it or send it. */
#ifndef QN_DATA_DATA_IMAGE_H
#define QN_DATA_DATA_IMAGE_H

#include "data/data.h"

/* Bytes that the image of a table takes; 0 when they cannot be addressed. */
uint64_t qn__data_image_bytes(const qn_data *table);

/* Writes the image: qn__data_image_bytes bytes, from an address that is a multiple of 64. */
void qn__data_image_write(const qn_data *table, void *image);

/* A table whose values and labels lie in the image, which stays the caller's and must outlive it.
 * The image may come from anywhere: QN_FORMAT when it is none. What is behind the digest in the
 * image is not looked at: whoever fetched the bytes has compared them with what was sent. */
qn_status qn__data_image_map(const void *image, uint64_t bytes, qn_data **out, qn_error *err);

#endif
