/* Batches of texts of like lengths: each position once, by the rule of docs/exactness.md 25.89. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/length_groups.h"
#include "num/philox.h"

enum { ITEMS = 29, VALUES = 9, TOKENS = 5, BATCH = 4, BATCHES = 3, SEED = 11, WINDOW = 12 };

typedef struct fixture {
    uint16_t values[ITEMS][VALUES];
    uint32_t length[ITEMS];
    qn__layer layer;
    qn__program program;
    qn__feed feed;
    qn__permutation order;
    qn__length_groups *groups;
} fixture;

static int begin(void **state) {
    static fixture f;
    f.layer = (qn__layer){
        .kind = QN__LAYER_EMBEDDING, .vector = TOKENS * 2, .to = {2, 1, VALUES, QN__SEQUENCE}};
    f.program = (qn__program){.layer = &f.layer, .layers = 1, .seed = SEED};
    for (uint32_t i = 0; i < ITEMS; ++i) {
        f.length[i] = i * 7 % (VALUES + 1);
        for (uint32_t t = 0; t < VALUES; ++t) /* a number that is not a token before the last one */
            f.values[i][t] = t + 1 == f.length[i] || (t < f.length[i] && t != 1) ? 3 : TOKENS;
    }
    f.feed = (qn__feed){
        .type = QN__ELEMENT_TOKEN16, .features = VALUES, .items = ITEMS, .values = f.values};
    *state = &f;
    return qn__length_groups_create(&f.program, &f.feed, BATCH, BATCHES, &f.groups, NULL) != QN_OK;
}

static int end(void **state) {
    const fixture *f = *state;
    qn__length_groups_free(f->groups);
    return 0;
}

static const uint64_t *places_of(fixture *f, uint32_t epoch, uint64_t first, int replays) {
    qn__permutation_begin(&f->order, ITEMS, SEED, QN__PURPOSE_ORDER, epoch);
    const qn__batch batch = {.order = &f->order, .first = first, .epoch = epoch};
    return qn__length_groups_places(f->groups, &batch, replays);
}

/* Whether position a comes before b. */
static int precedes(const fixture *f, uint64_t a, uint64_t b) {
    const uint32_t own = f->length[qn__permutation_at(&f->order, a)];
    const uint32_t other = f->length[qn__permutation_at(&f->order, b)];
    return own < other || (own == other && a < b);
}

/* The place in the new order: what precedes it in its window, then the drawn order of batches. */
static uint64_t place_of(const fixture *f, uint32_t epoch, uint64_t position) {
    const uint64_t window = position / WINDOW * WINDOW;
    const uint64_t count = ITEMS - window < WINDOW ? ITEMS - window : WINDOW;
    uint64_t before = 0;
    for (uint64_t p = window; p < window + count; ++p)
        before += (uint64_t)precedes(f, p, position);
    if (before / BATCH >= count / BATCH)
        return window + before;
    qn__permutation batches;
    qn__permutation_begin(&batches, count / BATCH, SEED, QN__PURPOSE_LENGTHS, epoch);
    return window + qn__permutation_at(&batches, before / BATCH) * BATCH + before % BATCH;
}

static void test_the_rule(void **state) {
    fixture *f = *state;
    for (uint32_t epoch = 0; epoch < 3; ++epoch)
        for (uint64_t first = 0; first < ITEMS; first += BATCH) {
            const uint64_t *place = places_of(f, epoch, first, 0);
            for (uint64_t i = 0; i < BATCH && first + i < ITEMS; ++i) {
                assert_true(place[i] < ITEMS);
                assert_int_equal(place_of(f, epoch, place[i]), first + i);
            }
        }
}

/* Steps that are repeated leave those to come alone. */
static void test_places_stay(void **state) {
    fixture *f = *state;
    const uint64_t *own = places_of(f, 1, 8, 0), *next = places_of(f, 1, 12, 0);
    const uint64_t was[2] = {own[0], next[0]};
    for (uint64_t first = 0; first < ITEMS; first += BATCH)
        places_of(f, 0, first, 1);
    assert_ptr_equal(places_of(f, 1, 8, 0), own);
    assert_ptr_equal(places_of(f, 1, 12, 0), next);
    assert_true(own[0] == was[0] && next[0] == was[1]);
    uint64_t positions;
    assert_int_equal(qn__length_groups_window(f->groups, 25, &positions), 24);
    assert_int_equal(positions, WINDOW);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_rule),
                                       cmocka_unit_test(test_places_stay)};
    return cmocka_run_group_tests(tests, begin, end);
}
