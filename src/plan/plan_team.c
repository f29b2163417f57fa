/* The text that describes a team. */
#include "plan/plan_team.h"

#include "base/memory.h"
#include "base/text/text.h"
#include <stdio.h>
#include <string.h>

enum { MOST_COPIES = QN__PLAN_RANKS };

/* A tokenizer. The current token is `size` bytes at text + at. A bracket, bar, plus, star or
 * semicolon is a token of its own; at the end of the text the token is empty. */
typedef struct parser {
    qn__plan_team *team;
    const qn__plan_subject *subject;
    const char *text;
    size_t at, size;
    qn_error *err;
} parser;

/* ------------------------------------------------------------------------------------- the team */

qn_status qn__plan_team_create(qn__plan_team *t, qn_error *err) {
    memset(t, 0, sizeof *t);
    t->device = qn__alloc(QN__PLAN_DEVICES, sizeof *t->device, err);
    t->rank = qn__alloc(QN__PLAN_RANKS, sizeof *t->rank, err);
    t->host = qn__alloc(QN__PLAN_RANKS, sizeof *t->host, err);
    t->event = qn__alloc(QN__PLAN_EVENTS, sizeof *t->event, err);
    if (t->device && t->rank && t->host && t->event)
        return QN_OK;
    qn__plan_team_release(t);
    return QN_MEMORY;
}

void qn__plan_team_release(qn__plan_team *t) {
    qn__free(t->device);
    qn__free(t->rank);
    qn__free(t->host);
    qn__free(t->event);
    memset(t, 0, sizeof *t);
}

uint32_t qn__plan_team_ranks(const qn__plan_team *t) {
    uint32_t ranks = 0;
    for (uint32_t h = 0; h < t->hosts; ++h)
        ranks += t->host[h].copies * t->host[h].count;
    return ranks;
}

uint32_t qn__plan_team_hosts(const qn__plan_team *t) {
    uint32_t hosts = 0;
    for (uint32_t h = 0; h < t->hosts; ++h)
        hosts += t->host[h].copies;
    return hosts;
}

/* ------------------------------------------------------------------------------------ the words */

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static int is_mark(char c) { return c != '\0' && strchr("()|+*;", c) != NULL; }

static void next_word(parser *p) {
    size_t at = p->at + p->size;
    while (is_space(p->text[at]))
        ++at;
    p->at = at;
    p->size = 0;
    if (is_mark(p->text[at])) {
        p->size = 1;
        return;
    }
    for (char c = p->text[at]; c != '\0' && !is_mark(c) && !is_space(c); c = p->text[at + p->size])
        ++p->size;
}

static int is_word(const parser *p, const char *word) {
    return p->size == strlen(word) && memcmp(p->text + p->at, word, p->size) == 0;
}

static int take(parser *p, const char *word) {
    if (!is_word(p, word))
        return 0;
    next_word(p);
    return 1;
}

static qn_status fail_at(const parser *p, const char *what, const char *remedy) {
    const int some = p->size > 0;
    qn__fail(p->err, QN_USAGE, "%s%s%.*s%s", what, some ? ", not \"" : ": the text ends here",
             some ? (int)(p->size < 60 ? p->size : 60) : 0, p->text + p->at, some ? "\"" : "");
    qn__point_at(p->err, "team", p->text, p->at);
    return qn__remedy(p->err, QN_USAGE, "%s", remedy);
}

/* An error at the token at byte `at`, whose value the caller refused. */
static qn_status fail_back(parser *p, size_t at, size_t size, const char *what,
                           const char *remedy) {
    p->at = at;
    p->size = size;
    return fail_at(p, what, remedy);
}

/* ---------------------------------------------------------------------------------- the numbers */

typedef struct unit {
    const char *name;
    double value;
} unit;

static const unit plain[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {NULL, 0}};
static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                             {"min", 60},  {"h", 3600},  {NULL, 0}};
static const unit speeds[] = {
    {"B/s", 1},       {"kB/s", 1e3},       {"MB/s", 1e6},       {"GB/s", 1e9},       {"TB/s", 1e12},
    {"bit/s", 0.125}, {"kbit/s", 0.125e3}, {"Mbit/s", 0.125e6}, {"Gbit/s", 0.125e9}, {NULL, 0}};
static const unit parts[] = {{"%", 0.01}, {NULL, 0}};
static const unit sizes[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {NULL, 0}};
static const unit watts[] = {{"W", 1}, {"kW", 1e3}, {NULL, 0}};
static const unit prices[] = {{"/h", 1}, {NULL, 0}};

/* A number with its unit, such as "60k" or "50us", between bounds. */
static int read_number(const char *word, size_t size, const unit *units, double *out) {
    float number;
    size_t digits = 0;
    while (digits < size && strchr("0123456789.", word[digits]))
        ++digits;
    if (digits == 0 || !qn__parse_float(word, digits, &number))
        return 0;
    for (; units->name; ++units)
        if (strlen(units->name) == size - digits &&
            memcmp(units->name, word + digits, size - digits) == 0) {
            *out = (double)number * units->value;
            return *out <= 1e15;
        }
    return 0;
}

static qn_status number(parser *p, const unit *units, const char *what, const char *remedy,
                        double *out) {
    if (!read_number(p->text + p->at, p->size, units, out))
        return fail_at(p, what, remedy);
    next_word(p);
    return QN_OK;
}

/* The same, but not 0. */
static qn_status above_zero(parser *p, const unit *units, const char *what, const char *remedy,
                            double *out) {
    const size_t at = p->at, size = p->size;
    const qn_status status = number(p, units, what, remedy, out);
    if (status == QN_OK && !(*out > 0))
        return fail_back(p, at, size, what, remedy);
    return status;
}

/* "4*", or nothing for 1. */
static qn_status copies(parser *p, uint32_t *out) {
    const size_t at = p->at, size = p->size;
    uint64_t value;
    *out = 1;
    if (size == 0 || p->text[at] < '0' || p->text[at] > '9')
        return QN_OK;
    next_word(p);
    if (!is_word(p, "*"))
        return fail_at(p, "a number of copies needs a star after it",
                       "write it as in 4*host(cpu 60k)");
    if (!qn__parse_u64(p->text + at, size, &value) || value < 1 || value > MOST_COPIES)
        return fail_back(p, at, size, "expected a number of copies here",
                         "it is a whole number from 1 to 1024");
    *out = (uint32_t)value;
    next_word(p);
    return QN_OK;
}

/* ---------------------------------------------------------------------------------- the devices */

static const char device_help[] =
    "a device is a name and the items a second that it trains, such as cpu 60k or gpu 400k start "
    "50us";

static const char power_help[] = "write watts, as in gpu 400k power 300W idle 60W";

static qn_status device_name(parser *p, qn__plan_device *d) {
    if (p->size == 0 || is_mark(p->text[p->at]))
        return fail_at(p, "expected a device here", device_help);
    if (p->size >= sizeof d->name)
        return fail_at(p, "a device's name has at most 31 letters", device_help);
    snprintf(d->name, sizeof d->name, "%.*s", (int)p->size, p->text + p->at);
    next_word(p);
    return QN_OK;
}

static qn_status device_details(parser *p, qn__plan_device *d) {
    qn_status status = QN_OK;
    for (;;) {
        const size_t at = p->at, size = p->size;
        if (take(p, "start"))
            status = number(p, times, "the start of a call is a time",
                            "write it with its unit, as in start 50us", &d->start);
        else if (take(p, "noise"))
            status = number(p, parts, "noise is a part of a call's time",
                            "write it in percent, as in noise 5%", &d->noise);
        else if (take(p, "power"))
            status = above_zero(p, watts, "a device's power is in watts", power_help, &d->power);
        else if (take(p, "idle"))
            status = number(p, watts, "a waiting device's power is in watts", power_help, &d->idle);
        else
            return QN_OK;
        if (status == QN_OK && d->noise > 0.9)
            return fail_back(p, at, size, "noise is at most 90%", "write noise 5%");
        if (status != QN_OK)
            return status;
    }
}

/* "2*gpu 400k start 50us" */
static qn_status devices(parser *p, qn__plan_rank *rank) {
    static const char too_many_help[] = "a rank has at most 64: give the others to another rank, "
                                        "with a bar between them";
    qn__plan_device d = {.rate = 0};
    uint32_t count;
    const size_t at = p->at, size = p->size;
    qn_status status = copies(p, &count);
    if (status == QN_OK)
        status = device_name(p, &d);
    if (status == QN_OK)
        status = above_zero(p, plain, "the device's rate is a number of items a second",
                            device_help, &d.rate);
    if (status == QN_OK)
        status = device_details(p, &d);
    if (status == QN_OK && rank->count + count > QN__MAX_WORKERS)
        return fail_back(p, at, size, "a rank cannot have so many devices", too_many_help);
    for (uint32_t i = 0; i < count && status == QN_OK; ++i) {
        qn__plan_device *place = qn__plan_add_device(p->team, p->err);
        if (!place)
            return QN_USAGE;
        *place = d;
        ++rank->count;
    }
    return status;
}

/* ------------------------------------------------------------------------------------ the hosts */

static int ends_with(const char *text, size_t size, const char *ending) {
    const size_t length = strlen(ending);
    return size > length && memcmp(text + size - length, ending, length) == 0;
}

/* "cpu 60k + gpu 400k" */
static qn_status one_rank(parser *p) {
    qn__plan_rank *rank = qn__plan_add_rank(p->team, p->err);
    if (!rank)
        return QN_USAGE;
    qn_status status = devices(p, rank);
    while (status == QN_OK && take(p, "+"))
        status = devices(p, rank);
    return status;
}

/* After the opening bracket. */
static qn_status host_of_ranks(parser *p, size_t begin, uint32_t count) {
    qn__plan_host *host = qn__plan_add_host(p->team, p->err);
    if (!host)
        return QN_USAGE;
    host->copies = count;
    qn_status status;
    do {
        status = one_rank(p);
        ++host->count;
    } while (status == QN_OK && take(p, "|"));
    if (status == QN_OK && !is_word(p, ")"))
        return fail_at(p, "after a device comes +, | or a closing bracket",
                       "+ joins devices of a rank, | ranks of a host");
    const size_t length = p->at + 1 - begin;
    snprintf(host->name, sizeof host->name, "%.*s%s", (int)(length < 60 ? length : 56),
             p->text + begin, length < 60 ? "" : "...)");
    return status;
}

/* "host(a.json)": a measured machine. */
static qn_status host_of_file(parser *p, uint32_t count) {
    char path[1024];
    if (p->size >= sizeof path)
        return fail_at(p, "the file's name is too long", "give a shorter one");
    memcpy(path, p->text + p->at, p->size);
    path[p->size] = '\0';
    const qn_status status = qn__plan_team_measured(p->team, path, count, p->subject, p->err);
    if (status == QN_OK)
        next_word(p);
    if (status == QN_OK && !is_word(p, ")"))
        return fail_at(p, "expected a closing bracket after the file",
                       "write it as in host(a.json)");
    return status;
}

/* "power 80W price 2.5/h" after the bracket. */
static qn_status host_details(parser *p, qn__plan_host *host) {
    qn_status status = QN_OK;
    while (status == QN_OK) {
        if (take(p, "power"))
            status =
                above_zero(p, watts, "a host's power is in watts",
                           "write what it takes beside its devices, as in power 80W", &host->power);
        else if (take(p, "price"))
            status = number(p, prices, "a host's price is of an hour",
                            "write it in any currency, as in price 2.5/h", &host->price);
        else
            return QN_OK;
    }
    return status;
}

static qn_status one_host(parser *p) {
    const size_t at = p->at, size = p->size;
    uint32_t count;
    qn_status status = copies(p, &count);
    if (status != QN_OK)
        return status;
    const size_t begin = p->at;
    if (!take(p, "host"))
        return fail_at(p, "expected host, net, memory, sums, parts, slow or die here",
                       "write hosts as in 4*host(cpu 60k) and the rest after a semicolon, as in ; "
                       "net 50us 1GB/s; the name of a measured machine's file "
                       "ends in .json");
    if (!take(p, "("))
        return fail_at(p, "expected a bracket after host", "write it as in host(cpu 60k)");
    status = ends_with(p->text + p->at, p->size, ".json") ? host_of_file(p, count)
                                                          : host_of_ranks(p, begin, count);
    if (status == QN_OK)
        next_word(p);
    if (status == QN_OK)
        status = host_details(p, &p->team->host[p->team->hosts - 1]);
    if (status == QN_OK && qn__plan_team_ranks(p->team) > QN__PLAN_RANKS)
        return fail_back(p, at, size, "too many ranks",
                         "a run has at most 1024: give a rank more devices");
    return status;
}

/* -------------------------------------------------------------------------------- other clauses */

/* "3", or "3.1" for one rank of it. */
static qn_status event_host(parser *p, qn__plan_event *e) {
    const char *word = p->text + p->at, *dot = memchr(word, '.', p->size);
    const size_t size = dot ? (size_t)(dot - word) : p->size;
    uint64_t host, rank = QN__PLAN_ALL_RANKS;
    if (!qn__parse_u64(word, size, &host) || host >= QN__PLAN_RANKS ||
        (dot && (!qn__parse_u64(dot + 1, p->size - size - 1, &rank) || rank >= QN__PLAN_RANKS)))
        return fail_at(p, "expected the number of a host here",
                       "hosts are counted from 0, in the order of the description; 3.1 is rank 1 "
                       "of host 3");
    e->host = (uint32_t)host;
    e->rank = (uint32_t)rank;
    next_word(p);
    if (!take(p, "at"))
        return fail_at(p, "expected at and a time after the host", "write it as in die 3 at 20s");
    return above_zero(p, times, "the moment is a time after the beginning",
                      "write it with its unit, as in at 10s", &e->at);
}

/* "x0.5" */
static qn_status factor(parser *p, qn__plan_event *e) {
    static const char help[] = "write x0.5 for half as fast, x2 for twice as fast";
    if (p->size < 2 || p->text[p->at] != 'x' ||
        !read_number(p->text + p->at + 1, p->size - 1, plain, &e->factor) ||
        !(e->factor >= 1e-6 && e->factor <= 1e6))
        return fail_at(p, "expected a change of speed here", help);
    next_word(p);
    return QN_OK;
}

static qn_status event(parser *p, qn__plan_event_kind kind) {
    qn__plan_event e = {.kind = kind, .factor = 1};
    qn_status status = event_host(p, &e);
    if (status == QN_OK && kind == QN__PLAN_SLOW)
        status = factor(p, &e);
    if (status == QN_OK && p->team->events == QN__PLAN_EVENTS)
        return qn__plan_too_many(p->err, "events", QN__PLAN_EVENTS);
    if (status == QN_OK)
        p->team->event[p->team->events++] = e;
    return status;
}

static qn_status net(parser *p) {
    const qn_status status = number(p, times, "a network's latency is a time",
                                    "write it as in net 50us 1GB/s", &p->team->latency);
    if (status != QN_OK)
        return status;
    return above_zero(p, speeds, "a network's bandwidth is bytes or bits in a second",
                      "write it as in net 50us 1GB/s or net 50us 10Gbit/s", &p->team->bandwidth);
}

/* The bytes of a number in a message. */
static qn_status sums(parser *p) {
    static const char what[] = "a number of the sums takes up to 8 bytes";
    static const char help[] = "write it as in sums 4.8B; a report says how many bytes were sent";
    const size_t at = p->at, size = p->size;
    const qn_status status = above_zero(p, sizes, what, help, &p->team->word);
    return status == QN_OK && p->team->word > 8 ? fail_back(p, at, size, what, help) : status;
}

static qn_status clause(parser *p) {
    if (take(p, "net"))
        return net(p);
    if (take(p, "memory"))
        return above_zero(p, speeds, "the memory's speed is bytes in a second",
                          "write it as in memory 10GB/s", &p->team->memory);
    if (take(p, "sums"))
        return sums(p);
    if (take(p, "parts"))
        return above_zero(p, sizes, "parts have the bytes of an item that travels",
                          "write it as in parts 784B", &p->team->item);
    if (take(p, "slow"))
        return event(p, QN__PLAN_SLOW);
    if (take(p, "die"))
        return event(p, QN__PLAN_DIE);
    qn_status status = one_host(p);
    while (status == QN_OK && p->size > 0 && !is_word(p, ";"))
        status = one_host(p);
    return status;
}

qn_status qn__plan_team_read(qn__plan_team *team, const char *text, const qn__plan_subject *subject,
                             qn_error *err) {
    parser p = {.team = team, .subject = subject, .text = text, .err = err};
    qn_status status = QN_OK;
    next_word(&p);
    if (p.size == 0)
        return fail_at(&p, "expected a team", "describe it as in 4*host(cpu 60k)");
    while (status == QN_OK && p.size > 0) {
        status = clause(&p);
        if (status == QN_OK && p.size > 0 && !take(&p, ";"))
            return fail_at(&p, "expected a semicolon here",
                           "write it as in 4*host(cpu 60k); net 50us 1GB/s");
    }
    return status;
}
