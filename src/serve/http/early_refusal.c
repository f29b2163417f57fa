/* Requests that are refused before their body is read: their end is not clear, they may not be
 * here, or nothing is at their path. */
#include "base/text/text.h"
#include "serve/http/http_state.h"

#include <string.h>
#include <strings.h>

/* Headers that decide where a request ends. A proxy might read several of them in another way. */
typedef struct framing {
    int lengths, encodings, hosts, chunked, unclear;
    const char *coding; /* the first Content-Encoding; NULL: none */
    int codings;
    uint64_t length;
} framing;

/* Whether a proxy might read a header that the library has not understood: the name is not a word,
 * such as "Content-Length " before the colon, or has the text of a folded line at its end. */
static int is_unclear(const char *name) {
    static const char *const framed[] = {"Content-Length", "Transfer-Encoding"};
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (const char *c = name; *c; c++)
        if (!(*c >= '0' && *c <= '9') && !((*c | 32) >= 'a' && (*c | 32) <= 'z') &&
            !strchr(marks, *c))
            return 1;
    for (size_t i = 0; i < sizeof framed / sizeof *framed; i++) {
        const size_t size = strlen(framed[i]);
        if (strncasecmp(name, framed[i], size) == 0 && name[size])
            return 1;
    }
    return !*name;
}

/* Whether a NUL cuts the value off. The library ends it in the bytes as they came, where the line
 * ends: a line break follows, which it has overwritten or not. */
static int is_cut(const char *value) {
    const char after = value[strlen(value) + 1];
    return after != '\0' && after != '\r' && after != '\n';
}

static int count_header(void *user, int kind, const char *name, const char *value) {
    framing *f = user;
    (void)kind;
    value = value ? value : "";
    f->unclear |= is_unclear(name);
    if (strcasecmp(name, "Content-Length") == 0) {
        f->lengths++;
        if (is_cut(value) || !qn__parse_u64(value, strlen(value), &f->length))
            f->lengths = 2;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->encodings++;
        f->chunked = !is_cut(value) && strcasecmp(value, "chunked") == 0;
    } else if (strcasecmp(name, "Content-Encoding") == 0) {
        f->codings++;
        f->coding = value;
    } else if (strcasecmp(name, "Host") == 0)
        f->hosts++;
    return 1;
}

/* Every byte is looked at: the time says nothing about the token. */
static int is_token(const char *token, const char *given) {
    const size_t size = strlen(token), given_size = strlen(given);
    volatile unsigned differs = size != given_size;
    for (size_t i = 0; i < given_size; i++)
        differs |= (unsigned)(unsigned char)given[i] ^ (unsigned char)token[size ? i % size : 0];
    return !differs;
}

static int has_token(qn__request *r) {
    static const char scheme[] = "Bearer ";
    const char *token = r->http->options.token;
    const char *given = qn__request_header(r, "Authorization");
    if (!token || r->route->open)
        return 1;
    return given && strncasecmp(given, scheme, sizeof scheme - 1) == 0 &&
           is_token(token, given + sizeof scheme - 1);
}

static void refuse_token(qn__request *r) {
    qn__answer_header(r, "WWW-Authenticate", "Bearer");
    qn__answer_refusal(r, 401,
                       "this server needs a token: send the header \"Authorization: "
                       "Bearer TOKEN\"");
}

/* Whether an Origin such as "https://host:8080" is that of the address the request was sent to. */
static int is_own_origin(const char *origin, const char *host) {
    const char *name = strstr(origin, "://");
    return name && host && strcasecmp(name + 3, host) == 0;
}

/* A page of another site in the user's browser: it cannot read answers, but could unload models.
 * Browsers say the site only to servers with TLS or on this machine; they always say the origin. */
static int is_of_other_site(qn__request *r, const char *method) {
    const char *site = qn__request_header(r, "Sec-Fetch-Site");
    const char *origin = qn__request_header(r, "Origin");
    if (strcmp(method, "POST") != 0)
        return 0;
    if (site)
        return strcmp(site, "cross-site") == 0;
    return origin && !is_own_origin(origin, qn__request_header(r, "Host"));
}

static void refuse_path(qn__request *r, const char *allowed) {
    if (*allowed) {
        qn__answer_header(r, "Allow", allowed);
        qn__answer_refusal(r, 405, "this path takes %s, not %s", allowed, r->method);
    } else
        qn__answer_refusal(r, 404, "there is nothing at this path");
}

void qn__request_refuse_size(qn__request *r) {
    qn__answer_refusal(r, 413, "the body has more than %llu bytes",
                       (unsigned long long)r->http->options.most_body);
}

static void refuse_coding(qn__request *r) {
    qn__answer_header(r, "Accept-Encoding", "gzip, deflate");
    qn__answer_refusal(r, 415,
                       "this Content-Encoding is not taken: send the body plain, or as gzip or "
                       "deflate");
}

/* The first word of the query that the route does not have. */
typedef struct query_check {
    const char *has, *unknown;
} query_check;

/* Whether the word is one of a list with spaces between. */
static int is_listed(const char *word, const char *list) {
    const size_t size = strlen(word);
    for (const char *at = list; at && *at; at += strspn(at, " ")) {
        const size_t own = strcspn(at, " ");
        if (own == size && memcmp(at, word, size) == 0)
            return 1;
        at += own;
    }
    return 0;
}

static int check_word(void *user, int kind, const char *name, const char *value) {
    query_check *c = user;
    (void)kind, (void)value;
    if (!c->unknown && !is_listed(name, c->has))
        c->unknown = name;
    return 1;
}

/* A misspelt word would be ignored otherwise. */
static int refuse_query(qn__request *r) {
    query_check c = {r->route->query, NULL};
    if (strcmp(r->route->method, "POST") != 0)
        return 0;
    qn__mhd_functions.values(r->connection, QN__MHD_QUERY, check_word, &c);
    if (c.unknown)
        qn__answer_refusal(r, 400, "the query has \"%.60s\", which this path does not take: %s%s%s",
                           c.unknown, c.has ? "it takes \"" : "leave the query out",
                           c.has ? c.has : "", c.has ? "\"" : "");
    return c.unknown != NULL;
}

static int is_framed_badly(const framing *f, const char *version) {
    const int old = strcmp(version, "HTTP/1.0") == 0; /* it has neither chunks nor hosts */
    return f->unclear || f->lengths > 1 || f->encodings > 1 || (f->lengths && f->encodings) ||
           (f->encodings && (old || !f->chunked));
}

static int is_head_large(const qn__request *r) {
    const size_t *size = qn__mhd_functions.fact(r->connection, QN__MHD_HEAD);
    return size && *size > QN__HEAD_BYTES;
}

/* Refuses a head whose meaning is not clear. The connection ends, because the beginning of its next
 * request cannot be found. */
static int refuse_head(qn__request *r, const framing *f, const char *version) {
    const int framed = !is_framed_badly(f, version), large = is_head_large(r);
    const int hosts = f->hosts == 1 || (f->hosts == 0 && strcmp(version, "HTTP/1.0") == 0);
    if (framed && hosts && !large)
        return 0;
    qn__answer_header(r, "Connection", "close");
    if (large)
        qn__answer_refusal(r, 431, "the head of the request has more than %d bytes",
                           QN__HEAD_BYTES);
    else if (framed)
        qn__answer_refusal(r, 400, "the request needs exactly one header \"Host\"");
    else
        qn__answer_refusal(r, 400, "the headers do not say clearly where the request ends");
    return 1;
}

/* What the path, the token and the server's state refuse. */
static int refuse_place(qn__request *r, const char *method, const char *path) {
    char allowed[64];
    if (!qn__route_find(r->http, r, method, path, allowed))
        qn__answer_refusal(r, 503, "there is not enough memory");
    else if (!r->route)
        refuse_path(r, allowed);
    else if (!has_token(r))
        refuse_token(r);
    else if (is_of_other_site(r, method))
        qn__answer_refusal(r, 403, "pages of other sites may not send requests to this server");
    else if (atomic_load(&r->http->stopping))
        qn__answer_refusal(r, 503, "the server ends");
    else
        return refuse_query(r);
    return 1;
}

/* What is known of the body before it comes. */
static int refuse_body(qn__request *r, const framing *f) {
    if (f->codings > 1 || (f->coding && !qn__request_coding(r, f->coding)))
        refuse_coding(r);
    else if (f->length > r->http->options.most_body) {
        r->too_large = 1;
        qn__request_refuse_size(r);
    } else
        return 0;
    return 1;
}

int qn__request_refuse_early(qn__request *r, const char *method, const char *path,
                             const char *version) {
    framing f = {0};
    qn__mhd_functions.values(r->connection, QN__MHD_HEADERS, count_header, &f);
    r->brings_body = f.length > 0 || f.lengths > 1 || f.encodings > 0 || f.unclear;
    atomic_fetch_add(&r->references, 1); /* given up by the answer */
    if (refuse_head(r, &f, version) || refuse_place(r, method, path) || refuse_body(r, &f))
        return 1;
    atomic_fetch_sub(&r->references, 1);
    return 0;
}
