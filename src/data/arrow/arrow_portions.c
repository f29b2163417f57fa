#include "data/arrow/arrow_portions.h"
#include <errno.h>
#include <string.h>

static int told(qn__portions *r, qn_status status) {
    r->status = status;
    return status == QN_OK ? 0 : EINVAL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    qn__portions *r = stream->private_data;
    return told(r, r->table->schema(r, out));
}

static void want(struct ArrowArrayStream *stream, const uint8_t *wanted) {
    const qn__portions *r = stream->private_data;
    memcpy(r->wanted, wanted, (size_t)r->columns);
}

static int get_rows(struct ArrowArrayStream *stream, uint64_t *rows) {
    qn__portions *r = stream->private_data;
    return told(r, r->table->rows(r, rows));
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    qn__portions *r = stream->private_data;
    *out = (struct ArrowArray){0};
    return told(r, r->table->next(r, out));
}

static int more(struct ArrowArrayStream *stream) {
    qn__portions *r = stream->private_data;
    return r->table->more(r);
}

static void release(struct ArrowArrayStream *stream) {
    qn__portions *r = stream->private_data;
    r->table->release(r);
    stream->release = NULL;
}

void qn__portions_stream(qn__portions *reader, const char *name, qn__pool *pool,
                         qn__arrow_file *out) {
    *out = (qn__arrow_file){.stream = {.get_schema = get_schema,
                                       .get_next = get_next,
                                       .release = release,
                                       .private_data = reader},
                            .source = {.name = name,
                                       .status = &reader->status,
                                       .want = want,
                                       .rows = get_rows,
                                       .more = more,
                                       .pieces = reader->table->pieces,
                                       .pool = pool}};
}
