/* A sink that only digests. */
#include "data/write/sink_kinds.h"
#include <string.h>

enum { PIECE = 1 << 16 };

typedef struct digesting {
    qn__sha256 *hash;
    qn__text text;
} digesting;

static qn_status flush(digesting *own, qn_error *err) {
    if (own->text.failed)
        return qn__fail_memory(err, own->text.size, 1);
    if (own->text.size > 0)
        qn__sha256_add(own->hash, own->text.data, own->text.size);
    own->text.size = 0;
    return QN_OK;
}

static qn_status add(qn__sink *s, const qn__sink_cell *cells, qn_error *err) {
    digesting *own = s->own;
    qn__sink_add_line(&own->text, &s->table, cells);
    return own->text.size < PIECE && !own->text.failed ? QN_OK : flush(own, err);
}

qn_status qn__sink_digest(const qn__sink_table *table, qn__sink_rows *rows, void *user,
                          qn__sha256 *hash, qn_error *err) {
    static const qn__sink_kind kind = {.add = add};
    digesting own = {.hash = hash};
    qn__sink sink = {.kind = &kind, .table = *table, .own = &own};
    qn__sink_add_header(&own.text, table);
    qn_status status = rows(user, &sink, err);
    if (status == QN_OK)
        status = flush(&own, err);
    qn__text_release(&own.text);
    return status;
}

void qn__sink_run(qn__sha256 *hash, char run[QN__SINK_RUN]) {
    uint8_t digest[32];
    char digits[65];
    qn__sha256_end(hash, digest);
    qn__hex(digest, digits);
    memcpy(run, digits, QN__SINK_RUN - 1);
    run[QN__SINK_RUN - 1] = '\0';
}
