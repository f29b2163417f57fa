/* Integers of three digits; see intgemm_words.cl. Nine terms, in five sums. */
#undef QN_DIGITS
#undef QN_BITS_NAME
#define QN_DIGITS 3u
#define QN_BITS_NAME i21
