/* The layout: each word has one owner, and each segment one delegate on each other machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cluster/reduction/layout.h"
#include "num/philox.h"
#include <string.h>

enum { MOST = 20, MOST_PIECES = 8 * MOST };

static uint64_t seed, drawn;

static uint32_t pick(uint32_t count) {
    uint32_t word[4];
    qn__words(seed, 0, 9, 0, drawn++, 0, word);
    return (uint32_t)((uint64_t)word[0] * count >> 32);
}

/* A random subset of up to 20 ranks on some machines. */
static uint32_t make(qn__layout *l, uint32_t *machine, qn__ranks *members, uint64_t words) {
    const uint32_t ranks = 1 + pick(MOST), machines = 1 + pick(ranks);
    *members = (qn__ranks){{0}};
    for (uint32_t r = 0; r < ranks; ++r) {
        machine[r] = pick(machines);
        if (pick(4))
            qn__ranks_add(members, r);
    }
    qn__ranks_add(members, pick(ranks));
    assert_int_equal(qn__layout_open(l, ranks, NULL), QN_OK);
    qn__layout_members(l, members, machine);
    qn__layout_words(l, words);
    return ranks;
}

static void check_words(const qn__layout *l) {
    uint64_t at = 0, least = UINT64_MAX, most = 0;
    qn__piece piece;
    uint32_t pieces = 0;
    for (; qn__layout_piece(l, pieces, &piece); ++pieces) {
        assert_int_equal(piece.first, at);
        assert_int_equal(piece.owner, l->order[pieces / l->cuts]);
        assert_true(at % 8 == 0 || piece.count == 0);
        at += piece.count;
    }
    assert_int_equal(pieces, l->members * l->cuts);
    assert_int_equal(at, l->words);
    /* Machines have equal shares, except for a cache line at either end. */
    for (uint32_t home = 0; home < l->machines; ++home) {
        uint64_t words = 0;
        for (uint32_t k = l->start[home] * l->cuts; k < l->start[home + 1] * l->cuts; ++k)
            words += qn__layout_piece(l, k, &piece) ? piece.count : 0;
        least = words < least ? words : least;
        most = words > most ? words : most;
    }
    assert_true(most - least <= 16);
}

static void check_delegates(const qn__layout *l, const qn__ranks *members,
                            const uint32_t *machine) {
    static qn__piece own[MOST_PIECES];
    uint32_t had[MOST_PIECES] = {0};
    for (uint32_t i = 0; i < l->members; ++i) {
        const uint32_t rank = l->order[i], n = qn__layout_pieces(l, rank, own);
        assert_true(n <= qn__layout_most_pieces(MOST));
        for (uint32_t k = 0; k < n; ++k) {
            ++had[own[k].number];
            assert_int_equal(qn__layout_delegate(l, l->home[rank], own[k].owner), rank);
            assert_true(own[k].owner == rank || machine[own[k].owner] != machine[rank]);
        }
    }
    for (uint32_t home = 0; home < l->machines; ++home)
        for (uint32_t i = 0; i < l->members; ++i) {
            const uint32_t to = qn__layout_delegate(l, home, l->order[i]);
            assert_true(qn__ranks_has(members, to));
            assert_int_equal(l->home[to], home);
        }
    for (uint32_t k = 0; k < l->members * l->cuts; ++k) {
        qn__piece piece;
        qn__layout_piece(l, k, &piece);
        assert_int_equal(had[k], piece.count ? l->machines : 0);
    }
}

static void test_every_word_has_one_owner(void **state) {
    (void)state;
    static const uint64_t most[] = {20, 300, 100000, 5000000};
    for (seed = 0; seed < 2000; ++seed) {
        qn__layout l;
        qn__ranks members;
        uint32_t machine[MOST];
        drawn = 0;
        make(&l, machine, &members, pick((uint32_t)most[seed % 4]));
        assert_int_equal(l.members, qn__ranks_count(&members));
        check_words(&l);
        check_delegates(&l, &members, machine);
        qn__layout_close(&l);
    }
}

/* With equally many ranks on each machine no rank sends for another: each sends and receives the
 * minimum. */
static void test_work_is_even(void **state) {
    (void)state;
    uint32_t machine[12];
    qn__ranks all = {{0xfff}};
    qn__layout l;
    qn__piece piece[96];
    for (uint32_t r = 0; r < 12; ++r)
        machine[r] = r % 4;
    assert_int_equal(qn__layout_open(&l, 12, NULL), QN_OK);
    qn__layout_members(&l, &all, machine);
    qn__layout_words(&l, 1200000);
    for (uint32_t r = 0; r < 12; ++r) {
        uint64_t others = 0, own = 0;
        const uint32_t n = qn__layout_pieces(&l, r, piece);
        for (uint32_t i = 0; i < n; ++i)
            *(piece[i].owner == r ? &own : &others) += piece[i].count;
        assert_true(own >= 100000 - 16 && own <= 100000 + 16);
        assert_true(others >= 300000 - 48 && others <= 300000 + 48);
    }
    qn__layout_close(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_word_has_one_owner),
        cmocka_unit_test(test_work_is_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
