/* The queue of requests, and who computes a batch. One thread at a time is at the devices: that of
 * the batcher, or one that submits. */
#include "serve/batch/batcher.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "serve/batch/joined.h"
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* Defaults of the options, and the first number of items of a batch. */
enum { LATENCY = 20000000, WAITING = 65536, MOST = 1024, FIRST = 8, UNIT = 16 };
#define UNIT_SECONDS 1e-3
/* A thread that submits computes what takes less than these seconds: a change of threads takes
 * about a tenth of it. */
#define OWN_SECONDS 100e-6
/* How long it waits for the devices before it leaves its request to the thread of the batcher. A
 * batch of a few rows of 16 numbers takes about 10 us; to sleep and be woken takes longer. */
#define LEAD_SECONDS 50e-6
/* Of the time that the last batch took, and of the bound: how long the devices wait for as many
 * requests as that batch had. Answered together, they come again together. */
#define GATHER (1.0 / 8)

typedef struct request request;
struct request {
    request *next;
    qn__request_items items;
    qn__batch_done *done;
    void *user;
    double since;
    atomic_int *answered; /* set to 1 under the lock; NULL: nobody waits for it */
};

struct qn__batcher {
    qn__batch_form form;
    qn_compute compute;
    qn__batcher_options options;
    pthread_mutex_t lock;
    pthread_cond_t more, calm; /* requests have come; nothing waits, and nobody computes */
    pthread_t thread;
    /* Under the lock: */
    request *first, **last;
    int idle;         /* the thread waits for requests */
    int leaders;      /* threads that submit and wait, to compute what is queued */
    int one_core;     /* a thread that waited would keep the core from the one that computes */
    pthread_t runner; /* whose batch runs, while one does */
    double of_few;    /* seconds of the last batch of FIRST items or less; 0: none yet */
    double of_item;   /* in the last batch */
    uint64_t wanted;  /* it waits for so many; 0: it does not */
    uint64_t queued;  /* requests that wait */
    qn__batcher_counts counts;
    int drained, ending;
    atomic_int running; /* also read without the lock */
    /* Of the one who is at the devices: */
    void *team;
    qn__joined joined;
    const qn_data **each; /* inputs of the requests of a batch */
    uint64_t each_space, limit;
    uint64_t last_requests; /* of the last batch */
    double last_seconds;    /* of its computation, without the answers */
};

static double bound(const qn__batcher *b) { return (double)b->options.latency * 1e-9; }

/* ------------------------------------------------------------------------------------- answers */

static void answer(const request *r, const qn__batch_answer *a) {
    r->done(r->user, a);
    qn__float_state_set();
}

static void answer_failure(const request *r, qn_status status, const qn_error *err) {
    const qn__batch_answer a = {.status = status, .err = err};
    answer(r, &a);
}

static void *copy(const void *from, uint64_t count, uint64_t all, size_t size, qn_error *err) {
    void *to = from ? qn__alloc(all, size, err) : NULL;
    if (to)
        memcpy(to, from, count * size);
    return to;
}

/* The results of `count` items in memory of the answer's, with room for all its items. */
static qn_status own_results(const qn__model_results *from, uint64_t count, qn__batch_answer *a,
                             qn_error *err) {
    const uint64_t all = a->items;
    a->classes = copy(from->classes, count, all, sizeof *from->classes, err);
    a->scores = copy(from->scores, count, all, sizeof *from->scores, err);
    a->outputs = copy(from->outputs, count, all, a->each_outputs * sizeof *from->outputs, err);
    a->answers = copy(from->answers, count, all, a->each_answers, err);
    if (!a->classes == !from->classes && !a->scores == !from->scores &&
        !a->outputs == !from->outputs && !a->answers == !from->answers)
        return QN_OK;
    qn__batch_answer_release(a);
    return QN_MEMORY;
}

/* Where the results of an answer are, which the caller may change if it owns them. */
static qn__model_results results_of(const qn__batch_answer *a) {
    return (qn__model_results){.classes = (int32_t *)(uintptr_t)a->classes,
                               .scores = (float *)(uintptr_t)a->scores,
                               .outputs = (float *)(uintptr_t)a->outputs,
                               .answers = (uint8_t *)(uintptr_t)a->answers};
}

qn_status qn__batch_answer_copy(const qn__batch_answer *from, qn__batch_answer *out,
                                qn_error *err) {
    const qn__model_results results = results_of(from);
    *out = *from;
    return own_results(&results, from->items, out, err);
}

void qn__batch_answer_release(qn__batch_answer *a) {
    const qn__model_results results = results_of(a);
    qn__free(results.classes);
    qn__free(results.scores);
    qn__free(results.outputs);
    qn__free(results.answers);
    a->classes = NULL;
    a->scores = a->outputs = NULL;
    a->answers = NULL;
}

/* Some items of the request have no prediction: its results are spread in memory of its own. */
static void answer_spread(const qn__batcher *b, const request *r, const qn__model_results *from,
                          qn__batch_answer *a) {
    qn_error err;
    if (own_results(from, r->items.prepared.inputs->items, a, &err) != QN_OK) {
        answer_failure(r, QN_MEMORY, &err);
        return;
    }
    const qn__model_results own = results_of(a);
    qn__request_items_spread(&b->form, &r->items, &own);
    answer(r, a);
    qn__batch_answer_release(a);
}

static void answer_all(const qn__batcher *b, const request *r, const qn__model_results *results,
                       double began, double seconds) {
    uint64_t at = 0;
    for (const uint64_t all = b->joined.inputs->items; r && at < all; r = r->next) {
        const qn__model_results from = qn__results_from(results, &b->form, at);
        qn__batch_answer a = {.status = QN_OK,
                              .items = r->items.items,
                              .classes = from.classes,
                              .scores = from.scores,
                              .outputs = from.outputs,
                              .answers = from.answers,
                              .each_answers = b->form.answers,
                              .each_outputs = b->form.outputs,
                              .waited = began - r->since,
                              .computed = seconds,
                              .together = all};
        at += r->items.prepared.inputs->items;
        if (r->items.prepared.complete)
            answer_spread(b, r, &from, &a);
        else
            answer(r, &a);
    }
}

/* ---------------------------------------------------------------------------------- computation */

static qn_status open_team(qn__batcher *b, qn_error *err) {
    return b->team ? QN_OK : qn__batch_open(&b->form, &b->compute, b->options.most, &b->team, err);
}

/* Devices that failed are opened again, once. */
static qn_status run(qn__batcher *b, const qn__model_results *results, qn_error *err) {
    qn_status status = QN_DEVICE;
    for (int attempt = 0; attempt < 2 && status == QN_DEVICE; ++attempt) {
        status = open_team(b, err);
        if (status == QN_OK)
            status = qn__batch_run(&b->form, b->team, b->joined.inputs, results, err);
        if (status == QN_OK || status == QN_NUMERIC)
            continue;
        qn__batch_close(&b->form, b->team);
        b->team = NULL;
    }
    return status;
}

static qn_status need_each(qn__batcher *b, uint64_t count, qn_error *err) {
    if (count <= b->each_space)
        return QN_OK;
    qn__free(b->each);
    b->each = qn__alloc(2 * count, sizeof *b->each, err);
    b->each_space = b->each ? 2 * count : 0;
    return b->each ? QN_OK : QN_MEMORY;
}

static qn_status compute(qn__batcher *b, const request *r, uint64_t count,
                         qn__model_results *results, qn_error *err) {
    qn_status status = need_each(b, count, err);
    for (uint64_t k = 0; status == QN_OK && k < count; ++k, r = r->next)
        b->each[k] = r->items.prepared.inputs;
    if (status == QN_OK)
        status = qn__join_inputs(&b->joined, b->each, count, err);
    if (status == QN_OK)
        status = qn__join_results(&b->joined, &b->form, !b->options.no_outputs, results, err);
    return status == QN_OK ? run(b, results, err) : status;
}

/* Computes `count` requests together and answers them; of those that fail together, each half by
 * itself. Returns how many failed. */
static uint64_t serve(qn__batcher *b, request *r, uint64_t count) {
    qn_error err;
    qn__model_results results;
    const double began = qn__now();
    const qn_status status = compute(b, r, count, &results, &err);
    const double seconds = qn__now() - began;
    b->last_seconds += seconds;
    if (status == QN_OK) {
        answer_all(b, r, &results, began, seconds);
        return 0;
    }
    if (count == 1) {
        answer_failure(r, status, &err);
        return 1;
    }
    request *middle = r;
    for (uint64_t k = 0; k < count / 2; ++k)
        middle = middle->next;
    const uint64_t failed = serve(b, r, count / 2);
    return failed + serve(b, middle, count - count / 2);
}

/* --------------------------------------------------------------------------------- the queue */

/* What a batch took from the queue. */
typedef struct taken {
    request *first;
    uint64_t requests, items;
} taken;

static int are_alike(const request *a, const request *b) {
    const qn_data *x = a->items.prepared.inputs, *y = b->items.prepared.inputs;
    return x->type == y->type && x->features == y->features;
}

/* How many items a batch may have. Where a batch takes long, it is a number that all cores divide
 * into their fastest pieces, if so many wait: the others are computed sooner with those that come
 * meanwhile. */
static uint64_t most_items(const qn__batcher *b) {
    const uint64_t most = b->counts.waiting < b->limit ? b->counts.waiting : b->limit;
    return most > UNIT && b->last_seconds > UNIT_SECONDS ? most / UNIT * UNIT : b->limit;
}

/* The first requests that wait, at least one, of one type, up to the limit of a batch. */
static taken take(qn__batcher *b) {
    taken t = {.first = b->first};
    request *end = NULL;
    const uint64_t most = most_items(b);
    for (request *r = b->first; r; r = r->next) {
        const uint64_t items = r->items.prepared.inputs->items;
        if (end && (t.items + items > most || !are_alike(t.first, r)))
            break;
        end = r;
        t.items += items;
        ++t.requests;
        b->counts.waiting -= r->items.items;
    }
    b->first = end ? end->next : NULL;
    if (!b->first)
        b->last = &b->first;
    if (end)
        end->next = NULL;
    b->queued -= t.requests;
    return t;
}

/* A batch takes half of the bound at most. */
static void learn(qn__batcher *b, const taken *t) {
    const double most = bound(b) / 2, seconds = b->last_seconds;
    if (seconds > most) {
        const double fits = (double)t->items * most / seconds;
        b->limit = fits < 1 ? 1 : (uint64_t)fits;
    } else if (t->items * 2 > b->limit)
        b->limit = b->limit * 2 < b->options.most ? b->limit * 2 : b->options.most;
    b->last_requests = t->requests;
}

static void release(request *r) {
    while (r) {
        request *next = r->next;
        qn__request_items_release(&r->items);
        qn__free(r);
        r = next;
    }
}

/* Tells those that wait for one of these requests, and frees them. */
static void finish(qn__batcher *b, request *first) {
    if (!first)
        return;
    pthread_mutex_lock(&b->lock);
    for (const request *r = first; r; r = r->next)
        if (r->answered)
            *r->answered = 1;
    pthread_mutex_unlock(&b->lock);
    release(first);
}

static int size_of(uint64_t items) {
    int size = 0;
    while (size < QN__BATCH_SIZES - 1 && items > (uint64_t)1 << size)
        ++size;
    return size;
}

/* Answers the requests of a batch whose clients have left, and takes them out of it. Returns them.
 */
static request *drop_unwanted(const qn__batcher *b, taken *t, uint64_t *dropped) {
    const double since = qn__now() - bound(b);
    request *left = NULL, **end = &left, **at = &t->first;
    qn_error err;
    *dropped = 0;
    while (b->options.wanted && *at) {
        request *r = *at;
        if (r->since > since || b->options.wanted(r->user)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = NULL;
        *end = r;
        end = &r->next;
        --t->requests;
        t->items -= r->items.prepared.inputs->items;
        ++*dropped;
        qn__fail(&err, QN_INTERRUPTED, "nobody wants the answer any more");
        answer_failure(r, QN_INTERRUPTED, &err);
    }
    return left;
}

/* A time that may have grown because other programs had the core in between. */
static double damp(double seconds, double before) {
    return before > 0 && seconds > 2 * before ? 2 * before : seconds;
}

/* One batch by the calling thread, which has set `running`. Called with the lock, and returns with
 * it. */
static void run_batch(qn__batcher *b) {
    taken t = take(b);
    uint64_t dropped, items = 0;
    b->runner = pthread_self();
    pthread_mutex_unlock(&b->lock);
    finish(b, drop_unwanted(b, &t, &dropped));
    b->last_seconds = 0;
    const uint64_t failed = t.first ? serve(b, t.first, t.requests) : 0;
    if (t.first)
        learn(b, &t);
    for (const request *r = t.first; r; r = r->next)
        items += r->items.items;
    finish(b, t.first);
    pthread_mutex_lock(&b->lock);
    b->counts.requests += t.requests + dropped;
    b->counts.items += items;
    b->counts.failed += failed + dropped;
    b->counts.left += dropped;
    b->counts.batches += t.first != NULL;
    b->counts.sizes[size_of(items)] += t.first != NULL;
    b->counts.computing += b->last_seconds;
    if (t.first) {
        if (t.items <= FIRST)
            b->of_few = damp(b->last_seconds, b->of_few);
        b->of_item = damp(b->last_seconds / (double)t.items, b->of_item);
    }
}

/* The devices are free for others. */
static void leave(qn__batcher *b) {
    b->running = 0;
    if (!b->first)
        pthread_cond_broadcast(&b->calm);
    else if (!b->leaders)
        pthread_cond_signal(&b->more);
}

/* Waits a moment for as many requests as the last batch had. */
static void gather(qn__batcher *b) {
    const double longest = b->last_seconds < bound(b) ? b->last_seconds : bound(b);
    const struct timespec end = qn__after(GATHER * longest);
    while (b->queued < b->last_requests && !b->drained) {
        b->wanted = b->last_requests;
        if (pthread_cond_timedwait(&b->more, &b->lock, &end) == ETIMEDOUT)
            break;
    }
    b->wanted = 0;
}

static void *body(void *context) {
    qn__batcher *b = context;
    qn__float_state_set();
    pthread_mutex_lock(&b->lock);
    while (!b->ending || b->first) {
        if (!b->first || b->running || b->leaders) {
            b->idle = 1;
            pthread_cond_wait(&b->more, &b->lock);
            b->idle = 0;
            continue;
        }
        b->running = 1;
        gather(b);
        run_batch(b);
        leave(b);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------------- callers */

static qn_status refuse(qn__batcher *b, qn_error *err) {
    if (b->drained)
        return qn__fail(err, QN_INTERRUPTED, "the model takes no further requests");
    ++b->counts.refused;
    qn__fail(err, QN_BUSY, "%llu items wait for the model", (unsigned long long)b->counts.waiting);
    return qn__remedy(err, QN_BUSY, "try again later, or send fewer requests at once");
}

/* One request cannot keep the devices for as long as it likes. */
static qn_status check_items(const qn__batcher *b, const qn_data *data, qn_error *err) {
    if (data->items <= b->options.waiting)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the request has %llu items, and one may have %llu",
             (unsigned long long)data->items, (unsigned long long)b->options.waiting);
    return qn__remedy(err, QN_INPUT, "send fewer items at once");
}

/* Whether a thread that submits may compute what is queued. */
static int is_cheap(const qn__batcher *b) {
    return b->of_few > 0 && b->of_few < OWN_SECONDS &&
           (double)b->counts.waiting * b->of_item < OWN_SECONDS;
}

/* Whether to wait for the devices may help. A thread may submit while it answers others. */
static int may_come(const qn__batcher *b) {
    return !b->running || (!b->one_core && !pthread_equal(b->runner, pthread_self()));
}

/* Waits for a moment until another thread has answered the request, or the devices are free. Called
 * with the lock, and returns with it. */
static void wait_to_lead(qn__batcher *b, const atomic_int *answered) {
    const double end = qn__now() + LEAD_SECONDS;
    int late = 0;
    ++b->leaders;
    while (b->running && !*answered && !late) {
        pthread_mutex_unlock(&b->lock);
        while (b->running && !*answered && !(late = qn__now() > end))
            continue;
        pthread_mutex_lock(&b->lock);
    }
    --b->leaders;
}

/* Computes what is queued, unless another thread has computed this request meanwhile, or is long at
 * the devices: then it stays in the queue. */
static void lead(qn__batcher *b, request *r) {
    atomic_int answered = 0;
    r->answered = &answered; /* cppcheck-suppress autoVariables; until it is answered or left */
    wait_to_lead(b, &answered);
    if (!answered)
        r->answered = NULL;
    if (b->running || !b->first)
        return;
    b->running = is_cheap(b);
    if (b->running)
        run_batch(b);
    leave(b);
}

/* Puts the request at the end, or computes it where that is cheap. */
static qn_status enter(qn__batcher *b, request *r, qn_error *err) {
    pthread_mutex_lock(&b->lock);
    const uint64_t waiting = b->counts.waiting + r->items.items;
    if (b->drained || (b->first && waiting > b->options.waiting)) {
        const qn_status status = refuse(b, err);
        pthread_mutex_unlock(&b->lock);
        return status;
    }
    *b->last = r;
    b->last = &r->next;
    b->counts.waiting = waiting;
    ++b->queued;
    if (is_cheap(b) && may_come(b))
        lead(b, r);
    else if (b->idle ? !b->running : b->wanted && b->queued >= b->wanted)
        pthread_cond_signal(&b->more);
    pthread_mutex_unlock(&b->lock);
    return QN_OK;
}

qn_status qn__batcher_submit(qn__batcher *b, const qn_data *data, qn__batch_done *done, void *user,
                             qn_error *err) {
    QN__OWN_FLOATS;
    if (check_items(b, data, err) != QN_OK)
        return QN_INPUT;
    request *r = qn__alloc(1, sizeof *r, err);
    if (!r)
        return QN_MEMORY;
    r->done = done;
    r->user = user;
    r->since = qn__now();
    qn_status status = qn__request_items_make(&b->form, data, &r->items, err);
    if (status == QN_OK)
        status = enter(b, r, err);
    if (status != QN_OK)
        release(r);
    return status;
}

void qn__batcher_drain(qn__batcher *b) {
    pthread_mutex_lock(&b->lock);
    b->drained = 1;
    pthread_cond_signal(&b->more);
    while (b->first || b->running)
        pthread_cond_wait(&b->calm, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

void qn__batcher_count(qn__batcher *b, qn__batcher_counts *out) {
    pthread_mutex_lock(&b->lock);
    *out = b->counts;
    pthread_mutex_unlock(&b->lock);
}

/* ------------------------------------------------------------------------------- making, freeing
 */

static void set_defaults(qn__batcher_options *o) {
    o->latency = o->latency ? o->latency : LATENCY;
    o->waiting = o->waiting ? o->waiting : WAITING;
    o->most = o->most ? o->most : MOST;
}

static void set_up_lock(qn__batcher *b) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->more, &monotonic);
    pthread_cond_init(&b->calm, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void destroy(qn__batcher *b) {
    qn__batch_close(&b->form, b->team);
    qn__joined_release(&b->joined);
    qn__free(b->each);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->more);
    pthread_cond_destroy(&b->calm);
    qn__free(b);
}

static qn_status start(qn__batcher *b, qn_error *err) {
    const qn_status status = open_team(b, err);
    if (status != QN_OK)
        return status;
    const int error = qn__thread_start(&b->thread, NULL, body, b);
    return error ? qn__fail(err, QN_MEMORY, "cannot start a thread: %s", strerror(error)) : QN_OK;
}

qn_status qn__batcher_make(const qn_model *model, const qn_compute *compute,
                           const qn__batcher_options *options, qn__batcher **out, qn_error *err) {
    QN__OWN_FLOATS;
    qn__batch_form form;
    *out = NULL;
    if (compute && compute->cluster)
        return qn__fail(err, QN_USAGE, "requests are answered on one machine, without ranks");
    qn_status status = qn__batch_form_of(model, options ? options->cut : NULL, &form, err);
    if (status != QN_OK)
        return status;
    qn__batcher *b = qn__alloc(1, sizeof *b, err);
    if (!b)
        return QN_MEMORY;
    b->form = form;
    b->compute = compute ? *compute : (qn_compute){.size = sizeof b->compute};
    b->options = options ? *options : (qn__batcher_options){0};
    set_defaults(&b->options);
    b->limit = b->options.most < FIRST ? b->options.most : FIRST;
    b->last = &b->first;
    b->one_core = qn__cores() == 1;
    set_up_lock(b);
    status = start(b, err);
    if (status == QN_OK)
        *out = b;
    else
        destroy(b);
    return status;
}

void qn__batcher_free(qn__batcher *b) {
    if (!b)
        return;
    qn__batcher_drain(b);
    pthread_mutex_lock(&b->lock);
    b->ending = 1;
    pthread_cond_signal(&b->more);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    destroy(b);
}
