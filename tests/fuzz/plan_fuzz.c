/* Descriptions of teams, and what machines measured: qn__plan_team_read, qn__plan_team_parse. */
#include "fuzz/fuzz.h"

#include "plan/plan_team.h"

static const qn__plan_subject subject = {.model = "dense 10 softmax",
                                         .optimizer = "sgd",
                                         .arith = "f32",
                                         .features = 784,
                                         .batch = 64,
                                         .grain = 32,
                                         .freeze = "",
                                         .layers = 1};

static void check_team(const qn__plan_team *team) {
    uint64_t ranks = 0;
    for (uint32_t i = 0; i < team->hosts; i++) {
        FUZZ_MUST(team->host[i].copies > 0 && memchr(team->host[i].name, 0, 64));
        FUZZ_MUST(team->host[i].first + team->host[i].count <= team->ranks);
        ranks += (uint64_t)team->host[i].copies * team->host[i].count;
    }
    FUZZ_MUST(ranks == qn__plan_team_ranks(team) && ranks <= QN__PLAN_RANKS);
    for (uint32_t i = 0; i < team->ranks; i++)
        FUZZ_MUST(team->rank[i].first + team->rank[i].count <= team->devices);
    for (uint32_t i = 0; i < team->devices; i++)
        FUZZ_MUST(memchr(team->device[i].name, 0, 32) && team->device[i].rate > 0);
    for (uint32_t i = 0; i < team->events; i++)
        FUZZ_MUST(team->event[i].at >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn_error err = {0};
    char *text = fuzz_text(bytes, size);
    for (int measured = 0; measured < 2; measured++) {
        qn__plan_team team;
        FUZZ_MUST(qn__plan_team_create(&team, &err) == QN_OK);
        const qn_status status =
            measured ? qn__plan_team_parse(&team, text, size, "fuzzed", 2, &subject, &err)
            : strstr(text, ".json") ? QN_OK /* names a file of this machine */
                                    : qn__plan_team_read(&team, text, &subject, &err);
        if (status == QN_OK)
            check_team(&team);
        else
            fuzz_check_refusal(status, NULL, &err);
        qn__plan_team_release(&team);
    }
    free(text);
    return 0;
}
