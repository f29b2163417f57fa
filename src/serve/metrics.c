#include "serve/metrics.h"

#include "base/memory.h"
#include "serve/inference/predictor.h"
#include "serve/text/text_metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 512, BUCKETS = 14, NAME = 100 };
static const double bucket[BUCKETS] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                       0.1,    0.2,   0.5,   1,     2,    5,    10};

/* Requests of one route, model, version and status. Beyond MOST_ROWS they are counted together. */
typedef struct row {
    const char *route; /* of a table of routes */
    uint64_t count, received, sent, below[BUCKETS];
    double seconds;
    unsigned status;
    char model[NAME], version[NAME];
} row;

struct qn__metrics {
    pthread_mutex_t lock;
    qn__models *models;
    qn__http *http;
    uint32_t rows;
    row row[MOST_ROWS];
};

qn_status qn__metrics_make(qn__models *models, qn__metrics **out, qn_error *err) {
    *out = qn__alloc(1, sizeof **out, err);
    if (!*out)
        return QN_MEMORY;
    (*out)->models = models;
    pthread_mutex_init(&(*out)->lock, NULL);
    return QN_OK;
}

void qn__metrics_free(qn__metrics *metrics) {
    if (!metrics)
        return;
    pthread_mutex_destroy(&metrics->lock);
    qn__free(metrics);
}

/* The caller holds the lock. */
static row *row_of(qn__metrics *m, const qn__http_done *d) {
    for (uint32_t i = 0; i < m->rows; i++) {
        row *r = &m->row[i];
        if (r->status == d->status && r->route == d->route && strcmp(r->model, d->model) == 0 &&
            strcmp(r->version, d->version) == 0)
            return r;
    }
    if (m->rows == MOST_ROWS)
        return &m->row[MOST_ROWS - 1];
    row *r = &m->row[m->rows++];
    r->route = d->route;
    r->status = d->status;
    snprintf(r->model, sizeof r->model, "%s", d->model);
    snprintf(r->version, sizeof r->version, "%s", d->version);
    return r;
}

void qn__metrics_count(qn__metrics *m, const qn__http_done *d) {
    pthread_mutex_lock(&m->lock);
    row *r = row_of(m, d);
    r->count++;
    r->received += d->received;
    r->sent += d->sent;
    r->seconds += d->seconds;
    for (int b = 0; b < BUCKETS; b++)
        r->below[b] += d->seconds <= bucket[b];
    pthread_mutex_unlock(&m->lock);
}

/* ---------------------------------------------------------------------------------------- the text
 */

static void describe(qn__text *text, const char *name, const char *type, const char *about) {
    qn__text_add(text, "# HELP %s %s\n# TYPE %s %s\n", name, about, name, type);
}

static void add_labels(qn__text *text, const row *r) {
    qn__text_add(text, "{route=\"%s\",model=\"%s\",version=\"%s\",status=\"%u\"", r->route,
                 r->model, r->version, r->status);
}

static void add_histogram(qn__text *text, const row *r) {
    for (int b = 0; b < BUCKETS; b++) {
        qn__text_add(text, "quern_request_seconds_bucket");
        add_labels(text, r);
        qn__text_add(text, ",le=\"%g\"} %llu\n", bucket[b], (unsigned long long)r->below[b]);
    }
    qn__text_add(text, "quern_request_seconds_bucket");
    add_labels(text, r);
    qn__text_add(text, ",le=\"+Inf\"} %llu\nquern_request_seconds_sum",
                 (unsigned long long)r->count);
    add_labels(text, r);
    qn__text_add(text, "} %.6f\nquern_request_seconds_count", r->seconds);
    add_labels(text, r);
    qn__text_add(text, "} %llu\n", (unsigned long long)r->count);
}

typedef uint64_t row_value(const row *r);
static uint64_t count_of(const row *r) { return r->count; }
static uint64_t received_of(const row *r) { return r->received; }
static uint64_t sent_of(const row *r) { return r->sent; }

static void add_requests(qn__text *text, qn__metrics *m) {
    static const struct {
        const char *name, *about;
        row_value *value;
    } counters[] = {{"quern_requests_total",
                     "Requests; status 0: the client left before the answer.", count_of},
                    {"quern_received_bytes_total", "Bytes of the bodies of requests.", received_of},
                    {"quern_sent_bytes_total", "Bytes of the bodies of answers.", sent_of}};
    pthread_mutex_lock(&m->lock);
    for (size_t c = 0; c < sizeof counters / sizeof *counters; c++) {
        describe(text, counters[c].name, "counter", counters[c].about);
        for (uint32_t i = 0; i < m->rows; i++) {
            qn__text_add(text, "%s", counters[c].name);
            add_labels(text, &m->row[i]);
            qn__text_add(text, "} %llu\n", (unsigned long long)counters[c].value(&m->row[i]));
        }
    }
    describe(text, "quern_request_seconds", "histogram",
             "Seconds from the head of a request to the end of its answer.");
    for (uint32_t i = 0; i < m->rows; i++)
        add_histogram(text, &m->row[i]);
    pthread_mutex_unlock(&m->lock);
}

/* What a batcher has counted. */
typedef double batch_value(const qn__batcher_counts *c);
static double requests_of(const qn__batcher_counts *c) { return (double)c->requests; }
static double items_of(const qn__batcher_counts *c) { return (double)c->items; }
static double batches_of(const qn__batcher_counts *c) { return (double)c->batches; }
static double failed_of(const qn__batcher_counts *c) { return (double)c->failed; }
static double refused_of(const qn__batcher_counts *c) { return (double)c->refused; }
static double left_of(const qn__batcher_counts *c) { return (double)c->left; }
static double waiting_of(const qn__batcher_counts *c) { return (double)c->waiting; }
static double seconds_of(const qn__batcher_counts *c) { return c->computing; }

static const struct {
    const char *name, *type, *about;
    batch_value *value;
} batch_counts[] = {
    {"quern_model_requests_total", "counter", "Requests that a model answered.", requests_of},
    {"quern_model_items_total", "counter", "Items of these requests.", items_of},
    {"quern_model_batches_total", "counter", "Batches in which they were computed.", batches_of},
    {"quern_model_failed_total", "counter", "Requests that failed.", failed_of},
    {"quern_model_refused_total", "counter", "Requests refused by a full queue.", refused_of},
    {"quern_model_left_total", "counter", "Failed requests for which nobody waited.", left_of},
    {"quern_model_waiting_items", "gauge", "Items that wait.", waiting_of},
    {"quern_model_compute_seconds_total", "counter", "Seconds of computing.", seconds_of}};

/* One row of `batch_counts` for all models. */
typedef struct batch_text {
    qn__text *text;
    size_t index;
} batch_text;

static void add_batch(void *user, const qn__model_state *state) {
    const batch_text *b = user;
    qn__predictor *p = state->served ? state->served->part[QN__PART_PREDICTOR] : NULL;
    qn__batcher_counts counts;
    if (!p)
        return;
    qn__predictor_count(p, &counts);
    qn__text_add(b->text, "%s{model=\"%s\",version=\"%s\"} %.9g\n", batch_counts[b->index].name,
                 state->name, state->version, batch_counts[b->index].value(&counts));
}

/* The sizes of a model's batches. */
static void add_sizes(void *user, const qn__model_state *state) {
    qn__predictor *p = state->served ? state->served->part[QN__PART_PREDICTOR] : NULL;
    qn__batcher_counts c;
    uint64_t below = 0;
    if (!p)
        return;
    qn__predictor_count(p, &c);
    for (int i = 0; i < QN__BATCH_SIZES; i++) {
        char most[16] = "+Inf";
        if (i < QN__BATCH_SIZES - 1)
            snprintf(most, sizeof most, "%d", 1 << i);
        below += c.sizes[i];
        qn__text_add(user, "quern_batch_items_bucket{model=\"%s\",version=\"%s\",le=\"%s\"} %llu\n",
                     state->name, state->version, most, (unsigned long long)below);
    }
    qn__text_add(user,
                 "quern_batch_items_sum{model=\"%s\",version=\"%s\"} %llu\n"
                 "quern_batch_items_count{model=\"%s\",version=\"%s\"} %llu\n",
                 state->name, state->version, (unsigned long long)c.items, state->name,
                 state->version, (unsigned long long)c.batches);
}

static void add_model(void *user, const qn__model_state *state) {
    if (state->served)
        qn__text_add(user, "quern_model_info{model=\"%s\",version=\"%s\",digest=\"%s\"} 1\n",
                     state->name, state->version, qn_model_digest(state->served->model));
}

static void show(qn__request *request, void *user) {
    qn__metrics *m = user;
    qn__text text = {0};
    add_requests(&text, m);
    describe(&text, "quern_requests_active", "gauge", "Requests and new connections, now.");
    qn__text_add(&text, "quern_requests_active %u\n", qn__http_active(m->http));
    describe(&text, "quern_requests_late_total", "counter", "Answers that were not ready in time.");
    qn__text_add(&text, "quern_requests_late_total %llu\n",
                 (unsigned long long)qn__http_late(m->http));
    describe(&text, "quern_model_info", "gauge", "The models that are served.");
    qn__models_list(m->models, add_model, &text);
    for (size_t i = 0; i < sizeof batch_counts / sizeof *batch_counts; i++) {
        batch_text b = {&text, i};
        describe(&text, batch_counts[i].name, batch_counts[i].type, batch_counts[i].about);
        qn__models_list(m->models, add_batch, &b);
    }
    describe(&text, "quern_batch_items", "histogram", "Items of a batch.");
    qn__models_list(m->models, add_sizes, &text);
    qn__text_metrics_add(m->models, &text);
    qn__answer_grown(request, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static const qn__route routes[] = {{.method = "GET", .path = "/metrics", .handle = show},
                                   {.method = NULL}};

void qn__metrics_add(qn__metrics *metrics, qn__http *http) {
    metrics->http = http;
    qn__http_add(http, routes, metrics);
}
