/* Integers of two digits; see intgemm_words.cl. Four terms, in three sums. */
#undef QN_DIGITS
#undef QN_BITS_NAME
#define QN_DIGITS 2u
#define QN_BITS_NAME i14
