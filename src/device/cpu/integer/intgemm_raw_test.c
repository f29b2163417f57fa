/* Products whose left operand is bytes themselves (intgemm.h), by every table that has them,
 * against plain loops. Numbers of blocks, depths and panels are not multiples of a tile. Blocks
 * skip other depths than their neighbours. Sums are as large as possible. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/cpu_isa.h"
#include "device/cpu/integer/intgemm_space_test.h"

enum { STEP = 64 };

/* A product of rows x k bytes by panels of k integers of 16 columns each. */
typedef struct bench {
    const qn__intgemm *table;
    int bits, extreme; /* all bytes are 255, all integers as large as they can be */
    uint32_t rows, k, panels;
    uint8_t *bytes;  /* row by row */
    int32_t *right;  /* panel by panel, depth by depth */
    float *floats;   /* the same */
    void *packed[2]; /* packed left and right */
    size_t size[2];
} bench;

/* Each block of 16 rows has its own steps of zeros. */
static void fill_bytes(bench *b) {
    for (uint32_t first = 0; first < b->rows; first += P)
        for (uint32_t step = 0; step < b->k; step += STEP) {
            const int dark = !b->extreme && draw() % 3 == 0;
            for (uint32_t r = first; r < b->rows && r < first + P; ++r)
                for (uint32_t t = step; t < b->k && t < step + STEP; ++t)
                    b->bytes[(size_t)r * b->k + t] =
                        (uint8_t)(b->extreme ? 255
                                  : dark     ? 0
                                             : draw() % (draw() % 2 ? 256 : 4));
        }
}

static void begin(bench *b, const qn__intgemm *table, int bits, int extreme, uint32_t rows,
                  uint32_t k, uint32_t panels) {
    const int32_t most = (INT32_C(1) << ((bits & ~QN__WIDE) - 1)) - 1;
    const size_t count = (size_t)panels * k * P;
    *b = (bench){.table = table,
                 .bits = bits,
                 .extreme = extreme,
                 .rows = rows,
                 .k = k,
                 .panels = panels,
                 .bytes = buffer((size_t)rows * k),
                 .right = buffer(count * sizeof(int32_t)),
                 .floats = buffer(count * sizeof(float)),
                 .size = {table->size(bits | QN__OF_BYTES, k), table->size(bits, k)}};
    b->packed[0] = buffer((rows + P - 1) / P * b->size[0]);
    b->packed[1] = buffer(panels * b->size[1]);
    fill_bytes(b);
    for (size_t i = 0; i < count; ++i) {
        const int32_t drawn = (int32_t)(draw() % (2 * (uint32_t)most + 1)) - most;
        b->right[i] = extreme ? (i % P % 3 ? most : -most) : draw() % 8 ? drawn : 0;
        b->floats[i] = (float)b->right[i];
    }
}

static void end(bench *b) {
    free(b->bytes);
    free(b->right);
    free(b->floats);
    free(b->packed[0]);
    free(b->packed[1]);
}

static int64_t sum_of(const bench *b, uint32_t row, uint32_t column) {
    const int32_t *right = b->right + (size_t)column / P * b->k * P + column % P;
    int64_t n = 0;
    for (uint32_t t = 0; t < b->k; ++t)
        n += (int64_t)b->bytes[(size_t)row * b->k + t] * right[(size_t)t * P];
    return n;
}

static void product_case(const qn__intgemm *table, int bits, int extreme, uint32_t rows, uint32_t k,
                         uint32_t panels) {
    const size_t stride = (size_t)(rows + 1) * P;
    float *factor = buffer(rows * sizeof *factor), *c = buffer(panels * stride * sizeof *c);
    float *column = buffer(panels * P * sizeof *column),
          *start = buffer(panels * P * sizeof *start);
    bench b;
    begin(&b, table, bits, extreme, rows, k, panels);
    for (uint32_t r = 0; r < rows; ++r)
        factor[r] = ldexpf(1.0f, -(int)(draw() % 9));
    for (uint32_t i = 0; i < panels * P; ++i) {
        column[i] = ldexpf(1.0f, -(int)(draw() % 30));
        start[i] = (float)draw() / 4096.0f;
    }
    for (uint32_t r = 0; r < rows; r += P) {
        const uint8_t *row[P];
        for (uint32_t i = 0; i < P && r + i < rows; ++i)
            row[i] = b.bytes + (size_t)(r + i) * k;
        table->left_raw(bits, rows - r < P ? rows - r : P, k, row,
                        (char *)b.packed[0] + r / P * b.size[0]);
    }
    for (uint32_t p = 0; p < panels; ++p) {
        float ones[P];
        for (uint32_t i = 0; i < P; ++i)
            ones[i] = 1.0f;
        table->right(bits, k, b.floats + (size_t)p * k * P, ones,
                     (char *)b.packed[1] + p * b.size[1]);
    }
    table->product(bits | QN__OF_BYTES, rows, k, b.packed[0], panels, b.packed[1], factor, column,
                   start, c, stride);
    for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t i = 0; i < panels * P; ++i) {
            const int64_t n = sum_of(&b, r, i);
            const float expected = fmaf((float)n, factor[r] * column[i], start[i]);
            const float found = c[i / P * stride + (size_t)r * P + i % P];
            if (memcmp(&found, &expected, sizeof found) != 0)
                fail_msg("%s, %d bits, %u x %u by %u panels: row %u, column %u: %a, not %a",
                         table->name, bits, rows, k, panels, r, i, (double)found, (double)expected);
        }
    free(factor);
    free(column);
    free(start);
    free(c);
    end(&b);
}

/* Here a row of the product is a feature, and depth t the item list[t]; items are stored 16 to a
 * block. */
static void outer_case(const qn__intgemm *table, int bits, int extreme, uint32_t blocks,
                       uint32_t items, uint32_t panels, int wide) {
    enum { SPACE = 48 };
    const size_t cells = (size_t)blocks * panels * P * P, block = (size_t)blocks * P * P + SPACE;
    const int32_t most = (INT32_C(1) << (bits - 1)) - 1;
    const int32_t largest = wide ? QN__WIDEST : table->largest(bits, items);
    const int asked = wide ? bits | QN__WIDE : bits;
    uint8_t *table_of = buffer((items + P - 1) / P * block), *doubled = buffer(items),
            space_for = 0;
    uint32_t *list = buffer(items * sizeof *list);
    float *ones = buffer(items * sizeof *ones),
          *floats = buffer((size_t)items * P * sizeof *floats);
    int64_t *exact = buffer(cells * sizeof *exact);
    double *sums = buffer(cells * sizeof *sums);
    float *rounded = buffer(cells * sizeof *rounded);
    bench b;
    begin(&b, table, asked, extreme, blocks * P, items, panels);
    while (most << (space_for + 1) <= largest)
        ++space_for;
    for (uint32_t t = 0; t < items; ++t) {
        list[t] = items - 1 - t; /* so item i is depth items - 1 - i */
        ones[t] = 1.0f;
        doubled[t] = (uint8_t)(extreme ? space_for : draw() % (space_for + 1u));
        if (wide && bits == 14 && t < items / 2 && t / STEP % 3 < 2) /* words as a plan has them */
            doubled[t] %= 3;
        for (uint32_t f = 0; f < blocks * P; ++f)
            table_of[list[t] / P * block + (size_t)f / P * P * P + list[t] % P * P + f % P] =
                b.bytes[(size_t)f * items + t];
    }
    for (uint32_t i = 0; i < blocks; ++i)
        table->left_raw_items(asked, items, list, table_of + (size_t)i * P * P, block,
                              (char *)b.packed[0] + i * b.size[0]);
    for (uint32_t p = 0; p < panels; ++p) {
        for (uint32_t t = 0; t < items; ++t)
            memcpy(floats + (size_t)list[t] * P, b.floats + ((size_t)p * items + t) * P,
                   P * sizeof *floats);
        table->right_items(asked, items, list, ones, doubled, floats,
                           (char *)b.packed[1] + p * b.size[1]);
        for (uint32_t i = 0; i < items * P; ++i)
            b.right[(size_t)p * items * P + i] *= 1 << doubled[i / P];
    }
    const int width = asked | QN__OF_BYTES;
    table->outer(width, items, blocks, b.packed[0], panels, b.packed[1], QN__INTGEMM_INTEGER, 0,
                 exact);
    table->outer(width, items, blocks, b.packed[0], panels, b.packed[1], QN__INTGEMM_FIRST, 0x1p3,
                 sums);
    table->outer(width, items, blocks, b.packed[0], panels, b.packed[1], QN__INTGEMM_ADD, 0x1p-2,
                 sums);
    table->outer(width, items, blocks, b.packed[0], panels, b.packed[1], QN__INTGEMM_FLOAT, 1,
                 rounded);
    for (uint32_t i = 0; i < cells; ++i) {
        const uint32_t c = i % P, r = i / P % P, at = i / (P * P) % blocks,
                       p = i / (P * P) / blocks;
        const int64_t n = sum_of(&b, at * P + r, p * P + c);
        if (exact[i] != n || rounded[i] != (float)n ||
            sums[i] != (double)n * 8 + rint((double)n / 4))
            fail_msg("%s, %d bits, wide %d, %u items: block %u, panel %u, row %u, column %u: %lld, "
                     "not %lld",
                     table->name, bits, wide, items, at, p, r, c, (long long)exact[i],
                     (long long)n);
    }
    free(table_of);
    free(doubled);
    free(list);
    free(ones);
    free(floats);
    free(exact);
    free(sums);
    free(rounded);
    end(&b);
}

static void conforms(const qn__intgemm *table, int bits) {
    static const uint32_t depths[] = {1, 15, 32, 33, 63, 64, 65, 129, 256, 257, 641};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; ++d)
        for (uint32_t blocks = 1; blocks <= 7; blocks += 1 + (uint32_t)(d % 2)) {
            product_case(table, bits, 0, blocks * P - draw() % P, depths[d], 1 + draw() % 3);
            for (int wide = 0; wide < 2; ++wide)
                outer_case(table, bits, 0, blocks, depths[d], 1 + draw() % 3, wide);
        }
    /* Lengths at the bounds where sums are combined in another way, and beyond them. */
    static const uint32_t bounds[] = {256, 320, 1024, 1088, 32768, 65536};
    for (size_t d = 0; d < sizeof bounds / sizeof *bounds; ++d)
        for (uint32_t blocks = 1; blocks <= 3; ++blocks) {
            product_case(table, bits, 1, blocks * P, bounds[d], 1);
            for (int wide = 0; wide < 2; ++wide)
                outer_case(table, bits, 1, blocks, bounds[d], 1, wide);
        }
    product_case(table, bits, 0, 2 * P + 1, 2 * 32768 + 77, 1);
    outer_case(table, bits, 0, 3, 32768 + 77, 1, bits == 14);
}

static void each_table(void **unused) {
    const qn__intgemm *seen = NULL;
    const qn__cpu_isa *isa;
    (void)unused;
    state = 20261122;
    for (uint32_t i = 0; (isa = qn__cpu_isa_at(i)) != NULL; ++i) {
        if (!isa->intgemm || !isa->here() || !isa->intgemm->left_raw || isa->intgemm == seen)
            continue;
        seen = isa->intgemm;
        conforms(seen, 14);
        conforms(seen, 21);
    }
    if (!seen)
        skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_table)};
    return cmocka_run_group_tests_name("cpu_raw", tests, NULL, NULL);
}
