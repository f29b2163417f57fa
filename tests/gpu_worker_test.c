/* The worker of the GPU backends over an emulated device: what the conformance suite cannot ask of
 * a real one, such as a memory that is too small. QN_TEST_SEED and QN_TEST_CASES as there;
 * with QN_TEST_STRIDE=7 only every seventh call fails in its turn. */
#include "device/conformance_intgemm_test.h"
#include "device/conformance_picture_test.h"
#include "device/conformance_settings_test.h"
#include "device/conformance_subject_test.h"
#include "device/conformance_zeros_test.h"
#include "gpu_emulated_test.h"
#include "device/gpu/gpu_worker.h"

static const qn__gpu_driver *driver = &one_by_one;

static qn_status open_worker(uint32_t index, const qn_compute *compute, const qn__program *program,
                             qn__worker **out, qn_error *err) {
    return qn__gpu_open(driver, index, compute, program, out, err);
}

static const qn__device_table device = {
    QN__GPU_ENTRIES,
    .name = "emulated",
    .open = open_worker,
};

static int begin(void **state) {
    (void)state;
    plan = (emulated_plan){.memory = 1 << 30, .largest = 1 << 30, .compute_units = 8, .atomics = 1};
    counts = (emulated_counts){0};
    driver = &one_by_one;
    return 0;
}

static qn_status first_grain(qn__worker *w, const test_case *c, qn_error *err) {
    const qn__job job = {.kind = QN__JOB_TRAIN, .batch = &c->batch[0]};
    return qn__gpu_run(w, &job, 0, 1, &(qn__outlet){0}, err);
}

/* Bytes that a worker for the case takes for itself. */
static uint64_t needs_of(const test_case *c) {
    qn__worker *w;
    uint64_t largest;
    assert_int_equal(open_worker(0, &(qn_compute){0}, &c->program, &w, NULL), QN_OK);
    const uint64_t needs = qn__gpu_needs(w, &largest);
    assert_int_equal(needs, counts.allocated);
    qn__gpu_close(w);
    assert_int_equal(counts.allocated, 0);
    return needs;
}

/* A memory in which the worker and its sums find space, and `left` bytes of items. */
static uint64_t memory_for(const test_case *c, uint64_t left) {
    const uint64_t bytes = needs_of(c) + c->program.parameters * sizeof(int64_t) + left;
    return bytes + bytes / 15 + 1;
}

/* Tiles of all sizes, sums in k-blocks, recordings, items that lie on the device and items that do
 * not: nothing of that is seen in the results. */
static void test_every_way_gives_the_reference_bytes(void **state) {
    (void)state;
    static const uint32_t units[] = {1, 2, 8, 60, 1000};
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 80);
    static test_case c;
    static expected e;
    uint32_t in_pieces = 0, recorded = 0;
    for (uint64_t seed = first; seed < first + cases; ++seed) {
        subject s = {.device = &device, .threads = 1, .c = &c, .e = &e};
        begin(NULL);
        if (seed % 3 == 0)
            case_begin(&c, seed);
        else if (seed % 3 == 1)
            zeros_begin(&c, seed);
        else
            integers_begin(&c, seed);
        augment_some(&c);
        assert_true(expect(&c, &e));
        driver = below(&c, 2) ? &recording : &one_by_one;
        plan.compute_units = one_of(&c, units, sizeof units / sizeof *units);
        plan.atomics = below(&c, 2) != 0;
        plan.matrix = below(&c, 2) != 0;
        const uint32_t luck = below(&c, 3);
        if (luck == 0)
            plan.memory = memory_for(&c, below(&c, 64));
        if (luck == 1) /* what holds no worker holds no data set either */
            plan.refuse = needs_of(&c);
        in_pieces += luck == 0;
        recorded += driver == &recording;
        check_subject(&s);
        assert_int_equal(counts.allocated, 0);
    }
    case_end(&c);
    print_message("%llu cases, %u of them in pieces, %u recorded\n", (unsigned long long)cases,
                  in_pieces, recorded);
}

/* Pictures in chunks of one row, of some rows, of whole batches: of gradients also a part of the
 * weights. Values that are not finite meet the weights of taps outside of a picture. */
static void test_pictures_in_chunks_give_the_reference_bytes(void **state) {
    (void)state;
    static const uint32_t units[] = {1, 8, 1000}, bytes[] = {4, 3000, 50000, 0};
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 60);
    static test_case c;
    static expected e;
    uint64_t launches[4] = {0};
    for (uint64_t seed = first; seed < first + cases; ++seed) {
        subject s = {.device = &device, .threads = 1, .c = &c, .e = &e};
        const uint32_t luck = (uint32_t)seed % 4;
        const int exact = seed / 4 % 2 == 1;
        begin(NULL);
        pictures_begin(&c, seed, 1);
        if (exact)
            c.program.arith = (qn__arith)(QN__ARITH_I7 + seed % 3);
        if (!device.supports(&c.program))
            continue;
        assert_true(expect(&c, &e));
        driver = below(&c, 2) ? &recording : &one_by_one;
        plan.compute_units = one_of(&c, units, sizeof units / sizeof *units);
        plan.atomics = below(&c, 2) != 0;
        plan.matrix = exact && below(&c, 2);
        plan.chunk = bytes[luck];
        check_subject(&s);
        assert_int_equal(counts.allocated, 0);
        launches[luck] += counts.launches;
    }
    case_end(&c);
    print_message("launches by size of chunk: %llu, %llu, %llu, %llu\n",
                  (unsigned long long)launches[0], (unsigned long long)launches[1],
                  (unsigned long long)launches[2], (unsigned long long)launches[3]);
    if (cases >= 60)
        assert_true(2 * launches[0] > 3 * launches[3]);
}

/* Whether its steps are the usual ones: none fails, and nothing but values and labels goes up. */
static int is_usual(test_case *c, expected *e) {
    return c->kind == PLAIN && c->program.layers == 2 && c->program.weight_decay == 0.0f &&
           c->program.ema == 0.0f && !c->program.mix && !c->feed.weights && c->batch[0].order &&
           c->program.batch >= 8 && expect(c, e) && e->steps == CASE_BATCHES && !e->step[2].fails;
}

/* A program of two layers, its items and some steps. */
static void small_case(test_case *c, expected *e) {
    uint64_t seed = 1;
    do
        case_begin(c, seed++);
    while (!is_usual(c, e));
}

static qn__worker *open_loaded(const test_case *c) {
    qn__worker *w = NULL;
    assert_int_equal(open_worker(0, &(qn_compute){0}, &c->program, &w, NULL), QN_OK);
    assert_int_equal(qn__gpu_load(w, &c->state, NULL), QN_OK);
    return w;
}

static void step(qn__worker *w, const test_case *c, const expected *e, uint32_t i,
                 qn__tally *tally) {
    assert_int_equal(qn__gpu_train_step(w, &c->batch[i], NULL, &e->step[i].update, tally, NULL),
                     QN_OK);
}

/* The numbers in gpu_step.c. */
static void test_a_step_costs_what_is_said(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    qn__tally tally = {0};
    small_case(&c, &e);
    plan.atomics = 0;
    qn__worker *w = open_loaded(&c);
    step(w, &c, &e, 0, &tally); /* brings the items up */
    emulated_counts before = counts;
    step(w, &c, &e, 1, &tally);
    assert_int_equal(counts.launches - before.launches, 4 * 2 + 3);
    assert_int_equal(counts.clears - before.clears, 0);
    assert_int_equal(counts.bytes_up - before.bytes_up, sizeof(qn_step));
    assert_int_equal(counts.bytes_down - before.bytes_down, 48);
    assert_int_equal(qn__gpu_flush(w, &tally, NULL), QN_OK);
    qn__gpu_close(w);
    /* A recorded step: the second one of a size is recorded, from then on it is one call. */
    driver = &recording;
    w = open_loaded(&c);
    before = counts;
    for (int i = 0; i < 5; ++i)
        step(w, &c, &e, (uint32_t)i % 2, &tally);
    assert_int_equal(counts.recordings - before.recordings, 1);
    assert_int_equal(counts.replays - before.replays, 4);
    assert_int_equal(qn__gpu_flush(w, &tally, NULL), QN_OK);
    qn__gpu_close(w);
    /* Integer products: four launches more for operands, two for the weights of each layer. */
    driver = &one_by_one;
    c.program.arith = QN__ARITH_I14;
    w = open_loaded(&c);
    step(w, &c, &e, 0, &tally);
    before = counts;
    step(w, &c, &e, 1, &tally);
    assert_int_equal(counts.launches - before.launches, (4 + 6) * 2 + 3);
    assert_int_equal(counts.clears - before.clears, 2);
    assert_int_equal(counts.bytes_up - before.bytes_up, sizeof(qn_step));
    assert_int_equal(counts.bytes_down - before.bytes_down, 48);
    assert_int_equal(qn__gpu_flush(w, &tally, NULL), QN_OK);
    qn__gpu_close(w);
    c.program.arith = QN__ARITH_F32;
    driver = &recording;
    /* A shared step: sums come down once and go up once. */
    w = open_loaded(&c);
    assert_int_equal(first_grain(w, &c, NULL), QN_OK);
    int64_t *sums = qn__alloc(c.program.parameters, sizeof *sums, NULL);
    before = counts;
    assert_int_equal(qn__gpu_collect(w, sums, &tally, NULL), QN_OK);
    assert_int_equal(counts.bytes_down - before.bytes_down, c.program.parameters * 8);
    assert_int_equal(counts.bytes_up - before.bytes_up, 0);
    before = counts;
    assert_int_equal(qn__gpu_update(w, &e.step[0].update, sums, NULL), QN_OK);
    assert_int_equal(counts.bytes_up - before.bytes_up, c.program.parameters * 8 + sizeof(qn_step));
    assert_int_equal(counts.bytes_down - before.bytes_down, 0);
    /* Nothing was summed since, and nothing comes down. */
    assert_int_equal(qn__gpu_collect(w, sums, &tally, NULL), QN_OK);
    assert_int_equal(counts.bytes_down - before.bytes_down, 0);
    qn__free(sums);
    qn__gpu_close(w);
    case_end(&c);
}

static void test_too_small_a_device_is_told_before_anything_goes_up(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    qn__worker *w;
    qn_error err;
    small_case(&c, &e);
    const uint64_t needs = needs_of(&c);
    const emulated_counts before = counts;
    plan.memory = needs;
    assert_int_equal(open_worker(3, &(qn_compute){0}, &c.program, &w, &err), QN_DEVICE);
    assert_null(w);
    assert_non_null(strstr(err.what, "emulated:3"));
    assert_non_null(strstr(err.what, "MiB"));
    assert_non_null(strstr(err.remedy, "smaller batch"));
    plan.memory = 1 << 30;
    plan.largest = 4096;
    assert_int_equal(open_worker(3, &(qn_compute){0}, &c.program, &w, &err), QN_DEVICE);
    assert_non_null(strstr(err.what, "piece"));
    assert_int_equal(counts.calls, before.calls);
    /* What is said to fit is refused by the device. */
    plan.largest = 1 << 30;
    plan.refuse = 4096;
    assert_int_equal(open_worker(3, &(qn_compute){0}, &c.program, &w, &err), QN_DEVICE);
    assert_non_null(strstr(err.what, "out of memory"));
    assert_int_equal(counts.allocated, 0);
    case_end(&c);
}

/* Steps over three feeds of the same size, in an order that says each time whether the feed's items
 * must go up. */
static void train_on_feeds(const test_case *c, const expected *e, const qn__batch batches[3],
                           qn__state *after) {
    static const struct {
        int feed, goes_up;
    } order[] = {{0, 1}, {1, 1}, {0, 0}, {1, 0}, {0, 0}, {2, 1}, {0, 0}, {1, 1}, {1, 0}, {2, 1}};
    qn__tally tally = {0};
    qn__worker *w = open_loaded(c);
    for (size_t i = 0; i < sizeof order / sizeof *order; ++i) {
        const uint64_t before = counts.bytes_up;
        assert_int_equal(
            qn__gpu_train_step(w, &batches[order[i].feed], NULL, &e->step[0].update, &tally, NULL),
            QN_OK);
        assert_int_equal(counts.bytes_up - before > sizeof(qn_step), order[i].goes_up);
    }
    assert_int_equal(qn__gpu_flush(w, &tally, NULL), QN_OK);
    assert_int_equal(qn__gpu_save(w, after, NULL), QN_OK);
    qn__gpu_close(w);
}

/* Items of a training feed go up once, however often it is left for another one, while there is
 * space; the one that was not used for the longest time makes place. A recording belongs to the
 * feed that it was made for. */
static void test_feeds_stay_while_they_fit(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    small_case(&c, &e);
    const uint64_t n = c.program.parameters, items = c.feed.items;
    const uint64_t item = qn__feed_stride(&c.feed);
    qn__feed feeds[3] = {c.feed, c.feed, c.feed};
    qn__batch batches[3] = {c.batch[0], c.batch[0], c.batch[0]};
    qn__state after[2];
    for (int i = 0; i < 3; ++i) {
        int32_t *labels = cut(&c, items, sizeof *labels);
        for (uint64_t k = 0; k < items; ++k)
            labels[k] = c.feed.labels[(k + (uint64_t)i) % items];
        feeds[i].labels = labels;
        batches[i].feed = &feeds[i];
    }
    plan.memory = memory_for(&c, 2 * ((items + 3) * item + items * 12));
    for (int d = 0; d < 2; ++d) {
        after[d].parameters = cut(&c, n, sizeof(float));
        for (int s = 0; s < 2; ++s)
            after[d].slot[s] = cut(&c, n, sizeof(float));
        driver = d ? &recording : &one_by_one;
        train_on_feeds(&c, &e, batches, &after[d]);
    }
    assert_memory_equal(after[0].parameters, after[1].parameters, n * sizeof(float));
    case_end(&c);
}

/* The feed of an apply may be another one at the same address. */
static void test_apply_sees_what_the_feed_holds_now(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    small_case(&c, &e);
    const uint32_t items = c.program.batch, outputs = c.layer[1].out;
    const size_t item = qn__feed_stride(&c.feed);
    char *values = cut(&c, c.feed.items + 3, item);
    qn__feed feed = c.feed;
    const qn__batch batch = {.feed = &feed, .items = items};
    float *got[2];
    feed.values = values;
    feed.rows = NULL;
    qn__worker *w = open_loaded(&c);
    for (int i = 0; i < 2; ++i) {
        qn__tally tally = {0};
        got[i] = cut(&c, (size_t)items * outputs, sizeof(float));
        memcpy(values, (const char *)c.feed.values + (size_t)i * item, items * item);
        assert_int_equal(qn__gpu_apply(w, &batch, &(qn__applied){.outputs = got[i]}, &tally, NULL),
                         QN_OK);
        assert_int_equal(tally.items, items);
    }
    /* The second time all items had moved by one place. */
    assert_memory_equal(got[0] + outputs, got[1], (items - 1) * outputs * sizeof(float));
    assert_memory_not_equal(got[0], got[1], items * outputs * sizeof(float));
    /* Rows of a table that was trained on are not sent again: numbers of rows and labels are. */
    qn__tally tally = {0};
    step(w, &c, &e, 0, &tally);
    assert_int_equal(qn__gpu_flush(w, &tally, NULL), QN_OK);
    uint64_t *rows = cut(&c, items, sizeof *rows);
    for (uint32_t i = 0; i < items; ++i)
        rows[i] = c.feed.rows ? c.feed.rows[i] : i;
    feed = c.feed;
    feed.rows = rows;
    feed.items = items;
    const uint64_t before = counts.bytes_up;
    assert_int_equal(qn__gpu_apply(w, &batch, NULL, &tally, NULL), QN_OK);
    assert_int_equal(counts.bytes_up - before, sizeof(qn_step) + items * 12);
    qn__gpu_close(w);
    case_end(&c);
}

/* All that a worker does, one thing after another; the status of the first that fails. */
static qn_status everything(qn__worker *w, const test_case *c, const expected *e, int64_t *sums,
                            qn__state *state, qn_error *err) {
    const uint32_t n = c->program.batch;
    qn__tally tally = {0};
    qn__applied applied = {
        .classes = cut((test_case *)(uintptr_t)c, n, sizeof(int32_t)),
        .outputs = cut((test_case *)(uintptr_t)c, (size_t)n * c->layer[1].out, sizeof(float))};
    qn_status status = qn__gpu_load(w, &c->state, err);
    for (uint32_t i = 0; status == QN_OK && i < 4; ++i)
        status = qn__gpu_train_step(w, &c->batch[i % 2], NULL, &e->step[i % 2].update, &tally, err);
    if (status == QN_OK)
        status = qn__gpu_flush(w, &tally, err);
    if (status == QN_OK)
        status = first_grain(w, c, err);
    if (status == QN_OK)
        status = qn__gpu_collect(w, sums, &tally, err);
    if (status == QN_OK)
        status = qn__gpu_update(w, &e->step[0].update, sums, err);
    if (status == QN_OK)
        status =
            qn__gpu_apply(w, &(qn__batch){.feed = &c->feed, .items = n}, &applied, &tally, err);
    return status == QN_OK ? qn__gpu_save(w, state, err) : status;
}

/* A device that fails at any call whatever: the failure is told, and the worker can be closed. */
static void test_a_device_may_fail_anywhere(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    uint64_t failures = 0;
    const uint64_t stride = setting("QN_TEST_STRIDE", 1);
    small_case(&c, &e);
    int64_t *sums = cut(&c, c.program.parameters, sizeof *sums);
    qn__state after = {.parameters = cut(&c, c.program.parameters, sizeof(float))};
    for (int s = 0; s < 2; ++s)
        after.slot[s] = cut(&c, c.program.parameters, sizeof(float));
    const size_t used = c.used;
    for (int d = 0; d < 2; ++d) {
        driver = d ? &recording : &one_by_one;
        for (qn_status status = QN_DEVICE; status != QN_OK; plan.fail_at += stride) {
            qn_error err = {0};
            qn__worker *w;
            plan.fail_at += plan.fail_at == 0;
            counts.calls = 0;
            c.used = used;
            memset(sums, 0, c.program.parameters * sizeof *sums);
            status = open_worker(0, &(qn_compute){0}, &c.program, &w, &err);
            if (status == QN_OK)
                status = everything(w, &c, &e, sums, &after, &err);
            qn__gpu_close(w);
            assert_int_equal(counts.allocated, 0);
            if (status == QN_OK)
                break;
            assert_int_equal(status, QN_DEVICE);
            assert_int_equal(err.status, QN_DEVICE);
            assert_non_null(strstr(err.what, "fell off the bus"));
            ++failures;
        }
        assert_true(plan.fail_at > 80);
        plan.fail_at = 0;
    }
    print_message("%llu failures\n", (unsigned long long)failures);
    case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_step_costs_what_is_said, begin),
        cmocka_unit_test_setup(test_too_small_a_device_is_told_before_anything_goes_up, begin),
        cmocka_unit_test_setup(test_feeds_stay_while_they_fit, begin),
        cmocka_unit_test_setup(test_apply_sees_what_the_feed_holds_now, begin),
        cmocka_unit_test_setup(test_a_device_may_fail_anywhere, begin),
        cmocka_unit_test_setup(test_every_way_gives_the_reference_bytes, begin),
        cmocka_unit_test_setup(test_pictures_in_chunks_give_the_reference_bytes, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
