/* A user kernel that was read: what its text declares, and its functions as C.
 *
 * docs/kernels.md is the language. The reader knows the type of every expression. What C leaves
 * undefined is defined here: a division of integers by zero and an index out of range are reported,
 * a shift takes its count modulo the width, a real number outside the range of an integer becomes
 * the nearest end of it. A name becomes u_NAME, that of an array or result p_NAME, so none has a
 * meaning to the compiler. */
#ifndef QN_USERKERNEL_LANGUAGE_USER_SOURCE_H
#define QN_USERKERNEL_LANGUAGE_USER_SOURCE_H

#include "base/text/text.h"
#include "userkernel/language/user_token.h"
#include "userkernel/language/user_tree.h"
#include "userkernel/language/user_types.h"

enum { QN__USER_PARTS = 24, QN__USER_DIMENSIONS = 3, QN__USER_HALO_MAX = 64 };

/* Most bins of an array of sums: each thread has 568 bytes for one of real numbers, 16 for one of
 * integers. Of an array of extremes every rank has 16 bytes for a bin of every other rank. */
enum { QN__USER_REAL_BINS = 1 << 14, QN__USER_BINS = 1 << 20 };
/* Most numbers that an item has in an OUTPUT. */
enum { QN__USER_COMPONENTS = 64 };

typedef enum qn__user_use {
    QN__USER_INPUT,  /* an array of the index space, one number an item */
    QN__USER_WHOLE,  /* an array that any item may read anywhere */
    QN__USER_HALOED, /* an array of the index space; an item reads its neighbours, too */
    QN__USER_OUTPUT,
    QN__USER_SCALAR,
    QN__USER_SUM,
    QN__USER_MIN,
    QN__USER_MAX,
    QN__USER_COUNT,
    QN__USER_ARGMIN, /* with bins: the first item with the least number of each, as int64_t */
    QN__USER_ARGMAX
} qn__user_use;

typedef enum qn__user_border {
    QN__USER_ZERO,    /* neighbours outside are 0 */
    QN__USER_NEAREST, /* they are the nearest item */
    QN__USER_WRAP     /* the space goes on at its other end */
} qn__user_border;

/* An array, a scalar, or a total over all items. */
typedef struct qn__user_part {
    qn__user_use use;
    qn__user_type type;
    char name[QN__USER_NAME_MAX + 1];
    uint32_t dimensions; /* of a WHOLE: 1 to 3 */
    uint32_t halo;       /* of a HALOED: how far a neighbour may be, in each dimension */
    qn__user_border border;
    uint32_t bins;       /* of a total: elements of its array; 0: it is one number */
    uint32_t components; /* of an OUTPUT: numbers of an item; 0: one, without an index */
    int scans; /* of an OUTPUT: it is a SCAN, whose numbers are then summed: 1: up to each item;
                  2: up to the one before it */
    int has_default;
    uint64_t value; /* of a SCALAR: the bytes of its default, at the lowest address */
    uint32_t next;  /* 1 + the part that NEXT pairs with this one, an output with an array that is
                       read; 0: none */
} qn__user_part;

typedef struct qn__user_source {
    uint32_t dimensions;                                     /* of the index space */
    char index[QN__USER_DIMENSIONS][QN__USER_NAME_MAX + 1];  /* the last runs fastest */
    char extent[QN__USER_DIMENSIONS][QN__USER_NAME_MAX + 1]; /* "": not declared */
    char iteration[QN__USER_NAME_MAX + 1];                   /* "": not declared */
    int has_next; /* 1: an output becomes an input in the next iteration */
    uint32_t parts;
    qn__user_part part[QN__USER_PARTS];
    int has_math;       /* 1: it calls a function of docs/exactness.md, section 21 */
    int has_doubles;    /* 1: it computes in double, or reads or writes such numbers */
    int has_random;     /* 1: it declares RANDOM */
    int has_scan;       /* 1: it declares a SCAN */
    qn__text functions; /* the constants and functions, in C; the last one is the kernel's body */
    qn__user_tree tree; /* the kernel's body */
} qn__user_source;

/* 1: the kernel writes it; a sum, a minimum, a maximum, a count or an output. */
int qn__user_use_is_result(qn__user_use use);
/* 1: the total is an extreme, or the position of one. The second: it is the least number, or its
 * position. */
int qn__user_use_is_extreme(qn__user_use use);
int qn__user_use_is_least(qn__user_use use);
/* 1: it is an array, which is bound to a file or to memory. The second: an array that the run
 * writes. */
int qn__user_part_is_array(const qn__user_part *part);
int qn__user_part_is_written(const qn__user_part *part);
/* The type of an array or result: of a COUNT uint64_t, of an ARGMIN or ARGMAX int64_t. */
qn__user_type qn__user_part_type(const qn__user_part *part);
/* Bytes of an item in an array of the index space, and numbers of it. */
uint32_t qn__user_part_each(const qn__user_part *part);
uint32_t qn__user_part_numbers(const qn__user_part *part);
/* The word that declares it, such as "INPUT". */
const char *qn__user_use_word(qn__user_use use);

/* Reads a kernel. `name` is what messages and the compiler's messages call it. On success
 * qn__user_source_release frees what it holds; `text` may go. Fails with QN_INPUT, with line,
 * column and remedy, or QN_MEMORY; *out is then released. */
qn_status qn__user_source_read(const char *text, const char *name, qn__user_source *out,
                               qn_error *err);
void qn__user_source_release(qn__user_source *source);

#endif
