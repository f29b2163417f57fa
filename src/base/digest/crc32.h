/* CRC-32 as PNG (ISO/IEC 15948, annex D) and ZIP have it. */
#ifndef QN_BASE_DIGEST_CRC32_H
#define QN_BASE_DIGEST_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The check sum of bytes that follow those with the check sum `before`; 0 before the first. */
uint32_t qn__crc32(uint32_t before, const void *bytes, size_t size);

#endif
