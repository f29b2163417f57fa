/* Decompression of bzip2 by libbz2.so.1.0, which is opened when the first such file is read. */
#ifndef QN_DATA_BYTES_BZIP2_H
#define QN_DATA_BYTES_BZIP2_H

/* The library with its version, "" where it is missing. Static. */
const char *qn__bzip2_library(void);

#endif
