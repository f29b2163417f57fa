/* Requests of many threads get the bits of a prediction of their items alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/batch/answer_writer.h"
#include "serve/batch/batcher.h"
#include <math.h>
#include <pthread.h>
#include <quern/quern.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 6, MOST = 3 };

/* What a request waits for. */
typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int done;
    qn_status status;
    uint64_t items;
    uint32_t outputs;
    float output[MOST * 16];
    int32_t classes[MOST];
    qn_error err;
} waiter;

static void take(void *user, const qn__batch_answer *a) {
    waiter *w = user;
    pthread_mutex_lock(&w->lock);
    w->status = a->status;
    w->items = a->items;
    if (a->status != QN_OK)
        w->err = *a->err;
    else
        memcpy(w->output, a->outputs, a->items * w->outputs * sizeof(float));
    for (uint64_t i = 0; a->classes && i < a->items; ++i)
        w->classes[i] = a->classes[i];
    w->done++;
    pthread_cond_signal(&w->came);
    pthread_mutex_unlock(&w->lock);
}

static void begin(waiter *w, uint32_t outputs) {
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->came, NULL);
    w->outputs = outputs;
}

static qn_status ask(qn__batcher *b, const qn_data *data, waiter *w) {
    begin(w, w->outputs);
    const qn_status status = qn__batcher_submit(b, data, take, w, &w->err);
    if (status != QN_OK)
        return status;
    pthread_mutex_lock(&w->lock);
    while (!w->done)
        pthread_cond_wait(&w->came, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return w->status;
}

/* A model, its items as one table each, and what it gives for each alone. */
typedef struct subject {
    qn_model *model;
    qn_data **item;
    uint32_t items, outputs;
    float *expected;
    qn__batcher *batcher;
    int wrong[THREADS];
} subject;

typedef struct caller {
    subject *of;
    int number;
} caller;

static void *call(void *context) {
    const caller *c = context;
    subject *s = c->of;
    waiter w = {.outputs = s->outputs};
    for (uint32_t round = 0; round < ROUNDS; ++round)
        for (uint32_t i = 0; i < s->items; ++i) {
            const uint32_t k = (i * 7 + (uint32_t)c->number) % s->items;
            const qn_status status = ask(s->batcher, s->item[k], &w);
            const float *want = s->expected + (size_t)k * s->outputs;
            s->wrong[c->number] += status != QN_OK || w.items != 1 ||
                                   memcmp(w.output, want, s->outputs * sizeof *want) != 0;
        }
    return NULL;
}

/* Asks for all items from all threads at once. */
static void check_all(subject *s) {
    const qn__batcher_options options = {.latency = 1000000};
    pthread_t thread[THREADS];
    caller callers[THREADS];
    qn_error err;
    s->outputs = qn_model_outputs(s->model);
    s->expected = calloc((size_t)s->items * s->outputs, sizeof *s->expected);
    for (uint32_t i = 0; i < s->items; ++i)
        assert_int_equal(qn_predict(s->model, s->item[i], NULL, NULL, NULL,
                                    s->expected + (size_t)i * s->outputs, &err),
                         QN_OK);
    assert_int_equal(qn__batcher_make(s->model, NULL, &options, &s->batcher, &err), QN_OK);
    for (int t = 0; t < THREADS; ++t) {
        callers[t] = (caller){s, t};
        assert_int_equal(pthread_create(&thread[t], NULL, call, &callers[t]), 0);
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_join(thread[t], NULL);
        assert_int_equal(s->wrong[t], 0);
    }
    qn__batcher_counts counts;
    qn__batcher_drain(s->batcher);
    qn__batcher_count(s->batcher, &counts);
    assert_int_equal(counts.requests, (uint64_t)THREADS * ROUNDS * s->items);
    assert_int_equal(counts.failed, 0);
    assert_int_equal(counts.waiting, 0);
    assert_true(counts.batches <= counts.requests);
}

static void finish(subject *s) {
    qn__batcher_free(s->batcher);
    for (uint32_t i = 0; i < s->items; ++i)
        qn_data_close(s->item[i]);
    free(s->item);
    free(s->expected);
    qn_model_free(s->model);
}

/* Items of the types that `type` gives, one table each. */
static void cut(subject *s, qn_data_type type, const void *values, uint32_t items,
                uint32_t features, size_t size) {
    s->items = items;
    s->item = calloc(items, sizeof(qn_data *));
    for (uint32_t i = 0; i < items; ++i)
        assert_int_equal(qn_data_from_arrays(type, 1, features,
                                             (const char *)values + (size_t)i * features * size,
                                             NULL, &s->item[i], NULL),
                         QN_OK);
}

static void train(subject *s, const qn_data *data, const char *text) {
    qn_train_options o;
    qn_train *t = NULL;
    qn_error err;
    qn_train_options_init(&o);
    o.model = text;
    o.epochs = 1;
    if (qn_train_open(&o, data, NULL, NULL, &t, &err) != QN_OK)
        fail_msg("%s: %s %s", text, err.what, err.remedy);
    assert_int_equal(qn_train_run(t, NULL), QN_OK);
    assert_int_equal(qn_train_model(t, &s->model, NULL), QN_OK);
    qn_train_close(t);
}

static void test_images(void **unused) {
    subject s = {0};
    qn_data *data;
    (void)unused;
    assert_int_equal(qn_data_synth_digits(1, 0, 40, &data, NULL), QN_OK);
    train(&s, data, "conv 4 3x3 relu; maxpool 2; dense 10 softmax");
    cut(&s, QN_U8, qn_data_values(data), 40, 784, 1);
    check_all(&s);
    finish(&s);
    qn_data_close(data);
}

/* Items of the same length, filled up with the number that stands for no token. */
static void test_tokens(void **unused) {
    enum { ITEMS = 24, LENGTH = 12, WORDS = 20 };
    subject s = {0};
    uint16_t tokens[ITEMS * LENGTH];
    int32_t labels[ITEMS];
    qn_data *data;
    (void)unused;
    for (int i = 0; i < ITEMS; ++i) {
        labels[i] = i % 2;
        for (int k = 0; k < LENGTH; ++k)
            tokens[i * LENGTH + k] =
                k < 1 + i % LENGTH ? (uint16_t)((i * 5 + k * k) % WORDS) : UINT16_MAX;
    }
    assert_int_equal(qn_data_from_arrays(QN_TOKENS16, ITEMS, LENGTH, tokens, labels, &data, NULL),
                     QN_OK);
    train(&s, data, "embedding 20 6; attention 2; pool mean; dense 2 softmax");
    cut(&s, QN_TOKENS16, tokens, ITEMS, LENGTH, sizeof *tokens);
    check_all(&s);
    finish(&s);
    qn_data_close(data);
}

static void fill(float *values, size_t count) {
    for (size_t k = 0; k < count; ++k)
        values[k] = (float)((k * 37 + k * k) % 101) / 8.0f;
}

/* Models that are fitted from sums. */
static void test_fitted(void **unused) {
    enum { ITEMS = 30, FEATURES = 5 };
    static const char *const kinds[][2] = {
        {"kmeans", "clusters=3"}, {"pca", "components=2"}, {"ridge", NULL}};
    float values[ITEMS * FEATURES], targets[ITEMS];
    (void)unused;
    fill(values, ITEMS * FEATURES);
    for (int i = 0; i < ITEMS; ++i)
        targets[i] = values[i * FEATURES] * 2 - values[i * FEATURES + 1];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
        subject s = {0};
        qn_data_arrays arrays;
        qn_data *data;
        qn_fit_options o = {.size = sizeof o};
        qn_error err;
        qn_data_arrays_init(&arrays);
        arrays.items = ITEMS;
        arrays.features = FEATURES;
        arrays.values = values;
        arrays.targets = k == 2 ? targets : NULL;
        o.kind = kinds[k][0];
        o.parameters = kinds[k][1];
        assert_int_equal(qn_data_lend(&arrays, &data, &err), QN_OK);
        if (qn_fit(data, &o, &s.model, NULL, &err) != QN_OK)
            fail_msg("%s: %s %s", kinds[k][0], err.what, err.remedy);
        cut(&s, QN_F32, values, ITEMS, FEATURES, sizeof *values);
        check_all(&s);
        finish(&s);
        qn_data_close(data);
    }
}

/* An item whose output overflows fails alone, and so does a table of another shape; one that lacks
 * a value has no prediction where the model drops such items. */
static void test_failures(void **unused) {
    enum { ITEMS = 16, FEATURES = 4 };
    subject s = {0};
    float values[ITEMS * FEATURES], lacking[2 * FEATURES];
    int32_t labels[ITEMS];
    qn_train_options o;
    qn_train *t = NULL;
    qn_data_arrays arrays;
    qn_data *data, *bad, *other, *half;
    qn_error err;
    (void)unused;
    fill(values, ITEMS * FEATURES);
    for (int k = 0; k < ITEMS * FEATURES; ++k)
        values[k] /= 1024; /* small deviations, so that scaled huge numbers are infinite */
    for (int i = 0; i < ITEMS; ++i)
        labels[i] = i % 2;
    assert_int_equal(qn_data_from_arrays(QN_F32, ITEMS, FEATURES, values, labels, &data, &err),
                     QN_OK);
    qn_train_options_init(&o);
    o.model = "dense 3; dense 2 softmax";
    o.epochs = 1;
    o.missing = "drop";
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &t, &err), QN_OK);
    assert_int_equal(qn_train_run(t, NULL), QN_OK);
    assert_int_equal(qn_train_model(t, &s.model, NULL), QN_OK);
    qn_train_close(t);
    cut(&s, QN_F32, values, ITEMS, FEATURES, sizeof *values);
    check_all(&s);
    qn__batcher_free(s.batcher);
    s.batcher = NULL;

    static const float huge[FEATURES] = {3e38f, -3e38f, 3e38f, -3e38f};
    assert_int_equal(qn_data_from_arrays(QN_F32, 1, FEATURES, huge, NULL, &bad, &err), QN_OK);
    assert_int_equal(qn_data_from_arrays(QN_F32, 1, 3, huge, NULL, &other, &err), QN_OK);
    memcpy(lacking, values, sizeof lacking);
    lacking[1] = NAN;
    qn_data_arrays_init(&arrays);
    arrays.items = 2;
    arrays.features = FEATURES;
    arrays.values = lacking;
    arrays.missing = 1;
    assert_int_equal(qn_data_lend(&arrays, &half, &err), QN_OK);
    assert_int_equal(qn__batcher_make(s.model, NULL, NULL, &s.batcher, &err), QN_OK);

    /* All of them wait together: only the callback of the first one lets the others begin. */
    waiter w[4];
    const qn_data *const asked[4] = {s.item[0], bad, half, s.item[3]};
    for (int k = 0; k < 4; ++k)
        begin(&w[k], 2);
    for (int k = 0; k < 4; ++k)
        assert_int_equal(qn__batcher_submit(s.batcher, asked[k], take, &w[k], &err), QN_OK);
    waiter none = {.outputs = 2};
    assert_int_equal(ask(s.batcher, other, &none), QN_MISMATCH);
    qn__batcher_drain(s.batcher);
    assert_int_equal(w[0].status, QN_OK);
    assert_memory_equal(w[0].output, s.expected, 2 * sizeof(float));
    assert_int_equal(w[1].status, QN_NUMERIC);
    assert_non_null(strstr(w[1].err.what, "item 0"));
    assert_int_equal(w[2].status, QN_OK);
    assert_int_equal(w[2].classes[0], -1);
    assert_true(isnan(w[2].output[0]));
    assert_memory_equal(w[2].output + 2, s.expected + 2, 2 * sizeof(float));
    assert_memory_equal(w[3].output, s.expected + 6, 2 * sizeof(float));
    assert_int_equal(qn__batcher_submit(s.batcher, s.item[0], take, &w[0], &err), QN_INTERRUPTED);
    finish(&s);
    qn_data_close(data);
    qn_data_close(bad);
    qn_data_close(other);
    qn_data_close(half);
}

/* Keeps the devices until it is let go. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int inside, open;
} gate;

static void hold(void *user, const qn__batch_answer *a) {
    gate *g = user;
    (void)a;
    pthread_mutex_lock(&g->lock);
    g->inside = 1;
    pthread_cond_signal(&g->moved);
    while (!g->open)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

/* Where too many items wait, a request is refused, and those that wait become one batch. */
static void test_queue(void **unused) {
    enum { WAITING = 5 };
    subject s = {0};
    qn_data *data;
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    const qn__batcher_options options = {.waiting = WAITING, .latency = 60000000000};
    waiter w[WAITING];
    qn__batcher_counts counts;
    qn_error err;
    (void)unused;
    assert_int_equal(qn_data_synth_digits(1, 0, 8, &data, NULL), QN_OK);
    train(&s, data, "dense 10 softmax");
    cut(&s, QN_U8, qn_data_values(data), 8, 784, 1);
    assert_int_equal(qn__batcher_make(s.model, NULL, &options, &s.batcher, &err), QN_OK);
    assert_int_equal(qn__batcher_submit(s.batcher, s.item[0], hold, &g, &err), QN_OK);
    pthread_mutex_lock(&g.lock);
    while (!g.inside)
        pthread_cond_wait(&g.moved, &g.lock);
    pthread_mutex_unlock(&g.lock);
    for (int k = 0; k < WAITING; ++k) {
        begin(&w[k], 10);
        assert_int_equal(qn__batcher_submit(s.batcher, s.item[k], take, &w[k], &err), QN_OK);
    }
    assert_int_equal(qn__batcher_submit(s.batcher, s.item[7], take, &w[0], &err), QN_BUSY);
    assert_int_equal(qn__batcher_submit(s.batcher, data, take, &w[0], &err), QN_INPUT);
    assert_non_null(strstr(err.what, "8 items, and one may have 5"));
    pthread_mutex_lock(&g.lock);
    g.open = 1;
    pthread_cond_signal(&g.moved);
    pthread_mutex_unlock(&g.lock);
    qn__batcher_drain(s.batcher);
    qn__batcher_count(s.batcher, &counts);
    assert_int_equal(counts.requests, WAITING + 1);
    assert_int_equal(counts.batches, 2);
    assert_int_equal(counts.refused, 1);
    finish(&s);
    qn_data_close(data);
}

static const void *unwanted;

static int is_wanted(void *user) { return user != unwanted; }

/* A request whose client leaves while it waits is not computed. */
static void test_left(void **unused) {
    subject s = {0};
    qn_data *data;
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    waiter w[3];
    qn__batcher_counts counts;
    const qn__batcher_options options = {.latency = 1, .wanted = is_wanted};
    qn_error err;
    (void)unused;
    assert_int_equal(qn_data_synth_digits(1, 0, 3, &data, NULL), QN_OK);
    train(&s, data, "dense 10 softmax");
    cut(&s, QN_U8, qn_data_values(data), 3, 784, 1);
    check_all(&s);
    qn__batcher_free(s.batcher);
    assert_int_equal(qn__batcher_make(s.model, NULL, &options, &s.batcher, &err), QN_OK);
    assert_int_equal(qn__batcher_submit(s.batcher, s.item[0], hold, &g, &err), QN_OK);
    pthread_mutex_lock(&g.lock);
    while (!g.inside)
        pthread_cond_wait(&g.moved, &g.lock);
    pthread_mutex_unlock(&g.lock);
    unwanted = &w[1];
    for (int k = 0; k < 3; ++k) {
        begin(&w[k], 10);
        assert_int_equal(qn__batcher_submit(s.batcher, s.item[k], take, &w[k], &err), QN_OK);
    }
    pthread_mutex_lock(&g.lock);
    g.open = 1;
    pthread_cond_signal(&g.moved);
    pthread_mutex_unlock(&g.lock);
    qn__batcher_drain(s.batcher);
    qn__batcher_count(s.batcher, &counts);
    assert_int_equal(w[1].status, QN_INTERRUPTED);
    for (int k = 0; k < 3; k += 2)
        assert_memory_equal(w[k].output, s.expected + (size_t)k * 10, 10 * sizeof(float));
    assert_int_equal(counts.requests, 4);
    assert_int_equal(counts.items, 3);
    assert_int_equal(counts.left, 1);
    finish(&s);
    qn_data_close(data);
}

/* A request whose answer keeps the devices. */
typedef struct holder {
    subject *s;
    gate g;
} holder;

static void *submit_held(void *user) {
    holder *h = user;
    qn_error err;
    assert_int_equal(qn__batcher_submit(h->s->batcher, h->s->item[0], hold, &h->g, &err), QN_OK);
    return NULL;
}

/* Where batches are cheap, threads that submit compute them. One that waits in vain for another
 * leaves its request to the batcher. */
static void test_leaders(void **unused) {
    enum { REQUESTS = 4 };
    subject s = {0};
    qn_data *data;
    pthread_t thread;
    holder h = {.s = &s,
                .g = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER}};
    waiter w[REQUESTS];
    qn_error err;
    (void)unused;
    assert_int_equal(qn_data_synth_digits(1, 0, REQUESTS, &data, NULL), QN_OK);
    train(&s, data, "dense 10 softmax");
    cut(&s, QN_U8, qn_data_values(data), REQUESTS, 784, 1);
    check_all(&s);
    qn__batcher_free(s.batcher);
    assert_int_equal(qn__batcher_make(s.model, NULL, NULL, &s.batcher, &err), QN_OK);
    w[0].outputs = 10;
    assert_int_equal(ask(s.batcher, s.item[0], &w[0]), QN_OK); /* now it is known to be cheap */
    assert_int_equal(pthread_create(&thread, NULL, submit_held, &h), 0);
    pthread_mutex_lock(&h.g.lock);
    while (!h.g.inside)
        pthread_cond_wait(&h.g.moved, &h.g.lock);
    pthread_mutex_unlock(&h.g.lock);
    for (int k = 0; k < REQUESTS; ++k) {
        begin(&w[k], 10);
        assert_int_equal(qn__batcher_submit(s.batcher, s.item[k], take, &w[k], &err), QN_OK);
    }
    pthread_mutex_lock(&h.g.lock);
    h.g.open = 1;
    pthread_cond_signal(&h.g.moved);
    pthread_mutex_unlock(&h.g.lock);
    pthread_join(thread, NULL);
    qn__batcher_drain(s.batcher);
    for (int k = 0; k < REQUESTS; ++k) {
        assert_int_equal(w[k].status, QN_OK);
        assert_memory_equal(w[k].output, s.expected + (size_t)k * 10, 10 * sizeof(float));
    }
    finish(&s);
    qn_data_close(data);
}

/* Where large answers go to a writer. */
typedef struct large {
    gate g;
    qn__answer_writer *writer;
    const qn_model *model;
    waiter w;
} large;

static void take_slowly(void *user, const qn__batch_answer *a) {
    large *l = user;
    hold(&l->g, a);
    take(&l->w, a);
}

static void hand_over(void *user, const qn__batch_answer *a) {
    large *l = user;
    qn_error err;
    assert_int_equal(qn__answer_writer_add(l->writer, a, take_slowly, l, &err), QN_OK);
}

/* While an answer is written, other requests are answered; and its values stay. */
static void test_writer(void **unused) {
    subject s = {0};
    qn_data *data;
    large l = {.g = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER}};
    waiter other = {.outputs = 10};
    qn_error err;
    (void)unused;
    assert_int_equal(qn_data_synth_digits(1, 0, 2, &data, NULL), QN_OK);
    train(&s, data, "dense 10 softmax");
    cut(&s, QN_U8, qn_data_values(data), 2, 784, 1);
    check_all(&s);
    qn__batcher_free(s.batcher);
    assert_int_equal(qn__batcher_make(s.model, NULL, NULL, &s.batcher, &err), QN_OK);
    assert_int_equal(qn__answer_writer_make(&l.writer, &err), QN_OK);
    l.model = s.model;
    begin(&l.w, 10);
    assert_int_equal(qn__batcher_submit(s.batcher, s.item[0], hand_over, &l, &err), QN_OK);
    pthread_mutex_lock(&l.g.lock);
    while (!l.g.inside)
        pthread_cond_wait(&l.g.moved, &l.g.lock);
    pthread_mutex_unlock(&l.g.lock);
    assert_int_equal(ask(s.batcher, s.item[1], &other), QN_OK);
    assert_memory_equal(other.output, s.expected + 10, 10 * sizeof(float));
    pthread_mutex_lock(&l.g.lock);
    l.g.open = 1;
    pthread_cond_signal(&l.g.moved);
    pthread_mutex_unlock(&l.g.lock);
    qn__answer_writer_free(l.writer);
    assert_int_equal(l.w.done, 1);
    assert_memory_equal(l.w.output, s.expected, 10 * sizeof(float));
    finish(&s);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images), cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_fitted), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_queue),  cmocka_unit_test(test_writer),
        cmocka_unit_test(test_left),   cmocka_unit_test(test_leaders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
