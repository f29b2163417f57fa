#include "model/recipe/ready_text.h"

#include "model/recipe/defaults.h"
#include <string.h>

/* A part of the body, with the number of tokens for each "$V". */
static void add_part(const char *part, uint32_t tokens, qn__text *text) {
    for (const char *mark; (mark = strstr(part, "$V")) != NULL; part = mark + 2)
        qn__text_add(text, "%.*s%u", (int)(mark - part), part, tokens);
    qn__text_add(text, "%s", part);
}

void qn__ready_text(const qn__ready *ready, const qn__labels_like *labels, qn__text *text) {
    char last[QN__DEFAULT_LAST_CAPACITY];
    const int segments = labels->task == QN__TASK_CLASSIFY && qn__ready_segments(ready);
    qn__default_last(segments ? QN__TASK_SEGMENT : labels->task, labels->loss, labels->classes,
                     last);
    for (size_t i = 0; i < sizeof ready->body / sizeof *ready->body && ready->body[i]; ++i)
        add_part(ready->body[i], labels->tokens ? labels->tokens : ready->tokens, text);
    if (!ready->whole)
        qn__text_add(text, "; %s", last);
}
