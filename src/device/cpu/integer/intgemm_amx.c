/* Integer products by AMX: tdpbssd multiplies 16 rows of 64 signed bytes with 64 rows of 16 and
 * adds to 16 x 16 sums of 32 bits.
 *
 * An integer of B bits is B/7 digits, q = sum of digit[i] * 128^i. The highest digit is from -128
 * to 127, every other from -64 to 63. A product of two integers is the sum of the products of their
 * digits: 1, 4 or 9 tile products, each added to the sums of its power of 128. 32 bits hold those
 * up to a depth of longest() steps; after that they are added to sums of 64 bits. The highest digit
 * is beyond -64 to 64 only where integers are doubled. Sums over items double often; there integers
 * of 14 bits are words: two digits to the base 256, the lower from 0 to 255.
 *
 * Bytes themselves are one unsigned digit: two or three tile products instead of four or nine. They
 * need fewer sums too, so three blocks of them are multiplied by one panel at a time.
 *
 * A block or a panel is, for each 64 depths, a tile of each digit, the highest first (pack_amx.h).
 *
 * A tile product can start every 16 cycles and takes 52. A load takes 8 cycles from the L1 cache,
 * and about twice as long from the L2 cache. So a loaded tile must be used more than once, and
 * mostly come from the L1 cache. Two neighbouring tiles of results are computed together: their
 * sums take six of the eight registers (7 and 14 bits), the other two hold a tile of each operand.
 * The order of the products changes one operand at a time. A step thus takes nine loads of six
 * different tiles for its eight products. Combining the sums of a tile of results takes other parts
 * of the core about as long as some steps of products. It is therefore done row by row between the
 * steps of the next tiles.
 *
 * Deep panels come from the L3 cache. While a pair of them is multiplied, its blocks prefetch the
 * next pair to the L2 cache, evenly. The number of lines that wait for the L3 cache is limited by
 * the core's line fill buffers, which loads from the L2 cache use too. */
#include "device/cpu/integer/intgemm.h"
#include "device/cpu/integer/pack_amx.h"
#include "device/cpu/integer/pack_bytes_amx.h"
#include "device/cpu/integer/sums_amx.h"
#include "device/cpu/integer/tiles_amx.h"

enum {
    LINE = 64,         /* bytes */
    DEEP = 16,         /* steps of a panel from which on the next panels are prefetched */
    PRODUCTS = 8,      /* of a step of 14 bits by a pair of panels, 4 * TILE bytes */
    PREFETCHED_BY = 8, /* blocks that prefetch a pair, if each product prefetches one line */
};

/* Separate functions, one for each width: the code is too large to be inlined into every loop. */
#define PUT(bits)                                                                                  \
    static __attribute__((noinline)) void put_##bits(const job *j, const ending *e, uint32_t tile, \
                                                     uint32_t r, uint32_t end) {                   \
        if (bits == BYTES_WORDS && j->steps <= SHORTEST)                                           \
            put_some(bits, SHORTEST, j, e, tile, r, end);                                          \
        else if (j->steps <= SHORT)                                                                \
            put_some(bits, SHORT, j, e, tile, r, end);                                             \
        else                                                                                       \
            put_some(bits, j->steps, j, e, tile, r, end);                                          \
    }
PUT(7)
PUT(14)
PUT(WORDS)
PUT(21)
PUT(BYTES_14)
PUT(BYTES_WORDS)
PUT(BYTES_21)
PUT(BYTES_LONGS)

/* Rows `row` to `last` - 1 of the completed tiles, each of 16 rows. */
INLINE void end_rows(const int bits, const job *j, const ending *e, uint32_t row, uint32_t last) {
    while (row < last) {
        const uint32_t tile = row / WIDE, first = tile * WIDE, next = first + WIDE;
        const uint32_t rows = j->rows - (e->block + (of_bytes(bits) ? tile : 0)) * WIDE;
        uint32_t end = last - first < rows ? last - first : rows;
        end = end < WIDE ? end : WIDE;
        if (bits == 7)
            put_7(j, e, tile, row - first, end);
        else if (bits == 14)
            put_14(j, e, tile, row - first, end);
        else if (bits == WORDS)
            put_WORDS(j, e, tile, row - first, end);
        else if (bits == BYTES_14)
            put_BYTES_14(j, e, tile, row - first, end);
        else if (bits == BYTES_WORDS)
            put_BYTES_WORDS(j, e, tile, row - first, end);
        else if (bits == BYTES_21)
            put_BYTES_21(j, e, tile, row - first, end);
        else if (bits == BYTES_LONGS)
            put_BYTES_LONGS(j, e, tile, row - first, end);
        else
            put_21(j, e, tile, row - first, end);
        row = last < next ? last : next;
    }
}

INLINE void zero_sums(void) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
}

/* The sums of a tile of results, in several registers. Those of a second tile follow those of the
 * first. */
INLINE void store_sums(const int bits, const int tiles, sums *to) {
    const uint32_t parts = bits == 7 || is_bytes_by_two(bits) ? 2 : bits == 21 ? 5 : 3;
    const uint32_t next = bits == 7 ? 3 : parts; /* the first register of the second tile */
    _tile_stored(0, to->part[0], 64);
    _tile_stored(1, to->part[1], 64);
    if (parts > 2)
        _tile_stored(2, to->part[2], 64);
    if (parts == 5) {
        _tile_stored(3, to->part[3], 64);
        _tile_stored(4, to->part[4], 64);
        return;
    }
    if (tiles > 1 && next == 2) {
        _tile_stored(2, to[1].part[0], 64);
        _tile_stored(3, to[1].part[1], 64);
    } else if (tiles > 1) {
        _tile_stored(3, to[1].part[0], 64);
        _tile_stored(4, to[1].part[1], 64);
        if (parts > 2)
            _tile_stored(5, to[1].part[2], 64);
    }
    if (tiles > 2) {
        _tile_stored(4, to[2].part[0], 64);
        _tile_stored(5, to[2].part[1], 64);
    }
}

/* One step. A tile of sums is used by every fourth product or more rarely, if there are enough
 * tiles; `odd` selects one of two sums of 7 bits. */
INLINE void step_7(const int pair, const int odd, const char *a, const char *b, const char *b2) {
    _tile_loadd(6, a, 64);
    _tile_loadd(7, b, 64);
    if (odd)
        _tile_dpbssd(1, 6, 7);
    else
        _tile_dpbssd(0, 6, 7);
    if (!pair)
        return;
    _tile_loadd(7, b2, 64);
    if (odd)
        _tile_dpbssd(4, 6, 7);
    else
        _tile_dpbssd(3, 6, 7);
}

/* Prefetches to the L2 cache during a product of a step: `lines` lines of what is at `from`. */
INLINE void prefetch_lines(const uint32_t lines, uintptr_t from, uint32_t product) {
    for (uint32_t i = 0; i < lines; ++i)
        _mm_prefetch((const char *)(from + (product * lines + i) * LINE), _MM_HINT_T1);
}

/* Multiplies tiles 6 and 7 and adds to `sum`; `other` takes unsigned bytes. */
#define DOT(other_too, other, sum)                                                                 \
    do {                                                                                           \
        if (other_too)                                                                             \
            other(sum, 6, 7);                                                                      \
        else                                                                                       \
            _tile_dpbssd(sum, 6, 7);                                                               \
    } while (0)

/* The same for bytes and a digit in tile 7 that is not the highest. */
#define LAST_OF_BYTES(words, sum, tile)                                                            \
    do {                                                                                           \
        if (words)                                                                                 \
            _tile_dpbuud(sum, tile, 7);                                                            \
        else                                                                                       \
            _tile_dpbusd(sum, tile, 7);                                                            \
    } while (0)

/* Two digits: highest, the two mixed products, lowest. The lower digit of words is unsigned. */
INLINE void step_two(const int bits, const int pair, const uint32_t lines, const char *a,
                     const char *b, const char *b2, uintptr_t upcoming) {
    const int words = bits == WORDS;
    _tile_loadd(6, a, 64);
    _tile_loadd(7, b, 64);
    _tile_dpbssd(0, 6, 7);
    prefetch_lines(lines, upcoming, 0);
    _tile_loadd(7, b + TILE, 64);
    DOT(words, _tile_dpbsud, 1);
    prefetch_lines(lines, upcoming, 1);
    if (pair) {
        _tile_loadd(7, b2, 64);
        _tile_dpbssd(3, 6, 7);
        prefetch_lines(lines, upcoming, 2);
        _tile_loadd(7, b2 + TILE, 64);
        DOT(words, _tile_dpbsud, 4);
        prefetch_lines(lines, upcoming, 3);
        _tile_loadd(6, a + TILE, 64);
        DOT(words, _tile_dpbuud, 5);
        prefetch_lines(lines, upcoming, 4);
        _tile_loadd(7, b2, 64);
        DOT(words, _tile_dpbusd, 4);
        prefetch_lines(lines, upcoming, 5);
        _tile_loadd(7, b + TILE, 64);
    } else
        _tile_loadd(6, a + TILE, 64);
    DOT(words, _tile_dpbuud, 2);
    prefetch_lines(lines, upcoming, 6);
    _tile_loadd(7, b, 64);
    DOT(words, _tile_dpbusd, 1);
    prefetch_lines(lines, upcoming, 7);
}

/* Three tiles are left for the operands. */
INLINE void step_21(const char *a, const char *b) {
    _tile_loadd(5, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbssd(0, 5, 6);
    _tile_loadd(7, b + TILE, 64);
    _tile_dpbssd(1, 5, 7);
    _tile_loadd(6, b + 2 * TILE, 64);
    _tile_dpbssd(2, 5, 6);
    _tile_loadd(5, a + TILE, 64);
    _tile_dpbssd(3, 5, 6);
    _tile_dpbssd(2, 5, 7);
    _tile_loadd(6, b, 64);
    _tile_dpbssd(1, 5, 6);
    _tile_loadd(5, a + 2 * TILE, 64);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
    _tile_loadd(7, b + 2 * TILE, 64);
    _tile_dpbssd(4, 5, 7);
}

/* Blocks of bytes, `next` bytes apart, by two digits. Tile 7 is used by all before it is loaded
 * again. */
INLINE void step_bytes(const int bits, const int blocks, const char *a, size_t next,
                       const char *b) {
    const int words = bits == BYTES_WORDS;
    _tile_loadd(6, a, 64);
    _tile_loadd(7, b, 64);
    _tile_dpbusd(0, 6, 7);
    if (blocks == 2) {
        _tile_loadd(5, a + next, 64);
        _tile_dpbusd(2, 5, 7);
    }
    _tile_loadd(7, b + TILE, 64);
    LAST_OF_BYTES(words, 1, 6);
    if (blocks == 2)
        LAST_OF_BYTES(words, 3, 5);
    if (blocks != 3)
        return;
    _tile_loadd(6, a + next, 64);
    LAST_OF_BYTES(words, 3, 6);
    _tile_loadd(7, b, 64);
    _tile_dpbusd(2, 6, 7);
    _tile_loadd(6, a + 2 * next, 64);
    _tile_dpbusd(4, 6, 7);
    _tile_loadd(7, b + TILE, 64);
    LAST_OF_BYTES(words, 5, 6);
}

/* One or two blocks of bytes by longs that fit words; their second digit is the signed one. */
INLINE void step_bytes_by_words(const int blocks, const char *a, size_t next, const char *b) {
    _tile_loadd(6, a, 64);
    _tile_loadd(7, b + TILE, 64);
    _tile_dpbusd(1, 6, 7);
    _tile_loadd(7, b + 2 * TILE, 64);
    _tile_dpbuud(2, 6, 7);
    if (blocks == 1)
        return;
    _tile_loadd(6, a + next, 64);
    _tile_dpbuud(5, 6, 7);
    _tile_loadd(7, b + TILE, 64);
    _tile_dpbusd(4, 6, 7);
}

/* The first step with longs that do not fit words. */
INLINE uint32_t first_longs(const job *j, const char *b) {
    const filled *list = filled_of(LONGS, j->steps, b);
    return list->count ? list->step[0] : j->steps;
}

/* One or two blocks of bytes by three digits. */
INLINE void step_bytes_by_three(const int bits, const int blocks, const char *a, size_t next,
                                const char *b) {
    const int wide = bits == BYTES_LONGS;
    _tile_loadd(6, a, 64);
    _tile_loadd(7, b, 64);
    _tile_dpbusd(0, 6, 7);
    _tile_loadd(7, b + TILE, 64);
    LAST_OF_BYTES(wide, 1, 6);
    _tile_loadd(7, b + 2 * TILE, 64);
    LAST_OF_BYTES(wide, 2, 6);
    if (blocks == 1)
        return;
    _tile_loadd(6, a + next, 64);
    LAST_OF_BYTES(wide, 5, 6);
    _tile_loadd(7, b + TILE, 64);
    LAST_OF_BYTES(wide, 4, 6);
    _tile_loadd(7, b, 64);
    _tile_dpbusd(3, 6, 7);
}

/* Steps of a block by a panel or a pair of them, or of blocks of bytes by a panel; at most
 * longest(). With `back` 0 they are in ascending order. */
typedef struct part {
    const char *a, *b;
    const uint32_t *step;
    uint32_t count;
    int back;
    uintptr_t upcoming; /* what it prefetches, if anything */
} part;

/* Computes the sums of a part. All rows of the previous tiles must be stored before these sums are,
 * since both use the same memory. */
INLINE void multiply(const int bits, const int tiles, const uint32_t lines, const job *j,
                     const part *p, sums *to, ending *e) {
    const int pair = tiles == 2;
    const uint32_t rows = e->tiles * WIDE, count = p->count;
    const uint32_t share = count ? (rows + count - 1) / count : 0;
    const char *a = p->a, *b = p->b, *b2 = b + j->size;
    const uint32_t *step = p->back ? p->step + count - 1 : p->step;
    const ptrdiff_t next = p->back ? -1 : 1;
    const uint32_t longs = bits == BYTES_LONGS ? first_longs(j, b) : 0;
    uintptr_t upcoming = p->upcoming;
    uint32_t row = 0;
    zero_sums();
    for (uint32_t i = 0; i < count; ++i, step += next) {
        const size_t at = *step * step_size(bits), own = *step * left_step_size(bits);
        if (bits == BYTES_LONGS && *step < longs)
            step_bytes_by_words(tiles, a + own, j->left_size, b + at);
        else if (bits == BYTES_21 || bits == BYTES_LONGS)
            step_bytes_by_three(bits, tiles, a + own, j->left_size, b + at);
        else if (of_bytes(bits))
            step_bytes(bits, tiles, a + own, j->left_size, b + at);
        else if (bits == 7 && i % 2)
            step_7(pair, 1, a + at, b + at, b2 + at);
        else if (bits == 7)
            step_7(pair, 0, a + at, b + at, b2 + at);
        else if (digits_of(bits) == 2)
            step_two(bits, pair, lines, a + at, b + at, b2 + at, upcoming);
        else
            step_21(a + at, b + at);
        const uint32_t last = row + share < rows ? row + share : rows;
        end_rows(bits, j, e, row, last);
        row = last;
        upcoming += (uintptr_t)lines * PRODUCTS * LINE;
    }
    end_rows(bits, j, e, row, rows);
    e->tiles = 0;
    store_sums(bits, tiles, to);
}

/* Adds the sums of a chunk to to->exact, or stores them if it is the first. */
INLINE void widen(const int bits, int first, sums *to) {
    for (uint32_t r = 0; r < WIDE; ++r) {
        __m512i n[2], all[2];
        exact_row(bits, longest(bits), to, r, n);
        exact_row(bits, longest(bits) + 1, to, r, all);
        for (int i = 0; i < 2; ++i)
            _mm512_store_si512(to->exact + r * WIDE + 8 * i,
                               first ? n[i] : _mm512_add_epi64(n[i], all[i]));
    }
}

/* The next block's sums overwrite those of the completed tiles. */
INLINE void complete(const int tiles, const sums *s, uint32_t block, uint32_t panel, ending *e) {
    e->s = s;
    e->block = block;
    e->panel = panel;
    e->tiles = (uint32_t)tiles;
}

/* Joins the lists: the steps below `end` that are in any of them, from its position on, at most
 * longest(). */
INLINE uint32_t join(const int lists, const filled *const *list, uint32_t *at, uint32_t end,
                     uint32_t *to) {
    for (uint32_t count = 0;; ++count) {
        uint32_t next = end;
        for (int i = 0; i < lists; ++i)
            if (at[i] < list[i]->count && list[i]->step[at[i]] < next)
                next = list[i]->step[at[i]];
        if (next == end)
            return count;
        to[count] = next;
        for (int i = 0; i < lists; ++i)
            at[i] += at[i] < list[i]->count && list[i]->step[at[i]] == next;
    }
}

INLINE int are_alike(const int lists, const filled *const *list) {
    int alike = 1;
    for (int i = 1; i < lists; ++i)
        alike &= list[i]->count == list[0]->count &&
                 memcmp(list[i]->step, list[0]->step, list[0]->count * sizeof(uint32_t)) == 0;
    return alike;
}

/* Blocks from `block` on by panels from `panel` on: `tiles` blocks of bytes by one panel, or one
 * block by `tiles` panels. Sums deeper than longest() are added to 64 bits, chunk by chunk. `back`:
 * from the last step to the first. Each block prefetches its share of the memory after the panels:
 * the next panels of this task or, mostly, of the next task. */
INLINE void tiles_by(const int bits, const int tiles, const uint32_t lines, const job *j,
                     uint32_t block, uint32_t panel, int back, sums *s, ending *e) {
    const int lists = of_bytes(bits) ? tiles : 1;
    const filled *list[3];
    uint32_t at[3] = {0}, joined[1024];
    part p = {.a = j->left + block * j->left_size,
              .b = j->right + panel * j->size,
              .back = back,
              .upcoming = (uintptr_t)j->right + (panel + (uint32_t)tiles) * j->size +
                          (uintptr_t)block * j->steps * lines * PRODUCTS * LINE};
    for (int i = 0; i < lists; ++i)
        list[i] = filled_of(bits, j->steps, p.a + (size_t)i * j->left_size);
    if (j->steps <= longest(bits) && are_alike(lists, list)) {
        p.step = list[0]->step;
        p.count = list[0]->count;
        multiply(bits, tiles, lines, j, &p, s, e);
        complete(tiles, s, block, panel, e);
        return;
    }
    p.step = joined;
    for (uint32_t done = 0; done < j->steps; done += longest(bits)) {
        const uint32_t left = j->steps - done, more = left < longest(bits) ? left : longest(bits);
        p.count = join(lists, list, at, done + more, joined);
        multiply(bits, tiles, lines, j, &p, s, e);
        for (int tile = 0; tile < tiles && j->steps > longest(bits); ++tile)
            widen(bits, done == 0, s + tile);
    }
    complete(tiles, s, block, panel, e);
}

/* Every second block runs the steps backwards: it begins with the tiles that were used last. */
INLINE void run(const int bits, const uint32_t lines, const job *j) {
    _Alignas(64) sums s[2];
    ending e = {.tiles = 0};
    uint32_t panel = 0;
    begin_tiles();
    for (; most_tiles(bits) == 2 && panel + 1 < j->panels; panel += 2)
        for (uint32_t block = 0; block * WIDE < j->rows; ++block)
            if (lines && block < PREFETCHED_BY / lines)
                tiles_by(bits, 2, lines, j, block, panel, block % 2, s, &e);
            else
                tiles_by(bits, 2, 0, j, block, panel, block % 2, s, &e);
    for (; panel < j->panels; ++panel)
        for (uint32_t block = 0; block * WIDE < j->rows; ++block)
            tiles_by(bits, 1, 0, j, block, panel, block % 2, s, &e);
    end_rows(bits, j, &e, 0, e.tiles * WIDE);
    end_tiles();
}

/* For bytes the panel is larger, so it stays in the L1 cache. Four blocks are two pairs: a single
 * block would wait for its sums. */
INLINE void run_of_bytes(const int bits, const job *j) {
    const uint32_t blocks = (j->rows + WIDE - 1) / WIDE;
    _Alignas(64) sums s[3];
    ending e = {.tiles = 0};
    begin_tiles();
    for (uint32_t panel = 0; panel < j->panels; ++panel) {
        int back = 0;
        for (uint32_t block = 0, left; (left = blocks - block) > 0; back = !back)
            if (most_tiles(bits) == 3 && left > 2 && left != 4) {
                tiles_by(bits, 3, 0, j, block, panel, back, s, &e);
                block += 3;
            } else if (left > 1) {
                tiles_by(bits, 2, 0, j, block, panel, back, s, &e);
                block += 2;
            } else {
                tiles_by(bits, 1, 0, j, block, panel, back, s, &e);
                block += 1;
            }
    }
    end_rows(bits, j, &e, 0, e.tiles * WIDE);
    end_tiles();
}

/* Not inlined: one copy for each width. */
static __attribute__((noinline)) void run_7(const job *j) { run(7, 0, j); }
static __attribute__((noinline)) void run_14(const job *j) { run(14, 0, j); }
static __attribute__((noinline)) void run_14_calling_1(const job *j) { run(14, 1, j); }
static __attribute__((noinline)) void run_14_calling_2(const job *j) { run(14, 2, j); }
static __attribute__((noinline)) void run_words(const job *j) { run(WORDS, 0, j); }
static __attribute__((noinline)) void run_21(const job *j) { run(21, 0, j); }
static __attribute__((noinline)) void run_bytes_14(const job *j) { run_of_bytes(BYTES_14, j); }
static __attribute__((noinline)) void run_bytes_21(const job *j) { run_of_bytes(BYTES_21, j); }
static __attribute__((noinline)) void run_bytes_longs(const job *j) {
    run_of_bytes(BYTES_LONGS, j);
}
static __attribute__((noinline)) void run_bytes_words(const job *j) {
    run_of_bytes(BYTES_WORDS, j);
}

/* Few blocks prefetch more lines each; very few of them wait for the panels in any case. */
static void run_14_any(const job *j) {
    const uint32_t blocks = (j->rows + WIDE - 1) / WIDE;
    if (j->steps < DEEP || blocks < PREFETCHED_BY / 2)
        run_14(j);
    else if (blocks < PREFETCHED_BY)
        run_14_calling_2(j);
    else
        run_14_calling_1(j);
}

static void run_job(int bits, const job *j) {
    if (bits == 7)
        run_7(j);
    else if (bits == 14)
        run_14_any(j);
    else if (bits == WORDS)
        run_words(j);
    else if (bits == BYTES_14)
        run_bytes_14(j);
    else if (bits == BYTES_WORDS)
        run_bytes_words(j);
    else if (bits == BYTES_21)
        run_bytes_21(j);
    else if (bits == BYTES_LONGS)
        run_bytes_longs(j);
    else
        run_21(j);
}

/* Up to half a step of 14 bits uses VNNI, which every processor with AMX has: no padding to full
 * tiles, and sums in registers. VNNI operands have another format, so that packing and
 * multiplication must both call this function. */
static int is_shallow(int bits, uint32_t k) { return width_of(bits) == 14 && k <= STEP / 2; }

/* The internal width for a width of intgemm.h. */
static int own_width(int bits) { return bits & QN__WIDE ? LONGS | of_bytes(bits) : bits; }

static size_t qn_cpu_size_int_amx(int bits, uint32_t k) {
    if (is_shallow(bits, k))
        return (qn__intgemm_vnni.size(width_of(bits), k) + 63) / 64 * 64;
    return steps_of(k) * left_step_size(own_width(bits)) + filled_size(steps_of(k));
}

static void qn_cpu_absmax_int_amx(uint32_t rows, uint32_t k, const float *from,
                                  const size_t *blocks, const float *times, uint32_t *absmax) {
    if (times)
        absmax_of(rows, k, from, blocks, times, absmax);
    else
        absmax_of(rows, k, from, blocks, NULL, absmax);
}

static void qn_cpu_left_int_amx(int bits, uint32_t rows, uint32_t k, const float *from,
                                const size_t *blocks, const float *times, const float *inverse,
                                void *to) {
    if (is_shallow(bits, k))
        qn__intgemm_vnni.left(bits, rows, k, from, blocks, times, inverse, to);
    else
        EACH_WIDTH(bits, pack_left, rows, k, from, blocks, times, inverse, to);
}

static void qn_cpu_left_across_int_amx(int bits, uint32_t k, const uint32_t *list,
                                       const float *from, const float inverse[QN__PANEL],
                                       void *to) {
    if (is_shallow(bits, k))
        qn__intgemm_vnni.left_across(bits, k, list, from, inverse, to);
    else
        EACH_WIDTH(bits, pack_left_across, k, list, from, inverse, to);
}

static void qn_cpu_right_int_amx(int bits, uint32_t k, const float *from,
                                 const float inverse[QN__PANEL], void *to) {
    if (is_shallow(bits, k))
        qn__intgemm_vnni.right(bits, k, from, inverse, to);
    else
        EACH_WIDTH(bits, pack_right, k, from, inverse, to);
}

static void qn_cpu_right_part_int_amx(int bits, uint32_t k, uint32_t first, uint32_t count,
                                      const float *from, const float inverse[QN__PANEL], void *to) {
    if (is_shallow(bits, k))
        qn__intgemm_vnni.right(bits, k, from, inverse, to);
    else
        EACH_WIDTH(bits, pack_right, count, from, inverse,
                   (char *)to + first / STEP * step_size(bits));
}

static void qn_cpu_right_transposed_int_amx(int bits, uint32_t columns, uint32_t k,
                                            const float *from, const size_t *blocks,
                                            const float *inverse, void *to) {
    if (is_shallow(bits, k))
        qn__intgemm_vnni.right_transposed(bits, columns, k, from, blocks, inverse, to);
    else
        EACH_WIDTH(bits, pack_right_transposed, columns, k, from, blocks, inverse, to);
}

static void qn_cpu_left_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                      const float *inverse, const uint8_t *doubled,
                                      const float *from, void *to) {
    if (is_shallow(bits, count))
        qn__intgemm_vnni.left_items(bits, count, list, inverse, doubled, from, to);
    else
        EACH_ITEM_WIDTH(bits, pack_items, count, list, inverse, doubled, from, 1, to);
}

static void qn_cpu_right_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                       const float *inverse, const uint8_t *doubled,
                                       const float *from, void *to) {
    if (is_shallow(bits, count))
        qn__intgemm_vnni.right_items(bits, count, list, inverse, doubled, from, to);
    else
        EACH_ITEM_WIDTH(bits, pack_items, count, list, inverse, doubled, from, 0, to);
}

/* The highest digit may be up to 127; two digits of 14 bits are the digits of a word. */
static int32_t qn_cpu_largest_int_amx(int bits, uint32_t k) {
    (void)k;
    return bits == 7 ? 127 : bits == 14 ? INT16_MAX : (127 * 128 + 63) * 128 + 63;
}

static void qn_cpu_absmax_bytes_int_amx(uint32_t rows, uint32_t k, const uint8_t *const *from,
                                        uint8_t *absmax) {
    absmax_of_bytes(rows, k, from, absmax);
}

/* Consecutive integer operands of VNNI, in panels of 16 rows. */
static const size_t few_blocks[] = {0, WIDE *WIDE};
#define FOUR(x) x, x, x, x
static const float ones[WIDE * 2] = {FOUR(1), FOUR(1), FOUR(1), FOUR(1),
                                     FOUR(1), FOUR(1), FOUR(1), FOUR(1)};
static const uint32_t in_order[WIDE * 2] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                            11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                            22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static void qn_cpu_left_bytes_int_amx(int bits, uint32_t rows, uint32_t k,
                                      const uint8_t *const *from, const float *inverse,
                                      const qn__cpu_digits *digits, void *to) {
    if (is_shallow(bits, k)) {
        float floats[STEP / 2 * WIDE];
        floats_of_rows(rows, k, from, inverse, digits, floats);
        qn__intgemm_vnni.left(bits, rows, k, floats, few_blocks, NULL, ones, to);
    } else
        EACH_WIDTH(bits, pack_left_bytes, rows, k, from, inverse, digits, to);
}

static void qn_cpu_left_bytes_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                            const float *inverse, const uint8_t *doubled,
                                            const qn__cpu_digits *digits, const uint8_t *from,
                                            size_t block, void *to) {
    if (is_shallow(bits, count)) {
        float floats[STEP / 2 * WIDE];
        floats_of_items(count, list, inverse, digits, from, block, floats);
        qn__intgemm_vnni.left_items(bits, count, in_order, ones, doubled, floats, to);
    } else
        EACH_ITEM_WIDTH(bits, pack_items_bytes, count, list, inverse, doubled, digits, from, block,
                        to);
}

static void qn_cpu_left_raw_int_amx(int bits, uint32_t rows, uint32_t k, const uint8_t *const *from,
                                    void *to) {
    if (is_shallow(bits, k)) {
        float floats[STEP / 2 * WIDE];
        raw_floats_of_rows(rows, k, from, floats);
        qn__intgemm_vnni.left(bits, rows, k, floats, few_blocks, NULL, ones, to);
    } else
        pack_raw(BYTES_14, rows, k, from, to);
}

static void qn_cpu_left_raw_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                          const uint8_t *from, size_t block, void *to) {
    if (is_shallow(bits, count)) {
        float floats[STEP / 2 * WIDE];
        raw_floats_of_items(count, list, from, block, floats);
        qn__intgemm_vnni.left_items(bits, count, in_order, ones, NULL, floats, to);
    } else
        pack_raw_items(BYTES_14, count, list, from, block, to);
}

static void qn_cpu_product_int_amx(int bits, uint32_t rows, uint32_t k, const void *left,
                                   uint32_t panels, const void *right, const float *row,
                                   const float *column, const float *start, float *c,
                                   size_t c_stride) {
    if (is_shallow(bits, k)) {
        qn__intgemm_vnni.product(width_of(bits), rows, k, left, panels, right, row, column, start,
                                 c, c_stride);
        return;
    }
    const job j = {.form = column ? FORM_COLUMN : FORM_PLAIN,
                   .rows = rows,
                   .steps = steps_of(k),
                   .panels = panels,
                   .left_size = qn_cpu_size_int_amx(bits, k),
                   .size = qn_cpu_size_int_amx(width_of(bits), k),
                   .left = left,
                   .right = right,
                   .factor = row,
                   .column = column,
                   .start = start,
                   .c = c,
                   .c_stride = c_stride};
    run_job(bits, &j);
}

static void qn_cpu_outer_int_amx(int bits, uint32_t k, uint32_t blocks, const void *left,
                                 uint32_t panels, const void *right, qn__intgemm_out how,
                                 double factor, void *out) {
    if (is_shallow(bits, k)) {
        qn__intgemm_vnni.outer(width_of(bits), k, blocks, left, panels, right, how, factor, out);
        return;
    }
    const job j = {.form = how == QN__INTGEMM_FLOAT     ? FORM_FLOAT
                           : how == QN__INTGEMM_INTEGER ? FORM_INTEGER
                                                        : FORM_DOUBLE,
                   .rows = blocks * WIDE,
                   .steps = steps_of(k),
                   .panels = panels,
                   .left_size = qn_cpu_size_int_amx(bits, k),
                   .size = qn_cpu_size_int_amx(width_of(bits), k),
                   .left = left,
                   .right = right,
                   .adds = how == QN__INTGEMM_ADD,
                   .scale = factor,
                   .out = out};
    run_job(bits == 14 ? WORDS : bits == BYTES_14 ? BYTES_WORDS : own_width(bits), &j);
}

const qn__intgemm qn__intgemm_amx = {
    .name = "amx",
    .size = qn_cpu_size_int_amx,
    .absmax = qn_cpu_absmax_int_amx,
    .left = qn_cpu_left_int_amx,
    .left_across = qn_cpu_left_across_int_amx,
    .right = qn_cpu_right_int_amx,
    .right_part = qn_cpu_right_part_int_amx,
    .right_transposed = qn_cpu_right_transposed_int_amx,
    .left_items = qn_cpu_left_items_int_amx,
    .right_items = qn_cpu_right_items_int_amx,
    .largest = qn_cpu_largest_int_amx,
    .absmax_bytes = qn_cpu_absmax_bytes_int_amx,
    .left_bytes = qn_cpu_left_bytes_int_amx,
    .left_bytes_items = qn_cpu_left_bytes_items_int_amx,
    .left_raw = qn_cpu_left_raw_int_amx,
    .left_raw_items = qn_cpu_left_raw_items_int_amx,
    .product = qn_cpu_product_int_amx,
    .outer = qn_cpu_outer_int_amx,
    .conv = &qn__intconv_amx,
};
