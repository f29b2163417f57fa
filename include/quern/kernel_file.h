/* The keywords of kernel files, for editors and compilers. Quern itself does not read this header:
 * `quern run --kernel FILE` knows the keywords, and docs/kernels.md explains them.
 *
 * A file that includes it is C, so that an editor completes names and finds errors. Only Quern can
 * run it. Nothing else includes this header, because its macros have short names. */
#ifndef QUERN_KERNEL_FILE_H
#define QUERN_KERNEL_FILE_H

#include <stdint.h>
#ifndef __cplusplus
#include <tgmath.h> /* sqrt, exp, floor, fma and the others, of any type */
#endif

/* The part of the standard normal distribution below x; of a float it is a float. */
extern double normcdf(double x);

#define QN_KERNEL_FIRST(first, ...) first
#define QN_KERNEL_ONE(name, ...) name
#define QN_KERNEL_BINS(name, bins, ...) name[]
#define QN_KERNEL_RESULT(name, bins, form, ...) form(name, bins, )

/* The index space, of one to three dimensions: INDEX(i); or INDEX(y, x); The last runs fastest. */
#define INDEX(...) extern const int64_t __VA_ARGS__
/* Names for its lengths, in the same order. */
#define EXTENT(...) extern const int64_t __VA_ARGS__

/* Arrays that are read. INPUT: of the index space; NAME is the number of the item. WHOLE: of its
 * own shape; NAME(i, j) is a number of it. HALO: of the index space; NAME(dy, dx) is the number of
 * a neighbour at most `reach` away, and `border` (zero, nearest, wrap) says what is outside. */
#define INPUT(type, name) extern const type name
#define WHOLE(type, name, dimensions) extern type name(int64_t, ...)
#define HALO(type, name, reach, border) extern type name(int64_t, ...)
/* A length of a WHOLE array. */
#define length(name, dimension) ((int64_t)(dimension) * (int64_t)sizeof(&(name)))

/* SCALAR(type, name); or SCALAR(type, name, default); */
#define SCALAR(type, ...) extern const type QN_KERNEL_FIRST(__VA_ARGS__, )

/* Results: the kernel assigns them and cannot read them. OUTPUT: an array of the index space; with
 * OUTPUT(type, name, components) an item has several numbers, name[component] = x; SCAN:
 * the same, but each number becomes the exact sum of what the items up to it assign. The others
 * combine what all items assign. SUM: the exact sum, rounded once. MIN, MAX: the least or greatest
 * number, and the first item that has it. COUNT: the number of items that assign a number other
 * than 0. SUM(type, name, bins), COUNT(name, bins), MIN and MAX with bins are arrays: name[bin] =
 * x; adds to one bin. ARGMIN and ARGMAX give the first item of each bin with the least or greatest
 * number. SCAN(type, name, exclusive) leaves out what the item itself assigns. */
#define OUTPUT(type, ...) extern type QN_KERNEL_RESULT(__VA_ARGS__, QN_KERNEL_BINS, QN_KERNEL_ONE, )
#define SCAN(type, ...) extern type QN_KERNEL_FIRST(__VA_ARGS__, )
#define SUM(type, ...) extern type QN_KERNEL_RESULT(__VA_ARGS__, QN_KERNEL_BINS, QN_KERNEL_ONE, )
#define MIN(type, ...) extern type QN_KERNEL_RESULT(__VA_ARGS__, QN_KERNEL_BINS, QN_KERNEL_ONE, )
#define MAX(type, ...) extern type QN_KERNEL_RESULT(__VA_ARGS__, QN_KERNEL_BINS, QN_KERNEL_ONE, )
#define ARGMIN(type, name, bins) extern type name[]
#define ARGMAX(type, name, bins) extern type name[]
#define COUNT(...) extern int64_t QN_KERNEL_RESULT(__VA_ARGS__, QN_KERNEL_BINS, QN_KERNEL_ONE, )

/* After an iteration the OUTPUT becomes the INPUT, HALO or WHOLE of the next one: quern run
 * --iterations N. ITERATION(t); names the number of the iteration, from 0. */
#define NEXT(output, input) extern const int output##_becomes_##input
#define ITERATION(name) extern const int64_t name

/* RANDOM; declares functions whose numbers depend on the seed, the item and k alone: random32 gives
 * 32 random bits, uniform and uniformf numbers from 0 to less than 1, normal and normalf numbers of
 * the standard normal distribution. */
#define RANDOM                                                                                     \
    extern uint32_t random32(int64_t k);                                                           \
    extern double uniform(int64_t k);                                                              \
    extern float uniformf(int64_t k);                                                              \
    extern double normal(int64_t k);                                                               \
    extern float normalf(int64_t k)

/* What is done for each item: KERNEL { ... } */
#define KERNEL void kernel_of_this_file(void)

#ifndef __cplusplus
#define min(a, b) ((b) < (a) ? (b) : (a))
#define max(a, b) ((b) > (a) ? (b) : (a))
#endif

#endif
