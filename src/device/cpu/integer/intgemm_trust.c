/* CPUID is not enough to use matrix units: the kernel must let the process use them, and a
 * self-test must find their products correct. */
#include "device/cpu/integer/intgemm.h"
#include <pthread.h>
#include <string.h>
#if defined(QN_HAVE_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* One step of a tile and a little more; one block of rows and one of columns. */
enum {
    DEPTH = 70,
    FEW_DOUBLED = 64, /* a step whose doubled integers of 14 bits still fit 16 bits */
    SIDE = QN__PANEL,
    CELLS = SIDE * SIDE,
    PANELS = (DEPTH + SIDE - 1) / SIDE,
    FLOATS = PANELS * CELLS,
    ROOM = DEPTH * SIDE * 8
};

/* Both operands of a product, packed, and its results. */
typedef struct trial {
    _Alignas(64) char left[ROOM], right[ROOM];
    float product[CELLS];
    int64_t outer[CELLS];
    float rounded[CELLS];
    double scaled[CELLS];
} trial;

/* Integers that use all digits of a width, with the largest and the smallest among them. */
static void fill(int bits, uint32_t seed, float to[FLOATS]) {
    const int32_t most = (INT32_C(1) << (bits - 1)) - 1;
    for (uint32_t i = 0; i < FLOATS; ++i) {
        seed = seed * 1664525u + 1013904223u;
        const int32_t drawn = (int32_t)(seed >> 8) % (2 * most + 1) - most;
        to[i] = (float)(i % 11 == 0 ? most : i % 13 == 0 ? -most : drawn);
    }
}

static void multiply(const qn__intgemm *table, int bits, const float *a, const float *b,
                     trial *to) {
    uint32_t list[DEPTH];
    float ones[DEPTH], start[SIDE] = {0};
    size_t blocks[PANELS];
    for (size_t i = 0; i < PANELS; ++i)
        blocks[i] = i * CELLS;
    for (uint32_t i = 0; i < DEPTH; ++i) {
        list[i] = i;
        ones[i] = 1.0f;
    }
    table->left(bits, SIDE, DEPTH, a, blocks, NULL, ones, to->left);
    table->right(bits, DEPTH, b, ones, to->right);
    table->product(bits, SIDE, DEPTH, to->left, 1, to->right, ones, ones, start, to->product,
                   CELLS);
    table->left_items(bits, DEPTH, list, ones, NULL, a, to->left);
    table->right_items(bits, DEPTH, list, ones, NULL, b, to->right);
    table->outer(bits, DEPTH, 1, to->left, 1, to->right, QN__INTGEMM_INTEGER, 1, to->outer);
}

/* The same with bytes on the left, in the same panels as floats. */
static void multiply_raw(const qn__intgemm *table, int bits, const uint8_t *a, const float *b,
                         trial *to) {
    const int width = bits | QN__OF_BYTES;
    uint8_t bytes[SIDE][DEPTH];
    const uint8_t *row[SIDE];
    uint32_t list[DEPTH];
    float ones[DEPTH], start[SIDE] = {0};
    for (uint32_t i = 0; i < DEPTH; ++i) {
        list[i] = i;
        ones[i] = 1.0f;
        for (uint32_t r = 0; r < SIDE; ++r)
            bytes[r][i] = a[i / SIDE * CELLS + r * SIDE + i % SIDE];
    }
    for (uint32_t r = 0; r < SIDE; ++r)
        row[r] = bytes[r];
    table->left_raw(bits, SIDE, DEPTH, row, to->left);
    table->right(bits, DEPTH, b, ones, to->right);
    table->product(width, SIDE, DEPTH, to->left, 1, to->right, ones, ones, start, to->product,
                   CELLS);
    table->left_raw_items(bits, DEPTH, list, a, CELLS, to->left);
    table->right_items(bits, DEPTH, list, ones, NULL, b, to->right);
    table->outer(width, DEPTH, 1, to->left, 1, to->right, QN__INTGEMM_INTEGER, 1, to->outer);
}

static int are_same(const trial *a, const trial *b) {
    return memcmp(a->product, b->product, sizeof a->product) == 0 &&
           memcmp(a->outer, b->outer, sizeof a->outer) == 0;
}

/* Sums over items by bytes, with doubled integers on the right up to the limit of QN__WIDE. The
 * first are small, so that two digits are enough for some steps. */
static int wide_agree(const qn__intgemm *table, int bits, const uint8_t *a, const float *b) {
    const int asked = bits | QN__WIDE, width = asked | QN__OF_BYTES;
    const int32_t most = (INT32_C(1) << (bits - 1)) - 1;
    uint32_t list[DEPTH];
    float ones[DEPTH];
    uint8_t doubled[DEPTH], most_doubled = 0;
    trial found;
    if (table->size(asked, DEPTH) > ROOM)
        return 0;
    while (most << (most_doubled + 1) <= QN__WIDEST)
        ++most_doubled;
    for (uint32_t i = 0; i < DEPTH; ++i) {
        list[i] = i;
        ones[i] = 1.0f;
        doubled[i] = (uint8_t)(i < FEW_DOUBLED ? i % 3 : most_doubled - i % 2);
    }
    table->left_raw_items(asked, DEPTH, list, a, CELLS, found.left);
    table->right_items(asked, DEPTH, list, ones, doubled, b, found.right);
    table->outer(width, DEPTH, 1, found.left, 1, found.right, QN__INTGEMM_INTEGER, 1, found.outer);
    table->outer(width, DEPTH, 1, found.left, 1, found.right, QN__INTGEMM_FLOAT, 1, found.rounded);
    table->outer(width, DEPTH, 1, found.left, 1, found.right, QN__INTGEMM_FIRST, 2, found.scaled);
    for (uint32_t i = 0; i < CELLS; ++i) {
        const uint32_t row = i / SIDE, column = i % SIDE;
        int64_t n = 0;
        for (uint32_t t = 0; t < DEPTH; ++t)
            n += (int64_t)a[t / SIDE * CELLS + t % SIDE * SIDE + row] *
                 (int32_t)b[t * SIDE + column] * (1 << doubled[t]);
        if (found.outer[i] != n || found.rounded[i] != (float)n ||
            found.scaled[i] != 2.0 * (double)n)
            return 0;
    }
    return 1;
}

/* Bytes from 0 to 255 in place of the left integers. */
static int bytes_agree(const qn__intgemm *table, int bits, float *a, const float *b) {
    uint8_t bytes[FLOATS];
    trial expected, found;
    for (uint32_t i = 0; i < FLOATS; ++i) {
        bytes[i] = (uint8_t)(i % 7 == 0 ? 255 : i * 37);
        a[i] = (float)bytes[i];
    }
    multiply(&qn__intgemm_scalar, bits, a, b, &expected);
    multiply_raw(table, bits, bytes, b, &found);
    return are_same(&expected, &found) && wide_agree(table, bits, bytes, b);
}

int qn__intgemm_agree(const qn__intgemm *table) {
    float a[FLOATS], b[FLOATS];
    trial expected, found;
    for (int bits = 7; bits <= 21; bits += 7) {
        if (table->size(bits, DEPTH) > ROOM)
            return 0;
        fill(bits, 1, a);
        fill(bits, 2, b);
        multiply(&qn__intgemm_scalar, bits, a, b, &expected);
        multiply(table, bits, a, b, &found);
        if (!are_same(&expected, &found))
            return 0;
        if (bits > 7 && table->left_raw && !bytes_agree(table, bits, a, b))
            return 0;
    }
    return 1;
}

#if defined(QN_HAVE_AMX)
enum {
    TILES = 1 << 24 | 1 << 25,  /* cpuid 7, edx: tiles, products of bytes */
    VECTORS = 1 << 1 | 1 << 11, /* ecx: AVX-512 VBMI, for the packing of bytes, and VNNI, for what
                                   is not deep enough for tiles */
    SAVED = 3 << 17,            /* XCR0: the kernel saves tiles for each thread */
    REQUEST = 0x1023,           /* ARCH_REQ_XCOMP_PERM */
    TILE_DATA = 18
};

#if defined(QN_AMX_IDLE) /* tests/amx_emulated: products are not right */
enum { TILES_ARE_IDLE = 1 };
#else
enum { TILES_ARE_IDLE = 0 };
#endif

#if defined(QN_AMX_EMULATED) || defined(QN_AMX_IDLE)
/* Tiles are those of tests/amx_emulated. */
static int ask(void) {
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & VECTORS) == VECTORS;
}
#else
static int ask(void) {
    uint32_t a, b, c, d, saved, high;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & TILES) != TILES ||
        (c & VECTORS) != VECTORS)
        return 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & SAVED) != SAVED)
        return 0;
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#endif

static int granted, right;

static void look(void) {
    granted = ask();
    right = granted && (TILES_ARE_IDLE || qn__intgemm_agree(&qn__intgemm_amx));
}

static void look_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look);
}

int qn__cpu_amx_granted(void) {
    look_once();
    return granted;
}
int qn__cpu_has_amx(void) {
    look_once();
    return right;
}
#else
int qn__cpu_amx_granted(void) { return 0; }
int qn__cpu_has_amx(void) { return 0; }
#endif
