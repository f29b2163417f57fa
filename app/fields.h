/* Translates names of the library in messages to options of the command line. The library speaks of
 * what a program fills, `train.learning_rate` or `compute.devices`, between backquotes: the member
 * of a struct (train is qn_train_options, and so on) or the argument of a function. On the command
 * line each is an option. This is the only place that knows both names. */
#ifndef APP_FIELDS_H
#define APP_FIELDS_H

#include <stddef.h>

/* Copies `text` to `buffer`, with options ("--lr") in place of fields, truncated if necessary.
 * Other text between backquotes is unchanged. Returns `buffer`. */
const char *fields_spell(const char *text, char *buffer, size_t size);

#endif
