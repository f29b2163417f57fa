/* A server that answers requests over HTTP with the predictions of models (docs/serve.md).
 *
 *     qn_server_options options;
 *     qn_server_options_init(&options);
 *     options.listen = "127.0.0.1:8080";
 *     if (qn_server_make(&options, &server, &err) == QN_OK &&
 *         qn_server_load(server, "digits=digits.safetensors", &err) == QN_OK)
 *         qn_server_run(server, &err);
 *     qn_server_free(server);
 *
 * An answer is what qn_predict gives for the items of its request alone. It does not depend on
 * other requests, on when they come, or on the devices. */
#ifndef QUERN_SERVE_H
#define QUERN_SERVE_H

#include <quern/device.h>
#include <quern/model.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a server works; begin with qn_server_options_init. The texts and `compute` must stay valid
 * until qn_server_free. */
typedef struct qn_server_options {
    size_t size; /* sizeof(qn_server_options) */
    /* The address: "127.0.0.1:8080", "[::1]:8080", or ":8080" for every address of the machine.
     * With port 0 the system chooses one (qn_server_address). */
    const char *listen;
    const qn_compute *compute; /* NULL: the defaults */
    qn_note_fn note;           /* messages for a person, from any thread; NULL: none */
    void *user;                /* for `note` */
    uint64_t most_body;        /* bytes of the body of a request; more is answered with 413 */
    uint32_t connections;      /* at once, from 1 */
    uint32_t http_threads;     /* that read requests and write answers; 0: as many as there are
                                  cores, at most 8 */
    float read_seconds;        /* a request that has not arrived after so many is answered with 408;
                                  from 0.1 */
    float stop_seconds;        /* a server that stops waits so long for requests in progress */
    float latency_seconds;     /* an answer should not wait longer for its batch and the one before;
                                  above 0, at most 60 */
    float reload_seconds;      /* files of models are looked at so often; 0: only when
                                  qn_server_reload asks for it */
    uint64_t waiting; /* items that wait for a model at most; more is answered with 429, and
                         more in one request with 400; 0: 65,536 */
    /* Models of next tokens. */
    const char *chat; /* whose marks conversations get: "chatml" or "llama3"; NULL: the one that the
                         tokenizer has marks for */
    uint32_t text_batch;     /* answers that grow at once, of each model; 0: 16, at most 4096 */
    uint32_t text_waiting;   /* answers that wait, of each model; more is answered with 429; 0: 256,
                                at most 2^20 */
    uint32_t text_positions; /* tokens of a text whose keys and values are kept; 0: as many as the
                                context of the model */
    uint32_t text_length;    /* tokens of a prompt and its answer; 0: 65,536, or the context where
                                it is longer */
    /* TLS: files in PEM. A token: clients send the header "Authorization: Bearer TOKEN"; at least
     * 16 characters. /healthz, /readyz and their like need none. Both are required where other
     * machines reach the address, unless `insecure` is 1. The token is copied. */
    const char *tls_certificate, *tls_key, *token;
    int insecure;
    /* A socket that listens, such as one of systemd, in place of `listen`; it belongs to the
     * server. 0: there is none. */
    int listener;
    qn_note_fn log; /* a line of JSON for each request, from any thread; NULL: none */
    void *log_user; /* for `log` */
    /* The layer of embeddings: "7", "-2" or "body", and perhaps a pool after it, "body:mean". NULL:
     * the pool of a model before its head, or else "body:mean". */
    const char *embeddings;
    float answer_seconds; /* a request whose answer is not ready after so many is answered with 503,
                             and a stream ends with an error; 0: it may take as long as it does */
} qn_server_options;

/* Sets the defaults: 127.0.0.1:8080, 64 MiB, 1024 connections, 30 seconds to
 * read and to stop, 20 ms, a look at files each second. */
QN_API void qn_server_options_init(qn_server_options *options);

typedef struct qn_server qn_server;

/* The HTTP library that servers use, such as "libmicrohttpd 0.9.75, libmicrohttpd.so.12"; "" where
 * it is not installed. The text is static. */
QN_API const char *qn_server_library(void);

/* Makes a server that listens, but does not answer yet. On success *out is owned by the caller, for
 * qn_server_free; after a failure it is NULL. Fails with QN_UNSUPPORTED (no libmicrohttpd),
 * QN_USAGE (an option), QN_IO (the address cannot be used) or QN_MEMORY. */
QN_API qn_status qn_server_make(const qn_server_options *options, qn_server **out, qn_error *err);

/* Reads a model file and serves it: "PATH", "NAME=PATH" or "NAME:VERSION=PATH". Without a name it
 * is that of the file without its ending; without a version it is "1". PATH may be a folder, whose
 * models come and go with its files: FOLDER/NAME.safetensors, or FOLDER/NAME/VERSION with a model
 * file in it. Before qn_server_run. Fails as qn_model_load does, and with QN_USAGE (an invalid
 * name, or one that is taken). */
QN_API qn_status qn_server_load(qn_server *server, const char *what, qn_error *err);
/* The same for a model in memory, which must outlive the server. `version` may be NULL: "1". */
QN_API qn_status qn_server_add(qn_server *server, const char *name, const char *version,
                               const qn_model *model, qn_error *err);

/* The address with the port that the system chose, such as "127.0.0.1:41234"; "" for NULL. Owned by
 * the server. */
QN_API const char *qn_server_address(const qn_server *server);

/* Begins to answer requests, on threads of the server. Once for a server; qn_server_run then keeps
 * it going. Fails with QN_USAGE (models are missing), QN_IO (the certificate or the key) or
 * QN_MEMORY. */
QN_API qn_status qn_server_start(qn_server *server, qn_error *err);

/* Answers requests until qn_server_stop; once for a server. It starts one that was not started.
 * Then it takes no more connections, waits `stop_seconds` at most for requests in progress, and
 * returns. Fails as qn_server_start. */
QN_API qn_status qn_server_run(qn_server *server, qn_error *err);
/* Lets qn_server_run end; the second call lets it end at once. Any thread, and safe in a signal
 * handler. Accepts NULL. */
QN_API void qn_server_stop(qn_server *server);

/* Lets the server look at its files now: a model whose file changed is read, and takes the place of
 * the old one. Requests in progress are answered by the model that they began with. A file that
 * cannot be read is told to `note`, and the old model stays. Any thread, and safe in a signal
 * handler. Accepts NULL. */
QN_API void qn_server_reload(qn_server *server);

/* Frees the server. Not during qn_server_run. Accepts NULL. */
QN_API void qn_server_free(qn_server *server);

#ifdef __cplusplus
}
#endif
#endif
