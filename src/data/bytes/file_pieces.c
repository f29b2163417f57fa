#include "data/bytes/file_pieces.h"
#include "base/files/remote.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#ifndef O_DIRECT
#define O_DIRECT 0 /* all reading goes through the cache */
#endif

int qn__file_piece_begin(qn__file_piece *piece, int file, uint64_t at, uint8_t *block) {
    const int flags = file < 0 ? -1 : fcntl(file, F_GETFL);
    *piece = (qn__file_piece){.file = file, .at = at, .block = block};
    if (flags >= 0 && !(flags & O_DIRECT) && !qn__remote_has(file))
        (void)fcntl(file, F_SETFL, flags | O_DIRECT); /* it works through the cache, too */
    return flags >= 0;
}

/* 1: the file is read through the cache from now on. */
static int give_up_direct(const qn__file_piece *piece) {
    const int flags = fcntl(piece->file, F_GETFL);
    return flags >= 0 && flags & O_DIRECT && fcntl(piece->file, F_SETFL, flags & ~O_DIRECT) == 0;
}

const uint8_t *qn__file_piece_read(qn__file_piece *piece, uint64_t offset, size_t bytes) {
    const uint64_t begin = piece->at + offset, first = begin / QN__FILE_SECTOR * QN__FILE_SECTOR;
    const size_t before = (size_t)(begin - first), needed = before + bytes;
    const size_t whole = (needed + QN__FILE_SECTOR - 1) / QN__FILE_SECTOR * QN__FILE_SECTOR;
    if (qn__remote_ensure(piece->file, begin, bytes, NULL) != QN_OK)
        return NULL;
    for (size_t have = 0; have < needed;) {
        /* After a piece that ends inside a sector, the sector is read again. */
        have = have / QN__FILE_SECTOR * QN__FILE_SECTOR;
        const ssize_t got =
            pread(piece->file, piece->block + have, whole - have, (off_t)(first + have));
        if (got < 0 && (errno == EINTR || (errno == EINVAL && give_up_direct(piece))))
            continue;
        if (got <= 0 || (have + (size_t)got < needed && got < QN__FILE_SECTOR))
            return NULL;
        have += (size_t)got;
    }
    return piece->block + before;
}
