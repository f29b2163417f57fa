/* Structs of the public API that begin with their own size, so that members can be added at the
 * end.
 *
 * The caller writes sizeof its struct. A size below this library's is an older caller's: members
 * that it lacks take their defaults, or are not written. A size above is a newer caller's: the
 * additional bytes must be zero where the library reads, and become zero where the library
 * writes. */
#ifndef QN_BASE_SIZED_H
#define QN_BASE_SIZED_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* The names for messages: function "qn_train_open", argument "options", type "qn_train_options". */
typedef struct qn__sized {
    const char *function, *argument, *type;
    size_t size; /* of the type in this library */
} qn__sized;

#define QN__SIZED(argument, type) (&(const qn__sized){__func__, argument, #type, sizeof(type)})

/* Checks the size in a caller's struct that is to be filled. An invalid size, such as 0, gives
 * QN_USAGE with the value to write. */
qn_status qn__sized_check(const qn__sized *what, const void *caller, qn_error *err);

/* Reports an invalid size inside another struct. Returns QN_USAGE. */
qn_status qn__sized_refuse(const qn__sized *what, size_t size, qn_error *err);

/* Copies a caller's struct over `own`, which holds the defaults and keeps its own size. QN_USAGE
 * also if members that this library does not have are not zero. */
qn_status qn__sized_take(const qn__sized *what, const void *caller, void *own, qn_error *err);

/* The same for an array whose elements all have the size of the first: converts the elements to
 * this version, for qn__free. NULL after a failure, with its status in *status. */
void *qn__sized_take_all(const qn__sized *what, const void *array, uint32_t count,
                         qn_status *status, qn_error *err);

/* Fills a caller's struct of `size` bytes, which were checked, and sets its size. */
void qn__sized_give(const qn__sized *what, const void *own, void *caller, size_t size);

/* The size in a caller's struct. */
size_t qn__sized_of(const void *caller);

#endif
