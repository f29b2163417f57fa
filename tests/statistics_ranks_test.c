/* Statistics, Ridge, Lasso, principal components and k-means over ranks: every rank has the bytes
 * of one process, whichever ranks die on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/digest/sha256.h"
#include "ranks_case_test.h"
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { TABLE_ITEMS = 700, COLUMNS = 21, RANKS_MOST = 4 };

/* Numbers of several magnitudes with labels; `holes`: some are missing. */
static qn_data *table(int real, int holes) {
    float *values = malloc(TABLE_ITEMS * COLUMNS * sizeof *values), targets[TABLE_ITEMS];
    int32_t labels[TABLE_ITEMS];
    qn_data *data;
    uint64_t z = 7;
    assert_non_null(values);
    for (uint32_t i = 0; i < TABLE_ITEMS * COLUMNS; ++i) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        values[i] = ldexpf((float)(int32_t)(z >> 32), (int)(i % COLUMNS) - 40);
        if (holes && z >> 60 == 3)
            values[i] = NAN;
    }
    for (uint32_t i = 0; i < TABLE_ITEMS; ++i) {
        labels[i] = (int32_t)(i * 5 % 3);
        targets[i] = values[i * COLUMNS] * 3 + (float)i;
    }
    const qn_data_arrays arrays = {.size = sizeof arrays,
                                   .type = QN_F32,
                                   .items = TABLE_ITEMS,
                                   .features = COLUMNS,
                                   .values = values,
                                   .owner = values,
                                   .release = free,
                                   .missing = 1,
                                   .labels = real ? NULL : labels,
                                   .targets = real ? targets : NULL};
    assert_int_equal(qn_data_lend(&arrays, &data, NULL), QN_OK);
    return data;
}

static void add(qn__sha256 *sum, const void *bytes, size_t size) {
    if (bytes)
        qn__sha256_add(sum, bytes, size);
}

static void add_group(qn__sha256 *sum, const qn_statistics *s, uint32_t column, uint32_t group) {
    qn_column_statistics c = {.size = sizeof c};
    uint32_t bins;
    assert_int_equal(qn_statistics_column(s, column, group, &c, NULL), QN_OK);
    add(sum, &c, sizeof c);
    add(sum, qn_statistics_quantiles(s, column, group), 3 * sizeof(double));
    qn_statistics_edges(s, column, &bins);
    add(sum, qn_statistics_histogram(s, column, group), bins * sizeof(uint64_t));
}

/* The digest of all numbers. */
static qn_status describe(const qn_compute *compute, char digest[65], qn_error *err) {
    qn_data *data = table(0, 1);
    qn_statistics *s;
    qn_statistics_options o;
    qn_statistics_options_init(&o);
    o.by_class = o.correlation = o.histograms = 1;
    o.compute = compute;
    const qn_status status = qn_statistics_make(data, &o, &s, err);
    qn_data_close(data);
    if (status != QN_OK)
        return status;
    qn__sha256 sum;
    uint8_t hash[32];
    qn__sha256_begin(&sum);
    for (uint32_t k = 0; k < COLUMNS; ++k) {
        for (uint32_t c = 0; c < 3; ++c)
            add_group(&sum, s, k, c);
        add_group(&sum, s, k, QN_ALL_CLASSES);
        uint32_t bins;
        const double *edges = qn_statistics_edges(s, k, &bins);
        add(&sum, edges, (bins + 1) * sizeof *edges);
    }
    add(&sum, qn_statistics_covariance(s), COLUMNS * COLUMNS * sizeof(double));
    add(&sum, qn_statistics_correlation(s), COLUMNS * COLUMNS * sizeof(double));
    qn__sha256_end(&sum, hash);
    qn__hex(hash, digest);
    qn_statistics_free(s);
    return QN_OK;
}

/* Of k-means: the centres, and the cluster of each item. */
static qn_status add_clusters(qn__sha256 *sum, const qn_data *data, const qn_compute *compute,
                              qn_error *err) {
    double centres[5 * COLUMNS];
    uint32_t cluster[TABLE_ITEMS];
    qn_kmeans_result result = {.size = sizeof result};
    qn_kmeans_options o;
    qn_kmeans_options_init(&o);
    o.clusters = 5;
    o.compute = compute;
    const qn_status status = qn_kmeans_fit(data, &o, centres, cluster, &result, err);
    if (status != QN_OK)
        return status;
    add(sum, centres, sizeof centres);
    add(sum, cluster, sizeof cluster);
    add(sum, &result, sizeof result);
    return QN_OK;
}

/* The digest of the models. */
static qn_status fit(const qn_compute *compute, char digest[65], qn_error *err) {
    double w[2][COLUMNS], axes[3 * COLUMNS], rest[2][COLUMNS];
    qn_linear_result result[2] = {{.size = sizeof *result}, {.size = sizeof *result}};
    qn_linear_options linear;
    qn_pca_options pca;
    qn_data *data = table(1, 0);
    qn_linear_options_init(&linear);
    qn_pca_options_init(&pca);
    linear.compute = pca.compute = compute;
    pca.components = 3;
    qn_status status = qn_ridge_fit(data, &linear, w[0], &result[0], err);
    if (status == QN_OK)
        status = qn_lasso_fit(data, &linear, w[1], &result[1], err);
    if (status == QN_OK)
        status = qn_pca_fit(data, &pca, axes, rest[0], rest[1], err);
    qn__sha256 sum;
    uint8_t hash[32];
    qn__sha256_begin(&sum);
    if (status == QN_OK)
        status = add_clusters(&sum, data, compute, err);
    qn_data_close(data);
    if (status != QN_OK)
        return status;
    add(&sum, w, sizeof w);
    add(&sum, axes, sizeof axes);
    add(&sum, rest, sizeof rest);
    add(&sum, &result[0].intercept, sizeof result[0].intercept);
    add(&sum, &result[1].gap, sizeof result[1].gap);
    qn__sha256_end(&sum, hash);
    qn__hex(hash, digest);
    return QN_OK;
}

static void alone(char digest[2][65]) {
    qn_error err;
    assert_int_equal(describe(NULL, digest[0], &err), QN_OK);
    assert_int_equal(fit(NULL, digest[1], &err), QN_OK);
}

static void test_threads(void **state) {
    (void)state;
    char wanted[2][65], got[2][65];
    qn_error err;
    alone(wanted);
    for (int threads = 1; threads <= 3; ++threads) {
        const qn_compute compute = {.size = sizeof compute, .threads = threads};
        assert_int_equal(describe(&compute, got[0], &err), QN_OK);
        assert_int_equal(fit(&compute, got[1], &err), QN_OK);
        assert_string_equal(got[0], wanted[0]);
        assert_string_equal(got[1], wanted[1]);
    }
}

/* --------------------------------------------------------------------------------------- ranks */

static qn_status works(hand *h) {
    char(*got)[65] = h->user;
    const qn_compute compute = {.size = sizeof compute,
                                .threads = 1 + (int)(h->rank % 3),
                                .devices = h->run.devices,
                                .cluster = h->run.cluster};
    const qn_status status = describe(&compute, got[0], &h->run.err);
    return status == QN_OK ? fit(&compute, got[1], &h->run.err) : status;
}

static void test_ranks(void **state) {
    (void)state;
    char wanted[2][65];
    alone(wanted);
    for (uint32_t ranks = 2; ranks <= RANKS_MOST; ++ranks) {
        hand hands[CREW] = {0};
        char got[RANKS_MOST][2][65];
        for (uint32_t r = 0; r < ranks; ++r) {
            hands[r].work = works;
            hands[r].user = got[r];
        }
        thread_ranks_run(hands, ranks);
        for (uint32_t r = 0; r < ranks; ++r) {
            if (hands[r].status != QN_OK)
                fail_msg("rank %u: %s", r, hands[r].run.err.what);
            assert_string_equal(got[r][0], wanted[0]);
            assert_string_equal(got[r][1], wanted[1]);
        }
    }
}

/* Ranks that ask for other numbers, and a rank whose own check fails: no rank hangs. */
static qn_status asks_otherwise(hand *h) {
    const qn_compute compute = {.size = sizeof compute, .cluster = h->run.cluster};
    qn_statistics_options o;
    qn_statistics *s = NULL;
    qn_statistics_options_init(&o);
    o.compute = &compute;
    o.bins = h->rank == 1 && !h->user ? 7 : 0;
    o.threads = h->rank == 1 && h->user ? 5000 : 1;
    const qn_status status = qn_statistics_make(h->data, &o, &s, &h->run.err);
    qn_statistics_free(s);
    /* What is agreed on again names its rank once. */
    qn_error again;
    const qn_error *own = h->user && h->rank == 1 ? &h->run.err : NULL;
    if (h->user) {
        assert_int_equal(qn_cluster_agree(h->run.cluster, own, NULL, 0, &again), QN_USAGE);
        assert_string_equal(again.what, h->run.err.what);
    }
    /* No rank leaves before all have the verdict. */
    assert_int_equal(qn_cluster_agree(h->run.cluster, NULL, NULL, 0, NULL), QN_OK);
    return status;
}

static void test_differences(void **state) {
    (void)state;
    for (int own = 0; own < 2; ++own) {
        hand hands[CREW] = {0};
        for (uint32_t r = 0; r < 3; ++r) {
            hands[r].work = asks_otherwise;
            hands[r].user = own ? hands : NULL;
        }
        thread_ranks_run(hands, 3);
        for (uint32_t r = 0; r < 3; ++r) {
            assert_int_equal(hands[r].status, own ? QN_USAGE : QN_MISMATCH);
            assert_non_null(
                strstr(hands[r].run.err.what, own ? "is not from 0 to 4096" : "7 bins"));
        }
    }
}

static void test_a_gpu_is_refused(void **state) {
    (void)state;
    const qn_compute compute = {.size = sizeof compute, .devices = "fake:0"};
    char got[65];
    qn_error err;
    assert_int_equal(describe(&compute, got, &err), QN_USAGE); /* there is none */
    assert_non_null(strstr(err.what, "fake"));
}

/* -------------------------------------------------------------------------------------- deaths */

typedef struct stage {
    atomic_uint working;
    char got[RANKS_MOST][2][65];
    qn_status status[RANKS_MOST];
} stage;

/* Each rank computes on a device that takes half a second for its share. Those that are to die
 * stand still in it. */
static void live(stage *s, hand *h) {
    const qn__fake_behaviour how = {.rate = 60, .stall_at = h->rank % 2 ? 0 : 4, .stall = 600};
    const qn__fake_plan plan = {.count = 1, .device = {how}};
    int code;
    qn__fake_set(&plan);
    h->run.devices = "fake:0";
    h->user = s->got[h->rank];
    h->status = hand_joins(h);
    atomic_fetch_add(&s->working, 1);
    s->status[h->rank] = h->status == QN_OK ? works(h) : h->status;
    while (s->status[h->rank] == QN_OK && !qn_cluster_over(h->run.cluster, &code))
        qn_cluster_finish(h->run.cluster, 0);
    qn_cluster_leave(h->run.cluster);
    _exit(0);
}

/* Two of four die at work. */
static void test_deaths(void **state) {
    char wanted[2][65], place[32];
    (void)state;
    alone(wanted);
    stage *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    pid_t process[RANKS_MOST];
    snprintf(place, sizeof place, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < RANKS_MOST; ++r) {
        hand h = {.rank = r, .ranks = RANKS_MOST, .rendezvous = place};
        process[r] = fork();
        assert_true(process[r] >= 0);
        if (process[r] == 0)
            live(s, &h);
    }
    while (atomic_load(&s->working) < RANKS_MOST)
        usleep(1000);
    usleep(50000);
    kill(process[0], SIGKILL);
    usleep(30000);
    kill(process[2], SIGKILL);
    for (uint32_t r = 0; r < RANKS_MOST; ++r)
        waitpid(process[r], NULL, 0);
    for (uint32_t r = 1; r < RANKS_MOST; r += 2) {
        assert_int_equal(s->status[r], QN_OK);
        assert_string_equal(s->got[r][0], wanted[0]);
        assert_string_equal(s->got[r][1], wanted[1]);
    }
    assert_true(s->got[0][0][0] == 0 && s->got[2][0][0] == 0);
    munmap(s, sizeof *s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deaths), cmocka_unit_test(test_threads), cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_differences), cmocka_unit_test(test_a_gpu_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
