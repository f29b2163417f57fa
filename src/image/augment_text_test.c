/* Texts of augmentations: what is read, how it is written, what is refused and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "image/augment_text.h"

static void test_forms(void **state) {
    static const char *const texts[][2] = {
        {"pad 4; crop; flip; cutout 8", "pad 4; crop; flip; cutout 8"},
        {"  PAD 4 ;crop;\n Flip ; cutout\t08;", "pad 4; crop; flip; cutout 8"},
        {"cutout 4096", "cutout 4096"},
        {"flip;pad 1;cutout 2;crop", "flip; pad 1; cutout 2; crop"},
        {"ResizedCrop; jitter hue .10 brightness 0.5; rotate 015 fill 3 BILINEAR; blur 5",
         "resizedcrop; jitter brightness 0.5 hue 0.1; rotate 15 bilinear fill 3; blur 5"},
        {"resizedcrop ratio 0.5 2 scale 0.08 1; rotate 0.5 fill -0; blur 63 sigma 0.1 2;flip",
         "resizedcrop ratio 0.5 2; rotate 0.5; blur 63; flip"},
        {"blur 3 sigma 1 1; pad 1; flip; crop; jitter contrast 1 saturation 0",
         "blur 3 sigma 1 1; pad 1; flip; crop; jitter contrast 1"},
        {"", ""},
        {" ", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        qn__augment a;
        qn__text text = {0};
        assert_int_equal(qn__augment_parse(texts[i][0], &a, NULL), QN_OK);
        qn__augment_add_text(&a, &text);
        assert_string_equal(text.data ? text.data : "", texts[i][1]);
        qn__text_release(&text);
    }
    qn__augment none;
    assert_int_equal(qn__augment_parse(NULL, &none, NULL), QN_OK);
    assert_int_equal(none.words, 0);
}

static void test_refused(void **state) {
    static const struct {
        const char *text, *what, *remedy;
        int column;
    } cases[] = {
        {"pad 4", "alone would make the images larger", "crop after", 1},
        {"flip; pad 4", "alone would make the images larger", "crop after", 7},
        {"crop", "only one place", "pad before", 1},
        {"crop; pad 4", "only one place", "pad before", 1},
        {"flip; flip", "twice", "once", 7},
        {"pad", "the number of pixels is missing after \"pad\"", "from 1 to 4096", 4},
        {"pad; crop", "is missing", "from 1 to 4096", 4},
        {"pad 0; crop", "invalid number of pixels \"0\"", "from 1 to 4096", 5},
        {"pad 4097; crop", "invalid number", "from 1 to 4096", 5},
        {"cutout -3", "invalid side of the square \"-3\"", "from 1 to 4096", 8},
        {"flip 2", "\"flip\" takes no number", "leave the number out", 6},
        {"pad 4; crop 28", "\"crop\" takes no number", "images keep their size", 13},
        {"flip two", "separated by semicolons", "pad 4; crop", 6},
        {"flip cutout 8", "separated by semicolons", "pad 4; crop", 6},
        {"flip; turn 10", "unknown word \"turn\"", "pad N", 7},
        {"flip; rotate", "a number is missing after \"rotate\"", "\"rotate 15\"", 13},
        {"rotate 181", "invalid number \"181\"", "to 180", 8},
        {"rotate 9 fill 2.5", "invalid number \"2.5\"", "whole number from 0 to 255", 15},
        {"rotate 9 fill", "missing after \"fill\"", "whole number", 14},
        {"rotate 9 nearest", "unknown parameter \"nearest\"", "may stand bilinear, fill;", 10},
        {"rotate 9 bilinear bilinear", "twice", "once", 19},
        {"jitter", "\"jitter\" changes nothing", "brightness 0.4", 1},
        {"flip; jitter hue 0", "changes nothing", "brightness 0.4", 7},
        {"jitter hue 0.6", "invalid number \"0.6\"", "0 to 0.5", 12},
        {"jitter 0.4", "a number without a name \"0.4\"", "may stand brightness, contrast", 8},
        {"resizedcrop 224", "a number without a name \"224\"", "may stand scale, ratio", 13},
        {"resizedcrop scale 0.5", "missing after \"scale\"", "two numbers", 22},
        {"resizedcrop scale 0.5 0.4", "invalid number \"0.4\"", "the smaller first", 23},
        {"resizedcrop scale 0 1", "invalid number \"0\"", "from 0.000001", 19},
        {"resizedcrop ratio nan 1", "invalid number \"nan\"", "0.01 to 100", 19},
        {"randomresizedcrop", "unknown word", "did you mean \"resizedcrop\"?", 1},
        {"colorjitter", "unknown word", "did you mean \"jitter\"?", 1},
        {"blur", "number of taps is missing", "an odd number from 3 to 63", 5},
        {"blur 4", "invalid number of taps \"4\"", "\"blur 5\"", 6},
        {"blur 65", "invalid number of taps", "to 63", 6},
        {"blur 5 3", "a number without a name \"3\"", "may stand sigma;", 8},
        {"pad 2; blur 3; crop", "\"blur\" stands between pad and crop", "before pad", 8},
        {"pad 2; crop; blur 3; rotate 4; blur 3", "twice", "once", 32},
        {";", "no word before \";\"", "pad N", 1},
        {"flip;;cutout 2", "no word before \";\"", "pad N", 6},
        {"hflip", "unknown word \"hflip\"", "did you mean \"flip\"?", 1},
        {"flip; pad=4", "unknown word \"pad=4\"", "did you mean \"pad\"?", 7},
        {"cutuot 8", "unknown word \"cutuot\"", "did you mean \"cutout\"?", 1},
        {"pad 4, crop", "invalid number of pixels \"4,\"", "\";\" before the next word", 5},
        {"none", "unknown word \"none\"", "leave `train.augment` out", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        qn__augment a;
        qn_error err = {0};
        char column[64];
        assert_int_equal(qn__augment_parse(cases[i].text, &a, &err), QN_USAGE);
        snprintf(column, sizeof column, "augmentation, column %d:", cases[i].column);
        if (!strstr(err.what, cases[i].what) || !strstr(err.remedy, cases[i].remedy) ||
            strncmp(err.where, column, strlen(column)) != 0)
            fail_msg("\"%s\" gives \"%s\" at %s; %s", cases[i].text, err.what, err.where,
                     err.remedy);
    }
}

static void test_shapes(void **state) {
    static const struct {
        const char *text;
        uint32_t height, width;
        const char *remedy; /* NULL: it fits */
    } cases[] = {
        {"pad 4; crop", 5, 9, NULL},
        {"pad 4; crop", 9, 4, "use 3 at most"},
        {"pad 1; crop", 1, 9, "leave it out"},
        {"cutout 4; flip", 4, 5, NULL},
        {"flip; cutout 5", 4, 5, "use 4 at most"},
        {"flip; cutout 1", 1, 1, NULL},
        {"blur 7", 4, 9, NULL},
        {"blur 9", 4, 9, "use 7 at most"},
        {"flip; blur 3", 1, 9, "leave it out"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        qn__augment a;
        qn_error err = {0};
        assert_int_equal(qn__augment_parse(cases[i].text, &a, NULL), QN_OK);
        a.shape = (qn__shape){3, cases[i].height, cases[i].width, QN__PICTURE};
        assert_int_equal(qn__augment_check(&a, &err), cases[i].remedy ? QN_USAGE : QN_OK);
        if (cases[i].remedy) {
            assert_string_equal(err.remedy, cases[i].remedy);
            assert_non_null(strstr(err.what, "too much for images of"));
            assert_string_equal(err.where, "`train.augment`");
        }
    }
}

/* Saturation and hue are those of three channels. */
static void test_channels(void **state) {
    static const char *const texts[] = {"jitter saturation 1", "jitter brightness 1 hue 0.5"};
    (void)state;
    for (int i = 0; i < 2; ++i)
        for (uint32_t channels = 1; channels <= 4; ++channels) {
            qn__augment a;
            qn_error err = {0};
            assert_int_equal(qn__augment_parse(texts[i], &a, NULL), QN_OK);
            a.shape = (qn__shape){channels, 5, 5, QN__PICTURE};
            assert_int_equal(qn__augment_check(&a, &err), channels == 3 ? QN_OK : QN_USAGE);
            assert_true(channels == 3 || strstr(err.what, i ? "jitter hue" : "jitter saturation"));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
