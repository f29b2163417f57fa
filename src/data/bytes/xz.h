/* Decompression of xz by liblzma.so.5, which is opened when the first such file is read. */
#ifndef QN_DATA_BYTES_XZ_H
#define QN_DATA_BYTES_XZ_H

/* The library with its version, "" where it is missing. Static. */
const char *qn__xz_library(void);

#endif
