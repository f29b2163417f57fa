/* A host job for tests: numbers that grains add to shared words, or write to words of their own. */
#ifndef QN_TESTS_HOST_JOB_CASE_TEST_H
#define QN_TESTS_HOST_JOB_CASE_TEST_H

#include "ranks_case_test.h"

enum { JOB_GRAINS = 240, WORDS = 2 * JOB_GRAINS };

typedef struct counting {
    int apart, refuse;
    uint32_t bad[2]; /* grains that fail; 0: none */
    atomic_int open; /* scratches that are open; and how many there were */
    atomic_uint opened;
    void (*at_grain)(uint32_t grain); /* NULL: nothing happens there */
} counting;

static inline void *counting_open(void *context, qn_error *err) {
    counting *c = context;
    if (c->refuse) {
        qn__fail(err, QN_MEMORY, "no space, as planned");
        return NULL;
    }
    counting **scratch = malloc(sizeof *scratch);
    *scratch = c;
    atomic_fetch_add(&c->open, 1);
    atomic_fetch_add(&c->opened, 1);
    return scratch;
}

static inline void counting_close(void *scratch) {
    counting *c = *(counting **)scratch;
    atomic_fetch_sub(&c->open, 1);
    free(scratch);
}

static inline qn_status counting_grains(void *context, void *scratch, uint32_t first,
                                        uint32_t count, int64_t *words, qn_error *err) {
    const counting *c = context;
    if (*(counting **)scratch != c)
        return qn__fail(err, QN_MEMORY, "another thread's scratch");
    for (uint32_t g = first; g < first + count; ++g) {
        if (g > 0 && (g == c->bad[0] || g == c->bad[1]))
            return qn__fail(err, QN_NUMERIC, "grain %u is bad", g);
        if (c->at_grain)
            c->at_grain(g);
        const int64_t value = (int64_t)(g + 1) * (g + 1) - 1000;
        if (c->apart) {
            words[2 * g] = value;
            words[2 * g + 1] = -3 * value;
            continue;
        }
        for (uint32_t i = 0; i < WORDS; i += 1 + g % 7)
            words[i] += value * i;
    }
    return QN_OK;
}

static inline qn__host_job counting_job(counting *c) {
    return (qn__host_job){.context = c,
                          .open = counting_open,
                          .close = counting_close,
                          .grains = counting_grains,
                          .words = WORDS,
                          .apart = c->apart};
}

static inline void counting_expect(counting *c, int64_t *words) {
    counting *scratch = c;
    memset(words, 0, WORDS * sizeof *words);
    assert_int_equal(counting_grains(c, &scratch, 0, JOB_GRAINS, words, NULL), QN_OK);
}

static inline qn_status counting_run(qn__team *team, counting *c, int64_t *got, qn_error *err) {
    const qn__host_job job = counting_job(c);
    const int64_t *words;
    const qn_status status = qn__team_run(team, &job, JOB_GRAINS, &words, err);
    if (status == QN_OK)
        memcpy(got, words, WORDS * sizeof *got);
    return status;
}

/* A rank's part: the job three times, whose words must be right on it. */
static inline qn_status counting_on_rank(hand *h, const qn_compute *compute) {
    counting *c = h->user, expected = {.apart = c->apart};
    int64_t got[WORDS], wanted[WORDS];
    qn__team *team;
    counting_expect(&expected, wanted);
    qn_status status = qn__team_create(NULL, compute, NULL, 0, &team, &h->run.err);
    for (int i = 0; i < 3 && status == QN_OK; ++i) {
        status = counting_run(team, c, got, &h->run.err);
        if (status == QN_OK && memcmp(got, wanted, sizeof wanted) != 0)
            status = qn__fail(&h->run.err, QN_MISMATCH, "the words are wrong");
    }
    if (status == QN_DEVICE)
        qn__cluster_withdraw(h->run.cluster);
    qn__team_destroy(team);
    return status;
}

#endif
