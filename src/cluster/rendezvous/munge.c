#include "cluster/rendezvous/munge.h"
#include "base/system/library.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Own declarations of the parts of libmunge.so.2 in use. */
enum { OPT_SOCKET = 8, OPT_UID_RESTRICTION = 9, SUCCESS = 0, REPLAYED = 17 };

typedef struct munge {
    void *(*create)(void);
    void (*destroy)(void *context);
    int (*set)(void *context, int option, ...);
    int (*encode)(char **credential, void *context, const void *bytes, int size);
    int (*decode)(const char *credential, void *context, void **bytes, int *size, uid_t *user,
                  gid_t *group);
    const char *(*text)(int error);
    qn__library library;
    void *context;
} munge;

static qn_status missing(const char *why, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED,
             "srun gives its ranks no shared secret, and MUNGE cannot be used: %s", why);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "give all ranks the same key, install libmunge, or start with mpirun");
}

static void end(munge *m) {
    if (m->context)
        m->destroy(m->context);
    qn__library_close(&m->library);
}

static qn__library_function find(munge *m, const char *name) {
    return qn__library_find(&m->library, name);
}

static int find_all(munge *m) {
    m->create = (void *(*)(void))find(m, "munge_ctx_create");
    m->destroy = (void (*)(void *))find(m, "munge_ctx_destroy");
    m->set = (int (*)(void *, int, ...))find(m, "munge_ctx_set");
    m->encode = (int (*)(char **, void *, const void *, int))find(m, "munge_encode");
    m->decode =
        (int (*)(const char *, void *, void **, int *, uid_t *, gid_t *))find(m, "munge_decode");
    m->text = (const char *(*)(int))find(m, "munge_strerror");
    return !m->library.lacks;
}

static qn_status begin(munge *m, qn_error *err) {
    memset(m, 0, sizeof *m);
    if (!qn__library_open(&m->library, "libmunge.so.2")) {
        missing("there is no libmunge.so.2", err);
        return QN_UNSUPPORTED;
    }
    if (find_all(m))
        m->context = m->create();
    const char *const socket = getenv("QUERN_MUNGE_SOCKET");
    if (m->context && socket && *socket)
        m->set(m->context, OPT_SOCKET, socket);
    if (m->context)
        return QN_OK;
    end(m);
    missing("libmunge.so.2 does not have all required functions", err);
    return QN_UNSUPPORTED;
}

qn_status qn__munge_seal(const unsigned char secret[32], char credential[QN__CREDENTIAL_BYTES],
                         qn_error *err) {
    munge m;
    char *text = NULL;
    qn_status status = begin(&m, err);
    if (status != QN_OK)
        return status;
    int code = m.set(m.context, OPT_UID_RESTRICTION, geteuid());
    if (code == SUCCESS)
        code = m.encode(&text, m.context, secret, 32);
    if (code != SUCCESS)
        status = missing(m.text(code), err);
    else if (strlen(text) >= QN__CREDENTIAL_BYTES)
        status = missing("its credentials are longer than any known", err);
    else /* pads with NULs, as the fixed size needs */
        strncpy(credential, text, QN__CREDENTIAL_BYTES);
    free(text);
    end(&m);
    return status;
}

qn_status qn__munge_open(const char credential[QN__CREDENTIAL_BYTES], unsigned char secret[32],
                         qn_error *err) {
    munge m;
    void *bytes = NULL;
    int size = 0;
    uid_t user = 0;
    gid_t group = 0;
    char text[QN__CREDENTIAL_BYTES];
    qn_status status = begin(&m, err);
    if (status != QN_OK)
        return status;
    memcpy(text, credential, sizeof text);
    text[sizeof text - 1] = 0;
    const int code = m.decode(text, m.context, &bytes, &size, &user, &group);
    /* Several ranks of a machine decode the same credential, so REPLAYED is not an error. */
    if ((code != SUCCESS && code != REPLAYED) || !bytes)
        status = qn__fail(
            err, QN_CLUSTER,
            "the process that listens in place of rank 0 has no credential of this user: %s",
            m.text(code));
    else if (size != 32 || user != geteuid())
        status = qn__fail(err, QN_CLUSTER,
                          "the process that listens in place of rank 0 belongs to another user");
    else
        memcpy(secret, bytes, 32);
    if (bytes)
        explicit_bzero(bytes, (size_t)size);
    free(bytes);
    end(&m);
    return status;
}
