#include "serve/access_log.h"

#include "base/text/text.h"

#include <time.h>

enum { SECOND_DIGITS = 6, MILLION = 1000000 };

static void add_time(qn__text *line) {
    struct timespec now;
    struct tm utc;
    char text[40];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    qn__text_add(line, "{\"time\": \"%s.%03ldZ\"", text, now.tv_nsec / MILLION);
}

static void add_word(qn__text *line, const char *key, const char *word) {
    qn__text_add(line, ", \"%s\": ", key);
    qn__text_add_json(line, word);
}

void qn__access_log(qn_note_fn note, void *user, const qn__http_done *d) {
    qn__text line = {0};
    add_time(&line);
    add_word(&line, "client", d->client);
    add_word(&line, "method", d->method);
    add_word(&line, "path", d->path);
    qn__text_add(&line, ", \"status\": %u", d->status);
    if (*d->model) {
        add_word(&line, "model", d->model);
        add_word(&line, "version", d->version);
    }
    qn__text_add(&line, ", \"received\": %llu, \"sent\": %llu", (unsigned long long)d->received,
                 (unsigned long long)d->sent);
    qn__text_add_number(&line, "seconds", SECOND_DIGITS, d->seconds);
    qn__text_add(&line, ", \"whole\": %s}", d->whole ? "true" : "false");
    if (!line.failed)
        note(user, line.data);
    qn__text_release(&line);
}
