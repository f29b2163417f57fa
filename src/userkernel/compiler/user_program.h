/* The whole C text of a user kernel, for a compiler. */
#ifndef QN_USERKERNEL_COMPILER_USER_PROGRAM_H
#define QN_USERKERNEL_COMPILER_USER_PROGRAM_H

#include "userkernel/language/user_source.h"

/* The arguments of the program. Arrays are addressed by the number of their part. A result other
 * than an output goes to array[part], one number for each item of the call, and array[part +
 * QN__USER_PARTS] tells which items assigned a minimum or maximum, as uint8_t, or the bin of an
 * array of sums, as int32_t. user_prelude.inc has the same. */
typedef struct qn__user_call {
    void *const *array;
    const void *const *scalar;           /* of each part */
    const int64_t *length;               /* of each part, QN__USER_DIMENSIONS of a whole array */
    int64_t extent[QN__USER_DIMENSIONS]; /* of the index space; the first ones are 1 */
    uint64_t seed;                       /* of random numbers */
    int64_t iteration;                   /* from 0 */
} qn__user_call;

/* The function "qn_user_grain": computes `count` items from item `first` on. Returns 0, or the
 * QN__USER_FAULT_ bits of what went wrong. */
typedef uint64_t qn__user_grain(const qn__user_call *call, int64_t first, int64_t count);

enum { QN__USER_FAULT_READ = 8, QN__USER_FAULT_NAN = 32 };
#define QN__USER_FAULT_DIVISION ((uint64_t)1)
#define QN__USER_FAULT_ELEMENT ((uint64_t)2)

/* The function "qn_user_trial" of the prelude, with its arguments: 0 where the compiler is right.
 */
typedef uint32_t qn__user_trial(double a, double b, double c, float f, float g, int32_t most);

/* Adds the program to `out`. */
void qn__user_program_write(const qn__user_source *source, qn__text *out);

#endif
