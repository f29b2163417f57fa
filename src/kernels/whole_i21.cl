/* Integers of three digits; see fixed.cl. Nine terms, in five sums. */
#undef QN_DIGITS
#undef QN_BITS_NAME
#define QN_DIGITS 3u
#define QN_BITS_NAME i21
