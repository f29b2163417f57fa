#include <quern/kernel_file.h>

/* How many documents have each term. An item is a term of a document; each is there once. */
INDEX(k);
INPUT(int32_t, terms);
COUNT(documents, 262144);

KERNEL { documents[terms] = 1; }
