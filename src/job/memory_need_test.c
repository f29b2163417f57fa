/* The estimate of a training's memory, and the remedy where a machine has less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "job/memory_need.h"
#include "model/formats/recipe_options.h"

enum { ITEMS = 4096, FEATURES = 3072 };

typedef struct place {
    qn_data *data;
    qn__recipe recipe;
    qn_compute compute;
    qn__memory_job job;
} place;

static void take(place *p, const char *model, uint32_t batch, const char *arith) {
    static uint8_t values[FEATURES];
    static const int32_t label = 9;
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = model;
    o.shape = "3x32x32";
    o.batch = batch;
    o.arith = arith;
    o.optimizer = "adam";
    assert_int_equal(qn_data_from_arrays(QN_U8, 1, FEATURES, values, &label, &p->data, NULL), 0);
    assert_int_equal(qn__recipe_from_options(&o, p->data, &p->recipe, NULL), QN_OK);
    p->compute = o.compute;
    p->compute.threads = 2;
    p->compute.devices = "cpu";
    p->job = (qn__memory_job){.recipe = &p->recipe, .items = ITEMS, .compute = &p->compute};
}

static void leave(place *p) {
    qn__recipe_release(&p->recipe);
    qn_data_close(p->data);
}

static qn__memory_need need_of(const char *model, uint32_t batch, const char *arith) {
    place p;
    qn__memory_need need;
    take(&p, model, batch, arith);
    assert_int_equal(qn__memory_need_of(&p.job, &need, NULL), QN_OK);
    assert_int_equal(need.all, need.batch + need.parameters + need.program);
    leave(&p);
    return need;
}

/* A dense layer of n to m: at least its weights, their sums and Adam's two averages; outputs and
 * errors of a batch. Not many times as much. */
static void test_dense(void **state) {
    (void)state;
    const double weights = 3072.0 * 4000 + 4000 * 4000, outputs = 2 * 4000 * 4.0 * 512;
    const qn__memory_need need =
        need_of("dense 4000 relu; dense 4000 relu; dense 10 softmax", 512, "f32");
    assert_true((double)need.parameters > 20 * weights && (double)need.parameters < 60 * weights);
    assert_true((double)need.batch > 2 * outputs && (double)need.batch < 6 * outputs);
}

static void test_what_it_follows(void **state) {
    (void)state;
    const char *model = "conv 32 3x3 relu; maxpool 2; dense 10 softmax";
    const qn__memory_need one = need_of(model, 128, "f32"), two = need_of(model, 256, "f32");
    assert_true(two.batch > one.batch * 19 / 10 && two.batch < one.batch * 21 / 10);
    assert_int_equal(two.parameters, one.parameters);
    assert_true(need_of(model, 128, "i14").batch > one.batch);
    /* a batch is no larger than the data */
    assert_int_equal(need_of(model, 2 * ITEMS, "f32").batch, need_of(model, ITEMS, "f32").batch);
}

/* Eight outputs of the same size, the inputs of the first layer, which has 27 factors in 32 places,
 * and one array of errors: the others stand where outputs were. */
static void test_errors_share(void **state) {
    (void)state;
    const char *model = "conv 32 3x3 relu; conv 32 3x3 relu; conv 32 3x3 relu; conv 32 3x3 relu;"
                        "conv 32 3x3 relu; conv 32 3x3 relu; conv 32 3x3 relu; conv 32 3x3 relu;"
                        "dense 10 softmax";
    const double output = 128 * 32 * 1024 * sizeof(float);
    const qn__memory_need need = need_of(model, 128, "f32");
    assert_true((double)need.batch >= 9 * output && (double)need.batch < 9.3 * output);
}

static qn_status check(place *p, uint64_t available, qn_error *err) {
    qn__memory_need need;
    memset(err, 0, sizeof *err);
    return qn__memory_need_check(&p->job, available, &need, err);
}

static void test_remedies(void **state) {
    (void)state;
    place p;
    qn_error err;
    qn__memory_need need;
    take(&p, "conv 32 3x3 relu; dense 10 softmax", 32, "f32");
    assert_int_equal(qn__memory_need_of(&p.job, &need, NULL), QN_OK);
    const uint64_t least = need.batch + need.parameters;
    assert_int_equal(check(&p, least, &err), QN_OK);
    assert_int_equal(check(&p, least - 1, &err), QN_MEMORY);
    assert_non_null(strstr(err.what, "for a batch of 32 items"));
    assert_string_equal(err.where, "`train.batch`");
    assert_non_null(strstr(err.remedy, "with `train.batch` 16 it fits"));
    assert_int_equal(check(&p, need.parameters + need.batch / 4, &err), QN_MEMORY);
    assert_non_null(strstr(err.remedy, "with `train.batch` 8 it fits"));
    assert_int_equal(check(&p, 1 << 20, &err), QN_MEMORY);
    assert_string_equal(err.where, "`train.model`");
    leave(&p);
    take(&p, "conv 32 3x3 relu; dense 10 softmax", 8, "f32");
    assert_int_equal(qn__memory_need_of(&p.job, &need, NULL), QN_OK);
    p.compute.threads = 256;
    assert_int_equal(check(&p, need.batch + need.parameters, &err), QN_MEMORY);
    assert_string_equal(err.where, "`compute.threads`");
    leave(&p);
}

/* The outputs of 64 channels that the first two layers give for each item; in a file, where they
 * take more than half of the memory. */
static void test_kept_outputs(void **state) {
    (void)state;
    place p;
    qn_error err;
    qn__memory_need need, before;
    take(&p, "conv 64 3x3 relu; globalpool; dense 50 relu; dense 10 softmax", 32, "f32");
    char frozen[] = "0..1", *before_it = p.recipe.freeze;
    p.recipe.freeze = frozen;
    assert_int_equal(qn__memory_need_of(&p.job, &before, NULL), QN_OK);
    assert_int_equal(before.kept, 0);
    p.compute.cache_features = 1;
    p.job.items = 1000000;
    assert_int_equal(qn__memory_need_of(&p.job, &need, NULL), QN_OK);
    assert_int_equal(need.kept, 256000000);
    assert_int_equal(need.all, need.batch + need.parameters + need.program + need.kept);
    assert_int_equal(qn__memory_need_check(&p.job, 511999999, &need, &err), QN_OK);
    assert_int_equal(need.kept, 0);
    p.recipe.freeze = before_it;
    leave(&p);
}

/* A batch of 8 grains in parts of whole grains, which need sums beside the parameters: as few as
 * fit, unless it is said how many. */
static void test_parts(void **state) {
    (void)state;
    place p;
    qn_error err;
    qn__memory_need whole, need;
    take(&p, "conv 32 3x3 relu; dense 10 softmax", 256, "f32");
    assert_int_equal(qn__memory_need_of(&p.job, &whole, NULL), QN_OK);
    assert_int_equal(whole.parts, 1);
    const uint64_t sums = 16 * (uint64_t)(27 * 32 + 32 + 32768 * 10 + 10);
    const uint64_t bytes[] = {whole.batch, whole.batch / 2, whole.batch / 4, whole.batch / 8};
    for (int i = 0; i < 4; ++i) {
        const uint64_t available = whole.parameters + (i ? sums : 0) + bytes[i] + bytes[i] / 20;
        memset(&err, 0, sizeof err);
        p.compute.parts = 0;
        assert_int_equal(qn__memory_need_check(&p.job, available, &need, &err), QN_OK);
        assert_int_equal(need.parts, 1 << i);
        assert_int_equal(need.parameters, whole.parameters + (i ? sums : 0));
        assert_true(need.batch <= bytes[i] + bytes[i] / 20);
        if (i == 0)
            continue;
        p.compute.parts = 1;
        assert_int_equal(check(&p, available, &err), QN_MEMORY);
        assert_string_equal(err.where, "`compute.parts`");
        assert_string_equal(err.remedy, i == 1   ? "with `compute.parts` 2 it fits; or use a "
                                                   "machine with more memory"
                                        : i == 2 ? "with `compute.parts` 4 it fits; or use a "
                                                   "machine with more memory"
                                                 : "with `compute.parts` 8 it fits; or use a "
                                                   "machine with more memory");
    }
    p.compute.parts = 0;
    assert_int_equal(check(&p, whole.parameters + sums + whole.batch / 16, &err), QN_MEMORY);
    p.compute.parts = 4096; /* as many as there are grains */
    assert_int_equal(qn__memory_need_of(&p.job, &need, NULL), QN_OK);
    assert_true(need.batch > whole.batch / 9 && need.batch < whole.batch / 7);
    leave(&p);
}

/* Ranks of a machine map the sums of each other and two totals, which the machine has once; those
 * of other machines send and receive parts. */
static void test_ranks(void **state) {
    (void)state;
    place p;
    qn_error err;
    qn__memory_need alone, two, apart;
    take(&p, "dense 500 relu; dense 10 softmax", 32, "f32");
    const uint64_t words = 3072 * 500 + 500 + 500 * 10 + 10;
    assert_int_equal(qn__memory_need_of(&p.job, &alone, NULL), QN_OK);
    p.job.ranks = (qn__memory_ranks){2, 2};
    assert_int_equal(qn__memory_need_of(&p.job, &two, NULL), QN_OK);
    assert_int_equal(two.parameters - alone.parameters, 4 * 8 * words);
    const uint64_t least = two.batch + 2 * alone.parameters + 4 * 8 * words;
    assert_int_equal(check(&p, least, &err), QN_OK);
    assert_int_equal(check(&p, least - 1, &err), QN_MEMORY);
    assert_non_null(strstr(err.what, "the 2 ranks on this machine take"));
    p.job.ranks = (qn__memory_ranks){2, 1};
    assert_int_equal(qn__memory_need_of(&p.job, &apart, NULL), QN_OK);
    assert_int_equal(apart.parameters - alone.parameters, 3 * 8 * words + 12 * words);
    leave(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),        cmocka_unit_test(test_what_it_follows),
        cmocka_unit_test(test_errors_share), cmocka_unit_test(test_remedies),
        cmocka_unit_test(test_parts),        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_kept_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
