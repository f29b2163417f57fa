#include "serve/watch/watch_units.h"

#include "base/memory.h"
#include "base/sized.h"
#include "model/formats/model.h"
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Units that may be under way, so that memory is bounded; numbers of a layer in a batch. */
enum { UNDER_WAY = 512, ITEMS_TOGETHER = 1024, MOST_TOGETHER = 1 << 22 };

int qn__watch_has_prompts(const qn_model *model, const qn_watch_options *o) {
    return !o->layer && qn_model_predicts(model) == QN_PREDICTS_NEXT;
}

int qn__watch_is_bad_item(qn_status status) {
    return status == QN_INPUT || status == QN_MISMATCH || status == QN_NUMERIC ||
           status == QN_FORMAT || status == QN_UNSUPPORTED;
}

qn__watch_unit *qn__watch_unit_make(const char *file, int64_t first, qn_error *err) {
    qn__watch_unit *unit = qn__alloc(1, sizeof *unit, err);
    if (!unit)
        return NULL;
    unit->first = first;
    unit->items = 1;
    unit->file = qn__copy_text(file, err);
    if (unit->file)
        return unit;
    qn__watch_unit_free(unit);
    return NULL;
}

void qn__watch_unit_free(qn__watch_unit *unit) {
    if (!unit)
        return;
    qn__free(unit->file);
    qn__free(unit->version);
    qn__free(unit->mask);
    qn__free(unit->lines);
    qn__watch_prompts_free(unit->prompts);
    qn_data_close(unit->data);
    qn__batch_answer_release(&unit->answer);
    qn__free(unit);
}

void qn__watch_free_all(qn__watch_unit *list) {
    for (qn__watch_unit *next; list; list = next) {
        next = list->next;
        qn__watch_unit_free(list);
    }
}

/* The layers up to the one that is asked for. */
static qn_status cut_layers(const qn_watch_options *o, qn__watch_units *out, qn_error *err) {
    uint32_t layer;
    qn_status status = qn_model_find_layer(out->model, o->layer, &layer, err);
    if (status == QN_OK)
        status = qn__layer_cut_make(out->model, layer, o->summary, &out->cut, err);
    if (status == QN_OK)
        out->values = qn__layer_cut_values(&out->cut);
    return status;
}

static qn_status make_batcher(const qn_watch_options *o, qn__watch_units *out, qn_error *err) {
    const qn_model *m = out->model;
    const uint32_t together = out->values ? MOST_TOGETHER / out->values + 1 : ITEMS_TOGETHER;
    const qn__batcher_options options = {
        .latency = o->latency,
        .waiting = UINT64_MAX,
        .most = together < ITEMS_TOGETHER ? together : ITEMS_TOGETHER,
        .no_outputs = m->answers && m->mask.height > 0 && !out->values,
        .cut = out->values ? &out->cut : NULL};
    return qn__batcher_make(m, o->compute, &options, &out->batcher, err);
}

/* What continues prompts, as many at once as quern generate does. */
static qn_status open_texts(const qn_watch_options *o, qn__watch_units *out, qn_error *err) {
    enum { TOGETHER = 32, WAITING = 1 << 20, LENGTH = 1 << 25 };
    const qn_generate_options *asked = o->generate;
    qn_generate_options_init(&out->generate);
    qn_status status = QN_OK;
    if (asked)
        status = qn__sized_take(QN__SIZED("options->generate", qn_generate_options), asked,
                                &out->generate, err);
    if (status == QN_OK)
        status = qn__texts_check(&out->generate, err);
    const uint32_t batch = out->generate.batch;
    const qn__texts_options options = {
        .sequences = batch ? batch : TOGETHER, .waiting = WAITING, .length = LENGTH};
    out->most = 2 * options.sequences; /* at the end, these are waited for */
    if (status == QN_OK)
        status = qn__texts_open(out->model, o->compute, &options, &out->texts, err);
    if (status == QN_OK && out->generate.chat && !qn__texts_have_text(out->texts)) {
        qn__fail(err, QN_USAGE, "a chat needs texts, and the model reads numbers of tokens");
        status = qn__remedy(err, QN_USAGE, "leave `generate.chat` out");
    }
    return status;
}

qn_status qn__watch_units_make(const qn_model *model, const qn_watch_options *options,
                               qn__watch_units *out, qn_error *err) {
    out->model = model;
    out->last = &out->first;
    out->most = UNDER_WAY;
    pthread_mutex_init(&out->lock, NULL);
    pthread_cond_init(&out->fewer, NULL);
    out->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (out->event < 0)
        return qn__fail_errno(err, "make", "an event");
    qn_status status = qn__body_reader_make(model, &out->reader, err);
    if (status == QN_OK && options->layer)
        status = cut_layers(options, out, err);
    if (status != QN_OK)
        return status;
    return qn__watch_has_prompts(model, options) ? open_texts(options, out, err)
                                                 : make_batcher(options, out, err);
}

void qn__watch_units_release(qn__watch_units *units) {
    if (!units->last)
        return;
    qn__batcher_free(units->batcher);
    qn__texts_close(units->texts);
    qn__layer_cut_release(&units->cut);
    qn__body_reader_free(units->reader);
    qn__watch_free_all(units->first);
    if (units->event >= 0)
        close(units->event);
    pthread_mutex_destroy(&units->lock);
    pthread_cond_destroy(&units->fewer);
}

/* ------------------------------------------------------------------------------------- answers */

static void take_answer(qn__watch_unit *unit, const qn__batch_answer *a) {
    unit->status = a->status;
    if (a->status != QN_OK) {
        unit->error = *a->err;
        return;
    }
    unit->items = a->items;
    unit->status = qn__batch_answer_copy(a, &unit->answer, &unit->error);
}

static void finish(qn__watch_unit *unit) {
    static const uint64_t one = 1;
    qn__watch_units *all = unit->all;
    pthread_mutex_lock(&all->lock);
    unit->answered = 1;
    ++all->finished;
    pthread_cond_broadcast(&all->fewer);
    pthread_mutex_unlock(&all->lock);
    while (write(all->event, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

/* qn__batch_done */
static void answered(void *user, const qn__batch_answer *a) {
    qn__watch_unit *unit = user;
    take_answer(unit, a);
    finish(unit);
}

/* qn__watch_asked */
static void continued(void *user, const qn_error *failure) {
    qn__watch_unit *unit = user;
    unit->items = unit->prompts->count;
    if (failure) {
        unit->status = failure->status;
        unit->error = *failure;
    }
    finish(unit);
}

/* Waits while the service has too many prompts, which are those of other units. */
static qn_status ask(qn__watch_units *units, qn__watch_unit *unit, qn_error *err) {
    qn_status status;
    uint64_t seen;
    do {
        pthread_mutex_lock(&units->lock);
        seen = units->finished;
        pthread_mutex_unlock(&units->lock);
        status = qn__watch_prompts_ask(units->texts, &units->generate, unit->prompts, continued,
                                       unit, err);
        pthread_mutex_lock(&units->lock);
        while (status == QN_BUSY && units->finished == seen)
            pthread_cond_wait(&units->fewer, &units->lock);
        pthread_mutex_unlock(&units->lock);
    } while (status == QN_BUSY);
    return status;
}

/* Once it is accepted, another thread may have freed it. */
static void predict(qn__watch_units *units, qn__watch_unit *unit) {
    qn_error err;
    const qn_status status =
        units->texts ? ask(units, unit, &err)
                     : qn__batcher_submit(units->batcher, unit->data, answered, unit, &err);
    if (status == QN_OK)
        return;
    unit->status = status;
    unit->error = err;
    finish(unit);
}

void qn__watch_submit(qn__watch_units *units, qn__watch_unit *unit) {
    unit->all = units;
    pthread_mutex_lock(&units->lock);
    while (units->count >= units->most)
        pthread_cond_wait(&units->fewer, &units->lock);
    *units->last = unit;
    units->last = &unit->next;
    ++units->count;
    pthread_mutex_unlock(&units->lock);
    if (unit->status != QN_OK || unit->skip) {
        finish(unit);
        return;
    }
    predict(units, unit);
}

void qn__watch_answer(qn__watch_units *units, qn__watch_unit *unit) {
    unit->all = units;
    if (unit->status != QN_OK)
        return;
    predict(units, unit);
    pthread_mutex_lock(&units->lock);
    while (!unit->answered)
        pthread_cond_wait(&units->fewer, &units->lock);
    pthread_mutex_unlock(&units->lock);
}

int qn__watch_has_space(qn__watch_units *units) {
    pthread_mutex_lock(&units->lock);
    const int has = units->count < units->most;
    pthread_mutex_unlock(&units->lock);
    return has;
}

qn__watch_unit *qn__watch_take(qn__watch_units *units, int ordered) {
    qn__watch_unit *taken = NULL, **end = &taken;
    uint64_t unread;
    while (read(units->event, &unread, sizeof unread) < 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&units->lock);
    qn__watch_unit **at = &units->first;
    while (*at) {
        qn__watch_unit *unit = *at;
        if (!unit->answered && ordered)
            break;
        if (!unit->answered) {
            at = &unit->next;
            continue;
        }
        *at = unit->next;
        unit->next = NULL;
        *end = unit;
        end = &unit->next;
        --units->count;
    }
    while (*at)
        at = &(*at)->next;
    units->last = at;
    pthread_cond_broadcast(&units->fewer);
    pthread_mutex_unlock(&units->lock);
    return taken;
}

int qn__watch_is_idle(qn__watch_units *units) {
    pthread_mutex_lock(&units->lock);
    const int idle = units->count == 0;
    pthread_mutex_unlock(&units->lock);
    return idle;
}
