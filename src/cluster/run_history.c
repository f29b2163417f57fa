#include "cluster/run_history.h"

#include "base/memory.h"
#include <string.h>

void qn__run_history_release(qn__run_history *h) {
    qn__free(h->bytes);
    qn__free(h->part);
    *h = (qn__run_history){.state = QN__RUN_HISTORY_NONE};
}

static int make_space(qn__run_history *h, uint64_t more) {
    uint64_t capacity = h->capacity ? h->capacity : 1 << 16;
    if (more > QN__RUN_HISTORY_MOST || h->size + more > QN__RUN_HISTORY_MOST)
        return 0;
    while (capacity < h->size + more)
        capacity *= 2;
    if (capacity == h->capacity)
        return 1;
    uint8_t *bytes = qn__alloc(1, capacity, NULL);
    if (!bytes)
        return 0;
    if (h->size > 0)
        memcpy(bytes, h->bytes, h->size);
    qn__free(h->bytes);
    h->bytes = bytes;
    h->capacity = capacity;
    return 1;
}

void qn__run_history_add(qn__run_history *h, const int64_t *total) {
    const uint64_t words = h->now.words;
    if (words > QN__RUN_HISTORY_MOST / sizeof *total ||
        !make_space(h, (1 + words) * sizeof *total)) {
        qn__run_history_release(h);
        return;
    }
    memcpy(h->bytes + h->size, &words, sizeof words);
    memcpy(h->bytes + h->size + sizeof words, total, words * sizeof *total);
    h->size += (1 + words) * sizeof *total;
}

static qn_status refuse(qn_error *err) {
    qn__fail(err, QN_MISMATCH, "this rank prepares another run than the others did");
    return qn__remedy(err, QN_MISMATCH,
                      "start it with the same command, data and version of Quern");
}

qn_status qn__run_history_check_end(const qn__run_history *h, qn_error *err) {
    return h->state != QN__RUN_HISTORY_TAKEN || h->at == h->size ? QN_OK : refuse(err);
}

qn_status qn__run_history_begin(qn__run_history *h, const qn__reduction *reduction, qn_error *err) {
    uint64_t words = 0;
    if (h->size - h->at >= sizeof words)
        memcpy(&words, h->bytes + h->at, sizeof words);
    if (words != reduction->words || h->size - h->at < (1 + words) * sizeof words)
        return refuse(err);
    if (words > h->space || !h->part) {
        qn__free(h->part);
        h->part = qn__alloc(words + 1, sizeof *h->part, err);
        h->space = h->part ? words : 0;
        if (!h->part)
            return QN_MEMORY;
    }
    h->now = *reduction;
    return QN_OK;
}

const int64_t *qn__run_history_total(qn__run_history *h) {
    const int64_t *total = (const int64_t *)(const void *)(h->bytes + h->at + sizeof(uint64_t));
    h->at += (1 + h->now.words) * sizeof *total;
    return total;
}
