/* Integers of two digits; see fixed.cl. Four terms, in three sums. */
#undef QN_DIGITS
#undef QN_BITS_NAME
#define QN_DIGITS 2u
#define QN_BITS_NAME i14
