/* The checks at the start of a public function: NULL is refused where its header does not allow it.
 *
 *     qn_status qn_data_open(const char *path, ..., qn_data **out, qn_error *err) {
 *         QN__OWN_FLOATS;
 *         QN__NEED_OUT(out, err);
 *         QN__NEED(path, err);
 *
 * The message names the function and the argument. */
#ifndef QN_BASE_ARGUMENT_H
#define QN_BASE_ARGUMENT_H

#include "base/error.h"
#include <stdint.h>

/* Returns QN_USAGE from the function whose argument is NULL. */
#define QN__NEED(argument, err)                                                                    \
    do {                                                                                           \
        if (!(argument))                                                                           \
            return qn__fail_null(err, __func__, #argument);                                        \
    } while (0)

/* The same if the header has another name for the argument. */
#define QN__NEED_AS(pointer, name, err)                                                            \
    do {                                                                                           \
        if (!(pointer))                                                                            \
            return qn__fail_null(err, __func__, name);                                             \
    } while (0)

/* The same for the address of a new object; *out is then NULL until the object is complete. */
#define QN__NEED_OUT(out, err)                                                                     \
    do {                                                                                           \
        QN__NEED(out, err);                                                                        \
        *(out) = NULL;                                                                             \
    } while (0)

/* The failure itself. Returns QN_USAGE. */
qn_status qn__fail_null(qn_error *err, const char *function, const char *argument);

/* The same for element `index` of an array, or for its member, such as ".name" (or ""). */
qn_status qn__fail_null_at(qn_error *err, const char *function, const char *array, uint32_t index,
                           const char *member);

#endif
