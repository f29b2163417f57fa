#include "serve/inference/refusal_words.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *from, *to;
} words[] = {{"the file has a header and no items", "the body has a header and no rows"},
             {"add the lines of items", "send a line for each row"},
             {"give a file whose columns hold what those of the training data hold",
              "send in each column what the training data has there"},
             {"with their names in the header", "with their names"}};

static void replace(char *text, size_t capacity) {
    char rest[sizeof(qn_error)];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *at = strstr(text, words[i].from);
        if (!at)
            continue;
        snprintf(rest, sizeof rest, "%s", at + strlen(words[i].from));
        snprintf(at, capacity - (size_t)(at - text), "%s%s", words[i].to, rest);
    }
}

/* Keeps the parts between semicolons that name no option. */
static void drop_options(char *remedy) {
    char *to = remedy;
    for (const char *from = remedy, *next; *from; from = next) {
        const char *end = strstr(from, "; ");
        const size_t size = end ? (size_t)(end - from) : strlen(from);
        next = from + size + (end ? 2 : 0);
        if (memchr(from, '`', size))
            continue;
        if (to > remedy)
            to = (char *)memcpy(to, "; ", 2) + 2;
        memmove(to, from, size);
        to += size;
    }
    *to = '\0';
}

void qn__refusal_words(qn_error *err) {
    const int had = err->remedy[0] != '\0';
    drop_options(err->remedy);
    replace(err->what, sizeof err->what);
    replace(err->remedy, sizeof err->remedy);
    if (strcmp(err->where, "the data") == 0 || err->where[0] == '`')
        err->where[0] = '\0';
    if (had && !err->remedy[0])
        qn__remedy(err, err->status, "send what the model was trained on, without the label");
}
