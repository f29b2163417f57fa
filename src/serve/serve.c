/* A server: models, routes, and the loop that waits for its end. */
#include <quern/serve.h>

#include "base/files/remote.h"
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "predict/generate/text_service.h"
#include "serve/access_log.h"
#include "serve/health.h"
#include "serve/http/server.h"
#include "serve/inference/predict_route.h"
#include "serve/inference/v2.h"
#include "serve/listen.h"
#include "serve/page/try_page.h"
#include "serve/serve_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

enum { MOST_HTTP_THREADS = 8, IDLE_SECONDS = 60, TEND_MILLISECONDS = 250 };
static const uint64_t BODIES = 16; /* so many of the largest bodies at once */
static const uint64_t LEAST_BODIES = 64 << 20;
static const float LEAST_READ_SECONDS = 0.1F, MOST_LATENCY = 60;

/* The size of the caller's struct is not known here: only members of the first version are set. */
void qn_server_options_init(qn_server_options *options) {
    QN__OWN_FLOATS;
    if (options)
        *options = (qn_server_options){.size = sizeof *options,
                                       .listen = "127.0.0.1:8080",
                                       .most_body = 64 << 20,
                                       .connections = 1024,
                                       .read_seconds = 30,
                                       .stop_seconds = 30,
                                       .latency_seconds = 0.02F,
                                       .reload_seconds = 1};
}

const char *qn_server_library(void) {
    QN__OWN_FLOATS; /* it is opened */
    return qn__http_library();
}

static qn_status check(const qn_server_options *o, qn_error *err) {
    qn__layer_name unused;
    if (!o->listen)
        return qn__fail_null(err, "qn_server_make", "options->listen");
    if (o->chat && !qn__texts_know_chat(o->chat)) {
        qn__fail(err, QN_USAGE, "unknown kind of chat \"%.40s\"", o->chat);
        return qn__remedy(err, QN_USAGE, "`server.chat` is \"chatml\" or \"llama3\"");
    }
    if (o->connections < 1)
        return qn__fail(err, QN_USAGE, "`server.connections` is 0");
    if (o->most_body < 1 || o->most_body > UINT64_MAX / BODIES)
        return qn__fail(err, QN_USAGE, "`server.most_body` is out of range");
    if (!(o->read_seconds >= LEAST_READ_SECONDS) || !(o->stop_seconds >= 0)) {
        qn__fail(err, QN_USAGE, "`server.read_seconds` or `server.stop_seconds` is out of range");
        return qn__remedy(err, QN_USAGE, "give the first from 0.1, and the second from 0");
    }
    if (!(o->answer_seconds >= 0)) {
        qn__fail(err, QN_USAGE, "`server.answer_seconds` is out of range");
        return qn__remedy(err, QN_USAGE, "give seconds above 0, or 0 for no limit");
    }
    if (!(o->latency_seconds > 0) || !(o->latency_seconds <= MOST_LATENCY) ||
        !(o->reload_seconds >= 0)) {
        qn__fail(err, QN_USAGE,
                 "`server.latency_seconds` or `server.reload_seconds` is out of range");
        return qn__remedy(err, QN_USAGE,
                          "give the first above 0 and up to 60 seconds, and the second from 0");
    }
    if (!o->embeddings || qn__layer_name_read(o->embeddings, &unused, err) == QN_OK)
        return QN_OK;
    qn__at(err, "`server.embeddings`");
    return QN_USAGE;
}

static void on_done(void *user, const qn__http_done *done) {
    qn_server *s = user;
    qn__metrics_count(s->metrics, done);
    if (s->options.log)
        qn__access_log(s->options.log, s->options.log_user, done);
}

/* Many small bodies fit, whatever one of them may have. */
static uint64_t most_bodies(const qn_server_options *o) {
    const uint64_t most = BODIES * o->most_body;
    return most > LEAST_BODIES ? most : LEAST_BODIES;
}

/* Each of them has a share of the connections. */
static int http_threads(const qn_server_options *o) {
    const int cores = qn__cores(), most = cores < MOST_HTTP_THREADS ? cores : MOST_HTTP_THREADS;
    const uint32_t threads = o->http_threads ? o->http_threads : (uint32_t)most;
    return (int)(threads < o->connections ? threads : o->connections);
}

static qn_status make_http(qn_server *s, qn_error *err) {
    const qn_server_options *o = &s->options;
    const qn__http_options http = {.threads = http_threads(o),
                                   .connections = o->connections,
                                   .most_body = o->most_body,
                                   .most_bodies = most_bodies(o),
                                   .idle_seconds = IDLE_SECONDS,
                                   .read_seconds = (double)o->read_seconds,
                                   .answer_seconds = (double)o->answer_seconds,
                                   .shared_listener = o->listener > 0,
                                   .certificate = s->security.certificate,
                                   .key = s->security.key,
                                   .token = s->security.token,
                                   .done = on_done,
                                   .user = s};
    return qn__http_make(&http, &s->http, err);
}

static qn_status open_pipe(qn_server *s, qn_error *err) {
    if (pipe(s->wake) != 0)
        return qn__fail_errno(err, "make", "a pipe");
    for (int i = 0; i < 2; i++) {
        fcntl(s->wake[i], F_SETFD, FD_CLOEXEC);
        fcntl(s->wake[i], F_SETFL, O_NONBLOCK);
    }
    return QN_OK;
}

static qn_status make_models(qn_server *s, qn_error *err) {
    static const double nanoseconds = 1e9;
    const qn_server_options *o = &s->options;
    const qn_status status = qn__models_make(&s->models, err);
    if (status != QN_OK)
        return status;
    s->predictor = (qn__predictor_options){
        .compute = o->compute,
        .batcher = {.latency = (uint64_t)((double)o->latency_seconds * nanoseconds),
                    .waiting = o->waiting}};
    s->predictor_maker = qn__predictor_maker(&s->predictor);
    qn__models_maker(s->models, &s->predictor_maker);
    return QN_OK;
}

static qn_status listen_somewhere(qn_server *s, qn_error *err) {
    const qn_server_options *o = &s->options;
    if (o->listener <= 0)
        return qn__listen(o->listen, &s->listener, s->address, &s->loopback, err);
    s->listener = o->listener;
    return qn__listen_given(o->listener, s->address, &s->loopback, err);
}

/* Each part of the server has a table of routes. */
static void add_routes(qn_server *s) {
    qn__health_add(s);
    qn__metrics_add(s->metrics, s->http);
    qn__predict_route_add(s->http, s->models);
    qn__v2_add(s->http, s->models);
    s->texts.compute = s->options.compute;
    s->texts.embeddings = s->options.embeddings;
    s->texts.options = (qn__texts_options){.sequences = s->options.text_batch,
                                           .waiting = s->options.text_waiting,
                                           .positions = s->options.text_positions,
                                           .length = s->options.text_length,
                                           .chat = s->options.chat};
    qn__text_routes_add(&s->texts, s->http, s->models);
    qn__try_page_add(s->http, s->models);
}

qn_status qn_server_make(const qn_server_options *options, qn_server **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(options, err);
    qn_server *s = qn__alloc(1, sizeof *s, err);
    if (!s)
        return QN_MEMORY;
    s->wake[0] = s->wake[1] = s->listener = -1;
    qn_server_options_init(&s->options);
    qn_status status =
        qn__sized_take(QN__SIZED("options", qn_server_options), options, &s->options, err);
    if (status == QN_OK)
        status = check(&s->options, err);
    if (status == QN_OK)
        status = open_pipe(s, err);
    if (status == QN_OK)
        status = make_models(s, err);
    if (status == QN_OK)
        status = qn__metrics_make(s->models, &s->metrics, err);
    if (status == QN_OK)
        status = qn__security_read(&s->options, &s->security, err);
    if (status == QN_OK)
        status = make_http(s, err);
    if (status == QN_OK)
        status = listen_somewhere(s, err);
    if (status == QN_OK)
        status = qn__security_check(&s->options, s->address, s->loopback, err);
    if (status == QN_OK) {
        add_routes(s);
        *out = s;
    } else
        qn_server_free(s);
    return status;
}

qn_status qn_server_load(qn_server *server, const char *what, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(server, err);
    QN__NEED(what, err);
    return qn__models_load(server->models, what, err);
}

qn_status qn_server_add(qn_server *server, const char *name, const char *version,
                        const qn_model *model, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(server, err);
    QN__NEED(name, err);
    QN__NEED(model, err);
    return qn__models_add(server->models, name, version, model, err);
}

const char *qn_server_address(const qn_server *server) { return server ? server->address : ""; }

/* Returns when something was written to the pipe, or after a while. */
static void wait_for_word(const qn_server *s) {
    struct pollfd on = {.fd = s->wake[0], .events = POLLIN};
    char words[64];
    if (poll(&on, 1, TEND_MILLISECONDS) > 0) {
        const ssize_t taken = read(s->wake[0], words, sizeof words);
        (void)taken; /* the counters say what is asked for */
    }
}

/* Requests in progress are answered, unless a second call does not want to wait. */
static void finish(qn_server *s) {
    static const double look = 0.05;
    const double until = qn__now() + (double)s->options.stop_seconds;
    atomic_store(&s->ready, 0);
    qn__http_close(s->http);
    while (qn__http_active(s->http) > 0 && qn__now() < until && atomic_load(&s->stops) < 2) {
        qn__http_wait(s->http, look);
        qn__http_tend(s->http);
    }
    qn__http_stop(s->http);
}

qn_status qn_server_start(qn_server *server, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(server, err);
    if (server->listener < 0)
        return qn__fail(err, QN_USAGE, "this server has started already");
    if (qn__models_list(server->models, NULL, NULL) == 0) {
        qn__fail(err, QN_USAGE, "the server has no model");
        return qn__remedy(err, QN_USAGE, "give a model, or a folder that holds one");
    }
    const int listener = server->listener;
    server->listener = -1;
    const qn__keeper_options keeper = {.seconds = (double)server->options.reload_seconds,
                                       .note = server->options.note,
                                       .user = server->options.user};
    qn_status status = qn__models_keep(server->models, &keeper, err);
    atomic_store(&server->ready, 1); /* for the first answer */
    if (status == QN_OK)
        status = qn__http_start(server->http, listener, err);
    else
        close(listener);
    server->started = status == QN_OK;
    return status;
}

qn_status qn_server_run(qn_server *server, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(server, err);
    const qn_status status = server->started ? QN_OK : qn_server_start(server, err);
    if (status != QN_OK)
        return status;
    server->started = 0; /* it runs once */
    while (atomic_load(&server->stops) == 0) {
        wait_for_word(server);
        qn__http_tend(server->http);
        if (atomic_exchange(&server->looks, 0))
            qn__models_look(server->models);
    }
    finish(server);
    return QN_OK;
}

/* Wakes qn_server_run, which reads the counter. */
static void tell(qn_server *server, atomic_int *counter) {
    const int before = errno;
    atomic_fetch_add(counter, 1);
    const ssize_t written = write(server->wake[1], "w", 1);
    (void)written; /* a full pipe wakes, too */
    errno = before;
}

void qn_server_stop(qn_server *server) {
    if (!server)
        return;
    qn__remote_hurry(&server->hurries);
    tell(server, &server->stops);
}

void qn_server_reload(qn_server *server) {
    if (server)
        tell(server, &server->looks);
}

void qn_server_free(qn_server *server) {
    QN__OWN_FLOATS;
    if (!server)
        return;
    qn__http_stop(server->http);
    qn__models_free(server->models); /* the last answers are dropped here */
    qn__http_free(server->http);
    qn__metrics_free(server->metrics);
    qn__remote_hurry_end(&server->hurries);
    qn__security_free(&server->security);
    for (int i = 0; i < 2; i++)
        if (server->wake[i] >= 0)
            close(server->wake[i]);
    if (server->listener >= 0)
        close(server->listener);
    qn__free(server);
}
