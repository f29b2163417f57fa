/* Matrix instructions and copies of 16 bytes of the emulated GPU, as the PTX ISA describes mma with
 * .s8 operands and cp.async: who holds which numbers, and when a copy may be relied on. */
#include "emulated_matrix.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LANES = 1024, WARP = 32, MOST_COPIES = 64 };

/* Where the words of each lane lie between qn_matrix_begin and qn_matrix_end. */
static _Thread_local const int32_t *left[MOST_LANES], *right[MOST_LANES];

typedef struct copy {
    int32_t *to;
    const int32_t *from; /* NULL: zeros */
    uint32_t piece;
} copy;

/* Copies of a lane that nobody has waited for yet; its pieces so far. */
static _Thread_local struct lane_copies {
    copy waiting[MOST_COPIES];
    uint32_t count, pieces;
} copies[MOST_LANES];

static _Thread_local int quarters;

void qn_emulated_quarters(int yes) { quarters = yes; }

int qn_quarters(void) { return quarters; }

void qn_matrix_begin(const int32_t *a, const int32_t *b) {
    left[qn_emulated_now.lane] = a;
    right[qn_emulated_now.lane] = b;
    qn_emulated_barrier();
}

void qn_matrix_end(void) { qn_emulated_barrier(); }

static int byte_of(int32_t word, int n) { return (int8_t)((uint32_t)word >> 8 * n); }

/* Adds four products; bytes n of both words belong to the same place along the sum. */
static int32_t dot(int32_t a, int32_t b, int32_t d) {
    for (int n = 0; n < 4; ++n)
        d += byte_of(a, n) * byte_of(b, n);
    return d;
}

/* The word that another lane of the warp holds where this lane has `mine`. */
static int32_t word_of(const int32_t *const *board, uint32_t lane, const int32_t *mine,
                       uint32_t other) {
    return board[lane - lane % WARP + other][mine - board[lane]];
}

/* Whether rows g and g + 8 are zero: most are, in the small networks of tests. */
static int all_zero(uint32_t first, ptrdiff_t place) {
    uint64_t words[2], any = 0;
    for (uint32_t lane = first; lane < first + 4; ++lane) {
        memcpy(words, left[lane] + place, sizeof words);
        any |= words[0] | words[1];
    }
    return any == 0;
}

/* m8n8k16: lane 4 g + t holds numbers 4 t .. 4 t + 3 of row g of a, and of column g of b; and of d
 * columns 2 t and 2 t + 1 of row g. */
void qn_matrix_part(int32_t *d, const int32_t *a, const int32_t *b) {
    const uint32_t lane = qn_emulated_now.lane, g = lane % WARP / 4, t = lane % 4;
    for (uint32_t k = 0; k < 4; ++k) {
        const int32_t x = word_of(left, lane, a, 4 * g + k);
        if (x == 0)
            continue;
        d[0] = dot(x, word_of(right, lane, b, 4 * (2 * t) + k), d[0]);
        d[1] = dot(x, word_of(right, lane, b, 4 * (2 * t + 1) + k), d[1]);
    }
}

/* m16n8k32: the word i of a holds row g, of i 1 and 3 row g + 8, and numbers 4 t .. 4 t + 3, of i 2
 * and 3 those 16 columns later; the word i of b numbers 4 t .. and those 16 columns later, of
 * column g; d[2] and d[3] are those of row g + 8. */
void qn_matrix_whole(int32_t *d, const int32_t *a, const int32_t *b) {
    const uint32_t lane = qn_emulated_now.lane, g = lane % WARP / 4, t = lane % 4;
    if (all_zero(lane - lane % 4, a - left[lane]))
        return;
    for (uint32_t row = 0; row < 2; ++row)
        for (uint32_t k = 0; k < 8; ++k) {
            const int32_t x = word_of(left, lane, a + row + k / 4 * 2, 4 * g + k % 4);
            if (x == 0)
                continue;
            for (uint32_t n = 0; n < 2; ++n)
                d[2 * row + n] = dot(x, word_of(right, lane, b + k / 4, 4 * (2 * t + n) + k % 4),
                                     d[2 * row + n]);
        }
}

static void die(const char *what) {
    fprintf(stderr, "emulated GPU: %s\n", what);
    abort();
}

void qn_copy(int32_t *to, const int32_t *from, uint32_t inside) {
    struct lane_copies *c = &copies[qn_emulated_now.lane];
    if ((uintptr_t)to % 16 != 0 || (inside && (uintptr_t)from % 16 != 0))
        die("a copy of 16 bytes is not aligned");
    if (c->count == MOST_COPIES)
        die("too many copies are under way");
    c->waiting[c->count++] = (copy){to, inside ? from : NULL, c->pieces};
}

void qn_copies_end(void) { ++copies[qn_emulated_now.lane].pieces; }

/* Copies are done here and not before, so that a kernel that does not wait finds what was there. */
void qn_copies_wait(uint32_t but) {
    struct lane_copies *c = &copies[qn_emulated_now.lane];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->count; ++i) {
        const copy *one = &c->waiting[i];
        if (c->pieces - one->piece <= but)
            c->waiting[kept++] = *one;
        else if (one->from)
            memcpy(one->to, one->from, 16);
        else
            memset(one->to, 0, 16);
    }
    c->count = kept;
}

void qn_emulated_forget_copies(uint32_t lanes) {
    for (uint32_t i = 0; i < lanes; ++i)
        copies[i].count = copies[i].pieces = 0;
}
