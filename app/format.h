/* Formats numbers and words for people, and command lines for a shell. */
#ifndef APP_FORMAT_H
#define APP_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* Each writes into `text` and returns it. */

/* 1234567 -> "1,234,567"; needs 27 bytes. */
char *format_count(uint64_t value, char *text);
/* 58812.3 -> "58.8k", three digits; needs 16 bytes. */
char *format_rate(double value, char *text);
/* 75.2 -> "1m15s"; needs 24 bytes. */
char *format_duration(double seconds, char *text);
/* 1590040 -> "1.5 MiB"; needs 24 bytes. */
char *format_bytes(uint64_t bytes, char *text);
/* 0.00062 -> "620 uJ"; needs 32 bytes. */
char *format_joules(double joules, char *text);

/* 2350000.4 -> "2350000", 0.31 -> "0.31": six digits or the whole number, with an exponent only
 * below 0.00001 and from 10^15 on; needs 32 bytes. */
char *format_quantity(double value, char *text);

/* The words of a command line, with quotes as a POSIX shell needs them, then `more`. The caller
 * frees the text; NULL if out of memory. */
char *format_shell(int argc, char **argv, const char *const *more, size_t more_count);

/* The same of all words, for a record that other people read: absolute paths inside the current
 * folder become relative to it. */
char *format_shell_here(int argc, char **argv);

/* 1 if `text` ends with `ending`, ignoring case. */
int ends_with(const char *text, const char *ending);

#endif
