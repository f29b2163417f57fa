/* "Did you mean ...?" */
#ifndef APP_SUGGEST_H
#define APP_SUGGEST_H

#include <stddef.h>

/* Of `count` candidates, the one that `word` is most likely a slip of, or NULL when none is near:
 * more than a third of its letters (but at least two) would have to change. */
const char *suggest(const char *word, const char *const *candidates, size_t count);

#endif
