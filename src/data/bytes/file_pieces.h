/* Large pieces of a file, read past the kernel's file cache where the file system can do that: the
 * cache would have to drop a page for each one that is read, which takes longer than the reading.
 */
#ifndef QN_DATA_BYTES_FILE_PIECES_H
#define QN_DATA_BYTES_FILE_PIECES_H

#include <stddef.h>
#include <stdint.h>

enum {
    QN__FILE_SECTOR = 4096, /* no disk has larger ones */
    /* More than a piece takes of its block: it begins and ends inside sectors. */
    QN__FILE_PIECE_MARGIN = 3 * QN__FILE_SECTOR
};

/* One reader of a file. */
typedef struct qn__file_piece {
    int file;
    uint64_t at; /* where offsets begin in the file */
    uint8_t *block;
} qn__file_piece;

/* `file` is borrowed: its flag O_DIRECT is set where it can be. `block`: the memory of a piece and
 * QN__FILE_PIECE_MARGIN, at a multiple of QN__FILE_SECTOR. 0: there is no such file. */
int qn__file_piece_begin(qn__file_piece *piece, int file, uint64_t at, uint8_t *block);

/* The bytes from `offset` after `at`, until the next reading; NULL: they cannot be read, or the
 * file is too short. */
const uint8_t *qn__file_piece_read(qn__file_piece *piece, uint64_t offset, size_t bytes);

#endif
