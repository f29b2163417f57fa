/* Structs that begin with their size, as an older caller, a newer one and a careless one have them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <quern/quern.h>

/* A struct as a caller of another version has it: `size` bytes, then bytes that must not change. */
typedef struct foreign {
    size_t size;
    unsigned char more[1 << 14];
} foreign;

static foreign *guarded(const void *own, size_t known, size_t size) {
    static foreign f;
    memset(&f, 0, sizeof f);
    memset((char *)&f + size, 0xa5, 64);
    memcpy(&f, own, known < size ? known : size);
    f.size = size;
    return &f;
}

static void is_kept(const foreign *f) {
    for (size_t i = 0; i < 64; ++i)
        assert_int_equal(((const unsigned char *)f)[f->size + i], 0xa5);
    assert_true(f->size > 0);
}

/* Zero, a half pointer, and memory that nobody set. */
static const size_t odd[] = {0, 1, sizeof(size_t), sizeof(size_t) + 4, (size_t)1 << 40, SIZE_MAX};
enum { ODD = sizeof odd / sizeof *odd };

static void is_refused(qn_status status, const qn_error *err, const char *type) {
    assert_int_equal(status, QN_USAGE);
    assert_non_null(strstr(err->what, type));
    assert_non_null(strstr(err->remedy, "size = sizeof("));
    assert_non_null(strstr(err->remedy, type));
}

static qn_data *digits(void) {
    qn_data *data;
    assert_int_equal(qn_data_synth_digits(1, 0, 64, &data, NULL), QN_OK);
    return data;
}

static qn_train_options small(void) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 10 softmax";
    o.epochs = 1;
    o.compute.threads = 1;
    o.compute.devices = "cpu";
    return o;
}

static qn_status open_and_close(const void *options, const qn_data *data, qn_error *err) {
    qn_train *train;
    const qn_status status = qn_train_open(options, data, NULL, NULL, &train, err);
    assert_true((status == QN_OK) == (train != NULL));
    qn_train_close(train);
    return status;
}

/* An older caller's struct ends before members of the run: they take their defaults, even where
 * something else stands in memory after. A newer caller's has zeros. */
static void test_options(void **state) {
    (void)state;
    qn_error err;
    qn_data *data = digits();
    qn_train_options o = small();
    o.checkpoint_part = 7; /* is refused where it is read */
    assert_int_equal(open_and_close(&o, data, &err), QN_USAGE);
    o.size = offsetof(qn_train_options, checkpoint_part);
    assert_int_equal(open_and_close(&o, data, &err), QN_OK);
    o = small();
    foreign *f = guarded(&o, sizeof o, sizeof o + 48);
    assert_int_equal(open_and_close(f, data, &err), QN_OK);
    f->more[sizeof o + 40 - sizeof f->size] = 1;
    assert_int_equal(open_and_close(f, data, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "qn_train_open: options has"));
    for (int i = 0; i < ODD; ++i) {
        o.size = odd[i];
        is_refused(open_and_close(&o, data, &err), &err, "qn_train_options");
    }
    o = small();
    o.compute.size = 0;
    is_refused(open_and_close(&o, data, &err), &err, "qn_compute");
    qn_data_close(data);
}

static void test_other_options(void **state) {
    (void)state;
    qn_error err;
    qn_data *data;
    qn_cluster *cluster;
    qn_plan *plan;
    qn_data_options d;
    qn_cluster_options c;
    qn_plan_options p;
    qn_compute k = {.size = sizeof k};
    qn_data_options_init(&d);
    qn_cluster_options_init(&c);
    qn_plan_options_init(&p);
    for (int i = 0; i < ODD; ++i) {
        d.size = c.size = p.size = k.size = odd[i];
        is_refused(qn_data_open("a.csv", &d, &data, &err), &err, "qn_data_options");
        is_refused(qn_cluster_join(&c, &cluster, &err), &err, "qn_cluster_options");
        is_refused(qn_plan_make(&p, &plan, &err), &err, "qn_plan_options");
        is_refused(qn_compute_check(&k, &err), &err, "qn_compute");
    }
    k = (qn_compute){.size = sizeof k, .reserved = {[1] = &k}};
    assert_int_equal(qn_compute_check(&k, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "reserved[1]"));
    /* Alone, an older caller who has no time limits. */
    c = (qn_cluster_options){.size = offsetof(qn_cluster_options, rendezvous_timeout),
                             .rendezvous = "none",
                             .rendezvous_timeout = -1};
    assert_int_equal(qn_cluster_join(&c, &cluster, &err), QN_OK);
    assert_null(cluster);
    c = (qn_cluster_options){.size = sizeof c, .rendezvous = "none", .transport = "pigeons"};
    assert_int_equal(qn_cluster_join(&c, &cluster, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "transport pigeons"));
    c.rendezvous = "127.0.0.1:1";
    c.transport = "mpi";
    assert_int_equal(qn_cluster_join(&c, &cluster, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "that mpirun or srun started"));
}

static void test_filled(void **state) {
    (void)state;
    qn_error err;
    qn_device_info info = {.size = sizeof info};
    assert_int_equal(qn_device_get(0, &info, &err), QN_OK);
    /* An older caller gets what it has space for and no byte more. */
    const size_t older = offsetof(qn_device_info, memory);
    foreign *f = guarded(&(qn_device_info){.size = 0}, older, older);
    assert_int_equal(qn_device_get(0, (qn_device_info *)f, &err), QN_OK);
    assert_string_equal(((qn_device_info *)f)->name, info.name);
    assert_int_equal(f->size, older);
    is_kept(f);
    /* A newer one gets zeros for what this library does not know. */
    const size_t newer = sizeof info + 24;
    f = guarded(&info, sizeof info, newer);
    memset((char *)f + sizeof info, 0x11, 24);
    assert_int_equal(qn_device_get(0, (qn_device_info *)f, &err), QN_OK);
    for (size_t i = sizeof info; i < newer; ++i)
        assert_int_equal(((unsigned char *)f)[i], 0);
    is_kept(f);
    qn_network *network;
    const qn_train_options small_one = small();
    assert_int_equal(qn_network_open(&small_one, 4, 1, &network, &err), QN_OK);
    for (int i = 0; i < ODD; ++i) {
        qn_import_found found = {.size = odd[i]};
        is_refused(qn_model_recognise("a", &found, &err), &err, "qn_import_found");
        const qn_pretrained_options how = {.size = odd[i]};
        qn_model *imported;
        is_refused(qn_model_import_pretrained("a", &how, NULL, NULL, &imported, &err), &err,
                   "qn_pretrained_options");
        qn_ready_model model = {.size = odd[i]};
        qn_layer_info layer = {.size = odd[i]};
        is_refused(qn_ready_get(0, &model, &err), &err, "qn_ready_model");
        is_refused(qn_network_layer(network, 0, &layer, &err), &err, "qn_layer_info");
        qn_device_rates rates = {.size = odd[i]};
        qn_cluster_library library = {.size = odd[i]};
        info.size = odd[i];
        is_refused(qn_device_get(0, &info, &err), &err, "qn_device_info");
        is_refused(qn_device_measure(0, NULL, &rates, &err), &err, "qn_device_rates");
        is_refused(qn_cluster_library_get(&library, &err), &err, "qn_cluster_library");
    }
    qn_network_free(network);
}

/* The report's pointers lead to structs of the library's own sizes, one address each, so that a
 * caller of another version never steps by its own size. */
static void test_reports(void **state) {
    (void)state;
    qn_error err;
    qn_data *data = digits();
    qn_train *train;
    const qn_train_options o = small();
    qn_train_report report = {.size = sizeof report}, zero = {.size = 0};
    qn_saved saved = {.size = 0};
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &train, &err), QN_OK);
    assert_int_equal(qn_train_run(train, &err), QN_OK);
    assert_int_equal(qn_train_report_get(train, &report, &err), QN_OK);
    assert_int_equal(report.size, sizeof report);
    assert_int_equal(report.worker[0]->size, sizeof(qn_worker_report));
    assert_int_equal(report.rank[0]->size, sizeof(qn_rank_report));
    assert_int_equal(report.rounding->size, sizeof(qn_rounding));
    const size_t older = offsetof(qn_train_report, rank);
    foreign *f = guarded(&report, older, older);
    assert_int_equal(qn_train_report_get(train, (qn_train_report *)f, &err), QN_OK);
    assert_int_equal(((qn_train_report *)f)->items, 64);
    is_kept(f);
    is_refused(qn_train_report_get(train, &zero, &err), &err, "qn_train_report");
    const char *const place[] = {"never"};
    is_refused(qn_train_save(train, place, 1, &saved, &err), &err, "qn_saved");
    qn_train_close(train);
    qn_data_close(data);
}

/* Arrays: the first element's size is every element's. */
static void test_arrays(void **state) {
    (void)state;
    enum { TAIL = 32, STRIDE = sizeof(qn_advice) + TAIL };
    qn_error err;
    uint32_t count = 0;
    qn_train_options o = small();
    const uint32_t devices = qn_device_count();
    unsigned char *buffer = calloc(devices, STRIDE);
    qn_advice *first = (void *)buffer;
    first->size = STRIDE;
    assert_int_equal(qn_advise(&o, 8, 0.05, first, devices, &count, NULL, &err), QN_OK);
    assert_int_equal(count, devices);
    for (uint32_t i = 0; i < count; ++i) {
        const qn_advice *a = (const void *)(buffer + i * STRIDE);
        qn_device_info info = {.size = sizeof info};
        assert_int_equal(a->size, STRIDE);
        assert_int_equal(qn_device_get(i, &info, &err), QN_OK);
        assert_string_equal(a->id, info.id);
    }
    first->size = 0;
    is_refused(qn_advise(&o, 8, 0.05, first, devices, &count, NULL, &err), &err, "qn_advice");
    free(buffer);
    qn_plan_cost cost = {.size = 0};
    is_refused(qn_plan_measure(&o, NULL, 8, 1, 0.05, &cost, 1, &count, &err), &err, "qn_plan_cost");
    qn_agreement item[2] = {{sizeof *item, "a", "b", NULL}, {sizeof *item, "a", "b", NULL}};
    assert_int_equal(qn_cluster_agree(NULL, NULL, item, 2, &err), QN_OK);
    qn_file files[2] = {{sizeof *files, "a", "--a", QN_FILE_READ}, {0, "b", "--b", QN_FILE_READ}};
    is_refused(qn_files_compare(files, 2, &err), &err, "qn_file");
    item[1].size = 0;
    is_refused(qn_cluster_agree(NULL, NULL, item, 2, &err), &err, "qn_agreement");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options), cmocka_unit_test(test_other_options),
        cmocka_unit_test(test_filled),  cmocka_unit_test(test_reports),
        cmocka_unit_test(test_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
