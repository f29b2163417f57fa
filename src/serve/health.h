/* GET /healthz: the server answers. GET /readyz: it takes requests. Neither needs a token. */
#ifndef QN_SERVE_HEALTH_H
#define QN_SERVE_HEALTH_H

#include <quern/serve.h>

void qn__health_add(qn_server *server);

#endif
