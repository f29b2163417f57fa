/* For tests of what is read from files. Include after cmocka.h. */
#ifndef QN_DATA_BYTES_BYTES_READ_TEST_H
#define QN_DATA_BYTES_BYTES_READ_TEST_H

#include <stdint.h>
#include <stdio.h>

/* Bytes that this process has read so far, by any call; 0: the system does not tell. */
static uint64_t bytes_read(void) {
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "re");
    if (file && fscanf(file, "rchar: %llu", &bytes) != 1)
        bytes = 0;
    if (file)
        fclose(file);
    return bytes;
}

#endif
