#include "serve/watch/watch_prompts.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/text/text.h"
#include <string.h>

/* Of one file: so many files that wait have room in the service. */
enum { MOST_PROMPTS = 2048 };

const char *qn__watch_end_name(qn_answer_end end) {
    return end == QN_ANSWER_LENGTH ? "length" : end == QN_ANSWER_END ? "end" : "stop";
}

/* ------------------------------------------------------------------------------------- reading */

static qn_status refuse(const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static int is_line_end(char c) { return c == '\n' || c == '\r'; }

/* One prompt, which ends where its line does. */
static void add_prompt(qn__watch_prompts *p, char *text, size_t size) {
    while (size > 0 && is_line_end(text[size - 1]))
        --size;
    text[size] = '\0';
    p->prompt[p->count++] = (qn__text_prompt){.text = text};
}

/* Each line of JSON. Returns 0 where there are too many. */
static int add_lines(qn__watch_prompts *p, char *text, size_t size) {
    for (char *end = text + size, *next; text < end; text = next) {
        char *line_end = memchr(text, '\n', (size_t)(end - text));
        next = line_end ? line_end + 1 : end;
        if (strspn(text, " \t\r") >= (size_t)((line_end ? line_end : end) - text))
            continue;
        if (p->count == MOST_PROMPTS)
            return 0;
        add_prompt(p, text, (size_t)((line_end ? line_end : end) - text));
    }
    return 1;
}

/* No fewer than there are prompts. */
static uint64_t count_lines(const qn__watch_prompts *p, size_t size) {
    uint64_t lines = 1;
    for (size_t k = 0; p->lines && k < size && lines < MOST_PROMPTS; ++k)
        lines += p->bytes[k] == '\n';
    return lines;
}

static qn_status read_prompts(qn__watch_prompts *p, const char *bytes, size_t size, qn_error *err) {
    p->bytes = qn__copy_unquoted(bytes, size, 0, err);
    p->prompt = p->bytes ? qn__alloc(count_lines(p, size), sizeof *p->prompt, err) : NULL;
    if (!p->prompt)
        return QN_MEMORY;
    if (!p->lines)
        add_prompt(p, p->bytes, size);
    else if (!add_lines(p, p->bytes, size))
        return refuse("the file has more than 2,048 prompts",
                      "watch the file itself, or write several", err);
    if (p->count == 0)
        return refuse("the file has no prompts", "write an object of JSON in each line", err);
    p->answer = qn__alloc(p->count, sizeof *p->answer, err);
    return p->answer ? QN_OK : QN_MEMORY;
}

qn_status qn__watch_prompts_read(const char *bytes, size_t size, int lines, qn__watch_prompts **out,
                                 qn_error *err) {
    static const char mark[] = "\xef\xbb\xbf";
    const size_t before = size >= 3 && memcmp(bytes, mark, 3) == 0 ? 3 : 0;
    *out = NULL;
    if (size > 0 && memchr(bytes, '\0', size))
        return refuse("the prompt has a zero byte, so it is not text", "give a text file", err);
    qn__watch_prompts *p = qn__alloc(1, sizeof *p, err);
    if (!p)
        return QN_MEMORY;
    p->lines = lines;
    const qn_status status = read_prompts(p, bytes + before, size - before, err);
    if (status == QN_OK)
        *out = p;
    else
        qn__watch_prompts_free(p);
    return status;
}

void qn__watch_prompts_free(qn__watch_prompts *p) {
    if (!p)
        return;
    for (uint32_t i = 0; p->answer && i < p->count; ++i)
        qn__free(p->answer[i].text);
    qn__free(p->answer);
    qn__free(p->prompt);
    qn__free(p->bytes);
    qn__free(p);
}

/* ------------------------------------------------------------------------------------- answers */

static void keep(qn__watch_prompts *p, const qn_answer *a) {
    qn__text text = {0};
    qn__text_add(&text, "%s", "");
    for (size_t at = 0, length; at < a->bytes; at += length ? length : 1) {
        length = a->text[at] ? qn__utf8_length(a->text + at, a->bytes - at) : 0;
        if (length > 0)
            qn__text_add_bytes(&text, a->text + at, length);
        else
            qn__text_add(&text, "\xEF\xBF\xBD");
    }
    p->answer[a->prompt] = (qn__watch_text){qn__text_take(&text, NULL), a->end};
    p->failed |= !p->answer[a->prompt].text;
}

/* A member of qn__text_request. */
static void tell(void *user, const qn__text_news *news) {
    qn__watch_prompts *p = user;
    qn_error err;
    if (news->answer) {
        if (news->answer->end != QN_ANSWER_GOES_ON)
            keep(p, news->answer);
        return;
    }
    if (p->failed)
        qn__fail_memory(&err, 1, 1 << 20);
    p->done(p->user, p->failed ? &err : news->failure);
}

qn_status qn__watch_prompts_ask(qn__texts *texts, const qn_generate_options *options,
                                qn__watch_prompts *p, qn__watch_asked *done, void *user,
                                qn_error *err) {
    qn_generate_options own = *options;
    own.lines = p->lines;
    p->done = done;
    p->user = user;
    const qn__text_request request = {
        .options = &own, .prompt = p->prompt, .prompts = p->count, .tell = tell, .user = p};
    const qn_status status = qn__texts_submit(texts, &request, NULL, err);
    if (status != QN_USAGE && status != QN_FORMAT)
        return status;
    err->status = QN_INPUT;
    return QN_INPUT;
}
