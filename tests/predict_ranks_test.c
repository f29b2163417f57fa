/* Predictions of parts while ranks end: the others have what all of them would have written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ranks_case_test.h"

#include <quern/fit.h>
#include <quern/predict.h>

enum { RANKS = 3, ROWS = 9 };

/* Rows of each file; the table has two clusters. */
static const char *const text[RANKS] = {"x,z\n0,1\n1,2.5\n9,8\n0.5,0\n", "x,z\n8,9.5\n",
                                        "x,z\n1,1e-3\n0,6.4\n9,8.5\n1,1\n"};

typedef enum phase { BEFORE, JOINED, WRITTEN } phase;

/* The ranks with a bit in `ends` end in that phase. */
typedef struct ending {
    const char *folder;
    const qn_model *model;
    unsigned ends;
    phase when;
    qn_evaluation *found[RANKS];
} ending;

static void path_of(const ending *e, const char *name, uint32_t rank, char path[160]) {
    snprintf(path, 160, "%s/%s%u.csv", e->folder, name, (unsigned)rank);
}

static qn_status write_all(const qn_predictions *p, const qn_parts *parts, const ending *e,
                           qn_error *err) {
    char path[160];
    qn_status status = QN_OK;
    for (uint32_t r = 0; r < RANKS && status == QN_OK; r++) {
        path_of(e, "out", r, path);
        if (qn_parts_range(parts, r, NULL, NULL))
            status = qn_predictions_write_part(p, parts, r, path, err);
    }
    return status;
}

/* Until all that are left have done it. */
static qn_status predict(hand *h, ending *e, qn_parts *parts) {
    const int ends = e->ends >> h->rank & 1;
    qn_error *err = &h->run.err;
    int again = 1;
    qn_status status = ends && e->when == BEFORE ? QN_CLUSTER : QN_OK;
    while (status == QN_OK && again) {
        qn_predictions *p = NULL;
        qn_evaluation_free(e->found[h->rank]);
        e->found[h->rank] = NULL;
        assert_int_equal(qn_predictions_make(e->model, qn_parts_own(parts), NULL, 0, &p, err),
                         QN_OK);
        const qn_status joined = qn_predictions_join(p, parts, 1, err);
        if (ends && e->when == JOINED)
            status = QN_CLUSTER;
        if (status == QN_OK && joined == QN_OK)
            status = write_all(p, parts, e, err);
        if (status == QN_OK && joined == QN_OK)
            status = qn_predictions_evaluate(p, &e->found[h->rank], err);
        qn_predictions_free(p);
        if (ends && e->when == WRITTEN)
            status = QN_CLUSTER;
        if (status == QN_OK)
            status = qn_parts_mend(parts, &again, err);
        if (status == QN_OK && !again && joined != QN_OK)
            status = joined;
    }
    return status;
}

static qn_status opens_and_predicts(hand *h) {
    ending *e = h->user;
    char path[160];
    const char *const paths[] = {path};
    qn_parts *parts = NULL;
    path_of(e, "in", h->rank, path);
    qn_status status = qn_parts_open(h->run.cluster, paths, 1, NULL, &parts, &h->run.err);
    if (status == QN_OK)
        status = predict(h, e, parts);
    qn_parts_close(parts);
    return status;
}

static void write_file(const char *path, const char *content) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    assert_int_equal(fclose(file), 0);
}

/* Adds the file of `rank` to `all`, and removes it. */
static void take_file(const ending *e, const char *name, uint32_t rank, char all[4096]) {
    char path[160];
    const size_t size = strlen(all);
    path_of(e, name, rank, path);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("there is no %s", path);
    all[size + fread(all + size, 1, 4095 - size, file)] = 0;
    assert_int_equal(fclose(file), 0);
    assert_int_equal(remove(path), 0);
}

/* What one process finds and writes, and the model of it. */
static qn_model *one_process(const ending *e, char all[4096], qn_evaluation **found) {
    char path[RANKS + 1][160];
    const char *paths[RANKS];
    qn_data *data;
    qn_model *model;
    qn_predictions *p;
    for (uint32_t r = 0; r < RANKS; r++) {
        path_of(e, "in", r, path[r]);
        paths[r] = path[r];
    }
    path_of(e, "one", 0, path[RANKS]);
    assert_int_equal(qn_data_open_files(paths, RANKS, NULL, &data, NULL), QN_OK);
    const qn_fit_options o = {sizeof o, "kmeans", "clusters=2", NULL};
    assert_int_equal(qn_fit(data, &o, &model, NULL, NULL), QN_OK);
    assert_int_equal(qn_predictions_make(model, data, NULL, 0, &p, NULL), QN_OK);
    assert_int_equal(qn_predictions_write(p, path[RANKS], NULL), QN_OK);
    assert_int_equal(qn_predictions_evaluate(p, found, NULL), QN_OK);
    qn_predictions_free(p);
    qn_data_close(data);
    take_file(e, "one", 0, all);
    return model;
}

/* The files hold the same lines as that of one process, and each has a line of names. */
static void compare(const ending *e, const char *one) {
    static const uint32_t lines[RANKS] = {4, 1, 4};
    const size_t names = strcspn(one, "\n") + 1;
    const char *at = one + names;
    for (uint32_t r = 0; r < RANKS; r++) {
        char own[4096] = "";
        take_file(e, "out", r, own);
        assert_memory_equal(own, one, names);
        const char *end = at;
        for (uint32_t k = 0; k < lines[r]; k++)
            end = strchr(end, '\n') + 1;
        assert_int_equal(strlen(own + names), end - at);
        assert_memory_equal(own + names, at, (size_t)(end - at));
        at = end;
    }
    assert_int_equal(*at, 0);
}

static void test_ranks_end(void **state) {
    static const unsigned ends[] = {0, 1, 2, 4, 6, 3, 5};
    char folder[] = "/tmp/quern-predict-XXXXXX", path[160], one[4096] = "";
    qn_evaluation *want;
    (void)state;
    assert_non_null(mkdtemp(folder));
    ending e = {.folder = folder};
    for (uint32_t r = 0; r < RANKS; r++) {
        path_of(&e, "in", r, path);
        write_file(path, text[r]);
    }
    qn_model *model = one_process(&e, one, &want);
    e.model = model;
    for (size_t i = 0; i < sizeof ends / sizeof *ends * (WRITTEN + 1); i++) {
        hand hands[RANKS] = {0};
        e.ends = ends[i / (WRITTEN + 1)];
        e.when = (phase)(i % (WRITTEN + 1));
        for (uint32_t r = 0; r < RANKS; r++)
            hands[r] = (hand){.work = opens_and_predicts, .user = &e};
        thread_ranks_run(hands, RANKS);
        for (uint32_t r = 0; r < RANKS; r++) {
            if (!(e.ends >> r & 1)) {
                if (hands[r].status != QN_OK)
                    fail_msg("case %zu, rank %u: %s", i, (unsigned)r, hands[r].run.err.what);
                assert_int_equal(e.found[r]->items, ROWS);
                assert_true(e.found[r]->inertia == want->inertia);
            }
            qn_evaluation_free(e.found[r]);
            e.found[r] = NULL;
        }
        compare(&e, one);
    }
    qn_evaluation_free(want);
    qn_model_free(model);
    remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
