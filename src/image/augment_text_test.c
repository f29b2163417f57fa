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
        {"flip; rotate 10", "unknown word \"rotate\"", "pad N", 7},
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
