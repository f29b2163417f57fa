#include "predict/generate/shared_answers.h"

#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "job/agree.h"
#include "statistics/host_team.h"
#include "team/members.h"
#include <stdio.h>
#include <string.h>

/* Until speeds are known, a rank gets at most this part of an equal share of all answers. Later
 * rounds have so many answers for each sequence of a rank: more would make a rank that dies more
 * expensive, fewer would leave sequences idle more often. Words of a round: 16 MiB. */
enum { FIRST_PART = 4, ROUND_SEQUENCES = 4, ROUND_WORDS = 1 << 21 };

/* Words of an answer: the number of its tokens and its base as two halves of one, then for each
 * token the token and the bits of its log-probability. */
enum { HEAD = 1 };

static uint64_t words_of(const qn__answer *a) { return HEAD + (uint64_t)a->most; }

/* ------------------------------------------------------------------------------------------- open
 */

/* "12 prompts, digest 4f...". */
static void describe(const qn_generator *g, char text[128]) {
    qn__sha256 hash;
    uint8_t digest[32];
    char hex[65];
    qn__sha256_begin(&hash);
    for (uint32_t i = 0; i < g->prompts; ++i)
        qn__sha256_add(&hash, g->prompt[i], strlen(g->prompt[i]) + 1);
    qn__sha256_end(&hash, digest);
    qn__hex(digest, hex);
    snprintf(text, 128, "%u prompts, digest %s", g->prompts, hex);
}

static qn_status agree(const qn_generator *g, qn_status status, qn_error *err) {
    qn__text options = {0};
    char prompts[128] = "", batch[16] = "";
    if (status == QN_OK) {
        describe(g, prompts);
        snprintf(batch, sizeof batch, "%u", g->sequences);
        qn__answers_add_options(g, &options);
        status = options.failed ? qn__fail_memory(err, options.size, 1) : QN_OK;
    }
    status = qn__agree_to_generate(g->cluster, qn_model_digest(g->model), prompts,
                                   options.data ? options.data : "", batch, status, err);
    qn__text_release(&options);
    return status;
}

/* The team runs the function of a round on one thread; the reader has the others. */
static qn_status make_team(qn__shared_answers *s, const qn_compute *compute, qn_error *err) {
    const qn__member one = {.device = qn__device_find("cpu"), .threads = 1};
    qn_compute own = *compute;
    qn_status status = qn__members_of(&own, s->member, QN__MAX_WORKERS, &s->members, err);
    if (status == QN_OK)
        status = qn__portion_take(&own, s->member, &s->members, &s->portion, err);
    own.threads = 1;
    return status == QN_OK ? qn__team_create(NULL, &own, &one, 1, &s->team, err) : status;
}

qn_status qn__shared_open(qn_generator *g, const qn_compute *compute,
                          qn_status (*complete)(qn_generator *g, uint32_t from, uint32_t to,
                                                qn_error *err),
                          qn_status status, qn_error *err) {
    qn__shared_answers *s = qn__alloc(1, sizeof *s, err);
    status = agree(g, s ? status : QN_MEMORY, err);
    if (status != QN_OK || !s) {
        qn__free(s);
        return status;
    }
    g->shared = s;
    s->cluster = g->cluster;
    s->complete = complete;
    return make_team(s, compute, err);
}

void qn__shared_close(qn__shared_answers *s) {
    if (!s)
        return;
    qn__team_destroy(s->team);
    qn__portion_give(&s->portion);
    qn__free(s);
}

qn_status qn__shared_end(const qn__shared_answers *s, qn_status status, qn_error *err) {
    return qn__host_team_close(NULL, &(qn_compute){.cluster = s->cluster}, status, err);
}

/* ------------------------------------------------------------------------------------------ round
 */

/* Sets the answers of the next round, of a number that all ranks find. */
static void plan_round(const qn_generator *g, qn__shared_answers *s) {
    const uint64_t ranks = qn_cluster_ranks(s->cluster);
    const uint64_t equal = g->answers / (FIRST_PART * ranks);
    const uint64_t first = equal < g->sequences ? equal : g->sequences;
    uint64_t most = ranks * (s->end > 0 ? ROUND_SEQUENCES * (uint64_t)g->sequences : first);
    most = most > ranks ? most : ranks;
    s->first = s->end;
    s->words = 0;
    while (s->end < g->answers && s->end - s->first < most &&
           (s->end - s->first < ranks || s->words + words_of(&g->answer[s->end]) <= ROUND_WORDS))
        s->words += words_of(&g->answer[s->end++]);
}

static void give(const qn__answer *a, int64_t *words) {
    const uint32_t count = a->count - a->prompt_count;
    words[0] = (int64_t)((uint64_t)a->base << 32 | count);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, &a->log_probability[i], sizeof bits);
        words[HEAD + i] = (int64_t)((uint64_t)bits << 32 | a->token[a->prompt_count + i]);
    }
}

/* An answer of another rank. Its text and its end follow from its tokens. */
static qn_status take(const qn_generator *g, qn__answer *a, const int64_t *words, qn_error *err) {
    const uint32_t count = (uint32_t)words[0];
    if (a->end != QN_ANSWER_GOES_ON)
        return QN_OK;
    if (count == 0 || count > a->most)
        return qn__fail(err, QN_CLUSTER, "an answer of another rank has %u tokens", count);
    a->base = (uint32_t)((uint64_t)words[0] >> 32);
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < count && status == QN_OK; ++i) {
        const uint32_t bits = (uint32_t)((uint64_t)words[HEAD + i] >> 32);
        memcpy(&a->log_probability[i], &bits, sizeof bits);
        a->token[a->count++] = (uint32_t)words[HEAD + i];
        status = qn__answer_grow(&g->codec, a, err);
    }
    return status;
}

/* qn__host_job: a grain is an answer. */
static qn_status compute(void *context, void *scratch, uint32_t first, uint32_t count,
                         int64_t *words, qn_error *err) {
    qn_generator *g = context;
    const qn__shared_answers *s = g->shared;
    const uint32_t from = s->first + first;
    (void)scratch;
    const qn_status status = s->complete(g, from, from + count, err);
    for (uint32_t i = s->first; i < from + count && status == QN_OK; ++i) {
        if (i >= from)
            give(&g->answer[i], words);
        words += words_of(&g->answer[i]);
    }
    return status;
}

qn_status qn__shared_round(qn_generator *g, int *more, qn_error *err) {
    qn__shared_answers *s = g->shared;
    const int64_t *words = NULL;
    plan_round(g, s);
    const qn__host_job job = {
        .context = g, .grains = compute, .words = s->words, .apart = 1, .uneven = 1};
    qn_status status = qn__team_run(s->team, &job, s->end - s->first, &words, err);
    for (uint32_t i = s->first; i < s->end && status == QN_OK; ++i) {
        status = take(g, &g->answer[i], words, err);
        words += words_of(&g->answer[i]);
    }
    *more = s->end < g->answers;
    return qn__shared_end(s, status, err);
}
