/* Data in parts over ranks: the part of a rank that ends is that of another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ranks_case_test.h"
#include "cluster/cluster_state.h"

#include "data/prepare/fill.h"
#include "data/prepare/scale.h"
#include "device/cpu/worker/cpu_table.h"
#include <quern/statistics.h>
#include <unistd.h>

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* When rank 1 ends, and whether all ranks name the same files. */
typedef struct ending {
    const char *folder;
    int dealt, early, removes;
    qn_statistics *found[3];
} ending;

/* Rank 1 ends when it has joined, or when it has opened its part. */
static qn_status opens_and_describes(hand *h) {
    ending *e = h->user;
    char path[3][128];
    const char *const paths[] = {path[0], path[1], path[2]};
    qn_parts *parts = NULL;
    const uint32_t from = e->dealt ? 0 : h->rank, count = e->dealt ? 3 : 1;
    for (uint32_t k = 0; k < count; k++)
        snprintf(path[k], sizeof path[k], "%s/%u.csv", e->folder, (unsigned)(from + k));
    if (e->early && h->rank == 1)
        return QN_CLUSTER; /* so that it leaves at once */
    qn_status status = qn_parts_open(h->run.cluster, paths, count, NULL, &parts, &h->run.err);
    if (status == QN_OK && h->rank == 1) {
        if (e->removes)
            unlink(path[0]);
        status = QN_CLUSTER;
    } else if (status == QN_OK) {
        status = qn_statistics_of_parts(parts, NULL, &e->found[h->rank], &h->run.err);
        assert_int_equal(qn_parts_items(parts), 5);
    }
    qn_parts_close(parts);
    return status;
}

static double sum_of(const qn_statistics *found) {
    qn_column_statistics column = {.size = sizeof column};
    assert_int_equal(qn_statistics_column(found, 0, QN_ALL_CLASSES, &column, NULL), QN_OK);
    assert_int_equal(column.count, 5);
    return column.sum;
}

/* Others read its files, where they know them and find them. */
static void test_a_rank_ends(void **state) {
    (void)state;
    static const struct {
        int dealt, early, removes;
        const char *says;
    } kind[] = {{0, 0, 0, NULL},
                {1, 1, 0, NULL},
                {0, 0, 1, "has ended, and its part cannot be read"},
                {0, 1, 0, "which files it reads is not known"}};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        char folder[] = "/tmp/quern-parts-XXXXXX", path[128];
        hand hands[3] = {0};
        assert_non_null(mkdtemp(folder));
        ending e = {folder, kind[i].dealt, kind[i].early, kind[i].removes, {NULL}};
        for (int r = 0; r < 3; r++) {
            snprintf(path, sizeof path, "%s/%d.csv", folder, r);
            write_text(path, r < 2 ? "y,x\n0,1\n1,2\n" : "y,x\n0,8\n");
            hands[r] = (hand){.work = opens_and_describes, .user = &e};
        }
        thread_ranks_run(hands, 3);
        for (int r = 0; r < 3; r += 2) {
            assert_int_equal(hands[r].status, kind[i].says ? QN_IO : QN_OK);
            if (kind[i].says && !strstr(hands[r].run.err.what, kind[i].says))
                fail_msg("kind %zu: %s", i, hands[r].run.err.what);
            else if (!kind[i].says)
                assert_true(sum_of(e.found[r]) == 14);
            if (kind[i].removes)
                assert_non_null(strstr(hands[r].run.err.where, "/1.csv"));
            qn_statistics_free(e.found[r]);
        }
        remove_folder(folder);
    }
}

enum { COLUMNS = 2 };

typedef struct fits {
    float mean[COLUMNS], deviation[COLUMNS], least[COLUMNS], range[COLUMNS], median[COLUMNS];
} fits;

typedef struct fitting {
    const char *folder;
    int ends; /* 1: rank 1 ends before */
    fits found[3];
} fitting;

static qn_status fit_all(const qn_data *data, fits *f, qn_error *err) {
    qn_status status = qn__scale_fit(data, NULL, 1, f->mean, f->deviation, err);
    if (status == QN_OK)
        status = qn__scale_fit_order(QN__SCALE_ROBUST, data, NULL, 1, f->least, f->range, err);
    return status == QN_OK ? qn__fill_fit(data, NULL, QN__MISSING_MEDIAN, 1, f->median, err)
                           : status;
}

static qn_status opens_and_fits(hand *h) {
    fitting *f = h->user;
    char path[128];
    const char *const paths[] = {path};
    qn_parts *parts;
    qn_data *data;
    snprintf(path, sizeof path, "%s/%u.csv", f->folder, (unsigned)h->rank);
    qn_status status = qn_parts_open(h->run.cluster, paths, 1, NULL, &parts, &h->run.err);
    if (status == QN_OK)
        status = qn_parts_table(parts, 0, &data, &h->run.err);
    if (status != QN_OK)
        return status;
    if (f->ends && h->rank == 1)
        status = QN_CLUSTER; /* so that it leaves at once */
    else
        status = fit_all(data, &f->found[h->rank], &h->run.err);
    qn_data_close(data);
    return status;
}

/* Each rank looks at its own rows; where one has ended, at all. The numbers are those of a process
 * alone. */
static void test_fits(void **state) {
    char folder[] = "/tmp/quern-parts-XXXXXX", path[3][128];
    const char *const text[] = {"y,x,z\n0,1,-3\n1,2.5,7\n", "y,x,z\n0,-8,0\n",
                                "y,x,z\n1,1e-3,7\n0,64,2\n1,2.5,-0.5\n"};
    const char *const paths[] = {path[0], path[1], path[2]};
    qn_data *data;
    fits want;
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int r = 0; r < 3; r++) {
        snprintf(path[r], sizeof path[r], "%s/%d.csv", folder, r);
        write_text(path[r], text[r]);
    }
    assert_int_equal(qn_data_open_files(paths, 3, NULL, &data, NULL), QN_OK);
    assert_int_equal(fit_all(data, &want, NULL), QN_OK);
    qn_data_close(data);
    for (int ends = 0; ends < 2; ends++) {
        fitting f = {.folder = folder, .ends = ends};
        hand hands[3] = {0};
        for (int r = 0; r < 3; r++)
            hands[r] = (hand){.work = opens_and_fits, .user = &f};
        thread_ranks_run(hands, 3);
        for (int r = 0; r < 3; r += 1 + ends) {
            assert_int_equal(hands[r].status, QN_OK);
            assert_memory_equal(&f.found[r], &want, sizeof want);
        }
    }
    remove_folder(folder);
}

/* ------------------------------------------------------------------ a rank that joins */

/* Rank 0 goes on with its steps when a rank waits to be let in. */
static void waits_for_guest(void *user, const qn_step_event *e) {
    const tiny *run = user;
    const qn__ranks alone = {{1}};
    qn__endpoint unused;
    uint32_t rank, invitations;
    hear_step(user, e);
    while (e->step == 2 && qn_cluster_rank(run->cluster) == 0 &&
           !qn__door_waits(run->cluster->door, &alone, &rank, &unused, &invitations))
        usleep(1000);
}

/* Half of the items are the part of each rank, in its memory. */
static qn_status open_half(hand *h, qn_data **whole) {
    uint8_t *values = (uint8_t *)(uintptr_t)qn_data_values(h->data);
    const uint32_t half = ITEMS / 2;
    qn_data *own = NULL;
    qn_parts *parts = NULL;
    qn_status status = qn_data_from_arrays(
        QN_U8, half, FEATURES, values + h->rank * half * FEATURES,
        (int32_t *)(uintptr_t)qn_data_labels(h->data) + h->rank * half, &own, &h->run.err);
    h->user = own;
    if (status == QN_OK)
        status = qn_parts_of_data(h->run.cluster, own, NULL, &parts, &h->run.err);
    if (status == QN_OK)
        status = qn_parts_copies(parts, 2, &h->run.err);
    return status == QN_OK ? qn_parts_table(parts, 0, whole, &h->run.err) : status;
}

/* Rank 1 has a first life, which ends before the training. */
static qn_status trains_on_halves(hand *h) {
    qn_data *whole = NULL;
    h->run.on_step = waits_for_guest;
    qn_status status = open_half(h, &whole);
    if (status == QN_OK && h->rank == 1) {
        qn_data_close(whole);
        qn_data_close(h->user);
        qn_cluster_leave(h->run.cluster);
        status = hand_joins(h);
        if (status == QN_OK)
            status = open_half(h, &whole);
    }
    if (status == QN_OK)
        status = tiny_run(&h->run, whole);
    qn_data_close(whole);
    qn_data_close(h->user);
    return status;
}

/* `full_batch` 1: between two iterations of lbfgs. The state is used after `later` steps, or at the
 * end of the epoch. With `devices` 2 each rank has a device that can be lost, too, and saves the
 * state in every step. */
static void a_rank_joins(int full_batch, uint64_t later, int devices) {
    static const qn__fake_plan plan = {.count = 1};
    const qn__member members[] = {{.device = &qn__cpu_device}, {.device = &qn__fake_device}};
    qn__fake_set(&plan);
    qn__team_follow_least = later;
    tiny alone = {.full_batch = full_batch};
    hand hands[2] = {0};
    qn_data *data = tiny_data();
    char folder[] = "/tmp/quern-joins-XXXXXX"; /* of checkpoints, which ranks agree on, too */
    assert_non_null(mkdtemp(folder));
    alone_is(&alone);
    for (int r = 0; r < 2; r++)
        hands[r] = (hand){.work = trains_on_halves,
                          .data = data,
                          .run = {.full_batch = full_batch,
                                  .members = devices ? members : NULL,
                                  .count = (uint32_t)devices,
                                  .save_every = devices ? 1 : 0,
                                  .checkpoints = folder}};
    thread_ranks_run(hands, 2);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(hands[r].status, QN_OK);
        assert_string_equal(hands[r].run.digest, alone.digest);
    }
    assert_int_equal(hands[1].run.ranks[1].joined_after, 3);
    qn_data_close(data);
    remove_folder(folder);
}

static void test_a_rank_joins(void **state) {
    (void)state;
    a_rank_joins(0, 0, 0);
    a_rank_joins(0, 2, 0);
    a_rank_joins(0, 2, 2);
    a_rank_joins(0, UINT64_MAX, 2);
    a_rank_joins(0, UINT64_MAX, 0);
    a_rank_joins(1, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_rank_ends),
                                       cmocka_unit_test(test_fits),
                                       cmocka_unit_test(test_a_rank_joins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
