#include "serve/text/text_metrics.h"

#include "predict/generate/text_service.h"

typedef uint64_t text_value(const qn__texts_counts *counts);
static uint64_t requests_of(const qn__texts_counts *c) { return c->requests; }
static uint64_t refused_of(const qn__texts_counts *c) { return c->refused; }
static uint64_t dropped_of(const qn__texts_counts *c) { return c->dropped; }
static uint64_t failed_of(const qn__texts_counts *c) { return c->failed; }
static uint64_t prompt_of(const qn__texts_counts *c) { return c->prompt_tokens; }
static uint64_t tokens_of(const qn__texts_counts *c) { return c->tokens; }
static uint64_t growing_of(const qn__texts_counts *c) { return c->growing; }
static uint64_t waiting_of(const qn__texts_counts *c) { return c->waiting; }

typedef struct text_count {
    const char *name, *type, *about;
    text_value *value;
} text_count;

static const text_count text_counts[] = {
    {"quern_text_requests_total", "counter", "Requests for texts that were accepted.", requests_of},
    {"quern_text_refused_total", "counter", "Requests refused because too many wait.", refused_of},
    {"quern_text_left_total", "counter", "Requests for which nobody waited.", dropped_of},
    {"quern_text_failed_total", "counter", "Requests that failed.", failed_of},
    {"quern_text_prompt_tokens_total", "counter", "Tokens of prompts.", prompt_of},
    {"quern_text_tokens_total", "counter", "Tokens of answers.", tokens_of},
    {"quern_text_growing_answers", "gauge", "Answers that grow.", growing_of},
    {"quern_text_waiting_answers", "gauge", "Answers that wait.", waiting_of}};

/* One count of all models. */
typedef struct count_text {
    qn__text *text;
    const text_count *count;
} count_text;

static void add_count(void *user, const qn__model_state *state) {
    const count_text *own = user;
    qn__texts *texts = state->served ? state->served->part[QN__PART_TEXT] : NULL;
    qn__texts_counts counts;
    if (!texts)
        return;
    qn__texts_count(texts, &counts);
    qn__text_add(own->text, "%s{model=\"%s\",version=\"%s\"} %llu\n", own->count->name, state->name,
                 state->version, (unsigned long long)own->count->value(&counts));
}

void qn__text_metrics_add(qn__models *models, qn__text *to) {
    for (size_t i = 0; i < sizeof text_counts / sizeof *text_counts; ++i) {
        count_text own = {to, &text_counts[i]};
        qn__text_add(to, "# HELP %s %s\n# TYPE %s %s\n", own.count->name, own.count->about,
                     own.count->name, own.count->type);
        qn__models_list(models, add_count, &own);
    }
}
