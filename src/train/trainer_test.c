/* The public training from C: equal bytes for any workers and any number of stops, refusals, and
 * the report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "num/permutation.h"
#include "num/philox.h"
#include <dirent.h>
#include <math.h>
#include <quern/quern.h>
#include <sys/resource.h>
#include <time.h>

enum { ITEMS = 230, TESTS = 90, EPOCHS = 4, MOST_EPOCHS = 8 };

static qn_data *digits, *unseen;
static char folder[32];

/* What the callbacks of one run record, and at which step they stop it. */
typedef struct watch {
    qn_train *train;
    uint64_t stop_at;    /* 0: never */
    uint32_t full_after; /* epoch after which no file may grow; 0: none */
    uint32_t free_after; /* epoch after which files may grow again; 0: none */
    double pause;        /* seconds of delay in each step */
    uint64_t saved_at;   /* the first step that began with a checkpoint in the folder */
    uint32_t epochs;
    qn_epoch_event epoch[MOST_EPOCHS];
    uint64_t steps, last_step;
    double rate; /* reported by the last step */
    int rates;   /* how often it changed */
    char notes[4096];
} watch;

/* Whether there is a file in the folder beside its lock. */
static int something_saved(void) {
    DIR *d = opendir(folder);
    int files = 0;
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        files += e->d_name[0] == 'c';
    if (d)
        closedir(d);
    return files > 0;
}

static void on_step(void *user, const qn_step_event *e) {
    watch *w = user;
    ++w->steps;
    assert_true(e->step > w->last_step && e->step <= e->steps);
    assert_true(e->items_done > 0 && e->items_done <= ITEMS && e->epoch < e->epochs);
    w->last_step = e->step;
    assert_true(e->items_per_second > 0 && e->seconds_left >= 0);
    w->rates += e->items_per_second != w->rate;
    w->rate = e->items_per_second;
    if (!w->saved_at && w->pause > 0 && something_saved())
        w->saved_at = e->step;
    if (w->pause > 0)
        usleep((useconds_t)(1e6 * w->pause));
    if (e->step == w->stop_at)
        qn_train_stop(w->train);
}

/* The maximum size of a file that this process may write: simulates a full disk. */
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void on_epoch(void *user, const qn_epoch_event *e) {
    watch *w = user;
    assert_true(w->epochs < MOST_EPOCHS);
    w->epoch[w->epochs++] = *e;
    if (e->epoch == w->full_after)
        limit_files(1);
    if (e->epoch == w->free_after)
        limit_files(RLIM_INFINITY);
}

static void on_note(void *user, const char *text) {
    watch *w = user;
    strncat(w->notes, text, sizeof w->notes - strlen(w->notes) - 1);
}

static qn_train_options options_for(watch *w) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 12 relu dropout 0.2; dense 10 softmax";
    o.optimizer = "adam";
    o.learning_rate = 0.01f;
    o.batch = 24; /* 10 steps an epoch, the last one of 14 items */
    o.grain = 8;
    o.epochs = EPOCHS;
    o.compute.threads = 2;
    o.user = w;
    o.on_step = on_step;
    o.on_epoch = on_epoch;
    o.on_note = on_note;
    return o;
}

static void must(qn_status status, const qn_error *err) {
    if (status != QN_OK)
        fail_msg("%s: %s (%s)", qn_status_name(status), err->what, err->where);
}

/* Opens and runs; returns the status of the run. */
static qn_status go(const qn_train_options *o, watch *w, const qn_data *valid, qn_train **out) {
    qn_error err = {0};
    must(qn_train_open(o, digits, valid, unseen, out, &err), &err);
    w->train = *out;
    const qn_status status = qn_train_run(*out, &err);
    if (status != QN_OK && status != QN_INTERRUPTED)
        must(status, &err);
    return status;
}

static void digest_of(qn_train *t, char digest[65]) {
    qn_model *model;
    qn_error err = {0};
    must(qn_train_model(t, &model, &err), &err);
    strcpy(digest, qn_model_digest(model));
    qn_model_free(model);
}

static void train_once(const qn_train_options *o, watch *w, char digest[65]) {
    qn_train *t;
    assert_int_equal(go(o, w, NULL, &t), QN_OK);
    digest_of(t, digest);
    qn_train_close(t);
}

static void same_score(const qn_score *a, const qn_score *b) {
    assert_int_equal(a->items, b->items);
    assert_int_equal(a->correct, b->correct);
    assert_true(a->loss == b->loss || (isnan(a->loss) && isnan(b->loss)));
}

/* Compares two epochs, except for their times. */
static void same_epoch(const qn_epoch_event *a, const qn_epoch_event *b) {
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->epochs, b->epochs);
    assert_true(a->learning_rate == b->learning_rate);
    same_score(&a->train, &b->train);
    same_score(&a->valid, &b->valid);
    same_score(&a->test, &b->test);
}

static const char *new_folder(void) {
    strcpy(folder, "trainer-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static void remove_folder(void) {
    char path[320];
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    closedir(dir);
    assert_int_equal(rmdir(folder), 0); /* fails if a hidden file is left */
}

static void test_threads_do_not_matter(void **unused) {
    (void)unused;
    static const int threads[] = {1, 2, 5};
    char digest[3][65];
    watch w[3] = {0};
    for (int i = 0; i < 3; ++i) {
        qn_train_options o = options_for(&w[i]);
        o.compute.threads = threads[i];
        train_once(&o, &w[i], digest[i]);
        assert_string_equal(digest[i], digest[0]);
        assert_int_equal(w[i].steps, 40);
        assert_int_equal(w[i].epochs, EPOCHS);
        assert_true(w[i].rates > 2); /* the rate is updated after the first step */
        for (int e = 0; e < EPOCHS; ++e)
            same_epoch(&w[i].epoch[e], &w[0].epoch[e]);
    }
    watch other = {0};
    qn_train_options o = options_for(&other);
    char changed[65];
    o.seed = 2;
    train_once(&o, &other, changed);
    assert_string_not_equal(changed, digest[0]);
}

/* Stops at random steps until it is done; the epochs and the model must be those of an
 * uninterrupted run. */
static void test_stops_and_resumes(void **unused) {
    (void)unused;
    unsigned seed =
        getenv("QN_TEST_SEED") ? (unsigned)atoi(getenv("QN_TEST_SEED")) : (unsigned)time(NULL);
    watch straight = {0};
    qn_train_options o = options_for(&straight);
    char want[65], digest[65];
    print_message("seed %u\n", seed);
    o.valid_fraction = 0.2f;
    train_once(&o, &straight, want);
    for (int round = 0; round < 4; ++round) {
        watch w = {0};
        uint64_t done = 0, total = 0;
        qn_status status;
        o.user = &w;
        o.checkpoint_dir = new_folder();
        o.checkpoint_steps = round == 3 ? 3 : 0;
        o.resume = 1;
        do {
            qn_train *t;
            /* The first rounds stop at ends of epochs (8 steps each), the most critical places. */
            w.stop_at = round == 0 ? done + 8 : done + 1 + (uint64_t)(rand_r(&seed) % 12);
            w.last_step = done;
            o.compute.threads = 1 + round;
            status = go(&o, &w, NULL, &t);
            done = w.last_step;
            digest_of(t, digest);
            qn_train_close(t);
        } while (status == QN_INTERRUPTED && ++total < 100);
        assert_int_equal(status, QN_OK);
        assert_int_equal(w.steps, 8 * EPOCHS); /* none lost, none twice */
        assert_string_equal(digest, want);
        assert_int_equal(w.epochs, EPOCHS);
        for (int e = 0; e < EPOCHS; ++e)
            same_epoch(&w.epoch[e], &straight.epoch[e]);
        remove_folder();
    }
}

/* A stop before the first step, and a run that continues in the same process. */
static void test_stop_before_the_first_step(void **unused) {
    (void)unused;
    watch w = {0};
    qn_train_options o = options_for(&w);
    char want[65], digest[65];
    qn_train *t;
    qn_error err;
    train_once(&o, &w, want);
    memset(&w, 0, sizeof w);
    o.checkpoint_dir = new_folder();
    must(qn_train_open(&o, digits, NULL, NULL, &t, &err), &err);
    w.train = t;
    w.stop_at = 13;
    qn_train_stop(t);
    assert_int_equal(qn_train_run(t, &err), QN_INTERRUPTED);
    assert_int_equal(w.steps, 0);
    assert_int_equal(qn_train_run(t, &err), QN_INTERRUPTED);
    assert_int_equal(w.steps, 13);
    assert_string_equal(err.what, "stopped after step 13 of 40");
    must(qn_train_run(t, &err), &err);
    digest_of(t, digest);
    assert_string_equal(digest, want);
    qn_train_close(t);
    remove_folder();
}

static void test_resume_of_a_complete_run(void **unused) {
    (void)unused;
    watch w = {0};
    qn_train_options o = options_for(&w);
    char *dir = strdup(new_folder()), want[65], digest[65];
    qn_train_report first = {.size = sizeof first}, again = {.size = sizeof again};
    qn_train *t;
    qn_error err;
    o.checkpoint_dir = dir;
    assert_int_equal(go(&o, &w, NULL, &t), QN_OK);
    must(qn_train_report_get(t, &first, &err), &err);
    digest_of(t, want);
    /* The run has its own copy of the text. */
    memset(dir, '?', strlen(dir));
    must(qn_train_checkpoint(t, folder, &err), &err);
    qn_train_close(t);
    free(dir);

    memset(&w, 0, sizeof w);
    o.checkpoint_dir = folder;
    qn_train *refused;
    assert_int_equal(qn_train_open(&o, digits, NULL, unseen, &refused, &err), QN_USAGE);
    assert_null(refused);
    assert_non_null(strstr(err.remedy, "`train.resume`"));
    o.resume = 1;
    assert_int_equal(go(&o, &w, NULL, &t), QN_OK);
    must(qn_train_report_get(t, &again, &err), &err);
    digest_of(t, digest);
    assert_string_equal(digest, want);
    assert_int_equal(w.steps, 0);
    assert_int_equal(w.epochs, 0);
    assert_int_equal(again.resumed_from, 40);
    assert_int_equal(again.items, 0);
    same_score(&again.train, &first.train);
    same_score(&again.test, &first.test);
    qn_train_close(t);

    o.seed = 9;
    assert_int_equal(qn_train_open(&o, digits, NULL, unseen, &refused, &err), QN_MISMATCH);
    assert_non_null(strstr(err.what, "seed"));
    remove_folder();
}

/* A validation fraction gives the same as the same parts as two sets, except for the recipe's
 * text. */
static void test_fraction_and_file_agree(void **unused) {
    (void)unused;
    enum { VALID = 46 }; /* a fifth */
    watch split = {0}, given = {0};
    qn_train_options o = options_for(&split);
    qn_train *t;
    qn_train_report by_fraction = {.size = sizeof by_fraction}, by_set = {.size = sizeof by_set};
    qn_model *one, *other;
    qn_error err;
    o.valid_fraction = 0.2f;
    o.model = "dense 10 softmax";
    assert_int_equal(go(&o, &split, NULL, &t), QN_OK);
    must(qn_train_report_get(t, &by_fraction, &err), &err);
    must(qn_train_model(t, &one, &err), &err);
    assert_int_equal(by_fraction.valid.items, VALID);
    assert_int_equal(by_fraction.train.items, ITEMS - VALID);
    qn_train_close(t);

    uint8_t chosen[ITEMS] = {0}, *values = malloc((size_t)ITEMS * 784);
    qn__permutation order; /* docs/exactness.md 2.3 */
    qn__permutation_begin(&order, ITEMS, 1, QN__PURPOSE_SPLIT, 0);
    for (uint64_t p = 0; p < VALID; ++p)
        chosen[qn__permutation_at(&order, p)] = 1;
    int32_t labels[ITEMS];
    const uint8_t *all = qn_data_values(digits);
    uint32_t at[2] = {0, ITEMS - VALID};
    for (uint32_t i = 0; i < ITEMS; ++i) {
        const uint32_t to = at[chosen[i]]++;
        memcpy(values + (size_t)to * 784, all + (size_t)i * 784, 784);
        labels[to] = qn_data_labels(digits)[i];
    }
    qn_data *train, *valid;
    must(qn_data_from_arrays(QN_U8, ITEMS - VALID, 784, values, labels, &train, &err), &err);
    must(qn_data_from_arrays(QN_U8, VALID, 784, values + (size_t)(ITEMS - VALID) * 784,
                             labels + ITEMS - VALID, &valid, &err),
         &err);
    o.valid_fraction = 0;
    o.user = &given;
    must(qn_train_open(&o, train, valid, unseen, &t, &err), &err);
    given.train = t;
    must(qn_train_run(t, &err), &err);
    must(qn_train_report_get(t, &by_set, &err), &err);
    must(qn_train_model(t, &other, &err), &err);
    for (int e = 0; e < EPOCHS; ++e)
        same_epoch(&split.epoch[e], &given.epoch[e]);
    same_score(&by_fraction.valid, &by_set.valid);
    uint64_t rows, columns;
    const float *a = qn_model_tensor(one, "layer0.weight", &rows, &columns);
    const float *b = qn_model_tensor(other, "layer0.weight", &rows, &columns);
    assert_memory_equal(a, b, rows * columns * sizeof *a);
    qn_train_close(t);
    qn_model_free(one);
    qn_model_free(other);
    qn_data_close(train);
    qn_data_close(valid);
    free(values);
}

/* A non-finite loss: the step is named, the run returns no results, the checkpoints stay. */
static void test_divergence_is_named(void **unused) {
    (void)unused;
    watch w = {0};
    qn_train_options o = options_for(&w);
    qn_train *t;
    qn_error err;
    qn_model *model;
    qn_train_report report = {.size = sizeof(qn_train_report)};
    o.model = "dense 12 relu; dense 10";
    o.loss = "mse";
    o.optimizer = "sgd";
    o.learning_rate = 1e9f;
    o.checkpoint_dir = new_folder();
    o.checkpoint_steps = 1;
    must(qn_train_open(&o, digits, NULL, unseen, &t, &err), &err);
    w.train = t;
    assert_int_equal(qn_train_run(t, &err), QN_NUMERIC);
    assert_non_null(strstr(err.where, "step "));
    assert_non_null(strstr(err.where, "epoch 1"));
    assert_non_null(strstr(err.remedy, "`train.learning_rate`"));
    assert_int_equal(atoi(strstr(err.where, "step ") + 5), w.last_step + 1);
    assert_int_equal(qn_train_run(t, &err), QN_NUMERIC);
    assert_int_equal(qn_train_model(t, &model, &err), QN_NUMERIC);
    assert_null(model);
    assert_int_equal(qn_train_checkpoint(t, folder, &err), QN_NUMERIC);
    assert_int_equal(qn_train_report_get(t, &report, &err), QN_NUMERIC);
    qn_train_close(t);
    /* The earlier checkpoint is complete and finite. */
    o.resume = 1;
    must(qn_train_open(&o, digits, NULL, unseen, &t, &err), &err);
    must(qn_train_model(t, &model, &err), &err);
    qn_model_free(model);
    qn_train_close(t);
    remove_folder();
}

/* With inputs 0 the hidden outputs are 0. So the bias of the output that should be 1 has the
 * gradient -2, and every other gradient is much smaller. Times the learning rate it overflows. */
static void test_an_infinite_parameter_names_its_layer(void **unused) {
    static const struct {
        const char *arith, *model, *what, *tensor;
        uint8_t value;
    } cases[] = {{"f32", "dense 64 tanh; dense 2", "a parameter of layer 1 became infinite",
                  "\"layer1.bias\"", 0},
                 {"i14", "dense 64 tanh; dense 2", "a parameter of layer 1 became infinite",
                  "\"layer1.bias\"", 0},
                 {"i14", "dense 64; dense 2", "a parameter of layer 0 became infinite",
                  "\"layer0.weight\"", 9}};
    static const int32_t labels[8];
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        uint8_t values[8 * 4];
        qn_data *data;
        qn_train_options o;
        qn_train *t;
        qn_model *model;
        qn_error err = {0};
        memset(values, cases[i].value, sizeof values);
        must(qn_data_from_arrays(QN_U8, 8, 4, values, labels, &data, &err), &err);
        qn_train_options_init(&o);
        o.model = cases[i].model;
        o.loss = "mse";
        o.scale = "none";
        o.arith = cases[i].arith;
        o.optimizer = "sgd";
        o.learning_rate = 3e38f;
        o.batch = 8;
        o.epochs = 1;
        must(qn_train_open(&o, data, NULL, NULL, &t, &err), &err);
        must(qn_train_run(t, &err), &err);
        assert_int_equal(qn_train_checkpoint(t, new_folder(), &err), QN_NUMERIC);
        assert_string_equal(err.what, cases[i].what);
        assert_string_equal(err.where, "step 1");
        assert_int_equal(qn_train_model(t, &model, &err), QN_NUMERIC);
        assert_non_null(strstr(err.where, cases[i].tensor));
        remove_folder();
        qn_train_close(t);
        qn_data_close(data);
    }
}

static void test_report(void **unused) {
    (void)unused;
    watch w = {0};
    qn_train_options o = options_for(&w);
    qn_train *t;
    qn_train_report r = {.size = sizeof r}, again = {.size = sizeof again};
    qn_error err;
    uint64_t sum = 0, right = 0;
    assert_int_equal(go(&o, &w, NULL, &t), QN_OK);
    must(qn_train_report_get(t, &r, &err), &err);
    for (uint32_t i = 0; i < r.classes; ++i)
        for (uint32_t j = 0; j < r.classes; ++j) {
            sum += r.confusion[i * r.classes + j];
            right += i == j ? r.confusion[i * r.classes + j] : 0;
        }
    assert_int_equal(r.classes, 10);
    assert_int_equal(sum, TESTS);
    assert_int_equal(right, r.test.correct);
    assert_int_equal(r.test.items, TESTS);
    assert_int_equal(r.valid.items, 0);
    assert_true(isnan(r.valid.loss));
    assert_int_equal(r.items, (uint64_t)ITEMS * EPOCHS);
    assert_int_equal(r.steps, 40);
    same_score(&r.test, &w.epoch[EPOCHS - 1].test);
    assert_true(r.seconds > 0 && r.seconds_training <= r.seconds);
    assert_true(r.seconds_to_first_step > 0);
    assert_int_equal(r.workers, 1);
    assert_int_equal(r.worker[0]->cores, 2);
    assert_int_equal(r.worker[0]->grains, 4 * (9 * 3 + 2));
    assert_true(r.worker[0]->busy > 0 && r.worker[0]->busy <= 1.0);
    assert_int_equal(r.ranks, 1);
    assert_int_equal(r.rank[0]->items, (uint64_t)ITEMS * EPOCHS);
    assert_string_equal(r.rank[0]->worker_names, "cpu");
    assert_true(fabs(r.rank[0]->busy - r.worker[0]->busy) < 1e-9);
    assert_true(r.rank[0]->items_per_second == r.worker[0]->items_per_second);
    for (int c = 0; c < r.worker[0]->cores; ++c)
        assert_true(r.worker[0]->core_busy[c] >= 0 && r.worker[0]->core_busy[c] <= 1.0);
    /* One worker: the work over its rate is its training time, which is less than T. */
    assert_true(r.bound > 0 && r.bound <= r.seconds_training * 1.001);
    must(qn_train_report_get(t, &again, &err), &err);
    same_score(&again.test, &r.test);
    assert_true(again.worker[0]->busy <= 1.0);
    qn_train_close(t);
}

static void refused(const qn_train_options *o, const qn_data *train, const qn_data *valid,
                    const qn_data *test, qn_status want, const char *word) {
    qn_error err = {0};
    qn_train *t = (qn_train *)&err;
    const qn_status status = qn_train_open(o, train, valid, test, &t, &err);
    if (status != want)
        fail_msg("%s: %s instead of %s", word, qn_status_name(status), qn_status_name(want));
    assert_null(t);
    if (!strstr(err.what, word))
        fail_msg("\"%s\" does not name %s", err.what, word);
    assert_true(strlen(err.remedy) > 0);
}

/* What qn_train_open refuses; its folders must not be created. */
static void test_options_are_checked(void **unused) {
    (void)unused;
    const uint8_t pixels[4 * 784] = {1, 2, 3};
    const int32_t labels[4] = {0, 1, 2, 13};
    qn_train_options o, good = options_for(NULL);
    qn_data *bare, *few, *high;
    good.on_step = NULL;
    good.on_epoch = NULL;
    good.on_note = NULL;
    good.checkpoint_dir = "never-made";
    good.run_dir = "never-made-either";
    assert_int_equal(qn_data_from_arrays(QN_U8, 4, 784, pixels, NULL, &bare, NULL), QN_OK);
    assert_int_equal(qn_data_from_arrays(QN_U8, 4, 3, pixels, labels, &few, NULL), QN_OK);
    assert_int_equal(qn_data_from_arrays(QN_U8, 4, 784, pixels, labels, &high, NULL), QN_OK);
    refused(&good, bare, NULL, NULL, QN_INPUT, "no labels");
    refused(&good, digits, few, NULL, QN_MISMATCH, "validation set has 3 features");
    refused(&good, digits, NULL, few, QN_MISMATCH, "test set has 3 features");
    refused(&good, digits, NULL, bare, QN_INPUT, "test set has no labels");
    refused(&good, digits, high, NULL, QN_MISMATCH, "labels up to 13");
    refused(&good, high, NULL, NULL, QN_USAGE, "labels up to 13");
#define REFUSED(FIELD, VALUE, WORD)                                                                \
    o = good;                                                                                      \
    o.FIELD = VALUE;                                                                               \
    refused(&o, digits, NULL, NULL, QN_USAGE, WORD)
    REFUSED(size, 8, "member size of options is 8");
    REFUSED(model, "", "no layers");
    REFUSED(model, "dense 10", "softmax");
    REFUSED(batch, UINT32_MAX, "batch");
    REFUSED(gradient_scale, 61, "gradients is 61");
    REFUSED(learning_rate, NAN, "NaN");
    REFUSED(learning_rate, 0, "rate");
    REFUSED(beta1, 1, "beta1");
    REFUSED(valid_fraction, 1, "validation");
    REFUSED(valid_fraction, NAN, "validation");
    REFUSED(valid_fraction, 1e-6f, "validation");
    REFUSED(checkpoint_part, 1.5, "1.5");
    REFUSED(checkpoint_part, NAN, "part");
    REFUSED(checkpoint_seconds, -1, "-1 seconds");
    REFUSED(checkpoint_seconds, NAN, "between checkpoints");
    REFUSED(checkpoint_seconds, INFINITY, "between checkpoints");
    REFUSED(compute.threads, -1, "threads");
    REFUSED(compute.isa, "mmx", "mmx");
#undef REFUSED
    o = good;
    o.valid_fraction = 0.5f;
    refused(&o, digits, digits, NULL, QN_USAGE, "exclude each other");
    o = good;
    o.checkpoint_dir = NULL;
    o.resume = 1;
    refused(&o, digits, NULL, NULL, QN_USAGE, "resume");
    assert_int_not_equal(access("never-made", F_OK), 0);
    assert_int_not_equal(access("never-made-either", F_OK), 0);
    qn_data_close(bare);
    qn_data_close(few);
    qn_data_close(high);
}

/* A replay from the model alone gives the model; other data is refused by its digest. */
static void test_replay(void **unused) {
    (void)unused;
    watch w = {0};
    qn_train_options o = options_for(&w), again;
    qn_train *t;
    qn_model *model;
    qn_error err;
    char digest[65];
    o.schedule = "cosine";
    o.warmup = 5;
    o.weight_decay = 0.01f;
    o.scale = "standard";
    assert_int_equal(go(&o, &w, NULL, &t), QN_OK);
    must(qn_train_model(t, &model, &err), &err);
    qn_train_close(t);
    qn_train_options_init(&again);
    assert_int_equal(qn_train_options_from_model(model, unseen, &again, &err), QN_MISMATCH);
    assert_non_null(strstr(err.where, qn_data_digest(unseen)));
    assert_non_null(strstr(err.where, qn_data_digest(digits)));
    must(qn_train_options_from_model(model, digits, &again, &err), &err);
    train_once(&again, &w, digest);
    assert_string_equal(digest, qn_model_digest(model));
    qn_model_free(model);
}

/* The record of a run that is stopped and resumed has each epoch once, and its final state. */
static void test_record_of_a_resumed_run(void **unused) {
    (void)unused;
    watch w = {.stop_at = 25};
    qn_train_options o = options_for(&w);
    qn_train *t;
    qn_train_report report = {.size = sizeof(qn_train_report)};
    qn_error err;
    char text[4096] = "", path[64];
    o.checkpoint_dir = o.run_dir = new_folder();
    assert_int_equal(go(&o, &w, NULL, &t), QN_INTERRUPTED);
    must(qn_train_report_get(t, &report, &err), &err);
    qn_train_close(t);
    snprintf(path, sizeof path, "%s/run.json", folder);
    FILE *f = fopen(path, "r");
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_non_null(strstr(text, "\"state\": \"interrupted\""));
    o.resume = 1;
    w.stop_at = 0;
    w.last_step = 25;
    assert_int_equal(go(&o, &w, NULL, &t), QN_OK);
    must(qn_train_report_get(t, &report, &err), &err);
    qn_train_close(t);
    snprintf(path, sizeof path, "%s/metrics.csv", folder);
    f = fopen(path, "r");
    int lines = 0;
    for (int want = 0; fgets(text, sizeof text, f); ++lines, ++want)
        assert_int_equal(atoi(text), want); /* the header counts as 0 */
    fclose(f);
    assert_int_equal(lines, 1 + EPOCHS);
    remove_folder();
}

/* The record of a run cannot be written any more: the training continues, and its report says
 * so. */
static void test_a_full_disk_costs_the_record_only(void **unused) {
    (void)unused;
    watch w = {.full_after = 2};
    qn_train_options o = options_for(&w);
    qn_train *t;
    qn_train_report report = {.size = sizeof(qn_train_report)};
    qn_error err;
    char want[65], digest[65];
    o.run_dir = new_folder();
    assert_int_equal(go(&o, &w, NULL, &t), QN_OK);
    limit_files(RLIM_INFINITY);
    assert_int_equal(w.epochs, EPOCHS);
    assert_non_null(strstr(w.notes, "metrics.csv"));
    assert_int_equal(qn_train_report_get(t, &report, &err), QN_IO);
    assert_non_null(strstr(err.what, "metrics.csv"));
    assert_int_equal(report.test.items, TESTS);
    digest_of(t, digest);
    qn_train_close(t);
    remove_folder();
    w = (watch){0};
    o.run_dir = NULL;
    train_once(&o, &w, want);
    assert_string_equal(digest, want);
}

/* Nor is the model lost if the last checkpoint of a complete run does not fit. */
static void test_a_full_disk_at_the_end_costs_a_checkpoint(void **unused) {
    (void)unused;
    watch w = {.full_after = EPOCHS};
    qn_train_options o = options_for(&w);
    char want[65], digest[65];
    o.checkpoint_dir = new_folder();
    o.checkpoint_steps = 1000;
    train_once(&o, &w, digest);
    limit_files(RLIM_INFINITY);
    assert_non_null(strstr(w.notes, "the run continues without a checkpoint of step"));
    assert_false(something_saved());
    remove_folder();
    w = (watch){0};
    o.checkpoint_dir = NULL;
    train_once(&o, &w, want);
    assert_string_equal(digest, want);
}

/* A disk that is full during the run is reported once, and again when it is writable; the run
 * continues. */
static void test_a_full_disk_in_mid_run_costs_some_checkpoints(void **unused) {
    (void)unused;
    watch w = {.full_after = 1, .free_after = 3};
    qn_train_options o = options_for(&w);
    char want[65], digest[65];
    o.checkpoint_dir = new_folder();
    o.checkpoint_steps = 5;
    train_once(&o, &w, digest);
    const char *first = strstr(w.notes, "cannot write");
    assert_non_null(first);
    assert_non_null(strstr(first, "checkpoint-000000000010.safetensors: File too large"));
    assert_non_null(strstr(first, "continues without a checkpoint of step 10 and tries again"));
    assert_null(strstr(first + 1, "cannot write"));
    assert_non_null(strstr(first, "can be written again: the last one is of step 30"));
    assert_true(something_saved());
    remove_folder();
    w = (watch){0};
    o.checkpoint_dir = NULL;
    train_once(&o, &w, want);
    assert_string_equal(digest, want);
}

/* Until the end: the last good checkpoint is named. For an interrupted run that is an error. */
static void test_a_full_disk_until_the_end_names_the_last_checkpoint(void **unused) {
    (void)unused;
    for (int stops = 0; stops <= 1; ++stops) {
        watch w = {.full_after = 1, .stop_at = stops ? 13 : 0};
        qn_train_options o = options_for(&w);
        qn_train *t;
        qn_error err = {0};
        o.checkpoint_dir = new_folder();
        o.checkpoint_steps = 4;
        must(qn_train_open(&o, digits, NULL, unseen, &t, &err), &err);
        w.train = t;
        const qn_status status = qn_train_run(t, &err);
        limit_files(RLIM_INFINITY);
        assert_int_equal(status, stops ? QN_IO : QN_OK);
        assert_non_null(strstr(stops ? err.remedy : w.notes, "last good checkpoint is of step 8"));
        qn_train_close(t);
        remove_folder();
    }
}

/* Checkpoints by their cost. If all the time may be spent on them, there is one within some long
 * steps; if hardly any, only the last one. */
static void test_checkpoints_by_their_cost(void **unused) {
    (void)unused;
    const double part[] = {1, 1e-6};
    for (int round = 0; round < 2; ++round) {
        watch w = {.pause = 0.3, .stop_at = 7};
        qn_train_options o = options_for(&w);
        qn_train *t;
        o.checkpoint_dir = new_folder();
        o.checkpoint_part = part[round];
        assert_int_equal(go(&o, &w, NULL, &t), QN_INTERRUPTED);
        assert_true(something_saved());
        qn_train_close(t);
        remove_folder();
        assert_true(round ? w.saved_at == 0 : w.saved_at > 2 && w.saved_at < 7);
    }
}

static int set_up(void **unused) {
    (void)unused;
    return qn_data_synth_digits(3, 0, ITEMS, &digits, NULL) != QN_OK ||
           qn_data_synth_digits(3, ITEMS, TESTS, &unseen, NULL) != QN_OK;
}

static int tear_down(void **unused) {
    (void)unused;
    qn_data_close(digits);
    qn_data_close(unseen);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_stops_and_resumes),
        cmocka_unit_test(test_stop_before_the_first_step),
        cmocka_unit_test(test_resume_of_a_complete_run),
        cmocka_unit_test(test_fraction_and_file_agree),
        cmocka_unit_test(test_divergence_is_named),
        cmocka_unit_test(test_an_infinite_parameter_names_its_layer),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_options_are_checked),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_record_of_a_resumed_run),
        cmocka_unit_test(test_a_full_disk_costs_the_record_only),
        cmocka_unit_test(test_a_full_disk_at_the_end_costs_a_checkpoint),
        cmocka_unit_test(test_a_full_disk_in_mid_run_costs_some_checkpoints),
        cmocka_unit_test(test_a_full_disk_until_the_end_names_the_last_checkpoint),
        cmocka_unit_test(test_checkpoints_by_their_cost)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
