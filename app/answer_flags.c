#include "answer_flags.h"
#include "message.h"
#include "shared_rows.h"
#include <stddef.h>

enum { MOST_STOPS = 16 };

#define AT(member) .place = offsetof(answer_flags, member)

static const option_word chats[] = {{"chatml", "<|im_start|> and <|im_end|>, as Qwen has them"},
                                    {"llama3", "<|start_header_id|> and <|eot_id|>"},
                                    {NULL, NULL}};

const option answer_chat_options[] = {
    {ROW_CHOICE("chat", chat, "KIND",
                "the prompt is what a user says, written with the marks of this kind of chat"),
     .words = chats},
    {ROW_TEXT("system", system, "TEXT", "with --chat: what the system says first")},
    {.name = NULL}};

const option answer_options[] = {
    {ROW_COUNT32("tokens", tokens, 1, 1 << 24, "the most tokens of an answer"), .fallback = "200"},
    {ROW_FLOAT("temperature", temperature,
               "0: always the most probable token; higher values draw less probable ones, too"),
     .fallback = "0.8"},
    {ROW_COUNT32("top-k", top_k, 1, 1 << 24, "draw one of the N most probable tokens"),
     .fallback = "all"},
    {ROW_FLOAT("top-p", top_p,
               "draw one of the most probable tokens whose probabilities sum up to X"),
     .fallback = "1"},
    {ROW_FLOAT("repetition", repetition,
               "above 1: tokens of the text so far are less probable by this factor"),
     .fallback = "1"},
    {ROW_TEXTS("stop", stop, "TEXT", "an answer ends before this text; may be repeated")},
    {ROW_SEED(seed, "of all draws: the same seed gives the same answers")},
    {.name = NULL}};

const option answer_batch_options[] = {
    {ROW_COUNT32("batch", batch, 1, 4096, "answers that are computed at the same time"),
     .fallback = "32"},
    {.name = NULL}};

answer_flags answer_flags_usual(void) {
    qn_generate_options usual;
    qn_generate_options_init(&usual);
    return (answer_flags){.tokens = usual.tokens,
                          .seed = usual.seed,
                          .temperature = usual.temperature,
                          .top_p = usual.top_p,
                          .repetition = usual.repetition};
}

int answer_flags_check(const answer_flags *f) {
    return f->stop.count > MOST_STOPS
               ? message_usage("give at most 16 texts", "there are too many --stop")
               : -1;
}

qn_generate_options answer_flags_take(const answer_flags *f) {
    qn_generate_options options;
    qn_generate_options_init(&options);
    options.tokens = f->tokens;
    options.temperature = f->temperature;
    options.top_k = f->top_k;
    options.top_p = f->top_p;
    options.repetition = f->repetition;
    options.seed = f->seed;
    options.stop = f->stop.at;
    options.stops = f->stop.count;
    options.chat = f->chat;
    options.system = f->system;
    options.batch = f->batch;
    return options;
}

int answer_flags_given(const answer_flags *f) {
    const answer_flags usual = answer_flags_usual();
    return f->tokens != usual.tokens || f->seed != usual.seed || f->batch || f->top_k ||
           f->temperature < usual.temperature || f->temperature > usual.temperature ||
           f->top_p < usual.top_p || f->top_p > usual.top_p || f->repetition < usual.repetition ||
           f->repetition > usual.repetition || f->stop.count || f->chat || f->system;
}
