/* Integer products (docs/exactness.md 15), by every table that this machine has: packing and
 * multiplication must give the numbers of plain loops over the same values. Depths, rows and panels
 * are not multiples of a tile, some blocks are not finite, and at some depths the sums of digits
 * exceed 32 bits. */
#include "device/cpu/cpu_isa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/cpu_isa.h"
#include "device/cpu/integer/intgemm_space_test.h"

enum { DEEPEST = 131, MOST_ROWS = 37, HIGHEST = 277, MOST_PANELS = 5, MOST_BLOCKS = 8197 };

static const int widths[] = {7, 14, 21};

/* One case: values for both operands, their blocks, and memory for the packed operands. */
typedef struct bench {
    const qn__intgemm *table;
    int bits;
    uint32_t rows, k, panels;
    /* Where the panels of both arrays of values begin; those of the left one in any order. */
    size_t left_blocks[MOST_BLOCKS], right_blocks[MOST_BLOCKS];
    float *left, *right;
    float left_inverse[HIGHEST + P], right_inverse[MOST_PANELS * P];
    float row[HIGHEST + P], column[MOST_PANELS * P], start[MOST_PANELS * P];
    void *packed_left, *packed_right;
} bench;

/* Values of every magnitude up to 1, many zeros of both signs, and some that fill their block. */
static float value(void) {
    const uint32_t kind = draw() % 8;
    const float unit = (float)(draw() % 20001) / 10000.0f - 1.0f;
    if (kind == 0)
        return draw() % 2 ? 0.0f : -0.0f;
    if (kind == 1)
        return draw() % 2 ? 1.0f : -1.0f;
    return kind < 5 ? unit : ldexpf(unit, -(int)(draw() % 30));
}

static float *values(size_t count) {
    float *v = buffer(count * sizeof *v);
    for (size_t i = 0; i < count; ++i)
        v[i] = value();
    return v;
}

/* Values of k columns in panels `stride` apart, in a different order for each k. */
static float *spread(uint32_t k, size_t stride, size_t *blocks) {
    const uint32_t panels = (k + P - 1) / P;
    assert_in_range(panels, 1, MOST_BLOCKS);
    for (uint32_t p = 0; p < panels; ++p)
        blocks[p] = (k % 2 ? p : panels - 1 - p) * stride;
    return values(panels * stride);
}

static float at(const float *from, const size_t *blocks, uint32_t row, uint32_t column) {
    return from[blocks[column / P] + (size_t)row * P + column % P];
}

static int same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void block_of(const bench *b, uint32_t absmax, float *factor, float *inverse) {
    const int32_t t = qn__block_exponent(b->bits, absmax);
    *factor = qn__block_factor(t);
    *inverse = qn__block_inverse(t);
}

static void begin(bench *b, const qn__intgemm *table, int bits, uint32_t rows, uint32_t k,
                  uint32_t panels) {
    *b = (bench){.table = table, .bits = bits, .rows = rows, .k = k, .panels = panels};
    const size_t blocks = (rows + P - 1) / P, size = table->size(bits, k);
    assert_int_equal(size % 64, 0);
    b->packed_left = buffer(blocks * size);
    b->packed_right = buffer(panels * size);
    for (uint32_t i = 0; i < panels * P; ++i)
        b->start[i] = value();
}

static void end(bench *b) {
    free(b->left);
    free(b->right);
    free(b->packed_left);
    free(b->packed_right);
}

/* Packs the rows of b->left, all of one block of 16 at a time, with `times` or NULL. */
static void pack_left(bench *b, const float *times) {
    const size_t size = b->table->size(b->bits, b->k);
    for (uint32_t r = 0; r < b->rows; r += P) {
        const uint32_t rows = b->rows - r < P ? b->rows - r : P;
        uint32_t absmax[P];
        b->table->absmax(rows, b->k, b->left + (size_t)r * P, b->left_blocks, times, absmax);
        for (uint32_t i = 0; i < rows; ++i) {
            uint32_t expected = 0;
            for (uint32_t c = 0; c < b->k; ++c) {
                const float v = at(b->left, b->left_blocks, r + i, c) * (times ? times[c] : 1.0f);
                const uint32_t own = qn__absmax(1, &v, 1);
                expected = own > expected ? own : expected;
            }
            assert_int_equal(absmax[i] > 0x7f800000u ? UINT32_MAX : absmax[i],
                             expected > 0x7f800000u ? UINT32_MAX : expected);
            block_of(b, absmax[i], b->row + r + i, b->left_inverse + r + i);
        }
        b->table->left(b->bits, rows, b->k, b->left + (size_t)r * P, b->left_blocks, times,
                       b->left_inverse + r, (char *)b->packed_left + r / P * size);
    }
}

/* Every element of c against the sums of 15.4 or 15.5; q(t, column) of the right operand. */
static void check_product(const bench *b, const float *times, int forward,
                          int32_t (*q)(const bench *b, uint32_t t, uint32_t column)) {
    const size_t stride = (size_t)(b->rows + 1) * P;
    float *c = buffer(b->panels * stride * sizeof *c);
    b->table->product(b->bits, b->rows, b->k, b->packed_left, b->panels, b->packed_right, b->row,
                      forward ? b->column : NULL, forward ? b->start : NULL, c, stride);
    for (uint32_t i = 0; i < b->rows; ++i)
        for (uint32_t j = 0; j < b->panels * P; ++j) {
            int64_t n = 0;
            for (uint32_t t = 0; t < b->k; ++t) {
                const float v = at(b->left, b->left_blocks, i, t) * (times ? times[t] : 1.0f);
                n += (int64_t)qn__quantize(v, b->left_inverse[i]) * q(b, t, j);
            }
            const float expected = forward ? fmaf((float)n, b->row[i] * b->column[j], b->start[j])
                                           : (float)n * b->row[i];
            const float found = c[j / P * stride + (size_t)i * P + j % P];
            if (!same(found, expected))
                fail_msg("%s, %d bits, %u x %u by %u panels: row %u, column %u: %a, not %a",
                         b->table->name, b->bits, b->rows, b->k, b->panels, i, j, (double)found,
                         (double)expected);
        }
    free(c);
}

static int32_t weight(const bench *b, uint32_t t, uint32_t column) {
    const float v = b->right[((size_t)column / P * b->k + t) * P + column % P];
    return qn__quantize(v, b->right_inverse[column]);
}

/* Packs each block of b->left again, from an array with a depth to a row, the last depth first.
 * Rows after the last one are not used. */
static void pack_left_across(bench *b) {
    float *v = buffer((size_t)b->k * P * sizeof *v);
    uint32_t *list = buffer(b->k * sizeof *list);
    for (uint32_t r = 0; r < b->rows; r += P) {
        float inverse[P] = {0};
        for (uint32_t i = 0; i < P && r + i < b->rows; ++i)
            inverse[i] = b->left_inverse[r + i];
        for (uint32_t t = 0; t < b->k; ++t) {
            list[t] = b->k - 1 - t;
            for (uint32_t i = 0; i < P; ++i)
                v[(size_t)list[t] * P + i] =
                    at(b->left, b->left_blocks, r + i < b->rows ? r + i : r, t);
        }
        b->table->left_across(b->bits, b->k, list, v, inverse,
                              (char *)b->packed_left + r / P * b->table->size(b->bits, b->k));
    }
    free(v);
    free(list);
}

/* A panel packed in parts, the last first, is the same panel. */
static void right_parts(const bench *b) {
    const qn__intgemm *table = b->table;
    const size_t size = table->size(b->bits, b->k);
    if (!table->right_part)
        return;
    void *whole = buffer(size), *parts = buffer(size);
    table->right(b->bits, b->k, b->right, b->right_inverse, whole);
    for (uint32_t t = (b->k - 1) / 64 * 64;; t -= 64) {
        const uint32_t left = b->k - t;
        table->right_part(b->bits, b->k, t, left < 64 ? left : 64, b->right + (size_t)t * P,
                          b->right_inverse, parts);
        if (t == 0)
            break;
    }
    assert_memory_equal(parts, whole, size);
    free(whole);
    free(parts);
}

/* Makes most depths zeros, in all rows or in the first half of each block of 16: tables may skip
 * them. The rest is as large as possible. The panel of depth t begins at blocks[t / 16]. */
static void hollow_depths(float *v, const size_t *blocks, uint32_t rows, uint32_t k) {
    for (uint32_t t = 0; t < k; ++t) {
        const uint32_t kind = draw() % 4;
        for (uint32_t r = 0; r < rows; ++r)
            v[blocks[t / P] + (size_t)r * P + t % P] =
                (kind < 2 || (kind == 2 && r % P < P / 2) ? 0.0f : 1.99f) * (draw() % 2 ? 1 : -1);
    }
}
/* The same if a depth is an item of 16 rows. */
static void hollow_items(float *v, uint32_t k) {
    for (uint32_t t = 0; t < k; ++t) {
        const uint32_t kind = draw() % 4;
        for (uint32_t r = 0; r < (kind < 2 ? P : kind == 2 ? P / 2 : 0); ++r)
            v[(size_t)t * P + r] = 0.0f;
    }
}

/* 15.4: a panel of weights is k x 16 floats, each column a block. The first item is not finite in
 * every third case, and some inputs of the first block of items are zeros. */
static void forward_case(const qn__intgemm *table, int bits, uint32_t rows, uint32_t k,
                         uint32_t panels) {
    bench b;
    begin(&b, table, bits, rows, k, panels);
    b.left = spread(k, (size_t)(rows + 1) * P, b.left_blocks);
    b.right = values((size_t)panels * k * P);
    for (uint32_t t = 64; t < k && t < 128; ++t)
        for (uint32_t r = 0; r < rows && r < P; ++r)
            b.left[b.left_blocks[t / P] + r * P + t % P] = 0.0f;
    if (rows % 2)
        hollow_depths(b.left, b.left_blocks, rows, k);
    if (k % 3 == 0)
        b.left[b.left_blocks[0]] = k % 2 ? NAN : -INFINITY;
    for (uint32_t j = 0; j < panels * P; ++j)
        block_of(&b, qn__absmax(k, b.right + (size_t)j / P * k * P + j % P, P), b.column + j,
                 b.right_inverse + j);
    pack_left(&b, NULL);
    if (panels % 2 == 0)
        pack_left_across(&b);
    for (uint32_t p = 0; p < panels; ++p)
        table->right(bits, k, b.right + (size_t)p * k * P, b.right_inverse + (size_t)p * P,
                     (char *)b.packed_right + p * table->size(bits, k));
    check_product(&b, NULL, 1, weight);
    right_parts(&b);
    end(&b);
}

/* 15.5: depth t is an output of an array of weights in panels, column j an input of it. The depth
 * is at most MOST_PANELS panels here. */
static int32_t transposed_weight(const bench *b, uint32_t t, uint32_t column) {
    return column < b->panels * P - 1
               ? qn__quantize(at(b->right, b->right_blocks, column, t), b->right_inverse[t])
               : 0;
}

static void backward_case(const qn__intgemm *table, int bits, uint32_t rows, uint32_t k,
                          uint32_t panels) {
    const size_t inputs = (size_t)panels * P;
    bench b;
    begin(&b, table, bits, rows, k, panels);
    b.left = spread(k, (size_t)rows * P, b.left_blocks);
    b.right = spread(k, inputs * P, b.right_blocks);
    for (uint32_t t = 0; t < k; ++t)
        block_of(&b, qn__absmax(inputs, b.right + b.right_blocks[t / P] + t % P, P), b.column + t,
                 b.right_inverse + t);
    pack_left(&b, b.column);
    /* All columns but the last are inputs. */
    for (uint32_t p = 0; p < panels; ++p)
        table->right_transposed(bits, p + 1 < panels ? P : P - 1, k, b.right + (size_t)p * P * P,
                                b.right_blocks, b.right_inverse,
                                (char *)b.packed_right + p * table->size(bits, k));
    check_product(&b, b.column, 0, transposed_weight);
    end(&b);
}

/* How often integers up to `q` may be doubled in a sum over k items, at most as often as every
 * table but the scalar one allows. */
static uint8_t doublings(const qn__intgemm *table, int bits, uint32_t k, int32_t q) {
    uint8_t times = 0;
    while (times < 2 && q << (times + 1) <= table->largest(bits, k))
        ++times;
    return times;
}

/* 15.6: items in a list of any order, each with its own block and its own number of doublings. Some
 * depths of the inputs are zeros, and all depths of their second block. */
static void outer_case(const qn__intgemm *table, int bits, uint32_t k, uint32_t panels) {
    const uint32_t blocks = 1 + k % 3;
    uint32_t list[DEEPEST];
    float left_inverse[DEEPEST], right_inverse[DEEPEST];
    uint8_t left_doubled[DEEPEST], right_doubled[DEEPEST];
    const uint32_t most = doublings(table, bits, k, INT32_C(1) << (bits - 2));
    bench b;
    begin(&b, table, bits, blocks * P, k, panels);
    b.left = values((size_t)blocks * k * P);
    b.right = values((size_t)panels * k * P);
    for (uint32_t t = 0; t < k; ++t) {
        list[t] = draw() % k;
        left_inverse[t] = ldexpf(1.0f, bits - 2 - (int)(draw() % 3));
        right_inverse[t] = ldexpf(1.0f, bits - 2 - (int)(draw() % 3));
        left_doubled[t] = (uint8_t)(draw() % (most + 1));
        right_doubled[t] = (uint8_t)(draw() % (most + 1));
    }
    /* Sometimes one operand has no doublings. */
    const uint8_t *right_times = k % 4 == 3 ? NULL : right_doubled;
    const size_t size = table->size(bits, k), count = (size_t)blocks * panels * P * P;
    if (panels % 2)
        hollow_items(b.left, k);
    for (uint32_t t = 64; t < k && t < 128; ++t)
        memset(b.left + (size_t)list[t] * P, 0, P * sizeof *b.left);
    if (blocks > 1)
        memset(b.left + (size_t)k * P, 0, (size_t)k * P * sizeof *b.left);
    for (uint32_t i = 0; i < blocks; ++i)
        table->left_items(bits, k, list, left_inverse, left_doubled, b.left + (size_t)i * k * P,
                          (char *)b.packed_left + i * size);
    for (uint32_t p = 0; p < panels; ++p)
        table->right_items(bits, k, list, right_inverse, right_times, b.right + (size_t)p * k * P,
                           (char *)b.packed_right + p * size);
    int64_t *exact = buffer(count * sizeof *exact);
    double *sums = buffer(count * sizeof *sums);
    float *rounded = buffer(count * sizeof *rounded);
    table->outer(bits, k, blocks, b.packed_left, panels, b.packed_right, QN__INTGEMM_INTEGER, 0,
                 exact);
    table->outer(bits, k, blocks, b.packed_left, panels, b.packed_right, QN__INTGEMM_FIRST, 0x1p3,
                 sums);
    table->outer(bits, k, blocks, b.packed_left, panels, b.packed_right, QN__INTGEMM_ADD, 0x1p-2,
                 sums);
    table->outer(bits, k, blocks, b.packed_left, panels, b.packed_right, QN__INTGEMM_FLOAT, 1,
                 rounded);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t c = i % P, r = i / P % P, p = i / (P * P) / blocks;
        const size_t block = i / (P * P) % blocks;
        int64_t n = 0;
        for (uint32_t t = 0; t < k; ++t)
            n += (int64_t)qn__quantize(b.left[(block * k + list[t]) * P + r], left_inverse[t]) *
                 qn__quantize(b.right[((size_t)p * k + list[t]) * P + c], right_inverse[t]) *
                 (1 << left_doubled[t] << (right_times ? right_times[t] : 0));
        const double sum = (double)n * 8 + rint((double)n / 4);
        if (exact[i] != n || !same(rounded[i], (float)n) || sums[i] != sum)
            fail_msg("%s, %d bits, %u items: block %u, panel %u, row %u, column %u: %lld, not %lld",
                     table->name, bits, k, (unsigned)block, p, r, c, (long long)exact[i],
                     (long long)n);
    }
    free(exact);
    free(sums);
    free(rounded);
    end(&b);
}

/* ---- bytes */

static float byte_value(qn__scale scale, uint8_t byte) {
    return scale == QN__SCALE_UNIT       ? (float)byte / 255.0f
           : scale == QN__SCALE_FRACTION ? (float)byte / 256.0f
                                         : (float)byte;
}

/* `rows` rows of k bytes, some of them small and one all zeros, and the same as floats in panels.
 * One in 64 bytes does not become 0: a table may record that a byte is not 0. */
typedef struct byte_rows {
    uint32_t rows, k;
    uint8_t *bytes, absmax[P];
    const uint8_t *row[P];
    float *floats, inverse[P];
} byte_rows;

static void begin_bytes(byte_rows *b, int bits, qn__scale scale, uint32_t rows, uint32_t k) {
    *b = (byte_rows){.rows = rows, .k = k};
    b->bytes = malloc((size_t)rows * k);
    b->floats = buffer((k + P - 1) / P * rows * P * sizeof(float));
    assert_non_null(b->bytes);
    for (uint32_t r = 0; r < rows; ++r) {
        b->row[r] = b->bytes + (size_t)r * k;
        const uint32_t dark = draw() % 8;
        for (uint32_t c = 0; c < k; ++c) {
            const uint32_t bright = c % 64 ? draw() & 255 : 255;
            const uint8_t byte = (uint8_t)(r == 2 ? 0 : bright >> dark);
            b->bytes[(size_t)r * k + c] = byte;
            b->floats[((size_t)c / P * rows + r) * P + c % P] = byte_value(scale, byte);
            b->absmax[r] = byte > b->absmax[r] ? byte : b->absmax[r];
        }
        const float most = byte_value(scale, b->absmax[r]);
        const int32_t t = qn__block_exponent(bits, qn__absmax(1, &most, 1));
        b->inverse[r] = qn__block_inverse(t);
    }
}

static void end_bytes(byte_rows *b) {
    free(b->bytes);
    free(b->floats);
}

/* Packing bytes and packing their floats give the same operands: rows of their own blocks. */
static void left_bytes_case(const qn__intgemm *table, int bits, qn__scale scale, uint32_t rows,
                            uint32_t k, const qn__cpu_digits *digits) {
    const size_t size = table->size(bits, k);
    void *expected = buffer(size), *found = buffer(size);
    size_t blocks[DEEPEST / P + 1];
    uint8_t absmax[P];
    byte_rows b;
    begin_bytes(&b, bits, scale, rows, k);
    table->absmax_bytes(rows, k, b.row, absmax);
    assert_memory_equal(absmax, b.absmax, rows);
    for (uint32_t p = 0; p * P < k; ++p)
        blocks[p] = (size_t)p * rows * P;
    table->left(bits, rows, k, b.floats, blocks, NULL, b.inverse, expected);
    table->left_bytes(bits, rows, k, b.row, b.inverse, digits, found);
    assert_memory_equal(found, expected, size);
    end_bytes(&b);
    free(expected);
    free(found);
}

/* How often an item's integers may be doubled. */
static uint8_t doublings_of_item(const qn__intgemm *table, int bits, uint32_t items, float inverse,
                                 const float *item) {
    int32_t most = 0;
    for (uint32_t i = 0; i < P; ++i)
        most = qn__quantize(item[i], inverse) > most ? qn__quantize(item[i], inverse) : most;
    return doublings(table, bits, items, most);
}

/* The same for items in a list: most are in a grain of large values, some in one as small as they
 * are, and some are doubled. */
static void bytes_items_case(const qn__intgemm *table, int bits, qn__scale scale, uint32_t items,
                             const qn__cpu_digits *digits) {
    enum { BLOCK = P * P + 48 };
    const size_t size = table->size(bits, items);
    const uint32_t blocks = (items + P - 1) / P;
    const float bright = byte_value(scale, 255);
    void *expected = buffer(size), *found = buffer(size);
    uint8_t *bytes = buffer((size_t)blocks * BLOCK);
    float *floats = buffer((size_t)items * P * sizeof *floats), own[DEEPEST], inverse[DEEPEST];
    uint32_t list[DEEPEST];
    uint8_t doubled[DEEPEST];
    for (uint32_t i = 0; i < items; ++i) {
        byte_rows b;
        begin_bytes(&b, bits, scale, 1, P);
        memcpy(bytes + (size_t)i / P * BLOCK + i % P * P, b.bytes, P);
        memcpy(floats + (size_t)i * P, b.floats, P * sizeof *floats);
        own[i] = b.inverse[0];
        end_bytes(&b);
    }
    for (uint32_t i = 0; i < items; ++i) {
        list[i] = draw() % items;
        inverse[i] = qn__block_inverse(qn__block_exponent(bits, qn__absmax(1, &bright, 1)));
        if (draw() % 4 == 0 || i % 64 == 0)
            inverse[i] = own[list[i]];
    }
    for (int twice = 0; twice < 2; ++twice) {
        for (uint32_t i = 0; i < items; ++i)
            doubled[i] = (uint8_t)(draw() % (1u + doublings_of_item(table, bits, items, inverse[i],
                                                                    floats + list[i] * P)));
        table->left_items(bits, items, list, inverse, twice ? doubled : NULL, floats, expected);
        table->left_bytes_items(bits, items, list, inverse, twice ? doubled : NULL, digits, bytes,
                                BLOCK, found);
        assert_memory_equal(found, expected, size);
    }
    free(bytes);
    free(floats);
    free(expected);
    free(found);
}

static void bytes(const qn__intgemm *table, int bits) {
    static const uint32_t depths[] = {1, 15, 17, 63, 64, 65, 129, DEEPEST};
    qn__cpu_digits *digits = buffer(sizeof *digits);
    static const qn__scale scales[] = {QN__SCALE_NONE, QN__SCALE_UNIT, QN__SCALE_FRACTION};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; ++s) {
        qn__cpu_make_digits(bits, scales[s], digits);
        for (size_t d = 0; d < sizeof depths / sizeof *depths; ++d) {
            left_bytes_case(table, bits, scales[s], 1 + draw() % P, depths[d], digits);
            bytes_items_case(table, bits, scales[s], depths[d], digits);
        }
    }
    free(digits);
}

/* One operand has small integers doubled as often as they fit, beside large ones that are not. The
 * bound of a table that assumes two doublings of the largest must still hold. */
static void often_doubled(const qn__intgemm *table) {
    enum { K = 64, Q = 8191 };
    const size_t size = table->size(14, K);
    void *left = buffer(size), *right = buffer(size);
    uint32_t list[K];
    float inverse[K], a[2 * P], d[P];
    uint8_t doubled[K], few[K];
    uint8_t times = 0;
    int64_t out[P * P];
    while (2 << times <= table->largest(14, K) && times < 14)
        ++times;
    for (uint32_t t = 0; t < K; ++t) {
        list[t] = t % 2;
        inverse[t] = 1.0f;
        doubled[t] = t % 2 ? times : 0;
        few[t] = 0;
    }
    for (uint32_t i = 0; i < P; ++i) {
        a[i] = Q;
        a[P + i] = 1.0f;
        d[i] = Q;
    }
    table->left_items(14, K, list, inverse, doubled, a, left);
    memset(list, 0, sizeof list);
    few[0] = 2 * Q <= table->largest(14, K);
    table->right_items(14, K, list, inverse, few, d, right);
    table->outer(14, K, 1, left, 1, right, QN__INTGEMM_INTEGER, 0, out);
    const int64_t n = (int64_t)Q * (K / 2) * (Q + (1 << times)) + (int64_t)Q * Q * few[0];
    for (uint32_t i = 0; i < P * P; ++i)
        if (out[i] != n)
            fail_msg("%s: %lld, not %lld", table->name, (long long)out[i], (long long)n);
    free(left);
    free(right);
}

/* The same value `k` times, so that digits and their sums are as large as possible: both are
 * doubled as often as the table allows. `hollow`: on the left every fourth pair is 0. */
static void deep_case(const qn__intgemm *table, int bits, int32_t q, int32_t r, uint32_t k,
                      int hollow) {
    const size_t size = table->size(bits, k);
    void *left = buffer(size), *right = buffer(size);
    uint32_t *list = buffer(k * sizeof *list);
    float *inverse = buffer(k * sizeof *inverse), a[2 * P], d[2 * P];
    uint32_t there = 0;
    int64_t out[P * P];
    float rounded[P * P];
    uint8_t *doubled = buffer(2 * (size_t)k);
    const uint8_t q_times = doublings(table, bits, k, q < 0 ? -q : q);
    const uint8_t r_times = doublings(table, bits, k, r < 0 ? -r : r);
    memset(doubled, q_times, k);
    memset(doubled + k, r_times, k);
    for (uint32_t t = 0; t < k; ++t) {
        inverse[t] = 1.0f;
        list[t] = hollow && t / 2 % 4 == 1;
        there += list[t] == 0;
    }
    for (uint32_t i = 0; i < P; ++i) {
        a[i] = (float)(i % 2 ? q : -q);
        d[i] = d[P + i] = (float)(i % 3 ? r : -r);
        a[P + i] = 0.0f;
    }
    table->left_items(bits, k, list, inverse, q_times ? doubled : NULL, a, left);
    table->right_items(bits, k, list, inverse, r_times ? doubled + k : NULL, d, right);
    table->outer(bits, k, 1, left, 1, right, QN__INTGEMM_INTEGER, 0, out);
    table->outer(bits, k, 1, left, 1, right, QN__INTGEMM_FLOAT, 0, rounded);
    for (uint32_t i = 0; i < P * P; ++i) {
        const int64_t n = (int64_t)q * r * there * (i / P % 2 ? 1 : -1) * (i % P % 3 ? 1 : -1) *
                          (1 << q_times << r_times);
        if (out[i] != n || rounded[i] != (float)n)
            fail_msg("%s, %d bits, %u times %d * %d, doubled %d and %d times: %lld, not %lld",
                     table->name, bits, k, q, r, q_times, r_times, (long long)out[i], (long long)n);
    }
    free(doubled);
    free(left);
    free(right);
    free(inverse);
    free(list);
}

static void deep(const qn__intgemm *table) {
    /* Digits of -64 and 64; integers whose doubles just fit a digit of 127, and others that do not;
     * the largest integers of each width. */
    static const int32_t pairs[][3] = {{7, 63, 63},
                                       {14, 8128, 8128},
                                       {14, 8128, -8191},
                                       {14, 8159, 8159},
                                       {14, 8160, 8160},
                                       {14, 8129, 8129},
                                       {14, 8191, 8191},
                                       {14, 8159, -8191},
                                       {21, 1044447, 1044447},
                                       {21, 1044448, 1044448},
                                       {21, 1048512, 1040320},
                                       {21, 1048575, 1048575}};
    static const uint32_t depths[] = {
        16, 511, 512, 1023, 1024, 1025, 2048, 4032, 4097, 5003, (UINT32_C(1) << 19) + 4099};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i)
        for (size_t d = 0; d < sizeof depths / sizeof *depths; ++d)
            for (int hollow = 0; hollow < 1 + (depths[d] == 1023); ++hollow)
                deep_case(table, pairs[i][0], pairs[i][1], pairs[i][2], depths[d], hollow);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; ++w)
        forward_case(table, widths[w], 141, 1101, widths[w] == 14 ? 3 : 1);
    forward_case(table, 14, 50, 1025, 2);
    forward_case(table, 14, HIGHEST, 70, 2);
    forward_case(table, 14, 1, (UINT32_C(1) << 17) + 77, 1);
}

static void conforms(const qn__intgemm *table) {
    static const uint32_t depths[] = {1, 3, 4, 15, 17, 32, 63, 64, 65, 129, DEEPEST};
    state = 20261121;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; ++w)
        for (size_t d = 0; d < sizeof depths / sizeof *depths; ++d) {
            const uint32_t rows = 1 + draw() % MOST_ROWS, panels = 1 + draw() % MOST_PANELS;
            const uint32_t k = depths[d];
            forward_case(table, widths[w], rows, k, panels);
            backward_case(table, widths[w], rows, k < MOST_PANELS * P ? k : MOST_PANELS * P - 3,
                          panels);
            outer_case(table, widths[w], k, panels < 4 ? panels : 4);
        }
    for (size_t w = 0; w < sizeof widths / sizeof *widths && table->left_bytes; ++w)
        bytes(table, widths[w]);
    often_doubled(table);
    if (table != &qn__intgemm_scalar)
        deep(table);
}

static void each_table(void **unused) {
    const qn__intgemm *seen[32];
    const qn__cpu_isa *isa;
    size_t tables = 0;
    (void)unused;
    for (uint32_t i = 0; (isa = qn__cpu_isa_at(i)) != NULL && tables < 32; ++i) {
        int new = isa->intgemm && isa->here();
        for (size_t j = 0; new &&j < tables; ++j)
            new = seen[j] != isa->intgemm;
        if (!new)
            continue;
        seen[tables++] = isa->intgemm;
        print_message("integers by %s\n", isa->intgemm->name);
        conforms(isa->intgemm);
    }
    assert_true(tables > 0);
}

/* A unit that the kernel grants but whose products are wrong is not used; here that is a
 * failure. */
static void what_is_granted_agrees(void **unused) {
    (void)unused;
    if (!qn__cpu_amx_granted())
        skip();
    assert_non_null(qn__cpu_isa_find("amx"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_table),
                                       cmocka_unit_test(what_is_granted_agrees)};
    return cmocka_run_group_tests_name("cpu integers", tests, NULL, NULL);
}
