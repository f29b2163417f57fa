/* Decimals of typed columns: a whole number of up to 256 bits and a power of ten. */
#ifndef QN_DATA_ARROW_ARROW_DECIMAL_H
#define QN_DATA_ARROW_ARROW_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

/* The value is the magnitude times 10^-scale. */
typedef struct qn__arrow_decimal {
    uint64_t limb[4]; /* of the magnitude, the lowest first */
    int negative;
    int scale; /* from -QN__ARROW_DECIMAL_SCALE to QN__ARROW_DECIMAL_SCALE */
} qn__arrow_decimal;

enum {
    QN__ARROW_DECIMAL_SCALE = 100,
    QN__ARROW_DECIMAL_CAPACITY = 200,
    QN__ARROW_DECIMAL_BYTES = 32
};

/* Reads the format "d:PRECISION,SCALE[,BITS]" of the Arrow C interface. 0: it is not one, or it is
 * not read: BITS other than 32, 64, 128 and 256, or a scale beyond the limits. */
int qn__arrow_decimal_format(const char *format, size_t *width, int *scale);

/* `bytes` has `width` bytes (4, 8, 16 or 32) in the order of the processor, in two's complement. */
qn__arrow_decimal qn__arrow_decimal_load(const void *bytes, size_t width, int scale);

/* The opposite, with the width QN__ARROW_DECIMAL_BYTES. */
void qn__arrow_decimal_store(const qn__arrow_decimal *decimal, void *bytes);

/* Its digits, with all `scale` digits after the point: "-0.50", as a CSV file has it. Returns the
 * length. */
size_t qn__arrow_decimal_text(const qn__arrow_decimal *decimal,
                              char text[QN__ARROW_DECIMAL_CAPACITY]);

/* A double whose nearest float32 is that of the decimal; an infinity where that is one. Whole
 * numbers up to 2^53 are exact. */
double qn__arrow_decimal_number(const qn__arrow_decimal *decimal);

/* The double nearest to the decimal. */
double qn__arrow_decimal_real(const qn__arrow_decimal *decimal);

/* Whether the magnitude without the power of ten is below 2^63. */
int qn__arrow_decimal_fits(const qn__arrow_decimal *decimal);

/* The value of one with the scale 0; what is beyond int64 becomes its greatest or least number. */
int64_t qn__arrow_decimal_whole(const qn__arrow_decimal *decimal);

#endif
