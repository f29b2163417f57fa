/* The formats of compressed blocks that are unpacked here (unpack.h): snappy and LZ4. Each function
 * returns 1 when `size` bytes give exactly `made`, 0 when they are corrupt. */
#ifndef QN_DATA_BYTES_BLOCKS_H
#define QN_DATA_BYTES_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

int qn__snappy_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t made);
int qn__lz4_block_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t made);
/* Frames one after the other; checksums are not compared. */
int qn__lz4_frame_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t made);

/* What Hadoop and old versions of Arrow call LZ4: groups of blocks, each group after the number of
 * bytes that it makes, each block after its own size (32 bits, the highest first); or, where the
 * bytes are not such groups, one block. */
int qn__lz4_old_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t made);

/* What the unpacking of a block works on: `to` grows up to `capacity`. */
typedef struct qn__block {
    const uint8_t *at, *end; /* input that is left */
    uint8_t *to;             /* the whole output, which copies may go back to */
    size_t made, capacity;
} qn__block;

/* Appends `size` bytes of the input; 0: there are not as many, or no space. */
int qn__block_literal(qn__block *b, uint64_t size);
/* Appends a copy of `size` bytes that begin `back` bytes before the end of the output; the copy may
 * overlap its source. 0: the output has not as many bytes, or no space. */
int qn__block_copy(qn__block *b, uint64_t back, uint64_t size);

#endif
