/* quern serve: answers requests over HTTP with models. */

#include "command.h"
#include "compute.h"
#include "interrupt.h"
#include "message.h"
#include "output.h"
#include "shared_rows.h"
#include <quern/serve.h>
#include <stdio.h>
#include <string.h>

typedef struct serve_flags {
    const char *listen;
    uint64_t most_body;
    uint32_t connections, http_threads;
    float read_seconds, stop_seconds, reload_seconds;
    uint64_t waiting;
    const char *latency, *chat;
    uint32_t text_batch, text_waiting, text_positions, text_length;
    int quiet;
    compute_flags compute;
} serve_flags;

#define AT(member) .place = offsetof(serve_flags, member)

static const option serve_options[] = {
    {.heading = "Address",
     ROW_TEXT("listen", listen, "HOST:PORT",
              "the address on which to answer; port 0: the system chooses one, and the first line "
              "of the output says which"),
     .fallback = "127.0.0.1:8080"},

    {.heading = "Limits",
     ROW_COUNT("most-body", most_body, 1, (uint64_t)1 << 40,
               "bytes of the body of a request; more is answered with 413"),
     .fallback = "67108864"},
    {ROW_COUNT32("connections", connections, 1, 1 << 20, "connections at once"),
     .fallback = "1024"},
    {ROW_FLOAT("read-seconds", read_seconds,
               "a request that has not arrived after so many seconds is answered with 408"),
     .fallback = "30"},
    {ROW_FLOAT("stop-seconds", stop_seconds,
               "a server that ends waits so many seconds for requests in progress"),
     .fallback = "30"},

    {ROW_TEXT("latency", latency, "TIME",
              "an answer should not wait longer for its batch and the one before, such as 20ms"),
     .fallback = "20ms"},
    {ROW_COUNT("waiting", waiting, 1, (uint64_t)1 << 32,
               "items that wait for a model; more is answered with 429"),
     .fallback = "65536"},

    {.heading = "Models",
     ROW_FLOAT("reload-seconds", reload_seconds,
               "files of models are looked at so often, and read when they changed; 0: only at "
               "SIGHUP"),
     .fallback = "1"},

    {.heading = "Language models",
     ROW_TEXT(
         "chat", chat, "KIND",
         "whose marks conversations get: chatml or llama3; default: the one that the tokenizer "
         "has marks for")},
    {ROW_COUNT32("text-batch", text_batch, 1, 4096, "answers that grow at once, of each model"),
     .fallback = "16"},
    {ROW_COUNT32("text-waiting", text_waiting, 1, 1 << 20,
                 "answers that wait for a model; more is answered with 429"),
     .fallback = "256"},
    {ROW_COUNT32("text-positions", text_positions, 1, 1 << 24,
                 "tokens of a text whose keys and values are kept; a request that needs more is "
                 "refused"),
     .fallback = "the context of the model"},
    {ROW_COUNT32("text-length", text_length, 1, 1 << 25,
                 "tokens of a prompt and its answer together; a request for more is refused"),
     .fallback = "65536, or the context"},

    {.heading = "Output", ROW_QUIET(quiet)},

    {.heading = "Devices (they do not change the answers)", .more = compute_options, AT(compute)},
    {ROW_COUNT32("http-threads", http_threads, 1, 1024,
                 "threads that read requests and write answers"),
     .fallback = "every core, at most 8"},
    {.name = NULL}};

static void note(void *user, const char *text) {
    (void)user;
    message_note("%s", text);
}

/* "20ms", "0.5s". */
static int read_latency(const char *text, float *seconds) {
    char number[32];
    const size_t size = strspn(text, "0123456789.");
    const int thousandth = strcmp(text + size, "ms") == 0;
    if (size < sizeof number && (thousandth || strcmp(text + size, "s") == 0)) {
        memcpy(number, text, size);
        number[size] = '\0';
        if (read_float(number, seconds)) {
            *seconds /= thousandth ? 1000 : 1;
            return -1;
        }
    }
    return message_usage("give a number with ms or s, such as --latency 20ms",
                         "--latency is \"%.60s\", which is not a time", text);
}

static int serve(qn_server *server) {
    qn_error err;
    printf("listening on http://%s\n", qn_server_address(server));
    output_flush();
    interrupt_watch_server(server, "the server ends after the requests in progress\n");
    const qn_status status = qn_server_run(server, &err);
    interrupt_watch_server(NULL, NULL);
    return status == QN_OK ? EXIT_DONE : message_error(&err);
}

static int load_and_serve(const qn_server_options *options, const arguments *given) {
    qn_server *server = NULL;
    qn_error err;
    int code = -1;
    if (qn_server_make(options, &server, &err) != QN_OK)
        return message_error(&err);
    for (int i = 0; i < given->operands && code < 0; i++)
        if (qn_server_load(server, given->operand[i], &err) != QN_OK)
            code = message_error(&err);
    if (code < 0)
        code = serve(server);
    qn_server_free(server);
    return code;
}

static int run(const command *self, int argc, char **argv) {
    qn_server_options options;
    qn_server_options_init(&options);
    serve_flags f = {.listen = options.listen,
                     .most_body = options.most_body,
                     .connections = options.connections,
                     .read_seconds = options.read_seconds,
                     .stop_seconds = options.stop_seconds,
                     .reload_seconds = options.reload_seconds};
    arguments given;
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code < 0)
        code = compute_check(&f.compute);
    if (code < 0 && f.latency)
        code = read_latency(f.latency, &options.latency_seconds);
    if (code >= 0)
        return code;
    const qn_compute compute = compute_of(&f.compute);
    options.listen = f.listen;
    options.most_body = f.most_body;
    options.connections = f.connections;
    options.http_threads = f.http_threads;
    options.read_seconds = f.read_seconds;
    options.stop_seconds = f.stop_seconds;
    options.reload_seconds = f.reload_seconds;
    options.waiting = f.waiting;
    options.chat = f.chat;
    options.text_batch = f.text_batch;
    options.text_waiting = f.text_waiting;
    options.text_positions = f.text_positions;
    options.text_length = f.text_length;
    options.compute = &compute;
    options.note = note;
    return load_and_serve(&options, &given);
}

const command serve_command = {
    .name = "serve",
    .summary = "answer requests over HTTP with models",
    .usage = "quern serve MODEL... [--listen HOST:PORT] [options]",
    .about =
        "Answers requests over HTTP until it is interrupted. MODEL is a model file, or "
        "NAME=FILE, or NAME:VERSION=FILE, or a folder of models. Without a name it is that of the "
        "file.\n"
        "An answer is that of \"quern predict\" for the items of its request alone.\n"
        "POST /v1/predict/NAME takes rows as JSON or CSV, or an image. POST /v2/models/NAME/infer "
        "is the Open Inference Protocol.\n"
        "GET /healthz says whether the server lives, GET /readyz whether it takes requests.",
    .options = serve_options,
    .operand = "MODEL",
    .most_operands = MOST_FILES,
    .examples = "quern serve digits.safetensors\n"
                "quern serve digits=a.safetensors digits:2=b.safetensors --listen 127.0.0.1:0",
    .run = run};
