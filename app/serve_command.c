/* quern serve: answers requests over HTTP with models. */

#include "command.h"
#include "compute.h"
#include "interrupt.h"
#include "message.h"
#include "output.h"
#include "secret.h"
#include "shared_rows.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <quern/serve.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct serve_flags {
    const char *listen;
    uint64_t most_body;
    uint32_t connections, http_threads;
    float read_seconds, answer_seconds, stop_seconds, reload_seconds;
    uint64_t waiting;
    const char *latency, *chat, *embeddings;
    uint32_t text_batch, text_waiting, text_positions, text_length;
    const char *tls_certificate, *tls_key, *token_file, *access_log;
    int insecure;
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

    {ROW_TEXT("tls-cert", tls_certificate, "FILE",
              "TLS: the certificate and those that signed it, in PEM")},
    {ROW_TEXT("tls-key", tls_key, "FILE", "TLS: the key of the certificate, in PEM")},
    {ROW_TEXT("token-file", token_file, "FILE",
              "clients need the token in this file, as \"Authorization: Bearer TOKEN\"; only its "
              "owner may read it"),
     .fallback = "the variable QUERN_TOKEN"},
    {ROW_FLAG("insecure", insecure,
              "answer other machines without TLS and a token, where the network protects the "
              "server")},

    {.heading = "Limits",
     ROW_COUNT("most-body", most_body, 1, (uint64_t)1 << 40,
               "bytes of the body of a request; more is answered with 413"),
     .fallback = "67108864"},
    {ROW_COUNT32("connections", connections, 1, 1 << 20, "connections at once"),
     .fallback = "1024"},
    {ROW_FLOAT("read-seconds", read_seconds,
               "a request that has not arrived after so many seconds is answered with 408"),
     .fallback = "30"},
    {ROW_FLOAT("answer-seconds", answer_seconds,
               "a request whose answer is not ready after so many seconds is answered with 503, "
               "and a stream ends with an error; 0: whenever it is ready"),
     .fallback = "0"},
    {ROW_FLOAT("stop-seconds", stop_seconds,
               "a server that ends waits so many seconds for requests in progress"),
     .fallback = "30"},

    {ROW_TEXT("latency", latency, "TIME",
              "an answer should not wait longer for its batch and the one before, such as 20ms"),
     .fallback = "20ms"},
    {ROW_COUNT("waiting", waiting, 1, (uint64_t)1 << 32,
               "items that wait for a model; a request beyond is answered with 429, and one that "
               "alone has more items with 400"),
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
    {ROW_TEXT("embeddings", embeddings, "LAYER",
              "the layer whose outputs /v1/embeddings gives: its number, as \"quern model show\" "
              "lists it, -1 for the last one, or body; with :mean, :max, :first or :last after it "
              "for one number of each channel, such as body:mean"),
     .fallback = "the pool before the head, or body:mean"},
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

    {.heading = "Output",
     ROW_TEXT("access-log", access_log, "FILE",
              "a line of JSON for each request, without bodies; - is the standard output. SIGHUP "
              "opens the file again")},
    {ROW_FLAG("quiet", quiet, "print errors and changes of models only")},

    {.heading = "Devices (they do not change the answers)", .more = compute_options, AT(compute)},
    {ROW_COUNT32("http-threads", http_threads, 1, 1024,
                 "threads that read requests and write answers"),
     .fallback = "every core, at most 8"},
    {.name = NULL}};

typedef struct access_log {
    pthread_mutex_t lock; /* of all below; the sanitizer of threads does not know flockfile */
    FILE *file;
    const char *path; /* NULL: the standard output */
    int hangups, lost;
} access_log;

/* logrotate renames the file and sends SIGHUP: the lines then go to a new file at the path. Where
 * it cannot be opened, they go on to the old one. */
static void open_log_again(access_log *log) {
    const int hangups = interrupt_hangups();
    if (hangups == log->hangups || !log->path)
        return;
    log->hangups = hangups;
    const int file = open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || dup3(file, fileno(log->file), O_CLOEXEC) < 0)
        message_warning("cannot open the access log again: %s", strerror(errno));
    if (file >= 0)
        close(file);
}

/* One write for each line: lines of several threads do not mix. Of lines that are lost, as on a
 * full disk, stderr gets one line until writing goes on. */
static void write_line(void *user, const char *text) {
    access_log *log = user;
    pthread_mutex_lock(&log->lock);
    open_log_again(log);
    fputs(text, log->file);
    putc('\n', log->file);
    const int fails = fflush(log->file) != 0;
    const int why = errno;
    if (fails && !log->lost)
        message_warning("lines of the access log are lost: %s", strerror(why));
    log->lost = fails;
    pthread_mutex_unlock(&log->lock);
}

/* The socket of systemd, LISTEN_FDS; 0: there is none. */
static int socket_of_systemd(void) {
    enum { FIRST = 3 };
    const char *process = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint64_t number, sockets;
    if (!process || !count || !read_count(process, &number) || !read_count(count, &sockets) ||
        number != (uint64_t)getpid() || sockets < 1)
        return 0;
    fcntl(FIRST, F_SETFD, FD_CLOEXEC);
    return FIRST;
}

/* Each connection takes a file; the limit that a shell sets is often 1024. */
static void raise_file_limit(uint32_t connections) {
    enum { OTHERS = 256 };
    struct rlimit limit;
    const rlim_t wanted = (rlim_t)connections + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* A model that cannot be read is told with --quiet, too. */
static void note(void *user, const char *text) {
    (void)user;
    message_warning("%s", text);
}

static int serve(qn_server *server, int tls, int quiet) {
    qn_error err;
    if (qn_server_start(server, &err) != QN_OK)
        return message_error(&err);
    interrupt_watch_server(server, "the server ends after the requests in progress\n");
    if (!quiet)
        printf("listening on %s://%s\n", tls ? "https" : "http", qn_server_address(server));
    output_flush();
    const qn_status status = qn_server_run(server, &err);
    interrupt_watch_server(NULL, NULL);
    return status == QN_OK ? EXIT_DONE : message_error(&err);
}

/* The token of a file, or of the environment, which other programs do not get. */
static int read_token(const serve_flags *f, char token[SECRET_CAPACITY], const char **out) {
    const char *variable = getenv("QUERN_TOKEN");
    int code = -1;
    *out = NULL;
    if (f->token_file)
        code = secret_read(f->token_file, token);
    else if (!variable || !*variable)
        return -1;
    else if (strlen(variable) < SECRET_CAPACITY - 1)
        strcpy(token, variable);
    else
        return message_fail(QN_USAGE, "the token has more than 1,023 characters", "QUERN_TOKEN",
                            "make one with: head -c 32 /dev/urandom | base64");
    unsetenv("QUERN_TOKEN");
    *out = token;
    return code;
}

static int open_log(const serve_flags *f, access_log *log, qn_server_options *options) {
    if (!f->access_log)
        return -1;
    options->log = write_line;
    options->log_user = log;
    log->path = strcmp(f->access_log, "-") == 0 ? NULL : f->access_log;
    log->file = log->path ? fopen(log->path, "ae") : stdout;
    if (log->file)
        return -1;
    char what[128];
    snprintf(what, sizeof what, "cannot open the access log: %.80s", strerror(errno));
    return message_fail(QN_IO, what, f->access_log,
                        "name a file of this machine that can be written");
}

static int load_and_serve(const qn_server_options *options, const arguments *given, int quiet) {
    qn_server *server = NULL;
    qn_error err;
    int code = -1;
    if (qn_server_make(options, &server, &err) != QN_OK)
        return message_error(&err);
    for (int i = 0; i < given->operands && code < 0; i++)
        if (qn_server_load(server, given->operand[i], &err) != QN_OK)
            code = message_error(&err);
    if (code < 0)
        code = serve(server, options->tls_certificate != NULL, quiet);
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
                     .answer_seconds = options.answer_seconds,
                     .stop_seconds = options.stop_seconds,
                     .reload_seconds = options.reload_seconds};
    arguments given;
    access_log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char token[SECRET_CAPACITY] = "";
    double latency = 0;
    interrupt_serves();
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code < 0)
        code = compute_check(&f.compute);
    if (code < 0 && f.latency)
        code = read_time("latency", f.latency, &latency);
    if (code >= 0)
        return code;
    options.latency_seconds = f.latency ? (float)latency : options.latency_seconds;
    raise_file_limit(f.connections);
    const qn_compute compute = compute_of(&f.compute);
    options.listen = f.listen;
    options.most_body = f.most_body;
    options.connections = f.connections;
    options.http_threads = f.http_threads;
    options.read_seconds = f.read_seconds;
    options.answer_seconds = f.answer_seconds;
    options.stop_seconds = f.stop_seconds;
    options.reload_seconds = f.reload_seconds;
    options.waiting = f.waiting;
    options.chat = f.chat;
    options.embeddings = f.embeddings;
    options.text_batch = f.text_batch;
    options.text_waiting = f.text_waiting;
    options.text_positions = f.text_positions;
    options.text_length = f.text_length;
    options.tls_certificate = f.tls_certificate;
    options.tls_key = f.tls_key;
    options.insecure = f.insecure;
    options.listener = socket_of_systemd();
    options.compute = &compute;
    options.note = note;
    code = read_token(&f, token, &options.token);
    if (code < 0)
        code = open_log(&f, &log, &options);
    if (code < 0)
        code = load_and_serve(&options, &given, f.quiet);
    if (log.path && log.file)
        fclose(log.file);
    explicit_bzero(token, sizeof token);
    return code;
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
        "is the Open Inference Protocol. POST /v1/completions and /v1/chat/completions let models "
        "of next tokens write, and /v1/embeddings gives embeddings of texts.\n"
        "A browser shows a page at /, on which people ask the models.\n"
        "GET /healthz says whether the server lives, GET /readyz whether it takes requests; GET "
        "/metrics has counts for Prometheus.",
    .options = serve_options,
    .operand = "MODEL",
    .most_operands = MOST_FILES,
    .examples = "quern serve digits.safetensors\n"
                "quern serve digits=a.safetensors digits:2=b.safetensors --listen 127.0.0.1:0",
    .run = run};
