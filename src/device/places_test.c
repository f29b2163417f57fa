/* Arrays that take turns in one memory, against the rule as it is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/places.h"

enum { ARRAYS = 60, WINDOWS = 25 };

static uint32_t state = 1;

static uint32_t draw(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static void make(qn__place *place) {
    *place = (qn__place){.bytes = 64 * (size_t)(1 + draw(9))};
    qn__place_forget(place);
    qn__place_use(place, draw(WINDOWS));
    qn__place_use(place, draw(WINDOWS));
    if (draw(4) == 0)
        qn__place_again(place, WINDOWS + draw(9));
}

static int is_free(const qn__place *all, const qn__place *own, size_t at) {
    for (const qn__place *p = all; p < all + ARRAYS; ++p)
        if (p->at != SIZE_MAX && qn__places_meet(own, p) && p->at < at + own->bytes &&
            at < p->at + p->bytes)
            return 0;
    return 1;
}

/* The largest that is not placed, the first of them, at the lowest multiple of 64 that is free. */
static size_t pack(qn__place *all) {
    size_t bytes = 0;
    for (int n = 0; n < ARRAYS; ++n) {
        qn__place *own = NULL;
        for (qn__place *p = all; p < all + ARRAYS; ++p)
            if (p->at == SIZE_MAX && (!own || p->bytes > own->bytes))
                own = p;
        size_t at = 0;
        while (!is_free(all, own, at))
            at += 64;
        own->at = at;
        bytes = at + own->bytes > bytes ? at + own->bytes : bytes;
    }
    return bytes;
}

static void link_all(qn__place *all) {
    for (int i = 0; i < ARRAYS; ++i)
        all[i].next = i + 1 < ARRAYS ? &all[i + 1] : NULL;
}

static void test_as_written(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 30; ++trial) {
        qn__place own[ARRAYS], other[ARRAYS];
        for (int i = 0; i < ARRAYS; ++i) {
            make(&own[i]);
            other[i] = own[i];
        }
        link_all(own);
        assert_int_equal(qn__places_pack(own, 0), pack(other));
        for (int i = 0; i < ARRAYS; ++i)
            assert_int_equal(own[i].at, other[i].at);
    }
}

static void test_apart(void **unused) {
    (void)unused;
    qn__place own[ARRAYS];
    size_t sum = 0;
    for (int i = 0; i < ARRAYS; ++i) {
        make(&own[i]);
        sum += own[i].bytes;
    }
    link_all(own);
    assert_int_equal(qn__places_pack(own, 1), sum);
    for (int i = 0; i < ARRAYS; ++i)
        for (int j = 0; j < i; ++j)
            assert_true(own[i].at >= own[j].at + own[j].bytes ||
                        own[j].at >= own[i].at + own[i].bytes);
    assert_int_equal(qn__places_pack(NULL, 0), 0);
}

static void test_more_than_memory(void **unused) {
    (void)unused;
    qn__place own[3];
    for (int i = 0; i < 3; ++i) {
        own[i] = (qn__place){.bytes = SIZE_MAX / 2 + 1};
        qn__place_forget(&own[i]);
        qn__place_use(&own[i], 0);
        own[i].next = i < 2 ? &own[i + 1] : NULL;
    }
    assert_true(qn__places_pack(own, 0) == SIZE_MAX);
    for (int i = 0; i < 3; ++i)
        assert_true(own[i].at != SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_written),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_more_than_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
