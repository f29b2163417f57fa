#include "base/system/first_failure.h"

#include "base/memory.h"

qn_status qn__first_failure_begin(qn__first_failure *f, int threads, qn_error *err) {
    atomic_store(&f->piece, UINT64_MAX);
    f->threads = threads;
    f->of = qn__alloc((uint64_t)threads, sizeof *f->of, err);
    return f->of ? QN_OK : QN_MEMORY;
}

void qn__first_failure_note(qn__first_failure *f, int thread, uint64_t piece, qn_status status,
                            const qn_error *err) {
    f->of[thread] = (struct qn__failure){piece, status, *err};
    uint64_t first = atomic_load(&f->piece);
    while (piece < first && !atomic_compare_exchange_weak(&f->piece, &first, piece)) {
    }
}

int qn__first_failure_before(const qn__first_failure *f, uint64_t piece) {
    return atomic_load(&f->piece) < piece;
}

qn_status qn__first_failure_end(qn__first_failure *f, qn_error *err) {
    qn_status status = QN_OK;
    const uint64_t first = atomic_load(&f->piece);
    for (int t = 0; t < f->threads; t++) {
        const struct qn__failure *own = &f->of[t];
        if (own->status == QN_OK || own->piece != first)
            continue;
        status = own->status;
        if (err)
            *err = own->err;
    }
    qn__free(f->of);
    f->of = NULL;
    return status;
}
