#include "userkernel/language/user_token.h"

#include "base/memory.h"
#include <string.h>

typedef struct cutter {
    const char *text;
    uint32_t at, line;
    int line_begins; /* only blanks stand before `at` in its line */
    qn__user_tokens *out;
    uint32_t capacity;
} cutter;

void qn__user_tokens_release(qn__user_tokens *tokens) {
    qn__free(tokens->token);
    *tokens = (qn__user_tokens){0};
}

int qn__user_token_is(const qn__user_tokens *all, const qn__user_token *token, const char *word) {
    return token->size > 0 && strlen(word) == token->size &&
           memcmp(all->text + token->at, word, token->size) == 0;
}

static void place_at(const char *name, const char *text, uint32_t at, uint32_t line,
                     qn_error *err) {
    uint32_t begin = at;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    qn__at(err, "%s, line %u, column %u", name, (unsigned)line, (unsigned)(at - begin + 1));
}

void qn__user_token_place(const qn__user_tokens *all, const qn__user_token *token, qn_error *err) {
    place_at(all->name, all->text, token->at, token->line, err);
}

static qn_status refuse(const cutter *c, uint32_t at, const char *remedy, qn_error *err) {
    place_at(c->out->name, c->text, at, c->line, err);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static int is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

static int is_hexadecimal(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Sets *over: 1 if a comment was skipped at c->at. */
static qn_status skip_comment(cutter *c, int *over, qn_error *err) {
    const char *at = c->text + c->at;
    *over = 1;
    if (at[0] == '/' && at[1] == '/') {
        /* A line that ends with a backslash would continue the comment for a compiler. */
        c->at += (uint32_t)strcspn(at, "\n");
        if (c->text[c->at - 1] != '\\')
            return QN_OK;
        qn__fail(err, QN_INPUT,
                 "the comment ends with a backslash, so it goes on in the next line");
        return refuse(c, c->at - 1, "remove the backslash", err);
    }
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        if (!end) {
            qn__fail(err, QN_INPUT, "a comment is not closed");
            return refuse(c, c->at, "close it with */", err);
        }
        for (const char *s = at; s < end; s++)
            c->line += *s == '\n';
        c->at += (uint32_t)(end + 2 - at);
        return QN_OK;
    }
    *over = 0;
    return QN_OK;
}

/* The one line for the preprocessor that may stand there. */
static qn_status skip_include(cutter *c, qn_error *err) {
    static const char header[] = "<quern/kernel_file.h>";
    const char *at = c->text + c->at + 1;
    at += strspn(at, " \t");
    if (strncmp(at, "include", 7) == 0) {
        at += 7;
        at += strspn(at, " \t");
        if (strncmp(at, header, sizeof header - 1) == 0) {
            at += sizeof header - 1;
            at += strspn(at, " \t\r");
            if (*at == '\n' || *at == '\0') {
                c->at = (uint32_t)(at - c->text);
                return QN_OK;
            }
        }
    }
    qn__fail(err, QN_INPUT, "a kernel cannot contain preprocessor lines");
    return refuse(c, c->at,
                  "only #include <quern/kernel_file.h> may stand there; write a constant as static "
                  "const double NAME = 0.5;",
                  err);
}

void *qn__user_one_more(void *from, uint32_t count, uint32_t *capacity, size_t size, int *failed) {
    if (count < *capacity)
        return from;
    const uint32_t more = *capacity > 0 ? 2 * *capacity : 64;
    void *to = qn__alloc(more, size, NULL);
    if (!to) {
        *failed = 1;
        return from;
    }
    if (from)
        memcpy(to, from, count * size);
    qn__free(from);
    *capacity = more;
    return to;
}

static qn_status add(cutter *c, qn__user_token_kind kind, uint32_t size, qn_error *err) {
    qn__user_tokens *o = c->out;
    int failed = 0;
    o->token = qn__user_one_more(o->token, o->count, &c->capacity, sizeof *o->token, &failed);
    if (failed)
        return qn__fail_memory(err, o->count, 2 * sizeof *o->token);
    o->token[o->count++] = (qn__user_token){kind, c->at, size, c->line};
    c->at += size;
    return QN_OK;
}

static uint32_t digits(const char *at, int hexadecimal) {
    uint32_t n = 0;
    while (hexadecimal ? is_hexadecimal(at[n]) : is_digit(at[n]))
        n++;
    return n;
}

/* Digits with a point and an exponent; *real: there was one of them. 0: it is not a number. */
static uint32_t number_length(const char *at, int *real) {
    const int hexadecimal = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    uint32_t n = hexadecimal ? 2 : 0;
    const uint32_t before = digits(at + n, hexadecimal);
    uint32_t after = 0;
    n += before;
    *real = 0;
    if (at[n] == '.') {
        *real = 1;
        after = digits(at + n + 1, hexadecimal);
        n += 1 + after;
    }
    if (before + after == 0)
        return 0;
    const char mark = at[n];
    if (hexadecimal ? mark == 'p' || mark == 'P' : mark == 'e' || mark == 'E') {
        const uint32_t sign = at[n + 1] == '+' || at[n + 1] == '-';
        const uint32_t exponent = digits(at + n + 1 + sign, 0);
        *real = 1;
        return exponent > 0 && exponent < 6 ? n + 1 + sign + exponent : 0;
    }
    return hexadecimal && *real ? 0 : n;
}

static qn_status cut_number(cutter *c, qn_error *err) {
    int real;
    const char *at = c->text + c->at;
    uint32_t size = number_length(at, &real), letters = 0;
    while (is_letter(at[size + letters]) || is_digit(at[size + letters]) ||
           at[size + letters] == '.')
        letters++;
    const char *more = at + size;
    const int fits = letters == 0 || (real ? letters == 1 && (*more == 'f' || *more == 'F')
                                           : (letters == 1 && (*more == 'u' || *more == 'U')) ||
                                                 (letters == 2 && strncmp(more, "ll", 2) == 0) ||
                                                 (letters == 2 && strncmp(more, "LL", 2) == 0) ||
                                                 (letters == 3 && strncmp(more, "ull", 3) == 0) ||
                                                 (letters == 3 && strncmp(more, "ULL", 3) == 0));
    const int octal = !real && size > 1 && at[0] == '0' && is_digit(at[1]);
    if (size > 0 && size < QN__USER_NAME_MAX && fits && !octal)
        return add(c, real ? QN__USER_REAL : QN__USER_INTEGER, size + letters, err);
    qn__fail(err, QN_INPUT, "\"%.*s\" is not a number that a kernel can contain",
             (int)(size + letters < 60 ? size + letters : 60), at);
    return refuse(c, c->at,
                  octal ? "a number that begins with 0 is octal in C: write it without the 0"
                        : "write 12, 12u, 12ll, 0xFF, 0.5, 1e-3, 0.5f or 0x1p-3",
                  err);
}

static qn_status cut_name(cutter *c, qn_error *err) {
    const char *at = c->text + c->at;
    uint32_t size = 0;
    while (is_letter(at[size]) || is_digit(at[size]))
        size++;
    if (size <= QN__USER_NAME_MAX)
        return add(c, QN__USER_NAME, size, err);
    qn__fail(err, QN_INPUT, "a name has more than %d characters", QN__USER_NAME_MAX);
    return refuse(c, c->at, "give it a shorter one", err);
}

static qn_status cut_sign(cutter *c, qn_error *err) {
    static const char *const signs[] = {
        "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++",
        "--",  "<<",  ">>", "<=", ">=", "==", "!=", "&&", "||", "->"};
    static const char single[] = "+-*/%&|^~!<>=?:;,.(){}[]";
    const char *at = c->text + c->at;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strncmp(at, signs[i], strlen(signs[i])) == 0)
            return add(c, QN__USER_SIGN, (uint32_t)strlen(signs[i]), err);
    if (strchr(single, *at))
        return add(c, QN__USER_SIGN, 1, err);
    if (*at == '"' || *at == '\'')
        qn__fail(err, QN_INPUT, "a kernel cannot contain strings or character constants");
    else if (*at == '\\')
        qn__fail(err, QN_INPUT, "a kernel cannot join lines with a backslash");
    else
        qn__fail(err, QN_INPUT, "this character is not part of C");
    return refuse(c, c->at, "remove it", err);
}

static qn_status cut_one(cutter *c, qn_error *err) {
    const char *at = c->text + c->at;
    const int begins = c->line_begins;
    int over;
    qn_status status = skip_comment(c, &over, err);
    if (status != QN_OK || over)
        return status;
    if (*at == '\n' || strchr(" \t\r\f\v", *at)) {
        c->line += *at == '\n';
        c->line_begins = *at == '\n' || begins;
        c->at++;
        return QN_OK;
    }
    if (*at == '#' && begins)
        return skip_include(c, err);
    c->line_begins = 0;
    if (is_letter(*at))
        return cut_name(c, err);
    return is_digit(*at) || (*at == '.' && is_digit(at[1])) ? cut_number(c, err) : cut_sign(c, err);
}

qn_status qn__user_tokens_read(const char *text, const char *name, qn__user_tokens *out,
                               qn_error *err) {
    cutter c = {.text = text, .line = 1, .line_begins = 1, .out = out};
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) /* the byte order mark of some editors */
        c.at = 3;
    qn_status status = QN_OK;
    *out = (qn__user_tokens){.text = text, .name = name};
    if (strlen(text) > QN__USER_TEXT_MAX) {
        qn__fail(err, QN_INPUT, "the kernel's text has more than %d bytes", QN__USER_TEXT_MAX);
        qn__at(err, "%s", name);
        return qn__remedy(err, QN_INPUT,
                          "check that the file is a kernel, or divide it in several");
    }
    while (status == QN_OK && text[c.at])
        status = cut_one(&c, err);
    if (status == QN_OK)
        status = add(&c, QN__USER_END, 0, err);
    if (status != QN_OK)
        qn__user_tokens_release(out);
    return status;
}
