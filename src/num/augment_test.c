/* Augmentation, against each word done by itself on a copy of the picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "num/augment.h"
#include "num/philox.h"

enum { CHANNELS = 2, SIDE = 9, PAD = 8, ROOM = SIDE + 2 * PAD };

typedef struct picture {
    uint32_t height, width;
    float pixel[CHANNELS][ROOM][ROOM];
} picture;

static uint32_t random_word(uint64_t item, uint32_t epoch, uint32_t element) {
    uint32_t word[4];
    qn__words(7, 6, 0, epoch, item, element / 4, word);
    return word[element % 4];
}

static int64_t below(uint64_t item, uint32_t epoch, uint32_t element, uint64_t count) {
    return (int64_t)((random_word(item, epoch, element) * count) >> 32);
}

static picture moved(const picture *from, uint32_t height, uint32_t width, int64_t top,
                     int64_t left) {
    picture to = {height, width, {{{0}}}};
    for (int c = 0; c < CHANNELS; ++c)
        for (int64_t y = 0; y < height; ++y)
            for (int64_t x = 0; x < width; ++x)
                if (y + top >= 0 && y + top < from->height && x + left >= 0 &&
                    x + left < from->width)
                    to.pixel[c][y][x] = from->pixel[c][y + top][x + left];
    return to;
}

static picture mirrored(const picture *from) {
    picture to = *from;
    for (int c = 0; c < CHANNELS; ++c)
        for (uint32_t y = 0; y < from->height; ++y)
            for (uint32_t x = 0; x < from->width; ++x)
                to.pixel[c][y][x] = from->pixel[c][y][from->width - 1 - x];
    return to;
}

static picture cut(const picture *from, int64_t row, int64_t column, int64_t side) {
    picture to = *from;
    for (int c = 0; c < CHANNELS; ++c)
        for (int64_t y = row - side / 2; y < row - side / 2 + side; ++y)
            for (int64_t x = column - side / 2; x < column - side / 2 + side; ++x)
                if (y >= 0 && y < from->height && x >= 0 && x < from->width)
                    to.pixel[c][y][x] = 0;
    return to;
}

static picture word_by_word(const qn__augment *a, picture now, uint64_t item, uint32_t epoch) {
    for (uint32_t i = 0; i < a->words; ++i) {
        const uint32_t size = a->word[i].size, height = now.height, width = now.width;
        switch (a->word[i].kind) {
        case QN__AUGMENT_PAD:
            now = moved(&now, height + 2 * size, width + 2 * size, -(int64_t)size, -(int64_t)size);
            break;
        case QN__AUGMENT_CROP:
            now = moved(&now, a->shape.height, a->shape.width,
                        below(item, epoch, 0, height - a->shape.height + 1),
                        below(item, epoch, 1, width - a->shape.width + 1));
            break;
        case QN__AUGMENT_FLIP:
            now = random_word(item, epoch, 2) >> 31 ? mirrored(&now) : now;
            break;
        case QN__AUGMENT_CUTOUT:
            now = cut(&now, below(item, epoch, 4, height), below(item, epoch, 5, width), size);
            break;
        default:
            break;
        }
    }
    return now;
}

/* Compares bytes and floats of an item with what the words make of it. */
static void check(const qn__augment *a, uint64_t item, uint32_t epoch) {
    const uint32_t height = a->shape.height, width = a->shape.width;
    picture now = {height, width, {{{0}}}};
    float floats[CHANNELS * SIDE * SIDE], as_floats[CHANNELS * SIDE * SIDE];
    uint8_t bytes[CHANNELS * SIDE * SIDE], as_bytes[CHANNELS * SIDE * SIDE];
    for (uint32_t k = 0; k < CHANNELS * height * width; ++k) {
        floats[k] = (float)k + 1;
        bytes[k] = (uint8_t)(k + 1);
        now.pixel[k / (height * width)][k / width % height][k % width] = floats[k];
    }
    qn__augment_item(a, 7, epoch, item, sizeof *floats, floats, as_floats, NULL);
    qn__augment_item(a, 7, epoch, item, 1, bytes, as_bytes, NULL);
    now = word_by_word(a, now, item, epoch);
    assert_int_equal(now.height, height);
    assert_int_equal(now.width, width);
    for (uint32_t k = 0; k < CHANNELS * height * width; ++k) {
        const float want = now.pixel[k / (height * width)][k / width % height][k % width];
        assert_int_equal((int)as_floats[k], (int)want);
        assert_int_equal(as_bytes[k], (uint8_t)want);
    }
}

static void check_some(const qn__augment *a) {
    for (uint64_t item = 0; item < 40; ++item)
        check(a, item % 8 == 7 ? item << 33 : item, (uint32_t)item / 16);
}

/* All orders of the four words in which a crop follows the padding, on sizes of all kinds. */
static void test_orders(void **state) {
    static const qn__shape shapes[] = {{CHANNELS, 9, 9, QN__PICTURE},
                                       {CHANNELS, 5, 8, QN__PICTURE},
                                       {CHANNELS, 1, 7, QN__PICTURE},
                                       {CHANNELS, 8, 1, QN__PICTURE},
                                       {CHANNELS, 1, 1, QN__PICTURE}};
    (void)state;
    for (int order = 0; order < 256; ++order) {
        qn__augment a = {.words = 4};
        int seen = 0, crop = 0, pad = 0;
        for (int i = 0; i < 4; ++i) {
            const int kind = order >> (2 * i) & 3;
            a.word[i] = (qn__augment_word){(qn__augment_kind)kind,
                                           kind == QN__AUGMENT_PAD      ? 1 + (uint32_t)order % PAD
                                           : kind == QN__AUGMENT_CUTOUT ? 1 + (uint32_t)order % 7
                                                                        : 0,
                                           {0}};
            seen |= 1 << kind;
            pad = kind == QN__AUGMENT_PAD ? i : pad;
            crop = kind == QN__AUGMENT_CROP ? i : crop;
        }
        for (size_t s = 0; seen == 15 && pad < crop && s < 5; ++s) {
            a.shape = shapes[s];
            check_some(&a);
        }
    }
}

/* Fewer words; none leaves an item as it is. */
static void test_alone(void **state) {
    qn__augment a = {.shape = {CHANNELS, 6, 7, QN__PICTURE}};
    (void)state;
    check_some(&a);
    a.words = 1;
    a.word[0] = (qn__augment_word){.kind = QN__AUGMENT_FLIP};
    check_some(&a);
    a.word[0] = (qn__augment_word){.kind = QN__AUGMENT_CUTOUT, .size = 6};
    check_some(&a);
    a.words = 2;
    a.word[0] = (qn__augment_word){.kind = QN__AUGMENT_PAD, .size = 3};
    a.word[1] = (qn__augment_word){.kind = QN__AUGMENT_CROP};
    check_some(&a);
}

/* Every place of a window and of a square comes, and no other. */
static void test_places(void **state) {
    qn__augment a = {.shape = {1, 3, 3, QN__PICTURE},
                     .words = 3,
                     .word = {{QN__AUGMENT_PAD, 2, {0}},
                              {QN__AUGMENT_CROP, 0, {0}},
                              {QN__AUGMENT_FLIP, 0, {0}}}};
    int seen[2][5] = {{0}}, flips = 0;
    (void)state;
    for (uint64_t item = 0; item < 500; ++item) {
        const qn__augment_view view = qn__augment_view_of(&a, 0, a.words, 3, 1, item);
        assert_true(view.top >= -2 && view.top <= 2);
        seen[0][view.top + 2]++;
        flips += view.mirrored;
        const int64_t left = view.mirrored ? view.left - 2 : view.left;
        assert_true(left >= -2 && left <= 2);
        seen[1][left + 2]++;
    }
    for (int i = 0; i < 5; ++i)
        assert_true(seen[0][i] > 60 && seen[1][i] > 60);
    assert_true(flips > 200 && flips < 300);
}

/* What a word makes of a picture of 3 x 4 x 5 whose values are 10, 11, ... */
static void make(qn__augment_word word, uint32_t width, uint64_t item, uint8_t *made) {
    const qn__augment a = {.shape = {3, 4, width, QN__PICTURE}, .words = 1, .word = {word}};
    uint8_t from[3 * 4 * 5];
    uint64_t space[512];
    assert_in_range(qn__augment_space(&a), 1, sizeof space);
    for (uint32_t k = 0; k < sizeof from; ++k)
        from[k] = (uint8_t)(10 + k);
    qn__augment_item(&a, 1, 0, item, 1, from, made, space);
}

/* What needs no second program: windows of the whole picture, turns that change little, colours
 * without differences. */
static void test_new_bytes(void **state) {
    const qn__augment_word whole = {QN__AUGMENT_RESIZED_CROP, 0, {1, 1, 1.25f, 1.25f}},
                           wide = {QN__AUGMENT_RESIZED_CROP, 0, {1, 1, 100, 100}},
                           turn = {QN__AUGMENT_ROTATE, 0, {0.01f, 1, 0}},
                           narrow = {QN__AUGMENT_BLUR, 3, {0.01f, 0.01f}},
                           blur = {QN__AUGMENT_BLUR, 7, {1, 1}};
    uint8_t same[60], made[60];
    (void)state;
    for (uint8_t k = 0; k < 60; ++k)
        same[k] = 10 + k;
    for (uint64_t item = 0; item < 20; ++item) {
        make(whole, 5, item, made);
        assert_memory_equal(made, same, 60);
        make(narrow, 5, item, made);
        assert_memory_equal(made, same, 60);
        make(turn, 5, item, made);
        assert_memory_equal(made, same, 60);
        make(blur, 5, item, made);
        assert_in_range(made[7] + made[12], 38, 40); /* beside the centre of a ramp */
        assert_true(made[0] > 10 && made[19] < 29);
        make(wide, 5, item, made); /* no window fits: all columns of one or two rows */
        assert_int_equal(made[0], made[15]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_new_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
