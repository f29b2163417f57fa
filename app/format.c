#include "format.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

char *format_count(uint64_t value, char *text) {
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, value);
    char *to = text;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

char *format_rate(double value, char *text) {
    static const char units[] = " kMGT";
    int unit = 0;
    if (!isfinite(value) || value < 0)
        return strcpy(text, "-");
    while (value >= 999.5 && unit < 4) {
        value /= 1000;
        unit++;
    }
    int places = value >= 99.95 || unit == 0 ? 0 : value >= 9.995 ? 1 : 2;
    int n = snprintf(text, 15, "%.*f", places, value);
    if (unit > 0 && n > 0 && n < 14) {
        text[n] = units[unit];
        text[n + 1] = '\0';
    }
    return text;
}

char *format_duration(double seconds, char *text) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e9)
        return strcpy(text, "-");
    unsigned long s = (unsigned long)(seconds + 0.5);
    if (seconds < 9.95)
        snprintf(text, 24, "%.1fs", seconds);
    else if (s < 60)
        snprintf(text, 24, "%lus", s);
    else if (s < 3600)
        snprintf(text, 24, "%lum%02lus", s / 60, s % 60);
    else
        snprintf(text, 24, "%luh%02lum", s / 3600, s / 60 % 60);
    return text;
}

char *format_bytes(uint64_t bytes, char *text) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 6) {
        value /= 1024;
        unit++;
    }
    snprintf(text, 24, "%.*f %s", unit > 0 && value < 99.95 ? 1 : 0, value, units[unit]);
    return text;
}

char *format_quantity(double value, char *text) {
    enum { DIGITS = 6 };
    const double magnitude = fabs(value);
    if (!(magnitude >= 1e-5 && magnitude < 1e15)) {
        snprintf(text, 32, "%.*g", DIGITS, value);
        return text;
    }
    const int places = DIGITS - 1 - (int)floor(log10(magnitude));
    int n = snprintf(text, 32, "%.*f", places > 0 ? places : 0, value);
    for (; places > 0 && text[n - 1] == '0'; n--)
        ;
    text[places > 0 && text[n - 1] == '.' ? n - 1 : n] = '\0';
    return text;
}

char *format_joules(double joules, char *text) {
    static const char *const units[] = {"GJ", "MJ", "kJ", "J", "mJ", "uJ", "nJ"};
    int unit = 0;
    for (joules /= 1e9; joules < 0.9995 && unit < 6; unit++)
        joules *= 1000;
    snprintf(text, 32, "%.3g %s", joules, units[unit]);
    return text;
}

/* The maximum size of a quoted word: the quotes around it, and four bytes for each quote in it. */
static size_t space_for(const char *word) {
    size_t capacity = 4;
    for (const char *p = word; *p; p++)
        capacity += *p == '\'' ? 4 : 1;
    return capacity;
}

static char *put_quoted(char *to, const char *word) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-_./,:=+@%";
    if (*word && strspn(word, plain) == strlen(word))
        return stpcpy(to, word);
    *to++ = '\'';
    for (const char *p = word; *p; p++)
        if (*p == '\'')
            to = stpcpy(to, "'\\''"); /* end the quotes, write one, begin them again */
        else
            *to++ = *p;
    *to++ = '\'';
    *to = '\0';
    return to;
}

char *format_shell(int argc, char **argv, const char *const *more, size_t more_count) {
    size_t size = 1;
    for (int i = 0; i < argc; i++)
        size += space_for(argv[i]);
    for (size_t i = 0; i < more_count; i++)
        size += space_for(more[i]);
    char *text = malloc(size), *to = text;
    if (!text)
        return NULL;
    *to = '\0';
    for (int i = 0; i < argc; i++) {
        if (i > 0)
            *to++ = ' ';
        to = put_quoted(to, argv[i]);
    }
    for (size_t i = 0; i < more_count; i++) {
        *to++ = ' ';
        to = put_quoted(to, more[i]);
    }
    return text;
}

/* A copy of a word, in which a path below `folder` is relative to it. A program keeps a slash: a
 * shell looks for others in PATH. */
static char *word_here(const char *word, const char *folder, int is_program) {
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    const char *path = equals ? equals + 1 : word;
    const size_t above = strlen(folder), before = (size_t)(path - word);
    if (strncmp(path, folder, above) != 0 || path[above] != '/' || strchr("/", path[above + 1]))
        return strdup(word);
    const char *rest = path + above + 1;
    const char *dot = *rest == '-' || (is_program && !strchr(rest, '/')) ? "./" : "";
    const size_t size = before + strlen(dot) + strlen(rest) + 1;
    char *made = malloc(size);
    if (made)
        snprintf(made, size, "%.*s%s%s", (int)before, word, dot, rest);
    return made;
}

char *format_shell_here(int argc, char **argv) {
    char folder[4096];
    if (!getcwd(folder, sizeof folder))
        return format_shell(argc, argv, NULL, 0);
    char **word = calloc((size_t)argc + 1, sizeof *word), *text = NULL;
    int count = 0;
    while (word && count < argc && (word[count] = word_here(argv[count], folder, count == 0)))
        count++;
    if (word && count == argc)
        text = format_shell(argc, word, NULL, 0);
    while (count > 0)
        free(word[--count]);
    free(word);
    return text;
}

int ends_with(const char *text, const char *ending) {
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcasecmp(text + n - m, ending) == 0;
}
