#include "toml.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 1024 };

typedef struct reader {
    const char *at, *end, *path;
    uint32_t line;
    char *free; /* where the next text is put; there is always space (toml_read) */
    const char *table;
    toml_file *out;
    qn_error *err;
} reader;

__attribute__((format(printf, 3, 4))) static int refuse(reader *r, const char *remedy,
                                                        const char *format, ...) {
    va_list args;
    va_start(args, format);
    r->err->status = QN_INPUT;
    vsnprintf(r->err->what, sizeof r->err->what, format, args);
    va_end(args);
    snprintf(r->err->where, sizeof r->err->where, "%.400s, line %" PRIu32, r->path, r->line);
    snprintf(r->err->remedy, sizeof r->err->remedy, "%s", remedy);
    return 0;
}

/* ------------------------------------------------------------------ characters */

/* The byte `ahead` of the next one; 0 at the end, and there is no 0 in the text. */
static char peek(const reader *r, int ahead) {
    return r->end - r->at > ahead ? r->at[ahead] : '\0';
}

static int starts(const reader *r, const char *word) {
    const size_t size = strlen(word);
    return (size_t)(r->end - r->at) >= size && memcmp(r->at, word, size) == 0;
}

static void skip_blanks(reader *r) {
    while (peek(r, 0) == ' ' || peek(r, 0) == '\t')
        r->at++;
}

/* A line feed, which a carriage return may precede. */
static int take_newline(reader *r) {
    const int size = starts(r, "\r\n") ? 2 : peek(r, 0) == '\n';
    r->at += size;
    r->line += size > 0;
    return size > 0;
}

static int is_control(char c) { return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f; }

/* To the end of the line, if a comment begins. */
static int take_comment(reader *r) {
    if (peek(r, 0) != '#')
        return 1;
    while (r->at < r->end && peek(r, 0) != '\n' && !starts(r, "\r\n"))
        if (is_control(*r->at++))
            return refuse(r, "remove it", "there is a control character in a comment");
    return 1;
}

static int end_line(reader *r, const char *behind) {
    skip_blanks(r);
    if (!take_comment(r))
        return 0;
    return r->at == r->end || take_newline(r) ||
           refuse(r, "write each key on a line of its own", "there is more text after %s", behind);
}

/* The length of the UTF-8 sequence at `s`, or 0. */
static size_t sequence(const unsigned char *s, size_t left) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t size = s[0] < 0x80       ? 1
                        : s[0] >> 5 == 6  ? 2
                        : s[0] >> 4 == 14 ? 3
                        : s[0] >> 3 == 30 ? 4
                                          : 0;
    uint32_t code = size > 1 ? s[0] & (0x7fu >> size) : 0;
    if (size == 0 || size > left)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    return size > 1 && (code < least[size] || code > 0x10ffff || code >> 11 == 0x1b) ? 0 : size;
}

static int check_text(reader *r) {
    const char *begin = r->at;
    while (r->at < r->end) {
        const size_t size = sequence((const unsigned char *)r->at, (size_t)(r->end - r->at));
        if (size == 0)
            return refuse(r, "save the file as UTF-8", "the text is not UTF-8");
        if (*r->at == '\0')
            return refuse(r, "remove it", "there is a null character in the text");
        r->line += *r->at == '\n';
        r->at += size;
    }
    r->at = begin;
    r->line = 1;
    return 1;
}

/* ------------------------------------------------------------------ strings */

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static void put_code(reader *r, uint32_t code) {
    if (code < 0x80) {
        *r->free++ = (char)code;
        return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *r->free++ = (char)((more == 1 ? 0xc0u : more == 2 ? 0xe0u : 0xf0u) | code >> 6 * more);
    for (int i = more - 1; i >= 0; i--)
        *r->free++ = (char)(0x80u | (code >> 6 * i & 0x3fu));
}

/* \u00e9 or \U000000e9, after its letter. */
static int take_code(reader *r, int digits) {
    uint32_t code = 0;
    for (int i = 0; i < digits; i++) {
        const int digit = hex_digit(peek(r, 0));
        if (digit < 0)
            return refuse(r, "write \\u00e9, or the character itself",
                          "an escape has %d digits, not %d", i, digits);
        code = code << 4 | (uint32_t)digit;
        r->at++;
    }
    if (code == 0 || code > 0x10ffff || code >> 11 == 0x1b)
        return refuse(r, "write another character", "U+%04X cannot be in a text", (unsigned)code);
    put_code(r, code);
    return 1;
}

static int take_escape(reader *r) {
    static const char letters[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
    const char c = peek(r, 0), *known = c ? strchr(letters, c) : NULL;
    if (!c)
        return refuse(r, "close it with a quotation mark", "a text does not end");
    if (c == 'u' || c == 'U') {
        r->at++;
        return take_code(r, c == 'u' ? 4 : 8);
    }
    if (!known)
        return refuse(r, "write \\\\ for a backslash, or put the text in '...'",
                      "there is no escape \\%c",
                      (unsigned char)c < 0x80 && !is_control(c) ? c : '?');
    *r->free++ = meant[known - letters];
    r->at++;
    return 1;
}

/* "..." with escapes, or '...' without. */
static int take_string(reader *r, const char **out) {
    const char quote = *r->at++;
    *out = r->free;
    if (peek(r, 0) == quote && peek(r, 1) == quote)
        return refuse(r, "write it in one line, with \\n for its line ends",
                      "texts of several lines are not supported");
    while (peek(r, 0) != quote) {
        const char c = peek(r, 0);
        if (!c || c == '\n' || starts(r, "\r\n"))
            return refuse(r, "close it in its line", "a text does not end");
        if (is_control(c))
            return refuse(r, "write an escape such as \\t",
                          "there is a control character in a text");
        r->at++;
        if (c != '\\' || quote == '\'')
            *r->free++ = c;
        else if (!take_escape(r))
            return 0;
    }
    r->at++;
    *r->free++ = '\0';
    return 1;
}

static int is_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static int take_key(reader *r, const char **out) {
    skip_blanks(r);
    if (peek(r, 0) == '"' || peek(r, 0) == '\'') {
        if (!take_string(r, out))
            return 0;
    } else {
        *out = r->free;
        while (is_bare(peek(r, 0)))
            *r->free++ = *r->at++;
        if (r->free == *out)
            return refuse(r, "write NAME = VALUE, or [TABLE], or a comment after #",
                          "there is no key");
        *r->free++ = '\0';
    }
    skip_blanks(r);
    return peek(r, 0) != '.' ||
           refuse(r, "write a [TABLE] and the key below it", "keys with dots are not supported");
}

/* ------------------------------------------------------------------ numbers */

/* A run of digits of a base, with single underscores between them. Returns how many were put, or
 * 0. */
static int take_digits(reader *r, int base) {
    int count = 0;
    for (;; count++) {
        const int under = count > 0 && peek(r, 0) == '_';
        const int digit = hex_digit(peek(r, under));
        if (digit < 0 || digit >= base)
            return under ? 0 : count;
        *r->free++ = peek(r, under);
        r->at += under + 1;
    }
}

static int bad_number(reader *r) {
    return refuse(r, "write a number such as 12, -0.5 or 1e-3; put a text in \"...\"",
                  "there is no value, or it is malformed");
}

/* After 0x, 0o or 0b. */
static int take_based(reader *r, int base) {
    char *text = r->free;
    uint64_t value = 0;
    if (take_digits(r, base) == 0)
        return bad_number(r);
    for (const char *p = text; p < r->free; p++)
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)hex_digit(*p), &value))
            return refuse(r, "write a smaller one", "an integer has more than 64 bits");
    r->free = text + snprintf(text, 24, "%" PRIu64, value) + 1;
    return 1;
}

static int check_range(reader *r, const char *text) {
    const int negative = *text == '-';
    uint64_t value = 0;
    for (const char *p = text + negative; *p; p++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return refuse(r, "write a smaller one", "an integer has more than 64 bits");
    return !negative || value <= (uint64_t)1 << 63 ||
           refuse(r, "write a greater one", "an integer is less than -2^63");
}

/* A fraction and an exponent, where they are. */
static int take_rest(reader *r, toml_kind *kind) {
    if (peek(r, 0) == '.') {
        *kind = TOML_FLOAT;
        *r->free++ = *r->at++;
        if (take_digits(r, 10) == 0)
            return bad_number(r);
    }
    if (peek(r, 0) == 'e' || peek(r, 0) == 'E') {
        *kind = TOML_FLOAT;
        *r->free++ = *r->at++;
        if (peek(r, 0) == '+' || peek(r, 0) == '-')
            *r->free++ = *r->at++;
        if (take_digits(r, 10) == 0)
            return bad_number(r);
    }
    return 1;
}

static int take_number(reader *r, const char **out, toml_kind *kind) {
    *out = r->free;
    *kind = TOML_INTEGER;
    const char base = peek(r, 0) == '0' ? peek(r, 1) : '\0';
    if (base == 'x' || base == 'o' || base == 'b') {
        r->at += 2;
        return take_based(r, base == 'x' ? 16 : base == 'o' ? 8 : 2);
    }
    if (peek(r, 0) == '-')
        *r->free++ = *r->at++;
    else if (peek(r, 0) == '+')
        r->at++;
    if (starts(r, "inf") || starts(r, "nan"))
        return refuse(r, "write a finite number", "infinity and NaN are not supported");
    const char *digits = r->free;
    const int count = take_digits(r, 10);
    if ((count == 4 && peek(r, 0) == '-') || (count == 2 && peek(r, 0) == ':'))
        return refuse(r, "put it in \"...\"", "dates and times are not supported");
    if (count == 0 || (count > 1 && *digits == '0') || !take_rest(r, kind))
        return r->err->status == QN_OK ? bad_number(r) : 0;
    *r->free++ = '\0';
    return *kind == TOML_FLOAT || check_range(r, *out);
}

/* ------------------------------------------------------------------ values */

/* Blanks, comments and line ends, which an array may have between its parts. */
static int skip_lines(reader *r) {
    do {
        skip_blanks(r);
        if (!take_comment(r))
            return 0;
    } while (take_newline(r));
    return 1;
}

static const char integers_only[] = "write integers, such as [600, 800]";

static int take_array(reader *r, const char **out) {
    const char *number;
    toml_kind kind;
    *out = r->free;
    r->at++;
    for (int first = 1;; first = 0) {
        if (!skip_lines(r))
            return 0;
        if (peek(r, 0) == ']')
            break;
        if (!first)
            r->free[-1] = ' ';
        if (peek(r, 0) && strchr("[{\"'tf", peek(r, 0)))
            return refuse(r, integers_only, "only arrays of integers are supported");
        if (!take_number(r, &number, &kind))
            return 0;
        if (kind != TOML_INTEGER)
            return refuse(r, integers_only, "only arrays of integers are supported");
        if (!skip_lines(r))
            return 0;
        if (peek(r, 0) == ']')
            break;
        if (peek(r, 0) != ',')
            return refuse(r, "write [600, 800]", "an array does not go on with , or ]");
        r->at++;
    }
    r->at++;
    *r->free++ = '\0'; /* of an empty one, or a second one */
    return 1;
}

static int take_value(reader *r, toml_value *v) {
    skip_blanks(r);
    if (peek(r, 0) == '"' || peek(r, 0) == '\'') {
        v->kind = TOML_TEXT;
        return take_string(r, &v->text);
    }
    if (peek(r, 0) == '[') {
        v->kind = TOML_INTEGERS;
        return take_array(r, &v->text);
    }
    if (peek(r, 0) == '{')
        return refuse(r, "write a [TABLE] and its keys below it",
                      "tables in braces are not supported");
    if (starts(r, "true") || starts(r, "false")) {
        v->kind = TOML_BOOLEAN;
        v->text = starts(r, "true") ? "true" : "false";
        r->at += strlen(v->text);
        return 1;
    }
    return take_number(r, &v->text, &v->kind);
}

static int add(reader *r, const toml_value *v) {
    for (size_t i = 0; i < r->out->count; i++) {
        const toml_value *other = &r->out->at[i];
        if (strcmp(other->key, v->key) == 0 && strcmp(other->table, v->table) == 0) {
            r->line = v->line;
            return refuse(r, "remove one of them",
                          "\"%.100s\" is defined twice, first in line %" PRIu32, v->key,
                          other->line);
        }
    }
    if (r->out->count == MOST_VALUES)
        return refuse(r, "remove some", "the file has more than %d keys", MOST_VALUES);
    r->out->at[r->out->count++] = *v;
    return 1;
}

static int take_table(reader *r) {
    toml_value v = {.table = "", .kind = TOML_TABLE, .text = "", .line = r->line};
    r->at++;
    if (peek(r, 0) == '[')
        return refuse(r, "write [TABLE]", "arrays of tables are not supported");
    if (!take_key(r, &v.key))
        return 0;
    if (peek(r, 0) != ']')
        return refuse(r, "write [TABLE]", "the name of a table does not end with ]");
    r->at++;
    r->table = v.key;
    return end_line(r, "the name of a table") && add(r, &v);
}

static int take_line(reader *r) {
    toml_value v = {.table = r->table, .line = r->line};
    skip_blanks(r);
    if (r->at == r->end || peek(r, 0) == '#' || peek(r, 0) == '\n' || starts(r, "\r\n"))
        return end_line(r, "a comment");
    if (peek(r, 0) == '[')
        return take_table(r);
    if (!take_key(r, &v.key))
        return 0;
    if (peek(r, 0) != '=')
        return refuse(r, "write NAME = VALUE", "there is no = after \"%.100s\"", v.key);
    r->at++;
    return take_value(r, &v) && end_line(r, "a value") && add(r, &v);
}

void toml_release(toml_file *file) {
    free(file->at);
    free(file->buffer);
    *file = (toml_file){.at = NULL};
}

qn_status toml_read(const char *text, size_t size, const char *path, toml_file *out,
                    qn_error *err) {
    qn_error unused;
    reader r = {.at = text, .end = text + size, .path = path, .line = 1, .table = "", .out = out};
    r.err = err ? err : &unused;
    r.err->status = QN_OK;
    /* A text is at most as long as in the file, and its NUL takes the place of a quotation mark or
     * of what follows it. Hexadecimal numbers become a little longer in decimal. */
    *out = (toml_file){.at = calloc(MOST_VALUES, sizeof *out->at), .buffer = malloc(2 * size + 64)};
    r.free = out->buffer;
    if (!out->at || !out->buffer) {
        r.err->status = QN_MEMORY;
        snprintf(r.err->what, sizeof r.err->what, "out of memory");
        r.err->where[0] = r.err->remedy[0] = '\0';
    } else if (check_text(&r)) {
        while (r.at < r.end && take_line(&r))
            ;
    }
    if (r.err->status != QN_OK)
        toml_release(out);
    return r.err->status;
}
