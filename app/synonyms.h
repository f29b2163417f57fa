/* Names of Quern's options and commands in other programs. */
#ifndef APP_SYNONYMS_H
#define APP_SYNONYMS_H

#include "command.h"
#include <stddef.h>

/* Writes the remedy for an unknown option of `self` ("--batch-size", "--learning-rate=3", "-j"):
 * the option that is meant or is similar, or why there is none; then where the options are
 * listed. */
void synonym_advice(const command *self, const char *word, char *remedy, size_t size);

/* The command that other programs call `word` ("learn" is "train"), or NULL. */
const char *synonym_command(const char *word);

#endif
