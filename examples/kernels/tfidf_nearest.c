#include <quern/kernel_file.h>

/* The cosine of the angle between each document and a query, both as vectors with a weight for each
 * term. A document is a range of two arrays, its terms and their counts. */
INDEX(document);
INPUT(int64_t, start); /* of the document in terms and counts */
INPUT(int64_t, size);  /* the number of its terms */
WHOLE(int32_t, terms, 1);
WHOLE(int32_t, counts, 1);
WHOLE(double, idf, 1);
WHOLE(double, weight, 1); /* of each term in the query */
SCALAR(double, square);   /* the sum of the squares of weight */
OUTPUT(double, cosine);
MAX(double, nearest);
COUNT(related);

KERNEL {
    double product = 0, own = 0;
    for (int64_t k = start; k < start + size; k++) {
        const int term = terms(k);
        const double w = counts(k) * idf(term);
        product += w * weight(term);
        own += w * w;
    }
    const double c = own > 0 && square > 0 ? product / (sqrt(own) * sqrt(square)) : 0;
    cosine = c;
    nearest = c;
    related = c >= 0.2;
}
