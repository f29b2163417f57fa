#include <quern/kernel_file.h>

/* Smith and Waterman (1981) with the gap costs of Gotoh (1982): the score of the best local
 * alignment of a query with each sequence of a database. A gap of k letters costs open + k *
 * extend. Letters are numbers, in the order ARNDCQEGHILKMFPSTWYVBZX*. */
INDEX(s);
INPUT(int64_t, start); /* of the sequence in letters */
INPUT(int64_t, size);  /* its number of letters */
WHOLE(uint8_t, letters, 1);
WHOLE(uint8_t, query, 1); /* at most 512 letters */
SCALAR(int32_t, open, 11);
SCALAR(int32_t, extend, 1);
OUTPUT(int32_t, score);
MAX(int32_t, best);
COUNT(histogram, 1024); /* of the scores; the last bin has all that are higher */

/* clang-format off */
static const int BLOSUM62[576] = { /* Henikoff and Henikoff (1992) */
    /* A   R   N   D   C   Q   E   G   H   I   L   K   M   F   P   S   T   W   Y   V   B   Z   X   * */
     4, -1, -2, -2,  0, -1, -1,  0, -2, -1, -1, -1, -1, -2, -1,  1,  0, -3, -2,  0, -2, -1,  0, -4,
    -1,  5,  0, -2, -3,  1,  0, -2,  0, -3, -2,  2, -1, -3, -2, -1, -1, -3, -2, -3, -1,  0, -1, -4,
    -2,  0,  6,  1, -3,  0,  0,  0,  1, -3, -3,  0, -2, -3, -2,  1,  0, -4, -2, -3,  3,  0, -1, -4,
    -2, -2,  1,  6, -3,  0,  2, -1, -1, -3, -4, -1, -3, -3, -1,  0, -1, -4, -3, -3,  4,  1, -1, -4,
     0, -3, -3, -3,  9, -3, -4, -3, -3, -1, -1, -3, -1, -2, -3, -1, -1, -2, -2, -1, -3, -3, -2, -4,
    -1,  1,  0,  0, -3,  5,  2, -2,  0, -3, -2,  1,  0, -3, -1,  0, -1, -2, -1, -2,  0,  3, -1, -4,
    -1,  0,  0,  2, -4,  2,  5, -2,  0, -3, -3,  1, -2, -3, -1,  0, -1, -3, -2, -2,  1,  4, -1, -4,
     0, -2,  0, -1, -3, -2, -2,  6, -2, -4, -4, -2, -3, -3, -2,  0, -2, -2, -3, -3, -1, -2, -1, -4,
    -2,  0,  1, -1, -3,  0,  0, -2,  8, -3, -3, -1, -2, -1, -2, -1, -2, -2,  2, -3,  0,  0, -1, -4,
    -1, -3, -3, -3, -1, -3, -3, -4, -3,  4,  2, -3,  1,  0, -3, -2, -1, -3, -1,  3, -3, -3, -1, -4,
    -1, -2, -3, -4, -1, -2, -3, -4, -3,  2,  4, -2,  2,  0, -3, -2, -1, -2, -1,  1, -4, -3, -1, -4,
    -1,  2,  0, -1, -3,  1,  1, -2, -1, -3, -2,  5, -1, -3, -1,  0, -1, -3, -2, -2,  0,  1, -1, -4,
    -1, -1, -2, -3, -1,  0, -2, -3, -2,  1,  2, -1,  5,  0, -2, -1, -1, -1, -1,  1, -3, -1, -1, -4,
    -2, -3, -3, -3, -2, -3, -3, -3, -1,  0,  0, -3,  0,  6, -4, -2, -2,  1,  3, -1, -3, -3, -1, -4,
    -1, -2, -2, -1, -3, -1, -1, -2, -2, -3, -3, -1, -2, -4,  7, -1, -1, -4, -3, -2, -2, -1, -2, -4,
     1, -1,  1,  0, -1,  0,  0,  0, -1, -2, -2,  0, -1, -2, -1,  4,  1, -3, -2, -2,  0,  0,  0, -4,
     0, -1,  0, -1, -1, -1, -1, -2, -2, -1, -1, -1, -1, -2, -1,  1,  5, -2, -2,  0, -1, -1,  0, -4,
    -3, -3, -4, -4, -2, -2, -3, -2, -2, -3, -2, -3, -1,  1, -4, -3, -2, 11,  2, -3, -4, -3, -2, -4,
    -2, -2, -2, -3, -2, -1, -2, -3,  2, -1, -1, -2, -1,  3, -3, -2, -2,  2,  7, -1, -3, -2, -1, -4,
     0, -3, -3, -3, -1, -2, -2, -3, -3,  3,  1, -2,  1, -1, -2, -2,  0, -3, -1,  4, -3, -2, -1, -4,
    -2, -1,  3,  4, -3,  0,  1, -1,  0, -3, -4,  0, -3, -3, -2,  0, -1, -4, -3, -3,  4,  1, -1, -4,
    -1,  0,  0,  1, -3,  3,  4, -2,  0, -3, -3,  1, -1, -3, -1,  0, -1, -3, -2, -2,  1,  4, -1, -4,
     0, -1, -1, -1, -2, -1, -1, -1, -1, -1, -1, -1, -1, -1, -2,  0,  0, -2, -1, -1, -1, -1, -1, -4,
    -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4,  1};
/* clang-format on */

/* A row of the table of alignments belongs to a letter of the sequence, a column to one of the
 * query. `h` has the best scores that end in the row before, `before` the same of the column to the
 * left, `e` those that end with a gap in the query. Only `f`, with a gap in the sequence, depends
 * on the column to the left in the same row. So it has a loop of its own, and compilers use vectors
 * for the other one. Such a gap begins at `t`, which lacks f: one that follows another one at once
 * is never better than a longer one. */
KERNEL {
    const int columns = (int)min(length(query, 0), 512); /* so compilers know its bound */
    int letter[512] = {0}, h[512] = {0}, before[512] = {0}, e[512] = {0}, t[512] = {0};
    int most = 0;
    for (int64_t j = 0; j < length(query, 0); j++)
        letter[j] = query(j); /* a longer query ends the run here */
    for (int64_t i = start; i < start + size; i++) {
        const int row = 24 * letters(i);
        for (int j = 0; j < columns; j++) {
            e[j] = max(e[j], h[j] - open) - extend;
            t[j] = max(max(0, before[j] + BLOSUM62[row + letter[j]]), e[j]);
            most = max(most, t[j]);
        }
        int f = 0, last = 0;
        for (int j = 0; j < columns; j++) {
            before[j] = last;
            last = max(t[j], f);
            h[j] = last;
            f = max(f, t[j] - open) - extend;
        }
    }
    score = most;
    best = most;
    histogram[min(most, 1023)] = 1;
}
