/* What other programs call an option of Quern. */
#ifndef APP_SYNONYMS_H
#define APP_SYNONYMS_H

#include "command.h"
#include <stddef.h>

/* Writes the remedy for an option that `self` does not have ("--batch-size", "--learning-rate=3",
 * "-j"): the option that is meant or resembles it, or why there is none; at last where the options
 * are listed. */
void synonym_advice(const command *self, const char *word, char *remedy, size_t size);

#endif
