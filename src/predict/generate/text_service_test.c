/* Requests that come and go: answers are those of a generator for each prompt alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <quern/quern.h>
#include <semaphore.h>

#include "model/formats/model.h"
#include "predict/generate/next_model_test.h"
#include "predict/generate/text_service.h"

enum { CONTEXT = 37, CLIENTS = 3, EACH = 9, MOST_TOKENS = 45, MOST_ANSWERS = 3, CHOICES = 2 };

static const char network[] = "embedding 256 20; residual { layernorm channels; conv 40 1x1; "
                              "attention 4 causal kv 2 window 21; conv 20 1x1 }; residual { gru 20 "
                              "}; conv 256 1x1 softmax";
/* For numbers that are not finite: of such scores the attention kernel makes integers that
 * overflow, which a sanitizer refuses, before it computes them in another way. */
static const char without_attention[] = "embedding 256 20; residual { gru 20 }; conv 256 1x1 "
                                        "softmax";
static qn_model *model;

static int set_up(void **unused) {
    (void)unused;
    model = train(network, CONTEXT, "f32", NULL);
    return model ? 0 : -1;
}

static int tear_down(void **unused) {
    (void)unused;
    qn_model_free(model);
    return 0;
}

/* One answer, as its last news had it. */
typedef struct kept {
    char text[4 * MOST_TOKENS];
    size_t bytes;
    uint32_t token[MOST_TOKENS], count;
    float log_probability[MOST_TOKENS];
    qn__text_choice choice[MOST_TOKENS * CHOICES];
    qn_answer_end end;
} kept;

typedef struct client {
    pthread_mutex_t lock;
    pthread_cond_t told;
    kept answer[MOST_ANSWERS];
    uint32_t leaves; /* after so many news; 0: it stays */
    uint32_t news;
    int over;
    qn_status failure;
    char where[256];
} client;

static void begin_client(client *c, uint32_t leaves) {
    memset(c, 0, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->told, NULL);
    c->leaves = leaves;
}

static void keep(kept *k, const qn__text_news *news) {
    const qn_answer *a = news->answer;
    assert_true(a->bytes >= k->bytes && a->count == k->count + 1); /* it only grows */
    assert_memory_equal(a->text, k->text, k->bytes);
    memcpy(k->text, a->text, k->bytes = a->bytes);
    memcpy(k->token, a->tokens, (k->count = a->count) * sizeof *k->token);
    if (a->log_probabilities)
        memcpy(k->log_probability, a->log_probabilities, a->count * sizeof(float));
    if (news->choices)
        memcpy(k->choice, news->choices, (size_t)a->count * CHOICES * sizeof *k->choice);
    k->end = a->end;
}

static void hear(void *user, const qn__text_news *news) {
    client *c = user;
    pthread_mutex_lock(&c->lock);
    assert_false(c->over);
    if (news->answer) {
        ++c->news;
        keep(&c->answer[news->answer->number], news);
    } else {
        c->over = 1;
        c->failure = news->failure ? news->failure->status : QN_OK;
        strcpy(c->where, news->failure ? news->failure->where : "");
    }
    pthread_cond_signal(&c->told);
    pthread_mutex_unlock(&c->lock);
}

static int stays(void *user) {
    client *c = user;
    pthread_mutex_lock(&c->lock);
    const int result = c->leaves == 0 || c->news < c->leaves;
    pthread_mutex_unlock(&c->lock);
    return result;
}

static void wait_until_over(client *c) {
    pthread_mutex_lock(&c->lock);
    while (!c->over)
        pthread_cond_wait(&c->told, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* What a client asks for, by its number. */
typedef struct question {
    char prompt[3 * CONTEXT];
    qn_generate_options options;
    uint32_t leaves;
} question;

static uint32_t next(uint32_t *seed, uint32_t below) {
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % below;
}

static const char *const stops[] = {"e", "ab"};

static void ask_for(uint32_t number, question *q) {
    uint32_t seed = number * 7919 + 5;
    const uint32_t length = 1 + next(&seed, 3 * CONTEXT - 2);
    memset(q->prompt, 0, sizeof q->prompt);
    for (uint32_t i = 0; i < length; ++i)
        q->prompt[i] = (char)('a' + next(&seed, 23));
    qn_generate_options_init(&q->options);
    q->options.tokens = 1 + next(&seed, MOST_TOKENS);
    q->options.answers = 1 + next(&seed, MOST_ANSWERS);
    q->options.temperature = next(&seed, 3) == 0 ? 0.0f : 0.9f;
    q->options.top_k = next(&seed, 2) * 40;
    q->options.repetition = next(&seed, 2) ? 1.0f : 1.2f;
    q->options.seed = next(&seed, 1000);
    q->options.log_probabilities = (int)next(&seed, 2);
    q->options.stop = stops;
    q->options.stops = next(&seed, 3);
    q->leaves = next(&seed, 4) == 0 ? 1 + next(&seed, 20) : 0;
}

static qn_status submit(qn__texts *texts, const question *q, client *c, qn_error *err) {
    const qn__text_prompt prompt = {.text = q->prompt};
    uint32_t tokens = 0;
    const qn__text_request request = {.options = &q->options,
                                      .prompt = &prompt,
                                      .prompts = 1,
                                      .choices = q->options.log_probabilities ? CHOICES : 0,
                                      .tell = hear,
                                      .wanted = stays,
                                      .user = c};
    const qn_status status = qn__texts_submit(texts, &request, &tokens, err);
    assert_true(status != QN_OK || tokens == strlen(q->prompt));
    return status;
}

/* The answers of a generator for that prompt alone. */
static void compare_alone(const question *q, const client *c) {
    const char *const prompt = q->prompt;
    qn_generator *g = NULL;
    qn_answer a = {.size = sizeof a};
    int more = 1;
    assert_int_equal(qn_generator_open(model, &prompt, 1, &q->options, &g, NULL), QN_OK);
    while (more)
        assert_int_equal(qn_generator_step(g, &more, NULL), QN_OK);
    for (uint32_t i = 0; i < q->options.answers; ++i) {
        const kept *k = &c->answer[i];
        assert_int_equal(qn_generator_answer(g, i, &a, NULL), QN_OK);
        assert_true(a.count == k->count && a.bytes == k->bytes && a.end == k->end);
        assert_memory_equal(a.text, k->text, a.bytes);
        assert_memory_equal(a.tokens, k->token, a.count * sizeof *a.tokens);
        for (uint32_t n = 0; a.log_probabilities && n < a.count; ++n) {
            const qn__text_choice *choice = &k->choice[(size_t)n * CHOICES];
            assert_memory_equal(&a.log_probabilities[n], &k->log_probability[n], sizeof(float));
            assert_true(choice[0].log_probability >= choice[1].log_probability);
            assert_true(choice[0].log_probability >= k->log_probability[n]);
            if (choice[0].token == k->token[n])
                assert_memory_equal(&choice[0].log_probability, &k->log_probability[n],
                                    sizeof(float));
        }
    }
    qn_generator_close(g);
}

typedef struct caller {
    qn__texts *texts;
    uint32_t first;
    question question[EACH];
    client client[EACH];
} caller;

static void *call(void *context) {
    caller *c = context;
    for (uint32_t i = 0; i < EACH; ++i) {
        ask_for(c->first + i, &c->question[i]);
        begin_client(&c->client[i], c->question[i].leaves);
        assert_int_equal(submit(c->texts, &c->question[i], &c->client[i], NULL), QN_OK);
        if (i % 4 == 3) /* the others go on meanwhile */
            wait_until_over(&c->client[i]);
    }
    for (uint32_t i = 0; i < EACH; ++i)
        wait_until_over(&c->client[i]);
    return NULL;
}

static void test_answers_depend_on_their_prompt_alone(void **unused) {
    static caller callers[CLIENTS];
    const qn__texts_options limits = {.sequences = 4};
    qn__texts_counts counts;
    qn__texts *texts = NULL;
    pthread_t thread[CLIENTS];
    uint32_t left = 0;
    (void)unused;
    assert_true(qn__texts_fit(model));
    assert_int_equal(qn__texts_open(model, NULL, &limits, &texts, NULL), QN_OK);
    for (uint32_t i = 0; i < CLIENTS; ++i) {
        callers[i].texts = texts;
        callers[i].first = i * EACH;
        assert_int_equal(pthread_create(&thread[i], NULL, call, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < CLIENTS; ++i)
        pthread_join(thread[i], NULL);
    qn__texts_count(texts, &counts);
    qn__texts_close(texts);
    for (uint32_t i = 0; i < CLIENTS * EACH; ++i) {
        const client *c = &callers[i / EACH].client[i % EACH];
        if (c->failure == QN_OK)
            compare_alone(&callers[i / EACH].question[i % EACH], c);
        else
            assert_true(c->failure == QN_INTERRUPTED && c->leaves > 0);
        left += c->failure != QN_OK;
    }
    assert_in_range(left, 3, CLIENTS * EACH / 2);
    assert_true(counts.requests == CLIENTS * EACH && counts.dropped == left);
    assert_true(counts.growing == 0 && counts.waiting == 0 && counts.failed == 0);
}

static void test_what_does_not_fit_is_refused(void **unused) {
    const qn__texts_options limits = {
        .sequences = 1, .waiting = 1, .positions = 20, .length = 1000};
    client first, others[2];
    question q;
    qn__texts *texts = NULL;
    qn_error err;
    (void)unused;
    assert_int_equal(qn__texts_open(model, NULL, &limits, &texts, NULL), QN_OK);
    ask_for(1, &q);
    q.prompt[10] = '\0';
    q.options.answers = 1;
    q.options.stops = 0;
    q.options.tokens = 11;
    begin_client(&first, 0);
    assert_int_equal(submit(texts, &q, &first, &err), QN_USAGE);
    assert_string_equal(err.what, "the prompt has 10 tokens and the answer up to 11, and both "
                                  "together may have 20");
    q.options.tokens = 10;
    q.options.answers = 3;
    assert_int_equal(submit(texts, &q, &first, &err), QN_USAGE);
    assert_non_null(strstr(err.remedy, "at most 2"));
    q.options.answers = 1;
    pthread_mutex_lock(&first.lock); /* the service waits with the first token */
    assert_int_equal(submit(texts, &q, &first, &err), QN_OK);
    begin_client(&others[0], 0);
    begin_client(&others[1], 0);
    assert_int_equal(submit(texts, &q, &others[0], &err), QN_OK);
    assert_int_equal(submit(texts, &q, &others[1], &err), QN_BUSY);
    pthread_mutex_unlock(&first.lock);
    wait_until_over(&first);
    qn__texts_close(texts);
    assert_true(first.failure == QN_OK && others[0].over && !others[1].over);
    compare_alone(&q, &first);
}

/* The network's numbers are not finite where a token is in the text. The others go on. */
static void test_an_answer_that_fails_fails_alone(void **unused) {
    const qn__texts_options limits = {.sequences = 3};
    qn__program program;
    client good[2], bad;
    question q[3];
    qn__texts *texts = NULL;
    qn_model *const first = model;
    (void)unused;
    model = train(without_attention, CONTEXT, "f32", NULL);
    assert_non_null(model);
    qn__model_program(model, &program);
    float *weight = (float *)(uintptr_t)qn__model_parameters(model) + program.layer[0].weights;
    float *of_z = weight + (size_t)'Z' * program.layer[0].to.channels;
    *of_z = INFINITY;
    assert_int_equal(qn__texts_open(model, NULL, &limits, &texts, NULL), QN_OK);
    for (int i = 0; i < 3; ++i) {
        ask_for(3, &q[i]);
        q[i].options.answers = 1;
        q[i].options.stops = 0;
        q[i].options.top_k = 2;
        q[i].options.tokens = 30;
        q[i].prompt[8 + i] = '\0';
    }
    strcpy(q[1].prompt + 5, "Z");
    begin_client(&good[0], 0);
    begin_client(&bad, 0);
    begin_client(&good[1], 0);
    pthread_mutex_lock(&good[0].lock); /* all are there when the second one is read */
    assert_int_equal(submit(texts, &q[0], &good[0], NULL), QN_OK);
    assert_int_equal(submit(texts, &q[1], &bad, NULL), QN_OK);
    assert_int_equal(submit(texts, &q[2], &good[1], NULL), QN_OK);
    pthread_mutex_unlock(&good[0].lock);
    wait_until_over(&bad);
    wait_until_over(&good[0]);
    wait_until_over(&good[1]);
    assert_int_equal(bad.failure, QN_NUMERIC);
    assert_string_equal(bad.where, "prompt 0, token 0 of the answer");
    assert_true(good[0].failure == QN_OK && good[1].failure == QN_OK);
    compare_alone(&q[0], &good[0]);
    compare_alone(&q[2], &good[1]);
    qn__texts_close(texts);
    qn_model_free(model);
    model = first;
}

/* A model whose last request ends it is closed in tell(). */
typedef struct closing {
    qn__texts *texts;
    sem_t closed;
} closing;

static void close_it(void *user, const qn__text_news *news) {
    closing *c = user;
    if (news->answer)
        return;
    qn__texts_close(c->texts);
    sem_post(&c->closed);
}

static void test_requests_that_are_left_end(void **unused) {
    client c;
    question q;
    qn__texts *texts = NULL;
    (void)unused;
    ask_for(4, &q);
    q.options.tokens = 1;
    assert_int_equal(qn__texts_open(model, NULL, NULL, &texts, NULL), QN_OK);
    begin_client(&c, 0);
    q.options.tokens = MOST_TOKENS;
    pthread_mutex_lock(&c.lock);
    assert_int_equal(submit(texts, &q, &c, NULL), QN_OK);
    pthread_mutex_unlock(&c.lock);
    qn__texts_close(texts);
    assert_true(c.over && (c.failure == QN_INTERRUPTED || c.answer[0].end != QN_ANSWER_GOES_ON));
    const qn__text_prompt prompt = {.text = "abc"};
    closing own;
    const qn__text_request request = {
        .options = &q.options, .prompt = &prompt, .prompts = 1, .tell = close_it, .user = &own};
    assert_int_equal(sem_init(&own.closed, 0, 0), 0);
    assert_int_equal(qn__texts_open(model, NULL, NULL, &own.texts, NULL), QN_OK);
    assert_int_equal(qn__texts_submit(own.texts, &request, NULL, NULL), QN_OK);
    while (sem_wait(&own.closed) != 0) /* until the thread has read all that is on this stack */
        ;
    sem_destroy(&own.closed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_depend_on_their_prompt_alone),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_an_answer_that_fails_fails_alone),
        cmocka_unit_test(test_requests_that_are_left_end),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
