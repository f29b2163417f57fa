/*
 * requests: how many requests a second the batcher of a server answers, without HTTP.
 *
 *     requests MODEL BODY [THREADS] [SECONDS] [CORES]
 *
 * Each of THREADS (64) reads the file BODY as the body of a request, has its items predicted
 * together with those of the others, writes the answer as JSON, and begins again, for SECONDS (3).
 * Batches are computed by CORES (all). All answers must be equal. Prints one JSON object: requests
 * a second, the processor time of one in microseconds, items of a batch, and the times of a request
 * in milliseconds. */
#include "base/system/clock.h"
#include "serve/batch/answer_json.h"
#include "serve/batch/bodies.h"

#include <pthread.h>
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512, TIMES = 1 << 16 };

static struct {
    qn_model *model;
    qn__body_reader *reader;
    qn__batcher *batcher;
    char body[1 << 20], expected[1 << 20];
    size_t size;
    double end;
} all;

typedef struct caller {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t came;
    int done;
    qn_data *data;
    qn__text text;
    uint64_t requests, times, wrong;
    double seconds[TIMES];
} caller;

static void take(void *user, const qn__batch_answer *a) {
    caller *c = user;
    for (uint64_t i = 0; i < a->items; ++i)
        qn__answer_add_json(&c->text, all.model, c->data, a, i, 1);
    pthread_mutex_lock(&c->lock);
    c->done = 1;
    pthread_cond_signal(&c->came);
    pthread_mutex_unlock(&c->lock);
}

static int ask(caller *c) {
    qn_error err;
    qn__body_kind kind;
    c->text.size = 0;
    c->done = 0;
    qn_status status = qn__body_kind_of(NULL, all.body, all.size, &kind, &err);
    if (status == QN_OK)
        status = qn__body_read(all.reader, kind, all.body, all.size, &c->data, &err);
    if (status == QN_OK)
        status = qn__batcher_submit(all.batcher, c->data, take, c, &err);
    if (status != QN_OK) {
        fprintf(stderr, "requests: %s: %s\n  %s\n", err.where, err.what, err.remedy);
        exit(1);
    }
    pthread_mutex_lock(&c->lock);
    while (!c->done)
        pthread_cond_wait(&c->came, &c->lock);
    pthread_mutex_unlock(&c->lock);
    qn_data_close(c->data);
    return c->text.size > 0;
}

static void *body(void *context) {
    caller *c = context;
    for (double now = qn__now(); now < all.end; ++c->requests) {
        const double begin = now;
        c->wrong += !ask(c) || strcmp(c->text.data, all.expected) != 0;
        now = qn__now();
        if (c->times < TIMES)
            c->seconds[c->times++] = now - begin;
    }
    return NULL;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(caller *const *callers, int threads, double seconds, double processor) {
    uint64_t requests = 0, times = 0, wrong = 0;
    qn__batcher_counts counts;
    double *time = calloc((size_t)threads * TIMES, sizeof *time);
    if (!time)
        exit(1);
    for (int t = 0; t < threads; ++t) {
        requests += callers[t]->requests;
        wrong += callers[t]->wrong;
        memcpy(time + times, callers[t]->seconds, callers[t]->times * sizeof *time);
        times += callers[t]->times;
    }
    qsort(time, times, sizeof *time, by_size);
    qn__batcher_count(all.batcher, &counts);
    printf("{\"threads\": %d, \"per_second\": %.0f, \"processor_us\": %.1f, \"batch\": %.1f, "
           "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"wrong\": %llu}\n",
           threads, (double)requests / seconds, 1e6 * processor / (double)requests,
           (double)counts.items / (double)counts.batches, 1e3 * time[times / 2],
           1e3 * time[times * 99 / 100], (unsigned long long)wrong);
    free(time);
}

static caller *make_caller(void) {
    caller *c = calloc(1, sizeof *c);
    if (!c)
        exit(1);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->came, NULL);
    return c;
}

int main(int argc, char **argv) {
    static caller *callers[MOST];
    const int threads = argc > 3 ? atoi(argv[3]) : 64;
    const double seconds = argc > 4 ? atof(argv[4]) : 3;
    const qn_compute compute = {.size = sizeof compute, .threads = argc > 5 ? atoi(argv[5]) : 0};
    qn_error err;
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    if (!file || threads < 1 || threads > MOST || !(seconds > 0)) {
        fprintf(stderr, "usage: requests MODEL BODY [THREADS] [SECONDS]\n");
        return 2;
    }
    all.size = fread(all.body, 1, sizeof all.body, file);
    fclose(file);
    if (qn_model_load(argv[1], &all.model, &err) != QN_OK ||
        qn__body_reader_make(all.model, &all.reader, &err) != QN_OK ||
        qn__batcher_make(all.model, &compute, NULL, &all.batcher, &err) != QN_OK) {
        fprintf(stderr, "requests: %s: %s\n  %s\n", err.where, err.what, err.remedy);
        return 1;
    }
    caller *first = make_caller();
    ask(first);
    snprintf(all.expected, sizeof all.expected, "%s", first->text.data);
    const double begin = qn__now(), processor = qn__processor_seconds();
    all.end = begin + seconds;
    for (int t = 0; t < threads; ++t) {
        callers[t] = make_caller();
        if (pthread_create(&callers[t]->thread, NULL, body, callers[t]) != 0)
            return 1;
    }
    for (int t = 0; t < threads; ++t)
        pthread_join(callers[t]->thread, NULL);
    report(callers, threads, qn__now() - begin, qn__processor_seconds() - processor);
    qn__batcher_free(all.batcher);
    qn__body_reader_free(all.reader);
    qn_model_free(all.model);
    return 0;
}
