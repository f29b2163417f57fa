#include "suggest.h"
#include <ctype.h>
#include <string.h>

enum { LONGEST = 63 }; /* longer words get no suggestion */

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edit distance in which a transposition of neighbours counts as one change (Damerau, optimal
 * string alignment): three rows of the usual table, for words of at most LONGEST letters. */
static size_t distance(const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b);
    size_t rows[3][LONGEST + 1];
    if (na > LONGEST || nb > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *beyond = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t same = tolower((unsigned char)a[i - 1]) == b[j - 1] ? 0 : 1;
            row[j] = smallest(above[j] + 1, row[j - 1] + 1, above[j - 1] + same);
            int swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && beyond[j - 2] + 1 < row[j])
                row[j] = beyond[j - 2] + 1;
        }
    }
    return rows[na % 3][nb];
}

/* "--check" is a prefix of the candidate. */
static int begins(const char *word, const char *candidate) {
    size_t n = strlen(word);
    return n >= 2 && strncmp(word, candidate, n) == 0;
}

const char *suggest(const char *word, const char *const *candidates, size_t count) {
    size_t allowed = strlen(word) / 3 > 2 ? strlen(word) / 3 : 2;
    const char *best = NULL;
    size_t least = allowed + 1;
    for (size_t i = 0; i < count; i++) {
        size_t d = begins(word, candidates[i]) ? 1 : distance(word, candidates[i]);
        /* A word in which every letter differs is not a suggestion, however short. */
        if (d < least && d < strlen(candidates[i])) {
            least = d;
            best = candidates[i];
        }
    }
    return best;
}
