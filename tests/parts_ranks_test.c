/* Data in parts over ranks: a rank that ends takes its part with it, and the others say so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ranks_case_test.h"
#include <quern/statistics.h>

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Rank 1 opens its part and ends. */
static qn_status opens_and_describes(hand *h) {
    const char *const *folder = h->user;
    char path[128];
    const char *const paths[] = {path};
    qn_parts *parts;
    qn_statistics *found = NULL;
    snprintf(path, sizeof path, "%s/%u.csv", *folder, (unsigned)h->rank);
    qn_status status = qn_parts_open(h->run.cluster, paths, 1, NULL, &parts, &h->run.err);
    if (status != QN_OK || h->rank == 1) {
        qn_parts_close(parts);
        return status == QN_OK ? QN_CLUSTER : status; /* so that it leaves at once */
    }
    assert_int_equal(qn_parts_items(parts), 5);
    assert_int_equal(qn_parts_first(parts), h->rank == 0 ? 0 : 4);
    assert_int_equal(qn_data_items(qn_parts_own(parts)), h->rank == 0 ? 2 : 1);
    status = qn_statistics_of_parts(parts, NULL, &found, &h->run.err);
    qn_statistics_free(found);
    qn_parts_close(parts);
    return status;
}

static void test_a_rank_ends(void **state) {
    (void)state;
    char folder[] = "/tmp/quern-parts-XXXXXX", path[128];
    const char *user = mkdtemp(folder);
    hand hands[3] = {0};
    assert_non_null(user);
    for (int r = 0; r < 3; r++) {
        snprintf(path, sizeof path, "%s/%d.csv", folder, r);
        write_text(path, r < 2 ? "y,x\n0,1\n1,2\n" : "y,x\n0,1\n");
        hands[r].work = opens_and_describes;
        hands[r].user = (void *)&user;
    }
    thread_ranks_run(hands, 3);
    for (int r = 0; r < 3; r += 2) {
        assert_int_equal(hands[r].status, QN_IO);
        assert_non_null(strstr(hands[r].run.err.what, "rank 1 on "));
        assert_non_null(strstr(hands[r].run.err.what, "its part of the data is missing"));
        assert_non_null(strstr(hands[r].run.err.where, "/1.csv"));
    }
    remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_rank_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
