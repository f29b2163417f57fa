/* "Did you mean ...?" */
#ifndef APP_SUGGEST_H
#define APP_SUGGEST_H

#include <stddef.h>

/* The most similar of `count` candidates to `word`, or NULL if more than a third of its letters
 * (but at least two) differ. */
const char *suggest(const char *word, const char *const *candidates, size_t count);

#endif
