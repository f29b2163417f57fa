/* Reads what `quern devices --costs --model ... --json` measured of a machine: lines of JSON. Lines
 * with the event "cost" count, one for each device of each rank into which the machine was
 * divided. */
#include "plan/plan_team.h"

#include "base/files/file.h"
#include "base/memory.h"
#include "base/text/json.h"
#include "model/network/network.h"
#include "model/recipe/freeze.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Larger files are refused. */
enum { MOST_BYTES = 1 << 22 };
/* The text of a model that has space in a remedy. */
enum { LONGEST_MODEL = 240 };

/* The arithmetic if a line does not name one. */
static const char F32[] = "f32";

typedef struct reader {
    qn__plan_team *team;
    const qn__plan_subject *subject;
    const char *name;
    qn__plan_host *host;
    qn__plan_rank *rank;
    uint64_t number; /* of the current rank */
    size_t line;
    qn_error *err;
} reader;

static qn_status measure_again(const reader *r, qn_status status) {
    const qn__plan_subject *s = r->subject;
    const int integers = strcmp(s->arith, F32) != 0, shown = strlen(s->model) <= LONGEST_MODEL;
    char item[64];
    if (s->shape.height)
        snprintf(item, sizeof item, "--shape %ux%ux%u", s->shape.channels, s->shape.height,
                 s->shape.width);
    else
        snprintf(item, sizeof item, "--features %u", s->features);
    return qn__remedy(r->err, status,
                      "measure it with: quern devices --json --costs --model %s%s%s %s --batch %u "
                      "--grain %u --optimizer %s%s%s%s%s%s%s > %s",
                      shown ? "\"" : "", shown ? s->model : "MODEL", shown ? "\"" : "", item,
                      s->batch, s->grain, s->optimizer, integers ? " --arith " : "",
                      integers ? s->arith : "", *s->freeze ? " --freeze " : "", s->freeze,
                      s->cache_features ? " --cache-features" : "",
                      s->recompute ? " --recompute" : "", r->name);
}

static qn_status bad(const reader *r, const char *what) {
    qn__fail(r->err, QN_INPUT, "%s", what);
    qn__at(r->err, "%s, line %zu", r->name, r->line);
    return measure_again(r, QN_INPUT);
}

/* Seconds, or bytes per second; null or a missing key are 0. */
static double number_of(const qn__json_node *object, const char *key) {
    float value = 0;
    return qn__json_float(qn__json_get(object, key), &value) && value > 0 ? (double)value : 0;
}

static uint64_t count_of(const qn__json_node *object, const char *key) {
    uint64_t value = 0;
    return qn__json_u64(qn__json_get(object, key), &value) ? value : UINT64_MAX;
}

static qn_status differs(const reader *r, const char *what, const char *theirs, const char *ours) {
    qn__fail(r->err, QN_MISMATCH, "the machine was measured with %s %s, the plan is for %s", what,
             theirs, ours);
    qn__at(r->err, "%s, line %zu", r->name, r->line);
    return measure_again(r, QN_MISMATCH);
}

static qn_status same_text(const reader *r, const qn__json_node *o, const char *key,
                           const char *ours) {
    const char *theirs = qn__json_string(qn__json_get(o, key));
    if (!theirs)
        return bad(r, "the line does not name the job that was measured");
    return strcmp(theirs, ours) == 0 ? QN_OK : differs(r, key, theirs, ours);
}

static qn_status same_count(const reader *r, const qn__json_node *o, const char *key,
                            uint32_t ours) {
    char first[24], second[24];
    const uint64_t theirs = count_of(o, key);
    if (theirs == ours)
        return QN_OK;
    snprintf(first, sizeof first, "%llu", (unsigned long long)theirs);
    snprintf(second, sizeof second, "%u", ours);
    return differs(r, key, first, second);
}

/* Of files written before there were such layers: all train. */
static qn_status same_freeze(const reader *r, const qn__json_node *o) {
    const char *theirs = qn__json_string(qn__json_get(o, "freeze")), *ours = r->subject->freeze;
    char *form = NULL;
    if (qn__freeze_tidy(theirs, r->subject->layers, &form, NULL) != QN_OK)
        return bad(r, "the line names layers that do not train, which the model does not have");
    const int same = strcmp(form ? form : "", ours) == 0;
    const qn_status status =
        same ? QN_OK : differs(r, "freeze", form ? form : "none", *ours ? ours : "none");
    qn__free(form);
    return status;
}

/* A file that does not name it was measured without. */
static qn_status same_flag(const reader *r, const qn__json_node *o, const char *key,
                           uint32_t ours) {
    return qn__json_get(o, key) || ours ? same_count(r, o, key, ours) : QN_OK;
}

/* Compares canonical texts: networks may be equal and differ in spaces. */
static qn_status same_model(const reader *r, const qn__json_node *o) {
    const char *theirs = qn__json_string(qn__json_get(o, "model"));
    qn__network network;
    qn__text canonical = {0};
    if (!theirs || qn__network_parse(theirs, &network, NULL) != QN_OK)
        return same_text(r, o, "model", r->subject->model);
    qn__network_text(&network, &canonical);
    const int same = !canonical.failed && strcmp(canonical.data, r->subject->model) == 0;
    qn__text_release(&canonical);
    return same ? QN_OK : differs(r, "model", theirs, r->subject->model);
}

static qn_status same_job(const reader *r, const qn__json_node *o) {
    const qn__plan_subject *s = r->subject;
    qn_status status = same_model(r, o);
    if (status == QN_OK)
        status = same_text(r, o, "optimizer", s->optimizer);
    const char *arith = qn__json_string(qn__json_get(o, "arith"));
    arith = arith ? arith : F32;
    if (status == QN_OK && strcmp(arith, s->arith) != 0)
        status = differs(r, "arith", arith, s->arith);
    if (status == QN_OK)
        status = same_count(r, o, "features", s->features);
    if (status == QN_OK)
        status = same_count(r, o, "batch", s->batch);
    if (status == QN_OK)
        status = same_count(r, o, "grain", s->grain);
    if (status == QN_OK)
        status = same_freeze(r, o);
    if (status == QN_OK)
        status = same_flag(r, o, "cache_features", s->cache_features);
    return status == QN_OK ? same_flag(r, o, "recompute", s->recompute) : status;
}

/* Sizes of calls, ascending, and their times. */
static int read_calls(const qn__json_node *o, qn__virtual_calls *calls) {
    const qn__json_node *grains = qn__json_get(o, "grains"), *seconds = qn__json_get(o, "seconds");
    const size_t count = qn__json_count(grains);
    if (!qn__json_is_array(grains) || !qn__json_is_array(seconds) || count < 1 ||
        count > QN__VIRTUAL_CALLS || qn__json_count(seconds) != count)
        return 0;
    for (size_t i = 0; i < count; ++i) {
        uint64_t size;
        float took;
        if (!qn__json_u64(qn__json_at(grains, i), &size) || size < 1 || size > UINT32_MAX ||
            !qn__json_float(qn__json_at(seconds, i), &took) || !(took > 0))
            return 0;
        calls->grains[i] = (double)size;
        calls->seconds[i] = (double)took;
        if (i > 0 && !(calls->grains[i] > calls->grains[i - 1]))
            return 0;
    }
    calls->count = (uint32_t)count;
    return 1;
}

static qn_status read_cost(reader *r, const qn__json_node *o) {
    const char *id = qn__json_string(qn__json_get(o, "id"));
    const uint64_t number = count_of(o, "rank");
    qn__virtual_calls calls = {0};
    qn_status status = same_job(r, o);
    if (status != QN_OK)
        return status;
    if (!id || number > QN__PLAN_RANKS || !read_calls(o, &calls))
        return bad(r, "the line has no times of calls");
    if (!r->rank || number != r->number) {
        if (!(r->rank = qn__plan_add_rank(r->team, r->err)))
            return QN_USAGE;
        ++r->host->count;
    }
    r->number = number;
    if (r->rank->count == QN__MAX_WORKERS)
        return bad(r, "a rank has more than 64 devices");
    qn__plan_device *d = qn__plan_add_device(r->team, r->err);
    if (!d)
        return QN_USAGE;
    ++r->rank->count;
    snprintf(d->name, sizeof d->name, "%s", id);
    d->calls = calls;
    d->rate = calls.grains[calls.count - 1] * r->subject->grain / calls.seconds[calls.count - 1];
    d->update = number_of(o, "update_s");
    d->step = number_of(o, "step_s");
    d->power = number_of(o, "watts");
    r->rank->memory = number_of(o, "add_bytes_per_s");
    r->rank->word = fmin(number_of(o, "word_bytes"), sizeof(int64_t));
    r->rank->pack = number_of(o, "pack_s");
    r->rank->unpack = number_of(o, "unpack_s");
    return QN_OK;
}

static qn_status read_line(reader *r, const char *line, size_t size) {
    qn__json *json;
    if (size == 0)
        return QN_OK;
    if (qn__json_parse(line, size, &json, NULL) != QN_OK)
        return bad(r, "this line is not JSON");
    const char *kind = qn__json_string(qn__json_get(qn__json_root(json), "event"));
    const qn_status status =
        kind && strcmp(kind, "cost") == 0 ? read_cost(r, qn__json_root(json)) : QN_OK;
    qn__json_free(json);
    return status;
}

qn_status qn__plan_team_parse(qn__plan_team *team, const char *text, size_t size, const char *name,
                              uint32_t copies, const qn__plan_subject *subject, qn_error *err) {
    reader r = {.team = team, .subject = subject, .name = name, .err = err};
    qn_status status = QN_OK;
    if (!(r.host = qn__plan_add_host(team, err)))
        return QN_USAGE;
    r.host->copies = copies;
    snprintf(r.host->name, sizeof r.host->name, "host(%.56s)", name);
    for (size_t at = 0; at < size && status == QN_OK;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - (text + at)) : size - at;
        ++r.line;
        status = read_line(&r, text + at, length);
        at += length + 1;
    }
    if (status == QN_OK && r.host->count == 0) {
        qn__fail(err, QN_INPUT, "%s has the cost of no device", name);
        return measure_again(&r, QN_INPUT);
    }
    return status;
}

qn_status qn__plan_team_measured(qn__plan_team *team, const char *path, uint32_t copies,
                                 const qn__plan_subject *subject, qn_error *err) {
    qn__bytes bytes;
    qn_status status = qn__file_read(path, &bytes, err);
    if (status != QN_OK)
        return status;
    if (bytes.size > MOST_BYTES)
        status = qn__fail(err, QN_INPUT, "%s is too large for what a machine measured", path);
    else
        status = qn__plan_team_parse(team, (const char *)bytes.data, bytes.size, path, copies,
                                     subject, err);
    qn__bytes_release(&bytes);
    return status;
}
