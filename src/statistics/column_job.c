#include "base/memory.h"
#include "statistics/column_round.h"
#include "data/table/table_columns.h"

/* Columns of a line of a cache, which are taken out of the rows together; and those of a thread at
 * least. Words of a round, if a column has no more. */
enum { TILE = 16, LEAST_TILE = 4, ROUND_WORDS = 1 << 22 };

/* ------------------------------------------------------------------ the grains */

static void close_thread(void *scratch) {
    qn__column_thread *t = scratch;
    qn__column_scratch_release(&t->scratch);
    qn__column_taker_free(t->taker);
    qn__free(t);
}

static void *open_thread(void *context, qn_error *err) {
    (void)context;
    return qn__alloc(1, sizeof(qn__column_thread), err);
}

static void describe(const qn__column_job *j, uint32_t column, float *values,
                     qn__column_space *buffer) {
    if (qn__column_categories(j->data, column) > 0) {
        qn__column_count_categories(j, column, values);
        return;
    }
    j->bins[column] = j->wanted_bins;
    qn__column_describe(j->task, values, j->data->items, buffer,
                        &j->numbers[(size_t)column * j->task->groups], qn__column_edges(j, column),
                        &j->bins[column]);
    qn__column_note_sums(j, column, &buffer->all);
}

/* qn__host_job: a grain is a column. */
static qn_status describe_columns(void *context, void *scratch, uint32_t first, uint32_t count,
                                  int64_t *words, qn_error *err) {
    const qn__columns_round *r = context;
    const qn__column_job *j = r->job;
    qn__column_scratch *s = &((qn__column_thread *)scratch)->scratch;
    if (!s->values && qn__column_scratch_make(r, r->tile, s, err) != QN_OK)
        return QN_MEMORY;
    for (uint32_t done = 0; done < count; done += r->tile) {
        const uint32_t column = r->from + first + done;
        const uint32_t tile = count - done < r->tile ? count - done : r->tile;
        qn__columns_gather(j->data, j->order, 0, j->data->items, column, tile, s->values,
                           r->stride);
        for (uint32_t k = 0; k < tile; ++k) {
            describe(j, column + k, s->values + k * r->stride, &s->buffer);
            qn__column_put(r, column + k, words);
        }
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ all columns */

static uint32_t tile_of(const qn__column_job *j) {
    const uint32_t threads = (uint32_t)j->threads;
    const uint32_t most = threads > 1 ? j->columns / (2 * threads) : j->columns;
    const uint32_t tile = TILE / threads > LEAST_TILE ? TILE / threads : LEAST_TILE;
    return most == 0 ? 1 : tile < most ? tile : most;
}

static qn_status tell_wrong(qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "a device computes the sums or counts of a column wrongly");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "leave the GPUs out of `compute.devices`; a newer driver may fix it");
}

/* Computes the columns up to `to` and copies their words to the results. */
static qn_status run_round(qn__team *team, qn__columns_round *r, uint32_t to, qn_error *err) {
    qn__column_device *device = r->job->device;
    const qn__host_job host = {.context = r,
                               .open = open_thread,
                               .close = close_thread,
                               .grains = describe_columns,
                               .words = r->place[to] - r->place[r->from],
                               .apart = 1,
                               .kernel = device ? &device->job : NULL};
    const int64_t *words;
    if (device) {
        qn__column_device_begin(device, r->from);
        qn__column_taker_bind(device);
    }
    qn_status status = qn__team_run(team, &host, to - r->from, &words, err);
    if (status == QN_OK && atomic_load(&r->short_of))
        status = qn__fail_memory(err, r->stride, sizeof(float));
    if (status == QN_OK && atomic_load(&r->wrong))
        status = tell_wrong(err);
    for (uint32_t k = r->from; status == QN_OK && k < to; ++k)
        qn__column_fetch(r, k, words);
    return status;
}

qn_status qn__columns_describe(qn__team *team, const qn__column_job *job, qn_error *err) {
    uint64_t *place = qn__alloc((uint64_t)job->columns + 1, sizeof *place, err);
    qn_status status = QN_OK;
    if (!place)
        return QN_MEMORY;
    for (uint32_t k = 0; k < job->columns; ++k)
        place[k + 1] = place[k] + qn__column_words(job, k);
    /* Columns do not begin at the same place of a page, where they would share lines of a cache. */
    qn__columns_round r = {.job = job,
                           .place = place,
                           .tile = tile_of(job),
                           .stride = (size_t)(job->data->items + 15) / 16 * 16 + 16};
    while (status == QN_OK && r.from < job->columns) {
        uint32_t to = r.from + 1;
        while (to < job->columns && place[to + 1] - place[r.from] <= ROUND_WORDS)
            ++to;
        status = run_round(team, &r, to, err);
        r.from = to;
    }
    qn__free(place);
    return status;
}
