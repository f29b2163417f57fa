/* Steps of training.
 *
 * A step of a single worker with L layers has 4L + 3 launches: FETCH, L FORWARD, LOSS, TALLY, L
 * GRADIENT, L BIAS, L - 1 ERRORS, UPDATE (with weight decay UPDATE takes 2L). It copies 96 bytes to
 * the device and 48 back, for every size of batch and model. On CPU devices LEARN replaces
 * GRADIENT, BIAS and UPDATE. Integer products add 6L launches and two clears: QUANTIZE_ITEMS before
 * each FORWARD and each GRADIENT, two QUANTIZE_GRAINS before the latter, ABSMAX and
 * QUANTIZE_WEIGHTS for each layer after UPDATE. A driver that records repeats all launches in one
 * call. If a feed is not on the device, the values of its items are copied too, and 4 bytes for
 * each label and for each weight. A layer that keeps slopes adds a GATE. A shared step copies the
 * sums, 8 bytes a parameter, once to the host and once to the device. */
#include "device/gpu/gpu_worker.h"
#include "device/numeric.h"
#include "num/sums.h"

/* Counts are differences of two posts, which saves a clear in every step; failures stay set until
 * load. */
qn_status_words qn__gpu_since(qn__worker *w, const qn_status_words *posted) {
    const qn_status_words *seen = &w->reports.seen;
    qn_status_words since = *posted;
    since.loss_high = (int64_t)((uint64_t)posted->loss_high - (uint64_t)seen->loss_high);
    since.loss_low -= seen->loss_low;
    since.correct -= seen->correct;
    since.items -= seen->items;
    w->reports.seen = *posted;
    if (posted->bad_item || posted->bad_loss || posted->bad_layer || posted->bad_input)
        w->reports.stale = 1;
    return since;
}

qn_status qn__gpu_status(qn__worker *w, qn_status_words *words, qn_error *err) {
    const void *posted;
    const uint32_t slot = w->launches.slot_of_next;
    w->launches.slot_of_next = (slot + 1) % QN__GPU_SLOTS;
    qn_status status = w->driver->post(w->gpu, &w->reports.status, sizeof *words, slot, err);
    if (status == QN_OK)
        status = w->driver->flush(w->gpu, err);
    if (status == QN_OK)
        status = w->driver->fetch(w->gpu, slot, &posted, err);
    if (status == QN_OK)
        *words = qn__gpu_since(w, posted);
    return status;
}

/* In float32 no kernel checks the values between the layers. */
static uint32_t first_invalid(const qn__worker *w, const qn_status_words *words) {
    if (words->bad_input)
        return UINT32_MAX - words->bad_input;
    return words->bad_item && !w->bits ? QN__NO_LAYER : w->program->layers;
}

qn_status qn__gpu_add_tally(const qn__worker *w, const qn_status_words *words, qn__tally *tally,
                            qn_error *err) {
    int64_t high, loss, sum;
    if (words->bad_loss)
        return qn__fail_loss(words->bad_loss & 1, first_invalid(w, words), w->program, err);
    const int64_t carried = (int64_t)(words->loss_low >> 32);
    if (__builtin_add_overflow(words->loss_high, carried, &high) ||
        __builtin_mul_overflow(high, (int64_t)1 << 32, &loss) ||
        __builtin_add_overflow(loss, (int64_t)(words->loss_low & 0xffffffffu), &sum) ||
        qn__tally_add(tally, &(qn__tally){sum, words->correct, words->items}) != 0)
        return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    return QN_OK;
}

/* Checks the status words of a training pass. */
static qn_status judge(const qn__worker *w, const qn_status_words *words, qn__tally *tally,
                       qn_error *err) {
    const qn_status status = qn__gpu_add_tally(w, words, tally, err);
    if (status == QN_OK && words->bad_layer)
        return qn__fail_gradient(w->program->number + words->bad_layer - 1,
                                 w->layer[words->bad_layer - 1].layer->running > 0, err);
    return status;
}

/* Enqueues the inputs of the pass's items. */
static void fetch_items(qn__gpu_pass *pass, const qn__batch *batch) {
    const qn__program *p = pass->worker->program;
    qn__gpu_launch_fetch(pass);
    if (batch->places && pass->status == QN_OK)
        pass->status = qn__gpu_send_numbers(pass->worker, batch, pass->err);
    if (p->moves_answers && pass->status == QN_OK)
        pass->status = qn__gpu_send_shown(pass->worker, batch, pass->err);
    else if (pass->source->sent && pass->status == QN_OK)
        pass->status = qn__gpu_send_targets(pass->worker, batch, pass->err);
    if (p->mix && !p->answers && pass->status == QN_OK)
        pass->status = qn__gpu_send_partners(pass->worker, batch, pass->err);
}

/* Enqueues everything of a training pass after its inputs. */
static void compute(qn__gpu_pass *pass, int add, int update) {
    const uint32_t mixed = pass->worker->program->mix ? QN_LOSS_MIXED : 0;
    qn__gpu_launch_forward(pass, QN_LOSS_LABELS | QN_LOSS_TRAIN | mixed, add, NULL);
    qn__gpu_launch_tally(pass, QN_LOSS_LABELS);
    qn__gpu_launch_backward(pass, add, update);
}

qn_status qn__gpu_train(qn__worker *w, const qn__batch *items, qn_error *err) {
    qn__gpu_source source;
    qn_status_words words;
    qn__gpu_pass pass = {
        .worker = w, .source = &source, .items = items->items, .training = 1, .err = err};
    pass.status = qn__gpu_shorten(w, items, NULL, err);
    if (pass.status == QN_OK)
        pass.status = qn__gpu_source_of(w, items, &source, err);
    if (pass.status == QN_OK)
        pass.status = qn__gpu_send_step(w, items, &source, NULL, err);
    fetch_items(&pass, items);
    compute(&pass, w->model.sums_count, 0);
    w->model.sums_count = 1;
    if (pass.status == QN_OK)
        pass.status = qn__gpu_status(w, &words, err);
    if (pass.status == QN_OK)
        pass.status = judge(w, &words, &w->reports.tally, err);
    return pass.status;
}

/* The recording of such a step. *out is NULL the first time: a step that does not come again is not
 * worth a recording. */
static uint32_t recording_of(qn__worker *w, const qn__gpu_pass *pass, int *seen) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < QN__GPU_RECORDINGS; ++i) {
        qn__gpu_recording *r = &w->launches.recording[i];
        if (r->items == pass->items && r->feed == pass->source->id &&
            r->positions == w->shortened.positions) {
            r->used = ++w->feeds.clock;
            *seen = 1;
            return i;
        }
        if (r->used < w->launches.recording[found].used)
            found = i;
    }
    w->launches.recording[found] = (qn__gpu_recording){.items = pass->items,
                                                       .feed = pass->source->id,
                                                       .used = ++w->feeds.clock,
                                                       .positions = w->shortened.positions};
    *seen = 0;
    return found;
}

static void compute_step(qn__gpu_pass *pass) {
    if (!pass->source->sent)
        qn__gpu_launch_fetch(pass);
    compute(pass, 0, 1);
}

/* All launches of a step, or their recording in one call. */
static void enqueue_step(qn__gpu_pass *pass, const qn__batch *batch) {
    qn__worker *w = pass->worker;
    const qn__gpu_driver *driver = w->driver;
    int seen = 0;
    if (pass->source->sent)
        fetch_items(pass, batch);
    /* A recording has the number of a batch's lists and where they are, which change. */
    const uint32_t number = driver->record && !w->lists.takes ? recording_of(w, pass, &seen) : 0;
    if (!seen) {
        compute_step(pass);
        return;
    }
    if (!w->launches.recording[number].recorded && pass->status == QN_OK) {
        pass->status = driver->record(w->gpu, number, pass->err);
        compute_step(pass);
        if (pass->status == QN_OK)
            pass->status = driver->recorded(w->gpu, number, pass->err);
        w->launches.recording[number].recorded = 1;
    }
    if (pass->status == QN_OK)
        pass->status = driver->replay(w->gpu, number, pass->err);
}

/* Waits for the oldest enqueued step and adds its tally; its failure names it. */
static qn_status land(qn__worker *w, qn__tally *tally, qn_error *err) {
    const qn__gpu_flight oldest = w->launches.flight[0];
    const uint32_t slot =
        (w->launches.slot_of_next + QN__GPU_SLOTS - w->launches.flights) % QN__GPU_SLOTS;
    const void *posted;
    qn_status status = w->driver->fetch(w->gpu, slot, &posted, err);
    if (status != QN_OK)
        return status;
    --w->launches.flights;
    for (uint32_t i = 0; i < w->launches.flights; ++i)
        w->launches.flight[i] = w->launches.flight[i + 1];
    const qn_status_words words = qn__gpu_since(w, posted);
    status = judge(w, &words, tally, err);
    if (status != QN_OK)
        qn__at(err, "step %llu, epoch %u", (unsigned long long)oldest.step, oldest.epoch + 1);
    return status;
}

qn_status qn__gpu_train_step(qn__worker *w, const qn__batch *batch, const qn__batch *next,
                             const qn__update *update, qn__tally *tally, qn_error *err) {
    qn__gpu_source source;
    qn__gpu_pass pass = {
        .worker = w, .source = &source, .items = batch->items, .training = 1, .err = err};
    (void)next; /* this batch is copied while the device still computes the previous one */
    pass.status = qn__gpu_shorten(w, batch, NULL, err);
    if (pass.status == QN_OK)
        pass.status = qn__gpu_source_of(w, batch, &source, err);
    if (pass.status == QN_OK)
        pass.status = qn__gpu_send_step(w, batch, &source, update, err);
    if (pass.status == QN_OK)
        enqueue_step(&pass, batch);
    if (pass.status == QN_OK)
        pass.status = w->driver->post(w->gpu, &w->reports.status, sizeof(qn_status_words),
                                      w->launches.slot_of_next, err);
    if (pass.status == QN_OK)
        pass.status = w->driver->flush(w->gpu, err);
    if (pass.status != QN_OK)
        return pass.status;
    w->launches.slot_of_next = (w->launches.slot_of_next + 1) % QN__GPU_SLOTS;
    w->launches.flight[w->launches.flights++] = (qn__gpu_flight){update->step, batch->epoch};
    w->model.sums_count = 0;
    return w->launches.flights > QN__GPU_FLIGHTS ? land(w, tally, err) : QN_OK;
}

qn_status qn__gpu_flush(qn__worker *w, qn__tally *tally, qn_error *err) {
    qn_status status = QN_OK;
    while (status == QN_OK && w->launches.flights > 0)
        status = land(w, tally, err);
    return status;
}
