/* Classes of pixels that move with pictures: the picture itself says where its pixels went. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/augment.h"
#include "num/mix.h"
#include "num/shown.h"

enum { HEIGHT = 11, WIDTH = 14, PIXELS = HEIGHT * WIDTH, ITEMS = 60, SEED = 5, EPOCH = 3 };

static const qn__shape SHAPE = {1, HEIGHT, WIDTH, QN__PICTURE};
static uint64_t space[4096];

/* No pixel is 0, which pixels from outside of the picture are, nor that of another place. */
static void number_pixels(uint8_t *picture) {
    for (uint32_t i = 0; i < PIXELS; ++i)
        picture[i] = (uint8_t)(1 + i);
}

/* Where pictures show their pixels as they are, a mask of their bytes becomes the same but for the
 * outside. Returns how many pixels were outside. */
static uint32_t check_words(const qn__augment *a, const qn__augment *still) {
    uint8_t from[PIXELS], picture[PIXELS], mask[PIXELS];
    uint32_t outside = 0;
    number_pixels(from);
    assert_true(qn__augment_space(still) <= sizeof space);
    for (uint64_t item = 0; item < ITEMS; ++item) {
        qn__augment_item(a, SEED, EPOCH, item, 1, from, picture, space);
        qn__augment_mask(still, SEED, EPOCH, item, from, mask, space);
        for (uint32_t i = 0; i < PIXELS; ++i) {
            assert_int_equal(mask[i], picture[i] ? picture[i] : QN__IGNORED);
            outside += picture[i] == 0;
        }
    }
    return outside;
}

static void test_pixels_stay_with_the_picture(void **state) {
    (void)state;
    const qn__augment_word pad = {QN__AUGMENT_PAD, 3, {0}}, crop = {QN__AUGMENT_CROP, 0, {0}},
                           flip = {QN__AUGMENT_FLIP, 0, {0}}, turn = {QN__AUGMENT_ROTATE, 0, {70}},
                           smooth = {QN__AUGMENT_ROTATE, 0, {70, 1, 9}},
                           blur = {QN__AUGMENT_BLUR, 5, {0.5f, 2}},
                           jitter = {QN__AUGMENT_JITTER, 0, {0.5f, 0.5f}},
                           cutout = {QN__AUGMENT_CUTOUT, 4, {0}};
    const qn__augment view = {SHAPE, 3, {pad, flip, crop}};
    const qn__augment both = {SHAPE, 4, {turn, pad, crop, flip}};
    const qn__augment more = {SHAPE, 7, {jitter, smooth, blur, pad, crop, cutout, flip}};
    const qn__augment none = {SHAPE, 3, {jitter, cutout, blur}}, no_words = {SHAPE, 0, {{0}}};
    assert_true(check_words(&view, &view) > ITEMS);
    assert_true(check_words(&both, &both) > ITEMS);
    /* Words that change colours, and how a turned picture is smoothed, change nothing. */
    assert_true(check_words(&both, &more) > ITEMS);
    assert_int_equal(check_words(&no_words, &none), 0);
    assert_true(qn__augment_moves(&view) && qn__augment_moves(&more));
    assert_false(qn__augment_moves(&none));
    assert_false(qn__augment_moves(&no_words));
}

/* A window that is enlarged shows each of its pixels, and the picture's value at the middle of a
 * pixel is the mask's, but for what two pixels share. */
static void test_a_window_is_the_pictures(void **state) {
    (void)state;
    const qn__augment a = {SHAPE, 1, {{QN__AUGMENT_RESIZED_CROP, 0, {0.2f, 1, 0.5f, 2}}}};
    uint8_t from[PIXELS], picture[PIXELS], mask[PIXELS];
    for (uint32_t i = 0; i < PIXELS; ++i) /* 8 a column, 10 a row: two pixels differ by 18 */
        from[i] = (uint8_t)(1 + 8 * (i % WIDTH) + 10 * (i / WIDTH));
    for (uint64_t item = 0; item < ITEMS; ++item) {
        qn__augment_item(&a, SEED, EPOCH, item, 1, from, picture, space);
        qn__augment_mask(&a, SEED, EPOCH, item, from, mask, space);
        for (uint32_t i = 0; i < PIXELS; ++i)
            assert_in_range(mask[i] + 9 - picture[i], 0, 18); /* half of both */
    }
}

static void test_a_box_is_the_partners(void **state) {
    (void)state;
    const qn__mix mix = {1, 1, {3, HEIGHT, WIDTH, QN__PICTURE}};
    qn__program p = {.answers = PIXELS, .moves_answers = 1, .mix = &mix, .seed = SEED};
    const qn__augment flip = {SHAPE, 1, {{QN__AUGMENT_FLIP, 0, {0}}}};
    uint8_t own[PIXELS], other[PIXELS], moved[2][PIXELS], made[PIXELS];
    number_pixels(own);
    for (uint32_t i = 0; i < PIXELS; ++i)
        other[i] = (uint8_t)(i % 3 ? 254 - i % 90 : QN__IGNORED);
    for (uint64_t item = 0; item < ITEMS; ++item) {
        p.augment = item % 2 ? &flip : NULL;
        assert_true(qn__shown_space(&p) <= sizeof space);
        const uint64_t counted = qn__shown(&p, EPOCH, (qn__masked){item, own},
                                           (qn__masked){item + 7, other}, made, space);
        const qn__mixing m = qn__mix_of(&mix, SEED, EPOCH, item);
        qn__augment_mask(&flip, SEED, EPOCH, item, own, moved[0], space);
        qn__augment_mask(&flip, SEED, EPOCH, item + 7, other, moved[1], space);
        uint64_t count = 0;
        for (uint32_t i = 0; i < PIXELS; ++i) {
            const uint32_t y = i / WIDTH, x = i % WIDTH;
            const int inside =
                y >= m.box[0][0] && y < m.box[0][1] && x >= m.box[1][0] && x < m.box[1][1];
            const uint8_t *plain = inside ? other : own;
            assert_int_equal(made[i], p.augment ? moved[inside][i] : plain[i]);
            count += made[i] != QN__IGNORED;
        }
        assert_int_equal(counted, count);
    }
    p.moves_answers = 0;
    assert_int_equal(qn__shown_space(&p), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pixels_stay_with_the_picture),
                                       cmocka_unit_test(test_a_window_is_the_pictures),
                                       cmocka_unit_test(test_a_box_is_the_partners)};
    return cmocka_run_group_tests_name("shown", tests, NULL, NULL);
}
