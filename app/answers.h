/* Files of answers that quern generate has written. */
#ifndef APP_ANSWERS_H
#define APP_ANSWERS_H

#include "compute.h"

/* Whether the file begins as such a file does. */
int answers_is_file(const char *path);

/* Generates the answers again with the model of that file, and adapters where `adapter` is
 * not NULL, on all ranks, and compares. Returns an exit code. */
int answers_replay(const char *path, const char *model, const char *adapter,
                   const compute_flags *flags, int quiet, int json);

#endif
