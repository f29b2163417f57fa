#include "data/table/token_names.h"

#include "base/digest/sha256.h"
#include <string.h>

enum { DIGITS = 64 };

static int is_ids(const char *text) { return strcmp(text, QN__TOKENS_IDS) == 0; }

const char *qn__tokens_digest(const char *text) {
    const char *space = text ? strchr(text, ' ') : NULL;
    if (!space || strspn(space + 1, "0123456789abcdef") != DIGITS)
        return NULL;
    const char *after = space + 1 + DIGITS;
    return *after == '\0' || strcmp(after, QN__TOKENS_WORDS) == 0 ? space + 1 : NULL;
}

int qn__tokens_are_words(const char *text) {
    const char *digest = qn__tokens_digest(text);
    return digest && digest[DIGITS] != '\0';
}

int qn__tokens_are_alike(const char *one, const char *other) {
    const char *digest = qn__tokens_digest(one);
    return digest && qn__tokens_digest(other)
               ? strncmp(one, other, (size_t)(digest - one) + DIGITS) == 0
               : strcmp(one, other) == 0;
}

int qn__tokens_are_known(const char *text) {
    const char *digest = qn__tokens_digest(text);
    const size_t kind = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    return is_ids(text) || (digest && kind > 0 && kind <= 16 && text + kind + 1 == digest);
}

int qn__tokens_are_of(const char *text, const char *tokenizer) {
    const char *digest = qn__tokens_digest(text);
    uint8_t own[32];
    char shown[65];
    qn__sha256_of(tokenizer, strlen(tokenizer), own);
    qn__hex(own, shown);
    return digest && strncmp(digest, shown, DIGITS) == 0;
}

/* Whether a tokenizer that a user names is of the kind of the model's. */
static int is_of_kind(const char *given, const char *expected) {
    const size_t size = strcspn(given, ":");
    if (strncmp(given, "file:", 5) == 0) /* whose digest tells */
        return 1;
    return strncmp(given, expected, size) == 0 &&
           (expected[size] == ' ' || (expected[size] == '\0' && given[size] == '\0'));
}

qn_status qn__tokens_choose(const char *given, const char *expected, const char **out,
                            qn_error *err) {
    *out = given ? given : expected;
    if (!given || !expected || is_of_kind(given, expected) || is_ids(given))
        return QN_OK;
    qn__fail(err, QN_USAGE,
             "the model was trained on tokens of the kind %.*s, and \"%.60s\" is "
             "asked for",
             (int)strcspn(expected, " "), expected, given);
    return qn__remedy(err, QN_USAGE, "leave `data.tokens` out: it is known from the model");
}
