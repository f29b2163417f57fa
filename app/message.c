#include "message.h"
#include "command.h"
#include "fields.h"
#include "jsonline.h"
#include "output.h"
#include "plain.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Settings of the one command that the program runs. */
static struct {
    char name[64];
    int quiet, json;
    const char *rank; /* NULL: there is only one */
    qn_error *held;
    int reported; /* 1: a failed write to stdout was reported */
} voice;

void message_setup(const char *name, int quiet, int json) {
    snprintf(voice.name, sizeof voice.name, "%s%s", *name ? " " : "", name);
    voice.quiet = quiet;
    voice.json = json;
}

void message_rank(const char *name) { voice.rank = name; }

qn_error *message_hold(qn_error *slot) {
    qn_error *before = voice.held;
    voice.held = slot;
    return before;
}

int message_exit_code(qn_status status) {
    switch (status) {
    case QN_OK:
        return EXIT_DONE;
    case QN_USAGE:
        return EXIT_USAGE;
    case QN_DIFFERS:
        return EXIT_DIFFERS;
    case QN_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_FAILED;
    }
}

enum { LONGEST = 16384 }; /* of a message: longer than any path and command line in it */

/* `where` may be a drawing of several lines, which are indented. */
static void print_clean(const char *before, const char *text) {
    char buffer[LONGEST];
    if (!*text)
        return;
    fputs(before, stderr);
    for (const char *at = fields_spell(text, buffer, sizeof buffer); at;) {
        const size_t line = strcspn(at, "\n");
        (void)plain_print(stderr, at, line, LONGEST);
        at = at[line] ? at + line + 1 : NULL;
        fputs(at ? "\n  " : "\n", stderr);
    }
}

/* The first line begins with the command and, if there are several, the rank, unless the text names
 * it. */
static void make_head(char *head, size_t size, const char *rank, const char *what) {
    const size_t length = rank ? strlen(rank) : 0;
    if (rank && strncmp(what, rank, length) == 0 && what[length] == ':')
        rank = NULL;
    snprintf(head, size, "quern%s: %.100s%s", voice.name, rank ? rank : "", rank ? ": " : "");
}

static int hold(qn_status status, const char *what, const char *where, const char *remedy) {
    return message_exit_code(message_fill(voice.held, status, where, remedy, "%s", what));
}

static int print(const char *rank, qn_status status, const char *what, const char *where,
                 const char *remedy) {
    int code = message_exit_code(status);
    char head[192];
    make_head(head, sizeof head, rank, what);
    output_flush();
    print_clean(head, what);
    print_clean("  at ", where);
    print_clean("  ", remedy);
    if (voice.json) {
        json_begin("error");
        json_text("status", qn_status_name(status));
        json_message("what", what);
        json_message("where", where);
        json_message("remedy", remedy);
        if (rank)
            json_text("rank", rank);
        json_count("exit", (uint64_t)code);
        json_end();
    }
    return code;
}

int message_fail(qn_status status, const char *what, const char *where, const char *remedy) {
    if (voice.held)
        return hold(status, what, where, remedy);
    return print(voice.rank, status, what, where, remedy);
}

int message_error(const qn_error *err) {
    return message_fail(err->status, err->what, err->where, err->remedy);
}

int message_common(const qn_error *err) {
    return print(NULL, err->status, err->what, err->where, err->remedy);
}

void message_aside(const char *what, const char *remedy) {
    char head[192];
    if (voice.quiet)
        return;
    make_head(head, sizeof head, voice.rank, what);
    print_clean(head, what);
    print_clean("  ", remedy);
}

int message_usage(const char *remedy, const char *format, ...) {
    char what[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return message_fail(QN_USAGE, what, "", remedy);
}

int message_is_quiet(void) { return voice.quiet || voice.json; }

static void print_note(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
static void print_note(const char *format, va_list args) {
    char text[8192]; /* longer than any path */
    vsnprintf(text, sizeof text - 1, format, args);
    char spelt[LONGEST];
    fields_spell(text, spelt, sizeof spelt - 1);
    spelt[plain_copy(spelt, spelt, strlen(spelt), "\n")] = '\0';
    fputs(strcat(spelt, "\n"), stderr); /* in one write: several ranks may be writing */
}

void message_note(const char *format, ...) {
    va_list args;
    if (voice.quiet || voice.json)
        return;
    va_start(args, format);
    print_note(format, args);
    va_end(args);
}

void message_warning(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_note(format, args);
    va_end(args);
}

qn_status message_fill(qn_error *err, qn_status status, const char *where, const char *remedy,
                       const char *format, ...) {
    va_list args;
    err->status = status;
    va_start(args, format);
    vsnprintf(err->what, sizeof err->what, format, args);
    va_end(args);
    snprintf(err->where, sizeof err->where, "%s", where);
    snprintf(err->remedy, sizeof err->remedy, "%s", remedy);
    return status;
}

int message_output(int code) {
    char head[192], what[256];
    output_flush();
    const int lost = output_failure();
    if (!lost && !ferror(stdout))
        return code;
    if (lost != EPIPE && !voice.reported) {
        make_head(head, sizeof head, voice.rank, "");
        snprintf(what, sizeof what, "cannot write to the standard output%s%s", lost ? ": " : "",
                 lost ? strerror(lost) : "");
        print_clean(head, what);
    }
    voice.reported = 1;
    return code == EXIT_DONE ? EXIT_FAILED : code;
}
