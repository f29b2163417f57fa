#include "serve/health.h"

#include "serve/serve_state.h"

static const char plain[] = "text/plain; charset=utf-8";

static void say_alive(qn__request *request, void *user) {
    (void)user;
    qn__answer_text(request, 200, plain, "ok\n");
}

static void say_ready(qn__request *request, void *user) {
    const qn_server *server = user;
    const int ready = atomic_load(&server->ready);
    qn__answer_text(request, ready ? 200 : 503, plain, ready ? "ready\n" : "not ready\n");
}

static const qn__route routes[] = {
    {.method = "GET", .path = "/healthz", .handle = say_alive, .open = 1},
    {.method = "GET", .path = "/readyz", .handle = say_ready, .open = 1},
    {.method = NULL}};

void qn__health_add(qn_server *server) { qn__http_add(server->http, routes, server); }
