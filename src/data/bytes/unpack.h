/* Compressed blocks in memory, as typed files hold them. */
#ifndef QN_DATA_BYTES_UNPACK_H
#define QN_DATA_BYTES_UNPACK_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef enum qn__codec {
    QN__CODEC_NONE,
    QN__CODEC_SNAPPY,
    QN__CODEC_GZIP,
    QN__CODEC_LZ4_BLOCK,
    QN__CODEC_LZ4_FRAME,
    QN__CODEC_LZ4_OLD, /* Parquet's LZ4: what qn__lz4_old_unpack says */
    QN__CODEC_ZSTD
} qn__codec;

/* Whether blocks of this codec can be unpacked here: QN_UNSUPPORTED, with what and remedy, where
 * its library is missing. */
qn_status qn__codec_need(qn__codec codec, qn_error *err);

/* Unpacks `size` bytes into exactly `made`. 1: done; 0: the block is corrupt, or holds more or
 * less. After qn__codec_need. Writes nothing outside to[0..made-1]. Any thread. */
int qn__unpack(qn__codec codec, const uint8_t *from, size_t size, uint8_t *to, size_t made);

/* How many bytes `size` packed ones can make at most. */
uint64_t qn__unpacked_most(qn__codec codec, uint64_t size);

#endif
