#include <quern/kernel_file.h>

/* The weights of terms as scikit-learn's TfidfVectorizer has them: a term of few documents weighs
 * more. Of the query each weight is its count times this. */
INDEX(term);
INPUT(int32_t, query);         /* how often the query has the term */
WHOLE(uint64_t, documents, 1); /* of each term: how many documents have it */
SCALAR(double, all);           /* the number of documents */
OUTPUT(double, idf);
OUTPUT(double, weight);
SUM(double, square); /* of the weights of the query */

KERNEL {
    const double rare = log((1 + all) / (1.0 + documents(term))) + 1;
    idf = rare;
    weight = query * rare;
    square = query * rare * (query * rare);
}
