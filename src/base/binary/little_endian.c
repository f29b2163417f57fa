#include "base/binary/little_endian.h"

#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

void qn__copy_little(void *to, const void *from, size_t count) { memcpy(to, from, 4 * count); }

void qn__copy_little_halves(void *to, const void *from, size_t count) {
    memcpy(to, from, 2 * count);
}

void qn__copy_little_reals(void *to, const void *from, size_t count) {
    memcpy(to, from, 8 * count);
}

qn_status qn__each_little(const void *numbers, size_t count, qn__take_bytes *take, void *user,
                          qn_error *err) {
    return take(user, numbers, 4 * count, err);
}

#else

void qn__copy_little_halves(void *to, const void *from, size_t count) {
    unsigned char *const out = to;
    const unsigned char *const in = from;
    for (size_t i = 0; i < 2 * count; ++i)
        out[i] = in[i ^ 1];
}

void qn__copy_little_reals(void *to, const void *from, size_t count) {
    unsigned char *const out = to;
    const unsigned char *const in = from;
    for (size_t i = 0; i < 8 * count; ++i)
        out[i] = in[i ^ 7];
}

void qn__copy_little(void *to, const void *from, size_t count) {
    unsigned char *const out = to;
    const unsigned char *const in = from;
    for (size_t i = 0; i < 4 * count; i += 4) {
        uint32_t number;
        memcpy(&number, in + i, sizeof number);
        number = __builtin_bswap32(number);
        memcpy(out + i, &number, sizeof number);
    }
}

qn_status qn__each_little(const void *numbers, size_t count, qn__take_bytes *take, void *user,
                          qn_error *err) {
    enum { PIECE = 1024 };
    unsigned char piece[4 * PIECE];
    const unsigned char *from = numbers;
    qn_status status = QN_OK;
    while (count > 0 && status == QN_OK) {
        const size_t n = count < PIECE ? count : PIECE;
        qn__copy_little(piece, from, n);
        status = take(user, piece, 4 * n, err);
        from += 4 * n;
        count -= n;
    }
    return status;
}

#endif

static qn_status add(void *hash, const void *bytes, size_t size, qn_error *err) {
    (void)err;
    qn__sha256_add(hash, bytes, size);
    return QN_OK;
}

void qn__sha256_add_little(qn__sha256 *hash, const void *numbers, size_t count) {
    (void)qn__each_little(numbers, count, add, hash, NULL);
}
