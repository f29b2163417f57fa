/* What `quern submit` needs from a command line of `quern search`. */
#ifndef APP_SEARCH_H
#define APP_SEARCH_H

#include "command.h"

/* Reads and checks the words, of which the first is "search"; *folder is that of --run-dir, among
 * the words. Returns -1, or an exit code after a message. */
int search_read(int count, char **words, arguments *given, const char **folder);

#endif
