/* The array forms of the elementary functions, for every instruction set of this machine. They
 * give the bits of the scalar reference on a dense sample of all floats, for every short length and
 * alignment, in place too. They write nothing outside the arrays. */
#include "device/cpu/cpu_isa.h"

#include "num/elementary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FUNCTIONS = 10, DENSE = 4, LONGEST = 67 }; /* the first DENSE have a dense sample */

#define REFERENCE(f, none) qn__##f,
#define NAME(f, none) #f,
static float (*const reference[FUNCTIONS])(float) = {QN__MAPS(REFERENCE, )};
static const char *const names[FUNCTIONS] = {QN__MAPS(NAME, )};

static uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0x7fc00000u : bits;
}

static void fill(float *x, size_t n, uint32_t first, uint32_t stride) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = first + (uint32_t)i * stride;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static void same_as_reference(const qn__maps *maps, int f, size_t n, const float *x,
                              const float *y) {
    for (size_t i = 0; i < n; i++)
        if (to_bits(y[i]) != to_bits(reference[f](x[i])))
            fail_msg("%s of %a with %s, element %zu of %zu: %a, not %a", names[f], (double)x[i],
                     maps->name, i, n, (double)y[i], (double)reference[f](x[i]));
}

/* About four million floats, or 260,000, spread evenly over all bit patterns; fewer if
 * QN_TEST_STRIDE is set. */
static void sample(const qn__maps *maps, int f, qn__map_function *map) {
    enum { BLOCK = 4096 };
    static float x[BLOCK], y[BLOCK];
    const char *text = getenv("QN_TEST_STRIDE");
    const uint32_t usual = f < DENSE ? 1021 : 16381;
    const uint32_t stride = text ? (uint32_t)strtoul(text, NULL, 10) : usual;
    assert_true(stride > 0);
    for (uint64_t first = 0; first <= UINT32_MAX; first += (uint64_t)BLOCK * stride) {
        fill(x, BLOCK, (uint32_t)first, stride);
        map(BLOCK, x, y);
        same_as_reference(maps, f, BLOCK, x, y);
    }
}

/* Lengths 0 to 67 at several offsets, to another array and in place. */
static void tails(const qn__maps *maps, int f, qn__map_function *map) {
    const float guard = 12345.0f;
    float x[LONGEST + 4], y[LONGEST + 4], both[LONGEST + 4];
    for (size_t n = 0; n <= LONGEST; n++)
        for (size_t at = 0; at < 3; at++) {
            fill(x, LONGEST + 4, 0xbe000000u + (uint32_t)n, 0x00213579u);
            memcpy(both, x, sizeof x);
            for (size_t i = 0; i < LONGEST + 4; i++)
                y[i] = guard;
            map(n, x + at, y + at);
            map(n, both + at, both + at);
            same_as_reference(maps, f, n, x + at, y + at);
            for (size_t i = 0; i < LONGEST + 4; i++) {
                const int inside = i >= at && i < at + n;
                assert_true(inside || y[i] == guard);
                assert_int_equal(to_bits(both[i]), to_bits(inside ? y[i] : x[i]));
            }
        }
}

static void conforms(const qn__maps *maps) {
#define MAP(f, none) maps->f,
    qn__map_function *const map[FUNCTIONS] = {QN__MAPS(MAP, )};
    for (int f = 0; f < FUNCTIONS; f++) {
        tails(maps, f, map[f]);
        sample(maps, f, map[f]);
    }
}

/* Of every instruction set that has forms of its own. */
static void every_set(void **state) {
    (void)state;
    const qn__cpu_isa *isa;
    const qn__maps *last = NULL;
    for (uint32_t i = 0; (isa = qn__cpu_isa_at(i)) != NULL;
         last = isa->maps ? isa->maps : last, i++)
        if (isa->maps && isa->maps != last && !isa->here())
            print_message("SKIPPED: this processor has no %s\n", isa->name);
        else if (isa->maps && isa->maps != last)
            conforms(isa->maps);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
