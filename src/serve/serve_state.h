/* A server, for the files of this folder: each of them adds routes to it. */
#ifndef QN_SERVE_SERVE_STATE_H
#define QN_SERVE_SERVE_STATE_H

#include "serve/http/server.h"
#include "serve/inference/predictor.h"
#include "serve/listen.h"
#include "serve/metrics.h"
#include "serve/models/models.h"
#include "serve/text/text_routes.h"
#include "serve/security.h"
#include <quern/serve.h>
#include <stdatomic.h>

struct qn_server {
    qn_server_options options;
    qn__http *http;
    qn__models *models;
    qn__metrics *metrics;
    qn__security security;
    qn__predictor_options predictor;
    qn__part_maker predictor_maker;
    qn__text_routes texts;
    int listener;       /* until qn_server_start */
    int started;        /* and it has not run */
    int loopback;       /* only this machine reaches the address */
    int wake[2];        /* a pipe on which qn_server_run sleeps */
    atomic_int hurries; /* qn__remote_hurry */
    atomic_int ready, stops, looks;
    char address[QN__ADDRESS_CAPACITY];
};

#endif
