/* quern generate: a model of next tokens continues texts. */

#include "adapter.h"
#include "answer_flags.h"
#include "command.h"
#include "compute.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "paths.h"
#include "program.h"
#include "ranks.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <quern/convert.h>
#include <quern/files.h>
#include <quern/generate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct generate_flags {
    text_list prompt;
    const char *prompts, *out, *adapter;
    uint32_t answers;
    answer_flags answer;
    int log_probabilities, quiet, json;
    compute_flags compute;
    ranks_flags ranks;
} generate_flags;

#define AT(member) .place = offsetof(generate_flags, member)

static const option generate_options[] = {
    {.heading = "Prompts",
     ROW_TEXTS("prompt", prompt, "TEXT", "a text that the model continues; may be repeated")},
    {ROW_TEXT("prompts", prompts, "FILE",
              "a text in each line of this file; - is stdin; of FILE.jsonl each line is JSON with "
              "\"prompt\" or \"messages\"")},
    {.more = answer_chat_options, AT(answer)},

    {.heading = "Model", ROW_ADAPTER(adapter)},

    {.heading = "Answers", .more = answer_options, AT(answer)},
    {ROW_COUNT32("answers", answers, 1, 65536, "so many answers to each prompt"), .fallback = "1"},

    {.heading = "Output",
     ROW_OUTPUT(out, "FILE",
                "JSON with the prompts, answers, tokens and options, instead of texts on stdout")},
    {ROW_FLAG("logprobs", log_probabilities,
              "with -o\tFILE or --json: the logarithm of each token's probability")},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "one JSON object a line on stdout: answer, end")},

    {.heading = "Devices (they do not change the answers)", .more = compute_options, AT(compute)},
    {.more = answer_batch_options, AT(answer)},
    {.heading = RANKS_HEADING, .more = RANKS_OPTIONS_ALONE, AT(ranks)},
    {.name = NULL}};

/* ---------------------------------------------------------------------------------------- prompts
 */

typedef struct prompts {
    char **text;
    uint32_t *line; /* of the file, from 1 */
    uint32_t count, capacity;
} prompts;

/* 0: there is not enough memory. */
static int grow_prompts(prompts *p) {
    const uint32_t more = p->capacity ? 2 * p->capacity : 64;
    char **const text = realloc(p->text, more * sizeof *text);
    if (text)
        p->text = text;
    uint32_t *const line = text ? realloc(p->line, more * sizeof *line) : NULL;
    if (line)
        p->line = line;
    else
        return 0;
    p->capacity = more;
    return 1;
}

static int add_prompt(prompts *p, const char *text, size_t size, uint32_t line) {
    if (p->count == p->capacity && !grow_prompts(p))
        return message_fail(QN_MEMORY, "there is not enough memory for the prompts", "", "");
    char *own = malloc(size + 1);
    if (!own)
        return message_fail(QN_MEMORY, "there is not enough memory for the prompts", "", "");
    memcpy(own, text, size);
    own[size] = '\0';
    p->line[p->count] = line;
    p->text[p->count++] = own;
    return -1;
}

/* Whether the lines of the file are JSON, by its ending. */
static int are_lines(const char *path) {
    const char *format = qn_data_write_format(path);
    return format && strcmp(format, "json") == 0;
}

/* A line without its end. Empty lines in a file of JSON lines are skipped. */
static int add_line(prompts *p, const char *path, const char *text, size_t size, uint32_t line) {
    char where[300];
    if (line == 1 && size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3; /* the byte order mark of some editors */
        size -= 3;
    }
    size -= size > 0 && text[size - 1] == '\n';
    size -= size > 0 && text[size - 1] == '\r';
    snprintf(where, sizeof where, "%.250s, line %" PRIu32, path, line);
    if (memchr(text, '\0', size))
        return message_fail(QN_INPUT, "the line has a zero byte, so it is not text", where,
                            "give a text file with a prompt in each line");
    if (are_lines(path) && strspn(text, " \t\r\n") >= size)
        return -1;
    return add_prompt(p, text, size, line);
}

static int read_lines(prompts *p, const char *path, FILE *file) {
    char *line = NULL;
    size_t capacity = 0;
    uint32_t count = 0;
    int code = -1;
    for (ssize_t size; code < 0 && (size = getline(&line, &capacity, file)) >= 0;)
        code = add_line(p, path, line, (size_t)size, ++count);
    if (code < 0 && ferror(file))
        code = message_fail(QN_IO, "the prompts cannot be read", path,
                            "give a text with a prompt in each line");
    free(line);
    return code;
}

static int read_file(prompts *p, const char *path) {
    char *text = NULL;
    size_t size = 0;
    qn_error err;
    if (qn_file_read(path, UINT64_MAX, &text, &size, &err) != QN_OK)
        return message_error(&err);
    FILE *file = size > 0 ? fmemopen(text, size, "rb") : NULL;
    const int code = file       ? read_lines(p, path, file)
                     : size > 0 ? message_fail(QN_MEMORY, "there is not enough memory", path, "")
                                : -1;
    if (file)
        fclose(file);
    qn_file_bytes_free(text);
    return code;
}

static int read_prompts(prompts *p, const char *path) {
    const int code = strcmp(path, "-") == 0 ? read_lines(p, path, stdin) : read_file(p, path);
    if (code < 0 && p->count == 0)
        return message_fail(QN_INPUT, "the file has no prompts", path,
                            "write a prompt in each line");
    return code;
}

/* ----------------------------------------------------------------------------------------- output
 */

/* The bytes of a well-formed character of UTF-8 at `text`; 0: there is none. */
static size_t character_length(const char *text, size_t size) {
    const unsigned char *c = (const unsigned char *)text;
    const size_t length = c[0] < 0x80                   ? 1
                          : c[0] >= 0xC2 && c[0] < 0xE0 ? 2
                          : c[0] >= 0xE0 && c[0] < 0xF0 ? 3
                          : c[0] >= 0xF0 && c[0] < 0xF5 ? 4
                                                        : 0;
    if (length == 0 || length > size || (c[0] == 0xE0 && c[1] < 0xA0) ||
        (c[0] == 0xED && c[1] >= 0xA0) || (c[0] == 0xF0 && c[1] < 0x90) ||
        (c[0] == 0xF4 && c[1] >= 0x90))
        return 0;
    for (size_t k = 1; k < length; k++)
        if ((c[k] & 0xC0) != 0x80)
            return 0;
    return length;
}

/* What is not text is shown as U+FFFD. On a terminal, so are control characters: they could change
 * it. */
static void print_text(const char *text, size_t size) {
    const int terminal = isatty(STDOUT_FILENO);
    for (size_t at = 0, length; at < size; at += length) {
        const unsigned char c = (unsigned char)text[at];
        const int control = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
        length = character_length(text + at, size - at);
        if (length == 0 || (terminal && control))
            fputs("\xEF\xBF\xBD", stdout);
        else
            fwrite(text + at, 1, length, stdout);
        length = length ? length : 1;
    }
}

/* A text for JSON: as above, for free(). */
static char *clean_text(const char *text, size_t size) {
    char *clean = malloc(3 * size + 1), *to = clean;
    for (size_t at = 0, length; clean && at < size; at += length) {
        length = character_length(text + at, size - at);
        const int good = length > 0 && text[at];
        memcpy(to, good ? text + at : "\xEF\xBF\xBD", good ? length : 3);
        to += good ? length : 3;
        length = length ? length : 1;
    }
    if (clean)
        *to = '\0';
    return clean;
}

static const char *end_name(qn_answer_end end) {
    return end == QN_ANSWER_LENGTH ? "length" : end == QN_ANSWER_END ? "end" : "stop";
}

static void print_json(const prompts *p, const qn_answer *a, int lines) {
    char *text = clean_text(a->text, a->bytes);
    json_begin("answer");
    if (lines)
        json_value("line", p->text[a->prompt]);
    else
        json_text("prompt", p->text[a->prompt]);
    json_count("number", a->number);
    json_text("text", text);
    json_text("end", end_name(a->end));
    json_flag("slid", a->slid);
    json_open("tokens", '[');
    for (uint32_t i = 0; i < a->count; i++)
        json_count(NULL, a->tokens[i]);
    json_close(']');
    if (a->log_probabilities) {
        json_open("log_probabilities", '[');
        for (uint32_t i = 0; i < a->count; i++)
            json_number(NULL, (double)a->log_probabilities[i]);
        json_close(']');
    }
    json_end();
    free(text);
}

/* A generation and what of it was printed. */
typedef struct session_of_answers {
    const generate_flags *f;
    const prompts *p;
    qn_generator *g;
    uint32_t shown; /* complete answers that were printed */
    int numbers;    /* 1: texts are numbers of tokens, with a space between */
    size_t bytes;   /* of the next one */
    int begun;      /* 1: its prompt was printed */
    uint64_t tokens;
    int slid;
    double start, first, seconds; /* first: until each of the first answers had a token */
} answers;

static int to_stdout(const generate_flags *f) { return !f->out; }

/* Whether ranks share the answers: then they are printed when all are complete. */
static int is_shared(void) { return qn_cluster_ranks(ranks_cluster()) > 1; }

static void begin_text(answers *s, const qn_answer *a) {
    if (s->begun)
        return;
    if (s->shown > 0)
        printf("---\n");
    if (!s->f->answer.chat && !are_lines(s->f->prompts)) {
        const char *prompt = s->p->text[a->prompt];
        print_text(prompt, strlen(prompt));
        if (s->numbers)
            printf(" ");
    }
    s->begun = 1;
}

/* Prints what is new of the answer that is next, and whether it is complete. */
static int print_next(answers *s, const qn_answer *a) {
    const int complete = a->end != QN_ANSWER_GOES_ON;
    if (s->f->json || !to_stdout(s->f)) {
        if (complete && s->f->json)
            print_json(s->p, a, are_lines(s->f->prompts));
        return complete;
    }
    begin_text(s, a);
    print_text(a->text + s->bytes, a->bytes - s->bytes);
    s->bytes = a->bytes;
    if (complete)
        printf("\n");
    fflush(stdout);
    return complete;
}

static qn_status print_new(answers *s, qn_error *err) {
    while (s->shown < qn_generator_answers(s->g)) {
        qn_answer a = {.size = sizeof a};
        const qn_status status = qn_generator_answer(s->g, s->shown, &a, err);
        if (status != QN_OK)
            return status;
        if (a.count == 0 || !print_next(s, &a))
            return QN_OK;
        s->tokens += a.count;
        s->slid |= a.slid;
        s->shown++;
        s->bytes = 0;
        s->begun = 0;
    }
    return QN_OK;
}

static void tell(const answers *s) {
    char count[32], number[32], rate[16];
    const double speed = s->seconds > 0 ? (double)s->tokens / s->seconds : 0;
    if (s->slid)
        message_note("note: a text became longer than the model's context; then the model read its "
                     "end only");
    if (s->f->json) {
        json_begin("end");
        json_count("answers", s->shown);
        json_count("tokens", s->tokens);
        if (!is_shared())
            json_number("first_seconds", s->first);
        json_number("seconds", s->seconds);
        json_end();
    }
    if (s->f->json || s->f->quiet)
        return;
    FILE *to = to_stdout(s->f) ? stderr : stdout;
    fprintf(to, "%s answer%s, %s tokens%s%s, %.3f s, %s tokens/s\n", format_count(s->shown, number),
            s->shown == 1 ? "" : "s", format_count(s->tokens, count), s->f->out ? " in " : "",
            s->f->out ? s->f->out : "", s->seconds, format_rate(speed, rate));
}

/* The library counts prompts from 0; a user looks for a line of the file. */
static void name_line(const answers *s, qn_error *err) {
    char more[256];
    uint32_t prompt = 0;
    int end = 0;
    if (!s->f->prompts || sscanf(err->where, "prompt %" SCNu32 "%n", &prompt, &end) != 1 ||
        prompt >= s->p->count)
        return;
    snprintf(more, sizeof more, "%.255s", err->where + end);
    snprintf(err->where, sizeof err->where, "%.200s, line %" PRIu32 "%s", s->f->prompts,
             s->p->line[prompt], more);
}

static void tell_notes(void) {
    char text[512];
    while (qn_device_note(text, sizeof text))
        message_note("note: %s", text);
}

/* What one rank does with complete answers. */
static int finish(void *user) {
    answers *s = user;
    qn_error err = {0};
    int code;
    qn_status status = print_new(s, &err);
    if (status == QN_OK && s->f->out)
        status = qn_generator_write(s->g, s->f->out, &err);
    if (status != QN_OK)
        return ranks_unwritten(&err);
    if ((code = message_output(EXIT_DONE)) == EXIT_DONE)
        tell(s);
    return code;
}

static int generate(const generate_flags *f, const qn_model *model, const prompts *p,
                    const qn_generate_options *options) {
    answers s = {.f = f, .p = p, .numbers = !qn_model_tokenizer(model), .start = program_now()};
    qn_error err = {0};
    int more = 1;
    qn_status status =
        qn_generator_open(model, (const char *const *)p->text, p->count, options, &s.g, &err);
    while (status == QN_OK && more) {
        status = qn_generator_step(s.g, &more, &err);
        s.first = s.first > 0 ? s.first : program_now() - s.start;
        if (status == QN_OK && !is_shared())
            status = print_new(&s, &err);
    }
    if (status != QN_OK && s.begun)
        printf("\n");
    if (status != QN_OK)
        name_line(&s, &err);
    tell_notes();
    s.seconds = program_now() - s.start;
    const int code = status == QN_OK ? ranks_conclude(&err, finish, &s) : ranks_failed(&err);
    qn_generator_close(s.g);
    return code;
}

/* ---------------------------------------------------------------------------------------- command
 */

static int check_flags(const generate_flags *f, const char *model) {
    if (!f->prompt.count == !f->prompts)
        return message_usage(f->prompts ? "put all prompts into the file"
                                        : "add --prompt \"Once upon a time\", or --prompts FILE",
                             f->prompts ? "--prompt and --prompts both give prompts"
                                        : "a prompt is required");
    if (f->log_probabilities && !f->out && !f->json)
        return message_usage("add -o answers.json, or --json",
                             "--logprobs is for the output as JSON");
    if (f->json && f->quiet)
        return message_usage("leave one of them out", "--quiet does nothing with --json");
    if (is_shared() && f->prompts && strcmp(f->prompts, "-") == 0)
        return message_usage("name a file that each rank can read",
                             "--prompts - is for a single process");
    int code = answer_flags_check(&f->answer);
    if (code < 0)
        code = compute_check(&f->compute);
    paths files = {.count = 0};
    paths_add(&files, QN_FILE_READ, "MODEL", model);
    paths_add(&files, QN_FILE_READ, "--prompts",
              f->prompts && strcmp(f->prompts, "-") != 0 ? f->prompts : NULL);
    paths_add(&files, QN_FILE_WRITE, "-o", f->out);
    return code < 0 ? paths_check(&files, ranks_is_writer()) : code;
}

static int collect(const generate_flags *f, prompts *p) {
    int code = -1;
    for (uint32_t i = 0; i < f->prompt.count && code < 0; i++)
        code = add_prompt(p, f->prompt.at[i], strlen(f->prompt.at[i]), 0);
    return f->prompts ? read_prompts(p, f->prompts) : code;
}

static int generate_from(const generate_flags *f, const char *path) {
    qn_model *model = NULL;
    prompts p = {NULL};
    qn_error err = {0};
    qn_compute compute = compute_of(&f->compute);
    compute.cluster = ranks_cluster();
    qn_generate_options options = answer_flags_take(&f->answer);
    options.answers = f->answers;
    options.log_probabilities = f->log_probabilities;
    options.lines = are_lines(f->prompts);
    options.compute = &compute;
    int code = collect(f, &p);
    if (code < 0 && adapter_open(path, f->adapter, &model, &err) != QN_OK)
        code = message_error(&err);
    code = ranks_agree(code, NULL, 0, 0);
    if (code < 0)
        code = generate(f, model, &p, &options);
    qn_model_free(model);
    for (uint32_t i = 0; i < p.count; i++)
        free(p.text[i]);
    free(p.text);
    free(p.line);
    return code;
}

static int run(const command *self, int argc, char **argv) {
    arguments given;
    generate_flags f = {.answers = 1, .answer = answer_flags_usual()};
    qn_agreement same[] = {
        {sizeof *same, "the command", self->name, "start all ranks with the same command"},
        {sizeof *same, "-o", "", "start all ranks with the same options"},
        {sizeof *same, "--json", "", "start all ranks with the same options"}};
    int code = ranks_join(argc - 2, argv + 2, 0);
    if (code >= 0)
        return code;
    code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code < 0) {
        message_setup(self->name, f.quiet, f.json);
        code = check_flags(&f, given.operand[0]);
    }
    same[1].value = f.out ? "a file" : "none";
    same[2].value = f.json ? "given" : "not given";
    code = ranks_agree(code, same, sizeof same / sizeof *same, 1);
    if (code < 0)
        code = generate_from(&f, given.operand[0]);
    return ranks_leave(code);
}

const command generate_command = {
    .name = "generate",
    .summary = "let a model of next tokens continue a text",
    .usage = "quern generate MODEL (--prompt TEXT | --prompts FILE) [options]",
    .about =
        "Writes the prompt and what the model adds to it, token by token. The model is one of "
        "quern train --task next. An answer depends on the model, its prompt, the options and its "
        "number alone: not on other prompts, --batch, --devices or ranks. Several devices and "
        "ranks "
        "share the prompts by their measured speeds. A text that becomes longer than "
        "the model's context loses its beginning: the model reads at least the last half of it.",
    .operand = "MODEL",
    .options = generate_options,
    .examples = "quern generate plays.safetensors --prompt \"ROMEO:\" --tokens 500\n"
                "quern generate plays.safetensors --prompts lines.txt --top-k 40 -o answers.json\n"
                "quern generate chat.safetensors --chat chatml --prompt \"Who are you?\"",
    .run = run};
