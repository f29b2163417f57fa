/* Integers of one digit; see intgemm_words.cl. A dot product is one term. */
#undef QN_DIGITS
#undef QN_BITS_NAME
#define QN_DIGITS 1u
#define QN_BITS_NAME i7
