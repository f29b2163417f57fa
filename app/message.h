/* Error messages and notes.
 *
 * An error is three lines on stderr: "quern train: WHAT", "  at WHERE", "  REMEDY"; with --json
 * also an object on stdout. Notes are lines on stderr, which --quiet and --json suppress. */
#ifndef APP_MESSAGE_H
#define APP_MESSAGE_H

#include <quern/status.h>

/* Called when the command is known: its name, and the verbosity. */
void message_setup(const char *name, int quiet, int json);

/* Among several ranks (ranks.h): the name, such as "rank 2 on host-b", that precedes errors and
 * notes from now on; NULL: none. The text stays the caller's. */
void message_rank(const char *name);

/* While `slot` is not NULL errors are stored there, not printed: the ranks of a run first agree on
 * one. The latest replaces earlier ones. Returns the slot before. */
qn_error *message_hold(qn_error *slot);

/* Prints `err` and returns the exit code for its status. */
int message_error(const qn_error *err);
/* The same for an error of all ranks: no rank is named. */
int message_common(const qn_error *err);
/* The same with texts of any length; `where` and `remedy` may be empty. */
int message_fail(qn_status status, const char *what, const char *where, const char *remedy);
/* An error in the command line: QN_USAGE, the remedy first. */
int message_usage(const char *remedy, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether notes are suppressed. */
int message_is_quiet(void);

/* A line on stderr for the user. */
void message_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same also where notes are suppressed: work could be lost. */
void message_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line on stderr about this rank alone, unless quiet: "quern train: rank 2 on host-b: WHAT", and
 * below it the remedy, which may be empty. */
void message_aside(const char *what, const char *remedy);

/* The exit code of a command that would end with `code`. Flushes stdout; if any output was lost,
 * the code is a failure, and a line on stderr gives the reason, once. A reader that closed the pipe
 * (`| head`) is not an error. */
int message_output(int code);

/* Fills `err` as the library would; returns `status`. */
qn_status message_fill(qn_error *err, qn_status status, const char *where, const char *remedy,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The exit code for a status. */
int message_exit_code(qn_status status);

#endif
