#include "data/bytes/unpack.h"
#include "data/bytes/blocks.h"
#include "data/bytes/gzip.h"
#include "data/bytes/zstd.h"
#include <string.h>

qn_status qn__codec_need(qn__codec codec, qn_error *err) {
    return codec == QN__CODEC_ZSTD   ? qn__zstd_need(err)
           : codec == QN__CODEC_GZIP ? qn__gzip_need(err)
                                     : QN_OK;
}

int qn__unpack(qn__codec codec, const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    switch (codec) {
    case QN__CODEC_SNAPPY:
        return qn__snappy_unpack(from, size, to, made);
    case QN__CODEC_GZIP:
        return qn__gzip_block(from, size, to, made);
    case QN__CODEC_LZ4_BLOCK:
        return qn__lz4_block_unpack(from, size, to, made);
    case QN__CODEC_LZ4_FRAME:
        return qn__lz4_frame_unpack(from, size, to, made);
    case QN__CODEC_LZ4_OLD:
        return qn__lz4_old_unpack(from, size, to, made);
    case QN__CODEC_ZSTD:
        return qn__zstd_block(from, size, to, made);
    default:
        if (size == made && made > 0)
            memcpy(to, from, made);
        return size == made;
    }
}

uint64_t qn__unpacked_most(qn__codec codec, uint64_t size) {
    /* Snappy copies up to 64 bytes by 3. DEFLATE makes at most 258 bytes of 2 bits. A byte of LZ4
     * stands for up to 255, a block of zstd of 4 bytes for up to 128 KiB. */
    static const uint32_t times[] = {1, 32, 1032, 256, 256, 256, 1 << 15};
    return size < UINT64_MAX >> 16 ? size * times[codec] : UINT64_MAX;
}
