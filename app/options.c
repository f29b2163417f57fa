#include "options.h"
#include "command.h"
#include "message.h"
#include "suggest.h"
#include "synonyms.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16 };

int read_float(const char *text, float *out) {
    char *end = NULL;
    /* strtof alone would accept "nan", "inf", hexadecimal and leading blanks too. */
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
        return 0;
    *out = strtof(text, &end);
    return *end == '\0' && end != text && isfinite(*out);
}

int read_count(const char *text, uint64_t *out) {
    if (!*text || strspn(text, "0123456789") != strlen(text))
        return 0;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
}

/* Limits of the seconds: other values are mistakes. */
static const double SHORTEST_INTERVAL = 0.001, LONGEST_INTERVAL = 365.0 * 86400;
static const double LONGEST_TIME = 3600;

/* "500us", "20ms", "1.5s", "2m" or "1h" as seconds above 0; 0 if it is invalid. */
static double time_of(const char *text) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    char number[32];
    float value;
    const size_t size = strspn(text, "0123456789+-.eE");
    if (size >= sizeof number)
        return 0;
    snprintf(number, sizeof number, "%.*s", (int)size, text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text + size, units[i].unit) == 0 && read_float(number, &value) && value > 0)
            return (double)value * units[i].seconds;
    return 0;
}

int read_time(const char *name, const char *text, double *seconds) {
    *seconds = time_of(text);
    if (*seconds > 0 && *seconds <= LONGEST_TIME)
        return -1;
    return message_usage("give a number with us, ms, s or m, such as 20ms",
                         "--%s is \"%.60s\", which is not a time", name, text);
}

int read_interval(const char *text, double *seconds, uint64_t *count) {
    *count = 0;
    *seconds = time_of(text);
    if (*seconds > 0)
        return *seconds >= SHORTEST_INTERVAL && *seconds <= LONGEST_INTERVAL;
    return read_count(text, count) && *count > 0;
}

/* "a, b or c": the words that the option accepts. */
static void list_words(const option *o, char *text, size_t size) {
    option_word word, next;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; options_word(o, i, &word) && used < size; i++) {
        const char *between = i == 0 ? "" : options_word(o, i + 1, &next) ? ", " : " or ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", between, word.name);
    }
}

static int store_choice(const option *o, const char *text, void *at) {
    char all[200], remedy[384];
    const char *words[MOST_WORDS];
    option_word word;
    size_t count = 0;
    for (uint32_t i = 0; count < MOST_WORDS && options_word(o, i, &word); i++) {
        words[count++] = word.name;
        if (strcmp(text, word.name) == 0) {
            *(const char **)at = text;
            return -1;
        }
    }
    /* Means and deviations of channels, which the library reads. */
    if (o->from == QN_CHOICE_SCALE && strchr(text, '/')) {
        *(const char **)at = text;
        return -1;
    }
    const char *near =
        o->from != QN_CHOICE_NONE ? qn_choice_near(o->from, text) : suggest(text, words, count);
    list_words(o, all, sizeof all);
    const int lacks = near && o->from != QN_CHOICE_NONE && qn_choice_lacks(o->from, text);
    snprintf(remedy, sizeof remedy, "%s%s%sit is one of %s",
             lacks  ? "Quern does not have it, and \""
             : near ? "did you mean \""
                    : "",
             near ? near : "",
             lacks  ? "\" is nearest; "
             : near ? "\"? "
                    : "",
             all);
    return message_usage(remedy, "--%s cannot be \"%s\"", o->name, text);
}

static int store_count(const option *o, const char *text, void *at) {
    uint64_t value;
    if (read_count(text, &value) && value >= o->low && value <= o->high) {
        if (o->kind == OPTION_COUNT32)
            *(uint32_t *)at = (uint32_t)value;
        else
            *(uint64_t *)at = value;
        return -1;
    }
    char remedy[160];
    snprintf(remedy, sizeof remedy, "it is a whole number from %" PRIu64 " to %" PRIu64, o->low,
             o->high);
    if (o->letter)
        return message_usage(remedy, "--%s (-%c) cannot be \"%s\"", o->name, o->letter, text);
    return message_usage(remedy, "--%s cannot be \"%s\"", o->name, text);
}

/* A value after the first one. */
static int store_file(const option *o, const char *text, file_list *list) {
    if (list->count == MOST_FILES)
        return message_usage("name a folder, a pattern in quotes, or a list of files by @FILE",
                             "--%s is given more than %d times", o->name, MOST_FILES);
    list->at[list->count++] = text;
    return -1;
}

static int store_text(const option_row *row, const char *text, void *values) {
    const option *o = row->option;
    void *at = (char *)values + row->base + o->place;
    if (!*text)
        return message_usage("see --help", "the value of --%s is empty", o->name);
    if (o->again > 0 && *(const char **)at)
        return store_file(o, text, (file_list *)((char *)values + row->base + o->again));
    if (o->kind == OPTION_TEXT) {
        *(const char **)at = text;
        return -1;
    }
    text_list *list = at;
    if (list->count == MOST_TEXTS)
        return message_usage("write several in one value", "--%s is given more than %d times",
                             o->name, MOST_TEXTS);
    list->at[list->count++] = text;
    return -1;
}

/* Stores one value. Returns -1, or an exit code after a message. */
static int store(const option_row *row, const char *text, void *values) {
    const option *o = row->option;
    void *at = (char *)values + row->base + o->place;
    switch (o->kind) {
    case OPTION_FLAG:
        *(int *)at = 1;
        return -1;
    case OPTION_TEXT:
    case OPTION_TEXTS:
        return store_text(row, text, values);
    case OPTION_CHOICE:
        return store_choice(o, text, at);
    case OPTION_COUNT:
    case OPTION_COUNT32:
        return store_count(o, text, at);
    default:
        if (read_float(text, (float *)at))
            return -1;
        return message_usage("it is a finite decimal number, such as 0.1 or 1e-3",
                             "--%s cannot be \"%s\"", o->name, text);
    }
}

/* The index of the option that `word` names ("--data", "--data=x", "-o"), or -1. */
static int find(const option *table, const char *word, option_row *row) {
    size_t length = strcspn(word + 2, "=");
    for (int i = 0; options_row(table, i, row); i++) {
        const option *o = row->option;
        int by_letter = o->letter && word[1] == o->letter && word[2] == '\0';
        int by_name =
            word[1] == '-' && strlen(o->name) == length && strncmp(o->name, word + 2, length) == 0;
        if (by_letter || by_name)
            return i;
    }
    return -1;
}

static int unknown(const command *self, const char *word) {
    char remedy[400];
    if (strncmp(word, "--help=", 7) == 0)
        return message_usage("write it alone", "--help takes no value");
    synonym_advice(self, word, remedy, sizeof remedy);
    return message_usage(remedy, "there is no option \"%.*s\"", (int)strcspn(word, "="), word);
}

/* "--batch" or "-o" is never a value; "-1" may be one. */
static int is_name(const char *word) {
    return word[0] == '-' && (word[1] == '-' || (isalpha((unsigned char)word[1]) && !word[2]));
}

static int has(const options_set *given, int index) {
    assert(index < MOST_OPTIONS);
    return (given->word[index / 64] >> index % 64) & 1;
}

static void add_to(options_set *given, int index) {
    given->word[index / 64] |= UINT64_C(1) << index % 64;
}

/* Stores the value of option `index` of a table, which argv[*at] names. Returns -1 or an exit
 * code. */
static int take_value(const option_row *row, int index, int argc, char **argv, int *at,
                      void *values, options_set *given) {
    const char *word = argv[*at];
    const option *o = row->option;
    if (has(given, index) && o->kind != OPTION_TEXTS && o->again == 0)
        return message_usage("leave one of them out", "--%s is given twice", o->name);
    add_to(given, index);
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    if (o->kind == OPTION_FLAG) {
        if (equals)
            return message_usage("write it alone", "--%s takes no value", o->name);
        return store(row, "", values);
    }
    if (equals)
        return store(row, equals + 1, values);
    if (*at + 1 >= argc || (!o->dashes && is_name(argv[*at + 1]))) {
        char words[200], remedy[256];
        list_words(o, words, sizeof words);
        snprintf(remedy, sizeof remedy, "write --%s %s", o->name,
                 o->kind == OPTION_CHOICE ? words : o->value);
        return message_usage(remedy, "--%s requires a value", o->name);
    }
    return store(row, argv[++*at], values);
}

/* Parses the option at argv[*at] and its value. Returns -1 or an exit code. */
static int take_option(const command *self, int argc, char **argv, int *at, void *values,
                       arguments *out) {
    option_row row, other;
    int index = find(self->options, argv[*at], &row);
    int there = self->like ? find(self->like->options, argv[*at], &other) : -1;
    if (index < 0 && there < 0)
        return unknown(self, argv[*at]);
    if (index < 0) {
        other.base += self->like_place;
        return take_value(&other, there, argc, argv, at, values, &out->like);
    }
    if (there >= 0)
        add_to(&out->like, there);
    return take_value(&row, index, argc, argv, at, values, &out->given);
}

static int take_operand(const command *self, const char *word, arguments *out) {
    char remedy[160];
    option_row data;
    const int most = self->most_operands > 0 ? self->most_operands : self->operand != NULL;
    if (out->operands < most) {
        out->operand[out->operands++] = word;
        return -1;
    }
    snprintf(remedy, sizeof remedy, "usage: %.140s", self->usage);
    if (most < 2 && (find(self->options, "--data", &data) >= 0 ||
                     (self->like && find(self->like->options, "--data", &data) >= 0)))
        snprintf(remedy, sizeof remedy, "name data with --data: --data %.120s", word);
    if (most > 1)
        snprintf(remedy, sizeof remedy, "put a pattern in quotes: 'part-*.csv'");
    return message_usage(remedy, "\"%s\" is an extra argument", word);
}

int options_read(const command *self, int argc, char **argv, void *values, arguments *out) {
    int only_operands = 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        int code;
        if (!only_operands && strcmp(word, "--") == 0) {
            only_operands = 1;
            continue;
        }
        if (!only_operands && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            options_help(self);
            return EXIT_DONE;
        }
        if (only_operands || word[0] != '-' || word[1] == '\0')
            code = take_operand(self, word, out);
        else
            code = take_option(self, argc, argv, &i, values, out);
        if (code >= 0)
            return code;
    }
    if (self->operand && !self->optional && out->operands == 0) {
        char remedy[160];
        snprintf(remedy, sizeof remedy, "usage: %.140s", self->usage);
        return message_usage(remedy, "%s is missing", self->operand);
    }
    return -1;
}

int options_pick(const option *table, int argc, char **argv, void *values, options_set *given) {
    option_row row;
    int code = -1;
    for (int i = 0; code < 0 && i < argc && strcmp(argv[i], "--") != 0; i++) {
        int index = strncmp(argv[i], "--", 2) == 0 ? find(table, argv[i], &row) : -1;
        if (index >= 0)
            code = take_value(&row, index, argc, argv, &i, values, given);
    }
    return code;
}

int options_picked(const option *table, const options_set *given, const char *name) {
    option_row row;
    for (int i = 0; options_row(table, i, &row); i++)
        if (strcmp(row.option->name, name) == 0)
            return has(given, i);
    return 0;
}

int options_find(const option *table, const char *name, option_row *row) {
    for (int i = 0; options_row(table, i, row); i++)
        if (strcmp(row->option->name, name) == 0)
            return i;
    return -1;
}

int options_before(const option *table, int argc, char **argv, int *next) {
    int i = 0;
    for (; i < argc && argv[i][0] == '-'; i++) {
        option_row row;
        const char *word = argv[i];
        if (strcmp(word, "--") == 0) {
            *next = i + 1;
            return i;
        }
        if (word[1] == '-' && !strchr(word, '=') && options_find(table, word + 2, &row) >= 0 &&
            row.option->kind != OPTION_FLAG)
            i++;
    }
    *next = i < argc ? i : argc;
    return *next;
}

int options_add(const command *self, int index, const char *text, void *values, arguments *words) {
    option_row row;
    if (!options_row(self->options, index, &row))
        return -1;
    add_to(&words->given, index);
    return store(&row, text, values);
}

int options_given(const command *self, const arguments *words, const char *name) {
    return options_picked(self->options, &words->given, name);
}
