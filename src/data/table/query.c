#include "data/table/query.h"
#include <string.h>
#include <strings.h>

static const char remedy_order[] =
    "end `data.query` with ORDER BY and columns that tell all rows apart, such as ORDER BY id";

static qn_status refuse(const char *what, const char *path, const char *remedy, qn_error *err) {
    qn__fail(err, QN_USAGE, "%s", what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

static int is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (c & 0x80);
}

/* The end of a quoted text or name; a doubled quote ends one and begins the next, which is the
 * same. */
static const char *skip_quoted(const char *at, char quote) {
    const char *end = strchr(at + 1, quote);
    return end ? end + 1 : at + strlen(at);
}

/* The end of PostgreSQL's $tag$ ... $tag$; `at` + 1 where there is none. */
static const char *skip_dollars(const char *at) {
    char tag[66];
    size_t size = 1;
    while (is_letter(at[size]) && at[size] != '$' && size < sizeof tag - 2)
        size++;
    if (at[size] != '$')
        return at + 1;
    memcpy(tag, at, size + 1);
    tag[size + 1] = '\0';
    const char *end = strstr(at + size + 1, tag);
    return end ? end + size + 1 : at + strlen(at);
}

static const char *skip_comment(const char *at) {
    const char *end = at[0] == '-' ? strchr(at, '\n') : strstr(at + 2, "*/");
    return !end ? at + strlen(at) : at[0] == '-' ? end + 1 : end + 2;
}

/* The end of what begins at `at` and is neither a word nor a character that counts; else `at`. */
static const char *skip_rest(const char *at) {
    if (*at == '\'' || *at == '"' || *at == '`')
        return skip_quoted(at, *at);
    if (*at == '$')
        return skip_dollars(at);
    if (*at == '[') /* a name of SQLite, or PostgreSQL's index of an array */
        return skip_quoted(at, ']');
    if ((at[0] == '-' && at[1] == '-') || (at[0] == '/' && at[1] == '*'))
        return skip_comment(at);
    return at;
}

static int is_word(const char *at, size_t size, const char *word) {
    return size == strlen(word) && strncasecmp(at, word, size) == 0;
}

static int begins_query(const char *at, size_t size) {
    return is_word(at, size, "select") || is_word(at, size, "with") ||
           is_word(at, size, "values") || is_word(at, size, "table");
}

qn_status qn__query_check(const char *query, const char *path, qn_error *err) {
    int depth = 0, words = 0, order = 0, ordered = 0, ended = 0;
    for (const char *at = query, *next; *at; at = next) {
        next = skip_rest(at);
        if (next > at)
            continue;
        size_t size = 0;
        while (is_letter(at[size]))
            size++;
        next = at + (size ? size : 1);
        if (ended && !strchr(" \t\r\n;", *at))
            return refuse("the query has several statements", path, "give one SELECT", err);
        depth += (*at == '(') - (*at == ')');
        ended |= *at == ';';
        if (size == 0)
            continue;
        if (words++ == 0 && !begins_query(at, size))
            return refuse("the query is not a SELECT", path, "give one SELECT with ORDER BY", err);
        if (depth == 0 && order && is_word(at, size, "by"))
            ordered = 1;
        order = depth == 0 && is_word(at, size, "order");
    }
    if (words == 0)
        return refuse("the query is empty", path, "give one SELECT with ORDER BY", err);
    return ordered ? QN_OK
                   : refuse("the query has no ORDER BY outside parentheses, so the order of its "
                            "rows is not defined",
                            path, remedy_order, err);
}
