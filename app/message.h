/* What the program says when something is wrong, and notes on the way.
 *
 * An error is three lines on stderr: "quern train: WHAT", "  at WHERE", "  REMEDY"; with --json it
 * is an object on stdout too. Notes are lines on stderr and left out with --quiet and --json. */
#ifndef APP_MESSAGE_H
#define APP_MESSAGE_H

#include <quern/status.h>

/* Called once a command is known: its name, and how much to say. */
void message_setup(const char *name, int quiet, int json);

/* Among several ranks (ranks.h): who speaks here, such as "rank 2 on host-b", stands before errors
 * and notes from now on; NULL: nothing does. The text stays the caller's. */
void message_rank(const char *name);

/* While `slot` is not NULL errors go there instead of being printed: the ranks of a run agree on
 * one first. The latest counts. */
void message_hold(qn_error *slot);

/* Prints `err` and returns the exit code for its status. */
int message_error(const qn_error *err);
/* The same for what all ranks have in common: no rank is named. */
int message_common(const qn_error *err);
/* The same from texts of any length; `where` and `remedy` may be empty. */
int message_fail(qn_status status, const char *what, const char *where, const char *remedy);
/* An error in the command line: QN_USAGE, the remedy first. */
int message_usage(const char *remedy, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A line on stderr for a person. */
void message_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line on stderr about this rank alone, unless quiet: "quern train: rank 2 on host-b: WHAT", and
 * the remedy below it, which may be empty. */
void message_aside(const char *what, const char *remedy);

/* Sends on what was printed on stdout; why that failed first is kept for message_output. */
void message_flush(void);
/* The same from an errno, where a write itself has told it. */
void message_lost(int why);
/* The exit code of a command that would end with `code`: what it printed on stdout is sent on, and
 * where any of it was lost the code is none of success, and a line on stderr says why, once. A
 * reader that left (`| head`) is none to complain of. */
int message_output(int code);

/* Fills `err` as the library would; returns `status`. */
qn_status message_fill(qn_error *err, qn_status status, const char *where, const char *remedy,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The exit code that stands for a status. */
int message_exit_code(qn_status status);

#endif
