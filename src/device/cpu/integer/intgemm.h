/* Integer products (docs/exactness.md 15), one table for each instruction set with its own code.
 *
 * Operands are packed once and multiplied often. A *left* operand consists of blocks of 16 rows, a
 * *right* operand of panels of 16 columns; both have k values along the sum. Each table defines the
 * format of a block or panel. It takes size(bits, k) bytes and begins at a multiple of 64; the
 * blocks or panels of one operand are contiguous. Values come from arrays of floats in panels
 * (cpu_kernels.h): element (row, column) of an array is at from[blocks[column / 16] + row * 16 +
 * column % 16]. A value v becomes the integer qn__quantize(v, inverse) of num/intgemm_reference.h,
 * with the inverse of its block; an inverse of 0 (a block that is not finite) may give any
 * integers. Columns beyond the last are not used and count as 0. */
#ifndef QN_DEVICE_CPU_INTEGER_INTGEMM_H
#define QN_DEVICE_CPU_INTEGER_INTGEMM_H

#include "base/binary/float_bits.h"
#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/integer/intconv.h"
#include "num/intgemm_reference.h"

enum {
    QN__BYTE_BLOCKS = 9, /* number of exponents of blocks of bytes: those of 1 to 255 */
    /* Flags that are added to a width in bits. QN__OF_BYTES: the left operand has bytes from 0 to
     * 255. QN__WIDE, for a sum over items whose left operand has bytes: the integers on the right,
     * after doubling, may have a magnitude up to QN__WIDEST. */
    QN__OF_BYTES = 32,
    QN__WIDE = 64,
    QN__WIDEST = (1 << 23) - 1
};

/* How the exact integers N of an outer product are stored. */
typedef enum qn__intgemm_out {
    QN__INTGEMM_FLOAT,  /* float: RN(N) */
    QN__INTGEMM_FIRST,  /* double: N * factor, rounded to the nearest integer, ties to even */
    QN__INTGEMM_ADD,    /* double: the same, added to what is there */
    QN__INTGEMM_INTEGER /* int64_t: N */
} qn__intgemm_out;

/* Lookup tables from bytes to integers, for scalings that map a byte to the same value in every
 * feature: one table for each exponent of a block. Digits are to the base 128, from -64 to 63, the
 * highest first, which holds the rest. For sums over items there are tables of integers doubled
 * once and twice too; the highest digit is 127 where a byte is too large for the exponent. With 14
 * bits these digits are to the base 256, the lower one from 0 to 255 as an unsigned byte. */
typedef struct qn__cpu_digits {
    uint32_t first; /* the exponent bits of the largest inverse of a block */
    _Alignas(64) int8_t digit[QN__BYTE_BLOCKS][3][256];
    _Alignas(64) int8_t item_digit[QN__BYTE_BLOCKS][3][3][256]; /* by doublings */
} qn__cpu_digits;

/* The table for a block, by the exponent bits of its inverse, or by the inverse. A block of zeros
 * has a larger inverse than all others; any table is valid for it, since 0 is 0 in all. */
static inline uint32_t qn__cpu_digits_of(const qn__cpu_digits *digits, uint32_t exponent) {
    return exponent < digits->first ? digits->first - exponent : 0;
}
static inline uint32_t qn__cpu_digits_at(const qn__cpu_digits *digits, float inverse) {
    return qn__cpu_digits_of(digits, qn__float_bits(inverse) >> 23);
}

typedef struct qn__intgemm {
    const char *name;

    /* Bytes of a block of 16 rows or of a panel of 16 columns; with QN__OF_BYTES of a block
     * of bytes. */
    size_t (*size)(int bits, uint32_t k);

    /* absmax[r] = bits of the largest |from(r, c) * times[c]| over c < k (times NULL: of the value
     * itself), for r < rows, rows <= 16. A NaN is larger than everything. */
    void (*absmax)(uint32_t rows, uint32_t k, const float *from, const size_t *blocks,
                   const float *times, uint32_t *absmax);

    /* One block of a left operand, from `rows` <= 16 rows: element (r, c) is RN(from(r, c) *
     * times[c]), with inverse[r]. */
    void (*left)(int bits, uint32_t rows, uint32_t k, const float *from, const size_t *blocks,
                 const float *times, const float *inverse, void *to);

    /* The same of 16 rows, from an array with a depth to a row: element (r, t) is from[list[t] * 16
     * + r], t < k. Values of rows that are not used may be anything. */
    void (*left_across)(int bits, uint32_t k, const uint32_t *list, const float *from,
                        const float inverse[QN__PANEL], void *to);

    /* One panel of a right operand, from one panel of an array: element (t, c) is from[t * 16 + c],
     * t < k, with inverse[c] of its column. */
    void (*right)(int bits, uint32_t k, const float *from, const float inverse[QN__PANEL],
                  void *to);

    /* The same for only `count` values of k from `first` on. Both are multiples of 64, but the last
     * part may end at k. `from` begins with these values, `to` with the panel. Values too large for
     * the inverse may give any integers. NULL if a table cannot do it. */
    void (*right_part)(int bits, uint32_t k, uint32_t first, uint32_t count, const float *from,
                       const float inverse[QN__PANEL], void *to);

    /* One panel of a right operand, transposed: element (t, c) is from(c, t), t < k, for c <
     * columns
     * <= 16, with inverse[t]; other columns are 0. */
    void (*right_transposed)(int bits, uint32_t columns, uint32_t k, const float *from,
                             const size_t *blocks, const float *inverse, void *to);

    /* Both operands of a sum over items, for `outer`: from one panel of an array with an item to a
     * row. Depth t is item list[t], t < count, with inverse[t]. left_items: element (r, t) is
     * from[list[t] * 16 + r]; right_items: element (t, c) is from[list[t] * 16 + c]. Where
     * `doubled` is given, the integers of depth t are doubled doubled[t] times: q * 2^doubled[t].
     */
    void (*left_items)(int bits, uint32_t count, const uint32_t *list, const float *inverse,
                       const uint8_t *doubled, const float *from, void *to);
    void (*right_items)(int bits, uint32_t count, const uint32_t *list, const float *inverse,
                        const uint8_t *doubled, const float *from, void *to);

    /* The largest |q| allowed after doubling in either operand of such a sum over at most k items;
     * at least 2^(bits - 1) - 1, the largest integer that is not doubled. */
    int32_t (*largest)(int bits, uint32_t k);

    /* Operands made directly from bytes; NULL if that is not faster than through floats.
     * absmax_bytes: of each row, rows <= 16. left_bytes: like left, element (r, c) is the integer
     * of byte from[r][c]. left_bytes_items: like left_items, element (r, t) is the integer of byte
     * from[list[t] / 16 * block + list[t] % 16 * 16 + r]. So a row of the array is 16 bytes, and
     * groups of 16 rows are `block` bytes apart; at most two doublings. Inverses are those of
     * blocks of bytes. */
    void (*absmax_bytes)(uint32_t rows, uint32_t k, const uint8_t *const *from, uint8_t *absmax);
    void (*left_bytes)(int bits, uint32_t rows, uint32_t k, const uint8_t *const *from,
                       const float *inverse, const qn__cpu_digits *digits, void *to);
    void (*left_bytes_items)(int bits, uint32_t count, const uint32_t *list, const float *inverse,
                             const uint8_t *doubled, const qn__cpu_digits *digits,
                             const uint8_t *from, size_t block, void *to);

    /* Left operands of bytes themselves, in blocks of size(bits | QN__OF_BYTES, k) bytes, for
     * products of that width; 14 or 21 bits, and QN__WIDE if the right operand and the product have
     * it. NULL if that is not faster than packing the integers of blocks. left_raw: element (r, c)
     * is from[r][c]. left_raw_items: like left_bytes_items, with the bytes unchanged. */
    void (*left_raw)(int bits, uint32_t rows, uint32_t k, const uint8_t *const *from, void *to);
    void (*left_raw_items)(int bits, uint32_t count, const uint32_t *list, const uint8_t *from,
                           size_t block, void *to);

    /* With N the exact products of `rows` rows of left (any number; blocks of 16) and `panels`
     * panels of right: c[p * c_stride + i * 16 + j] =
     *   fma(RN(N), RN(row[i] * column[p * 16 + j]), start[p * 16 + j])   where column is given,
     *   RN(RN(N) * row[i])                                                where it is NULL. */
    void (*product)(int bits, uint32_t rows, uint32_t k, const void *left, uint32_t panels,
                    const void *right, const float *row, const float *column, const float *start,
                    float *c, size_t c_stride);

    /* `blocks` blocks of left by `panels` panels of right: out[p][b][r][c], blocks of 16 x 16. With
     * doubles `factor` is a power of two, and the caller has shown that N and the sums are exact as
     * doubles. */
    void (*outer)(int bits, uint32_t k, uint32_t blocks, const void *left, uint32_t panels,
                  const void *right, qn__intgemm_out how, double factor, void *out);

    const qn__intconv *conv; /* convolutions of 7 and 14 bits; NULL: they are products */
} qn__intgemm;

/* Those of the other instruction sets are in the rows of device/cpu/cpu_isa.c. */
extern const qn__intgemm qn__intgemm_scalar;
#if defined(QN_HAVE_AMX) /* which uses vnni for small products */
extern const qn__intgemm qn__intgemm_amx, qn__intgemm_vnni;
#endif

/* factor[i] = 2^t, inverse[i] = 2^-t of blocks with these absmax. */
void qn__cpu_block_scales(int bits, uint32_t count, const uint32_t *absmax, float *factor,
                          float *inverse);

/* The bits of the float to which a byte is scaled (docs/exactness.md 5.1); not for
 * QN__SCALE_STANDARD. */
uint32_t qn__cpu_byte_bits(qn__scale scale, uint32_t byte);
/* The integers of all bytes, and their digits. */
void qn__cpu_make_digits(int bits, qn__scale scale, qn__cpu_digits *to);

/* 1 when a table's products equal those of the scalar one, on a small example of each width. */
int qn__intgemm_agree(const qn__intgemm *table);
/* The first: 1 when the processor has AMX tiles of bytes and the kernel lets this process use them;
 * requested once, for all threads. The second: also that their products are right. */
int qn__cpu_amx_granted(void);
int qn__cpu_has_amx(void);

#endif
